"""The replay writer of a worker: a thread that appends finished games to the journal and seals them into segments."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections import deque
from types import TracebackType
from typing import Final, Self

from plyzero.run.directory import Run
from plyzero.run.journals import Journal
from plyzero.run.records import Games
from plyzero.run.segments import list_segments, read_segment, write_segment

BUFFER_POSITIONS: Final = 16_384
"""Positions that may wait to be journaled; with more the worker pauses."""

SEAL_BYTES: Final = 1 << 26
"""Size of the games in memory, in bytes, at which a segment is sealed, however few positions it has."""

TRANSIENT_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ESTALE, errno.ETIMEDOUT}
"""Error numbers after which the thread tries again, without dropping a game."""

log = logging.getLogger(__name__)


class ReplayWriter:
    """Writes the finished games of one worker. It is a context manager; on exit all games are sealed.

    incarnation: 8 hex digits, new with every start of the process.
    write_error: why games cannot be written at the moment, or None.
    """

    def __init__(self, run: Run, *, worker: str, incarnation: str) -> None:
        self._run, self._worker, self._incarnation = run, worker, incarnation
        self.write_error: str | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = self._seal_asked = False
        self._must_seal = False  # before anything else is appended to the journal
        self._error: BaseException | None = None  # what ended the thread
        self._waiting: deque[Games] = deque()  # finished, not yet journaled
        self._waiting_positions = 0
        self._journaled: list[Games] = []  # acknowledged, not yet sealed
        self._journaled_positions = self._journaled_bytes = 0
        self._oldest = self._synced = 0.0  # times of the oldest journaled game and of the last sync
        self._journal: Journal | None = None
        self._sequence = 0
        self._totals = {"games": 0, "positions": 0, "full_positions": 0}  # added so far
        self._sealed_full = 0
        self._thread = threading.Thread(target=self._work, name="replay-writer", daemon=True)

    def __enter__(self) -> Self:
        self._open_journal()  # fails at once if the volume cannot be written
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join()
        if self._error and error is None:
            raise self._error

    def add(self, games: Games) -> None:
        """Add one finished game, without waiting for the disk. Raises the error that ended the thread, if any."""
        if self._error:
            raise self._error
        with self._lock:
            self._waiting.append(games)
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
        """Whether so much waits for the disk that the worker must pause. Raises the error that ended the thread."""
        if self._error:
            raise self._error
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
        try:
            while not (self._closing and not self._waiting and not self._journaled):
                try:
                    self._write()
                    self.write_error = None
                    pause = 0.0 if self._waiting else 0.1
                except OSError as error:
                    if self._closing or error.errno not in TRANSIENT_ERRORS:
                        raise
                    pause = 1.0
                    if self.write_error is None:
                        log.warning("cannot write to the volume, will try again: %s", error.strerror)
                    self.write_error = f"cannot write to the volume: {error.strerror}"
                if not self._closing:
                    self._wake.wait(pause)
                    self._wake.clear()
            if self._journal:
                self._journal.close()
        except BaseException as error:
            self._error = error

    def _write(self) -> None:
        settings = self._run.settings
        if self._journal is None:
            self._open_journal()
        assert self._journal is not None
        if self._must_seal:
            self._seal()
            return
        seal = self._closing or self._seal_asked
        self._seal_asked = False
        while self._waiting:
            self._journal.append(self._waiting[0])
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
        if self._journaled and (seal or time.monotonic() - self._oldest >= settings.selfplay.seal_seconds):
            self._seal()

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

        If this fails, the segment may exist nevertheless, and a process that adopts the journal would then treat all of
        its games as sealed. Therefore nothing more is appended to this journal.
        """
        self._must_seal = True
        for name in list_segments(self._run.segments):
            if (name.incarnation, name.sequence) == (self._incarnation, self._sequence):
                # an earlier attempt succeeded despite its error, or another process took this one for dead
                self._drop_sealed(set(read_segment(self._run.segments / str(name), self._run.game).games["id"]))
                self._sequence += 1
                break
        if self._journaled:
            path = write_segment(
                self._run.segments,
                Games.concatenate(self._journaled),
                self._run.game,
                worker=self._worker,
                incarnation=self._incarnation,
                sequence=self._sequence,
            )
            log.info("sealed %s", path.name)
            self._drop_sealed({games.games["id"][0] for games in self._journaled})
            self._sequence += 1
        journal, self._journal = self._journal, None
        assert journal is not None
        journal.close()
        if not self._closing:
            self._open_journal()
        self._must_seal = False

    def _drop_sealed(self, sealed: set[int]) -> None:
        """Remove the games with these ids from the journaled ones."""
        with self._lock:
            before, kept = self._journaled, [each for each in self._journaled if each.games["id"][0] not in sealed]
            self._sealed_full += sum(each.num_full for each in before) - sum(each.num_full for each in kept)
            self._journaled = kept
        self._journaled_positions = sum(len(games.positions) for games in kept)
        self._journaled_bytes = sum(games.nbytes for games in kept)

    def _open_journal(self) -> None:
        self._synced = time.monotonic()
        self._journal = Journal(
            self._run.journals,
            self._run.game,
            worker=self._worker,
            incarnation=self._incarnation,
            sequence=self._sequence,
        )
