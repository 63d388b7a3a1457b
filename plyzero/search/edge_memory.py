"""The memory of the edges: address space for all that a search may need, and pages only where edges are."""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.search.tree import EDGE, Records

LEAST_RELEASED: Final = 1 << 18
"""Fewer bytes than this in a tree are not given back: to take them again costs as much time as it saves memory."""


class EdgeMemory:
    """Room for the edges of B trees, which takes memory as edges are written and gives it back after a search.

    edges: `[B, E]` EDGE.
    """

    def __init__(self, trees: int, edges: int) -> None:
        self._memory = mmap.mmap(-1, trees * edges * EDGE.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):  # Linux: each tree would otherwise take at least one page of 2 MB
            self._memory.madvise(mmap.MADV_NOHUGEPAGE)
        self.edges: Records = np.frombuffer(self._memory, EDGE).reshape(trees, edges)
        self._written = np.zeros(trees, np.int32)

    def enlarged(self, edges: int, used: NDArray[np.int32]) -> EdgeMemory:
        """Return room for more `edges` in each tree, with copies of the `used` ones, `[B]`."""
        larger = EdgeMemory(len(used), edges)
        for b, count in enumerate(used.tolist()):
            larger.edges[b, :count] = self.edges[b, :count]
        return larger

    def release(self, used: NDArray[np.int32]) -> None:
        """Give back what was written in each tree behind the `used` edges, `[B]`, that it has now."""
        size, page = EDGE.itemsize, mmap.PAGESIZE
        for b in np.flatnonzero((self._written - used) * size > LEAST_RELEASED).tolist():
            first = b * self.edges.shape[1]
            begin = -(-(first + int(used[b])) * size // page) * page
            end = (first + self.edges.shape[1]) * size // page * page
            self._memory.madvise(mmap.MADV_DONTNEED, begin, end - begin)
            self._written[b] = used[b]
        np.maximum(self._written, used, out=self._written)
