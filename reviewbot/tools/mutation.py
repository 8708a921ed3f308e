"""Mutated kernels: sources with mutants in them as commits, and which mutants the compiler takes.

In: a builder, the patched commit (built once before) and the bytes of its touched files. Out: commits of ours, whose
ids depend on the input alone, and for each mutant that cannot be used the reason. The caller holds the source lock.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reviewbot.errors import InfraError
from reviewbot.generate.mutants import apply_mutant
from reviewbot.generate.schemata import DEFINITION_FILE, Schema, blamed, definition, rewrite
from reviewbot.tools.git import git_bytes
from reviewbot.tools.objects import TreeEntry, read_objects
from reviewbot.tools.patching import Commit, make_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from reviewbot.generate.mutants import Mutant
    from reviewbot.tools.kernel import Builder

ROUNDS = 12
COMPILE_TIMEOUT_S = 1800.0
# Constraint violations that older compilers only warn about.
_REFUSED = r"(?:error|fatal error):|warning: .*\[-W(?:int-conversion|incompatible-pointer-types)\]"
_MESSAGE = re.compile(rf"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<what>{_REFUSED}|note:|warning:)(?P<text>.*)$")
_MARKER = re.compile(r'# (\d+) "([^"\n]*)"')
_SITE = re.compile(rb"\breviewbot_at\((\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaBuild:
    """A commit that holds many mutants. kept are in it; invalid and alone map the others' numbers to the reason.

    alone are those that may compile when they do not have to be chosen at run time.
    """

    commit: str
    kept: tuple[Mutant, ...]
    invalid: Mapping[int, str]
    alone: Mapping[int, str]


def read_files(repo: Path, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of those paths that are files of the commit."""
    objects = read_objects(repo, [f"{commit}:{path}" for path in paths])
    return {p: o.data for p, o in zip(paths, objects, strict=True) if o is not None and o.kind == "blob"}


def commit_files(repo: Path, parent: str, files: Mapping[str, bytes], message: str) -> str:
    """Return the id of a commit on parent that has these files; the same input gives the same id."""
    entries = {}
    for path, data in files.items():
        oid = git_bytes(repo, "hash-object", "-w", "--stdin", stdin=[data]).decode().strip()
        entries[path] = TreeEntry("100644", oid)
    commit = Commit(
        name="reviewbot", address="reviewbot@localhost", epoch=0, zone="+0000", message=message, files=entries
    )
    return make_commits(repo, parent, [commit])[0]


def build_schema(
    builder: Builder,
    repo: Path,
    tip: str,
    *,
    files: Mapping[str, bytes],
    mutants: Sequence[Mutant],
    note: Callable[[str], None],
) -> SchemaBuild:
    """Put all mutants that the compiler takes into one commit on tip; only the touched objects are compiled.

    Raises InfraError when the compiler's complaints cannot be brought to an end.
    """
    work = _Work(builder=builder, repo=repo, tip=tip, files=files, left={m.number: m for m in mutants})
    work.leave_out(m.number for m in mutants if m.file.endswith(".c") and not work.built(m.file))
    work.headers()
    for number in range(1, ROUNDS + 1):
        note(f"{len(work.left)} mutants in one source, try {number}")
        commit, schemas = work.commit()
        output = compile_objects(builder, commit, sorted(schemas))
        if not work.drop(schemas, output):
            there = {int(n) for text in work.preprocessed().values() for n in _SITE.findall(text)}
            work.leave_out(work.left.keys() - there)
            return SchemaBuild(commit=commit, kept=tuple(work.left.values()), invalid=work.invalid, alone=work.alone)
    msg = f"the source with the mutants does not compile after {ROUNDS} tries"
    raise InfraError(msg)


def remember(place: Path, built: SchemaBuild, mutants: Sequence[Mutant]) -> None:
    """Keep in a file what build_schema() found out for these mutants."""
    numbers = {"invalid": dict(built.invalid), "alone": dict(built.alone)}
    entry = {"commit": built.commit, "mutants": [m.ident for m in mutants], **numbers}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(entry), encoding="utf-8")


