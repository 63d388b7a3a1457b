"""Ratings: the newest model plays against fixed opponents, beside the training, in a process of its own or a thread."""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.network.model_loader import load_model
from plyzero.network.onnx_network import Network
from plyzero.ops.failures import describe_error
from plyzero.play.match import play_match, random_openings
from plyzero.play.player import Forfeit, ForfeitError, Player
from plyzero.play.players import Bot, find_player
from plyzero.play.scores import Estimate, MatchResult, Z
from plyzero.rules.chance import roll_dice
from plyzero.rules.game import Game
from plyzero.run.before import find_opponent
from plyzero.run.budget import budget_of_trainer, find_done, measured_opponents, read_done, read_trainer
from plyzero.run.directory import Run
from plyzero.run.events import BEFORE, CONFIRMED, RATINGS, Confirmation, has_passed, is_before, last_measured
from plyzero.run.lease import hold
from plyzero.run.metrics import EventFile, Heartbeat, append_line
from plyzero.run.models import ModelName, list_models
from plyzero.setting_types import parse_until
from plyzero.threads import Thread
from plyzero.volume_errors import FileErrors

MATCH_SECONDS: Final = 20.0
"""Time per opponent, in seconds: as many games are played as fit, at least two, at most rating.games."""

MAX_MATCH_SECONDS: Final = 90.0
"""Time in seconds after which a match is given up, because not even two games are finished."""

MOST_GAMES: Final = 400
"""Number of further games after which a condition of the budget is decided by their mean, in place of its interval."""

NICENESS: Final = 10
"""Added to the niceness of the process, as for workers: on few cores the rest goes on while a model is measured."""

HALF: Final = 0.5
"""Least score against the last model of the run before with which a model has passed it."""

PASSING_SECONDS: Final = 90.0
"""Time in seconds after which it stays undecided whether a model has passed that of the run before."""

PART_GAMES: Final = 20
"""Number of further games between two looks at their interval."""

log = logging.getLogger(__name__)


class Rating(NamedTuple):
    """The step of a published model, and opponent -> result of its games against it.

    confirmation: of the condition, that of the budget or to pass the run before, which these games had to confirm.
    has_passed:   whether the run has passed the last model of the run before; None = not asked, or not decided yet.
    """

    step: int
    scores: dict[str, MatchResult]
    confirmation: Confirmation | None = None
    has_passed: bool | None = None

    def __str__(self) -> str:
        found = (f"{each.short} in {each.games} games against {opponent}" for opponent, each in self.scores.items())
        text = f"step {self.step} scores {', '.join(found)}"
        if self.confirmation is not None:
            text += f", played because it had reached {self.confirmation['first']:.2f} before"
        if self.has_passed is not None:
            text += f": it has {'passed' if self.has_passed else 'not yet passed'} the last model of the run before"
        return text


@contextmanager
def only_rater(run: Run) -> Iterator[None]:
    """Let no other process measure the models of a run meanwhile. Raises UserError if one does."""
    held = None
    with suppress(OSError):  # a fault of the volume, on which nothing can be measured now
        held = hold(run.metrics / "rater.lock", refusal=lambda: f"another process measures the models of {run.root}")
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def check_opponents(run: Run) -> None:
    """Raise UserError if an opponent of the ratings of a run cannot be used here."""
    for name in measured_opponents(run.settings.rating, run.settings.budget):
        if not re.fullmatch(r"random|mcts:\d+", name):
            find_player(name, run.game, np.random.default_rng())


def run_rater(run: Run, *, stop: threading.Event) -> None:
    """Measure the newest model, whenever it has no score, until `stop` is set or the last one of a run is measured.

    Raises UserError if another process does, or if an opponent cannot be used.
    """
    check_opponents(run)
    heartbeat, file_errors = Heartbeat(*run.heartbeats("rater")), FileErrors()

    def report_ratings() -> None:
        while result := rater.poll():
            log.log(logging.INFO if isinstance(result, Rating) else logging.WARNING, "%s", result)

    last: ModelName | None = None  # the newest model of a run that is over, which is tried once
    with only_rater(run), closing(Rater(run, share=1.0)) as rater:
        while not stop.wait(1.0):
            report_ratings()
            with file_errors.skipping(run.root, "cannot be read"):
                done, name = read_done(run), rater.unmeasured()
                if done and rater.is_confirming:
                    rater.close()
                elif name and name != last:
                    last = name if done and not rater.is_busy else None
                    rater.offer(name, now=bool(done))
                elif done and not rater.is_busy:
                    report_ratings()
                    log.info("done: %s", done)
                    break
            state = rater.doing or "waiting for a model"
            heartbeat.beat({"role": "rater", "state": state, "read_error": file_errors.read_error})
    heartbeat.beat({"role": "rater", "state": "stopped"}, force=True)


