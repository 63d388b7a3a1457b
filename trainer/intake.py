"""The intake: the games of each new segment enter the window and earn credit in the ledger, once, in writer's order."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from plyzero.run.budget import note_confirmation
from plyzero.run.directory import Run
from plyzero.run.events import RATINGS, Confirmation, NewLines, Progress
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, SegmentName
from plyzero.trainer.diagnosis.diagnostics import HELD_OUT, Diagnostics
from plyzero.trainer.ledger import Ledger
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.state import State
from plyzero.trainer.targets import MakeTargets, make_samples
from plyzero.trainer.window import Sampler, Window, window_size
from plyzero.volume_errors import FileErrors

POLL_SECONDS: Final = 1.0
"""Time between two listings of the store, in seconds."""

log = logging.getLogger(__name__)


class Intake:
    """The games that a trainer has read of its run, and the positions that it may train on.

    games:         number of games read.
    positions:     number of positions read.
    minutes:       time of training after the first game, in all starts, in minutes, at the last call of `ingest`.
    confirmed:     the confirmed ratings, by quantity.
    window:        the newest samples.
    rng:           the random numbers with which batches are sampled from the window.
    sampler:       samples these batches.
    ledger:        which positions were read and trained, and the credit to train more.
    diagnostics:   holds games out and measures the others.
    replay_reader: reads the segments.
    """

    def __init__(self, run: Run, make_targets: MakeTargets, *, ahead: bool) -> None:
        """ahead: sample the next batch while a GPU makes a step with this one."""
        self._run = run
        self._settings = run.settings.trainer
        self._make_targets = make_targets
        self.games = 0
        self.positions = 0
        self.minutes = 0.0
        self.confirmed: dict[str, Confirmation] = {}
        self.window = Window(run.game.start)
        self.rng = np.random.default_rng(run.seed)
        self.sampler = Sampler(partial(self.window.sample, self._settings.batch_size, self.rng), ahead=ahead)
        self.ledger = Ledger()
        self.diagnostics = Diagnostics(run.game, self._settings)
        self.replay_reader = ReplayReader(run)
        self._ratings = NewLines(run.metrics / RATINGS)
        self._file_errors = FileErrors()
        self._ingested_at: float | None = None  # None until there is a game

    def ingest(self, *, enough: Callable[[], bool], on_segment: Callable[[], None]) -> None:
        """Add the games of every new segment to window and ledger, each once and in its writer's order.

        enough:     whether to stop reading, asked before each segment.
        on_segment: called when a segment has been read: reading a long backlog is progress.
        """
        had_games = self.games
        for name, games in self.replay_reader.read_new(enough=enough):
            on_segment()
            self._add_to_window(name, games)
            self.diagnostics.record(name, games)
            self._count(name, games)
        self.ledger.cap(self._settings.replay_ratio * self.window_size())
        self._measure_time(has_new_games=self.games > had_games)
        with self._file_errors.skipping(self._run.metrics, "cannot be read"):
            for line in self._ratings.read():
                note_confirmation(self.confirmed, line)

    def progress(self, step: int) -> Progress:
        """Return what counts for the budget after `step` steps of the optimiser."""
        return Progress(
            step=step,
            games=self.games,
            positions=self.positions,
            minutes=round(self.minutes, 2),
            confirmed=self.confirmed,
        )

    def window_size(self) -> int:
        """Return the number of positions that the window should have."""
        own = self._settings
        return window_size(
            self.ledger.made, smallest=own.window_positions, growth=own.window_growth, exponent=own.window_exponent
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the fields of the trainer's state from which `load_state_dict` continues, and torch's random numbers.

        A batch that is being sampled ahead must have ended (`Sampler.pause`).
        """
        return {
            "games": self.games,
            "positions": self.positions,
            "torch_rng": torch.get_rng_state(),
            "rng": json.dumps(self.rng.bit_generator.state),
            "ledger": asdict(self.ledger),
            "cursor": self.replay_reader.cursor,
            "holes": self.replay_reader.missing_segments,
            "skipped": self.replay_reader.skipped,
            "invalid_games": self.replay_reader.invalid_games,
            "window": self.window.names,
            "minutes": self.minutes,
        }

    def load_state_dict(self, state: State) -> None:
        """Continue from a state of the trainer; segments of its window that are gone are only logged."""
        self.games = state["games"]
        self.positions = state["positions"]
        self.minutes = state.get("minutes", 0.0)
        torch.set_rng_state(state["torch_rng"])
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.ledger = Ledger(**state["ledger"])
        self.replay_reader.cursor = state["cursor"]
        self.replay_reader.missing_segments = state["holes"]
        self.replay_reader.skipped = state.get("skipped", {})  # plyzero 0.2 did not save it
        self.replay_reader.invalid_games = state.get("invalid_games", 0)
        for text in state["window"]:
            name = SegmentName.parse(text)
            assert name is not None
            try:
                self._add_to_window(name, self.replay_reader.read_again(name))
            except (OSError, SegmentError) as error:
                log.warning("no longer in the window: %s", error)

    def _count(self, name: SegmentName, games: Games) -> None:
        """Count the games of a segment, which earn credit."""
        self.games += len(games.games)
        self.positions += len(games.positions)
        if name.bootstrap:
            limit = self._run.settings.selfplay.bootstrap_positions
            self.ledger.earn_bootstrap(games.num_full, passes=self._settings.bootstrap_passes, limit=limit)
        else:
            self.ledger.earn(games.num_full, ratio=self._settings.replay_ratio)

    def _measure_time(self, *, has_new_games: bool) -> None:
        """Add the time since the last call to `minutes`, if there was a game by then."""
        now = time.monotonic()
        if self._ingested_at is not None:
            self.minutes += (now - self._ingested_at) / 60
        if self._ingested_at is not None or has_new_games:
            self._ingested_at = now

    def _add_to_window(self, name: SegmentName, games: Games) -> None:
        """Add the games of a segment to the window, and the held-out ones to the held-out positions."""
        size = self.window_size()
        held_out_size = -(-size // HELD_OUT)
        trained, held_out = self.diagnostics.split(games)
        self._add_samples(self.window, name, trained, size=size)
        self._add_samples(self.diagnostics.held_out, name, held_out, size=held_out_size)

    def _add_samples(self, window: Window, name: SegmentName, games: Games, *, size: int) -> None:
        settings = self._run.settings
        samples = make_samples(
            games,
            search=settings.search,
            trainer=settings.trainer,
            make_targets=self._make_targets,
            start=self._run.game.start if settings.network.points else None,
        )
        if len(samples.wdl):
            self.sampler.pause()
            window.add(str(name), samples, size=size)
