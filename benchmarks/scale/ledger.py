"""The accounts of pretended games: each that was acknowledged, when it ended, when it was first used, and the recount.

A log is a file of entries to which one process appends; what it appended survives its death.
"""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

ENTRY: Final = np.dtype([("id", "u8"), ("time", "f8")])
"""A game and a time of the day, in Unix seconds."""


class Log:
    """A log of one process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, ids: Iterable[int], times: Iterable[float]) -> None:
        """Append games, each with a time."""
        entries = np.array([*zip(ids, times, strict=True)], ENTRY)
        os.write(self._descriptor, entries.tobytes())


def read_logs(paths: Iterable[Path]) -> NDArray[np.void]:
    """Return the entries of all logs, `[n]` ENTRY. The last entry of a process that was killed may be cut off."""
    parts = []
    for path in paths:
        content = path.read_bytes()
        whole = len(content) // ENTRY.itemsize * ENTRY.itemsize
        parts.append(np.frombuffer(content[:whole], ENTRY))
    return np.concatenate(parts) if parts else np.zeros(0, ENTRY)


@dataclass(frozen=True)
class Recount:
    """What became of the games of a run after its end.

    acknowledged: number of games that workers have acknowledged.
    sealed:       number of games in segments.
    lost:         acknowledged games that are neither in a segment nor in a journal.
    twice:        games that are in more than one segment, or twice in one.
    unread:       sealed games that the trainer has not counted; negative if it has counted some more than once.
    """

    acknowledged: int
    sealed: int
    lost: int
    twice: int
    unread: int

    @property
    def holds(self) -> bool:
        """Whether no game is lost and none counts twice."""
        return not (self.lost or self.twice or self.unread)


def recount(acknowledged: Iterable[int], sealed: Iterable[int], *, read: int, journaled: Iterable[int] = ()) -> Recount:
    """Return what became of the games of a run.

    acknowledged: ids of the games that workers have acknowledged.
    sealed:       ids of the games in all segments, each as often as it is there.
    read:         number of games that the trainer has counted.
    journaled:    ids of the games in journals that are not sealed yet.
    """
    counts = Counter(sealed)
    known = set(acknowledged)
    return Recount(
        acknowledged=len(known),
        sealed=counts.total(),
        lost=len(known - counts.keys() - set(journaled)),
        twice=sum(count > 1 for count in counts.values()),
        unread=counts.total() - read,
    )


def delays(ended: NDArray[np.void], used: NDArray[np.void], *, since: float, until: float) -> NDArray[np.float64]:
    """Return the seconds from the end of each game to its first use, of the games that ended between two times.

    A game that is not used by the time `until` counts with the time that has passed by then.
    """
    first: dict[int, float] = {}
    for game, at in used.tolist():
        first[game] = min(at, first.get(game, np.inf))
    found = [min(first.get(game, until), until) - at for game, at in ended.tolist() if since <= at < until]
    return np.array(found)
