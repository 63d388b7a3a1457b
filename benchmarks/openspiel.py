"""Measure how fast OpenSpiel plays Connect Four against itself with a network of plyzero's, beside the network alone.

It needs an environment of its own: pip install open_spiel onnxruntime, and for OpenSpiel's AlphaZero with a network of
its own also jax flax optax chex. Everything runs in one thread.

python benchmarks/openspiel.py --net model.onnx --seconds 20
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy as np
import onnxruntime
import pyspiel
from numpy.typing import NDArray
from open_spiel.python.algorithms import mcts
from open_spiel.python.utils.lru_cache import CacheInfo, LRUCache

Activity = Callable[[Counter[str]], None]
"""Does a little, and counts it."""

CEILING = "network alone, batches of 64"
SIMULATIONS = 64
# The values of OpenSpiel's AlphaZero.

EXPLORATION = 1.41
"""Exploration constant of the search."""

NOISE = (0.25, 1.0)
"""Share and concentration of the noise."""

CACHED = 2**16
"""Number of cached positions."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", type=Path, required=True, metavar="FILE", help="a model of plyzero for Connect Four")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each line of the table")
    given = parser.parse_args()

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(given.net, options, providers=["CPUExecutionProvider"])
    activities: dict[str, Activity] = {
        CEILING: partial(evaluate, session, np.ones((64, 2, 6, 7), np.float32)),
        "network alone, one by one": partial(evaluate, session, np.ones((1, 2, 6, 7), np.float32)),
        "MCTSBot, caching as its AlphaZero does": SelfPlay(NetworkEvaluator(session)).move,
        "MCTSBot, cache emptied before each move": SelfPlay(NetworkEvaluator(session), forgets=True).move,
    }
    if own := alpha_zero_evaluator(blocks=4, channels=64):
        activities["its AlphaZero, own network of 4 x 64"] = SelfPlay(own).move
    rows = measure(activities, seconds=given.seconds)
    versions = {name: version(name) for name in ("open_spiel", "onnxruntime", "numpy")}
    print(json.dumps({"network": given.net.name, "simulations": SIMULATIONS, "versions": versions, "rows": rows}))


def measure(activities: dict[str, Activity], *, seconds: float) -> dict[str, dict[str, float]]:
    """Measure all activities in turns, each for `seconds` in total, so that load on the machine affects all of them."""
    for act in activities.values():
        act(Counter())
    tallies: dict[str, Counter[str]] = {name: Counter() for name in activities}
    while min(tally["ns"] for tally in tallies.values()) < 1e9 * seconds:
        for name, act in activities.items():
            tally = tallies[name]
            began = perf_counter_ns()
            cpu = process_time_ns()
            while perf_counter_ns() < began + 1e9:
                act(tally)
            tally.update(ns=perf_counter_ns() - began, cpu_ns=process_time_ns() - cpu)
    ceiling = tallies[CEILING]["evaluations"] / tallies[CEILING]["ns"]
    kinds = ("evaluations", "simulations", "positions")
    rows: dict[str, dict[str, float]] = {}
    for name, tally in tallies.items():
        row = {f"{kind}_per_second": round(1e9 * tally[kind] / tally["ns"], 2) for kind in kinds}
        row["evaluations_per_cpu_second"] = round(1e9 * tally["evaluations"] / tally["cpu_ns"], 2)
        row["share_of_ceiling"] = round(tally["evaluations"] / tally["ns"] / ceiling, 4)
        rows[name] = row
    return rows


def evaluate(session: onnxruntime.InferenceSession, batch: NDArray[np.float32], tally: Counter[str]) -> None:
    session.run(("logits", "wdl"), {"observations": batch})
    tally["evaluations"] += len(batch)


class NetworkEvaluator(mcts.Evaluator):
    """Asks the network for one position at a time, and caches as the evaluator of OpenSpiel's AlphaZero does."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._cache = LRUCache(CACHED)

    def cache_info(self) -> CacheInfo:
        return self._cache.info()

    def clear_cache(self) -> None:
        self._cache.clear()

    def evaluate(self, state: pyspiel.State) -> NDArray[np.float64]:
        _, wdl = self._ask(state)
        win, _, loss = wdl
        value = win - loss
        value_of_first = value if state.current_player() == 0 else -value
        return np.array([value_of_first, -value_of_first])

    def prior(self, state: pyspiel.State) -> list[tuple[int, float]]:
        logits, _ = self._ask(state)
        actions = state.legal_actions()
        weights = np.exp(logits[actions] - logits[actions].max())
        return list(zip(actions, (weights / weights.sum()).tolist(), strict=True))

    def _ask(self, state: pyspiel.State) -> tuple[NDArray[np.float32], list[float]]:
        planes = np.array(state.observation_tensor(), np.float32).reshape(3, 6, 7)
        discs = planes[:2]  # those of the first player, then of the second
        observation = np.ascontiguousarray(discs if state.current_player() == 0 else discs[::-1])

        def ask() -> tuple[NDArray[np.float32], list[float]]:
            logits, wdl = self._session.run(("logits", "wdl"), {"observations": observation[np.newaxis]})
            return logits[0], wdl[0].tolist()

        return self._cache.make(observation.tobytes(), ask)


class SelfPlay:
    """Games of OpenSpiel's MCTSBot, made and used as its AlphaZero does it."""

    def __init__(self, evaluator: Any, *, forgets: bool = False) -> None:
        self._game = pyspiel.load_game("connect_four")
        self._evaluator = evaluator
        self._forgets = forgets
        self._state = self._game.new_initial_state()
        self._rng = np.random.RandomState(0)
        how = {"solve": False, "dirichlet_noise": NOISE, "child_selection_fn": mcts.SearchNode.puct_value}
        self._bot = mcts.MCTSBot(self._game, EXPLORATION, SIMULATIONS, evaluator, random_state=self._rng, **how)

    def move(self, tally: Counter[str]) -> None:
        """Search and play one move; if it ends the game, begin another one."""
        if self._forgets:
            self._evaluator.clear_cache()
        asked = self._evaluator.cache_info().misses
        root = self._bot.mcts_search(self._state)
        tally["evaluations"] += self._evaluator.cache_info().misses - asked
        tally["simulations"] += root.explore_count
        tally["positions"] += 1
        child = root.best_child()
        if self._state.move_number() < 10:  # drawn by visits; all later moves are the best
            visits = np.array([each.explore_count for each in root.children])
            child = root.children[self._rng.choice(len(visits), p=visits / visits.sum())]
        self._state.apply_action(child.action)
        if self._state.is_terminal():
            self._state = self._game.new_initial_state()


def alpha_zero_evaluator(*, blocks: int, channels: int) -> Any:
    """Return the evaluator of OpenSpiel's AlphaZero, of random weights; None where what it needs is not installed."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    try:
        from open_spiel.python.algorithms.alpha_zero.evaluator import AlphaZeroEvaluator
        from open_spiel.python.algorithms.alpha_zero.model_nnx import Model
    except ImportError:
        return None
    game = pyspiel.load_game("connect_four")
    shape, actions = game.observation_tensor_shape(), game.num_distinct_actions()
    training = {"weight_decay": 1e-4, "learning_rate": 1e-3, "path": None}
    return AlphaZeroEvaluator(game, Model.build_model("resnet", shape, actions, channels, blocks, **training))


if __name__ == "__main__":
    main()
