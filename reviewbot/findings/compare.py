"""Cases on base against cases on patched (pure).

In: what each kernel's programs reported, one or more runs of each. Out: model.Case values. A failure on patched is
*introduced* only against a base that can run the case and passes again, or, where base cannot run it (a new bit), when
it fails in two of two runs; what flips is *flaky* with its k of n; what fails on base too is *pre-existing*.
Absence never passes: a case that base had and patched lost, a program that ended early, an empty log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reviewbot.model import Blame, Case, Origin, Status
from reviewbot.parse.breaches import parse_breaches
from reviewbot.parse.ktap import KtapCase, TapOutcome, parse_ktap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIMEOUT_STATUS = 137  # 128 + SIGKILL, which is how the guest's timeout ends a program
_STATUS = {
    TapOutcome.PASS: Status.PASS,
    TapOutcome.FAIL: Status.FAIL,
    TapOutcome.SKIP: Status.SKIP,
    TapOutcome.ERROR: Status.ERROR,
    TapOutcome.NOT_RUN: Status.ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One case in one run on one kernel."""

    status: Status
    reason: str = ""
    excerpt: str = ""


Run = dict[str, Observed]


def read_program(
    name: str, ktap: str | None, exit_status: str | None, timeout_s: int, *, errors: str = ""
) -> dict[str, Observed]:
    """Return the cases of one program, as ``program/case``, from its KTAP log and exit status.

    ktap is None when the program left no log; exit_status is the text that the guest's shell wrote, None when it never
    came to that. A program that fails as a whole adds a case ``program``.
    """
    result = parse_ktap(ktap or "")
    cases = {
        f"{name}/{c.name}": Observed(
            status=_STATUS[c.outcome],
            reason=_reason(c),
            excerpt=c.diagnostics,
        )
        for c in result.cases
        if not c.group
    }
    if result.skipped:
        cases[name] = Observed(status=Status.SKIP, reason=result.skipped)
        return cases
    if whole := _whole(result.error, exit_status, timeout_s, {o.status for o in cases.values()}):
        status, reason = whole
        cases[name] = Observed(status=status, reason=reason, excerpt=(errors or result.diagnostics)[-2000:])
    return cases


def _reason(case: KtapCase) -> str:
    # A plain "not ok" says nothing: the first thing that the test found wrong does.
    if case.outcome is TapOutcome.NOT_RUN:
        return "planned and never reported"
    if case.outcome is TapOutcome.FAIL and case.reason in ("", "not ok"):
        said = [line.lstrip("# ") for line in case.diagnostics.split("\n") if line.strip("# ")]
        return next((line.removeprefix("FAIL: ") for line in said if line.startswith("FAIL: ")), "not ok")
    return case.reason


def _whole(error: str, exit_status: str | None, timeout_s: int, seen: set[Status]) -> tuple[Status, str] | None:
    # What the program's end says beyond its cases.
    text = (exit_status or "").strip()
    if not text.isdecimal():
        return Status.ERROR, "did not come to its end: the guest went away while it ran"
    code = int(text)
    if code == _TIMEOUT_STATUS:
        return Status.FAIL, f"did not end within {timeout_s} s"
    if code > 128:
        return Status.FAIL, f"was killed by signal {code - 128}"
    if code == 127:
        return Status.ERROR, "could not be started (exit status 127)"
    if error:
        return Status.ERROR, error
    if code not in (0, 4) and Status.FAIL not in seen:
        return Status.FAIL, f"exit status {code} although no case failed"
    return None


def compare_cases(base: Sequence[Run], patched: Sequence[Run]) -> tuple[Case, ...]:
    """Return one Case a name, from the runs of each side in the order in which they were made (at least one each)."""
    names = dict.fromkeys([*patched[0], *base[0], *(n for run in patched[1:] for n in run)])
    return tuple(_case(name, base, patched) for name in names)


def unsettled(base: Run, patched: Run) -> tuple[str, ...]:
    """Return the names of cases that have to run again before they can be called introduced, or lost by a skip."""
    return tuple(name for name in patched if _unsettled(_of(base, name).status, patched[name].status))


def _unsettled(base: Status, patched: Status) -> bool:
    if patched is Status.SKIP:
        return base is Status.PASS
    return patched is not Status.PASS and base in (Status.PASS, Status.SKIP)


def _of(run: Mapping[str, Observed], name: str) -> Observed:
    return run.get(name, Observed(status=Status.SKIP, reason="not there on this kernel"))


def _case(name: str, base: Sequence[Run], patched: Sequence[Run]) -> Case:
    on_base = [_of(run, name) for run in base]
    on_patched = [run[name] if name in run else _lost(name, base[0]) for run in patched]
    failures = sum(1 for o in on_patched if o.status in (Status.FAIL, Status.ERROR))
    first, seen = on_base[0], _worst(on_patched)
    origin, status, reason = _origin(first, [o.status for o in on_base], seen, failures, len(on_patched))
    return Case(
        name=name,
        base=first.status,
        patched=status,
        reason=reason,
        origin=origin,
        blame=Blame.BASE if origin is Origin.PRE_EXISTING else Blame.SERIES,
        runs=len(on_patched),
        failures=failures,
        excerpt=seen.excerpt if status not in (Status.PASS, Status.SKIP) else "",
        breaches=parse_breaches(seen.excerpt) if status not in (Status.PASS, Status.SKIP) else (),
    )


def _lost(name: str, base: Run) -> Observed:
    if name in base and base[name].status is not Status.SKIP and "/" in name:
        return Observed(status=Status.ERROR, reason="ran on base and was not reported on patched")
    return Observed(status=Status.PASS if name in base else Status.SKIP, reason="")


def _worst(observed: Sequence[Observed]) -> Observed:
    # What ran in one run and was skipped in another has run.
    order = (Status.FAIL, Status.ERROR, Status.WARN, Status.PASS, Status.SKIP)
    return min(observed, key=lambda o: order.index(o.status))


def _origin(
    base: Observed, base_runs: Sequence[Status], seen: Observed, failures: int, runs: int
) -> tuple[Origin | None, Status, str]:
    if seen.status is Status.PASS:
        fixed = base.status in (Status.FAIL, Status.ERROR)
        return (Origin.FIXED if fixed else None), Status.PASS, f"fails on base: {base.reason}" if fixed else base.reason
    if seen.status is Status.SKIP:
        return None, Status.SKIP, seen.reason or "skipped without a reason"
    if base.status in (Status.FAIL, Status.ERROR):
        return Origin.PRE_EXISTING, seen.status, f"fails on base too: {seen.reason or base.reason}"
    flips = failures < runs or any(s in (Status.FAIL, Status.ERROR) for s in base_runs)
    count = f" ({failures} of {runs} runs)" if runs > 1 else ""
    if flips:
        return Origin.FLAKY, Status.WARN, f"flaky{count}: {seen.reason}"
    # An ERROR did not finish: it says nothing about the series.
    origin = Origin.INTRODUCED if seen.status is Status.FAIL else None
    return origin, seen.status, f"{seen.reason or 'failed'}{count}"
