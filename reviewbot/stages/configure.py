"""Stage configure: fragments over allnoconfig, then every wanted symbol is read back.

In: a source work tree (at base) and names of fragments in kconfigs/. Out: a .config in a build directory that belongs
to (tree, fragments, compiler). A symbol that did not stick is an ERROR that names its unmet dependencies: what would be
tested then is not what was asked for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reviewbot.errors import UsageError
from reviewbot.model import Blame, Finding, Log, Origin, Outcome, StageResult, Status
from reviewbot.parse.kconfig import Missing, Wanted, parse_config, parse_fragment
from reviewbot.parse.kconfig_tree import why_not
from reviewbot.resources import data_dir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reviewbot.tools.kernel import Builder, Configured
    from reviewbot.tools.profiles import Profile

DEFAULT_FRAGMENTS = ("boot", "perf", "bpf", "tracing", "faults")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragments:
    """Kconfig fragments in order; key is a short hash of their text, for cache paths."""

    names: tuple[str, ...]
    wanted: tuple[Wanted, ...]

    @property
    def key(self) -> str:
        """Eight hex digits that change with any wanted symbol."""
        lines = sorted(f"{w.symbol}={w.value}" for w in self.wanted)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def load_fragments(names: Sequence[str]) -> Fragments:
    """Read fragments by name from kconfigs/, or by path when the name holds a slash; later ones override earlier ones.

    Raises UsageError naming a fragment that does not exist.
    """
    texts = []
    for name in names:
        path = Path(name) if "/" in name else data_dir("kconfigs") / f"{name}.config"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in data_dir("kconfigs").glob("*.config")))
            msg = f"no Kconfig fragment {name!r} (known: {known})"
            raise UsageError(msg)
        texts.append((name, path.read_text(encoding="utf-8")))
    wanted = {w.symbol: w for name, text in texts for w in parse_fragment(text, name=name)}
    return Fragments(names=tuple(names), wanted=tuple(wanted.values()))


def configure(builder: Builder, base: str, fragments: Fragments, run_dir: Path) -> Outcome[Path]:
    """Check base out, write its .config from the fragments and read it back; the value is the .config's path."""
    make = builder.make
    builder.checkout(base)
    configured = builder.configure(fragments.wanted)
    done = configured.done
    log = Log(title="configure", path=str(make.log.relative_to(run_dir)))
    if not done.ok:
        result = StageResult(
            stage="configure",
            status=Status.ERROR,
            summary="allnoconfig failed on base",
            excerpt=done.output[-4000:],
            commands=(done.command,),
            logs=(log,),
        )
        return Outcome(result=result)
    text, lost = configured.text, configured.lost
    findings = _lost_symbols(lost, builder, text)
    count = sum(1 for value in parse_config(text).values() if value in ("y", "m"))
    facts = (
        ("fragments", " ".join(fragments.names)),
        ("symbols set", str(count)),
        ("symbols asked for", str(len(fragments.wanted))),
        *_not_exercised(parse_config(text)),
        *builder.profile.facts,
        *configured.unknown,
    )
    result = StageResult(
        stage="configure",
        status=Status.ERROR if lost else Status.PASS,
        summary=(
            "not in the final .config: " + ", ".join(m.wanted.symbol for m in lost)
            if lost
            else _summary(fragments, configured, builder.profile)
        ),
        findings=findings,
        facts=facts,
        commands=(done.command,),
        logs=(log,),
    )
    return Outcome(result=result, value=None if lost else configured.path)


def _not_exercised(config: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    # What a kernel of this configuration does not notice; silence about it is no proof.
    checkers = {"KASAN": "memory errors", "PROVE_LOCKING": "lock order", "DEBUG_KMEMLEAK": "leaks"}
    absent = [f"{what} (CONFIG_{symbol})" for symbol, what in checkers.items() if config.get(symbol) != "y"]
    return (
        (("not exercised", f"no checker for {', '.join(absent)}; --debug runs the tests with them"),) if absent else ()
    )


def _summary(fragments: Fragments, configured: Configured, profile: Profile) -> str:
    count = len(fragments.wanted) + len(profile.wanted)
    text = f"{' + '.join(fragments.names)}: all {count} wanted symbols are in the final .config"
    if configured.unknown:
        text = text.replace(f"all {count}", f"{count - len(configured.unknown)} of {count}")
        text += f", {len(configured.unknown)} are not known to this tree"
    return text + (f"; build profile {', '.join(profile.names)}" if profile.names else "")


def _lost_symbols(lost: Sequence[Missing], builder: Builder, config_text: str) -> tuple[Finding, ...]:
    if not lost:
        return ()
    tree, config = builder.kconfig(), parse_config(config_text)
    return tuple(
        Finding(
            title=f"CONFIG_{m.wanted.symbol}={m.wanted.value} did not stick (it is {m.actual}): "
            + ("; ".join(why_not(m.wanted.symbol, tree, config)) or "the reason was not found"),
            severity=Status.WARN,
            origin=Origin.PRE_EXISTING,
            blame=Blame.BASE,
            rule=m.wanted.reason,
        )
        for m in lost
    )
