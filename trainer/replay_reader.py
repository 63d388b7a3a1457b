"""The replay reader of the trainer: new segments, each read once and in its writer's order.

A segment that is missing or damaged delays those after it, and then they are read without it. If it appears later, it
is read then. A segment that cannot be read at the moment is neither: it is waited for.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from plyzero.files import list_names, move
from plyzero.run.directory import Run
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import SegmentError, SegmentName, parse_unused, read_segment
from plyzero.volume_errors import MAX_PAUSE, FileErrors, retry

GAP_SECONDS: Final = 60.0  # longest wait for a missing segment: over NFS a directory may show a later one first
TRIES: Final = 3  # attempts to read a segment, one per poll, before it is moved to quarantine

Skipped = list[tuple[int, int, bool]]
"""Ranges of sequence numbers that the cursor has passed without a segment: first, last + 1, and whether they were
missing (counted in `missing_segments`) or in quarantine."""

log = logging.getLogger(__name__)


class ReplayReader:
    """Reads the segments of all workers.

    cursor:           incarnation -> sequence of the next segment to read. It is part of the trainer's state, so that a
                      crash rolls it back together with the weights, and no segment is skipped or read twice. The
                      incarnation whose segment was read last is its last entry.
    skipped:          incarnation -> the numbers below the cursor that were not read. Also part of the state.
    missing_segments: number of segments that have not appeared.
    invalid_games:    number of games that were left out of the segments that were read.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._clock = clock
        self.cursor: dict[str, int] = {}
        self.skipped: dict[str, Skipped] = {}
        self.missing_segments = 0
        self.invalid_games = 0
        self._missing_since: dict[str, float] = {}  # incarnation -> since when its next segment has been missing
        self._failures: dict[SegmentName, int] = {}
        self._passed: set[str] = set()  # files that need not be looked at again; a long run has many
        self._unused: set[JournalName] = set()  # journals for whose numbers there will be no segment
        self._refused: dict[SegmentName, float] = {}  # damaged, not moved to quarantine -> when that is tried again
        self._file_errors = FileErrors(clock=clock)

    def read_new(self, *, enough: Callable[[], bool] = lambda: False) -> Iterator[tuple[SegmentName, Games]]:
        """Yield every new segment, until there is `enough`, which is asked before each.

        The cursor moves past a segment when the next one is requested: a segment whose caller failed is read again.
        """
        for incarnation, segments in self._new_segments().items():
            for name in segments:
                if enough():
                    return
                expected = self.cursor.get(incarnation, 0)
                late = name.sequence < expected
                if late and not is_skipped(self.skipped, name):
                    continue  # a second segment with the same sequence number
                if name.sequence > expected and not self._skips_missing(name, expected):
                    break
                found = self._read(name)
                if found is None:
                    if late:
                        continue
                    break
                if isinstance(found, Games):
                    yield name, found
                    self.invalid_games += name.games - len(found.games)
                if not late:
                    self._missing_since.pop(incarnation, None)
                    self._move_cursor(incarnation, name.sequence + 1)
                if isinstance(found, Games):
                    self._take_off(name)
                elif not late:
                    self._skip(incarnation, name.sequence, name.sequence + 1, missing=False)

    def read_again(self, name: SegmentName) -> Games:
        """Return the games of a segment that was read before; an error of the volume has a minute to pass."""
        path = self._run.segments / str(name)
        return retry(lambda: read_segment(path, self._run.game, run_id=self._run.id), path.name)

    @property
    def read_error(self) -> str | None:
        """A sentence about the segments that cannot be read at the moment, or None."""
        return self._file_errors.read_error

    def _new_segments(self) -> Mapping[str, list[SegmentName]]:
        """Return incarnation -> its segments that may be read, in order; the incarnations of older models first."""
        new: dict[str, list[SegmentName]] = {}
        names: list[SegmentName] = []
        with self._file_errors.skipping(self._run.segments, "cannot be read, will try again"):
            found = set(list_names(self._run.segments))
            self._passed &= found
            self._note_unused(found - self._passed)
            unknown = filter(None, map(SegmentName.parse, found - self._passed))
            names = sorted(unknown, key=lambda each: (each.first_step, each.sequence))
            self._forget_all_but(set(names))
        for name in names:
            if name.sequence < self.cursor.get(name.incarnation, 0) and not is_skipped(self.skipped, name):
                self._passed.add(str(name))
            elif self._clock() >= self._refused.get(name, -math.inf):
                new.setdefault(name.incarnation, []).append(name)
        return {incarnation: sorted(names, key=lambda each: each.sequence) for incarnation, names in new.items()}

    def _note_unused(self, names: set[str]) -> None:
        """Note the files that take the place of a segment; a number that has counted as missing is not missing."""
        self._unused = set(filter(None, map(parse_unused, names)))
        for journal in self._unused:
            ranges = self.skipped.get(journal.incarnation, ())
            if any(missing and first <= journal.sequence < end for first, end, missing in ranges):
                self._take_off(journal, comes=False)

    def _forget_all_but(self, names: set[SegmentName]) -> None:
        """Forget attempts with segments that do not exist any more; one may come back in another state."""
        self._refused = {name: due for name, due in self._refused.items() if name in names}
        self._failures = {name: count for name, count in self._failures.items() if name in names}
        self._file_errors.keep_only({self._run.segments, *(self._run.segments / str(name) for name in names)})

    def _read(self, name: SegmentName) -> Games | SegmentError | None:
        """Return the games of a segment, the error if it is given up, or None if it is to be tried again later."""
        path = self._run.segments / str(name)
        if not self._file_errors.is_due(path):
            return None
        with self._file_errors.skipping(path, "cannot be read, will try again"):
            try:
                return read_segment(path, self._run.game, run_id=self._run.id)
            except SegmentError as error:
                return error if self._quarantine(name, error) else None
            except FileNotFoundError:
                if not path.is_symlink():
                    return None  # removed since the listing
                dangling = SegmentError(f"{name} is a link to a file that does not exist")
                return dangling if self._quarantine(name, dangling) else None
        return None

    def _skips_missing(self, name: SegmentName, expected: int) -> bool:
        """Return whether to read `name` although the segments from `expected` up to it are missing."""
        since = self._missing_since.setdefault(name.incarnation, self._clock())
        with self._file_errors.skipping(self._run.segments / str(name), "cannot be read, will try again"):
            if self._are_set_aside(name, expected):
                self._skip(name.incarnation, expected, name.sequence, missing=False)
                return True
            if self._has_journal(name, expected) or self._clock() - since < GAP_SECONDS:
                return False
            log.warning(
                "%s.%s: segments %d to %d are missing", name.worker, name.incarnation, expected, name.sequence - 1
            )
            self._skip(name.incarnation, expected, name.sequence, missing=True)
            return True
        return False

    def _has_journal(self, name: SegmentName, sequence: int) -> bool:
        """Return whether the games of the segment `sequence` are in a journal. A journal that is taken is renamed."""
        journal = name.journal._replace(sequence=sequence)
        names = (str(journal), str(journal._replace(taken=True)))
        return any((self._run.journals / each).is_file() for each in names)

    def _are_set_aside(self, name: SegmentName, expected: int) -> bool:
        """Return whether all segments from `expected` up to `name` are in quarantine, or will never come.

        An earlier trainer, whose state was lost, may have moved them to quarantine.
        """
        quarantined = map(SegmentName.parse, list_names(self._run.quarantine))
        known = (*quarantined, *self._unused)
        sequences = {each.sequence for each in known if each and each.incarnation == name.incarnation}
        return sequences.issuperset(range(expected, name.sequence))

    def _quarantine(self, name: SegmentName, error: SegmentError) -> bool:
        """Count a failed attempt to read `name`. After TRIES attempts quarantine it and return True.

        If it cannot be moved, others are read without it, and it is tried again: it may have been mended where it is.
        """
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] < TRIES:
            return False
        try:
            move(self._run.segments / str(name), self._run.quarantine)
            del self._failures[name]
            log.warning("moved to quarantine: %s", error)
        except OSError as refusal:
            if name not in self._refused:
                log.warning("skipped, because it cannot be moved to quarantine (%s): %s", refusal.strerror, error)
            self._refused[name] = self._clock() + MAX_PAUSE
        return True

    def _skip(self, incarnation: str, first: int, end: int, *, missing: bool) -> None:
        """Remember that the cursor passes the numbers from `first` up to `end` without a segment."""
        self.missing_segments += end - first if missing else 0
        self.skipped.setdefault(incarnation, []).append((first, end, missing))
        self._move_cursor(incarnation, end)

    def _move_cursor(self, incarnation: str, sequence: int) -> None:
        """Set the sequence of the next segment of an incarnation, which becomes the last entry of the cursor."""
        self.cursor.pop(incarnation, None)
        self.cursor[incarnation] = sequence

    def _take_off(self, name: SegmentName | JournalName, *, comes: bool = True) -> None:
        """Remember that a segment has been read, or that none is missing because none `comes`, if it was skipped."""
        ranges: Skipped = []
        for first, end, missing in self.skipped.get(name.incarnation, ()):
            if not first <= name.sequence < end:
                ranges.append((first, end, missing))
                continue
            self.missing_segments -= int(missing)
            parts = [(first, name.sequence, missing), (name.sequence + 1, end, missing)]
            if not comes:
                parts.insert(1, (name.sequence, name.sequence + 1, False))
            ranges += [part for part in parts if part[0] < part[1]]
        if name.incarnation in self.skipped:
            self.skipped[name.incarnation] = ranges
        if not ranges:
            self.skipped.pop(name.incarnation, None)


def is_skipped(skipped: Mapping[str, Skipped], name: SegmentName) -> bool:
    """Return whether the cursor has passed the number of a segment without reading it."""
    return any(first <= name.sequence < end for first, end, _ in skipped.get(name.incarnation, ()))
