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
from plyzero.simulate import begin_slot, completed
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
        ("full_share", "f8"),
        ("simulations", "i8"),
        ("fast_simulations", "i8"),
        ("kind", "i8"),
        ("fast_kind", "i8"),
    ],
    align=True,
)
"""The settings by which compiled code chooses a move, and the search for the next one."""


class GamesInPlay:
    """One game per slot, from its random opening to its end. All randomness in a game comes from its seed.

    moves, simulations: found so far, and made to find them.
    """

    def __init__(self, start: Game, settings: Settings, *, seeds: Iterator[int]) -> None:
        self._start, self._settings, self._seeds = start, settings.selfplay, seeds
        slots, plies = self._settings.slots, start.max_plies
        most = max(self._settings.simulations, self._settings.fast_simulations)
        self.search = SearchSlots(start, settings.search, slots=slots, simulations=most)
        self._is_compiled = isinstance(start, CompiledGame)
        self._play_all = bind(play_all, self.search.rules)
        self._games = np.zeros(slots, IN_PLAY)
        self._positions = np.zeros((slots, plies), POSITION)
        self._moves = np.zeros((slots, min(plies, 8) * start.num_actions), MOVE)
        self._observations = np.zeros((slots, plies, *start.observation_shape), np.float32)
        self._draws = np.zeros((slots, plies, 2))  # from 0 to 1: which move, and whether it gets a full search
        self._rngs = [np.random.default_rng()] * slots
        self._choice = np.zeros(1, CHOICE)[0]
        for name, value in {
            "temperature": self._settings.temperature,
            "final_temperature": self._settings.final_temperature,
            "temperature_plies": self._settings.temperature_plies or max(1.0, plies / 5),
            "c_visit": settings.search.c_visit,
            "c_scale": settings.search.c_scale,
            "full_share": self._settings.full_share,
            "simulations": self._settings.simulations,
            "fast_simulations": self._settings.fast_simulations,
            "kind": KINDS[settings.search.kind],
            "fast_kind": KINDS[self._settings.fast_kind or settings.search.kind],
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
        self._play_all(
            *(done, self.search.slots, self.search.nodes, self.search.edges, self.search.states),
            *(self._games, self._positions, self._moves, self._observations, self._draws, self._choice, fence, step),
            self._is_compiled,
        )
        if not self._is_compiled:
            for slot in done.tolist():
                self._play_plain(slot)
        over = done[(self._games["outcome"][done] != ONGOING) | (self._games["plies"][done] == self._start.max_plies)]
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
        self._observations[slot, game["plies"]] = position.observe()
        game["plies"] += 1
        game["opening_plies"] += 1
        game["moves"] += len(legal)

    def _begin_searches(self, which: NDArray[np.intp]) -> None:
        """Search for the next move: fully and noisily, or fast (playout-cap randomisation; Wu, 2019)."""
        begin_searches(which, self.search.slots, self._games, self._draws, self._choice)
        for slot in which[self._games["full"][which] == 1].tolist():
            self.search.draw_noise(slot, self._rngs[slot])

    def _play_plain(self, slot: int) -> None:
        """Do what `play_all` leaves to the rules, in Python."""
        position, game = self.search.position(slot), self._games[slot]
        ply = game["plies"] - 1
        self._observations[slot, ply] = position.observe()
        position = position.play_unchecked(int(self._positions[slot, ply]["action"]))
        if outcome := position.outcome():
            game["outcome"] = DRAW if outcome.winner is None else outcome.winner
        self.search.place(slot, position)

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
        seen = self._observations[slot, : played["plies"]]
        observations = seen.astype(self._start.observation_dtype)
        if observations.dtype.kind == "b" and not np.array_equal(observations, seen):
            raise ValueError("observation_dtype is bool, but what observe() returns is not all 0 and 1")
        positions, moves = self._positions[slot, : played["plies"]], self._moves[slot, : played["moves"]]
        return Games(game, positions.copy(), moves.copy(), observations)


def play_all(
    done: NDArray[np.intp],
    slots: NDArray[np.void],
    nodes: NDArray[np.void],
    edges: NDArray[np.void],
    states: NDArray[np.uint8],
    games: NDArray[np.void],
    positions: NDArray[np.void],
    moves: NDArray[np.void],
    observations: NDArray[np.float32],
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
        chosen = choose(policy, temperature(game["plies"], choice), draws[b, game["plies"], 0])
        record["action"] = found[chosen]["action"]
        record["num_legal"] = len(row)
        if compiled_rules:
            seen = observations[b, game["plies"]]
            seen[:] = 0
            observe(states[b, 0], seen)
            play(states[b, 0], record["action"])
            game["outcome"] = outcome(states[b, 0])
        game["moves"] += len(row)
        game["plies"] += 1


@numba.njit(cache=True)
def begin_searches(
    which: NDArray[np.intp],
    slots: NDArray[np.void],
    games: NDArray[np.void],
    draws: NDArray[np.float64],
    choice: Any,
) -> None:
    """Decide for each of the slots `which` whether its next search is a full one, and empty its tree."""
    for i in range(len(which)):
        b = which[i]
        full = draws[b, games[b]["plies"], 1] < choice["full_share"]
        games[b]["full"] = full
        simulations = choice["simulations"] if full else choice["fast_simulations"]
        begin_slot(slots[b], choice["kind"] if full else choice["fast_kind"], simulations, full)


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
    array = compiled.array_type
    return types.void(
        *(array(np.intp, 1), array(SLOT, 1), array(NODE, 2), array(EDGE, 2), array("u1", 3)),
        *(array(IN_PLAY, 1), array(POSITION, 2), array(MOVE, 2), array("f4", 5), array("f8", 3)),
        *(numba.from_dtype(CHOICE), types.int64, types.int64, types.boolean, *compiled.RULE_TYPES),
    )


# Compiled against a fixed signature, as the search is: once for every game, and cached on disk.
play_all = numba.njit(_signature(), cache=True)(play_all)
