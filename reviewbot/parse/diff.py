"""Text that holds a diff to its files and hunks, by the hunk headers' counts as `git apply` reads it.

In: text with LF line ends. Out: a ParsedDiff: the diff alone (commentary and signature left out), one FileDiff a file,
and Problems with their line. Accepted: `git diff` with any prefixes, quilt and plain unified diffs, binary patches,
renames, copies, mode changes, empty files. Combined diffs and counts that do not fit are problems, never exceptions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reviewbot.parse.hunk import HUNK, Hunk, read_hunk
from reviewbot.parse.names import clean_name, git_names, strip_first, unquote
from reviewbot.parse.surplus import is_lost_header, lost_line

_EXTENDED = re.compile(
    r"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to|similarity index|"
    r"dissimilarity index|index) (.*)"
)
# How the lines begin that may not be passed over between two files.
_TELLING = frozenset({"dif", "---", "@@ "})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """One file of a diff; old or new is empty for a file that is created or deleted.

    prefixless tells that the names have no a/ and b/ in front (``git diff --no-prefix``).
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...] = ()
    old_mode: str = ""
    new_mode: str = ""
    old_blob: str = ""
    new_blob: str = ""
    status: str = "changed"
    binary: bool = False
    prefixless: bool = False
    line: int = 0

    @property
    def path(self) -> str:
        """The name after the change, or before it for a deletion."""
        return self.new or self.old

    def lines(self, sign: str) -> tuple[str, ...]:
        """Return the added ("+") or removed ("-") lines, without signs."""
        return tuple(entry[1:] for hunk in self.hunks for entry in hunk.lines if entry[:1] == sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why the text is no diff that can be applied; line is 1-based in the diff."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDiff:
    """The diff of one patch. text is what git is given; outside is what stands around it (notes, diffstat, footers)."""

    text: str = ""
    outside: str = ""
    files: tuple[FileDiff, ...] = ()
    problems: tuple[Problem, ...] = ()


def starts_diff(lines: list[str], index: int) -> bool:
    """Tell whether a file's diff starts at this line, by git's rules: indented or quoted diffs do not count."""
    line = lines[index]
    if line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
        return True
    return (
        line.startswith("--- ")
        and index + 2 < len(lines)
        and lines[index + 1].startswith("+++ ")
        and lines[index + 2].startswith("@@ -")
    )


def parse_diff(text: str) -> ParsedDiff:
    """Return the files of the diff in text, and what is wrong with it."""
    return _Parser(text).parse()


@dataclass(slots=True)
class _Entry:
    line: int
    git: bool
    names: tuple[str, str] = ("", "")
    old: str | None = None
    new: str | None = None
    extended: dict[str, str] = field(default_factory=dict)
    hunks: list[Hunk] = field(default_factory=list)
    binary: bool = False


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        self.at = 0
        self.kept: list[str] = []
        self.outside: list[str] = []
        self.files: list[FileDiff] = []
        self.problems: list[Problem] = []

    def parse(self) -> ParsedDiff:
        while self.at < len(self.lines):
            start = self.lines[self.at][:3]
            if start not in _TELLING:
                self.outside.append(self.lines[self.at])
                self.at += 1
            elif start == "@@ " or not starts_diff(self.lines, self.at):
                self._between()
            elif self.lines[self.at].startswith(("diff --cc ", "diff --combined ")):
                self._combined()
            else:
                self._file()
        text = "\n".join([*self.kept, ""])
        outside = "\n".join(self.outside)
        return ParsedDiff(text=text, files=tuple(self.files), problems=tuple(self.problems), outside=outside)

    def _problem(self, text: str, line: int | None = None) -> None:
        self.problems.append(Problem(text=text, line=line or len(self.kept) + 1))

    def _take(self) -> str:
        line = self.lines[self.at]
        self.kept.append(line)
        self.at += 1
        return line

    def _between(self) -> None:
        # Commentary, the signature, footers: git passes over them, except over hunks that belong to no file.
        line = self.lines[self.at]
        if HUNK.match(line):
            self._problem("hunk without a file header")
            self._take()
        elif self.files and is_lost_header(self.lines, self.at):
            self._problem(f"a damaged header, {line[:60]!r}: what follows it would be lost")
            self._take()
        else:
            self.outside.append(self.lines[self.at])
            self.at += 1

    def _surplus(self) -> None:
        if found := lost_line(self.lines, self.at):
            self.kept += self.lines[self.at : found[0]]
            self.at = found[0]
            self._problem(found[1])
            self._take()

    def _combined(self) -> None:
        self._problem("combined (merge) diffs cannot be applied")
        name = self.lines[self.at].split(" ", 2)[2]
        self._take()
        self.files.append(FileDiff(old=unquote(name), new=unquote(name), status="combined", line=len(self.kept)))
        while self.at < len(self.lines) and not starts_diff(self.lines, self.at):
            self._take()

    def _file(self) -> None:
        entry = _Entry(line=len(self.kept) + 1, git=self.lines[self.at].startswith("diff --git "))
        if entry.git:
            entry.names = git_names(self._take()[len("diff --git ") :])
            self._extended(entry)
        if self._names_follow():
            entry.old = self._take()[4:]
            entry.new = self._take()[4:]
        while self.at < len(self.lines) and (match := HUNK.match(self.lines[self.at])):
            self._hunk(entry, match)
        if entry.hunks and not self.problems:
            self._surplus()
        finished = _finish(entry)
        if not (finished.old or finished.new):
            self._problem("file without a name", entry.line)
        elif not (entry.hunks or entry.binary or entry.extended.keys() - {"index"}):
            self._problem(f"{finished.path}: no hunk after the file header", entry.line)
        self.files.append(finished)

    def _names_follow(self) -> bool:
        return (
            self.at + 1 < len(self.lines)
            and self.lines[self.at].startswith("--- ")
            and self.lines[self.at + 1].startswith("+++ ")
        )

    def _extended(self, entry: _Entry) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if match := _EXTENDED.fullmatch(line):
                entry.extended[match[1]] = match[2]
            elif line.startswith("GIT binary patch"):
                entry.binary = True
                self._take()
                self._binary()
                return
            elif line.startswith("Binary files ") and line.endswith(" differ"):
                entry.binary = True
                self._problem("the patch has no content for a binary file")
                self._take()
                return
            else:
                return
            self._take()

    def _binary(self) -> None:
        # literal or delta, base85 lines, an empty line; then the same again for the way back.
        while self.at < len(self.lines) and re.match(r"(literal|delta) \d+$", self.lines[self.at]):
            while self.at < len(self.lines) and self.lines[self.at].strip():
                self._take()
            if self.at < len(self.lines):
                self._take()

    def _hunk(self, entry: _Entry, match: re.Match[str]) -> None:
        hunk, end, problem = read_hunk(self.lines, self.at, match, len(self.kept) + 1)
        self.kept += self.lines[self.at : end]
        self.at = end
        if problem:
            self._problem(problem)
        entry.hunks.append(hunk)


def _finish(entry: _Entry) -> FileDiff:
    extended = entry.extended
    old_name, new_name = (clean_name(entry.old or ""), clean_name(entry.new or ""))
    created = "new file mode" in extended or old_name == "/dev/null"
    deleted = "deleted file mode" in extended or new_name == "/dev/null"
    prefixless = entry.git and entry.names[0] == entry.names[1]
    old = strip_first(entry.names[0] if old_name in ("", "/dev/null") else old_name, prefixless=prefixless)
    new = strip_first(entry.names[1] if new_name in ("", "/dev/null") else new_name, prefixless=prefixless)
    old, new, status = _moved(extended, old, new, "changed")
    # Outside the tree whatever -p1 would make of it.
    if (new_name or entry.names[1]).startswith("/") and new_name != "/dev/null":
        new = new_name or entry.names[1]
    blobs = re.match(r"([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d+))?", extended.get("index", ""))
    mode = (blobs[3] or "") if blobs else ""
    return FileDiff(
        old="" if created else old,
        new="" if deleted else new,
        hunks=tuple(entry.hunks),
        old_mode=extended.get("old mode") or extended.get("deleted file mode") or mode,
        new_mode=extended.get("new mode") or extended.get("new file mode") or mode,
        old_blob=blobs[1] if blobs else "",
        new_blob=blobs[2] if blobs else "",
        status="created" if created else "deleted" if deleted else status,
        binary=entry.binary,
        prefixless=prefixless,
        line=entry.line,
    )


def _moved(extended: dict[str, str], old: str, new: str, status: str) -> tuple[str, str, str]:
    for word, name in (("rename", "renamed"), ("copy", "copied")):
        if f"{word} to" in extended:
            return unquote(extended.get(f"{word} from", old)), unquote(extended[f"{word} to"]), name
    return old, new, status
