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
from numba import types
from numpy.typing import NDArray

from plyzero import compiled
from plyzero.compiled import bind
from plyzero.evaluate import Evaluation, Leaves
from plyzero.network import Network
from plyzero.run import Run
from plyzero.search import SearchSlots
from selfplay.game import GamesInPlay
from selfplay.store import Store

VERSION: Final = 1
SLICE_SECONDS: Final = 0.5
"""Of one turn."""

WARM_SECONDS: Final = 2.0
"""Not counted: caches fill, and all games leave their openings."""


def measure(run: Run, network: Network, *, seconds: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """Play games of `run` into its store for half of `seconds`, in turns with `network` alone; return a JSON object.

    docs/formats.md lists its fields. The batch of the network alone is one that the games asked for; threads are the
    same. tell: is called with what goes on, for people.
    """
    began = time.perf_counter()
    with Store(run, worker="bench", incarnation="00000000") as store:
        tell("the first moves")
        worker = TimedWorker(run, network, store)
        worker.play(0)
        first_move = time.perf_counter() - began
        tell("warming up")
        worker.play(WARM_SECONDS)
        worker.reset()
        batch = worker.batch
        turns: list[tuple[Turn, Turn]] = []
        deadline = time.perf_counter() + seconds
        while not turns or time.perf_counter() < deadline:
            turns.append((timed(worker.play), timed(lambda limit: evaluate_alone(network, batch, limit))))
            tell(f"{turns[-1][0].per_second:.0f} of {turns[-1][1].per_second:.0f} evaluations/s")
    played, alone = sum_of([turn[0] for turn in turns]), sum_of([turn[1] for turn in turns])
    ratios = [mine.per_second / its.per_second for mine, its in turns]
    return {
        "version": VERSION,
        "game": run.game.identity,
        "network": network.label,
        "slots": run.settings.selfplay.slots,
        "threads": run.settings.selfplay.threads,
        "batch": len(batch),
        "slices": len(turns),
        "evaluations_per_second": round(played.per_second, 1),
        "ceiling_per_second": round(alone.per_second, 1),
        "share_of_ceiling": round(played.per_second / alone.per_second, 4),
        "share_of_ceiling_quartiles": [round(float(each), 4) for each in np.quantile(ratios, (0.25, 0.5, 0.75))],
        "share_of_ceiling_cpu": round(played.per_cpu_second / alone.per_cpu_second, 4),
        "simulations_per_second": round(worker.simulations / played.seconds, 1),
        "positions_per_second": round(worker.moves / played.seconds, 1),
        "first_move_seconds": round(first_move, 2),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10),
        "shares": worker.shares(played.seconds),
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
    evaluations, leaves, deadline = 0, Leaves(batch, list), time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        network(leaves)
        evaluations += len(batch)
    return evaluations


class TimedWorker:
    """What a worker does between two looks at the volume, with a clock at each of its parts.

    batch:                          observations of the widest batch so far, `[n, C, H, W]`.
    evaluations, simulations, moves: made since the last `reset`.
    """

    def __init__(self, run: Run, network: Network, store: Store) -> None:
        self._network, self._store = network, store
        self._games = GamesInPlay(run.game.start, run.settings, seeds=count())
        self.batch = np.zeros((0, *run.game.start.observation_shape), np.float32)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        for name in ("run", "_advance_all", "_read_plain_position", "_receive"):
            self._clock(name)
        self.reset()

    def play(self, seconds: float) -> int:
        """Play for so long, and until at least one move is found; return how many positions were evaluated."""
        before, deadline = self.evaluations, time.perf_counter() + seconds
        while True:
            for games in self._games.run(self._evaluate, fence=1, step=1):
                self._store.add(games)
            if time.perf_counter() >= deadline:
                return self.evaluations - before

    def reset(self) -> None:
        """Count from here on."""
        self._seconds.clear()
        self.evaluations = self._games.simulations = self._games.moves = 0

    @property
    def simulations(self) -> int:
        return self._games.simulations

    @property
    def moves(self) -> int:
        return self._games.moves

    def shares(self, seconds: float) -> dict[str, float]:
        """Return part -> its share of the `seconds` played. The rules of a compiled game are timed alone."""
        spent = self._seconds
        rules = spent["_read_plain_position"] or self.evaluations * seconds_of_rules(self._games.search)
        select = spent["_advance_all"] - (0 if spent["_read_plain_position"] else rules)
        parts = {
            "network": spent["network"],
            "select": select,
            "rules": rules,
            "expand": spent["_receive"],
            "record": seconds - spent["run"],
            "other": spent["run"] - spent["network"] - select - rules - spent["_receive"],
        }
        return {name: round(part / seconds, 4) for name, part in parts.items()}

    def _evaluate(self, leaves: Leaves) -> Evaluation:
        began = time.perf_counter()
        evaluation = self._network(leaves)
        self._seconds["network"] += time.perf_counter() - began
        self.evaluations += len(leaves.observations)
        if len(leaves.observations) > len(self.batch):
            self.batch = leaves.observations.copy()
        return evaluation

    def _clock(self, name: str) -> None:
        call = getattr(self._games.search, name)

        def clocked(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = call(*arguments)
            self._seconds[name] += time.perf_counter() - began
            return result

        setattr(self._games.search, name, clocked)


def seconds_of_rules(search: SearchSlots) -> float:
    """Return what a compiled game's rules need to make and to read one position, on average over those searched."""
    read = bind(read_followers, search.rules)
    position = search.position(0)
    mask, planes = np.zeros(position.num_actions, np.bool_), np.zeros(position.observation_shape, np.float32)
    states = search.states[:, 0].copy()
    read(states, states[0].copy(), mask, planes, 1)  # compiles
    began = time.perf_counter()
    positions: int = read(states, states[0].copy(), mask, planes, 200)
    return (time.perf_counter() - began) / positions


def read_followers(
    states: NDArray[np.uint8],
    scratch: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    planes: NDArray[np.float32],
    repeats: int,
    play: Callable[..., None],
    outcome: Callable[..., int],
    legal: Callable[..., None],
    observe: Callable[..., None],
) -> int:
    """Make and read a position that follows each of `states`, `[n, S]`, `repeats` times; return how many were made."""
    made = 0
    for b in range(len(states)):
        mask[:] = False
        legal(states[b], mask)
        first = np.argmax(mask)
        for _ in range(repeats):
            scratch[:] = states[b]
            play(scratch, first)
            made += 1
            if outcome(scratch) == compiled.ONGOING:
                mask[:] = False
                legal(scratch, mask)
                planes[:] = 0
                observe(scratch, planes)
    return made


read_followers = numba.njit(
    types.int64(
        *(compiled.array_type(np.uint8, 2), compiled.STATE, compiled.MASK, compiled.PLANES, types.int64),
        *compiled.RULE_TYPES,
    ),
    cache=True,
)(read_followers)