class Rater:
    """Measures models against fixed opponents in a thread, for at most a `share` of the time.

    A model that reaches the condition of the budget, or half of the points against the last model of the run before,
    which may have been luck, plays on until that is decided.

    doing:         a sentence while a model is being measured, otherwise None.
    is_confirming: whether the model that is being measured plays on to confirm the condition of the budget.
    """

    def __init__(self, run: Run, *, share: float = 0.1, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._share, self._clock = run, share, clock
        self._next_start = 0.0
        self._thread: Thread | None = None
        self._stopping = threading.Event()
        self._results: deque[Rating | str] = deque()
        self._events = EventFile(run.tensorboard / "rating")
        self.doing: str | None = None
        self.is_confirming = False

    @property
    def is_busy(self) -> bool:
        """Whether a model is being measured."""
        return self._thread is not None and self._thread.is_alive()

    def unmeasured(self) -> ModelName | None:
        """Return the newest model of the run if it has no score yet."""
        newest = next(iter(list_models(self._run.models)), None)
        return newest if newest != last_measured(self._run.metrics) else None

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
        _be_nice()
        began, pause, took = self._clock(), 0.0, 0.0
        scores: dict[str, MatchResult] = {}
        self.doing = f"loading step {name.step} to measure it"
        try:
            network = load_model(self._run.models, name, self._run.game, run_id=self._run.id)
            budget = budget_of_trainer(self._run, read_trainer(self._run))
            before = find_opponent(self._run)
            opponents = measured_opponents(self._run.settings.rating, budget)
            for opponent in (*opponents, *([before] if before else [])):
                self.doing = f"measuring step {name.step} against {opponent}"
                scores[opponent] = self._play(opponent, network)
            to_pass = before if before and not has_passed(self._run.metrics) else None
            has_lost = to_pass is not None and scores[to_pass].score < HALF
            self._report(name, Rating(step=name.step, scores=scores, has_passed=False if has_lost else None))
            took = self._clock() - began
            if confirmed := self._confirm(network, scores):
                self._report(name, confirmed)
            if to_pass and not has_lost:
                self.is_confirming = False
                first = scores[to_pass].score
                self._report(name, self._play_on(network, "score", HALF, to_pass, first=first, seconds=PASSING_SECONDS))
        except (_StoppedError, FileNotFoundError):
            pass  # cancelled, or removed meanwhile: the next one is measured
        except _SlowError as error:
            self._results.append(f"step {name.step} is not measured: {error}")
        except Exception as error:
            pause = 300.0  # seconds before the next one begins
            self._results.append(f"step {name.step} is not measured: {describe_error(error, self._run.game)}")
        finally:
            took = took or self._clock() - began
            self._next_start = self._clock() + max(pause, took * (1 - self._share) / self._share)
            self.doing, self.is_confirming = None, False

    def _report(self, name: ModelName, rating: Rating) -> None:
        """Write a rating down, and let `poll` return it."""
        self._results.append(rating)
        scores = rating.scores
        self._events.add(name.step, {f"score/{opponent}": result.score for opponent, result in scores.items()})
        counts = {opponent: [result.wins, result.draws, result.losses] for opponent, result in scores.items()}
        points = {opponent: round(each.points, 3) for opponent, each in scores.items() if each.points is not None}
        line: dict[str, object] = {"model": str(name), "scores": counts}
        line |= {"points": points} if points else {}
        line |= {CONFIRMED: rating.confirmation} if rating.confirmation else {}
        try:
            append_line(self._run.metrics / RATINGS, line)
        except OSError as error:
            self._results.append(f"the scores of step {name.step} are not written to rating.jsonl: {error.strerror}")

    def _confirm(self, network: Network, scores: Mapping[str, MatchResult]) -> Rating | None:
        """Return the rating of further games, if a condition of the budget was reached and the training goes on."""
        beat = read_trainer(self._run)
        until = budget_of_trainer(self._run, beat).until
        if not until or find_done(self._run, beat):
            return None
        kind, least, opponent = parse_until(until)
        first = _estimate(scores[opponent], kind) if opponent in scores else None
        if first is None or first.value < least:
            return None
        self.is_confirming = True
        return self._play_on(network, kind, least, opponent, first=first.value)

    def _play_on(
        self, network: Network, kind: str, least: float, opponent: str, *, first: float, seconds: float = math.inf
    ) -> Rating:
        """Return the rating of further games, until the interval of their mean does not hold `least`.

        first:   their mean in the games before.
        seconds: time after which no more games are begun.
        """
        end = self._clock() + seconds
        match = _Match(self._run, opponent, network, games=MOST_GAMES, seed=1, check=self._check_stopped)
        result = MatchResult(0, 0, 0)
        while True:
            result += match.play(PART_GAMES)
            found = _estimate(result, kind)
            assert found is not None
            self.doing = (
                f"step {network.step} has reached {kind} {first:.2f} against {opponent} and plays on: "
                f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f}) in {result.games} more games"
            )
            is_decided = found.low >= least or found.high < least
            if is_decided or result.games >= MOST_GAMES or self._clock() >= end:
                break
        reached = found.low >= least or (found.value >= least and result.games >= MOST_GAMES)
        confirmation = Confirmation(
            quantity=f"{kind} against {opponent}",
            least=least,
            first=round(first, 4),
            value=round(found.value, 4),
            low=round(found.low, 4),
            high=round(found.high, 4),
            games=result.games,
            reached=reached,
        )
        has_passed = reached if is_before(opponent) else None
        return Rating(network.step, {opponent: result}, confirmation, has_passed)

    def _check_stopped(self, *_: object) -> None:
        if self._stopping.is_set():
            raise _StoppedError

    def _play(self, opponent: str, network: Network) -> MatchResult:
        """Return the result of as many games as there is time for, two at least."""
        began: float | None = None

        def check(*_: object) -> None:
            self._check_stopped()
            if began is not None and self._clock() - began > MAX_MATCH_SECONDS:
                raise _SlowError(f"two games against {opponent} take more than {MAX_MATCH_SECONDS:.0f} s")

        wanted = self._run.settings.rating.games
        match = _Match(self._run, opponent, network, games=wanted, check=check)
        began = self._clock()
        result, games = MatchResult(0, 0, 0), 2
        while games:
            result += match.play(games)
            took = self._clock() - began
            affordable = int((MATCH_SECONDS - took) / max(took, 1e-3) * result.games) // 2 * 2
            games = max(0, min(wanted - result.games, affordable))
        return result


