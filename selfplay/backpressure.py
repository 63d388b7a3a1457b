"""Back-pressure: when a worker must wait. No game is dropped, and no worker waits for a trainer without progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from plyzero.files import Room, free_room
from plyzero.run.budget import find_done, read_trainer
from plyzero.run.directory import Run
from plyzero.run.events import Beat
from plyzero.run.segments import bootstrap_positions
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.volume_errors import FileErrors

REFRESH_SECONDS: Final = 1.0
"""Seconds between two readings of the volume."""

LOOKS_PER_SECOND: Final = 400.0
"""Readings that all workers of a run make in a second, at most."""

LONGEST_REFRESH_SECONDS: Final = 5.0
"""Longest time between two readings by the number of workers."""

PROGRESS_SECONDS: Final = 30.0
"""Seconds without a trained position until workers no longer wait for the trainer."""


class Backpressure:
    """Decides whether one worker must wait.

    done:    the part of the budget that is used up, "" while the run is not over.
    workers: number of workers of the run, as its trainer says; 1 if that is not known.
    """

    def __init__(self, run: Run, writer: ReplayWriter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._writer = run, writer
        self._clock = clock
        self._trainer = TrainerProgress(clock)
        self._free: Room | None = None  # unknown
        self._bootstrap_positions: int | None = None
        self._has_model = False
        self._file_errors = FileErrors(clock=clock)
        self._next_look = -math.inf
        self.done = ""
        self.workers = 1.0
        self.refresh()

    def look(self) -> None:
        """Refresh if it is time: less often where many workers do, at most every LONGEST_REFRESH_SECONDS."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + min(self.workers / LOOKS_PER_SECOND, LONGEST_REFRESH_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Read the state of the volume, which may be slow.

        After an error, which is logged once, the values read before stay in use.
        """
        beat = read_trainer(self._run)
        self._trainer.update(beat)
        self.done = find_done(self._run, beat)
        self.workers = max(1.0, beat.workers) if beat else 1.0
        with self._file_errors.skipping(self._run.root, "cannot be read"):
            self._free = free_room(self._run.local)
        with self._file_errors.skipping(self._run.segments, "cannot be read"):
            if not self._has_model:
                self._bootstrap_positions = bootstrap_positions(self._run.segments)

    @property
    def read_error(self) -> str | None:
        """A sentence about what cannot be read at the moment, or None."""
        return self._file_errors.read_error

    def reason(self, *, has_model: bool) -> str | None:
        """Return the reason why the worker must wait, or None. It is called before every batch, and reads no file."""
        self._has_model = has_model
        settings = self._run.settings
        store = settings.store
        writer = self._writer
        if writer.is_full:
            return f"paused: {writer.write_error or 'the volume is slower than self-play'}"
        if self._free is None or (self._bootstrap_positions is None and not has_model):
            return f"paused: cannot read the volume: {self._file_errors.summary or 'replay/ is missing'}"
        if self._free.bytes < store.min_free_mb << 20:
            left = f"{self._free.bytes >> 20} MB left, store.min_free_mb is {store.min_free_mb}"
            return f"paused: the volume has {left}; free some space"
        if self._free.files < store.min_free_files:
            left = f"room for {self._free.files} more files, store.min_free_files is {store.min_free_files}"
            return f"paused: the volume has {left}; remove some files"
        if not has_model and (self._trainer.trains() or self._bootstrap_is_complete()):
            writer.seal_soon()
            return "waiting for the first model"
        if has_model and settings.selfplay.when_ahead == "throttle" and self._trainer.has_enough():
            return "waiting for the trainer, which has enough positions"
        if has_model and settings.selfplay.when_ahead == "turns" and self._trainer.trains():
            return "waiting for the trainer, whose turn it is"
        return None

    def _bootstrap_is_complete(self) -> bool:
        """Return whether all workers together have played enough before the first model.

        Without a network, games are so fast that their number must be bounded. A worker counts the sealed positions and
        those that it has not sealed itself, so each other worker can exceed the bound by an eighth of it.
        """
        limit = self._run.settings.selfplay.bootstrap_positions
        unsealed = self._writer.unsealed_full_positions
        if unsealed >= limit / 8:
            self._writer.seal_soon()
            self.refresh()  # count what the others seal as soon as they do
        return (self._bootstrap_positions or 0) + unsealed >= limit


class TrainerProgress:
    """The trainer's newest heartbeat, and whether it makes progress, measured with the clock of this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._beat: Beat | None = None
        self._trained: float | None = None
        self._last_progress = -PROGRESS_SECONDS

    def update(self, beat: Beat | None) -> None:
        """Record the newest heartbeat; None if there is none that can be read."""
        self._beat = beat
        if beat is None:
            return
        if self._trained not in (None, beat.trained_positions):
            self._last_progress = self._clock()
        self._trained = beat.trained_positions

    def has_enough(self) -> bool:
        """Return whether the trainer can train for a while without another game, and is making progress.

        It is not enough that its process is alive: if it hung with a full credit, all workers would wait forever.
        """
        beat = self._beat
        return beat is not None and 0 < beat.credit_enough <= beat.credit and self._progresses()

    def trains(self) -> bool:
        """Return whether the trainer trains and is making progress."""
        return self._beat is not None and self._beat.state == "training" and self._progresses()

    def _progresses(self) -> bool:
        return self._clock() - self._last_progress < PROGRESS_SECONDS
