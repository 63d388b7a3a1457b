"""Training on one machine for `plyzero train`: start workers and a trainer, watch them, and report every model."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plyzero.ops.processes import Child
from plyzero.play.match import MatchResult, play_match
from plyzero.play.model_loader import load_model
from plyzero.play.players import Bot, find_player
from plyzero.run.directory import Run
from plyzero.run.liveness import LivenessMonitor
from plyzero.run.metrics import BEAT_SECONDS, TRAINER, append_line, read_lines
from plyzero.run.models import ModelName
from plyzero.search.onnx_network import Network

RATING_SHARE: Final = 0.1
"""Largest share of this process's time that is spent on measuring strength."""

POLL_SECONDS: Final = 0.25
"""Time between two checks of the child processes and of the metrics, in seconds."""


class ChildFailedError(Exception):
    """A worker or the trainer ended without being asked to. The message names it and has the last line of its log."""


@dataclass(frozen=True)
class Report:
    """The report of one published model.

    seconds:              time since this call of `train` began.
    positions_per_second: positions that the trainer read per second since the previous report; 0 in the first one.
    fields:               the trainer's line of metrics.
    """

    seconds: float
    positions_per_second: float
    fields: dict[str, Any]


@dataclass(frozen=True)
class Rating:
    """The measured strength of one published model.

    step:   optimiser steps of the model.
    scores: opponent -> result of the model's games against it.
    """

    step: int
    scores: dict[str, MatchResult]


def train(
    run: Run,
    *,
    workers: int,
    minutes: float | None,
    stop: threading.Event,
    options: Sequence[str] = (),
    device: str = "auto",
    on_report: Callable[[Report], None],
    on_rating: Callable[[Rating], None] = lambda _: None,
    on_progress: Callable[[str], None] = lambda _: None,
    stop_when: Callable[[Network], bool] = lambda _: False,
) -> None:
    """Run `workers` and a trainer until `stop` is set, `minutes` are over, or `stop_when` is true of a new model.

    on_report:   called for every model.
    on_rating:   called for every model whose strength has been measured.
    on_progress: called every two seconds with a sentence that says what the processes are doing.

    Raises ChildFailedError. In every case all processes are stopped before this function ends.
    """
    began = time.monotonic()
    size, num_read = _metrics_size(run), len(_trainer_lines(run))
    last_positions, last_time = 0, 0.0
    monitor, next_refresh = LivenessMonitor(run), 0.0
    with closing(Rater(run)) as rater, children(run, workers=workers, device=device, options=options) as running:
        while not stop.wait(POLL_SECONDS) and (minutes is None or time.monotonic() - began < 60 * minutes):
            check_children(running)
            if time.monotonic() >= next_refresh:
                monitor.refresh()
                on_progress(_progress(monitor))
                next_refresh = time.monotonic() + BEAT_SECONDS
            if rating := rater.poll():
                on_rating(rating)
            if (new_size := _metrics_size(run)) == size:
                continue  # in a run of days it takes too long to read all metrics at every poll
            size = new_size
            lines = _trainer_lines(run)
            for fields in lines[num_read:]:
                name = ModelName.parse(str(fields.get("model")))
                if name is None:
                    continue
                network = load_model(run.models, name, run.game)
                if fields is lines[-1]:
                    rater.offer(network)
                positions, now = fields["positions"], fields["time"]
                speed = (positions - last_positions) / (now - last_time) if last_positions else 0.0
                last_positions, last_time = positions, now
                on_report(Report(seconds=time.monotonic() - began, positions_per_second=speed, fields=fields))
                if stop_when(network):
                    return
            num_read = len(lines)
        check_children(running)


def check_children(running: Sequence[Child]) -> None:
    """Raise ChildFailedError if one of the processes has ended without being asked to."""
    for child in running:
        if child.exit_code() is not None:
            raise ChildFailedError(f"{child.name} stopped by itself: {child.last_log_line()} (see {child.log})")


@contextmanager
def children(run: Run, *, workers: int, device: str, options: Sequence[str]) -> Iterator[list[Child]]:
    """Start the trainer and the workers; on exit ask all of them to stop, and wait until they have ended."""
    common = ["--run", str(run.root), *(part for option in options for part in ("-o", option))]
    running: list[Child] = []
    try:
        running.append(Child("trainer", ["trainer", *common, "--device", device], run.logs / "trainer.log"))
        for number in range(workers):
            name = f"w{number}"
            running.append(Child(name, ["selfplay", *common, "--name", name], run.logs / f"{name}.log"))
        yield running
    finally:
        for child in running:
            child.ask_to_stop()
        for child in running:
            child.wait(60)


class Rater:
    """Measures models against fixed opponents in a thread, for at most RATING_SHARE of the time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next_start = 0.0
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._results: queue.SimpleQueue[Rating | Exception] = queue.SimpleQueue()

    def offer(self, network: Network) -> None:
        """Start to measure this network if no other is being measured and RATING_SHARE allows it."""
        busy = self._thread is not None and self._thread.is_alive()
        if not busy and time.monotonic() >= self._next_start:
            self._thread = threading.Thread(target=self._rate, args=(network,), name="rating")
            self._thread.start()

    def poll(self) -> Rating | None:
        """Return a rating completed since the last call, or None. Raises the error that ended a measurement."""
        try:
            result = self._results.get_nowait()
        except queue.Empty:
            return None
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """Cancel the measurement and wait for its thread, which would abort the interpreter if it outlived it."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _rate(self, network: Network) -> None:
        began = time.monotonic()
        try:
            scores = {name: self._play(name, network) for name in self._run.settings.rating.opponents}
            points = {name: [result.wins, result.draws, result.losses] for name, result in scores.items()}
            append_line(self._run.metrics / "rating.jsonl", {"model": network.label, "scores": points})
        except _StoppedError:
            return
        except Exception as error:
            self._results.put(error)
            return
        took = time.monotonic() - began
        self._next_start = time.monotonic() + took * (1 - RATING_SHARE) / RATING_SHARE
        self._results.put(Rating(step=network.step, scores=scores))

    def _play(self, opponent: str, network: Network) -> MatchResult:
        settings, start = self._run.settings, self._run.game.start
        rng = np.random.default_rng([self._run.seed, network.step])
        bot = Bot.from_network(network, simulations=settings.rating.simulations)
        other = find_player(opponent, self._run.game, rng)
        return play_match(bot, other, start, games=settings.rating.games, rng=rng, on_progress=self._check_stopping)

    def _check_stopping(self, finished: int, plies: int) -> None:
        if self._stopping.is_set():
            raise _StoppedError


class _StoppedError(Exception):
    """Raised during a match to cancel it."""


def _metrics_size(run: Run) -> int:
    return sum(path.stat().st_size for path in run.metrics.glob("trainer-*.jsonl"))


def _trainer_lines(run: Run) -> list[dict[str, Any]]:
    return [line for path in sorted(run.metrics.glob("trainer-*.jsonl")) for line in read_lines(path)]


def _progress(monitor: LivenessMonitor) -> str:
    """Return a sentence that says what the living processes are doing."""
    alive = [name for name in monitor.heartbeats if monitor.liveness(name) in ("ok", "stalled")]
    states = {name: monitor.heartbeats[name]["state"] for name in alive}
    trainer = states.pop(TRAINER, "starting")
    paused = next((f", others {state}" for state in states.values() if state.startswith("paused")), "")
    playing = sum(state == "playing" for state in states.values())
    return f"{playing} worker{'' if playing == 1 else 's'} playing{paused}, trainer {trainer}"
