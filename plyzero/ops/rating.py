"""Ratings: the newest model plays against fixed opponents, beside the training, in a process of its own or a thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final, NamedTuple

import numpy as np

from plyzero.network.model_loader import load_model
from plyzero.network.onnx_network import Network
from plyzero.ops.failures import describe_error
from plyzero.play.match import play_match, random_openings
from plyzero.play.players import Bot, Player, find_player
from plyzero.play.ratings import MatchResult
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.run.budget import read_done
from plyzero.run.directory import Run
from plyzero.run.lease import hold
from plyzero.run.metrics import EventFile, Heartbeat, append_line, last_line
from plyzero.run.models import ModelName, list_models, model_of
from plyzero.threads import Thread
from plyzero.volume_errors import FileErrors

MATCH_SECONDS: Final = 20.0
"""Time per opponent, in seconds: as many games are played as fit, at least two, at most rating.games."""

MAX_MATCH_SECONDS: Final = 90.0
"""Time in seconds after which a match is given up, because not even two games are finished."""


log = logging.getLogger(__name__)


class Rating(NamedTuple):
    """The step of a published model, and opponent -> result of its games against it."""

    step: int
    scores: dict[str, MatchResult]

    def __str__(self) -> str:
        found = (f"{result} in {result.games} games against {opponent}" for opponent, result in self.scores.items())
        return f"step {self.step} scores {', '.join(found)}"


@contextmanager
def only_rater(run: Run) -> Iterator[None]:
    """Let no other process measure the models of a run meanwhile. Raises UserError if one does."""
    held = None
    with suppress(OSError):  # of the volume, on which nothing can be measured now
        held = hold(run.metrics / "rater.lock", refusal=lambda: f"another process measures the models of {run.root}")
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def run_rater(run: Run, *, stop: threading.Event) -> None:
    """Measure the newest model, whenever it has no score, until `stop` is set or the last one of a run is measured.

    Raises UserError if another process does.
    """
    heartbeat, file_errors = Heartbeat(*run.heartbeats("rater")), FileErrors()

    def report_ratings() -> None:
        while result := rater.poll():
            log.log(logging.INFO if isinstance(result, Rating) else logging.WARNING, "%s", result)

    with only_rater(run), closing(Rater(run, share=1.0)) as rater:
        while not stop.wait(1.0):
            report_ratings()
            with file_errors.skipping(run.root, "cannot be read"):
                done, name = read_done(run), rater.unmeasured()
                if name:
                    rater.offer(name, now=bool(done))
                elif done and not rater.is_busy:
                    report_ratings()
                    log.info("done: %s", done)
                    break
            heartbeat.beat({"role": "rater", "state": rater.doing or "waiting for a model"})
    heartbeat.beat({"role": "rater", "state": "stopped"}, force=True)


class Rater:
    """Measures models against fixed opponents in a thread, for at most a `share` of the time.

    doing: a sentence while a model is being measured, otherwise None.
    """

    def __init__(self, run: Run, *, share: float = 0.1, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._share, self._clock = run, share, clock
        self._next_start = 0.0
        self._thread: Thread | None = None
        self._stopping = threading.Event()
        self._results: deque[Rating | str] = deque()
        self._events = EventFile(run.tensorboard / "rating")
        self.doing: str | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a model is being measured."""
        return self._thread is not None and self._thread.is_alive()

    def unmeasured(self) -> ModelName | None:
        """Return the newest model of the run if it has no score yet."""
        newest = next(iter(list_models(self._run.models)), None)
        return newest if newest != model_of(last_line(self._run.metrics / "rating.jsonl") or {}) else None

    def offer(self, name: ModelName, *, now: bool = False) -> None:
        """Start to measure this model unless another one is being measured or it is too soon; `now`: never too soon."""
        if not self.is_busy and (now or self._clock() >= self._next_start):
            self._thread = Thread(self._rate, name, name="rating", daemon=False)
            self._thread.start()

    def poll(self) -> Rating | str | None:
        """Return a rating completed since the last call, or the reason why one failed, or None."""
        return self._results.popleft() if self._results else None

    def close(self) -> None:
        """Cancel the measurement and wait for its thread, which would abort the interpreter if it outlived it."""
        self._stopping.set()
        if self._thread:
            self._thread.join()
        self._stopping.clear()

    def _rate(self, name: ModelName) -> None:
        began, pause = self._clock(), 0.0
        scores: dict[str, MatchResult] = {}
        self.doing = f"loading step {name.step} to measure it"
        try:
            network = load_model(self._run.models, name, self._run.game, run_id=self._run.id)
            for opponent in self._run.settings.measured_opponents:
                self.doing = f"measuring step {name.step} against {opponent}"
                scores[opponent] = self._play(opponent, network)
            self._results.append(Rating(step=name.step, scores=scores))
            self._write_down(name, scores)
        except (_StoppedError, FileNotFoundError):
            pass  # cancelled, or removed meanwhile: the next one is measured
        except _SlowError as error:
            self._results.append(f"step {name.step} is not measured: {error}")
        except Exception as error:
            pause = 300.0  # seconds before the next one begins
            self._results.append(f"step {name.step} is not measured: {describe_error(error, self._run.game)}")
        finally:
            took = self._clock() - began
            self._next_start = self._clock() + max(pause, took * (1 - self._share) / self._share)
            self.doing = None

    def _write_down(self, name: ModelName, scores: dict[str, MatchResult]) -> None:
        self._events.add(name.step, {f"score/{opponent}": result.score for opponent, result in scores.items()})
        counts = {opponent: [result.wins, result.draws, result.losses] for opponent, result in scores.items()}
        points = {opponent: round(each.points, 3) for opponent, each in scores.items() if each.points is not None}
        line = {"model": str(name), "scores": counts} | ({"points": points} if points else {})
        try:
            append_line(self._run.metrics / "rating.jsonl", line)
        except OSError as error:
            self._results.append(f"the scores of step {name.step} are not written to rating.jsonl: {error.strerror}")

    def _play(self, opponent: str, network: Network) -> MatchResult:
        settings, start = self._run.settings.rating, self._run.game.start
        rng = np.random.default_rng([self._run.seed, network.step])
        began: float | None = None

        def check(*_: object) -> None:
            if self._stopping.is_set():
                raise _StoppedError
            if began is not None and self._clock() - began > MAX_MATCH_SECONDS:
                raise _SlowError(f"two games against {opponent} take more than {MAX_MATCH_SECONDS:.0f} s")

        learned = Bot.from_network(network, simulations=settings.simulations, search={"solver_nodes": 0})
        bot = _Checked(learned, check)
        other = _Checked(find_player(opponent, self._run.game, rng), check)
        openings = random_openings(start, min(4, start.max_plies // 5), rng, count=(settings.games + 1) // 2)
        for player in (bot, other):  # the first search loads compiled code, whose time must not count
            player.choose_all([first_decision(start)])
        began = self._clock()
        results: list[MatchResult] = []
        played, games = 0, 2
        while games:
            left = openings[played // 2 :]
            results.append(play_match(bot, other, start, games=games, rng=rng, openings=left, on_progress=check))
            played += games
            took = self._clock() - began
            affordable = int((MATCH_SECONDS - took) / max(took, 1e-3) * played) // 2 * 2
            games = max(0, min(settings.games - played, affordable))
        counts = [(each.wins, each.draws, each.losses, each.distinct) for each in results]
        wins, draws, losses, distinct = (sum(column) for column in zip(*counts, strict=True))
        return MatchResult(wins, draws, losses, distinct, leads=sum((each.leads for each in results), ()))


class _Checked:
    """A player that calls `check` before every batch of its search, so that even a slow move can be cancelled."""

    def __init__(self, player: Player, check: Callable[..., None]) -> None:
        self.name = player.name
        self._player, self._check = player, check

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        if not isinstance(self._player, Bot):
            return self._player.choose_all(positions)
        results = self._player.search(positions, on_batch=self._check)
        return [self._player.select_action(result) for result in results]


class _StoppedError(Exception):
    """Raised during a match to cancel it."""


class _SlowError(Exception):
    """Raised during a match that takes too long; the message says so."""
