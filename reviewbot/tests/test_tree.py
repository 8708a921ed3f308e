import io
import multiprocessing
import os
import signal
import tarfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewbot.errors import InfraError, UsageError
from reviewbot.run import run
from reviewbot.tools import apt, tree
from reviewbot.tools import clone as clone_tool
from reviewbot.tools.cache import Cache
from reviewbot.tools.git import git, must

MAKEFILE = "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 9\nEXTRAVERSION = -rc1\nNAME = X\n\nall:\n\ttrue\n"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "my cache")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    # A maintainer's clone: a branch, a tag, a remote-tracking branch, and uncommitted work.
    path = tmp_path / "theirs"
    must(None, "init", "--quiet", "--initial-branch=master", "--", str(path))
    (path / "Makefile").write_text(MAKEFILE)
    must(path, "add", ".")
    must(path, "commit", "--quiet", "-m", "first")
    must(path, "tag", "v7.2")
    must(path, "update-ref", "refs/remotes/next/master", "HEAD")
    (path / "unfinished").write_text("work")
    return path


def _tarball(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def _snapshot(path: Path) -> dict[str, tuple[int, bytes]]:
    # A hard link more on an object is allowed; a changed, added or removed file is not.
    return {str(f.relative_to(path)): (f.stat().st_mtime_ns, f.read_bytes()) for f in path.rglob("*") if f.is_file()}


def _stored(cache: Cache) -> set[str]:
    return {path.name for path in cache.trees.iterdir()}


def test_a_clone_is_added_and_never_modified(cache: Cache, clone: Path) -> None:
    before = _snapshot(clone)
    added = tree.add_git(cache, "mine", clone)
    with tree.source_lock(cache, "mine"):
        work = tree.worktree(cache, added)
        (work / "Makefile").write_text("changed\n")
        must(work, "commit", "--quiet", "-am", "ours")
    assert _snapshot(clone) == before
    assert added.head == must(clone, "rev-parse", "HEAD")
    assert (added.name, added.kind, added.describe, added.verified) == ("mine", tree.TreeKind.GIT, "v7.2", True)
    assert added.source == str(clone)
    assert must(added.repo, "rev-parse", "refs/remotes/next/master") == added.head
    assert tree.list_trees(cache) == (tree.get_tree(cache, "mine"),) == (added,)


def test_refresh_follows_the_source(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "mine", clone)
    must(clone, "commit", "--quiet", "--allow-empty", "-m", "second")
    must(clone, "branch", "topic")
    again = tree.refresh(cache, added)
    assert again.head == must(clone, "rev-parse", "HEAD") != added.head
    assert again.describe.startswith("v7.2-1-g")
    assert must(again.repo, "rev-parse", "topic") == again.head
    assert tree.get_tree(cache, "mine") == again
    must(clone, "checkout", "--quiet", "--detach", "v7.2")
    assert tree.refresh(cache, again).head == added.head


def test_refresh_says_when_the_source_is_gone(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "mine", clone)
    clone.rename(clone.with_name("moved"))
    with pytest.raises(InfraError, match="fetch of"):
        tree.refresh(cache, added)
    assert tree.get_tree(cache, "mine") == added


def test_a_file_url_is_cloned(cache: Cache, clone: Path) -> None:
    assert tree.add_git(cache, "mine", f"file://{clone}").head == must(clone, "rev-parse", "HEAD")


def test_a_clone_of_another_user_is_read(cache: Cache, clone: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a directory away needs root")
    for path in (clone, *clone.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    assert tree.add_git(cache, "mine", clone).describe == "v7.2"


def test_progress_is_told(cache: Cache, clone: Path) -> None:
    said: list[str] = []
    tree.add_git(cache, "mine", clone, said.append)
    assert said  # which lines depends on how many of them come at once
    assert not any("\n" in line or "\r" in line for line in said)


@pytest.mark.parametrize("name", ["", ".", "..", "-x", ".hidden", "a/b", "a b", "a\n", "ä", "../x", "x\0"])
def test_a_name_that_could_be_an_option_or_a_path_is_refused(cache: Cache, clone: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a tree"):
        tree.add_git(cache, name, clone)
    with pytest.raises(UsageError, match="no tree is called"):
        tree.get_tree(cache, name)
    assert _stored(cache) == set()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("/nonexistent", "neither a directory nor a git URL"),
        ("--upload-pack=touch /tmp/evil", "neither a directory nor a git URL"),
        ("ext::sh -c true", "neither a directory nor a git URL"),
        ("/", "no git repository"),
        ("file:///nonexistent", "no git repository"),
    ],
)
def test_a_source_that_is_no_repository_is_refused(cache: Cache, source: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        tree.add_git(cache, "x", source)
    assert _stored(cache) == set()


def test_a_repository_without_a_commit_is_refused(cache: Cache, tmp_path: Path) -> None:
    must(None, "init", "--quiet", "--", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="has no commit"):
        tree.add_git(cache, "x", tmp_path / "empty")


def test_a_partial_clone_is_refused(cache: Cache, clone: Path, tmp_path: Path) -> None:
    must(clone, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    must(None, "clone", "--quiet", "--filter=blob:none", "--no-checkout", "--", f"file://{clone}", str(partial))
    with pytest.raises(UsageError, match="partial clone"):
        tree.add_git(cache, "x", partial)


def test_a_password_in_a_url_is_not_kept() -> None:
    shown = clone_tool._shown("https://user:secret@example.com/linux.git")
    assert shown == "https://user@example.com/linux.git"


def test_unknown_trees_are_answered_with_the_known_ones(cache: Cache, clone: Path) -> None:
    with pytest.raises(UsageError, match="known trees: none"):
        tree.get_tree(cache, "x")
    tree.add_git(cache, "one", clone)
    tree.add_git(cache, "two", clone)
    with pytest.raises(UsageError, match="'x'; known trees: one, two"):
        tree.remove_tree(cache, "x")


def test_a_taken_name_is_refused(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "one", clone)
    with pytest.raises(UsageError, match="called one already"):
        tree.add_git(cache, "one", clone)
    assert tree.get_tree(cache, "one") == added


def test_a_tarball_is_added(cache: Cache, tmp_path: Path) -> None:
    path = _tarball(tmp_path / "linux-x.tar.xz", {"linux-7.2/Makefile": MAKEFILE, "linux-7.2/COPYING": "GPL\n"})
    added = tree.add_tarball(cache, "tar", path)
    assert (added.kind, added.describe, added.verified) == (tree.TreeKind.TARBALL, "7.2.9-rc1", False)
    assert added.source == str(path)
    with tree.source_lock(cache, "tar"):
        assert (tree.worktree(cache, added) / "COPYING").read_text() == "GPL\n"
    assert tree.add_tarball(cache, "again", path).head == added.head


def test_a_tarball_without_a_version_is_described_by_its_name(cache: Cache, tmp_path: Path) -> None:
    path = _tarball(tmp_path / "mini-3.tar.xz", {"mini/Makefile": "all:\n"})
    assert tree.add_tarball(cache, "tar", path).describe == "mini-3"


def test_a_full_disk_is_the_machines_fault_and_leaves_nothing(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or not run(argv, timeout_s=10).ok:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        cache = Cache(mount / "cache")
        (tmp_path / "random").write_bytes(os.urandom(2_000_000))
        path = tmp_path / "x.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(tmp_path / "random", "l/Makefile")
        with pytest.raises(InfraError, match="git fast-import"):
            tree.add_tarball(cache, "tar", path)
        assert _stored(cache) == set()
    finally:
        assert run(["umount", str(mount)], timeout_s=10).ok


def test_a_failed_add_leaves_nothing(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Makefile"):
        tree.add_tarball(cache, "tar", _tarball(tmp_path / "x.tar.xz", {"a/b": "c"}))
    (tmp_path / "x.tar.xz").write_bytes(b"not a tarball")
    with pytest.raises(UsageError, match="damaged"):
        tree.add_tarball(cache, "tar", tmp_path / "x.tar.xz")
    assert _stored(cache) == set()
    assert tree.list_trees(cache) == ()


def _add_slowly(cache: Cache, path: Path) -> None:
    def wait(_: str) -> None:
        (cache.root / "reached").touch()
        time.sleep(60)

    tree.add_tarball(cache, "tar", path, wait)


def test_an_add_that_was_killed_is_cleaned_up_by_the_next(cache: Cache, tmp_path: Path) -> None:
    path = _tarball(tmp_path / "x.tar.xz", {"l/Makefile": MAKEFILE} | {f"l/{n}": "" for n in range(5000)})
    process = multiprocessing.get_context("fork").Process(target=_add_slowly, args=(cache, path))
    process.start()
    deadline = time.monotonic() + 30
    while not (cache.root / "reached").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert tree.list_trees(cache) == ()
    assert _stored(cache) == {".adding-tar"}
    (cache.trees / "tar.git").mkdir()  # killed between the rename and the record
    tree.add_tarball(cache, "tar", path)
    assert _stored(cache) == {"tar.git", "tar.json"}


def test_remove_takes_the_work_tree_and_the_builds(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "one", clone)
    kept = tree.add_git(cache, "one.more", clone)
    with tree.source_lock(cache, "one"):
        tree.worktree(cache, added)
    cache.dir("builds", "one", "config")
    tree.remove_tree(cache, "one")
    assert tree.list_trees(cache) == (kept,)
    assert list(cache.sources.iterdir()) == list(cache.builds.iterdir()) == []
    assert _stored(cache) == {"one.more.git", "one.more.json"}


def test_who_waits_for_a_tree_says_so(cache: Cache) -> None:
    said: list[str] = []
    held, told = threading.Event(), threading.Event()

    def note(text: str) -> None:
        said.append(text)
        told.set()

    def wait() -> None:
        held.wait(10)
        with tree.source_lock(cache, "one", note=note):
            pass

    other = threading.Thread(target=wait)
    other.start()
    with tree.source_lock(cache, "one"):
        held.set()
        assert told.wait(10)
    other.join(10)
    assert said == ["waiting for another run on one to end"]


def test_a_tree_in_use_is_not_removed(cache: Cache, clone: Path) -> None:
    tree.add_git(cache, "one", clone)
    with tree.source_lock(cache, "one"), pytest.raises(UsageError, match="in use"):
        tree.remove_tree(cache, "one")
    tree.remove_tree(cache, "one")


def test_the_work_tree_persists_with_its_time_stamps(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "one", clone)
    work = tree.worktree(cache, added)
    assert work == cache.sources / "one"
    stamp = (work / "Makefile").stat().st_mtime_ns
    (work / "left").touch()
    assert tree.worktree(cache, added) == work
    assert (work / "left").exists()
    assert (work / "Makefile").stat().st_mtime_ns == stamp
    assert must(work, "rev-parse", "HEAD") == added.head


@pytest.mark.parametrize("damage", ["marker", "git file", "directory", "admin"])
def test_a_damaged_work_tree_is_made_again(cache: Cache, clone: Path, damage: str) -> None:
    must(None, "init", "--quiet", "--", str(cache.root))  # a cache may lie inside somebody's repository
    must(cache.root, "commit", "--quiet", "--allow-empty", "-m", "around")
    added = tree.add_git(cache, "one", clone)
    work = tree.worktree(cache, added)
    if damage == "marker":  # as a kill during the checkout leaves it
        (added.repo / "reviewbot-worktree").unlink()
        (work / "Makefile").unlink()
    elif damage == "git file":
        (work / ".git").unlink()
    elif damage == "directory":
        run(["rm", "-r", str(work)], timeout_s=10)
    else:
        run(["rm", "-r", str(added.repo / "worktrees")], timeout_s=10)
    assert tree.worktree(cache, added) == work
    assert must(work, "status", "--porcelain") == ""
    assert must(work, "rev-parse", "HEAD") == added.head


def test_a_lock_of_a_killed_git_is_removed(cache: Cache, clone: Path) -> None:
    added = tree.add_git(cache, "one", clone)
    work = tree.worktree(cache, added)
    lock = Path(must(work, "rev-parse", "--absolute-git-dir"), "index.lock")
    lock.touch()
    assert not git(work, "add", "Makefile").ok
    tree.worktree(cache, added)
    assert git(work, "add", "Makefile").ok


def test_a_damaged_record_is_named(cache: Cache, clone: Path) -> None:
    tree.add_git(cache, "one", clone)
    (cache.trees / "one.json").write_text('{"kind": "cvs"}')
    with pytest.raises(InfraError, match=r"one\.json: unreadable"):
        tree.get_tree(cache, "one")


# A Debian archive of our own on disk, read by the real apt: no network.
VERSIONS = ("7.2.13-1", "7.2.9-1~bpo13+1", "7.2.6-1~bpo13+1")


def _deb(archive: Path, version: str, tarball: Path) -> str:
    # One linux-source package; returns its stanza of the Packages file.
    build = archive / "build" / version
    (build / "DEBIAN").mkdir(parents=True)
    (build / "usr/src").mkdir(parents=True)
    (build / "usr/src/linux-source-7.2.tar.xz").write_bytes(tarball.read_bytes())
    control = f"Package: linux-source-7.2\nVersion: {version}\nArchitecture: all\nMaintainer: Name <name@example.com>\n"
    (build / "DEBIAN/control").write_text(f"{control}Description: kernel source\n")
    deb = archive / f"linux-source-7.2_{version}.deb"
    assert run(["dpkg-deb", "--build", "--root-owner-group", str(build), str(deb)], timeout_s=60).ok
    digest = run(["sha256sum", str(deb)], timeout_s=10).stdout.split()[0]
    return (
        f"{control}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\nDescription: kernel source\n"
    )


@pytest.fixture
def debian(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archive = tmp_path / "archive"
    archive.mkdir()
    tarball = _tarball(tmp_path / "l.tar.xz", {"linux-source-7.2/Makefile": MAKEFILE})
    (archive / "Packages").write_text("\n".join(_deb(archive, version, tarball) for version in VERSIONS))
    places = {"sid": archive, "experimental": tmp_path / "no-such-suite"}
    monkeypatch.setattr(apt, "SUITES", tuple(places))
    monkeypatch.setattr(apt, "_source", lambda suite: f"deb [trusted=yes] file:{places[suite]} ./")
    return archive


def test_versions_are_listed_newest_first_although_a_suite_is_missing(cache: Cache, debian: Path) -> None:
    assert apt.available_debian(cache, "7.2") == VERSIONS
    assert apt.available_debian(cache, "9.9") == ()
    assert apt.available_series(cache) == ("7.2",)


def test_a_debian_tree_is_the_newest_version_of_the_series(cache: Cache, debian: Path) -> None:
    added = tree.add_debian(cache, "deb", "7.2")
    assert (added.describe, added.note, added.verified) == ("7.2.13-1", "", False)
    assert added.source == "linux-source-7.2=7.2.13-1"
    assert must(added.repo, "show", "HEAD:Makefile") + "\n" == MAKEFILE
    assert _stored(cache) == {"deb.git", "deb.json"}


def test_a_version_that_was_asked_for_is_taken(cache: Cache, debian: Path) -> None:
    added = tree.add_debian(cache, "deb", "7.2=7.2.9-1~bpo13+1")
    assert (added.describe, added.note) == ("7.2.9-1~bpo13+1", "")


def test_a_version_that_is_gone_is_replaced_by_the_nearest_and_said_so(cache: Cache, debian: Path) -> None:
    added = tree.add_debian(cache, "deb", "7.2=7.2.8-1")
    assert added.describe == "7.2.9-1~bpo13+1"
    assert added.note == ("the Debian mirror no longer has 7.2.8-1; 7.2.9-1~bpo13+1 is the nearest version that it has")


def test_a_series_that_the_mirror_lacks_is_answered_with_those_it_has(cache: Cache, debian: Path) -> None:
    with pytest.raises(UsageError, match=r"no linux-source-9\.9; it has 7\.2"):
        tree.add_debian(cache, "deb", "9.9")
    assert _stored(cache) == set()


def test_a_package_that_does_not_match_its_hash_is_refused(cache: Cache, debian: Path) -> None:
    apt.available_debian(cache, "7.2")
    with (debian / "linux-source-7.2_7.2.13-1.deb").open("ab") as deb:
        deb.write(b"tampered")
    with pytest.raises(InfraError, match=r"download of linux-source-7\.2 7\.2\.13-1"):
        tree.add_debian(cache, "deb", "7.2")
    assert _stored(cache) == set()


def test_a_package_without_a_source_is_refused(cache: Cache, debian: Path, tmp_path: Path) -> None:
    (debian / "build/7.2.13-1/usr/src/linux-source-7.2.tar.xz").unlink()
    deb = tmp_path / "empty.deb"
    assert run(["dpkg-deb", "--build", str(debian / "build/7.2.13-1"), str(deb)], timeout_s=60).ok
    with pytest.raises(UsageError, match="holds no usr/src/linux-source"):
        apt.source_tarball(deb, tmp_path / "out")


def test_no_package_list_at_all_is_the_machines_fault(cache: Cache, debian: Path) -> None:
    (debian / "Packages").unlink()
    with pytest.raises(InfraError, match="package lists of Debian"):
        apt.available_debian(cache, "7.2")


def test_a_list_that_could_not_be_fetched_matters_only_when_nothing_is_found(
    cache: Cache, debian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_listens = {"sid": f"file:{debian}", "experimental": "http://127.0.0.1:9/debian"}
    monkeypatch.setattr(apt, "_source", lambda suite: f"deb [trusted=yes] {nobody_listens[suite]} ./")
    assert apt.available_debian(cache, "7.2") == VERSIONS
    with pytest.raises(InfraError, match="package lists of Debian: Failed to fetch"):
        apt.available_debian(cache, "9.9")


def test_the_machines_apt_is_not_touched(cache: Cache, debian: Path) -> None:
    assert apt.available_debian(cache, "7.2")
    config = (cache.root / "apt/apt.conf").read_text()
    for key in ("Dir::Etc::sourcelist", "Dir::State", "Dir::Cache"):
        assert f'{key} "{cache.root}' in config
    assert "Post-Invoke" not in config


@pytest.mark.parametrize("request_", ["", "7", "7.2=", "=7.2.9-1", "7.2=-x", "7.2 --yes", "7.2=7 x", "v7.2", "7.2/sid"])
def test_a_malformed_request_is_refused(cache: Cache, request_: str) -> None:
    with pytest.raises(UsageError, match="is not a Debian kernel"):
        tree.add_debian(cache, "deb", request_)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("7.2.9-1~bpo13+1", "7.2.9-1~bpo13+1"),
        ("7.2.8-1", "7.2.9-1~bpo13+1"),
        ("7.2.7-3", "7.2.6-1~bpo13+1"),
        ("7.2~rc4-1~exp1", "7.2.6-1~bpo13+1"),
        ("7.3.1-1", "7.2.13-1"),
        ("1:8.0-1", "7.2.13-1"),
        ("6.19-1", "7.2.6-1~bpo13+1"),
        ("7.2.11-1", "7.2.13-1"),
    ],
)
def test_nearest(wanted: str, expected: str) -> None:
    assert apt.nearest(VERSIONS, wanted) == expected


@given(
    st.lists(
        st.from_regex(r"[0-9]\.[0-9]{1,2}(\.[0-9]{1,3})?(~rc[0-9])?-[1-9]", fullmatch=True), min_size=1, max_size=5
    )
)
def test_a_version_that_is_there_is_its_own_nearest(versions: list[str]) -> None:
    for version in versions:
        assert apt.nearest(versions, version) == version
