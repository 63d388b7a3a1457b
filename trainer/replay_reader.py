"""Taking segments in: each one once, in its writer's order, and none that is lost or damaged stands in the way."""

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
"""How long a missing segment is waited for: over NFS a directory may show a later one first."""

TRIES: Final = 3
"""How often a segment is read, one poll apart, before it goes to quarantine."""

log = logging.getLogger(__name__)


class ReplayReader:
    """The trainer's end of the replay store.

    cursor: incarnation -> sequence of the next segment to take in. It belongs into the trainer's state: then a crash
            takes it back together with what was learned, and nothing is missed or counted twice.
    holes:  segments that never appeared.
    """

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self.cursor: dict[str, int] = {}
        self.holes = 0
        self._gaps: dict[str, float] = {}  # incarnation -> since when its next segment has been missing
        self._failures: dict[SegmentName, int] = {}

    def new(self) -> Iterator[tuple[SegmentName, Games]]:
        """Yield what has come since; each is behind the cursor once the next one is asked for."""
        for incarnation, segments in self._waiting().items():
            for name in segments:
                following = self.cursor.get(incarnation, 0)
                if name.sequence < following:
                    continue  # a second one of that number
                if name.sequence > following and not self._has_given_up(name, following):
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
                self._gaps.pop(incarnation, None)

    def _waiting(self) -> Mapping[str, list[SegmentName]]:
        """Return incarnation -> segments at or after its cursor, in order; those of the oldest models first."""
        waiting: dict[str, list[SegmentName]] = {}
        for name in sorted(list_segments(self._run.segments), key=lambda each: (each.low, each.sequence)):
            if name.sequence >= self.cursor.get(name.incarnation, 0):
                waiting.setdefault(name.incarnation, []).append(name)
        return {incarnation: sorted(names, key=lambda each: each.sequence) for incarnation, names in waiting.items()}

    def _has_given_up(self, name: SegmentName, following: int) -> bool:
        """Tell whether the segments before `name` will never come."""
        journal = self._run.journals / journal_name(name.worker, name.incarnation, following)
        since = self._gaps.setdefault(name.incarnation, self._clock())
        if self._is_quarantined(name, following):
            return True
        if journal.exists() or self._clock() - since < GAP_SECONDS:
            return False
        log.warning("%s.%s: segments %d to %d never came", name.worker, name.incarnation, following, name.sequence - 1)
        self.holes += name.sequence - following
        return True

    def _is_quarantined(self, name: SegmentName, sequence: int) -> bool:
        """Tell whether all before `name` was put away earlier, by a trainer whose state was lost."""
        put_away = (SegmentName.parse(path.name) for path in _names(self._run.quarantine))
        known = {each.sequence for each in put_away if each and each.incarnation == name.incarnation}
        return known.issuperset(range(sequence, name.sequence))

    def _quarantine(self, name: SegmentName, error: SegmentError) -> bool:
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] < TRIES:
            return False
        del self._failures[name]
        try:
            move(self._run.segments / str(name), self._run.quarantine)
            log.warning("moved to quarantine: %s", error)
        except OSError as refusal:
            log.warning("passed over, since quarantine does not take it (%s): %s", refusal.strerror, error)
        return True


def _names(directory: Path) -> Iterator[Path]:
    return directory.iterdir() if directory.exists() else iter(())
