import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reviewbot.errors import UsageError
from reviewbot.tools.fastimport import import_tarball
from reviewbot.tools.git import must

FILES = {
    "linux-1.2/Makefile": b"VERSION = 1\n",
    "linux-1.2/.gitignore": b"*.o\n",
    "linux-1.2/arch/x86/kept.o": b"\0binary\xff",
    "linux-1.2/a file with spaces": b"",
    'linux-1.2/quote".c': b"int x;",
    "linux-1.2/\u00fcml\u00e4ut/back\\slash": b"no line end",
}


def _tar(entries: Mapping[str, bytes], *special: tarfile.TarInfo, mode: int = 0o644) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, body in entries.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(body), mode
            archive.addfile(info, io.BytesIO(body))
        for info in special:
            archive.addfile(info)
    return out.getvalue()


def _special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o755
    return info


def _import(tmp_path: Path, data: bytes, name: str = "linux.tar") -> Path:
    tarball, repo = tmp_path / name, tmp_path / "repo.git"
    tarball.write_bytes(data)
    import_tarball(repo, tarball, message="Import\n")
    return repo


def _listing(repo: Path) -> dict[str, str]:
    # path -> mode, of the only commit
    lines = must(repo, "ls-tree", "-r", "-z", "--full-tree", "HEAD").split("\0")
    return {line.split("\t", 1)[1]: line.split()[0] for line in lines if line}


def _content(repo: Path, path: str) -> str:
    return must(repo, "cat-file", "blob", f"HEAD:{path}")


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress, bz2.compress])
def test_the_tree_is_the_archive_without_its_top_directory(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    repo = _import(tmp_path, pack(_tar(FILES)))
    assert _listing(repo) == {name.removeprefix("linux-1.2/"): "100644" for name in FILES}
    assert _content(repo, "arch/x86/kept.o") == "\0binary\ufffd"
    assert must(repo, "fsck", "--strict") == ""


def test_modes_and_links(tmp_path: Path) -> None:
    tar = _tar(
        {"l/script.sh": b"#!/bin/sh\n", "l/with space": b"kept\n"},
        _special("l/dir", tarfile.DIRTYPE),
        _special("l/link", tarfile.SYMTYPE, "../outside me"),
        _special("l/hard", tarfile.LNKTYPE, "l/with space"),
        mode=0o775,
    )
    repo = _import(tmp_path, tar)
    assert _listing(repo) == {"script.sh": "100755", "with space": "100755", "link": "120000", "hard": "100755"}
    assert _content(repo, "link") == "../outside me"
    assert _content(repo, "hard") == "kept"


def test_one_pack_and_no_loose_objects(tmp_path: Path) -> None:
    repo = _import(tmp_path, _tar({"l/Makefile": b"x"}))
    counts = dict(line.split(": ") for line in must(repo, "count-objects", "-v").splitlines())
    assert (counts["count"], counts["packs"]) == ("0", "1")


def test_the_same_content_is_the_same_commit_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = set()
    for number, (zone, who) in enumerate([("UTC", "one"), ("Asia/Tokyo", "two")]):
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("GIT_AUTHOR_NAME", who)
        place = tmp_path / str(number)
        place.mkdir()
        repo = _import(place, lzma.compress(_tar(FILES), preset=number), f"linux-{number}.tar.xz")
        ids.add(must(repo, "rev-parse", "HEAD"))
        assert must(repo, "log", "--format=%an <%ae> %ad %cn %cd", "--date=raw") == (
            "reviewbot <reviewbot@localhost> 946684800 +0000 reviewbot 946684800 +0000"
        )
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Makefile", "arch/a"], ["Makefile", "arch/a"]),
        (["./Makefile", "./arch/a"], ["Makefile", "arch/a"]),
        (["./linux/Makefile", "./linux/arch/a"], ["Makefile", "arch/a"]),
        (["one/a", "two/b"], ["one/a", "two/b"]),
        (["one/a", "top"], ["one/a", "top"]),
        (["Makefile"], ["Makefile"]),
        (["one/one/one/a"], ["one/one/a"]),
    ],
)
def test_only_a_single_top_directory_is_stripped(tmp_path: Path, names: list[str], expected: list[str]) -> None:
    assert sorted(_listing(_import(tmp_path, _tar(dict.fromkeys(names, b"x"))))) == sorted(expected)


@pytest.mark.parametrize("name", ["../evil", "l/../../evil", "/etc/passwd", "l/.git/config", "l/.GIT/hooks/x", ".."])
def test_a_member_that_leaves_the_tree_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="leaves the tree"):
        _import(tmp_path, _tar({"l/Makefile": b"x", name: b"x"}))


def test_a_device_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file"):
        _import(tmp_path, _tar({"l/Makefile": b"x"}, _special("l/null", tarfile.CHRTYPE)))


def test_a_symlink_is_never_followed(tmp_path: Path) -> None:
    repo = _import(tmp_path, _tar({}, _special("l/out", tarfile.SYMTYPE, str(tmp_path))) + b"")
    assert _listing(repo) == {"out": "120000"}
    again = tmp_path / "again"
    again.mkdir()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(_special("l/out", tarfile.SYMTYPE, str(tmp_path)))
        info = tarfile.TarInfo("l/out/evil")
        archive.addfile(info, io.BytesIO())
    assert _listing(_import(again, out.getvalue())) == {"out/evil": "100644"}
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress, bz2.compress])
def test_a_cut_off_archive_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes], keep: float) -> None:
    body = os.urandom(50_000)
    data = pack(_tar({"l/Makefile": body, "l/more": body}))
    with pytest.raises(UsageError, match="damaged"):
        _import(tmp_path, data[: int(len(data) * keep)])


@pytest.mark.parametrize("data", [b"", b"\0" * 10240, b"\xfd7zXZ\x00garbage", b"<html>not here</html>" * 50])
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError, match=r"linux\.tar"):
        _import(tmp_path, data)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        import_tarball(tmp_path / "r.git", tmp_path / "none.tar", message="x")


_NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..") and name.lower() != ".git"
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(_NAMES, st.binary(max_size=200), min_size=1, max_size=5))
def test_any_file_name_survives(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    repo = _import(tmp_path_factory.mktemp("any"), _tar({f"top/{name}": body for name, body in files.items()}))
    assert set(_listing(repo)) == set(files)
