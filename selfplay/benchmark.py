"""How fast a worker plays, beside what its network alone would allow: in one process, in turns, so that both share a
machine's moods."""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING
from plyzero.run.directory import Run
from plyzero.search import rule_calls
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.search.mcts import take_answer
from plyzero.search.numba_arrays import borrowed
from plyzero.search.onnx_network import Network
from plyzero.search.slots import SearchSlots
from plyzero.search.tree import Trees
from selfplay import games_in_play
from selfplay.games_in_play import GamesInPlay
from selfplay.replay_writer import ReplayWriter

VERSION: Final = 1
SLICE_SECONDS: Final = 0.5
"""Of one turn."""

WARM_SECONDS: Final = 2.0
"""Not counted: caches fill, and all games leave their openings."""


def measure(run: Run, network: Network, *, seconds: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Play games of `run` into its store in turns with `network` alone, for `seconds` in all; return a JSON object.

    docs/formats.md lists its fields. The batch of the network alone is one that the games asked for; threads are the
    same. tell: is called with what goes on, for people.
    """
    began = time.perf_counter()
    with ReplayWriter(run, worker="bench", incarnation="00000000") as store:
        tell("the first moves")
        worker = TimedWorker(run, network, store)
        worker.play(0)
        first_move = time.perf_counter() - began
        tell("warming up")
        worker.warm_up()
        batch, made = worker.batch, np.zeros(4, np.int64)
        turns: list[tuple[Turn, Turn]] = []
        deadline = time.perf_counter() + seconds
        while not turns or time.perf_counter() < deadline:
            made -= worker.counts()
            mine = timed(worker.play)
            made += worker.counts()
            turns.append((mine, timed(lambda limit: evaluate_alone(network, batch, limit))))
            tell(f"{mine.per_second:.0f} of {turns[-1][1].per_second:.0f} evaluations/s")
            worker.play_clocked(SLICE_SECONDS / 2)
    played, alone = sum_of([turn[0] for turn in turns]), sum_of([turn[1] for turn in turns])
    ratios = [mine.per_second / its.per_second for mine, its in turns]
    moves, simulations, looked_for, found = made.tolist()
    return {
        "version": VERSION,
        "game": run.game.identity,
        "network": network.label,
        "slots": run.settings.selfplay.parallel_games,
        "threads": run.settings.selfplay.threads,
        "batch": len(batch),
        "slices": len(turns),
        "evaluations_per_second": round(played.per_second, 1),
        "ceiling_per_second": round(alone.per_second, 1),
        "share_of_ceiling": round(played.per_second / alone.per_second, 4),
        "share_of_ceiling_quartiles": [round(float(each), 4) for each in np.quantile(ratios, (0.25, 0.5, 0.75))],
        "share_of_ceiling_cpu": round(played.per_cpu_second / alone.per_cpu_second, 4),
        "cache_hit_rate": round(found / max(1, looked_for), 4),
        "simulations_per_second": round(simulations / played.seconds, 1),
        "simulations_of_ceiling": round(simulations / played.seconds / alone.per_second, 4),
        "positions_per_second": round(moves / played.seconds, 1),
        "first_move_seconds": round(first_move, 2),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10),
        "shares": worker.shares(),
    }


@dataclass(frozen=True)
class Turn:
    """What was done in one turn, or in several."""

    evaluations: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.evaluations / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.evaluations / self.cpu_seconds


def timed(act: Callable[[float], int]) -> Turn:
    """Let `act` make evaluations for SLICE_SECONDS."""
    began, cpu = time.perf_counter(), time.process_time()
    evaluations = act(SLICE_SECONDS)
    return Turn(evaluations, time.perf_counter() - began, time.process_time() - cpu)


def sum_of(turns: list[Turn]) -> Turn:
    """Return all of `turns` as one."""
    return Turn(*(sum(getattr(turn, name) for turn in turns) for name in ("evaluations", "seconds", "cpu_seconds")))


def evaluate_alone(network: Network, batch: NDArray[np.float32], seconds: float) -> int:
    """Do nothing but evaluate `batch`, `[n, C, H, W]`, again and again; return how many positions that were."""
    evaluations, leaves, deadline = 0, EvaluationBatch(batch, list), time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        network(leaves)
        evaluations += len(batch)
    return evaluations


class TimedWorker:
    """What a worker does between two looks at the volume.

    batch:       observations of the widest batch so far, `[n, C, H, W]`.
    """

    def __init__(self, run: Run, network: Network, store: ReplayWriter) -> None:
        self._network, self._store = network, store
        self._games = GamesInPlay(run.game.start, run.settings, seeds=count())
        self.batch = np.zeros((0, *run.game.start.observation_shape), np.float32)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def play(self, seconds: float) -> int:
        """Play for so long, and until at least one move is found; return how many positions were evaluated."""
        search, moves = self._games.search, self._games.moves
        before, deadline = search.evaluations, time.perf_counter() + seconds
        while time.perf_counter() < deadline or self._games.moves == moves:
            for games in self._games.run(self._evaluate, fence=1, step=1):
                self._store.add(games)
        return search.evaluations - before

    def warm_up(self) -> None:
        """Play for WARM_SECONDS, of which the clocks forget."""
        self.play_clocked(WARM_SECONDS)
        self._seconds.clear()

    def play_clocked(self, seconds: float) -> None:
        """Play on with a clock at each part, for `shares`: a little slower than without."""
        games, search = self._games, self._games.search
        parts = {
            (games_in_play, "play_on"): self._step_by_step(games_in_play.play_on),
            (games, "_finish"): self._clocked("record", games._finish),
            (search, "_read_plain_positions"): self._clocked("rules", search._read_plain_positions),
            (self._store, "add"): self._clocked("record", self._store.add),
            (self, "_network"): self._clocked("network", self._network),
        }
        before = {(owner, name): getattr(owner, name) for owner, name in parts}
        began, simulations = time.perf_counter(), games.simulations
        for (owner, name), call in parts.items():
            setattr(owner, name, call)
        self.play(seconds)
        for (owner, name), call in before.items():
            setattr(owner, name, call)
        self._seconds["all"] += time.perf_counter() - began
        if isinstance(search.position(0), CompiledGame):
            self._seconds["rules"] += (games.simulations - simulations) * seconds_of_rules(search)

    def counts(self) -> NDArray[np.int64]:
        """Return moves, their simulations, evaluations looked for in the cache, and found there, so far."""
        return np.array([self._games.moves, self._games.simulations, *self._games.search.trees.cache.counts])

    def shares(self) -> dict[str, float]:
        """Return part -> its share of the time in `play_clocked`. The rules of a compiled game are timed alone."""
        spent = self._seconds
        parts = {name: spent[name] for name in ("network", "select", "rules", "expand", "record")}
        if isinstance(self._games.search.position(0), CompiledGame):
            parts["select"] -= parts["rules"]
        parts["other"] = spent["all"] - sum(parts.values())
        return {name: round(part / spent["all"], 4) for name, part in parts.items()}

    def _evaluate(self, leaves: EvaluationBatch) -> Evaluation:
        if len(leaves.observations) > len(self.batch):
            self.batch = leaves.observations.copy()
        return self._network(leaves)

    def _clocked(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = call(*arguments)
            self._seconds[part] += time.perf_counter() - began
            return result

        return clocked

    def _step_by_step(self, play_on: Callable[..., int]) -> Callable[..., int]:
        """Return what hands the answer out in a call of its own before it plays on."""
        expand, select = self._clocked("expand", take_answers), self._clocked("select", play_on)

        def step(trees: Trees, logits: NDArray[np.float32], wdl: NDArray[np.float32], *arguments: Any) -> int:
            expand(trees, logits, wdl)
            waiting: int = select(trees, logits[:0], wdl[:0], *arguments)
            return waiting

        return step


@numba.njit(cache=True)
def take_answers(trees: Trees, logits: NDArray[np.float32], wdl: NDArray[np.float32]) -> None:
    """Give each slot that waits its row of the answer, as `advance_all` does before it moves on."""
    trees = borrowed(trees)
    for b in range(len(trees.slots)):
        take_answer(trees, b, logits, wdl)


def seconds_of_rules(search: SearchSlots) -> float:
    """Return what a compiled game's rules need to make and to read one position, on average over those searched."""
    rules = search.trees.rules
    position = search.position(0)
    mask, planes = np.zeros(position.num_actions, np.bool_), np.zeros(position.observation_shape, np.float32)
    states = search.trees.states[:, 0].copy()
    read_followers(states[:1], states[0].copy(), mask, planes, 1, rules)  # compiles
    began = time.perf_counter()
    positions: int = read_followers(states, states[0].copy(), mask, planes, 200, rules)
    return (time.perf_counter() - began) / positions


@numba.njit(cache=True)
def read_followers(
    states: NDArray[np.uint8],
    scratch: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    planes: NDArray[np.float32],
    repeats: int,
    rules: Any,
) -> int:
    """Make and read a position that follows each of `states`, `[n, S]`, `repeats` times; return how many were made."""
    made = 0
    for b in range(len(states)):
        mask[:] = False
        rule_calls.legal(rules, states[b], mask)
        first = int(np.argmax(mask))
        for _ in range(repeats):
            scratch[:] = states[b]
            rule_calls.play(rules, scratch, first)
            made += 1
            if rule_calls.outcome(rules, scratch) == ONGOING:
                mask[:] = False
                rule_calls.legal(rules, scratch, mask)
                planes[:] = 0
                rule_calls.observe(rules, scratch, planes)
    return made
