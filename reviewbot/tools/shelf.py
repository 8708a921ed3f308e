"""A place for many texts that need not stay in memory: they lie in a file, under a key each.

In: texts. Out: keys, and the texts again. Equal texts have equal keys, and the empty text is its own key. The file has
no name and is gone with the Shelf.
"""

from __future__ import annotations

import hashlib
import tempfile
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

_KEY_BYTES = 20


class Shelf:
    """See the module; a context manager that closes the file. size_bytes is the size of the file."""

    def __init__(self) -> None:
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._where: dict[str, tuple[int, int]] = {}
        self.size_bytes = 0

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def put(self, text: str) -> str:
        """Put a text away and return its key."""
        data = text.encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(data, digest_size=_KEY_BYTES).hexdigest() if data else ""
        self._put(key, data)
        return key

    def get(self, key: str) -> str:
        """Return the text of a key that put() gave."""
        return self._read(key).decode("utf-8", "surrogatepass")

    def keep(self, keys: Iterable[str]) -> None:
        """Forget every text but those of the keys, and give their room back."""
        with Shelf() as fresh:
            for key in keys:
                fresh._put(key, self._read(key))
            self._file, fresh._file = fresh._file, self._file
            self._where, self.size_bytes = fresh._where, fresh.size_bytes

    def _put(self, key: str, data: bytes) -> None:
        if key and key not in self._where:
            self._file.seek(self.size_bytes)
            self._file.write(data)
            self._where[key] = (self.size_bytes, len(data))
            self.size_bytes += len(data)

    def _read(self, key: str) -> bytes:
        if not key:
            return b""
        at, size = self._where[key]
        self._file.seek(at)
        return self._file.read(size)
