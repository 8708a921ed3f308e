"""Reports as real runs leave them, made up: builder functions that tests of reports and of the pipeline share.

Every builder returns a new Report; verdict and reasons come from judge(), so that a sample cannot contradict the rules.
"""

from __future__ import annotations

from dataclasses import replace

from reviewbot.model import (
    AppliedPatch,
    ApplyResult,
    ApplyState,
    BaseInfo,
    Blame,
    Breach,
    Case,
    Finding,
    HunkFailure,
    Log,
    Origin,
    Patch,
    Report,
    RunInfo,
    Series,
    SourceLine,
    StageResult,
    Status,
    VerdictKind,
)
from reviewbot.verdict import judge

BASE_COMMIT = "5d6f1f0c3a9be2d47c1f1be3a2c4b5d6e7f80912"
PREREQUISITE_COMMIT = "91c07b3ad8e6f5241302c1b0a9f8e7d6c5b4a392"
TIP_COMMIT = "c4e29a7d3b1f60859e8d7c6b5a49382716f5e4d3"

_DIFF = (
    "diff --git a/kernel/events/core.c b/kernel/events/core.c\n"
    "index 33210aff3ee6..7f6bf96f7473 100644\n"
    "--- a/kernel/events/core.c\n"
    "+++ b/kernel/events/core.c\n"
    "@@ -2086,4 +2096,7 @@ static void __perf_event_header_size(struct perf_event *event, u64 sample_type)\n"
    " \tif (sample_type & PERF_SAMPLE_CODE_PAGE_SIZE)\n"
    " \t\tsize += sizeof(data->code_page_size);\n"
    " \n"
    "+\tif (sample_type & PERF_SAMPLE_BUILD_ID_OFFSET)\n"
    "+\t\tsize += sizeof(struct perf_sample_build_id_offset);\n"
    "+\n"
    " \tevent->header_size = size;\n"
)
_FILES = ("include/linux/bpf.h", "include/linux/perf_event.h", "kernel/bpf/stackmap.c", "kernel/events/core.c")

HEX_EXCERPT = """# sample_type: IP|TID|TIME|BUILD_ID_OFFSET
# header.size 64, decoded 72
# record at ring offset 0x1a40:
# 0000  09 00 00 00 02 00 40 00  5c 13 40 00 00 00 00 00  ......@.\\.@.....
# 0010  8f 00 00 00 8f 00 00 00  e1 5b 0e 91 03 00 00 00  .........[......
# 0020  14 00 00 00 6b 1f 22 9a  c3 70 5e 41 0d 88 f2 b6  ....k."..p^A....
# 0030  7c 55 31 09 e4 aa 1b 70  5c 13 00 00 00 00 00 00  |U1....p\\.......
# 0040  09 00 00 00 02 00 40 00                           ......@.
# expected header.size == 8 + 8 + 8 + 8 + 32 = 64; the decoder consumed 72 bytes
not ok 7 alone.size_ip_tid_time"""


def series(*, missing: bool = True) -> Series:
    """Return patch 3 of 8 (or 1 of 1) of the build-ID series."""
    patch = Patch(
        subject="perf/core: Implement BUILD_ID_OFFSET sample type",
        message="Implement the payload.\n\nSigned-off-by: Name <name@example.com>\n",
        diff=_DIFF,
        author="Name <name@example.com>",
        date="Mon, 30 Nov 2026 09:12:44 +0000",
        msgid="20261130091244.1-4-name@example.com",
        number=3 if missing else 1,
        total=8 if missing else 1,
        files=_FILES,
    )
    return Series(
        title=patch.subject,
        patches=(patch,),
        revision=2,
        total=patch.total,
        missing=(1, 2, 4, 5, 6, 7, 8) if missing else (),
        msgid=patch.msgid,
        author=patch.author,
        date=patch.date,
        source="series.txt",
        notes=("the author is named in a bracketed line, not in mail headers",),
    )


