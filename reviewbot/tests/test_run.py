import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reviewbot import session
from reviewbot.errors import InfraError
from reviewbot.pipes import TAIL_BYTES, Tail
from reviewbot.run import child_environment, find, run, shown


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return stat[0] not in "ZX"


def _pid(path: Path) -> int:
    deadline = time.monotonic() + 5
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path.name} was not written"
        time.sleep(0.01)
    return int(path.read_text())


def test_streams_exit_status_and_command() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=10)
    assert (done.exit_status, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", "")
    assert not done.ok
    assert done.output == "out\nerr\n"
    assert shlex.split(done.command) == ["sh", "-c", "echo out; echo err >&2; exit 3"]


def test_a_signal_is_a_negative_status() -> None:
    assert run(["sh", "-c", "kill -9 $$"], timeout_s=10).exit_status == -signal.SIGKILL


def test_a_missing_program_is_the_machines_fault() -> None:
    with pytest.raises(InfraError, match="no-such-program-here: not installed"):
        run(["no-such-program-here"], timeout_s=10)


def test_a_program_that_cannot_start_is_the_machines_fault(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF, but not really")
    broken.chmod(0o755)
    with pytest.raises(InfraError, match="cannot start"):
        run([str(broken)], timeout_s=10)


def test_words_reach_the_program_as_they_are() -> None:
    hostile = "$(touch x) `id` ; rm -rf / \n'\""
    assert run(["printf", "%s", hostile], timeout_s=10).stdout == hostile


def test_stdin_is_empty_by_default() -> None:
    assert run(["cat"], timeout_s=10).stdout == ""


def test_stdin_from_a_file_and_from_chunks(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"from a file")
    assert run(["cat"], timeout_s=10, stdin=file).stdout == "from a file"
    chunks = [b"x" * 300_000, b"y" * 700_000, b""]
    assert run(["wc", "-c"], timeout_s=10, stdin=chunks).stdout.split() == ["1000000"]


def test_what_the_stdin_iterable_raises_is_raised_and_the_program_sees_no_end(tmp_path: Path) -> None:
    whole = tmp_path / "whole"

    def chunks() -> Iterator[bytes]:
        yield b"half"
        time.sleep(0.2)
        msg = "cut off"
        raise EOFError(msg)

    with pytest.raises(EOFError, match="cut off"):
        run(["sh", "-c", f"cat >/dev/null && touch {whole}"], timeout_s=10, stdin=chunks())
    assert not whole.exists()


def test_a_program_that_reads_no_stdin_ends_the_feeding() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    before = threading.active_count()
    assert run(["true"], timeout_s=10, stdin=endless()).ok
    assert threading.active_count() == before


def test_total_timeout_is_data() -> None:
    done = run(["sh", "-c", "while :; do echo tick; sleep 0.05; done"], timeout_s=0.4)
    assert done.timed_out == "total"
    assert not done.ok
    assert "tick" in done.stdout
    assert 0.4 <= done.duration_s < 5


def test_idle_timeout_counts_from_the_last_output() -> None:
    started = time.monotonic()
    done = run(["sh", "-c", "sleep 0.3; echo a; sleep 0.3; echo b; sleep 60"], timeout_s=50, idle_timeout_s=1)
    assert done.timed_out == "idle"
    assert done.stdout == "a\nb\n"
    assert time.monotonic() - started >= 1.6


def test_children_end_with_the_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert run(["sh", "-c", f"sleep 300 & echo $! >{pid}"], timeout_s=10).ok
    assert not _alive(_pid(pid))


def test_a_child_that_left_the_session_ends_too(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert run(["sh", "-c", f"setsid sh -c 'echo $$ >{pid}; exec sleep 300' & sleep 0.3"], timeout_s=10).ok
    assert not _alive(_pid(pid))


def test_a_child_with_a_cleared_environment_ends_while_its_parent_lives(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    inner = f"env -i {find('setsid')} sh -c 'echo $$ >{pid}; exec sleep 300' & wait"
    assert run(["sh", "-c", inner], timeout_s=0.5).timed_out == "total"
    assert not _alive(_pid(pid))


def test_a_program_that_ignores_term_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "GRACE_S", 0.3)
    done = run(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], timeout_s=0.3)
    assert done.timed_out == "total"
    assert done.exit_status == -signal.SIGKILL


def test_term_leaves_time_to_clean_up(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    script = f"trap 'sleep 0.3; touch {cleaned}; exit 0' TERM; while :; do sleep 0.05; done"
    assert run(["sh", "-c", script], timeout_s=0.3).timed_out == "total"
    assert cleaned.exists()


def test_an_exception_ends_the_session(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def stop(data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", f"echo $$ >{pid}; echo go; sleep 300"], timeout_s=60, on_output=stop)
    assert not _alive(_pid(pid))


@pytest.fixture
def interruptible() -> Iterator[None]:
    # A shell starts its background jobs with SIGINT ignored, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# Python itself leaves a file of /proc unclosed when the interrupt comes between its open and its with.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_interrupt_shortens_the_grace_and_is_raised(tmp_path: Path, interruptible: None) -> None:
    pid = tmp_path / "pid"
    script = f"trap '' TERM; echo $$ >{pid}; while :; do sleep 0.05; done"
    timer = threading.Timer(1.0, signal.raise_signal, args=(signal.SIGINT,))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", script], timeout_s=0.3)
    assert time.monotonic() - started < session.GRACE_S
    assert not _alive(_pid(pid))


def test_a_daemon_that_holds_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    started = time.monotonic()
    assert run(["sh", "-c", "setsid sleep 300 & echo done"], timeout_s=60).stdout == "done\n"
    # Read slowly, so that there is always more to read.
    done = run(["sh", "-c", "setsid yes & exit 4"], timeout_s=8, on_output=lambda _: time.sleep(0.1))
    assert (done.exit_status, done.timed_out) == (4, "")
    assert time.monotonic() - started < 20


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-Wno-everything")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("HOME", "/somewhere")
    lines = run(["env"], timeout_s=10, env={"EXTRA": "a b"}).stdout.splitlines()
    names = {line.split("=")[0] for line in lines}
    assert "CFLAGS" not in names
    assert {"EXTRA=a b", "LC_ALL=C.UTF-8", "HOME=/somewhere"} <= set(lines)
    assert names <= {*child_environment(), "EXTRA", session.MARK, "_", "PWD", "SHLVL"}


def test_the_log_starts_with_the_command_and_is_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    argv = ["sh", "-c", "echo 'one two'; echo three >&2"]
    run(argv, timeout_s=10, log=log, cwd=tmp_path, env={"A": "x y"})
    run(["echo", "again"], timeout_s=10, log=log)
    first, *rest = log.read_text().splitlines()
    assert first == f"$ {shown(argv, cwd=tmp_path, env={'A': 'x y'})}"
    assert set(rest) == {"one two", "three", "$ echo again", "again"}
    assert rest[-2:] == ["$ echo again", "again"]


def test_the_shown_command_can_be_pasted(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    line = shown(["sh", "-c", 'echo "$X" "$1"; pwd', "sh", "it's; $HOME"], cwd=place, env={"X": "'q'"})
    assert run(["sh", "-c", line], timeout_s=10).stdout == f"'q' it's; $HOME\n{place}\n"


def test_the_tail_is_bounded_and_the_log_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = run(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo END"], timeout_s=20, log=log)
    assert len(done.stdout) == TAIL_BYTES
    assert done.stdout.endswith("xEND\n")
    assert log.stat().st_size == len(f"$ {done.command}\n") + 3_000_004


def test_the_tail_takes_bounded_memory() -> None:
    tail = Tail(None)
    for _ in range(100):
        tail.add(b"x" * 65536)
    assert len(tail._parts) <= 2 * TAIL_BYTES


def test_output_that_is_not_text_is_replaced() -> None:
    assert run(["printf", r"a\377b"], timeout_s=10).stdout == "a\ufffdb"


def test_a_full_disk_is_the_machines_fault(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(InfraError, match="No space left on device"):
        run(["echo", "x"], timeout_s=10, log=Path("/dev/full"))


def test_a_disk_that_fills_up_ends_the_program(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    pid = tmp_path / "pid"
    argv = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)]
    if os.geteuid() != 0 or not run(argv, timeout_s=10).ok:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        with pytest.raises(InfraError, match="No space left on device"):
            run(["sh", "-c", f"echo $$ >{pid}; exec yes"], timeout_s=30, log=mount / "log")
        assert not _alive(_pid(pid))
    finally:
        assert run(["umount", str(mount)], timeout_s=10).ok


def test_a_log_that_cannot_be_opened_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="cannot keep the output"):
        run(["echo"], timeout_s=10, log=tmp_path / "missing" / "log")


def test_on_output_sees_the_chunks() -> None:
    seen = bytearray()
    run([sys.executable, "-c", "print('a'); print('b', flush=True)"], timeout_s=20, on_output=seen.extend)
    assert bytes(seen) == b"a\nb\n"


def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run(["true"], timeout_s=10, stdin=[b""], log=tmp_path / "log")
    before = count()
    for _ in range(5):
        run(["true"], timeout_s=10, stdin=[b"x"], log=tmp_path / "log")
        run(["sleep", "60"], timeout_s=0.01, stdin=[b"x"])
        with pytest.raises(InfraError):
            run(["no-such-program-here"], timeout_s=10, log=tmp_path / "log")
    assert count() == before


def test_find_looks_in_sbin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("no-such-program-here") is None
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "mine").chmod(0o755)
    assert find("mine") == str(tmp_path / "mine")