def _be_nice() -> None:
    """Give this thread the niceness of a worker, where threads have their own."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + NICENESS)


def _estimate(result: MatchResult, kind: str) -> Estimate | None:
    """Return the mean score or the mean points of games, with a 95 % interval; None in a game without points."""
    if kind == "score":
        return Estimate(result.score, *result.interval())
    if result.points is None:
        return None
    half = Z * float(np.std(result.leads, ddof=1)) / math.sqrt(len(result.leads)) if len(result.leads) > 1 else math.inf
    return Estimate(result.points, result.points - half, result.points + half)


class _Match:
    """Games of a network against an opponent, in parts, from openings that are all different if there are enough."""

    def __init__(
        self, run: Run, opponent: str, network: Network, *, games: int, seed: int = 0, check: Callable[..., None]
    ) -> None:
        """Choose openings for `games` games.

        check: called before every batch of a search and after every move; it may raise an error.
        """
        self._start, self._check = run.game.start, check
        self._rng = np.random.default_rng([run.seed, network.step, seed])
        limits: dict[str, Any] = {"simulations": run.settings.rating.simulations, "search": {"solver_nodes": 0}}
        self._bot = _Checked(Bot.from_network(network, **limits), check)
        if is_before(opponent):
            other: Player = Bot.of_model(run.root / BEFORE, run.game, **limits)
        else:
            other = find_player(opponent, run.game, self._rng)
        self._other = _Checked(other, check)
        plies = min(4, self._start.max_plies // 5)
        self._openings = random_openings(self._start, plies, self._rng, count=(games + 1) // 2)
        position, rolls = roll_dice(self._start, np.random.default_rng(0))
        for player in (self._bot, self._other):  # the first search loads compiled code, whose time must not count
            player.choices([position], [rolls])

    def play(self, games: int) -> MatchResult:
        """Return the result of the next `games`; the number before them was even."""
        openings, self._openings = self._openings[: (games + 1) // 2], self._openings[games // 2 :]
        return play_match(
            self._bot,
            self._other,
            self._start,
            games=games,
            rng=self._rng,
            openings=openings,
            on_progress=self._check,
        )


class _Checked(Player):
    """A player that calls `check` before every batch of its search, so that even a slow move can be cancelled."""

    def __init__(self, player: Player, check: Callable[..., None]) -> None:
        self.name = player.name
        self._player, self._check = player, check

        self.games_at_once = player.games_at_once
        player.on_wait = check

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        if not isinstance(self._player, Bot):
            return self._player.choose_all(positions)
        results = self._player.search(positions, on_batch=self._check)
        return [self._player.select_action(result) for result in results]

    def choices(self, positions: Sequence[Game], moves: Sequence[Sequence[int]]) -> list[int | Forfeit]:
        if isinstance(self._player, Bot):
            return [*self.choose_all(positions)]
        choices = self._player.choices(positions, moves)
        for choice in choices:
            if isinstance(choice, Forfeit) and not choice.resigned:
                raise ForfeitError(choice.reason)  # a win over a player that fails measures nothing
        return choices


class _StoppedError(Exception):
    """Raised during a match to cancel it."""


class _SlowError(Exception):
    """Raised during a match that takes too long; the message says so."""
