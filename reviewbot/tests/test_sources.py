"""Where mail comes from: each source gives the same series as the plain file."""

from __future__ import annotations

import bz2
import gzip
import http.server
import lzma
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reviewbot.errors import UsageError
from reviewbot.model import Series, Status
from reviewbot.parse.mail import MAX_MESSAGE_BYTES, split_lines, split_messages
from reviewbot.parse.patch import read_mail
from reviewbot.parse.stream import assemblies
from reviewbot.parse.strip import with_one_prefix
from reviewbot.stages.intake import archive, intake
from reviewbot.tests.mailtree import make_repo
from reviewbot.tools import inboxindex, lore, sources
from reviewbot.tools.git import git_bytes, must
from reviewbot.tools.inbox import mails_of
from reviewbot.tools.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parent / "data" / "mail"
THREAD = DATA / "b01-thread-v1-v2-partial-v3.mbox"


def read(source: Path | str, **more: object) -> Series:
    got = intake(str(source), **more).value  # type: ignore[arg-type]
    assert got is not None
    return got


def same(one: Series, two: Series) -> bool:
    return [(p.subject, p.diff, p.message) for p in one.patches] == [
        (p.subject, p.diff, p.message) for p in two.patches
    ]


@pytest.fixture
def plain() -> Series:
    return read(THREAD)


@pytest.mark.parametrize(("name", "pack"), [("x.gz", gzip.compress), ("x.bz2", bz2.compress), ("x.xz", lzma.compress)])
def test_compressed_files(tmp_path: Path, plain: Series, name: str, pack: object) -> None:
    file = tmp_path / name
    file.write_bytes(pack(THREAD.read_bytes()))  # type: ignore[operator]
    assert same(read(file), plain)


def test_a_broken_archive_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(THREAD.read_bytes())[:-40])
    with pytest.raises(UsageError, match=r"x\.gz: broken compressed file"):
        intake(str(file))


def test_stdin_and_utf16(plain: Series) -> None:
    assert same(read("-", stdin=THREAD.read_bytes()), plain)
    assert same(read("-", stdin=THREAD.read_text("utf-8").encode("utf-16")), plain)
    with pytest.raises(UsageError, match="stdin: empty"):
        intake("-", stdin=b"")


def test_a_maildir(tmp_path: Path, plain: Series) -> None:
    for part in ("cur", "new", "tmp"):
        (tmp_path / part).mkdir()
    for number, raw in enumerate(split_messages(split_lines(THREAD.read_bytes()))):
        (tmp_path / ("cur" if number % 2 else "new") / f"{number}:2,S").write_bytes(raw.data)
    assert same(read(tmp_path), plain)


def test_a_quilt_series_is_read_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("# order\nsecond.patch -p1\n\nfirst.patch # why\n")
    (tmp_path / "first.patch").write_bytes((DATA / "a01-plain.patch").read_bytes())
    (tmp_path / "second.patch").write_bytes((DATA / "c05-plusplus-lines.patch").read_bytes())
    assert [p.subject for p in read(tmp_path).patches] == [
        "lib: bsearch: add an odd line",
        "math: gcd: reword a comment",
    ]
    (tmp_path / "series").write_text("../../etc/passwd\n")
    with pytest.raises(UsageError, match="outside the directory"):
        intake(str(tmp_path))


def test_a_directory_without_patches_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no patch files .*, no maildir and no quilt series"):
        intake(str(tmp_path))


def test_a_range_of_commits(tmp_path: Path) -> None:
    repo = tmp_path / "r.git"
    make_repo(
        repo, {"lib/a.c": b"one\n"}, [{"lib/a.c": b"two\n"}, {"lib/a.c": b"three\n", "lib/b.bin": bytes(range(256))}]
    )
    got = read("HEAD~2..HEAD", repo=repo)
    assert [p.files for p in got.patches] == [("lib/a.c",), ("lib/a.c", "lib/b.bin")]
    assert got.missing == ()
    with pytest.raises(UsageError, match=r"nosuch\.\.HEAD: nosuch: no such revision"):
        intake("nosuch..HEAD", repo=repo)
    with pytest.raises(UsageError, match="no commits in this range"):
        intake("HEAD..HEAD~1", repo=repo)
    with pytest.raises(UsageError, match="no such"):
        intake("--output=/tmp/reviewbot-canary/x..HEAD", repo=repo)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    return make_inbox(tmp_path / "inbox" / "git" / "0.git", THREAD.read_bytes()).parent.parent


