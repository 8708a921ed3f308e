"""All checks, in the order in which they are asked and reported."""

from reviewbot.checks import checkpatch, copies, diffstat, trailers, uapi, whitespace
from reviewbot.checks.contract import Check

CHECKS: tuple[Check, ...] = (
    uapi.CHECK,
    trailers.CHECK,
    checkpatch.CHECK,
    whitespace.CHECK,
    diffstat.CHECK,
    copies.CHECK,
)
