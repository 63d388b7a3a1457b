"""Why a worker should wait just now, if it should: nothing is dropped, and nobody sleeps while nothing moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from plyzero.files import free_bytes
from plyzero.run.directory import Run
from plyzero.run.metrics import TRAINER, number, read_heartbeat
from plyzero.run.segments import list_segments
from selfplay.replay_writer import ReplayWriter

LOOK_SECONDS: Final = 1.0
"""How often the volume is looked at."""

PROGRESS_SECONDS: Final = 30.0
"""A trainer that has trained nothing for so long holds nobody back."""


class Backpressure:
    """One worker's."""

    def __init__(self, run: Run, store: ReplayWriter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._store = run, store
        self._trainer = TrainerWatch(clock)
        self._free = self._bootstrap = 0
        self._has_model = False
        self.look()

    def look(self) -> None:
        """Look at the volume, which may take its time; to be called every LOOK_SECONDS."""
        self._free = free_bytes(self._run.root)
        self._trainer.look(read_heartbeat(self._run.workers / f"{TRAINER}.json"))
        if not self._has_model:
            self._bootstrap = sum(name.full for name in list_segments(self._run.segments) if name.bootstrap)

    def reason(self, *, has_model: bool) -> str | None:
        """Return why to wait, None = play on. Asked before every batch, so it looks at nothing but what is known."""
        self._has_model = has_model
        settings, store = self._run.settings, self._store
        if store.is_full:
            return f"paused: {store.trouble or 'the volume does not take games as fast as they are made'}"
        if self._free < settings.store.min_free_mb << 20:
            free, reserve = self._free >> 20, settings.store.min_free_mb
            return f"paused: the volume has {free} MB left, store.min_free_mb is {reserve}; make room"
        if not has_model and self._bootstrap_is_over():
            store.seal_soon()
            return "waiting for the first model"
        if has_model and settings.selfplay.when_ahead == "throttle" and self._trainer.has_plenty():
            return "waiting for the trainer: it has enough to learn from"
        return None

    def _bootstrap_is_over(self) -> bool:
        """Without a network a worker would drown the store in seconds, so that phase is bounded, over all workers.

        They may overshoot by what they have not sealed, an eighth each.
        """
        limit, unsealed = self._run.settings.selfplay.bootstrap_positions, self._store.unsealed_full_positions
        if unsealed >= limit / 8:
            self._store.seal_soon()
            self.look()  # the others count it soon, and so must we
        return self._bootstrap + unsealed >= limit


class TrainerWatch:
    """What the trainer says of itself, and whether it moves, judged by this process's clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._beat: dict[str, Any] = {}
        self._trained: float | None = None
        self._moved = -PROGRESS_SECONDS

    def look(self, beat: dict[str, Any] | None) -> None:
        """Take notice of the newest heartbeat, None if there is none that can be read."""
        self._beat = beat or {}
        if beat is None:
            return
        trained = number(beat, "trained_positions")
        if self._trained not in (None, trained):
            self._moved = self._clock()
        self._trained = trained

    def has_plenty(self) -> bool:
        """Tell whether it can train for a while without another game, and is seen to do so.

        Its progress counts, not that it lives: one that hangs with a full account would put everybody to sleep.
        """
        enough = number(self._beat, "credit_enough")
        has_credit = 0 < enough <= number(self._beat, "credit")
        return has_credit and self._clock() - self._moved < PROGRESS_SECONDS
