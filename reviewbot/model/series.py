"""A patch series as it was understood."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One patch of a series, decoded once: every str is text, with LF line ends.

    message is the commit message without the subject; diff starts at the first diff line and is what
    git is given. number and total are n and m of ``[PATCH n/m]`` (0 and 0 when the subject has none).
    author is empty when the input names none. date is an RFC 2822 date, or empty.
    """

    subject: str
    message: str
    diff: str
    author: str = ""
    date: str = ""
    msgid: str = ""
    number: int = 0
    total: int = 0
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A patch series as it was understood; patches are in the order in which they are applied.

    revision is N of ``[PATCH vN]`` (1 when not given). missing holds the numbers n of the m patches that the
    input does not have. prefixes are the other words in the subject brackets (``net-next``, ``RFC``).
    notes say in one line each what a reader must know of the intake (dropped revisions, bad charsets, …).
    lists are the addresses of the mailing lists that it was sent to.
    """

    title: str
    patches: tuple[Patch, ...]
    cover: Patch | None = None
    revision: int = 1
    total: int = 0
    missing: tuple[int, ...] = ()
    prefixes: tuple[str, ...] = ()
    msgid: str = ""
    author: str = ""
    date: str = ""
    base_commit: str = ""
    change_id: str = ""
    prerequisites: tuple[str, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """File name of the series: ASCII letters, digits and dashes, at most 60 characters."""
        words = "".join(c if c.isascii() and c.isalnum() else "-" for c in self.title.lower())
        slug = "-".join(w for w in words.split("-") if w)[:60].strip("-") or "series"
        return f"v{self.revision}-{slug}" if self.revision > 1 else slug

    @property
    def missing_ranges(self) -> str:
        """The missing numbers as a reader writes them: ``1, 2, 4-8``."""
        runs: list[list[int]] = []
        for n in sorted(self.missing):
            if runs and n == runs[-1][-1] + 1:
                runs[-1].append(n)
            else:
                runs.append([n])
        parts = [[f"{r[0]}-{r[-1]}"] if len(r) > 2 else [str(n) for n in r] for r in runs]
        return ", ".join(word for part in parts for word in part)
