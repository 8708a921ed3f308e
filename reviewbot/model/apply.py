"""What a series is tested on, and what became of applying it there."""

from dataclasses import dataclass

from reviewbot.model.words import ApplyState, Blame

# How a line of BaseInfo.candidates begins that a reader must not miss: another tree fits the series better.
BETTER_BASE = "a better base is in tree "


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseInfo:
    """The commit that the series is tested on, and how it was chosen.

    describe is a human name (``7.2.9-1~bpo13+1``, ``v7.2-rc3-12-gabcdef``). candidates says, one line each, what else
    was tried and why it lost. verified is False for a tree without history, whose commit ids mean nothing elsewhere.
    """

    tree: str
    commit: str
    describe: str
    chosen_by: str
    candidates: tuple[str, ...] = ()
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HunkFailure:
    """One hunk that found no place: the context it expects and the nearest place in the tree.

    line is the 1-based line that the hunk header names; nearest_line is 0 when the file has nothing alike.
    similarity is 0..1 (difflib ratio of expected to nearest). difference is a unified diff of the two.
    """

    patch: str
    file: str
    hunk: int
    header: str
    line: int
    expected: str
    nearest: str = ""
    nearest_line: int = 0
    similarity: float = 0.0
    difference: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPatch:
    """One commit that apply made. role is "prerequisite" or "series"."""

    subject: str
    commit: str
    role: Blame
    files: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """State of applying prerequisites and series in order on base.

    prerequisite_commit is the tip of the prerequisites (the base commit when there are none); tip_commit is
    patched. Both are empty unless state is APPLIED or APPLIED_WITH_FUZZ.
    """

    state: ApplyState
    summary: str
    base_commit: str = ""
    prerequisite_commit: str = ""
    tip_commit: str = ""
    patches: tuple[AppliedPatch, ...] = ()
    failures: tuple[HunkFailure, ...] = ()
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.applied and not self.tip_commit:
            msg = "an applied series has a tip commit"
            raise ValueError(msg)

    @property
    def applied(self) -> bool:
        """True when there is a patched tree to build."""
        return self.state in (ApplyState.APPLIED, ApplyState.APPLIED_WITH_FUZZ)
