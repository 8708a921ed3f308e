"""How the kernel begins a complaint, and where the complaint ends.

In: one console line without its time stamp. Out: the Rule that it matches and its parts. Order matters: the first
match counts.

Sources: kernel/panic.c, lib/bug.c, mm/kasan/report.c, kernel/kcsan/report.c, lib/ubsan.c, kernel/locking/lockdep.c,
kernel/rcu/tree_stall.h, kernel/hung_task.c, kernel/watchdog.c, mm/kmemleak.c, arch/x86/mm/fault.c. The idea that a
table and a corpus specify the reader is that of syzkaller's pkg/report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SYMBOL = r"(?P<function>[A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?"
_PLACE = r"(?P<file>[\w./-]+):(?P<line>\d{1,9})"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of complaint.

    title is a format string over the groups of pattern. end says what closes the excerpt: "trace" is the line
    ``---[ end trace``, "bar" a line of ``=``, "task" the end of the first call trace, "line" the line itself, "next"
    only the next splat. fatal says that the kernel, or the task that hit it, does not go on.
    """

    kind: str
    pattern: re.Pattern[str]
    title: str
    end: str
    fatal: bool = False


def _rule(kind: str, pattern: str, title: str, end: str, *, fatal: bool = False) -> Rule:
    return Rule(kind, re.compile(pattern), title, end, fatal)


_LOCKDEP = (
    "possible circular locking dependency detected",
    "possible recursive locking detected",
    "possible irq lock inversion dependency detected",
    "possible deadlock",
    "inconsistent lock state",
    "bad unlock balance detected!",
    "bad contention detected!",
    "held lock freed!",
    "lock held when returning to user space!",
    "Nested lock was not taken",
    "chain_key collision",
)

# Of these the rest of the line names a task or a page.
_PLAIN_BUGS = (
    r"Bad page \w+",
    r"Bad rss-counter state",
    r"using \S+ in preemptible",
    r"(?:spin|rw)lock [\w ]+",
    r"workqueue leaked [\w ,]+",
)