def recalled(place: Path, repo: Path, mutants: Sequence[Mutant]) -> SchemaBuild | None:
    """Return what remember() kept for the same mutants, while its commit is there; None otherwise."""
    try:
        entry = json.loads(place.read_text(encoding="utf-8"))
        commit, idents = str(entry["commit"]), entry["mutants"]
        invalid, alone = ({int(n): str(why) for n, why in entry[k].items()} for k in ("invalid", "alone"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if idents != [m.ident for m in mutants] or read_objects(repo, [commit])[0] is None:
        return None
    kept = tuple(m for m in mutants if m.number not in invalid and m.number not in alone)
    return SchemaBuild(commit=commit, kept=kept, invalid=invalid, alone=alone)


@dataclass(slots=True, kw_only=True)
class _Work:
    # The mutants that are left, and why the others went.
    builder: Builder
    repo: Path
    tip: str
    files: Mapping[str, bytes]
    left: dict[int, Mutant]
    invalid: dict[int, str] = field(default_factory=dict)
    alone: dict[int, str] = field(default_factory=dict)

    def commit(self) -> tuple[str, dict[str, Schema]]:
        """Commit the rewritten files and the definition."""
        schemas = {
            path: rewrite(text, here)
            for path, text in self.files.items()
            if (here := [m for m in self.left.values() if m.file == path])
        }
        home = DEFINITION_FILE
        base = schemas[home].text if home in schemas else read_files(self.repo, self.tip, [home])[home]
        texts = {path: schema.text for path, schema in schemas.items()}
        texts[home] = base + definition(max(self.left, default=1)).encode()
        return commit_files(self.repo, self.tip, texts, "mutants: all in one\n"), schemas

    def drop(self, schemas: Mapping[str, Schema], output: str) -> bool:
        """Take out what the compiler refused; return whether there was anything."""
        bad = refusals(output, schemas, str(self.builder.make.source))
        failed = _broken(output)
        if failed and not bad:
            msg = f"the source with the mutants does not compile: {failed}"
            raise InfraError(msg)
        for number, (reason, sure) in bad.items():
            self.left.pop(number, None)
            (self.invalid if sure else self.alone)[number] = reason
        return bool(bad)

    def leave_out(self, numbers: Iterable[int]) -> None:
        """Make mutants invalid that this configuration does not compile."""
        for number in tuple(numbers):
            self.left.pop(number)
            self.invalid[number] = "not part of this configuration"

    def headers(self) -> None:
        """Leave out the functions of headers that no touched C file sees: a touched header costs a long build."""
        inside = [m for m in self.left.values() if m.file.endswith(".h") and not m.macro]
        paths = {m.file for m in inside}
        if not paths:
            return
        self.builder.checkout(self.tip)
        seen = {path: set[int]() for path in paths}
        for text in self.preprocessed().values():
            for path, lines in seen_lines(text.decode("utf-8", "replace"), paths).items():
                seen[path] |= lines
        alive = {(m.file, m.function) for m in inside if m.line in seen[m.file]}
        self.leave_out(m.number for m in inside if (m.file, m.function) not in alive)

    def preprocessed(self) -> dict[str, bytes]:
        """Return what the compiler sees of the touched C files, or of the definition's when there are none."""
        sources = sorted({m.file for m in self.left.values() if m.file.endswith(".c")}) or [DEFINITION_FILE]
        targets = [path.removesuffix(".c") + ".i" for path in sources]
        self.builder.make("-k", *targets, timeout_s=COMPILE_TIMEOUT_S)
        texts = {}
        for file in (self.builder.make.build / target for target in targets):
            if file.is_file():
                texts[file.name] = file.read_bytes()
                file.unlink()
        return texts

    def built(self, path: str) -> bool:
        # A file that the configuration leaves out has no object in the archive of its directory's last full build.
        listing = self.builder.make.build / path.rpartition("/")[0] / "built-in.a"
        name = path.rpartition("/")[2].removesuffix(".c") + ".o"
        return not listing.is_file() or name.encode() in listing.read_bytes()


def seen_lines(preprocessed: str, paths: Iterable[str]) -> dict[str, set[int]]:
    """Return which lines of each file are in preprocessed text, by its line markers (``# 12 "include/a.h"``)."""
    found: dict[str, set[int]] = {path: set() for path in paths}
    here: set[int] | None = None
    number = 0
    for line in preprocessed.split("\n"):
        if match := _MARKER.match(line):
            number = int(match[1]) - 1
            here = next((lines for path, lines in found.items() if match[2].endswith(path)), None)
        elif here is not None and line.strip():
            here.add(number)
        number += 1
    return found


def compile_objects(builder: Builder, commit: str, paths: Sequence[str]) -> str:
    """Check the commit out, compile the objects of its C files and of the definition, and return what make said."""
    builder.checkout(commit)
    targets = sorted({p.removesuffix(".c") + ".o" for p in (*paths, DEFINITION_FILE) if p.endswith(".c")})
    log = builder.make.log
    before = log.stat().st_size if log.exists() else 0
    builder.make("-k", *targets, timeout_s=COMPILE_TIMEOUT_S)
    with log.open("rb") as file:
        file.seek(before)
        return file.read().decode("utf-8", "replace")


def refusals(output: str, schemas: Mapping[str, Schema], source: str) -> dict[int, tuple[str, bool]]:
    """Return, by number, why the compiler refused a mutant, and whether the mutant's own text was at fault.

    An error in a header counts for the place where the macro was used, which the compiler notes after it.
    """
    found: dict[int, tuple[str, bool]] = {}
    reason, settled = "", True
    for line in output.split("\n"):
        match = _MESSAGE.match(line)
        if not match:
            continue
        note = match["what"] == "note:"
        if not note:
            refused = re.match(_REFUSED, match["what"]) is not None
            reason, settled = (match["text"].strip() or match["what"], False) if refused else ("", True)
        if settled or (note and "in expansion of macro" not in match["text"]):
            continue
        path = match["file"].removeprefix(source + "/")
        numbers = blamed(schemas[path], [int(match["line"])]) if path in schemas else frozenset()
        for number in numbers:
            found.setdefault(number, (f"does not compile: {reason}", len(numbers) == 1))
        settled = bool(numbers)
    return found


def _broken(output: str) -> str:
    # The first line that says why a build failed, empty for one that did not.
    if not re.search(r"^make(\[\d+\])?: \*\*\* ", output, re.M):
        return ""
    errors = [line for line in output.split("\n") if re.search(r"\berror:|: \*\*\* ", line)]
    return errors[0].strip()[:300] if errors else "make failed"


def commit_alone(repo: Path, tip: str, files: Mapping[str, bytes], mutant: Mutant) -> str:
    """Return a commit on tip that has this one mutant, written into the source."""
    text = apply_mutant(files[mutant.file], mutant)
    return commit_files(repo, tip, {mutant.file: text}, f"mutant {mutant.ident}\n")


def objects_of(builder: Builder, commit: str, paths: Sequence[str]) -> tuple[dict[str, bytes], str]:
    """Compile the C files of a commit; return the bytes of the objects, and what failed (empty when nothing did)."""
    output = compile_objects(builder, commit, paths)
    if failed := _broken(output):
        return {}, failed
    names = [p.removesuffix(".c") + ".o" for p in paths if p.endswith(".c")]
    return {name: (builder.make.build / name).read_bytes() for name in names}, ""
