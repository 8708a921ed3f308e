"""Scope and specs in, the files of a kselftest directory out. Writes nothing.

The directory is self-contained: a Makefile that works in a kernel tree and on its own, config, settings, C sources.
Each program prints KTAP on stdout and takes ``--kernel=base|patched|plain``; ``--case=NAME`` runs one case.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reviewbot.generate.combinations import combinations
from reviewbot.generate.decoder import decoder_context
from reviewbot.generate.expression import SpecError
from reviewbot.generate.rules import rules_for
from reviewbot.generate.spec_set import build_specs, settle
from reviewbot.resources import data_dir

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reviewbot.generate.bits import BitSpec
    from reviewbot.generate.scope import Scope
    from reviewbot.generate.spec import RecordSpec, Specs

DIRECTORY = "perf_sample_types"
# Files of specs/ with misc bits, context markers and attr bits.
FAMILIES = ("misc.toml", "markers.toml", "attr.toml")
# Programs that look at the state since boot: no other one may run before them.
FIRST = frozenset({"account"})
CONFIG = (
    "CONFIG_PERF_EVENTS",
    "CONFIG_FTRACE_SYSCALLS",
    "CONFIG_BPF_SYSCALL",
    "CONFIG_BPF_EVENTS",
    "CONFIG_PROC_FS",
    "CONFIG_FAULT_INJECTION",
    "CONFIG_FAILSLAB",
    "CONFIG_DEBUG_FS",
    "CONFIG_FAULT_INJECTION_DEBUG_FS",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One test program: its source programs/NAME.c, and what calls for it.

    These are the oracles of the sample types in scope (none: always), or, with held, only a record or bit in scope that
    its cases hold.
    """

    name: str
    oracles: tuple[str, ...] = ()
    held: bool = False


# What account looks at are counts since boot: it runs before any other program has opened an event.
PROGRAMS = (
    Program(name="account", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="abi"),
    Program(name="layout"),
    Program(name="build_id", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="chains", oracles=("callchain", "callchain_build_id_offset")),
    Program(name="markers", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="parts", oracles=("callchain", "callchain_build_id_offset")),
    Program(name="sideband", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="deferred", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="consumers", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="files", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="stacks", oracles=("stack_user",)),
    Program(name="shared"),
    Program(name="permission"),
    Program(name="access"),
    Program(name="records"),
    Program(name="children"),
    Program(name="kernel_text", held=True),
    Program(name="cgroups", held=True),
    Program(name="throttle", held=True),
    Program(name="rings"),
    Program(name="limits"),
    Program(name="fuzz"),
    Program(name="races", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="lookups", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="nested", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="stress", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="faults", oracles=("build_id_offset", "callchain_build_id_offset")),
    Program(name="raw", oracles=("raw",)),
    Program(name="raw_bpf", oracles=("raw",)),
)


def load_specs(own: Mapping[str, str] | None = None) -> Specs:
    """Return the specs that travel with reviewbot, and the user's own (file name → TOML text).

    One of the user's stands in place of the packaged one of that name. Raises SpecError when one is wrong.
    """
    root = data_dir("selftests") / "specs"
    texts = {
        kind: {path.name: path.read_text(encoding="utf-8") for path in sorted((root / kind).glob("*.toml"))}
        for kind in ("samples", "records")
    }
    types = (root / "types.toml").read_text(encoding="utf-8")
    families = {name: (root / name).read_text(encoding="utf-8") for name in FAMILIES}
    specs = build_specs(texts["samples"], texts["records"], types, families=families, own=own or {})
    header = (data_dir("selftests") / "lib" / "oracle.h").read_text(encoding="utf-8")
    _known(specs, frozenset(re.findall(r"\boracle_(\w+)\b", header)))
    return specs


def _known(specs: Specs, oracles: frozenset[str]) -> None:
    for sample in specs.samples:
        if sample.oracle and sample.oracle not in oracles:
            msg = f"{sample.name}: oracle = {sample.oracle!r}: one of {', '.join(sorted(oracles))}"
            raise SpecError(msg)
    names = {p.name for p in PROGRAMS}
    everything: tuple[RecordSpec | BitSpec, ...] = (*specs.records, *specs.bits)
    for spec in everything:
        if unknown := sorted(set(spec.programs) - names):
            msg = f"{spec.name}: programs = {unknown[0]!r}: one of {', '.join(sorted(names))}"
            raise SpecError(msg)


