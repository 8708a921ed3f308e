"""Built kernels: a persistent build directory, and what is kept of each build.

A build directory belongs to (tree, fragments, compiler) and is used by one process at a time; going from one commit to
the next compiles only what differs. What a boot and a comparison need is copied to artefacts/, by (commit, fragments,
compiler), so that a base is built once for all the series that are tested on it.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reviewbot.parse.diagnostics import BuildLog, Diagnostic, parse_build
from reviewbot.parse.kconfig import missing, parse_config
from reviewbot.parse.kconfig_tree import read_tree
from reviewbot.run import shown
from reviewbot.tools.git import git, must
from reviewbot.tools.profiles import Profile, StandIn, stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from reviewbot.parse.kconfig import Missing, Wanted
    from reviewbot.parse.kconfig_tree import KconfigTree
    from reviewbot.run import Completed
    from reviewbot.tools.make import Make

_OBJECT = re.compile(r"^  (?:CC|AS|LD|HOSTCC|HOSTLD)(?: \[M\])? +(\S+)", re.M)
_COMPILED = re.compile(r"^  (?:CC|AS)(?: \[M\])? +(\S+\.o)$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One built kernel: its image, exported headers and diagnostics. objects is how many were compiled this time."""

    commit: str
    image: Path
    headers: Path
    config: Path
    release: str
    diagnostics: tuple[Diagnostic, ...]
    objects: int
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The two kernels of a review; the same one twice when the tree has the series already."""

    base: Kernel
    patched: Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A build that ran: the kernel when it succeeded, and what make said. done is None when nothing had to run.

    diagnostics are those of the whole kernel; of one that failed, those that were said on the way to the failure.
    problem says in one line what failed on the machine (disk full, compiler killed), and is empty otherwise.
    """

    kernel: Kernel | None
    done: Completed | None
    diagnostics: tuple[Diagnostic, ...]
    output: str
    duration_s: float
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A configuration that was made: the .config, its text (empty when make failed), and the symbols that it lost.

    unknown are (symbol, what was done) of symbols that the tree does not know.
    """

    done: Completed
    path: Path
    text: str
    lost: tuple[Missing, ...]
    unknown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Builds commits of one tree with one configuration; the caller holds the locks of source and build directory.

    profile is the build profile that make was made with; its symbols are in every configuration.
    """

    make: Make
    store: Path
    on_progress: Callable[[str], None]
    profile: Profile = field(default_factory=Profile)

    def cached(self, commit: str) -> Kernel | None:
        """Return what an earlier build kept of the commit, or None."""
        place = self.store / commit
        try:
            facts = json.loads((place / "kernel.json").read_text())
        except (OSError, ValueError):
            return None
        return _kernel(place, commit, facts, objects=0, cached=True)

    def recipe(self, commit: str) -> str:
        """Return what builds the commit again, as a line that can be pasted; the .config is there already."""
        checkout = shown(["git", "-C", str(self.make.source), "checkout", "--quiet", "--detach", commit])
        return f"{checkout} && {self.make.command('bzImage', self.profile.headers)}"

    def build(self, commit: str) -> Attempt:
        """Check the commit out, compile what differs from the last build, and keep the result."""
        if kernel := self.cached(commit):
            return Attempt(kernel=kernel, done=None, diagnostics=kernel.diagnostics, output="", duration_s=0.0)
        started = time.monotonic()
        self.checkout(commit)
        counter = _Counter(self.on_progress)
        before = self.make.log.stat().st_size if self.make.log.exists() else 0
        self.make("olddefconfig", timeout_s=900)
        try:
            done = self.make("bzImage", self.profile.headers, on_output=counter.feed)
        except BaseException:
            # What was compiled is not compiled again: what was said of it is known from now on.
            self._remember(*self._said(before, failed=True))
            raise
        log, output = self._said(before, failed=not done.ok)
        known = self._remember(log, output)
        # A build that failed did not come to every object: what was known of the others may be about another commit.
        diagnostics = known if done.ok else log.diagnostics
        kernel = self._keep(commit, diagnostics, counter.count) if done.ok else None
        spent = time.monotonic() - started
        return Attempt(
            kernel=kernel, done=done, diagnostics=diagnostics, output=output, duration_s=spent, problem=log.infra
        )

    def _said(self, start: int, *, failed: bool) -> tuple[BuildLog, str]:
        # What make wrote to the log since it had so many bytes.
        with self.make.log.open("rb") as file:
            file.seek(start)
            output = file.read().decode("utf-8", "replace")
        return parse_build(output, failed=failed, trees=(str(self.make.source), str(self.make.build))), output

    def configure(self, wanted: Sequence[Wanted]) -> Configured:
        """Write the .config that the wanted symbols give over allnoconfig, and read them back.

        A symbol that the tree does not know gives way to its stand-in (see tools/profiles.py). A failing make is data.
        """
        wanted = (*wanted, *self.profile.wanted)
        result = self._configure(wanted)
        known = stand_ins()
        unknown = [m.wanted for m in result.lost if m.wanted.symbol in known and not self._defines(m.wanted.symbol)]
        if not unknown:
            return result
        asked = [w for w in wanted if w not in unknown]
        asked += [replace(w, symbol=name) for w in unknown if (name := known[w.symbol].instead)]
        notes = tuple(
            (f"CONFIG_{w.symbol}", f"not in this tree, {_in_place(known[w.symbol])}: {known[w.symbol].reason}")
            for w in unknown
        )
        return replace(self._configure(asked), unknown=notes)

    def _configure(self, wanted: Sequence[Wanted]) -> Configured:
        merged = self.make.build / "reviewbot.config"
        merged.write_text("".join(f"CONFIG_{w.symbol}={w.value}\n" for w in wanted))
        done = self.make(f"KCONFIG_ALLCONFIG={merged}", "allnoconfig", timeout_s=900)
        path = self.make.build / ".config"
        text = path.read_text() if done.ok else ""
        return Configured(done=done, path=path, text=text, lost=missing(wanted, parse_config(text)) if done.ok else ())

    def kconfig(self) -> KconfigTree:
        """Return the Kconfig symbols of the commit that is checked out."""
        return read_tree(self._kconfig_file)

    def _kconfig_file(self, path: str) -> str | None:
        # Kconfig names its files itself; nothing outside of the tree is read.
        file = (self.make.source / path).resolve()
        if not file.is_relative_to(self.make.source.resolve()) or not file.is_file():
            return None
        return file.read_text(encoding="utf-8", errors="replace")

    def _defines(self, symbol: str) -> bool:
        pattern = rf"^[[:space:]]*(menu)?config[[:space:]]+{symbol}[[:space:]]*$"
        return git(self.make.source, "grep", "--quiet", "-E", pattern, "HEAD", "--", "*Kconfig*").ok

    def checkout(self, commit: str) -> None:
        """Put the commit into the source work tree; only files that differ get a new time stamp."""
        if must(self.make.source, "rev-parse", "HEAD") != commit:
            must(self.make.source, "checkout", "--quiet", "--force", "--detach", commit, timeout_s=900)

    def _remember(self, log: BuildLog, output: str) -> tuple[Diagnostic, ...]:
        # An object that was not compiled again said nothing, but its warnings of last time still hold.
        path = self.make.build / "reviewbot-diagnostics.json"
        compiled = {name[: -len(".o")] for name in _COMPILED.findall(output)}
        try:
            old = [Diagnostic(**entry) for entry in json.loads(path.read_text())]
        except (OSError, ValueError, TypeError):
            old = []
        told_again = self._compiled_from({d.file for d in old if not d.unit}, compiled)
        told_again |= {f"{name}{end}" for name in compiled for end in (".c", ".S")}
        # What is linked from objects has no record of its own; it is linked again when any of them is new.
        linked = {d.identity for d in log.diagnostics if d.flag == "ld"}
        kept = [
            d
            for d in old
            if d.kind == "warning"
            and (d.unit or d.file) not in told_again
            and d.identity not in linked
            and self._there(d.file)
        ]
        result = tuple(dict.fromkeys((*kept, *log.diagnostics)))
        path.write_text(json.dumps([_as_dict(d) for d in result]))
        return result

    def _there(self, file: str) -> bool:
        # A file that only an earlier series had is not in this commit.
        return not file or (self.make.source / file).exists() or (self.make.build / file).exists()

    def _compiled_from(self, files: set[str], compiled: set[str]) -> set[str]:
        """Return those files that an object of this build was compiled from; kbuild's .cmd files name them."""
        found = {name for name in files if name.rsplit(".", 1)[0] in compiled}
        for stem in compiled if files - found else ():
            folder, _, name = stem.rpartition("/")
            try:
                text = (self.make.build / folder / f".{name}.o.cmd").read_text(errors="replace")
            except OSError:
                continue
            words = {word.removeprefix(f"{self.make.source}/") for word in text.split()}
            found |= files & words
        return found

    def _keep(self, commit: str, diagnostics: tuple[Diagnostic, ...], objects: int) -> Kernel:
        place, work = self.store / commit, self.store / f"{commit}.new"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        build = self.make.build
        shutil.copy2(build / "arch/x86/boot/bzImage", work / "bzImage")
        shutil.copy2(build / ".config", work / "config")
        shutil.copytree(build / "usr/include", work / "include")
        release = (build / "include/config/kernel.release").read_text().strip()
        facts: dict[str, object] = {"release": release, "diagnostics": [_as_dict(d) for d in diagnostics]}
        (work / "kernel.json").write_text(json.dumps(facts))
        shutil.rmtree(place, ignore_errors=True)
        work.rename(place)
        return _kernel(place, commit, facts, objects=objects, cached=False)


def _in_place(stand_in: StandIn) -> str:
    return f"CONFIG_{stand_in.instead} is set in its place" if stand_in.instead else "dropped"


class _Counter:
    # Counts "  CC file.o" lines as they come.
    def __init__(self, on_progress: Callable[[str], None]) -> None:
        self.count = 0
        self._rest = b""
        self._report = on_progress

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        fresh = sum(1 for line in lines if _COMPILED.match(line.decode("utf-8", "replace")))
        if fresh:
            self.count += fresh
            self._report(f"{self.count} objects")


def _as_dict(diagnostic: Diagnostic) -> dict[str, object]:
    return {name: getattr(diagnostic, name) for name in diagnostic.__dataclass_fields__}


def _kernel(place: Path, commit: str, facts: dict[str, object], *, objects: int, cached: bool) -> Kernel:
    entries = facts["diagnostics"]
    return Kernel(
        commit=commit,
        image=place / "bzImage",
        headers=place / "include",
        config=place / "config",
        release=str(facts["release"]),
        diagnostics=tuple(Diagnostic(**entry) for entry in entries) if isinstance(entries, list) else (),
        objects=objects,
        cached=cached,
    )
