"""The speed of a worker beside that of its network alone: one process, in turns, so both see the same machine load."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.network.onnx_network import Network
from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.game import ONGOING
from plyzero.run.directory import Run
from plyzero.search import rule_calls
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.slots import SearchSlots
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter

VERSION: Final = 2  # of the JSON object that `measure` returns
WARM_SECONDS: Final = 2.0  # not counted at the start: caches fill, and all games leave their openings
MANY_HITS: Final = 0.9  # share of look-ups above which the cache, and not the network, evaluates a game
LITTLE_NETWORK: Final = 0.2  # share of the worker's time below which the network does not limit it


def measure(run: Run, network: Network, *, seconds: float, on_progress: Callable[[str], None]) -> dict[str, object]:
    """Play games of `run` into its store in turns with `network` alone, for `seconds` in all; return a JSON object.

    docs/formats.md lists its fields. The network alone evaluates one batch of the games, with equal threads.
    on_progress: called with a sentence about what goes on.
    """
    began = time.perf_counter()
    with ReplayWriter(run, worker="bench", incarnation="00000000") as writer:
        on_progress("the first moves")
        worker = MeasuredWorker(run, network, writer)
        worker.play(0)
        first_move = time.perf_counter() - began
        on_progress("warming up")
        worker.play(WARM_SECONDS)
        batch, before = worker.batch, worker.counts()
        worker.reset_clocks()
        turns: list[Turn] = []
        turns_alone: list[Turn] = []
        deadline = time.perf_counter() + seconds
        while not turns or time.perf_counter() < deadline:
            turns.append(timed(worker.play))
            turns_alone.append(timed(lambda limit: evaluate_alone(network, batch, limit)))
            on_progress(f"{turns[-1].per_second:.0f} of {turns_alone[-1].per_second:.0f} evaluations/s")
        counts = worker.counts() - before
    played, alone = (Turn(*(sum(column) for column in zip(*each, strict=True))) for each in (turns, turns_alone))
    time_shares = worker.shares(played.seconds, simulations=int(counts[SIMULATIONS]))
    hit_rate = int(counts[HITS]) / max(1, int(counts[LOOK_UPS]))
    shares = [turn.per_second / its.per_second for turn, its in zip(turns, turns_alone, strict=True)]
    return {
        "version": VERSION,
        "game": run.game.identity,
        "network": network.label,
        "parallel_games": run.settings.selfplay.parallel_games,
        "threads": run.settings.selfplay.threads,
        "batch": len(batch),
        "slices": len(turns),
        "evaluations_per_second": round(played.per_second, 1),
        "ceiling_per_second": round(alone.per_second, 1),
        "share_of_ceiling": round(played.per_second / alone.per_second, 4),
        "share_of_ceiling_quartiles": [round(float(each), 4) for each in np.quantile(shares, (0.25, 0.5, 0.75))],
        "share_of_ceiling_cpu": round(played.per_cpu_second / alone.per_cpu_second, 4),
        "cache_hit_rate": round(hit_rate, 4),
        "simulations_per_second": round(int(counts[SIMULATIONS]) / played.seconds, 1),
        "simulations_of_ceiling": round(int(counts[SIMULATIONS]) / played.seconds / alone.per_second, 4),
        "positions_per_second": round(int(counts[MOVES]) / played.seconds, 1),
        "first_move_seconds": round(first_move, 2),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10),
        "shares": time_shares,
        "solved_by_cache": hit_rate > MANY_HITS and time_shares["network"] < LITTLE_NETWORK,
    }


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


MOVES, SIMULATIONS, LOOK_UPS, HITS = range(4)
"""Places in `MeasuredWorker.counts`."""


class MeasuredWorker:
    """A worker without its volume's model watch and heartbeat, and with a clock at its network and its store.

    batch: observations of the widest batch so far, `[n, C, H, W]`.
    """

    def __init__(self, run: Run, network: Network, writer: ReplayWriter) -> None:
        self._network, self._writer = network, writer
        self._games = GamesInPlay(run.game.start, run.settings, seeds=count())
        self.batch = np.zeros((0, *run.game.start.observation_shape), np.float32)
        self._network_seconds = self._writer_seconds = 0.0
        self._before = self._seconds()

    def play(self, seconds: float) -> int:
        """Play for `seconds`, and until at least one move is found; return how many positions were evaluated."""
        search, moves = self._games.search, self._games.moves
        before, deadline = search.evaluations, time.perf_counter() + seconds
        while time.perf_counter() < deadline or self._games.moves == moves:
            for games in self._games.run(self._evaluate, fence=1, step=1):
                began = time.perf_counter()
                self._writer.add(games)
                self._writer_seconds += time.perf_counter() - began
        return search.evaluations - before

    def counts(self) -> NDArray[np.int64]:
        """Return the numbers of moves, of their simulations, of look-ups in the cache, and of hits, so far."""
        cache = self._games.search.trees.cache.state[0]
        return np.array([self._games.moves, self._games.simulations, cache["look_ups"], cache["hits"]])

    def reset_clocks(self) -> None:
        """Let `shares` count from now on."""
        self._before = self._seconds()

    def shares(self, played_seconds: float, *, simulations: int) -> dict[str, float]:
        """Return part -> its share of `played_seconds`, the time in `play` since `reset_clocks`.

        simulations: made in that time. The rules of a compiled game are timed alone, and taken from the search's time.
        """
        spent = {part: seconds - self._before[part] for part, seconds in self._seconds().items()}
        if isinstance(self._games.search.position(0), CompiledGame):
            spent["rules"] = simulations * seconds_of_rules(self._games.search)
            spent["search"] -= spent["rules"]
        spent["other"] = played_seconds - sum(spent.values())
        return {part: round(seconds / played_seconds, 4) for part, seconds in spent.items()}

    def _seconds(self) -> dict[str, float]:
        games = self._games.seconds
        return {
            "network": self._network_seconds,
            "search": games["search"],
            "rules": games["rules"],
            "record": games["record"] + self._writer_seconds,
        }

    def _evaluate(self, batch: EvaluationBatch) -> Evaluation:
        if len(batch.observations) > len(self.batch):
            self.batch = batch.observations.copy()
        began = time.perf_counter()
        evaluation = self._network(batch)
        self._network_seconds += time.perf_counter() - began
        return evaluation


def seconds_of_rules(search: SearchSlots) -> float:
    """Return what a compiled game's rules need to play and read one position, on average over those being searched."""
    rules = search.trees.rules
    position = search.position(0)
    mask, planes = np.zeros(position.num_actions, np.bool_), np.zeros(position.observation_shape, np.float32)
    chances = np.zeros(position.num_chances, np.float32)
    states = search.trees.states[:, 0].copy()
    read_followers(states[:1], states[0].copy(), mask, planes, chances, 1, rules)  # compiles
    began = time.perf_counter()
    positions: int = read_followers(states, states[0].copy(), mask, planes, chances, 200, rules)
    return (time.perf_counter() - began) / positions


@cached_njit
def read_followers(
    states: NDArray[np.uint8],
    scratch: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    planes: NDArray[np.float32],
    chances: NDArray[np.float32],
    repeats: int,
    rules: Rules,
) -> int:
    """Play and read a position that follows each of `states`, `[n, S]`, `repeats` times; return how many there were."""
    made = 0
    for b in range(len(states)):
        mask[:] = False
        rule_calls.legal(rules, states[b], mask)
        first = int(np.argmax(mask))
        for _ in range(repeats):
            scratch[:] = states[b]
            rule_calls.play(rules, scratch, first)
            made += 1
            if rule_calls.outcome(rules, scratch) == ONGOING and not rule_calls.is_chance(rules, scratch, chances):
                mask[:] = False
                rule_calls.legal(rules, scratch, mask)
                planes[:] = 0
                rule_calls.observe(rules, scratch, planes)
    return made
