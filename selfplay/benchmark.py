"""The speed of a worker, and of its network alone: measured in turns in one process, so the machine load is equal."""

from __future__ import annotations

import functools
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import Network, reachable_observations
from plyzero.rules.game import Game
from plyzero.rules.random_game import few_random_games
from plyzero.run.directory import Run
from plyzero.search.evaluators import EvaluationBatch, RemoteEvaluator
from plyzero.selfplay.evaluated_games import EvaluatedGames
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.selfplay.replay_writer import ReplayWriter

WARM_SECONDS: Final = 2.0
"""Seconds at the start that are not counted: caches fill, and all games leave their openings."""

MANY_HITS: Final = 0.9
"""Hit rate above which the cache, and not the network, evaluates a game."""

LITTLE_NETWORK: Final = 0.2
"""Share of the worker's time below which the network does not limit its speed."""

RULES_PART: Final = 0.2
"""Part of the time in which the rules of a game in plain Python are timed one by one."""

RULES: Final = {
    "play": "play_unchecked",
    "outcome": "outcome",
    "legal_actions": "legal_actions",
    "observe": "observe",
    "chances": "chances",
}
"""Rule -> the method that a worker calls."""


def measure(
    run: Run,
    network: Network,
    *,
    seconds: float,
    on_progress: Callable[[str], None],
    remote: RemoteEvaluator | None = None,
) -> dict[str, object]:
    """Play games of `run` into its store in turns with `network` alone, for `seconds` in all; return a JSON object.

    docs/formats.md lists its fields. The network alone evaluates one batch of the games, with equal threads. In the
    last fifth of the time the rules of a game in plain Python are timed one by one, which slows them down a little.
    Shares are of CPU time, on which other processes have little influence, or with `remote` of time.

    on_progress: called with the current activity, as a clause.
    remote:      evaluates the games in place of `network`, which it serves.
    """
    is_plain = not run.game.start.is_compiled
    rules_seconds = RULES_PART * seconds if is_plain else 0.0
    began = time.perf_counter()
    with ReplayWriter(run, worker="bench", incarnation="00000000") as writer:
        on_progress("the first moves")
        worker = MeasuredWorker(run, network, writer, remote)
        worker.play(0)
        first_move = time.perf_counter() - began
        on_progress("warming up")
        worker.play(WARM_SECONDS)
        batch, before = worker.batch, worker.counts()
        worker.reset_clocks()
        turns: list[Turn] = []
        turns_alone: list[Turn] = []
        deadline = time.perf_counter() + seconds - rules_seconds
        while not turns or time.perf_counter() < deadline:
            turns.append(timed(worker.play))
            turns_alone.append(timed(lambda limit: evaluate_alone(network, batch, limit)))
            on_progress(f"{turns[-1].per_second:.0f} of {turns_alone[-1].per_second:.0f} evaluations/s")
        counts = worker.counts() - before
        time_shares = worker.shares(turns)
        rules = time_rules(worker, run.game.start, rules_seconds) if is_plain else {}
    selfplay = run.settings.selfplay
    return {
        "version": 2,
        "game": run.game.identity,
        "network": network.label,
        "precision": network.precision,
        "evaluator": remote is not None,
        "parallel_games": selfplay.parallel_games,
        "simulations": selfplay.simulations,
        "fast_simulations": selfplay.fast_simulations,
        "full_search_probability": selfplay.full_search_probability,
        "threads": selfplay.threads,
        "batch": len(batch),
        "slices": len(turns),
        **_rates(turns, turns_alone, counts, has_remote=remote is not None),
        "first_move_seconds": round(first_move, 2),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10),
        "shares": time_shares,
        "rules": rules,
        "solved_by_cache": _hit_rate(counts) > MANY_HITS and time_shares["network"] < LITTLE_NETWORK,
    }


def _rates(
    turns: Sequence[Turn], turns_alone: Sequence[Turn], counts: NDArray[np.int64], *, has_remote: bool
) -> dict[str, object]:
    """Return the fields of `measure` about speed."""
    played, alone = total(turns), total(turns_alone)
    shares = [turn.per_second / its.per_second for turn, its in zip(turns, turns_alone, strict=True)]
    return {
        "evaluations_per_second": round(played.per_second, 1),
        "ceiling_per_second": round(alone.per_second, 1),
        "share_of_ceiling": round(played.per_second / alone.per_second, 4),
        "share_of_ceiling_quartiles": [round(float(each), 4) for each in np.quantile(shares, (0.25, 0.5, 0.75))],
        "share_of_ceiling_cpu": None if has_remote else round(played.per_cpu_second / alone.per_cpu_second, 4),
        "cache_hit_rate": round(_hit_rate(counts), 4),
        "simulations_per_second": round(int(counts[SIMULATIONS]) / played.seconds, 1),
        "simulations_of_ceiling": round(int(counts[SIMULATIONS]) / played.seconds / alone.per_second, 4),
        "positions_per_second": round(int(counts[MOVES]) / played.seconds, 1),
    }


def _hit_rate(counts: NDArray[np.int64]) -> float:
    return int(counts[HITS]) / max(1, int(counts[LOOK_UPS]))


def time_rules(worker: MeasuredWorker, start: Game, seconds: float) -> dict[str, float]:
    """Let `worker` play for `seconds`; return rule -> share of this time, the largest first.

    The worker's game, in plain Python, begins at `start`.
    """
    began = worker.clock()
    with timed_rules(type(start), worker.clock) as spent:
        worker.play(seconds)
    played = worker.clock() - began
    by_share = sorted(spent.items(), key=lambda each: each[1], reverse=True)
    return {rule: round(its_seconds / played, 4) for rule, its_seconds in by_share if its_seconds}