def base() -> BaseInfo:
    """Return a base that was chosen among three."""
    return BaseInfo(
        tree="demo",
        commit=BASE_COMMIT,
        describe="linux-source-7.2 7.2.9-1~bpo13+1",
        chosen_by="being the newest version of the tree on which the series applies",
        candidates=(
            "base-commit trailer: the series names none",
            "blob ids of the diff: 2 of 4 are in this tree (kernel/bpf/stackmap.c, include/linux/bpf.h)",
            "7.3~rc2: 2 of 13 hunks do not apply",
        ),
        verified=False,
    )


def applied(state: ApplyState = ApplyState.APPLIED) -> ApplyResult:
    """Return two prerequisites and one patch, applied."""
    core = ("kernel/events/core.c",)
    uapi = ("include/uapi/linux/perf_event.h",)
    name_patch = "perf/uapi: Name the build ID and offset sample types"
    permission = "perf/core: Ask for kernel permission when a callchain of build IDs is sampled"
    return ApplyResult(
        state=state,
        summary="2 prerequisites and 1 patch applied, 13 hunks, no offset",
        base_commit=BASE_COMMIT,
        prerequisite_commit=PREREQUISITE_COMMIT,
        tip_commit=TIP_COMMIT,
        patches=(
            AppliedPatch(
                subject=name_patch,
                commit="7b8d2c9e0f1a",
                role=Blame.PREREQUISITE,
                files=uapi,
                insertions=15,
                deletions=1,
            ),
            AppliedPatch(
                subject=permission,
                commit="91c07b3ad8e6",
                role=Blame.PREREQUISITE,
                files=core,
                insertions=4,
                deletions=2,
            ),
            AppliedPatch(
                subject=series().title,
                commit="c4e29a7d3b1f",
                role=Blame.SERIES,
                files=_FILES,
                insertions=304,
                deletions=13,
            ),
        ),
    )


