"""A miniature kernel with Kconfig symbols, and a machine that "runs" its image by what stands in it.

The image is made of real objects by make and gcc. Strings in it say what the kernel does: ``mark:fails`` makes the
test fail, ``mark:slow`` ends its program by the time limit, ``mark:splat`` is a complaint, ``mark:leak`` a leak,
``mark:panic`` a panic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.model import AppliedPatch, ApplyResult, ApplyState, Blame
from reviewbot.parse.kconfig import Wanted
from reviewbot.tests.minitree import FILES, MAKEFILE, commit, make_repo
from reviewbot.tools.cache import Cache
from reviewbot.tools.extra import Extra
from reviewbot.tools.git import must
from reviewbot.tools.guest import GuestTest
from reviewbot.tools.kernel import Attempt, Builder, Kernels
from reviewbot.tools.make import Make, compiler
from reviewbot.tools.vng import Boot, Ending, Machine

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURED = MAKEFILE.replace(
    "$(CC) -Wall -Iinclude", r"$(CC) -Wall -Iinclude $(shell sed -n 's/^\(CONFIG_[A-Z_]*\)=y$$/-D\1/p' $(O)/.config)"
).replace("%.c include/mini.h\n", "%.c include/mini.h $(O)/.config\n")
KCONFIG = """\
config MINI
	bool "mini"
	select HELD
config HELD
	bool "held"
config EXTRA
	bool "extra"
config MORE
	bool "more"
config OTHER
	bool "other"
config FOURTH
	bool "fourth"
config DROPPED
	bool "gone"
	depends on ABSENT
"""
TREE = {**FILES, "Makefile": CONFIGURED, "Kconfig": KCONFIG}
SYMBOLS = ("MINI", "HELD", "EXTRA", "MORE", "OTHER", "FOURTH")
WANTED = tuple(Wanted(symbol=s, value="y", reason="a test") for s in SYMBOLS)
SPLAT = "[    1.000000] WARNING: lib/one.c:3 at one+0x1/0x2\n[    1.000001] ---[ end trace 0000000000000000 ]---\n"
LEAK = "unreferenced object 0xffff888001234567 (size 32):\n  backtrace:\n    planted_leak+0x1/0x2\n"


class Runner(Machine):
    """Runs a test by the marks in the image."""

    def boot(self, image: Path, share: Path, log: Path, **more: object) -> Boot:
        marks = image.read_bytes()
        tests = more.get("tests", ())
        assert isinstance(tests, tuple)
        (share / "out").mkdir(parents=True)
        for test in tests:
            assert isinstance(test, GuestTest)
            word = "not ok" if b"mark:fails" in marks else "ok"
            if b"mark:slow" not in marks:
                (share / "out" / f"{test.name}.ktap").write_text(f"KTAP version 1\n1..1\n{word} 1 case\n")
            status = 137 if b"mark:slow" in marks else int(word != "ok")
            (share / "out" / f"{test.name}.rc").write_text(f"{status}\n")
        if "kmemleak" in str(more.get("after")) and b"mark:blind" not in marks:
            (share / "out" / "kmemleak").write_text(LEAK if b"mark:leak" in marks else "")
        console = SPLAT if b"mark:splat" in marks else "[    0.000000] Linux version 1.0.0-mini\n"
        log.write_text(console)
        ending = Ending.PANIC if b"mark:panic" in marks else Ending.FINISHED
        ending = Ending.NO_START if b"mark:nothing" in marks else ending
        return Boot(ending=ending, console=console, share=share, command="boot", duration_s=0.1, accelerator="none")


class Mini:
    """The miniature tree with a series on it; kernels of any configuration."""

    def __init__(
        self,
        path: Path,
        files: dict[str, str],
        *,
        tree: dict[str, str] | None = None,
        prerequisite: dict[str, str] | None = None,
    ) -> None:
        self.path, self.cache = path, Cache(path / "cache")
        self.repo = make_repo(path / "repo", {**TREE, **(tree or {})})
        base = before = must(self.repo, "rev-parse", "HEAD")
        if prerequisite:
            before = commit(self.repo, prerequisite, "lib: prepare it")
        tip = commit(self.repo, files, "lib: change it")
        self.source = path / "source"
        must(self.repo, "worktree", "add", "--quiet", "--detach", str(self.source), base)
        self.run_dir = path / "run"
        self.run_dir.mkdir()
        self.programs = self.cache.dir("programs")
        (self.programs / "abi").write_text("#!/bin/sh\n")
        (self.programs / "abi").chmod(0o755)
        self.applied = ApplyResult(
            state=ApplyState.APPLIED,
            summary="1 patch",
            base_commit=base,
            prerequisite_commit=before,
            tip_commit=tip,
            patches=(AppliedPatch(subject="lib: change it", commit=tip, role=Blame.SERIES, files=tuple(files)),),
        )
        self.builder = self.new_builder("own")
        self.notes: list[str] = []

    def new_builder(self, name: str) -> Builder:
        make = Make(
            source=self.source,
            build=self.cache.dir("builds", name),
            compiler=compiler(),
            ccache_dir=self.cache.dir("ccache"),
            log=self.run_dir / f"{name}.log",
        )
        return Builder(make=make, store=self.cache.dir("store", name), on_progress=lambda _: None)

    def kernels(self) -> Kernels:
        """Build base and patched in the review's own configuration."""
        built = []
        for commit_id in (self.applied.base_commit, self.applied.tip_commit):
            self.builder.checkout(commit_id)
            self.builder.configure(WANTED)
            attempt: Attempt = self.builder.build(commit_id)
            assert attempt.kernel, attempt.output
            built.append(attempt.kernel)
        return Kernels(base=built[0], patched=built[1])

    def one_more(self, name: str, label: str, wanted: tuple[Wanted, ...], stage: str) -> Extra:
        """Return one more kernel with other symbols."""
        (self.run_dir / stage).mkdir(exist_ok=True)
        return Extra(
            stage=stage,
            label=label,
            machine=Runner(cache=self.cache, root=self.path, timeout_s=20),
            builder=self.new_builder(name),
            wanted=wanted,
            programs=self.programs,
            job=self.cache.dir("job"),
            run_dir=self.run_dir,
            note=self.notes.append,
        )
