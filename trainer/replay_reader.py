"""The replay reader of the trainer: new segments, each read once and in its writer's order.

A segment that is lost or damaged delays those after it, and then they are read without it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from plyzero.files import move
from plyzero.run.directory import Run
from plyzero.run.journals import journal_name
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment

GAP_SECONDS: Final = 60.0
"""Seconds for which a missing segment is waited for, because over NFS a directory may show a later one first."""

TRIES: Final = 3
"""Number of attempts to read a segment, one per poll, before it is moved to quarantine."""

log = logging.getLogger(__name__)


class ReplayReader:
    """Reads the segments of all workers.

    cursor:           incarnation -> sequence of the next segment to read. It is part of the trainer's state, so that a
                      crash rolls it back together with the weights, and no segment is skipped or read twice.
    missing_segments: number of segments that never appeared.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self.cursor: dict[str, int] = {}
        self.missing_segments = 0
        self._missing_since: dict[str, float] = {}  # incarnation -> since when its next segment has been missing
        self._failures: dict[SegmentName, int] = {}

    def read_new(self) -> Iterator[tuple[SegmentName, Games]]:
        """Yield every new segment.

        The cursor moves past a segment when the next one is requested: a segment whose caller failed is read again.
        """
        for incarnation, segments in self._new_segments().items():
            for name in segments:
                expected = self.cursor.get(incarnation, 0)
                if name.sequence < expected:
                    continue  # a second segment with the same sequence number
                if name.sequence > expected and not self._skips_missing(name, expected):
                    break
                try:
                    games = read_segment(self._run.segments / str(name), self._run.game)
                except FileNotFoundError:
                    break
                except SegmentError as error:
                    if not self._quarantine(name, error):
                        break
                else:
                    yield name, games
                self.cursor[incarnation] = name.sequence + 1
                self._missing_since.pop(incarnation, None)

    def _new_segments(self) -> Mapping[str, list[SegmentName]]:
        """Return incarnation -> its segments from the cursor on, in order; the incarnations of older models first."""
        new: dict[str, list[SegmentName]] = {}
        for name in sorted(list_segments(self._run.segments), key=lambda each: (each.first_step, each.sequence)):
            if name.sequence >= self.cursor.get(name.incarnation, 0):
                new.setdefault(name.incarnation, []).append(name)
        return {incarnation: sorted(names, key=lambda each: each.sequence) for incarnation, names in new.items()}

    def _skips_missing(self, name: SegmentName, expected: int) -> bool:
        """Return whether to read `name` although the segments from `expected` up to it are missing."""
        journal = self._run.journals / journal_name(name.worker, name.incarnation, expected)
        since = self._missing_since.setdefault(name.incarnation, self._clock())
        if self._are_quarantined(name, expected):
            return True
        if journal.exists() or self._clock() - since < GAP_SECONDS:
            return False
        log.warning("%s.%s: segments %d to %d are missing", name.worker, name.incarnation, expected, name.sequence - 1)
        self.missing_segments += name.sequence - expected
        return True

    def _are_quarantined(self, name: SegmentName, expected: int) -> bool:
        """Return whether all segments from `expected` up to `name` are in quarantine.

        An earlier trainer, whose state was lost, may have moved them there.
        """
        quarantined = (SegmentName.parse(path.name) for path in _list_files(self._run.quarantine))
        sequences = {each.sequence for each in quarantined if each and each.incarnation == name.incarnation}
        return sequences.issuperset(range(expected, name.sequence))

    def _quarantine(self, name: SegmentName, error: SegmentError) -> bool:
        """Count a failed attempt to read `name`. After TRIES attempts quarantine it and return True."""
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] < TRIES:
            return False
        del self._failures[name]
        try:
            move(self._run.segments / str(name), self._run.quarantine)
            log.warning("moved to quarantine: %s", error)
        except OSError as refusal:
            log.warning("skipped, because it cannot be moved to quarantine (%s): %s", refusal.strerror, error)
        return True


def _list_files(directory: Path) -> Iterator[Path]:
    return directory.iterdir() if directory.exists() else iter(())