@contextmanager
def timed_rules(game: type[Game], clock: Callable[[], float]) -> Iterator[dict[str, float]]:
    """Yield rule -> seconds of `clock` spent in this method of `game` while the body runs.

    The time of a rule that another rule calls belongs to the caller, as a cheaper caller would save it.
    """
    spent = dict.fromkeys(RULES, 0.0)
    is_inside = False

    def with_clock(rule: str, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def call(*arguments: object) -> object:
            nonlocal is_inside
            if is_inside:
                return method(*arguments)
            is_inside = True
            began = clock()
            try:
                return method(*arguments)
            finally:
                spent[rule] += clock() - began
                is_inside = False

        return call

    own = dict(vars(game))
    for rule, name in RULES.items():
        setattr(game, name, with_clock(rule, getattr(game, name)))
    try:
        yield spent
    finally:
        for name in RULES.values():
            if name in own:
                setattr(game, name, own[name])
            else:
                delattr(game, name)


class Turn(NamedTuple):
    """One turn, or the sum of several: positions evaluated, wall-clock time and CPU time."""

    evaluations: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.evaluations / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.evaluations / self.cpu_seconds


def total(turns: Sequence[Turn]) -> Turn:
    """Return the sum of several turns."""
    return Turn(
        evaluations=sum(turn.evaluations for turn in turns),
        seconds=sum(turn.seconds for turn in turns),
        cpu_seconds=sum(turn.cpu_seconds for turn in turns),
    )


def timed(evaluate_for: Callable[[float], int]) -> Turn:
    """Time one turn of half a second; `evaluate_for` takes its length and returns how many positions it evaluated."""
    began, cpu = time.perf_counter(), time.process_time()
    evaluations = evaluate_for(0.5)
    return Turn(evaluations, time.perf_counter() - began, time.process_time() - cpu)


def evaluate_alone(network: Network, observations: NDArray[np.float32], seconds: float) -> int:
    """Evaluate the same `observations`, `[n, C, H, W]`, again and again; return how many positions that were."""
    batch = EvaluationBatch(observations, list)
    evaluations, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        network(batch)
        evaluations += len(observations)
    return evaluations


def _mean_plies(start: Game) -> int:
    """Return the mean length of random games."""
    return round(float(np.mean([game.plies for game in few_random_games(start)])))


MOVES, SIMULATIONS, LOOK_UPS, HITS = range(4)
"""Places in `MeasuredWorker.counts`."""


class MeasuredWorker:
    """A worker without model watch and heartbeat, which also measures the time that its replay writer takes.

    Its games are at different plies from the beginning, as those of a worker are after a while: where rules are slow a
    measurement would see openings alone. With an evaluator they are not.

    batch: observations for one batch of its games, `[n, C, H, W]`.
    clock: measures its parts: CPU time, or time if another process evaluates.
    """

    def __init__(self, run: Run, network: Network, writer: ReplayWriter, remote: RemoteEvaluator | None = None) -> None:
        self._writer = writer
        self.clock = time.perf_counter if remote else time.process_time
        if remote:
            evaluated = EvaluatedGames(run, count(), ModelWatch.of_worker(run), remote)
            self._run, self._games = evaluated.run, evaluated.games
        else:
            spread = _mean_plies(run.game.start)
            games = GamesInPlay(run.game.start, run.settings, seeds=count(), spread=spread, clock=self.clock)
            self._games = [games]
            self._run = partial(self._games[0].run, network, fence=1, step=1)
        seen = reachable_observations(run.game)
        batch_size = run.settings.selfplay.parallel_games // len(self._games)
        self.batch = np.resize(seen, (batch_size, *seen.shape[1:]))
        self._writer_seconds = 0.0
        self._before = self._seconds()

    def play(self, seconds: float) -> int:
        """Play for `seconds`, and until at least one move is found; return how many positions were evaluated."""
        evaluations_before = self.evaluations
        moves_before = self.moves
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline or self.moves == moves_before:
            for games in self._run():
                began = self.clock()
                self._writer.add(games)
                self._writer_seconds += self.clock() - began
        return self.evaluations - evaluations_before

    @property
    def evaluations(self) -> int:
        """Number of positions evaluated so far."""
        return sum(games.search.evaluations for games in self._games)

    @property
    def moves(self) -> int:
        """Number of moves chosen by a search so far."""
        return sum(games.moves for games in self._games)

    def counts(self) -> NDArray[np.int64]:
        """Return the numbers of moves, their simulations, look-ups in the cache and hits so far."""
        caches = [games.search.trees.cache.state[0] for games in self._games]
        simulations = sum(games.simulations for games in self._games)
        looked = np.sum([(cache["look_ups"], cache["hits"]) for cache in caches], axis=0)
        return np.array([self.moves, simulations, *looked])

    def reset_clocks(self) -> None:
        """Begin to count the time of `shares` from now on."""
        self._before = self._seconds()

    def shares(self, turns: Sequence[Turn]) -> dict[str, float]:
        """Return part -> share of the time of `turns`, all since `reset_clocks`; `search` includes compiled rules."""
        played = total(turns)
        played_seconds = played.seconds if self.clock is time.perf_counter else played.cpu_seconds
        spent = {part: seconds - self._before[part] for part, seconds in self._seconds().items()}
        spent["other"] = played_seconds - sum(spent.values())
        return {part: round(seconds / played_seconds, 4) for part, seconds in spent.items()}

    def _seconds(self) -> dict[str, float]:
        spent = dict.fromkeys(("network", "search", "rules", "record"), 0.0)
        for games in self._games:
            for part, seconds in games.seconds.items():
                spent[part] += seconds
        spent["record"] += self._writer_seconds
        return spent
