"""Subject line to what it says of the patch: number, revision, tree, and whether it is a patch at all.

In: one decoded subject. Out: a Subject. Every bracket before the title is read, in any order and nesting that the lists
have seen; the words that are neither PATCH, version nor number are its prefixes (``net-next``, ``RFC``, ``6.12.y``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_REPLY = re.compile(
    r"^\s*(?P<word>re|r|aw|antw|antwort|wg|sv|vs|odp|rv|res|fwd?|回复|答复|转发|回覆)(\[\d+\])?\s*[:\uff1a]\s*",
    re.IGNORECASE,
)
_FORWARD = frozenset({"fw", "fwd", "wg", "转发"})
_NUMBER = re.compile(r"(?P<n>\d{1,5}(\.\d{1,2})?)/(?P<m>\d{1,5})")
_VERSION = re.compile(r"v(?P<v>\d{1,6})(\.\d+)?", re.IGNORECASE)
_PATCH = re.compile(r"patch(es|set)?(?=v\d|[^a-z]|$)", re.IGNORECASE)
_RESENT = frozenset({"RESEND", "REPOST", "RESENT", "REBASE", "REBASED"})
_STATUS = frozenset({"RFC", "RFT", "RFH", *_RESENT})
_LIST_TAG = re.compile(
    r"external( mail)?|ext|spam\W*|.*-(list|devel|users?|dev|announce)|[\w.-]+@[\w.-]+", re.IGNORECASE
)
_PULL = re.compile(r"^\W*(git[ -]?pull|pull[ -]request|pull)\b", re.IGNORECASE)
_BOT = re.compile(
    r"^(failed: patch|\[tip: |patch \".*\" has been added|\[syzbot\]|"
    r"\[merged[^\]]*\]|\[to-be-updated\]|\[obsolete\]|\[nacked\]|"
    r"\+ .* (added to|has been added)|- .* removed from|\[folded-merged\]|\[withdrawn\]|\[failures\]|"
    r"(linux-next: (build|manual merge|tree for|duplicate|signed-off))|\[linux[\w./-]*:[^\]]*\]|\[mm[\w-]*:[^\]]*\])",
    re.IGNORECASE,
)
_MAX = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a subject line says. number and total are 0 without n/m; number may be a fraction (``0.5/5``, an insertion).

    excluded is a reason why this is no patch posting ("pull request", "bot mail", "commit notification"), else empty.
    """

    title: str
    number: float = 0
    total: int = 0
    numbered: bool = False
    revision: int = 1
    prefixes: tuple[str, ...] = ()
    patch: bool = False
    reply: bool = False
    forward: bool = False
    excluded: str = ""

    @property
    def cover(self) -> bool:
        """True for patch 0 of m."""
        return self.numbered and self.number == 0

    @property
    def resend(self) -> bool:
        """True when the subject says that the same thing was sent again."""
        return any(p in _RESENT for p in self.prefixes)


def parse_subject(text: str) -> Subject:
    """Return what the subject line text says; never raises."""
    rest = " ".join(text.split())[:_MAX]
    replies: list[str] = []
    while match := _REPLY.match(rest):
        replies.append(match["word"].lower())
        rest = rest[match.end() :]
    groups, title = _groups(rest)
    words = _words(tuple(groups))
    return Subject(
        title=title,
        number=words.number,
        total=words.total,
        numbered=words.numbered,
        revision=words.revision,
        prefixes=tuple(dict.fromkeys(words.prefixes)),
        patch=words.patch,
        reply=any(w not in _FORWARD for w in replies),
        forward=any(w in _FORWARD for w in replies),
        excluded=_excluded(rest),
    )


def _excluded(text: str) -> str:
    bare = text.lstrip("[ ")
    if _PULL.match(bare) and not re.match(r"pull\w* (out|up|down|in|the|request [a-z])", bare, re.IGNORECASE):
        return "pull request"
    if text.lower().startswith("[tip: "):
        return "commit notification"
    if _BOT.match(text):
        return "bot mail"
    return ""


def _groups(text: str) -> tuple[list[str], str]:
    # Take the bracket groups off the front; return their contents and the title that is left.
    groups: list[str] = []
    while True:
        text = text.lstrip(" :,")
        if repeated := re.match(r"subject:\s*(?=\[)", text, re.IGNORECASE):
            text = text[repeated.end() :]
        if torn := (re.match(r"(PATCH[^\[\]]{0,40})\]\s*", text) if groups else None):
            groups.append(torn[1])
            text = text[torn.end() :]
            continue
        if not text.startswith("["):
            return groups, text.strip()
        end = _closing(text)
        if end < 0:
            return groups, text.strip()
        groups.append(text[1:end])
        text = text[end + 1 :]


def _closing(text: str) -> int:
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return index
    return text.find("]")


@lru_cache(maxsize=4096)
def _words(groups: tuple[str, ...]) -> _Words:
    # A whole archive has few different brackets.
    words = _Words()
    at_patch = next((i for i, g in enumerate(groups) if _PATCH.search(g)), len(groups))
    for index, group in enumerate(groups):
        if index < at_patch < len(groups) and _LIST_TAG.fullmatch(group.strip()):
            continue
        words.read(group)
    return words


class _Words:
    # What the words of the brackets add up to: the first number counts, and the highest version.
    def __init__(self) -> None:
        self.number: float = 0
        self.total = 0
        self.numbered = False
        self.revision = 1
        self.patch = False
        self.prefixes: list[str] = []

    def read(self, group: str) -> None:
        group = re.sub(r"(\d+)\s+of\s+(\d+)", r"\1/\2", group, flags=re.IGNORECASE)
        group = re.sub(r"(\d)\s*/\s*(\d)", r"\1/\2", group)
        for word in re.split(r"[\s,\[\]()]+", group):
            self._word(word.strip(":;"))

    def _word(self, word: str) -> None:
        if found := _PATCH.match(word):
            self.patch = True
            word = word[found.end() :].lstrip("-_#:")
        elif word.lower().endswith("-patch"):
            self.patch = True
            word = word[: -len("-patch")]
        elif glued := re.fullmatch(r"(RFC|RFT|RESEND)[-_/+]?PATCH(.*)", word, re.IGNORECASE):
            self.patch = True
            self.prefixes.append(glued[1].upper())
            word = glued[2]
        if number := _NUMBER.search(word):
            self._numbers(number)
            word = word[: number.start()] + word[number.end() :]
        word = word.strip("-_#:;/")
        if version := _VERSION.fullmatch(word):
            self.revision = max(self.revision, int(version["v"]))
        elif glued := re.fullmatch(r"(RFC|RESEND)v(\d{1,6})", word, re.IGNORECASE):
            self.prefixes.append(glued[1].upper())
            self.revision = max(self.revision, int(glued[2]))
        elif word:
            self.prefixes.append(word.upper() if word.upper() in _STATUS else word)

    def _numbers(self, match: re.Match[str]) -> None:
        if self.numbered:
            return
        value = float(match["n"])
        self.number = int(value) if value.is_integer() else value
        self.total = int(match["m"])
        self.numbered = True