RULES = (
    _rule(
        "panic", r"Kernel panic - not syncing: (?P<what>.*)", "Kernel panic - not syncing: {what}", "task", fatal=True
    ),
    _rule("panic", r"PANIC: (?P<what>double fault)", "PANIC: {what}", "task", fatal=True),
    _rule("kasan", rf"BUG: KASAN: (?P<what>[\w -]+?) in {_SYMBOL}", "BUG: KASAN: {what}", "bar"),
    _rule("kasan", r"BUG: KASAN: (?P<what>[\w -]+)", "BUG: KASAN: {what}", "bar"),
    _rule("kmsan", rf"BUG: KMSAN: (?P<what>[\w -]+?) in {_SYMBOL}", "BUG: KMSAN: {what}", "bar"),
    _rule(
        "kcsan",
        r"BUG: KCSAN: (?P<what>[\w -]+?) in (?P<function>[\w.]+)(?P<other> / [\w.]+)?",
        "BUG: KCSAN: {what}{other}",
        "bar",
    ),
    _rule("kfence", rf"BUG: KFENCE: (?P<what>[\w -]+?) in {_SYMBOL}", "BUG: KFENCE: {what}", "bar"),
    _rule("ubsan", rf"UBSAN: (?P<what>.*?) in {_PLACE}(?::\d+)?", "UBSAN: {what}", "trace"),
    _rule("lockdep", r"WARNING: (?P<what>" + "|".join(map(re.escape, _LOCKDEP)) + ")", "lockdep: {what}", "task"),
    _rule("lockdep", r"WARNING: (?P<what>\S+-safe -> \S+-unsafe lock order detected)", "lockdep: {what}", "task"),
    _rule("lockdep", r"WARNING: \S.*/\d+ still has locks held!", "lockdep: still has locks held", "task"),
    _rule("lockdep", r"\[ BUG: (?P<what>Invalid wait context) \]", "lockdep: {what}", "task"),
    _rule("lockdep", r"INFO: (?P<what>trying to register non-static key)", "lockdep: {what}", "task"),
    _rule("lockdep", r"BUG: (?P<what>MAX_\w+ too low!)", "lockdep: {what}", "task"),
    _rule("rcu", r"WARNING: (?P<what>suspicious RCU usage)", "{what}", "task"),
    _rule("warning", rf"WARNING: {_PLACE} at {_SYMBOL}", "WARNING at {file}", "trace"),
    _rule("warning", rf"WARNING: CPU: \d+ PID: \d+ at {_PLACE} {_SYMBOL}", "WARNING at {file}", "trace"),
    _rule("warning", rf"WARNING: (?:CPU: \d+ PID: \d+ )?at {_SYMBOL}", "WARNING", "trace"),
    _rule("warning", rf"WARNING: (?:CPU: \d+ PID: \d+ at )?{_PLACE}\b(?! has)", "WARNING at {file}", "trace"),
    _rule("bug", rf"kernel BUG at {_PLACE}!", "kernel BUG at {file}", "trace", fatal=True),
    _rule("bug", rf"kernel BUG at {_SYMBOL}", "kernel BUG", "trace", fatal=True),
    _rule(
        "sleep",
        rf"BUG: (?P<what>sleeping function called from invalid context) at {_PLACE}",
        "BUG: {what} at {file}",
        "task",
    ),
    _rule(
        "sleep", r"BUG: (?P<what>scheduling while atomic|scheduling in a non-blocking section)\b", "BUG: {what}", "task"
    ),
    _rule(
        "sleep",
        rf"BUG: (?P<what>assuming (?:atomic|non migratable) context) at {_PLACE}",
        "BUG: {what} at {file}",
        "task",
    ),
    _rule("oops", r"BUG: (?P<what>kernel NULL pointer dereference)", "BUG: {what}", "trace", fatal=True),
    _rule(
        "oops",
        r"BUG: (?P<what>unable to handle (?:page fault|kernel \w+(?: \w+)*?))(?: for address| at|$|:|,)",
        "BUG: {what}",
        "trace",
        fatal=True,
    ),
    _rule(
        "oops",
        r"Unable to handle (?P<what>kernel [\w ]+?) at virtual address",
        "BUG: unable to handle {what}",
        "trace",
        fatal=True,
    ),
    _rule(
        "oops",
        r"Oops: (?P<what>[a-z][\w ]+?)(?:, (?:probably|maybe) for [^:]+)?: [0-9a-f]{4} \[#\d+\]",
        "Oops: {what}",
        "trace",
        fatal=True,
    ),
    _rule(
        "oops",
        r"(?P<what>general protection fault|divide error|invalid opcode|stack segment)\b.* \[#\d+\]",
        "Oops: {what}",
        "trace",
        fatal=True,
    ),
    _rule("oops", r"(?:Internal error: )?Oops(?: -|:).*\[#\d+\]", "Oops", "trace", fatal=True),
    _rule(
        "stall",
        r"(?:rcu: )?INFO: (?P<what>rcu_\w+) (?:self-)?detected (?P<how>expedited )?stall",
        "INFO: {what} detected {how}stall",
        "task",
    ),
    _rule(
        "hung", r"INFO: task \S.*:\d+ blocked.* for more than \d+ seconds", "INFO: task blocked for too long", "task"
    ),
    _rule("lockup", r"(?:watchdog: )?BUG: soft lockup - CPU#\d+ stuck", "BUG: soft lockup", "task"),
    _rule("lockup", r"(?:\w[\w ]*: )?(?:CPU\d+: )?Watchdog detected hard LOCKUP", "hard LOCKUP", "task"),
    _rule("lockup", r"BUG: workqueue lockup", "BUG: workqueue lockup", "line"),
    _rule("kmemleak", r"kmemleak: \d+ (?P<what>new suspected memory leaks)", "kmemleak: {what}", "line"),
    _rule(
        "kmemleak",
        r"unreferenced object 0x[0-9a-f]+ \(size (?P<size>\d+)\)",
        "kmemleak: unreferenced object of size {size}",
        "next",
    ),
    _rule("slab", r"BUG (?P<cache>[\w:-]+) \([^)]*\): (?P<what>.*)", "BUG {cache}: {what}", "task"),
    _rule("oom", r"(?P<what>Out of memory|Memory cgroup out of memory): Killed process", "{what}", "line"),
    _rule("bug", rf"(?:[\w-]+: )?BUG: (?P<what>{'|'.join(_PLAIN_BUGS)})", "BUG: {what}", "task"),
    _rule("bug", r"BUG: (?P<what>\S.*)", "BUG: {what}", "task"),
)

