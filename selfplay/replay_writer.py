"""A worker's end of the replay store: a thread takes finished games to the journal, and from there into segments."""

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
"""What may wait for a disk that stalls; with more the worker pauses."""

SEAL_BYTES: Final = 1 << 26
"""A segment is sealed when its games take so much memory, however few positions they have."""

TRANSIENT: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ESTALE, errno.ETIMEDOUT}
"""Errors that may pass: the thread tries again, and no game is dropped."""

log = logging.getLogger(__name__)


class ReplayWriter:
    """Takes one worker's finished games. Use it in a `with`; at its end everything is sealed.

    trouble: why games cannot be written just now, or None.
    """

    def __init__(self, run: Run, *, worker: str, incarnation: str) -> None:
        self._run, self._worker, self._incarnation = run, worker, incarnation
        self.trouble: str | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = self._seal_asked = False
        self._must_seal = False  # before anything else is journaled
        self._error: BaseException | None = None
        self._waiting: deque[Games] = deque()  # finished
        self._waiting_positions = 0  # of those
        self._journaled: list[Games] = []  # acknowledged
        self._journal: Journal | None = None
        self._sequence = 0
        self._positions = self._bytes = 0  # of those
        self._oldest = self._synced = 0.0
        self._made = {"games": 0, "positions": 0, "full_positions": 0}
        self._sealed_full = 0
        self._thread = threading.Thread(target=self._work, name="store", daemon=True)

    def __enter__(self) -> Self:
        self._open_journal()  # a volume that cannot be written is found at once
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
        """Take one finished game, without waiting for the disk. Raises what has ended the thread."""
        if self._error:
            raise self._error
        with self._lock:
            self._waiting.append(games)
            self._waiting_positions += len(games.positions)
            self._made["games"] += len(games.games)
            self._made["positions"] += len(games.positions)
            self._made["full_positions"] += games.num_full

    def seal_soon(self) -> None:
        """Put all that was added onto the volume as a segment, whatever its age."""
        self._seal_asked = True
        self._wake.set()

    @property
    def is_full(self) -> bool:
        """So much waits for the disk that the worker has to. Raises what has ended the thread."""
        if self._error:
            raise self._error
        return self._waiting_positions >= BUFFER_POSITIONS

    @property
    def unsealed_full_positions(self) -> int:
        """Positions with a full search that no other process can see yet."""
        with self._lock:
            return self._made["full_positions"] - self._sealed_full

    def totals(self) -> dict[str, int]:
        """Return what this process has made: games, positions, full_positions."""
        with self._lock:
            return dict(self._made)

    def _work(self) -> None:
        try:
            while not (self._closing and not self._waiting and not self._journaled):
                try:
                    self._write()
                    self.trouble = None
                    pause = 0.0 if self._waiting else 0.1
                except OSError as error:
                    if self._closing or error.errno not in TRANSIENT:
                        raise
                    pause = 1.0
                    if self.trouble is None:
                        log.warning("games wait: cannot write to the volume: %s", error.strerror)
                    self.trouble = f"cannot write to the volume: {error.strerror}"
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
            self._positions += len(games.positions)
            self._bytes += games.nbytes
            if settings.store.sync_seconds == 0:
                self._sync()
            if self._positions >= settings.selfplay.seal_positions or self._bytes >= SEAL_BYTES:
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
            self._must_seal = True  # what the disk has of it is unknown, but a segment is a new file
            raise

    def _seal(self) -> None:
        """Write what is in the journal as a segment, and begin the next journal.

        If that fails the segment may be there all the same, and whoever adopts the journal would hold all of it for
        sealed: so nothing more goes into it.
        """
        self._must_seal = True
        for name in list_segments(self._run.segments):
            if (name.incarnation, name.sequence) == (self._incarnation, self._sequence):
                # an earlier try that succeeded all the same, or somebody who held this process for dead
                self._forget(set(read_segment(self._run.segments / str(name), self._run.game).games["id"]))
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
            self._forget({games.games["id"][0] for games in self._journaled})
            self._sequence += 1
        journal, self._journal = self._journal, None
        assert journal is not None
        journal.close()
        if not self._closing:
            self._open_journal()
        self._must_seal = False

    def _forget(self, sealed: set[int]) -> None:
        with self._lock:
            before, kept = self._journaled, [each for each in self._journaled if each.games["id"][0] not in sealed]
            self._sealed_full += sum(each.num_full for each in before) - sum(each.num_full for each in kept)
            self._journaled = kept
        self._positions = sum(len(games.positions) for games in kept)
        self._bytes = sum(games.nbytes for games in kept)

    def _open_journal(self) -> None:
        self._synced = time.monotonic()
        self._journal = Journal(
            self._run.journals,
            self._run.game,
            worker=self._worker,
            incarnation=self._incarnation,
            sequence=self._sequence,
        )
