"""Things that belong together, found pair by pair."""

from __future__ import annotations


class Union:
    """Disjoint sets of the numbers 0 to size - 1."""

    def __init__(self, size: int) -> None:
        self._up = list(range(size))

    def root(self, index: int) -> int:
        """Return the number that stands for the set of index."""
        while self._up[index] != index:
            self._up[index] = self._up[self._up[index]]
            index = self._up[index]
        return index

    def join(self, one: int, two: int) -> None:
        """Make one set of the two that these numbers are in; the smaller number stands for it."""
        first, second = sorted((self.root(one), self.root(two)))
        self._up[second] = first
