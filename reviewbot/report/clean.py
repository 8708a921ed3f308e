"""Foreign text made safe to show: what a reader cannot see is written out, what is too long is cut and said so.

Pure. Escaping for HTML is not done here: the template does it once. Nothing is removed silently.
"""

from __future__ import annotations

import re

# C0 and C1 controls but tab and line feed, format characters that change direction, join or hide, line and paragraph
# separators, tags, lone surrogates. The joiners U+200C and U+200D stay: names are spelled with them.
BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u00ad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    f"\U000e0000-\U000e007f\ud800-\udfff{BIDI}]"
)
_BIDI = re.compile(f"[{BIDI}]")


def has_bidi(text: str) -> bool:
    """Return True when text has a character that changes its direction (Unicode Bidi_Control)."""
    return bool(_BIDI.search(text))


def written_out(char: str) -> str:
    r"""Return a hidden character as visible ASCII: ``\x1b`` or ``\u202e``, as Python and C write it."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return text with every hidden character written out; tab and line feed stay, CRLF counts as a line feed."""
    return HIDDEN.sub(lambda match: written_out(match[0]), text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 500) -> str:
    """Return visible text on one line, white space runs as one space, at most limit characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 2] + " …"


def capped_lines(text: str, limit: int = 120, width: int = 400) -> str:
    """Return at most limit lines of at most width characters: the first and the last ones, and how many lie between."""
    lines = [cut(line, width) for line in text.replace("\r\n", "\n").strip("\n").split("\n")]
    left = len(lines) - limit
    if left <= 0:
        return "\n".join(lines)
    half = limit // 2
    return "\n".join([*lines[:half], f"… {left:,} lines left out here …", *lines[-(limit - half) :]])


def cut(text: str, width: int) -> str:
    """Return text, or its first width characters and how many more there were."""
    left = len(text) - width
    return text if left <= 0 else f"{text[:width]} … and {left:,} more characters"


def duration(seconds: float) -> str:
    """Return a time span for a reader: ``0.4 s``, ``48 s``, ``3 min 12 s``, ``1 h 02 min``."""
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(size_bytes: int) -> str:
    """Return a file size for a reader: ``812 bytes``, ``14 kB``, ``3.2 MB``."""
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.0f} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def count(number: int, one: str, many: str = "") -> str:
    """Return ``1 case`` or ``1,480 cases``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