def make_inbox(repo: Path, mbox: bytes) -> Path:
    repo.parent.mkdir(parents=True, exist_ok=True)
    if not repo.exists():
        must(None, "init", "-q", "--bare", "--initial-branch=master", str(repo))
    stream = b"feature done\n"
    for number, raw in enumerate(split_messages(split_lines(mbox))):
        come = b"from refs/heads/master^0\n" if number == 0 and (repo / "refs/heads/master").exists() else b""
        stream += b"commit refs/heads/master\ncommitter A <a@example.com> 1700000000 +0000\ndata 1\nx\n" + come
        stream += b"M 100644 inline m\ndata %d\n%s\n" % (len(raw.data), raw.data)
    git_bytes(repo, "fast-import", "--quiet", "--done", stdin=[stream + b"done\n"])
    return repo


def test_a_message_id_in_an_inbox_gives_its_thread(inbox: Path, tmp_path: Path, plain: Series) -> None:
    index = tmp_path / "index.sqlite"
    for name in (
        "b01-v3-2@example.com",
        "<b01-r1@example.net>",
        "https://lore.kernel.org/linux-kernel/b01-v1-0@example.com/",
    ):
        assert same(read(name, inbox=inbox, index=index), plain)
    with pytest.raises(UsageError, match=r"nosuch@example\.com: not in the inbox"):
        intake("nosuch@example.com", inbox=inbox, index=index)
    assert [mail for _, mail in mails_of(inbox / "git" / "0.git", len)] == [
        len(raw.data) for raw in split_messages(split_lines(THREAD.read_bytes()))
    ]


def test_an_archive_is_a_stream_of_series(inbox: Path) -> None:
    parts = list(archive(inbox))
    assert [s.title for part in parts for s in part.series] == ["math: comments"]
    reasons = sorted(s.reason for part in parts for s in part.skipped)
    assert reasons == ["reply", "reply with a diff of its own"]


def test_the_window_of_a_stream_keeps_threads_whole() -> None:
    one = [read_mail(raw.data) for raw in split_messages(split_lines(THREAD.read_bytes()))]
    noise = b"From: A <a@example.com>\nSubject: chat {n}\nMessage-ID: <{n}@chat>\n\nhi\n"
    chat = [read_mail(noise.replace(b"{n}", str(n).encode())) for n in range(200)]
    mixed = [*chat[:50], *one[:4], *chat[50:60], *one[4:], *chat[60:]]
    with Shelf() as shelf:
        parts = list(assemblies(mixed, shelf, window=20))
    assert len(parts) > 3
    assert [(s.title, s.revision, len(s.patches)) for part in parts for s in part.series] == [("math: comments", 3, 2)]
    assert sum(len(part.skipped) for part in parts) == 202


