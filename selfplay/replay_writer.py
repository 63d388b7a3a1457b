"""The replay writer of a worker: a thread that appends finished games to the journal and seals them into segments."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, Self

from plyzero import files
from plyzero.run.directory import Run
from plyzero.run.journals import Journal, TakenError, now
from plyzero.run.records import Games, JournalName, find_valid
from plyzero.run.segments import SegmentError, list_segments, mark_unused, read_segment, unused_file, write_segment
from plyzero.run.view import GONE_SECONDS
from plyzero.threads import Thread
from plyzero.volume_errors import explain, is_transient

BUFFER_POSITIONS: Final = 16_384
"""Number of positions waiting for the journal at which the worker pauses."""

SEAL_BYTES: Final = 1 << 26
"""Size of the journaled games in memory at which a segment is sealed, even if it has few positions."""

MAX_GAME_BYTES: Final = 1 << 27
"""Largest size of a game in memory; the trainer refuses a segment with an array of twice this size."""

LISTING_SECONDS: Final = 60.0
"""Longest time after which a new file appears in the list of its directory, as over NFS."""

CLOSING_SECONDS: Final = 10.0
"""Time for which writing the last games is retried at the end of the worker."""

log = logging.getLogger(__name__)


class ReplayWriter:
    """Writes the finished games of one worker. It is a context manager; on exit all games are sealed.

    incarnation:   8 hex digits, new with every start of the process.
    seal_seconds:  age of the first game at which a segment is sealed; at first that of the settings.
    write_error:   why games cannot be written at the moment, or None.
    refused_games: number of games that were not stored because the trainer would refuse them.
    """

    def __init__(self, run: Run, *, worker: str, incarnation: str) -> None:
        self._run = run
        self._worker = worker
        self._incarnation = incarnation
        self.seal_seconds = run.settings.selfplay.seal_seconds
        self.write_error: str | None = None
        self.refused_games = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._seal_asked = False
        self._must_seal = False  # nothing more may be appended to this journal
        self._may_be_sealed = False  # an attempt to seal this journal has failed, but its segment may exist
        self._unchecked: deque[Games] = deque()  # finished
        self._waiting: deque[Games] = deque()  # checked, not yet journaled
        self._waiting_positions = 0  # unchecked and waiting
        self._in_doubt: dict[int, list[Games]] = {}  # sequence of a journal that was taken -> the games in it
        self._last_seen: dict[int, float] = {}  # sequence of a journal that was taken -> when it last existed
        self._journaled: list[Games] = []  # acknowledged, not yet sealed
        self._journaled_positions = 0
        self._journaled_bytes = 0
        self._oldest = 0.0  # time of the oldest journaled game
        self._synced = 0.0  # time of the last sync
        self._journal: Journal | None = None
        self._sequence = 0
        self._totals = {"games": 0, "positions": 0, "full_positions": 0}  # added so far
        self._sealed_full = 0
        self._thread = Thread(self._work, name="replay-writer")

    def __enter__(self) -> Self:
        try:
            self._open_journal()
        except OSError as error:  # the thread reports a transient one, and tries again
            if not _passes(error):
                raise
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join()
        if error is None:
            self._thread.check()

    def add(self, games: Games) -> None:
        """Add one finished game, without waiting for the disk. Raises the error that ended the thread, if any."""
        self._thread.check()
        with self._lock:
            self._unchecked.append(games)
            self._waiting_positions += len(games.positions)
            self._totals["games"] += len(games.games)
            self._totals["positions"] += len(games.positions)
            self._totals["full_positions"] += games.num_full

    def seal_soon(self) -> None:
        """Request that all games added so far are sealed into a segment."""
        self._seal_asked = True
        self._wake.set()

    @property
    def is_full(self) -> bool:
        """Whether the worker must pause: too much waits for the disk. Raises the error that ended the thread."""
        self._thread.check()
        return self._waiting_positions >= BUFFER_POSITIONS

    @property
    def unsealed_full_positions(self) -> int:
        """The number of full-search positions that no other process can see yet."""
        with self._lock:
            return self._totals["full_positions"] - self._sealed_full

    def totals(self) -> dict[str, int]:
        """Return the numbers of games, positions and full_positions added so far."""
        with self._lock:
            return dict(self._totals)

    def _work(self) -> None:
        seconds_left = CLOSING_SECONDS
        while True:
            try:
                self._write()
                self.write_error = None
                pause = 0.0 if self._waiting else 0.1
            except OSError as error:
                if not _passes(error) or (self._closing and seconds_left <= 0):
                    raise
                pause = 1.0
                if self.write_error is None:
                    log.warning("cannot write to the volume, will try again: %s", explain(error))
                self.write_error = f"cannot write to the volume: {explain(error)}"
            if not self._closing:
                self._wake.wait(pause)
                self._wake.clear()
            elif self.write_error:
                time.sleep(pause)
                seconds_left -= pause
            elif not self._unchecked and not self._waiting and not self._journaled:
                break
        if self._journal:
            self._journal.close()

    def _write(self) -> None:
        settings = self._run.settings
        self._check_games()
        if self._journal is None:
            self._open_journal()
        self._resolve_doubt()
        assert self._journal is not None
        if self._must_seal:
            self._seal()
            return
        seal = self._closing or self._seal_asked
        self._seal_asked = False
        while self._waiting:
            try:
                self._journal.append(self._waiting[0])
            except TakenError as error:
                self._leave_journal(may_have_last=error.written)
                return
            if not self._journaled:
                self._oldest = time.monotonic()
            with self._lock:
                games = self._waiting.popleft()
                self._waiting_positions -= len(games.positions)
                self._journaled.append(games)
            self._journaled_positions += len(games.positions)
            self._journaled_bytes += games.nbytes
            if settings.store.sync_seconds == 0:
                self._sync()
            if self._journaled_positions >= settings.selfplay.seal_positions or self._journaled_bytes >= SEAL_BYTES:
                self._seal()
                return
        if self._journaled and time.monotonic() - self._synced >= settings.store.sync_seconds:
            self._sync()
        if self._journaled and (seal or time.monotonic() - self._oldest >= self.seal_seconds):
            self._seal()

    def _check_games(self) -> None:
        """Check the games added since the last call, and drop those that the trainer would refuse, with an error."""
        with self._lock:
            new = [self._unchecked.popleft() for _ in range(len(self._unchecked))]
        if not new:
            return
        has_fault = _fault(Games.concatenate(new), self._run) is not None  # one check of many games is fast
        for games in new:
            fault = _fault(games, self._run) if has_fault else None
            with self._lock:
                if fault is None:
                    self._waiting.append(games)
                    continue
                self.refused_games += len(games.games)
                self._waiting_positions -= len(games.positions)
                self._sealed_full += games.num_full
            log.error("game %016x is not stored, the trainer would refuse it: %s", games.games["id"][0], fault)

    def _leave_journal(self, *, may_have_last: bool) -> None:
        """Leave a journal that another process has taken, and continue with the next one.

        may_have_last: the journal may also contain the first of the waiting games, which was not acknowledged.
        """
        journal = self._journal
        self._journal = None
        assert journal is not None
        log.warning("journal %d of this worker was taken, as that of a dead process; going on", self._sequence)
        with self._lock:
            taken = self._journaled
            self._journaled = []
            if may_have_last:
                last = self._waiting.popleft()
                taken.append(last)
                self._waiting_positions -= len(last.positions)
        self._journaled_positions = 0
        self._journaled_bytes = 0
        self._in_doubt[self._sequence] = taken
        self._last_seen[self._sequence] = journal.owned_at
        self._sequence += 1
        journal.abandon()

    def _resolve_doubt(self) -> None:
        """Find out which games of the journals that were taken have been sealed, and write the others again.

        If neither a journal nor its segment exists, somebody has removed the journal. But if it was last seen long ago,
        it is more likely that the trainer has sealed it, and has read and removed the segment since, unless its mark
        says that it had nothing to seal. Either way no segment with its number will come, and that is marked: who
        sleeps outlives a mark of the trainer. The trainer keeps the mark while there is the journal with which this
        process goes on.
        """
        for sequence, games in list(self._in_doubt.items()):
            journal = self._journal_name(sequence)
            if (self._run.journals / str(journal._replace(taken=True))).exists():
                self._last_seen[sequence] = now()
                continue
            sealed = self._sealed_ids(sequence)
            unseen_seconds = now() - self._last_seen[sequence]
            if sealed is not None:
                anew = [each for each in games if each.games["id"][0] not in sealed]
            elif unseen_seconds < LISTING_SECONDS and not self._closing:
                continue
            else:
                had_nothing = unused_file(self._run.segments, journal).is_file()
                mark_unused(self._run.segments, journal)
                anew = games if had_nothing or unseen_seconds < GONE_SECONDS else []
            with self._lock:
                self._sealed_full += _full_positions(games) - _full_positions(anew)
                self._waiting.extendleft(reversed(anew))
                self._waiting_positions += sum(len(each.positions) for each in anew)
            log.info("journal %d, which was taken: %d games are written anew", sequence, len(anew))
            del self._in_doubt[sequence], self._last_seen[sequence]

    def _sealed_ids(self, sequence: int) -> set[int] | None:
        """Return the ids of the games in this process's segment with this number, None if there is no such segment."""
        for name in list_segments(self._run.segments):
            if (name.incarnation, name.sequence) == (self._incarnation, sequence):
                try:
                    files.sync_directory(self._run.segments)  # who sealed it may have ended before it could
                    path = self._run.segments / str(name)
                    return set(read_segment(path, self._run.game, run_id=self._run.id).games["id"].tolist())
                except FileNotFoundError:
                    return None
                except SegmentError as error:
                    log.warning("the trainer will not read it: %s", error)
                    return set()
        return None

    def _sync(self) -> None:
        assert self._journal is not None
        self._synced = time.monotonic()
        try:
            self._journal.sync()
        except OSError:
            self._must_seal = True  # the state of the journal on disk is unknown, but a segment is a new file
            raise

    def _seal(self) -> None:
        """Write the journaled games as a segment, and begin the next journal.

        If this fails, the segment may exist nevertheless. A process that adopts the journal would then treat all of its
        games as sealed, so nothing more is appended to this journal.

        The segments are listed only where there may be one already: an earlier attempt succeeded despite its error, or
        the trainer took us for dead, and with it the journal. A list of the segments of many workers is long.
        """
        self._must_seal = True
        journal = self._journal
        assert journal is not None
        if self._may_be_sealed or not journal.is_owned():
            sealed = self._sealed_ids(self._sequence)
            if sealed is not None:
                self._drop_sealed(sealed)
                self._sequence += 1
        self._may_be_sealed = True
        if self._journaled:
            games, name = Games.concatenate(self._journaled), self._journal_name(self._sequence)
            path = write_segment(self._run.segments, games, self._run.game, name, run_id=self._run.id)
            log.info("sealed %s", path.name)
            self._drop_sealed({each.games["id"][0] for each in self._journaled})
            self._sequence += 1
        self._journal = None
        journal.close()
        if not self._closing:
            self._open_journal()
        self._must_seal = self._may_be_sealed = False

    def _drop_sealed(self, sealed: set[int]) -> None:
        with self._lock:
            kept = [each for each in self._journaled if each.games["id"][0] not in sealed]
            self._sealed_full += _full_positions(self._journaled) - _full_positions(kept)
            self._journaled = kept
        self._journaled_positions = sum(len(games.positions) for games in kept)
        self._journaled_bytes = sum(games.nbytes for games in kept)

    def _open_journal(self) -> None:
        self._synced = time.monotonic()
        name = self._journal_name(self._sequence)
        self._journal = Journal(self._run.journals, self._run.game, name, run_id=self._run.id)

    def _journal_name(self, sequence: int) -> JournalName:
        return JournalName(self._worker, self._incarnation, sequence)


def _full_positions(games: Sequence[Games]) -> int:
    """Return the number of positions with a full search."""
    return sum(each.num_full for each in games)


def _passes(error: OSError) -> bool:
    """Return whether the thread tries again, without dropping a game.

    A missing file is such an error: the directories existed when the worker started, so the volume is not mounted, or
    another mount has renamed the open journal over FUSE.
    """
    return is_transient(error) or isinstance(error, FileExistsError | FileNotFoundError)


def _fault(games: Games, run: Run) -> str | None:
    """Return the reason why the trainer would refuse these games, None if it would not."""
    try:
        _, fault = find_valid(games, run.game.start.num_actions)
    except ValueError as error:
        return str(error)
    if games.nbytes > MAX_GAME_BYTES:
        return fault or f"it takes {games.nbytes >> 20} MB of memory, the limit is {MAX_GAME_BYTES >> 20} MB"
    return fault
