"""Games played side by side, each in a slot of the search: their moves, how they are chosen, and their records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from plyzero import compiled
from plyzero.compiled import DRAW, ONGOING, CompiledGame, bind
from plyzero.evaluate import Evaluate
from plyzero.game import Game
from plyzero.policy import policy_target
from plyzero.records import BY_RULE, DRAWN, GAME, MOVE, POSITION, TRUNCATED, UNKNOWN, Games
from plyzero.search import KINDS, SearchSlots
from plyzero.settings import Settings
from plyzero.simulate import completed
from plyzero.tree import DRAW as PROVEN_DRAW
from plyzero.tree import EDGE, NODE, SLOT, UNPROVEN

IN_PLAY = np.dtype(
    [
        ("seed", "u8"),
        ("plies", "i4"),
        ("opening_plies", "i4"),
        ("moves", "i4"),  # legal actions recorded
        ("full", "i1"),  # whether the search that runs is a full one
        ("outcome", "i1"),  # ONGOING, DRAW or the winner
    ],
    align=True,
)
"""What is known of a game beside its records."""

CHOICE = np.dtype(
    [
        ("temperature", "f8"),
        ("final_temperature", "f8"),
        ("temperature_plies", "f8"),
        ("c_visit", "f8"),
        ("c_scale", "f8"),
    ],
    align=True,
)
"""The settings by which compiled code chooses a move."""


class GamesInPlay:
    """One game per slot, from its random opening to its end. All randomness in a game comes from its seed.

    moves, simulations: found so far, and made to find them.
    """

    def __init__(self, start: Game, settings: Settings, *, seeds: Iterator[int]) -> None:
        self._start, self._settings, self._seeds = start, settings.selfplay, seeds
        slots, plies = self._settings.slots, start.max_plies
        most = max(self._settings.simulations, self._settings.fast_simulations)
        self.search = SearchSlots(start, settings.search, slots=slots, simulations=most)
        self._full_kind = settings.search.kind
        self._is_compiled = isinstance(start, CompiledGame)
        self._play_all = bind(play_all, self.search.rules)
        self._games = np.zeros(slots, IN_PLAY)
        self._positions = np.zeros((slots, plies), POSITION)
        self._moves = np.zeros((slots, min(plies, 8) * start.num_actions), MOVE)
        self._observations = np.zeros((slots, plies, *start.observation_shape), start.observation_dtype)
        self._planes = np.zeros((slots, *start.observation_shape), np.float32)  # of the positions just left
        self._draws = np.zeros((slots, plies, 2))  # from 0 to 1: which move, and whether it gets a full search
        self._rngs = [np.random.default_rng()] * slots
        self._choice = np.zeros(1, CHOICE)[0]
        for name, value in {
            "temperature": self._settings.temperature,
            "final_temperature": self._settings.final_temperature,
            "temperature_plies": self._settings.temperature_plies or max(1.0, plies / 5),
            "c_visit": settings.search.c_visit,
            "c_scale": settings.search.c_scale,
        }.items():
            self._choice[name] = value
        self.moves = self.simulations = 0
        for slot in range(slots):
            self._begin_game(slot)
        self._begin_searches(np.arange(slots))

    def run(self, evaluate: Evaluate, *, fence: int = 0, step: int = 0) -> list[Games]:
        """Search on until at least one move is found; play what is found, and return the games that are over with it.

        fence, step: of the model that `evaluate` is, for the records; 0 = none.
        """
        done = np.array(self.search.run(evaluate), np.intp)
        self.moves += len(done)
        self.simulations += int(self.search.slots["simulations"][done].sum())
        while self._moves.shape[1] < self._games["moves"][done].max() + self._start.num_actions:
            self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)], axis=1)
        plies = self._games["plies"][done]
        self._play_all(
            *(done, self.search.slots, self.search.nodes, self.search.edges, self.search.states),
            *(self._games, self._positions, self._moves, self._planes, self._draws, self._choice, fence, step),
            self._is_compiled,
        )
        if not self._is_compiled:
            for slot in done.tolist():
                self._play_plain(slot)
        self._observe(done, plies)
        over = done[(self._games["outcome"][done] != ONGOING) | (plies + 1 >= self._start.max_plies)]
        finished = []
        for slot in over.tolist():
            finished.append(self._finish(slot))
            self._begin_game(slot)
        self._begin_searches(done)
        return finished

    def _begin_game(self, slot: int) -> None:
        """Play the random opening; a game that is over before its first search would teach nothing."""
        seed = next(self._seeds)
        rng = self._rngs[slot] = np.random.default_rng(seed)
        self._draws[slot] = rng.random(self._draws.shape[1:])
        self._games[slot] = (seed, 0, 0, 0, 0, ONGOING)
        position, plies = self._start, self._start.max_plies
        longest = self._settings.opening_plies
        if longest is None:
            longest = min(8, math.ceil(plies / 5))
        for _ in range(int(rng.integers(min(longest, plies - 1) + 1))):
            legal = position.legal_actions()
            action = int(legal[int(rng.integers(len(legal)))])
            following = position.play_unchecked(action)
            if following.outcome() is not None:
                break
            self._record_opening_move(slot, position, legal, action)
            position = following
        self.search.place(slot, position)

    def _record_opening_move(self, slot: int, position: Game, legal: Sequence[int], action: int) -> None:
        game = self._games[slot]
        self._positions[slot, game["plies"]] = np.zeros((), POSITION)
        record = self._positions[slot, game["plies"]]
        record["action"], record["to_play"], record["num_legal"] = action, position.to_play, len(legal)
        record["proven"] = UNPROVEN
        moves = self._moves[slot, game["moves"] : game["moves"] + len(legal)]
        moves["action"], moves["visits"], moves["prior"], moves["q"] = legal, 0, 0, np.nan
        self._planes[slot] = position.observe()
        self._observe(np.array([slot]), game["plies"])
        game["plies"] += 1
        game["opening_plies"] += 1
        game["moves"] += len(legal)

    def _begin_searches(self, which: NDArray[np.intp]) -> None:
        """Search for the next move: fully and noisily, or fast (playout-cap randomisation; Wu, 2019)."""
        settings = self._settings
        full = self._draws[which, self._games["plies"][which], 1] < settings.full_share
        self._games["full"][which] = full
        self.search.begin_all(
            which,
            simulations=np.where(full, settings.simulations, settings.fast_simulations),
            kinds=np.where(full, KINDS[self._full_kind], KINDS[settings.fast_kind or self._full_kind]),
            rngs=[self._rngs[slot] if is_full else None for slot, is_full in zip(which.tolist(), full, strict=True)],
        )

    def _play_plain(self, slot: int) -> None:
        """Do what `play_all` leaves to the rules, in Python."""
        position, game = self.search.position(slot), self._games[slot]
        self._planes[slot] = position.observe()
        position = position.play_unchecked(int(self._positions[slot, game["plies"] - 1]["action"]))
        if outcome := position.outcome():
            game["outcome"] = DRAW if outcome.winner is None else outcome.winner
        self.search.place(slot, position)

    def _observe(self, slots: NDArray[np.intp], plies: NDArray[np.int32]) -> None:
        """Keep what was seen of the positions just left."""
        planes = self._planes[slots]
        self._observations[slots, plies] = planes
        if self._observations.dtype.kind == "b" and not ((planes == 0) | (planes == 1)).all():
            raise ValueError("observation_dtype is bool, but what observe() returns is not all 0 and 1")

    def _finish(self, slot: int) -> Games:
        """Return the record of the game, which is over."""
        played = self._games[slot]
        game = np.zeros(1, GAME)
        game["id"] = game["seed"] = played["seed"]
        game["positions"], game["opening_plies"] = played["plies"], played["opening_plies"]
        if played["outcome"] == ONGOING:
            game["winner"], game["end"] = UNKNOWN, TRUNCATED
        else:
            game["winner"] = DRAWN if played["outcome"] == DRAW else played["outcome"]
            game["end"] = BY_RULE
        return Games(
            game,
            self._positions[slot, : played["plies"]].copy(),
            self._moves[slot, : played["moves"]].copy(),
            self._observations[slot, : played["plies"]].copy(),
        )


def play_all(
    done: NDArray[np.intp],
    slots: NDArray[np.void],
    nodes: NDArray[np.void],
    edges: NDArray[np.void],
    states: NDArray[np.uint8],
    games: NDArray[np.void],
    positions: NDArray[np.void],
    moves: NDArray[np.void],
    planes: NDArray[np.float32],
    draws: NDArray[np.float64],
    choice: Any,
    fence: int,
    step: int,
    compiled_rules: bool,
    play: Callable[..., None],
    outcome: Callable[..., int],
    legal: Callable[..., None],
    observe: Callable[..., None],
) -> None:
    """Choose a move in each of the slots `done` from what its search found, record both, and play it."""
    for i in range(len(done)):
        b = done[i]
        game = games[b]
        record = positions[b, game["plies"]]
        record_search(record, slots[b], nodes[b, 0], game["full"], fence, step)
        row = edges[b, nodes[b, 0]["first_edge"] : nodes[b, 0]["first_edge"] + nodes[b, 0]["num_edges"]]
        found = moves[b, game["moves"] : game["moves"] + len(row)]
        record_moves(found, row)
        policy = policy_target(
            *(record["search"], found["visits"], found["prior"], found["q"]),
            *(record["network_value"], record["proven"], choice["c_visit"], choice["c_scale"]),
        )
        record["action"] = found[choose(policy, temperature(game["plies"], choice), draws[b, game["plies"], 0])][
            "action"
        ]
        record["num_legal"] = len(row)
        game["moves"] += len(row)
        game["plies"] += 1
        if compiled_rules:
            planes[b] = 0
            observe(states[b, 0], planes[b])
            play(states[b, 0], record["action"])
            game["outcome"] = outcome(states[b, 0])


@numba.njit(cache=True)
def record_search(record: Any, slot: Any, root: Any, full: int, fence: int, step: int) -> None:
    """Write what the search says of the position itself."""
    record["to_play"], record["search"], record["full"] = root["to_play"], slot["kind"], full
    record["simulations"], record["proven"] = slot["simulations"], root["proven"]
    if root["proven"] == UNPROVEN:
        visits = max(1, root["visits"])
        record["root_value"], record["root_draw"] = root["value_sum"] / visits, root["draw_sum"] / visits
    else:
        record["root_value"], record["root_draw"] = root["proven"], root["proven"] == PROVEN_DRAW
    record["network_value"], record["network_draw"] = root["network_value"], root["network_draw"]
    record["model_fence"], record["model_step"] = fence, step


@numba.njit(cache=True)
def record_moves(found: NDArray[np.void], row: NDArray[np.void]) -> None:
    """Write what the search says of every legal move; `row` are its edges."""
    q = completed(row)
    for i in range(len(row)):
        found[i]["action"], found[i]["visits"] = row[i]["action"], row[i]["visits"]
        found[i]["prior"], found[i]["q"] = math.exp(row[i]["logit"]), q[i]


@numba.njit(cache=True)
def temperature(plies: int, choice: Any) -> float:
    """Return the temperature of the move after `plies`: it halves every `temperature_plies` down to the final one."""
    first, final = choice["temperature"], choice["final_temperature"]
    return float(final + (first - final) * 0.5 ** (plies / choice["temperature_plies"]))


@numba.njit(cache=True)
def choose(policy: NDArray[np.float64], temperature: float, draw: float) -> int:
    """Return the index at `draw`, from 0 to 1, of policy^(1/temperature); what has probability 0 is never drawn."""
    weights = (policy / policy.max()) ** (1 / temperature)
    left = draw * weights.sum()
    chosen = 0
    for i in range(len(weights)):
        if weights[i] > 0:
            chosen = i
            left -= weights[i]
            if left < 0:
                break
    return chosen


def _signature() -> Any:
    def array(dtype: Any, dimensions: int) -> Any:
        return types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, "C")

    return types.void(
        *(array(np.intp, 1), array(SLOT, 1), array(NODE, 2), array(EDGE, 2), array("u1", 3)),
        *(array(IN_PLAY, 1), array(POSITION, 2), array(MOVE, 2), array("f4", 4), array("f8", 3)),
        *(numba.from_dtype(CHOICE), types.int64, types.int64, types.boolean, *compiled.RULE_TYPES),
    )


# Compiled against a fixed signature, as the search is: once for every game, and cached on disk.
play_all = numba.njit(_signature(), cache=True)(play_all)