def run_info(*, finished: bool = True, stopped_by: str = "") -> RunInfo:
    """Return a run on a machine without KVM."""
    return RunInfo(
        version="0.1.0",
        started="2026-11-30T21:14:07Z",
        command="reviewbot review series.txt --tree demo --prereq prereq/0001.patch --prereq prereq/0002.patch",
        duration_s=1274.6,
        finished=finished,
        stopped_by=stopped_by,
        machine=(
            ("kernel", "Linux 6.1.0-41-amd64 x86_64"),
            ("processors", "2"),
            ("memory", "7.7 GB"),
            ("virtualisation", "TCG (no /dev/kvm)"),
            ("compiler", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0"),
            ("qemu", "QEMU emulator version 7.2.19"),
            ("virtme-ng", "1.42"),
            ("Python", "3.11.2"),
        ),
    )


def intake() -> StageResult:
    """Return a passing intake stage."""
    return StageResult(
        stage="intake",
        status=Status.PASS,
        summary="1 patch read: v2, 3/8",
        duration_s=0.02,
        facts=(("source", "series.txt, 14.3 kB"), ("form", "plain text with a bracketed author line")),
    )


def base_stage() -> StageResult:
    """Return a passing base stage."""
    return StageResult(stage="base", status=Status.PASS, summary="linux-source-7.2 7.2.9-1~bpo13+1", duration_s=0.31)


def apply_stage(status: Status = Status.PASS, summary: str = "2 prerequisites and 1 patch applied") -> StageResult:
    """Return an apply stage."""
    command = "git -C ~/.cache/reviewbot/sources/demo am --quoted-cr=strip -- 0001.patch"
    logs = (Log(title="git am", path="logs/apply.log", size_bytes=1204),)
    return StageResult(stage="apply", status=status, summary=summary, duration_s=1.42, commands=(command,), logs=logs)


def configure() -> StageResult:
    """Return a passing configure stage."""
    return StageResult(
        stage="configure",
        status=Status.PASS,
        summary="674 symbols; every wanted symbol is set",
        duration_s=6.8,
        facts=(
            ("fragments", "boot, perf, bpf"),
            ("symbols", "674 set, 31 asked for, 0 that did not stick"),
            ("config", "sha256 9f31c2… (logs/config-patched)"),
        ),
        commands=("make -C SRC O=BUILD allnoconfig", "SRC/scripts/kconfig/merge_config.sh -m .config boot perf bpf"),
        logs=(Log(title=".config", path="logs/config-patched", size_bytes=48_211),),
    )


def build(*, findings: tuple[Finding, ...] = (), status: Status = Status.PASS, summary: str = "") -> StageResult:
    """Return a build stage."""
    return StageResult(
        stage="build",
        status=status,
        summary=summary or "base and patched build; no diagnostic that base does not have",
        duration_s=941.3,
        findings=findings,
        facts=(
            ("base", "1,094 objects compiled in 14 min 20 s"),
            ("patched", "23 objects compiled in 48 s, the rest kept"),
            ("compiler", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0"),
            ("base artefacts", "stored for the next series"),
        ),
        commands=("make -C SRC O=BUILD -j2 KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=reviewbot bzImage",),
        logs=(
            Log(title="base", path="logs/build-base.log", size_bytes=88_412),
            Log(title="patched", path="logs/build-patched.log", size_bytes=4_811),
        ),
    )


def boot(
    *, status: Status = Status.PASS, summary: str = "", excerpt: str = "", finding: Finding | None = None
) -> StageResult:
    """Return a boot stage."""
    return StageResult(
        stage="boot",
        status=status,
        summary=summary or "base and patched reach the first command; no splat",
        duration_s=14.9,
        findings=(finding,) if finding else (),
        excerpt=excerpt,
        facts=(("base", "first command after 3.1 s"), ("patched", "first command after 3.2 s"), ("accelerator", "TCG")),
        commands=("vng --run BUILD/arch/x86/boot/bzImage --root ROOT --force-9p --disable-kvm --cpus 2 --exec run.sh",),
        logs=(
            Log(title="console, base", path="logs/console-base.log", size_bytes=21_004),
            Log(title="console, patched", path="logs/console-patched.log", size_bytes=21_190),
        ),
    )


_COMBINATIONS = ("alone", "with_ip", "with_tid", "with_time", "with_callchain", "with_identifier", "both", "everything")
_RULES = ("size", "build_id", "offset", "kernel_entry", "order")


def cases(failing: dict[str, tuple[str, str]] | None = None) -> tuple[Case, ...]:
    """Return 86 cases; failing maps a name to (reason, excerpt)."""
    names = [
        f"{kind}.{combination}.{rule}"
        for kind in ("build_id_offset", "callchain_build_id_offset")
        for combination in _COMBINATIONS
        for rule in _RULES
    ]
    made = [_case(name, failing or {}) for name in names]
    for kind in ("build_id_offset", "callchain_build_id_offset"):
        reason = "base refuses the bit with EINVAL, patched opens the event"
        made.append(Case(name=f"{kind}.open", base=Status.PASS, patched=Status.PASS, reason=reason))
        text = "needs a hardware counter; qemu under TCG has none"
        made.append(Case(name=f"{kind}.hardware", base=Status.SKIP, patched=Status.SKIP, reason=text))
    made += [
        Case(
            name=f"raw.tracepoint_{n}.size",
            base=Status.PASS,
            patched=Status.PASS,
            reason="12 records of the right size",
        )
        for n in (1, 2)
    ]
    return tuple(made)


def _case(name: str, failing: dict[str, tuple[str, str]]) -> Case:
    if name in failing:
        reason, excerpt = failing[name]
        return Case(
            name=name,
            base=Status.SKIP,
            patched=Status.FAIL,
            reason=reason,
            origin=Origin.INTRODUCED,
            runs=2,
            failures=2,
            excerpt=excerpt,
        )
    return Case(name=name, base=Status.SKIP, patched=Status.PASS, reason="base refuses the bit; 512 records decoded")


def selftest(failing: dict[str, tuple[str, str]] | None = None) -> StageResult:
    """Return a selftest stage of 86 cases."""
    made = cases(failing)
    failed = sum(c.counts for c in made)
    return StageResult(
        stage="selftest",
        status=Status.FAIL if failed else Status.PASS,
        summary=f"{failed} of {len(made)} cases fail on patched"
        if failed
        else "84 of 86 cases pass on patched, 2 skipped",
        duration_s=31.2,
        cases=made,
        facts=(
            ("generated", "86 cases for 2 new sample types"),
            ("built with", "make headers_install of patched"),
            ("payload not verified (no spec)", "PERF_SAMPLE_AUX"),
        ),
        commands=(
            "reviewbot selftest generate series.txt --tree demo -o selftest",
            "make -C selftest && ./selftest/perf_sample_types",
        ),
        logs=(
            Log(title="KTAP, base", path="logs/ktap-base.txt", size_bytes=9_410),
            Log(title="KTAP, patched", path="logs/ktap-patched.txt", size_bytes=12_377),
        ),
    )


FAILING = {
    "build_id_offset.with_time.size": ("decoded length 72, header.size 64, in 512 of 512 records", HEX_EXCERPT),
    "build_id_offset.everything.size": ("decoded length 168, header.size 160, in 512 of 512 records", HEX_EXCERPT),
    "callchain_build_id_offset.both.kernel_entry": (
        "kernel entry with build ID size 20, must be 0, in 31 of 512 records",
        "# entry 2 of 9: ip 0xffffffff8110a2b3\n# build_id_size 20 (must be 0 for a kernel address)",
    ),
}


def _breached(case: Case) -> Case:
    if not case.counts:
        return case
    rule = "build-id.kernel" if "kernel" in case.name else "header.size"
    others = (Breach(rule="sample.time", seen="TIME 0"),) if rule == "header.size" else ()
    return replace(case, breaches=(Breach(rule=rule, seen=case.reason), *others))


def selftest_findings() -> StageResult:
    """Return a selftest stage whose three failing cases are two findings."""
    stage = selftest(FAILING)
    failing = tuple(_breached(case) for case in stage.cases)
    size = Finding(
        title="header.size 64; expected 72, to which sample_type 0x2000007 decodes",
        severity=Status.FAIL,
        origin=Origin.INTRODUCED,
        file="kernel/events/core.c",
        line=2105,
        function="__perf_event_header_size",
        rule="header.size",
        breach=Breach(
            rule="header.size",
            text="A record has as many bytes as header.size says",
            sources=("perf_event_open(2), MMAP layout", 'include/uapi/linux/perf_event.h:9: "__u16 size;"'),
            seen="header.size 64",
            expected="72, to which sample_type 0x2000007 decodes",
            record=HEX_EXCERPT,
        ),
        lines=(
            SourceLine(
                patch=3,
                file="kernel/events/core.c",
                line=2104,
                function="__perf_event_header_size",
                text="\tif (sample_type & PERF_SAMPLE_BUILD_ID_OFFSET)",
                writes=False,
            ),
            SourceLine(
                patch=3,
                file="kernel/events/core.c",
                line=2105,
                function="__perf_event_header_size",
                text="\t\tsize += sizeof(struct perf_sample_build_id_offset);",
            ),
        ),
        cases=tuple(case.name for case in failing if case.counts and "kernel" not in case.name),
        reproduce="cd /rb/bin && ./layout",
        reproducer="selftest/reproduce/layout-size.c",
    )
    kernel = Finding(
        title="an entry that is no user address has a build ID",
        severity=Status.FAIL,
        origin=Origin.INTRODUCED,
        rule="build-id.kernel",
        breach=Breach(rule="build-id.kernel", text="A kernel address has size 0", seen="a kernel entry has size 20"),
        cases=tuple(case.name for case in failing if case.counts and "kernel" in case.name),
        reproduce="cd /rb/bin && ./chains",
    )
    return replace(stage, findings=(size, kernel), cases=failing)


def checks() -> StageResult:
    """Return a check stage with a warning of the series and two findings that do not count."""
    return StageResult(
        stage="check",
        status=Status.WARN,
        summary="1 finding to look at; 2 were there before",
        duration_s=4.2,
        required=False,
        findings=(
            Finding(
                title="line length of 104 exceeds 100 columns",
                severity=Status.WARN,
                origin=Origin.INTRODUCED,
                file="kernel/events/core.c",
                line=8311,
                function="perf_build_id_offset_fill",
                rule="checkpatch LONG_LINE",
                excerpt="+\tbuild_id_offset_from_ip(data, regs, event->attr.defer_callchain && user, &entry->id);",
                reproduce="scripts/checkpatch.pl --strict 0003.patch",
            ),
            Finding(
                title="symbol 'perf_sched_cb_usages' was not declared",
                severity=Status.WARN,
                origin=Origin.PRE_EXISTING,
                blame=Blame.BASE,
                file="kernel/events/core.c",
                rule="sparse",
            ),
            Finding(
                title="comment of the record layout is not in tools/include/uapi/linux/perf_event.h",
                severity=Status.WARN,
                origin=Origin.INTRODUCED,
                blame=Blame.PREREQUISITE,
                file="include/uapi/linux/perf_event.h",
                rule="uapi copy",
            ),
        ),
    )


def report(
    stages: tuple[StageResult, ...],
    apply: ApplyResult | None,
    *,
    given: Series | None = None,
    run: RunInfo | None = None,
    chosen: BaseInfo | None = None,
) -> Report:
    """Return the Report of these stages, with the verdict that judge() gives."""
    info = run or run_info()
    given = given or series()
    verdict = judge(stages, apply, series=given, finished=info.finished, stopped_by=info.stopped_by)
    return Report(
        verdict=verdict.kind,
        reasons=verdict.reasons,
        run=info,
        series=given,
        base=chosen or base(),
        apply=apply,
        stages=stages,
    )


def _prepared() -> tuple[StageResult, ...]:
    return (intake(), base_stage(), apply_stage())


def passing() -> Report:
    """Return a run in which everything passes, and the series is whole."""
    stages = (*_prepared(), configure(), build(), boot(), selftest())
    return report(stages, applied(), given=series(missing=False))


def incomplete_warn() -> Report:
    """Return the demo's run: patch 3 of 8, all passes, and one finding of a check to look at."""
    return report((*_prepared(), checks(), configure(), build(), boot(), selftest()), applied())


def failing_cases() -> Report:
    """Return a run in which three cases fail on patched."""
    return report((*_prepared(), checks(), configure(), build(), boot(), selftest(FAILING)), applied())


def case_findings() -> Report:
    """Return a run in which three cases fail on patched, for two reasons."""
    return report((*_prepared(), checks(), configure(), build(), boot(), selftest_findings()), applied())


def skipped(*names: str, why: str) -> tuple[StageResult, ...]:
    """Return required stages that were skipped for one reason."""
    return tuple(StageResult(stage=name, status=Status.SKIP, summary=why) for name in names)


def does_not_apply() -> Report:
    """Return a run that ended at apply with two hunks without a place."""
    failures = (
        HunkFailure(
            patch="perf/core: Implement BUILD_ID_OFFSET sample type",
            file="kernel/events/core.c",
            hunk=4,
            header="@@ -5341,7 +5354,7 @@ static bool is_sb_event(struct perf_event *event)",
            line=5341,
            expected="\t    attr->comm || attr->comm_exec ||\n\t    attr->task || attr->ksymbol ||\n"
            "\t    attr->context_switch || attr->text_poke ||\n\t    attr->bpf_event)\n\t\treturn true;\n",
            nearest="\t    attr->comm || attr->comm_exec ||\n\t    attr->task || attr->ksymbol ||\n"
            "\t    attr->context_switch || attr->text_poke ||\n\t    attr->bpf_event || attr->guest)\n"
            "\t\treturn true;\n",
            nearest_line=5390,
            similarity=0.94,
            difference="--- what the patch expects\n+++ kernel/events/core.c, line 5390\n@@ -1,5 +1,5 @@\n"
            " \t    attr->comm || attr->comm_exec ||\n \t    attr->task || attr->ksymbol ||\n"
            " \t    attr->context_switch || attr->text_poke ||\n-\t    attr->bpf_event)\n"
            "+\t    attr->bpf_event || attr->guest)\n \t\treturn true;\n",
            reason="1 of 5 lines of context differs",
        ),
        HunkFailure(
            patch="perf/core: Implement BUILD_ID_OFFSET sample type",
            file="kernel/events/core.c",
            hunk=9,
            header="@@ -16021,6 +16290,8 @@ int perf_event_init_task(struct task_struct *child, u64 clone_flags)",
            line=16021,
            expected="\tWARN_ON_ONCE(perf_event_legacy_init(child));\n\tmutex_init(&child->perf_event_mutex);\n",
            reason="nothing alike is in the file",
        ),
    )
    apply = ApplyResult(
        state=ApplyState.DOES_NOT_APPLY,
        summary="2 of 13 hunks of patch 3/8 find no place in linux-source-7.3",
        base_commit=BASE_COMMIT,
        failures=failures,
        evidence=("kernel/bpf/stackmap.c applies", "include/linux/bpf.h applies with an offset of 12 lines"),
    )
    chosen = replace(base(), describe="linux-source-7.3 7.3~rc2-1~exp1", chosen_by="--base v7.3-rc2")
    why = "the series does not apply"
    stages = (
        intake(),
        base_stage(),
        replace(apply_stage(Status.SKIP, "2 of 13 hunks find no place"), excerpt=failures[0].difference),
        *skipped("configure", "build", "boot", "selftest", why=why),
    )
    return report(stages, apply, chosen=chosen)


def already_merged() -> Report:
    """Return a run on a tree that has the change."""
    apply = ApplyResult(
        state=ApplyState.ALREADY_MERGED,
        summary="the change of 1 of 1 patches is in the tree",
        base_commit=BASE_COMMIT,
        evidence=('commit 7e3f977edd0b ("perf, events: add non-linear data support for raw records")',),
    )
    merged = apply_stage(Status.SKIP, "the change is in the tree")
    return report((intake(), base_stage(), merged, *skipped("build", "boot", "selftest", why="already merged")), apply)


def build_error() -> Report:
    """Return a run whose patched kernel does not build."""
    findings = (
        Finding(
            title="implicit declaration of function 'stack_map_get_build_id_offset'",
            severity=Status.FAIL,
            origin=Origin.INTRODUCED,
            file="kernel/events/core.c",
            function="perf_output_build_id_offset",
            line=8341,
            rule="-Werror=implicit-function-declaration",
            excerpt="kernel/events/core.c: In function 'perf_output_build_id_offset':\n"
            "kernel/events/core.c:8341:9: error: implicit declaration of function 'stack_map_get_build_id_offset'\n"
            " 8341 |         stack_map_get_build_id_offset(&id, 1, user, false);\n"
            "      |         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
            reproduce="make -C SRC O=BUILD kernel/events/core.o",
        ),
        Finding(
            title="unused variable 'mm'",
            severity=Status.WARN,
            origin=Origin.INTRODUCED,
            file="kernel/events/core.c",
            function="perf_output_build_id_offset",
            line=8330,
            rule="-Wunused-variable",
        ),
    )
    summary = "base builds; patched does not: 1 error in kernel/events/core.c"
    stages = (
        *_prepared(),
        configure(),
        build(findings=findings, status=Status.FAIL, summary=summary),
        *skipped("boot", "selftest", why="there is no patched kernel"),
    )
    return report(stages, applied())


PANIC = """[    2.913377] BUG: kernel NULL pointer dereference, address: 0000000000000018
[    2.913391] #PF: supervisor read access in kernel mode
[    2.913402] #PF: error_code(0x0000) - not-present page
[    2.913415] Oops: Oops: 0000 [#1] SMP PTI
[    2.913427] CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted 7.2.9 #1
[    2.913440] RIP: 0010:perf_event_alloc+0x2b1/0xd40
[    2.913489] Call Trace:
[    2.913497]  <TASK>
[    2.913505]  perf_event_create_kernel_counter+0x1f/0x1a0
[    2.913519]  hardlockup_detector_event_create+0x4c/0xa0
[    2.913540]  lockup_detector_init+0x31/0x90
[    2.913551]  kernel_init_freeable+0x118/0x2b0
[    2.913570]  </TASK>
[    2.913590] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009"""


def panic() -> Report:
    """Return a run whose patched kernel panics while it boots."""
    finding = Finding(
        title="kernel NULL pointer dereference in perf_event_alloc, then panic",
        severity=Status.FAIL,
        origin=Origin.INTRODUCED,
        function="perf_event_alloc",
        rule="panic",
        excerpt=PANIC,
        reproduce="vng --run BUILD/arch/x86/boot/bzImage --root ROOT --force-9p --disable-kvm --cpus 2 --exec true",
    )
    summary = "base boots; patched panics after 2.9 s"
    stages = (
        *_prepared(),
        configure(),
        build(),
        boot(status=Status.FAIL, summary=summary, excerpt=PANIC, finding=finding),
        *skipped("selftest", why="patched does not boot"),
    )
    return report(stages, applied())


def infra_error() -> Report:
    """Return a run that qemu's absence stopped from booting."""
    stages = (
        *_prepared(),
        configure(),
        build(),
        StageResult(stage="boot", status=Status.ERROR, summary="qemu-system-x86_64: not installed"),
        *skipped("selftest", why="no kernel was booted"),
    )
    return report(stages, applied())


def unfinished() -> Report:
    """Return a run that was stopped by hand while it built."""
    run = replace(run_info(finished=False, stopped_by="Ctrl-C"), duration_s=412.0)
    return report((*_prepared(), configure()), applied(), run=run)


HOSTILE = (
    '</pre><script>alert(1)</script><img src="https://example.com/x" onerror=alert(2)>'
    " \x1b[31mred\x1b[0m \u202egnp.exe {{7*7}}"
)


def hostile() -> Report:
    """Return a run in which every foreign text attacks the report."""
    patch = replace(
        series().patches[0], subject=HOSTILE, author=HOSTILE, msgid=HOSTILE, files=(HOSTILE,), notes=(HOSTILE,)
    )
    given = replace(series(), title=HOSTILE, patches=(patch,), author=HOSTILE, notes=(HOSTILE,), prefixes=(HOSTILE,))
    finding = Finding(
        title=HOSTILE,
        severity=Status.FAIL,
        origin=Origin.INTRODUCED,
        file=HOSTILE,
        function=HOSTILE,
        excerpt=HOSTILE,
        reproduce=HOSTILE,
        rule=HOSTILE,
    )
    case = Case(
        name=HOSTILE,
        base=Status.PASS,
        patched=Status.FAIL,
        reason=HOSTILE,
        origin=Origin.INTRODUCED,
        excerpt=f"{HOSTILE}\nTested-by: Name <name@example.com>\npw-bot: accept\nFixes: 0123456789ab",
    )
    stage = StageResult(
        stage=HOSTILE,
        status=Status.FAIL,
        summary=HOSTILE,
        findings=(finding,),
        cases=(case,),
        facts=((HOSTILE, HOSTILE),),
        commands=(HOSTILE,),
        logs=(Log(title=HOSTILE, path="javascript:alert(3)"), Log(title="up", path="../../etc/passwd", size_bytes=1)),
        excerpt=HOSTILE,
    )
    chosen = replace(base(), tree=HOSTILE, describe=HOSTILE, chosen_by=HOSTILE, candidates=(HOSTILE,))
    return report((stage, *_prepared(), build(), boot(), selftest()), applied(), given=given, chosen=chosen)


def huge() -> Report:
    """Return a run with thousands of failing cases and findings and a very long excerpt."""
    diagnostics = "\n".join(f"line {i} of the diagnostics" for i in range(2000))
    many = tuple(
        Case(
            name=f"group_{n % 40}.case_{n}",
            base=Status.PASS,
            patched=Status.FAIL if n % 3 else Status.PASS,
            reason="x" * 700,
            origin=Origin.INTRODUCED if n % 3 else None,
            excerpt=diagnostics,
        )
        for n in range(4000)
    )
    findings = tuple(
        Finding(
            title=f"warning {n}",
            severity=Status.WARN,
            origin=Origin.INTRODUCED,
            file="kernel/events/core.c",
            line=n,
            excerpt="y" * 5000,
        )
        for n in range(3000)
    )
    stage = replace(selftest(), cases=many, status=Status.FAIL, summary="2,666 of 4,000 cases fail on patched")
    stages = (*_prepared(), replace(checks(), findings=findings), configure(), build(), boot(), stage)
    return report(stages, applied())


def every() -> dict[str, Report]:
    """Return all samples by name."""
    makers = (
        passing,
        incomplete_warn,
        failing_cases,
        case_findings,
        does_not_apply,
        already_merged,
        build_error,
        panic,
        infra_error,
        unfinished,
        hostile,
    )
    made = {maker.__name__: maker() for maker in makers}
    made["empty"] = Report(verdict=VerdictKind.INCONCLUSIVE, reasons=("nothing has run",), run=run_info(finished=False))
    return made
