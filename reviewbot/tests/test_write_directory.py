"""Writing a generated directory loses nothing of the user's."""

from pathlib import Path

import pytest

from reviewbot.errors import UsageError
from reviewbot.tools.kselftest import write_directory


def test_it_is_written_and_written_again(tmp_path: Path) -> None:
    write_directory(tmp_path / "new", {"a.c": "one", "b.c": "two"})
    (tmp_path / "new" / "notes").write_text("mine")
    write_directory(tmp_path / "new", {"a.c": "three"})
    names = sorted(p.name for p in (tmp_path / "new").iterdir())
    assert names == [".reviewbot-files", "a.c", "notes"]
    assert (tmp_path / "new" / "a.c").read_text() == "three"


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    write_directory(tmp_path, {"a.c": "one"})
    assert (tmp_path / "a.c").read_text() == "one"


@pytest.mark.parametrize("make", [lambda p: p.write_text("x"), lambda p: (p.mkdir(), (p / "work").write_text("keep"))])
def test_what_is_not_ours_is_refused(tmp_path: Path, make: object) -> None:
    place = tmp_path / "place"
    assert callable(make)
    make(place)
    with pytest.raises(UsageError, match="place"):
        write_directory(place, {"a.c": "one"})
    assert (place.read_text() if place.is_file() else (place / "work").read_text()) in ("x", "keep")


def test_what_cannot_be_written_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="/proc/nowhere"):
        write_directory(Path("/proc/nowhere"), {"a.c": "one"})
