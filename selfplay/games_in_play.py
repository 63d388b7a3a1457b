"""Games played side by side, each in a slot of the search: their moves, how they are chosen, and their records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import DRAW, ONGOING, Game, outcome_code
from plyzero.run.records import BY_RULE, GAME, MOVE, POSITION, TRUNCATED, Games
from plyzero.search import rule_calls
from plyzero.search.counter_rng import random_bits
from plyzero.search.evaluators import Evaluate
from plyzero.search.mcts import advance, begin_slot, join_batch, resume_slot
from plyzero.search.numba_arrays import borrowed, copy_to
from plyzero.search.policy import policy_target
from plyzero.search.selection import completed_q
from plyzero.search.slots import KINDS, SearchSlots
from plyzero.search.tree import DONE, IDLE, NO_SEARCH, NOTHING, PROVEN_DRAW, PUCT, UNPROVEN, Trees
from plyzero.search.tree_reuse import keep_subtree
from plyzero.settings import Settings

IN_PLAY: Final = np.dtype(
    [
        ("seed", "u8"),
        ("plies", "i4"),
        ("opening_plies", "i4"),  # the first so many are random
        ("moves", "i4"),  # legal actions recorded
        ("edge", "i4"),  # of the root: the move that was chosen last
        ("full", "i1"),  # whether the search that runs is a full one
        ("outcome", "i1"),  # ONGOING, DRAW or the winner
    ],
    align=True,
)
"""What is known of a game beside its records."""

CHOICE: Final = np.dtype(
    [
        ("max_plies", "i8"),
        ("opening_plies", "i8"),
        ("temperature", "f8"),
        ("final_temperature", "f8"),
        ("temperature_plies", "f8"),
        ("c_visit", "f8"),
        ("c_scale", "f8"),
        ("full_search_probability", "f8"),
        ("simulations", "i8"),
        ("fast_simulations", "i8"),
        ("kind", "i8"),
        ("fast_algorithm", "i8"),
        ("reuse_trees", "i8"),
    ],
    align=True,
)
"""The settings by which compiled code chooses a move, and the search for the next one."""

# What becomes of a move: it is played, so that its search is kept, or taken back.
ON, KEPT, BACK = range(3)

# What the draws of a game are for: one of each a ply.
MOVE_DRAW, FULL_DRAW, NOISE_DRAW, OPENING_DRAW = range(4)


class Table(NamedTuple):
    """The games that are played in B slots, and their records so far; P is the game's max_plies.

    games:        `[B]` IN_PLAY.
    positions:    `[B, P]` POSITION.
    moves:        `[B, M]` MOVE.
    observations: `[B, P, C, H, W]` float32.
    choice:       `[1]` CHOICE.
    counts:       `[2]` int64, searched moves and their simulations.
    """

    games: NDArray[np.void]
    positions: NDArray[np.void]
    moves: NDArray[np.void]
    observations: NDArray[np.float32]
    choice: NDArray[np.void]
    counts: NDArray[np.int64]


class GamesInPlay:
    """One game per slot, from its random opening to its end. All randomness in a game comes from its seed."""

    def __init__(self, start: Game, settings: Settings, *, seeds: Iterator[int]) -> None:
        self._start, self._seeds = start, seeds
        given, plies = settings.selfplay, start.max_plies
        most = max(given.simulations, given.fast_simulations)
        self.search = SearchSlots(
            start,
            settings.search,
            slots=given.parallel_games,
            simulations=most if not given.reuse_trees else 2 * most,
            cache_bytes=given.cache_mb << 20,
        )
        self._table = Table(
            games=np.zeros(given.parallel_games, IN_PLAY),
            positions=np.zeros((given.parallel_games, plies), POSITION),
            moves=np.zeros((given.parallel_games, min(plies, 8) * start.num_actions), MOVE),
            observations=np.zeros((given.parallel_games, plies, *start.observation_shape), np.float32),
            choice=choice_of(settings, plies),
            counts=np.zeros(2, np.int64),
        )
        for slot in range(given.parallel_games):
            self._begin_game(slot)
        self._play(fence=0, step=0)

    @property
    def moves(self) -> int:
        """Moves found by a search so far."""
        return int(self._table.counts[0])

    @property
    def simulations(self) -> int:
        """Simulations made to find them."""
        return int(self._table.counts[1])

    def run(self, evaluate: Evaluate, *, fence: int = 0, step: int = 0) -> list[Games]:
        """Let `evaluate` answer the positions that wait, one per slot; return the games that are over with it.

        fence, step: of the model that `evaluate` is, for the records; 0 = none.
        """
        self.search.ask(evaluate)
        return self._play(fence, step)

    def _play(self, fence: int, step: int) -> list[Games]:
        """Search and play on until every slot waits for an evaluation again, or has finished a game and begun another.

        No slot goes further than that: where the cache knows the whole game it would never stop.
        """
        phase = self.search.trees.slots["phase"]
        finished: dict[int, Games] = {}
        while True:
            self.search.advance(play_on, self._table, fence, step)
            if self.search.waiting == len(phase):
                break
            lacks_room = bool((phase == DONE).any())
            if lacks_room:
                moves = self._table.moves
                self._table = self._table._replace(moves=np.concatenate([moves, np.zeros_like(moves)], axis=1))
            idle = [slot for slot in np.flatnonzero(phase == IDLE).tolist() if slot not in finished]
            for slot in idle:
                if not isinstance(self._start, CompiledGame):
                    self._play_plain(slot)
                if phase[slot] == IDLE:
                    finished[slot] = self._finish(slot)
                    self._begin_game(slot)
            if not idle and not lacks_room:
                break
        return list(finished.values())

    def _begin_game(self, slot: int) -> None:
        self.search.place(slot, self._start)
        self._table.games[slot]["seed"] = next(self._seeds)
        begin_game(self.search.trees, self._table, slot)

    def _play_plain(self, slot: int) -> None:
        """Do what `play_on` leaves to the rules, in Python."""
        game = self._table.games[slot]
        record = self._table.positions[slot, game["plies"]]
        following = self.search.position(slot).play_unchecked(int(record["action"]))
        went = go_on(self.search.trees, self._table, slot, outcome_code(following.outcome()))
        if went == KEPT:
            self.search.place_kept(slot)
        elif went == ON:
            self.search.place(slot, following)

    def _finish(self, slot: int) -> Games:
        """Return the record of the game, which is over."""
        seed, plies, opening_plies, moves, _, _, outcome = self._table.games[slot].tolist()
        winner, end = outcome, BY_RULE
        if outcome == ONGOING:
            winner, end = ONGOING, TRUNCATED
        elif outcome == DRAW:
            winner = DRAW
        seen = self._table.observations[slot, :plies]
        observations = seen.astype(self._start.observation_dtype)
        if observations.dtype.kind == "b" and not np.array_equal(observations, seen):
            raise ValueError("observation_dtype is bool, but what observe() returns is not all 0 and 1")
        return Games(
            np.array([(seed, plies, winner, end, seed, opening_plies)], GAME),
            self._table.positions[slot, :plies].copy(),
            self._table.moves[slot, :moves].copy(),
            observations,
        )


@numba.njit(cache=True)
def play_on(
    trees: Trees, logits: NDArray[np.float32], wdl: NDArray[np.float32], table: Table, fence: int, step: int
) -> int:
    """Move every search on, as `advance_all` does, play what it finds, and search on from there.

    To Python it leaves: IDLE, a game that is over or whose move must be played by plain rules; DONE, a move for whose
    record there is no room.
    """
    trees = borrowed(trees)
    logits = borrowed(logits)
    wdl = borrowed(wdl)
    table = borrowed(table)
    waiting = 0
    for b in range(len(trees.slots)):
        slot, game = trees.slots[b], table.games[b]
        while True:
            advance(trees, b, logits, wdl)
            if slot["phase"] != DONE or game["moves"] + trees.nodes[b, 0]["num_edges"] > table.moves.shape[1]:
                break
            record_move(trees, table, b, fence, step)
            slot["phase"] = IDLE
            if trees.settings[0]["to_play_offset"] == NOTHING:
                break
            following = trees.states[b, -1]
            copy_to(following, trees.states[b, 0])
            rule_calls.play(trees.rules, following, table.positions[b, game["plies"]]["action"])
            went = go_on(trees, table, b, rule_calls.outcome(trees.rules, following))
            if went == ON:
                copy_to(trees.states[b, 0], following)
            elif went == KEPT:
                trees.roots[b] = 0
                rule_calls.observe(trees.rules, trees.states[b, 0], trees.roots[b])
        waiting = join_batch(trees, b, waiting)
    return waiting


@numba.njit(cache=True)
def begin_game(trees: Trees, table: Table, b: int) -> None:
    """Begin a game, whose seed is given, at the position that lies in slot `b`."""
    game, choice = table.games[b], table.choice[0]
    game["plies"], game["moves"], game["outcome"] = 0, 0, ONGOING
    game["opening_plies"] = int(uniform(game, OPENING_DRAW) * (choice["opening_plies"] + 1))
    begin_search(trees, table, b, NOTHING)


@numba.njit(cache=True)
def begin_search(trees: Trees, table: Table, b: int, played: int) -> bool:
    """Search for the next move: not at all in the opening, later fully and noisily, or fast.

    That is playout-cap randomisation (Wu, 2019). If trees are reused, PUCT goes on with what the search before found
    below the edge `played`; sequential halving, with which Gumbel begins, can not. Return whether it does.
    """
    slot, game, choice = trees.slots[b], table.games[b], table.choice[0]
    full = uniform(game, FULL_DRAW) < choice["full_search_probability"]
    kind, simulations = choice["fast_algorithm"], choice["fast_simulations"]
    if full:
        kind, simulations = choice["kind"], choice["simulations"]
    if game["plies"] < game["opening_plies"]:
        full, kind, simulations = False, NO_SEARCH, 0
    game["full"] = full
    noise_seed = draw_of(game, NOISE_DRAW)
    reuse = choice["reuse_trees"] and kind == PUCT and played != NOTHING
    if reuse and keep_subtree(trees, b, played, simulations):
        resume_slot(trees, b, simulations, full, noise_seed)
        return True
    begin_slot(slot, kind, simulations, full, noise_seed)
    return False


@numba.njit(cache=True)
def go_on(trees: Trees, table: Table, b: int, code: int) -> int:
    """Count the move recorded last as played, with the outcome `code` after it, and begin the next search, if any.

    Return ON, KEPT if the next search goes on with what this one found, or BACK where the move is taken back: a game
    that is over before its first search would teach nothing.
    """
    slot, game = trees.slots[b], table.games[b]
    if slot["kind"] == NO_SEARCH and code != ONGOING:
        game["opening_plies"] = game["plies"]
        begin_search(trees, table, b, NOTHING)
        return BACK
    game["moves"] += table.positions[b, game["plies"]]["num_legal"]
    game["plies"] += 1
    game["outcome"] = code
    if code == ONGOING and game["plies"] < table.choice[0]["max_plies"]:
        return KEPT if begin_search(trees, table, b, game["edge"]) else ON
    return ON


@numba.njit(cache=True)
def record_move(trees: Trees, table: Table, b: int, fence: int, step: int) -> None:
    """Choose a move from what the search in slot `b` found, and record both."""
    slot, root, game, choice = trees.slots[b], trees.nodes[b, 0], table.games[b], table.choice[0]
    row = trees.edges[b, root["first_edge"] : root["first_edge"] + root["num_edges"]]
    found = table.moves[b, game["moves"] : game["moves"] + len(row)]
    record = table.positions[b, game["plies"]]
    copy_to(table.observations[b, game["plies"]], trees.roots[b])
    record_search(record, slot, root, game["full"], fence, step)
    record_edges(found, row, slot["kind"], trees.scratch)
    record["num_legal"] = len(row)
    if slot["kind"] == NO_SEARCH:
        chosen = int(uniform(game, MOVE_DRAW) * len(row))
    else:
        policy = policy_target(
            *(slot["kind"], found["visits"], found["prior"], found["q"]),
            *(record["network_value"], record["proven"], choice["c_visit"], choice["c_scale"]),
        )
        chosen = choose(policy, temperature(game["plies"], choice), uniform(game, MOVE_DRAW))
        table.counts[0] += 1
        table.counts[1] += slot["simulations"]
    record["action"] = found[chosen]["action"]
    game["edge"] = root["first_edge"] + chosen


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
    searched = slot["kind"] != NO_SEARCH
    record["model_fence"], record["model_step"] = fence if searched else 0, step if searched else 0


@numba.njit(cache=True)
def record_edges(found: NDArray[np.void], row: NDArray[np.void], kind: int, scratch: NDArray[np.float64]) -> None:
    """Write what the search says of every legal move; `row` are its edges."""
    q = completed_q(row, scratch)
    for i in range(len(row)):
        found[i]["action"], found[i]["visits"], found[i]["q"] = row[i]["action"], row[i]["visits"], q[i]
        found[i]["prior"] = math.exp(row[i]["logit"]) if kind != NO_SEARCH else 0.0


@numba.njit(cache=True)
def temperature(plies: int, choice: Any) -> float:
    """Return the temperature of the move after `plies`: it halves every `temperature_plies` down to the final one."""
    first, final = choice["temperature"], choice["final_temperature"]
    return float(final + (first - final) * 0.5 ** (plies / choice["temperature_plies"]))


@numba.njit(cache=True)
def choose(policy: NDArray[np.float64], temperature: float, drawn: float) -> int:
    """Return the index at `drawn`, from 0 to 1, of policy^(1/temperature); what has probability 0 is never drawn."""
    weights, highest, left, chosen = np.empty(len(policy)), 0.0, 0.0, 0
    for i in range(len(policy)):
        highest = max(highest, policy[i])
    for i in range(len(policy)):
        weights[i] = (policy[i] / highest) ** (1 / temperature)
        left += drawn * weights[i]
    for i in range(len(weights)):
        if weights[i] > 0:
            chosen = i
            left -= weights[i]
            if left < 0:
                break
    return chosen


@numba.njit(cache=True)
def uniform(game: Any, purpose: int) -> float:
    """Return the game's draw for `purpose` at this ply, from 0 to 1."""
    return draw_of(game, purpose) / 2**32


@numba.njit(cache=True)
def draw_of(game: Any, purpose: int) -> int:
    """Return the 32 bits that it is made of."""
    return random_bits(game["seed"], 4 * game["plies"] + purpose)


def choice_of(settings: Settings, plies: int) -> NDArray[np.void]:
    """Return the settings, `[1]` CHOICE, for a game of at most `plies`."""
    given = settings.selfplay
    longest_opening = min(16, math.ceil(2 * plies / 5)) if given.opening_plies is None else given.opening_plies
    values = {
        "max_plies": plies,
        "opening_plies": min(longest_opening, plies - 1),
        "temperature": given.temperature,
        "final_temperature": given.final_temperature,
        "temperature_plies": given.temperature_plies or max(1.0, plies / 5),
        "c_visit": settings.search.c_visit,
        "c_scale": settings.search.c_scale,
        "full_search_probability": given.full_search_probability,
        "simulations": given.simulations,
        "fast_simulations": given.fast_simulations,
        "kind": KINDS[settings.search.algorithm],
        "fast_algorithm": KINDS[given.fast_algorithm or settings.search.algorithm],
        "reuse_trees": given.reuse_trees,
    }
    return np.array([tuple(values[name] for name in CHOICE.names or ())], CHOICE)
