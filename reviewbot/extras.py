"""The stages that build a kernel of their own: variants, coverage, debug.

In: what the review has built and tested so far. Out: the outcome of each stage. Every one of these kernels is the
review's own with other fragments, tested by the same compiled programs (tools/extra.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reviewbot.builders import new_builder
from reviewbot.stages.configure import Fragments, load_fragments
from reviewbot.stages.coverage import coverage
from reviewbot.stages.debug import FRAGMENT as DEBUG
from reviewbot.stages.debug import debug, debug_machine
from reviewbot.stages.variants import VariantBench, variants
from reviewbot.tools.extra import Extra
from reviewbot.tools.gcov import FRAGMENT as GCOV
from reviewbot.tools.kselftest import rules_tree
from reviewbot.tools.scope import HEADER

if TYPE_CHECKING:
    from reviewbot.generate.rules import Tree as Rules
    from reviewbot.model import ApplyResult, Case, Outcome
    from reviewbot.parse.coverage import AddedLine
    from reviewbot.parse.kconfig import Wanted
    from reviewbot.record import Run
    from reviewbot.stages.selftest import Bench
    from reviewbot.tools.kernel import Kernels
    from reviewbot.tools.tree import Tree

BOOT = "boot"  # the fragment without which no guest comes up


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """A review after its own kernels were tested; tested is what that was done with."""

    run: Run
    tree: Tree
    tested: Bench
    kernels: Kernels
    applied: ApplyResult
    fragments: Fragments

    def variants(self) -> Outcome[tuple[Case, ...]]:
        """Run stage variants: symbols that decide about the added lines, the other way."""
        needed = load_fragments((BOOT,)).wanted if BOOT in self.fragments.names else ()
        bench = VariantBench(
            builder=self.tested.builder,
            needed=frozenset(w.symbol for w in needed if w.value != "n"),
            kernel_with=self._kernel_with,
            rules=self._rules(),
        )
        return variants(bench, self.kernels, self.applied, repo=self.tree.repo, known=tuple(self.run.stages))

    def coverage(self) -> Outcome[tuple[AddedLine, ...]]:
        """Run stage coverage: counters in the touched objects."""
        extra = self._extra("coverage", self._with_fragment(GCOV), label="the instrumented kernel")
        return coverage(extra, self.applied, repo=self.tree.repo, patched=self.tested.builder.make.build)

    def debug(self) -> Outcome[tuple[Case, ...]]:
        """Run stage debug: a kernel that checks itself."""
        extra = self._extra("debug", self._with_fragment(DEBUG), label="the debug kernel")
        extra = replace(extra, machine=debug_machine(extra.machine))
        return debug(extra, self.kernels, self.applied, known=tuple(self.run.stages), rules=self._rules())

    def _rules(self) -> Rules | None:
        if self.run.series is None:
            return None
        return rules_tree(self.tree.repo, self.applied.tip_commit, HEADER, self.run.series)

    def _kernel_with(self, wanted: Wanted) -> Extra:
        others = tuple(w for w in self.fragments.wanted if w.symbol != wanted.symbol)
        fragments = replace(self.fragments, wanted=(*others, wanted))
        name = f"CONFIG_{wanted.symbol}={wanted.value}"
        return self._extra("variants", fragments, label=name, log=f"build-{wanted.symbol}-{wanted.value}")

    def _with_fragment(self, name: str) -> Fragments:
        return load_fragments((*(n for n in self.fragments.names if n != name), name))

    def _extra(self, stage: str, fragments: Fragments, *, label: str, log: str = "build") -> Extra:
        run, tested = self.run, self.tested

        def note(text: str) -> None:
            run.progress.note(stage, text)

        (run.out / stage).mkdir(exist_ok=True)
        return Extra(
            stage=stage,
            label=label,
            machine=tested.machine,
            builder=new_builder(
                run.cache,
                self.tree,
                self.applied.tip_commit,
                fragments,
                tested.builder.make.compiler,
                log=run.out / stage / f"{log}.log",
                on_progress=note,
            ),
            wanted=fragments.wanted,
            programs=tested.job / "programs",
            job=tested.job,
            run_dir=run.out,
            note=note,
        )
