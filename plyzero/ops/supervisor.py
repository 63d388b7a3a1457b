"""Training on one machine: workers, a trainer, and a line for every model they make."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

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

RATING_SHARE = 0.1
"""Of this process's time at most goes into measuring strength."""


class ChildFailedError(Exception):
    """A worker or the trainer ended by itself; says which, and its last words."""


@dataclass(frozen=True)
class Report:
    """What is shown of one published model.

    seconds: since training began, this time. positions_per_second: recorded since the report before.
    fields:  the trainer's line in metrics.
    """

    seconds: float
    positions_per_second: float
    fields: dict[str, Any]


@dataclass(frozen=True)
class Rating:
    """The strength of one published model. step: of the model. scores: opponent -> the model's result."""

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
    report: Callable[[Report], None],
    rated: Callable[[Rating], None] = lambda _: None,
    doing: Callable[[str], None] = lambda _: None,
    until: Callable[[Network], bool] = lambda _: False,
) -> None:
    """Run `workers` and a trainer until `stop` is set, for at most `minutes`, or until `until` holds of a new model.

    report: called for every model. rated: for those whose strength is measured, when it is.
    doing: told every two seconds what everybody does.
    Raises ChildFailedError. However this function ends, the processes are stopped in order first.
    """
    began = time.monotonic()
    size, seen = _metrics_size(run), len(_trainer_lines(run))
    positions, at = 0, 0.0
    observer, next_look = LivenessMonitor(run), 0.0
    with closing(Rater(run)) as rater, children(run, workers=workers, device=device, options=options) as running:
        while not stop.wait(0.25) and (minutes is None or time.monotonic() - began < 60 * minutes):
            fail_if_any_ended(running)
            if time.monotonic() >= next_look:
                observer.look()
                doing(_what_everybody_does(observer))
                next_look = time.monotonic() + BEAT_SECONDS
            if rating := rater.finished():
                rated(rating)
            if (grown := _metrics_size(run)) == size:
                continue  # reading everything again four times a second is too much in a run of days
            size = grown
            lines = _trainer_lines(run)
            for fields in lines[seen:]:
                name = ModelName.parse(str(fields.get("model")))
                if name is None:
                    continue
                network = load_model(run.models, name, run.game)
                if fields is lines[-1]:
                    rater.offer(network)
                speed = (fields["positions"] - positions) / (fields["time"] - at) if positions else 0.0
                positions, at = fields["positions"], fields["time"]
                report(Report(time.monotonic() - began, speed, fields))
                if until(network):
                    return
            seen = len(lines)
        fail_if_any_ended(running)


def fail_if_any_ended(running: Sequence[Child]) -> None:
    """Raise ChildFailedError if one of the processes has ended before it was asked to."""
    for child in running:
        if child.exit_code() is not None:
            raise ChildFailedError(f"{child.name} stopped by itself: {child.last_words()} (see {child.log})")


@contextmanager
def children(run: Run, *, workers: int, device: str, options: Sequence[str]) -> Iterator[list[Child]]:
    """Start the processes; at the end ask all of them to stop, and wait until they have."""
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
    """Measures new models against fixed opponents, beside the training, as often as its share of the time allows."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next = 0.0
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._done: queue.SimpleQueue[Rating | Exception] = queue.SimpleQueue()

    def offer(self, network: Network) -> None:
        """Measure this network, if none is being measured and it is time again."""
        busy = self._thread is not None and self._thread.is_alive()
        if not busy and time.monotonic() >= self._next:
            self._thread = threading.Thread(target=self._rate, args=(network,), name="rating")
            self._thread.start()

    def finished(self) -> Rating | None:
        """Return what has been measured since the last call, or None. Raises what went wrong."""
        try:
            found = self._done.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Give up what is being measured, and wait until it is: a thread that outlives the interpreter aborts it."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _rate(self, network: Network) -> None:
        began = time.monotonic()
        try:
            scores = {name: self._meet(name, network) for name in self._run.settings.rating.opponents}
            points = {name: [result.wins, result.draws, result.losses] for name, result in scores.items()}
            append_line(self._run.metrics / "rating.jsonl", {"model": network.label, "scores": points})
        except _StoppedError:
            return
        except Exception as error:
            self._done.put(error)
            return
        took = time.monotonic() - began
        self._next = time.monotonic() + took * (1 - RATING_SHARE) / RATING_SHARE
        self._done.put(Rating(network.step, scores))

    def _meet(self, opponent: str, network: Network) -> MatchResult:
        settings, start = self._run.settings, self._run.game.start
        rng = np.random.default_rng([self._run.seed, network.step])
        bot = Bot.of(network, simulations=settings.rating.simulations)
        other = find_player(opponent, self._run.game, rng)
        return play_match(bot, other, start, games=settings.rating.games, rng=rng, doing=self._go_on)

    def _go_on(self, finished: int, plies: int) -> None:
        if self._stopping.is_set():
            raise _StoppedError


class _StoppedError(Exception):
    pass


def _metrics_size(run: Run) -> int:
    return sum(path.stat().st_size for path in run.metrics.glob("trainer-*.jsonl"))


def _trainer_lines(run: Run) -> list[dict[str, Any]]:
    return [line for path in sorted(run.metrics.glob("trainer-*.jsonl")) for line in read_lines(path)]


def _what_everybody_does(observer: LivenessMonitor) -> str:
    alive = {name: beat["state"] for name, beat in observer.beats.items() if observer.judge(name) in ("ok", "stalled")}
    trainer = alive.pop(TRAINER, "starting")
    paused = next((f", others {state}" for state in alive.values() if state.startswith("paused")), "")
    return f"{sum(state == 'playing' for state in alive.values())} workers playing{paused}, trainer {trainer}"
