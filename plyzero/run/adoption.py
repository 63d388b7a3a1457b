"""Adoption: the trainer seals the journals of dead workers. If it takes a living worker for dead, no game is lost.

A journal is taken only if its lock is free, and if neither its owner's heartbeat nor its size has changed for a while
by the clock of this process. The lock alone is not enough: it may not cross two mounts of one volume. The time without
a change is not enough either: the owner may have been suspended. So a journal is taken in three steps, and the process
may be killed after each of them:

1. Rename it to `.taken`.
2. When its size has not changed for a while, read it, and seal its games under the owner's name and number.
3. Remove it.

A process that finds a taken journal continues from there. An owner that is alive notices the new name before it
acknowledges another game (`Journal.append`), and goes on with its next journal.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from plyzero import files
from plyzero.run.directory import Run
from plyzero.run.events import MAX_BEAT_BYTES
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import list_segments, mark_unused, write_segment
from plyzero.run.view import GONE_SECONDS, STALLED_SECONDS, by_beats
from plyzero.volume_errors import FileErrors, UnreadableError

log = logging.getLogger(__name__)


class Adoption:
    """Seals the journals of dead workers through repeated calls of `adopt`."""

    def __init__(self, run: Run, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._clock = clock
        self._file_errors = FileErrors(clock=clock)
        self._observed: dict[JournalName, tuple[object, float]] = {}  # heartbeat and size, and since when

    def adopt(self, *, beating: Collection[str] = ()) -> int:
        """Take and seal the journals that may be taken; return the number of games sealed.

        A journal or directory with which an error occurs is left for a later call, with one warning.

        beating: processes whose heartbeat has just been seen to change; their journals are not looked at.
        """
        adopted, journals = 0, self._run.journals
        with self._file_errors.skipping(journals, "cannot be read"):
            names = list_journals(journals)
            self._observed = {name: seen for name, seen in self._observed.items() if name in names}
            self._file_errors.keep_only({journals, *(journals / str(name) for name in names)})
            for name in names:
                if name.owner in beating and not name.taken:
                    self._observed.pop(name, None)
                    continue
                path = journals / str(name)
                with self._file_errors.skipping(path, "is not sealed yet"):
                    adopted += self._adopt(name, path)
        return adopted

    @property
    def error(self) -> str | None:
        """A sentence about the journals that cannot be sealed at the moment, or None."""
        summary = self._file_errors.summary
        return summary and f"cannot seal {summary}"

    def _unchanged(self, name: JournalName, path: Path) -> float:
        """Return the seconds since the last change that shows a living owner."""
        before = self._observed.pop(name, None)  # forgotten if an error follows, so that the time begins anew
        heartbeat = b""
        if not name.taken:
            beating = self._run.local / "workers" / f"{name.owner}.json"
            with suppress(FileNotFoundError, UnreadableError):
                heartbeat = files.read_file(beating, max_bytes=MAX_BEAT_BYTES)
        evidence = (heartbeat, os.stat(path).st_size)
        since = before[1] if before and before[0] == evidence else self._clock()
        self._observed[name] = evidence, since
        return self._clock() - since

    def _adopt(self, name: JournalName, path: Path) -> int:
        """Take the next step with one journal if nothing has changed for long enough; return the games sealed."""
        unchanged = self._unchanged(name, path)
        if unchanged < by_beats(self._run, STALLED_SECONDS):
            return 0
        held = files.lock(path, needed=unchanged < GONE_SECONDS)
        if held is None:
            return 0
        try:
            if not name.taken:
                taken = take_journal(self._run, name)
                self._unchanged(taken, self._run.journals / str(taken))
                return 0
            return seal_taken(self._run, name)
        finally:
            os.close(held)


def take_journal(run: Run, name: JournalName) -> JournalName:
    """Rename a journal, so that its owner notices; return the new name."""
    taken = name._replace(taken=True)
    files.rename(run.journals / str(name), run.journals / str(taken))
    return taken


def seal_taken(run: Run, name: JournalName) -> int:
    """Seal and remove a taken journal; return the number of games sealed, 0 if its segment exists already.

    A damaged journal is moved to quarantine, after the games that can be read have been sealed.
    """
    path = run.journals / str(name)
    faults: list[str] = []
    try:
        batches = read_journal(path, run.game, run_id=run.id, on_fault=faults.append)
    except OSError:
        raise
    except MemoryError as error:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from error
    except Exception as error:  # a header can be wrong in many ways
        batches = []
        faults = [f"{path.name} cannot be read: {error!r}"]
    adopted = seal_games(run, name, batches)
    if faults:
        log.warning("moved to quarantine: %s", "; ".join(faults[:3]))
        files.move(path, run.quarantine, name=str(name._replace(taken=False)))
        return adopted
    if not batches and not _is_sealed(run, name):
        mark_unused(run.segments, name)  # its owner may live, and go on with the next number
    files.remove(path)
    return adopted


def seal_games(run: Run, name: JournalName, batches: list[Games]) -> int:
    """Seal the games of a journal; return their number, 0 if there are none or if their segment exists already."""
    if not batches:
        return 0
    if _is_sealed(run, name):
        files.sync_directory(run.segments)  # who sealed it may have ended before it could
        return 0
    games = Games.concatenate(batches)
    try:
        segment = write_segment(run.segments, games, run.game, name, run_id=run.id)
    except FileExistsError:  # its owner is alive and has sealed it meanwhile
        return 0
    log.info("sealed %s for a dead process", segment.name)
    return len(games.games)


def _is_sealed(run: Run, name: JournalName) -> bool:
    """Return whether there is a segment with the number of a journal."""
    numbers = ((each.incarnation, each.sequence) for each in list_segments(run.segments))
    return (name.incarnation, name.sequence) in numbers