# Panics that only say that an earlier complaint was final.
SECONDARY_PANIC = re.compile(
    r"Fatal exception|.*panic_on_(?:warn|oops)|kasan\.fault|hung_task:|softlockup:|Hard LOCKUP|RCU Stall|"
    r"Attempted to kill init! exitcode=0x0000000[9b]"
)
# Lines inside of an oops that look like the start of another one.
PART_OF_OOPS = re.compile(r"(?:Internal error: )?Oops|general protection fault|invalid opcode|KASAN: ")

# Frames that report, allocate, wait or copy: the culprit is the caller.
SKIPPED = re.compile(
    r"(?:__)?(?:dump_stack|show_stack|show_regs|show_trace|print_(?:report|address|circular|usage|deadlock|bad|lock|unlock|held)|"
    r"kasan_|kmsan_|kcsan_|__kcsan|__tsan_|ubsan_|__ubsan|__asan_|__warn|warn_slowpath|report_bug|handle_bug|exc_|asm_|"
    r"panic$|vpanic$|nmi_panic|might_resched|might_sleep|might_fault|___might_sleep|schedule(?:_\w+)?$|io_schedule|preempt_schedule|"
    r"check_noncircular|check_prev|check_deadlock|validate_chain|lock_acquire|lock_release|mark_lock|lockdep_|debug_|register_lock|"
    r"assign_lock_key|raw_spin_|_raw_(?:spin|read|write)_|mutex_lock|mutex_unlock|down_(?:read|write)|up_(?:read|write)|rcu_read_|"
    r"refcount_|list_(?:add|del)_(?:valid|entry)|(?:__)?list_(?:add|del)_valid|end_report|check_preemption|check_region|"
    r"mem(?:cpy|set|move|cmp|chr)(?:_\w+)?$|str\w*(?:cpy|len|cmp|cat)$|_?copy_(?:to|from)_user|"
    r"k[mzvc]\w*alloc\w*|kv?free(?:_rcu|_sensitive|_const)?$|check_bytes_\w+|kmem_cache_\w+|slab_\w+|kmemleak_\w+|alloc_pages\w*|kthread_worker_fn$|wait_for_comp\w*|"
    r"do_wait_for_common|object_err|sched_show_task|rcu_(?:sched_clock|dump|check)|nmi_\w+|"
    r"bust_spinlocks|die$|die_body|die_addr|oops_end|page_fault_oops|bad_area|kernelmode_fixup|__mutex|rt_mutex_|rwsem_)"
)


# What every rule's lines hold: most lines of a console are told apart by this alone.
_HINT = re.compile(
    r"BUG|WARNING|UBSAN|INFO: |panic|PANIC|Oops|fault|error|opcode|segment|Unable|LOCKUP|kmemleak|unreferenced|"
    r"Out of memory|Memory cgroup"
)


def match(line: str) -> tuple[Rule, re.Match[str]] | None:
    """Return the first rule that the beginning of line matches, and its match; None for an ordinary line."""
    if not _HINT.search(line):
        return None
    for rule in RULES:
        if found := rule.pattern.match(line):
            return rule, found
    return None
