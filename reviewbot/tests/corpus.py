"""Reads a corpus: logs whose first lines (``;; KEY VALUE``) state what must come out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    wanted: tuple[tuple[str, str], ...]
    text: str

    def all(self, key: str) -> list[str]:
        return [value for k, value in self.wanted if k == key]


def samples(kind: str) -> list[Sample]:
    found = [_read(path) for path in sorted((DATA / kind).iterdir())]
    assert found, f"no corpus in {kind}"
    return found


def _read(path: Path) -> Sample:
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    wanted = []
    while lines and lines[0].startswith(";; "):
        key, _, value = lines.pop(0)[3:].partition(" ")
        wanted.append((key, value))
    assert wanted, f"{path} does not say what must come out"
    return Sample(path.stem, tuple(wanted), "\n".join(lines))