def programs(scope: Scope, specs: Specs) -> tuple[str, ...]:
    """Return the names of the test programs that scope calls for, in the order in which they run.

    Those that hold a record or bit in scope are among them where the tree has a sample type that they can ask for.
    """
    oracles = {spec.oracle for t in scope.types if (spec := specs.sample(t.name))}
    there = {spec.oracle for name, _ in scope.all_types if (spec := specs.sample(name))}
    held = {name for part in scope.parts for name in part.programs}
    return tuple(p.name for p in PROGRAMS if _called_for(p, oracles, there, scope.every or p.name in held))


def _called_for(program: Program, oracles: set[str], there: set[str], held: bool) -> bool:
    if program.held:
        return held
    return not program.oracles or bool(oracles & set(program.oracles)) or (held and bool(there & set(program.oracles)))


def render_kselftest(scope: Scope, specs: Specs | None = None) -> dict[str, str]:
    """Return relative path → content of the kselftest directory for scope; specs defaults to the packaged ones.

    Raises ValueError for an empty scope: there is nothing to test.
    """
    if scope.empty:
        msg = "the series adds and touches no sample type and no record"
        raise ValueError(msg)
    specs = _with_provisional(settle(specs or load_specs(), dict(scope.all_types)), scope)
    root = data_dir("selftests")
    names = programs(scope, specs)
    files = {p.name: p.read_text(encoding="utf-8") for p in sorted((root / "lib").glob("*.[ch]"))}
    files |= {f"{n}.c": (root / "programs" / f"{n}.c").read_text(encoding="utf-8") for n in names}
    sources = sorted({*(f for f in files if f.endswith(".c")), "decode.c"} - {f"{n}.c" for n in names})
    headers = sorted({*(f for f in files if f.endswith(".h")), "compat.h", "decode.h", "rules.h", "scope.h"})
    make = {"name": DIRECTORY, "programs": names, "sources": sources, "headers": headers, "config": CONFIG}
    have = frozenset(name for name, _ in scope.all_types)
    for template in ("decode.h", "decode.c"):
        files[template] = _render(template, {**decoder_context(specs), "have": have})
    files["compat.h"] = _render("compat.h", _compat_context(scope, specs))
    files["rules.h"] = _render("rules.h", {"rules": rules_for(specs).values()})
    files["scope.h"] = _render("scope.h", _scope_context(scope, specs))
    for template in ("Makefile", "config", "settings"):
        files[template] = _render(template, make)
    return files


def _with_provisional(specs: Specs, scope: Scope) -> Specs:
    """Add the specs made from the UAPI comment; a type that is not documented must be the last of a record."""
    extra = tuple(s for s in scope.provisional if specs.sample(s.name) is None)
    return replace(specs, samples=tuple(sorted((*specs.samples, *extra), key=lambda s: s.place)))


def _scope_context(scope: Scope, specs: Specs) -> dict[str, object]:
    return {
        "types": scope.types,
        "every": scope.all_types,
        "next_value": scope.next_value,
        "new_bits": reduce(or_, (t.value for t in scope.types if t.new), 0),
        "all_bits": reduce(or_, (v for _, v in scope.all_types), 0),
        "scope_bits": reduce(or_, (t.value for t in scope.types), 0),
        "combinations": combinations(scope, specs),
        "oracles": sorted({s.oracle for t in scope.types if (s := specs.sample(t.name)) and s.oracle}),
    }


def _compat_context(scope: Scope, specs: Specs) -> dict[str, object]:
    """Names that the tests use and scope's header lacks; a header that was not looked at has them all."""
    compat = tomllib.loads((data_dir("selftests") / "compat.toml").read_text(encoding="utf-8"))
    known = {name for name, _ in scope.all_types}
    types = [(s.name, f"(1ULL << {s.bit})") for s in specs.samples if s.name not in known]
    defines = [(n, v) for n, v in compat["define"].items() if scope.names and n not in scope.names]
    have = [(n.strip("_"), not scope.names or n in scope.names, comment) for n, comment in compat["have"].items()]
    have += [(n.strip("_"), n not in scope.padding, comment) for n, comment in compat["reserved"].items()]
    return {"defines": types + defines, "have": have}


def _render(template: str, context: Mapping[str, object]) -> str:
    environment = Environment(
        loader=FileSystemLoader(data_dir("selftests") / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - C, not HTML
    )
    return environment.get_template(f"{template}.j2").render(context)