def test_the_index_learns_new_mail(inbox: Path, tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    with pytest.raises(UsageError):
        intake("a05-charset-y.mbox@example.com", inbox=inbox, index=index)
    make_inbox(inbox / "git" / "0.git", (DATA / "a05-charset-y.mbox").read_bytes())
    assert read("a05-charset-y.mbox@example.com", inbox=inbox, index=index).title == "math: gcd: reword a comment"
    with inboxindex.opened(inbox, index) as table:
        assert table._db.execute("SELECT COUNT(*) FROM mail").fetchone() == (9,)


def test_what_is_no_inbox_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no public-inbox"):
        intake("x@example.com", inbox=tmp_path)


@pytest.mark.parametrize(
    ("url", "mbox"),
    [
        ("https://patchwork.example.org/project/x/list/?series=12", "https://patchwork.example.org/series/12/mbox/"),
        ("https://patchwork.example.org/series/12/", "https://patchwork.example.org/series/12/mbox/"),
        ("https://patchwork.example.org/api/1.3/series/12/", "https://patchwork.example.org/series/12/mbox/"),
        ("https://patchwork.example.org/series/12/mbox/", "https://patchwork.example.org/series/12/mbox/"),
        ("https://lore.kernel.org/all/x@example.com/", ""),
    ],
)
def test_patchwork_addresses(url: str, mbox: str) -> None:
    assert lore.patchwork_mbox(url) == mbox


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/series/12/mbox/"
            self.send_response(200 if found else 404)
            self.end_headers()
            if found:
                self.wfile.write(THREAD.read_bytes())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{one.server_port}"
        one.shutdown()
        thread.join()


def test_a_patchwork_series(server: str, plain: Series) -> None:
    assert same(read(f"{server}/project/x/list/?series=12"), plain)
    with pytest.raises(UsageError, match=r"404.*save the series as an mbox"):
        intake(f"{server}/series/13/mbox/")


def test_without_b4_a_message_id_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(lore, "find", lambda name: None)
    with pytest.raises(UsageError, match=r"needs the program b4 \(not installed\)"):
        intake("x@example.com")


def test_a_message_id_is_never_an_option() -> None:
    with pytest.raises(UsageError):
        lore.message_id("--config=x@y")


def test_several_series_are_not_mixed(tmp_path: Path) -> None:
    other = (DATA / "c21-quilt-style.mbox").read_bytes().replace(b"Alex", b"Bea").replace(b"alex@", b"bea@")
    file = tmp_path / "two.mbox"
    file.write_bytes(THREAD.read_bytes() + other)
    with pytest.raises(UsageError, match=r"2 different series"):
        intake(str(file))


def test_a_mail_above_the_limit_is_cut_and_the_rest_goes_on(tmp_path: Path) -> None:
    big = b"From a@example.com Thu Jan  1 00:00:00 1970\nFrom: A <a@example.com>\nSubject: big\nMessage-ID: <big@x>\n\n"
    file = tmp_path / "big.mbox"
    file.write_bytes(
        big
        + b"x" * 70
        + b"\n"
        + (b"y" * 1023 + b"\n") * (MAX_MESSAGE_BYTES // 1024)
        + b"\n"
        + (DATA / "a05-charset-y.mbox").read_bytes()
    )
    raws = list(split_messages(split_lines(file.read_bytes())))
    assert [raw.oversized for raw in raws] == [True, False]
    assert read(file).title == "math: gcd: reword a comment"


def test_too_many_mails_name_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_MAILS", 3)
    with pytest.raises(UsageError, match="limit MAX_MAILS"):
        intake(str(THREAD))


def test_mail_that_is_no_series_is_skipped_with_its_reason() -> None:
    text = b"From: A <a@example.com>\nSubject: [GIT PULL] x fixes for 7.3-rc7\nMessage-ID: <p@x>\n\nplease pull\n"
    got = intake("-", stdin=text)
    assert (got.value, got.result.status) == (None, Status.SKIP)
    assert "pull request" in got.result.summary


@pytest.mark.parametrize("level", [0, 2])
def test_a_quilt_series_says_how_many_components_go_off_its_names(tmp_path: Path, level: int) -> None:
    text = (DATA / "c21-quilt-style.mbox").read_text("utf-8")
    plain = read(DATA / "c21-quilt-style.mbox")
    names = {0: ("lib/math/gcd.c", "lib/math/gcd.c"), 2: ("x/linux.orig/lib/math/gcd.c", "x/linux/lib/math/gcd.c")}[
        level
    ]
    lines = [
        f"--- {names[0]}"
        if line.startswith("--- linux")
        else f"+++ {names[1]}"
        if line.startswith("+++ linux")
        else line
        for line in text.split("\n")
    ]
    assert lines != text.split("\n")
    (tmp_path / "one.patch").write_text("\n".join(lines))
    (tmp_path / "series").write_text(f"one.patch -p{level}\n")
    got = read(tmp_path)
    assert got.patches[0].files == plain.patches[0].files == ("lib/math/gcd.c",)
    assert f"the quilt series says -p{level}: read as -p1" in got.notes
    assert got.patches[0].diff.startswith("--- a/lib/math/gcd.c\n+++ b/lib/math/gcd.c\n@@ ")
    assert got.patches[0].diff.split("\n")[2:] == plain.patches[0].diff.split("\n")[2:]


def test_a_git_diff_for_p2_loses_one_component_in_every_header() -> None:
    hunk = "@@ -1 +1 @@\n--- x/y/z\n+++ x/y/z\n"
    moved = "diff --git a/k/lib/a.c b/k/lib/b.c\nrename from k/lib/a.c\nrename to k/lib/b.c\n"
    diff = f"{moved}--- a/k/lib/a.c\n+++ b/k/lib/b.c\n{hunk}"
    new = "diff --git a/k/n b/k/n\nnew file mode 100644\n--- /dev/null\n+++ b/k/n\n@@ -0,0 +1 @@\n+x\n"
    assert with_one_prefix(diff + new, 2) == (diff + new).replace("k/", "")
    assert with_one_prefix(diff, 1) == diff


@pytest.mark.parametrize("source", ["", " "])
def test_an_empty_word_is_no_source(source: str) -> None:
    with pytest.raises(UsageError, match="an empty word is no source"):
        intake(source)


def test_a_file_and_a_maildir_are_archives_too(tmp_path: Path, inbox: Path) -> None:
    wanted = list(archive(inbox))
    packed = tmp_path / "all.mbox.gz"
    packed.write_bytes(gzip.compress(THREAD.read_bytes()))
    maildir = tmp_path / "maildir"
    (maildir / "cur").mkdir(parents=True)
    for number, raw in enumerate(split_messages(split_lines(THREAD.read_bytes()))):
        (maildir / "cur" / f"{number}:2,S").write_bytes(raw.data)
    assert list(archive(packed)) == list(archive(maildir)) == list(archive(THREAD)) == wanted
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"all\.mbox\.gz: broken compressed file"):
        list(archive(packed))


def test_a_mail_above_the_limit_is_told_and_the_rest_of_the_archive_goes_on(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = sorted(len(raw.data) for raw in split_messages(split_lines(THREAD.read_bytes())))
    monkeypatch.setattr("reviewbot.tools.inbox.MAX_MAIL_BYTES", sizes[-2])
    skipped = [s for part in archive(inbox) for s in part.skipped]
    assert [s.reason for s in skipped].count("larger than 32 MiB (limit MAX_MAIL_BYTES)") == 1
    assert sum(len(part.series) for part in archive(inbox)) == 1
    with inboxindex.opened(inbox, tmp_path / "index.sqlite") as table:
        assert table._db.execute("SELECT COUNT(*) FROM mail").fetchone() == (7,)


def test_patches_attached_to_one_mail_are_patches_of_their_own_in_an_archive(tmp_path: Path) -> None:
    part = (DATA / "a01-plain.patch").read_bytes().partition(b"\n")[2]
    other = (DATA / "c05-plusplus-lines.patch").read_bytes().partition(b"\n")[2]
    head = b"From: A <a@example.com>\nSubject: [PATCH] both\nMessage-ID: <o@x>\nMIME-Version: 1.0\n"
    body = head + b"Content-Type: multipart/mixed; boundary=cut\n\n"
    for number, one in enumerate((part, other), 1):
        one = one.replace(b"[PATCH]", b"[PATCH %d/2]" % number)  # noqa: PLW2901
        body += b"--cut\nContent-Type: text/x-patch; name=%d.patch\n\n" % number + one + b"\n"
    envelope = b"From a@example.com Thu Jan  1 00:00:00 1970\n"
    inbox = make_inbox(tmp_path / "git" / "0.git", envelope + body + b"--cut--\n").parent.parent
    found = [series for assembly in archive(inbox) for series in assembly.series]
    looked_up = read("o@x", inbox=inbox, index=tmp_path / "index.sqlite")
    for series in (*found, looked_up):
        assert ([p.number for p in series.patches], series.missing, series.msgid) == ([1, 2], (), "o@x")
    assert len(found) == 1
