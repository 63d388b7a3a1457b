"""The compiled step of self-play: search on, choose and record moves, play them, begin the next searches.

There is one call of `play_on` between two batches of the network, because Python is slow after a network has emptied
the CPU's caches. All randomness in a game is computed from its seed. Games in plain Python take the same path; Python
code in between (games_in_play) plays their moves and makes records.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import ENDLESS_ROLLS, MAX_ROLLS, roll_at, roll_random
from plyzero.rules.counter_rng import random_bits
from plyzero.rules.game import ONGOING
from plyzero.run.records import BY_RULE, RESIGNED, TRUNCATED
from plyzero.search import rule_calls
from plyzero.search.batches import advance, join_batch
from plyzero.search.copying import copy_to
from plyzero.search.mcts import begin_search, resume_search
from plyzero.search.numba_kernel import borrowed, cached_njit
from plyzero.search.policy import policy_target, root_value
from plyzero.search.selection import edge_values, expectation, value_of_roll
from plyzero.search.storage import keep_subtree
from plyzero.search.tree import DONE, IDLE, NO_EDGE, NO_NODE, NO_SEARCH, PUCT, Record, Trees

SEARCHING, MOVE_CHOSEN, RECORD_FULL, OVER, NOT_BEGUN = range(5)
"""The phases of a game. Its slot in the search is idle, or done, unless the game is SEARCHING:

phase        waits for                            moved on by                            to
SEARCHING    its search                           play_on, when the search is DONE       SEARCHING, with the next search
MOVE_CHOSEN  plain rules: the move must be played GamesInPlay._play_chosen_move          SEARCHING, OVER
RECORD_FULL  room to record the move              GamesInPlay._empty_record              SEARCHING
OVER         its record must be taken             GamesInPlay._finish, _begin_game       SEARCHING, with another game
NOT_BEGUN    its turn: games begin one by one     GamesInPlay._begin_further_games       SEARCHING, with the first game
"""

IN_PLAY: Final = np.dtype(
    [
        ("phase", "i1"),
        ("seed", "u8"),
        ("plies", "i4"),  # moves played
        ("rows", "i4"),  # positions in the record; those before them were taken from it
        ("opening_plies", "i4"),  # number of moves at the start that no search chooses: random or given
        ("start", "i4"),  # row of `starts`
        ("moves", "i4"),  # legal actions in the record
        ("edge", "i8"),  # the edge to the next position: that of the last move, or of the roll after it
        ("luck", "f4"),  # value of the rolls after the last move minus their expectation, for player 0
        ("full", "i1"),  # 1 = the current search is a full one
        ("outcome", "i1"),  # outcome code: ONGOING, DRAW or the winner
        ("end", "i1"),  # as in the record of the game
        ("loser", "i1"),  # the player without a chance according to the last search, or NOBODY
        ("resigner", "i1"),  # the player who has resigned, or would have resigned, or NOBODY
        ("is_binary", "i1"),  # 1 = all of its observations are 0 and 1
    ],
    align=True,
)
"""The state of a game, without its records."""

STEP_SETTINGS: Final = np.dtype(
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
        ("algorithm", "i8"),
        ("fast_algorithm", "i8"),
        ("reuse_trees", "i8"),
        ("packs_bits", "i8"),  # observations are kept as bits
        ("resign_below", "f8"),
    ],
    align=True,
)
"""The settings by which a move and the next search are chosen."""

NUM_PURPOSES: Final = 4
MOVE_CHOICE, FULL_SEARCH, SEARCH_NOISE, OPENING_LENGTH = range(NUM_PURPOSES)
"""Each ply of a game has one random number for each purpose; those of rolls are in plyzero.rules.chance."""

NOBODY: Final = -1
"""No player."""

PLAYS_ON: Final = 0.1
"""The share of the games in which nobody resigns."""

PLAYED, SUBTREE_KEPT, TAKEN_BACK = range(3)
"""Results of `finish_move`: the move was played, it was played and its subtree kept, or it was taken back."""


class GameRecords(NamedTuple):
    """The games in B slots and the latest part of their records: P positions of K bytes or numbers, and M moves.

    games:        `[B]` IN_PLAY.
    positions:    `[B, P]` POSITION of plyzero.run.records.
    moves:        `[B, M]` MOVE of plyzero.run.records.
    observations: `[B, P, K]` uint8, packed bits if the game's observations are bool, otherwise the bytes of float32.
    luck:         `[B, P]` float32, as in plyzero.run.records.Games.
    settings:     `[1]` STEP_SETTINGS.
    counts:       `[5]` int64, the numbers of searched moves, of their simulations, of resigned games, of games played
                  on to test a resignation, and of such games that the player did not lose.
    starts:       `[S, L]` int64, the moves at the beginning of a game; -1 after the last one. The first row has none.
    """

    games: NDArray[np.void]
    positions: NDArray[np.void]
    moves: NDArray[np.void]
    observations: NDArray[np.uint8]
    luck: NDArray[np.float32]
    settings: NDArray[np.void]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]


@cached_njit(nogil=True)
def play_on(
    trees: Trees, logits: NDArray[np.float32], wdl: NDArray[np.float32], records: GameRecords, fence: int, step: int
) -> int:
    """Search and play on in every slot until it waits for the network or for Python; return how many wait for the
    network.

    logits, wdl: the network's output for the batch of the previous call, `[n, A]` and `[n, 3]`, with points `[n, 4]`;
                 n may be 0.
    fence, step: the model that answered; the fence is the number of the trainer's start that made it.
    """
    trees = borrowed(trees)
    logits = borrowed(logits)
    wdl = borrowed(wdl)
    records = borrowed(records)
    waiting = 0
    for b in range(len(trees.slots)):
        slot, game = trees.slots[b], records.games[b]
        while game["phase"] == SEARCHING:
            advance(trees, b, logits, wdl)
            if slot["phase"] != DONE:
                break
            if (
                game["moves"] + trees.nodes[b, 0]["num_edges"] > records.moves.shape[1]
                or game["rows"] == records.positions.shape[1]
            ):
                game["phase"] = RECORD_FULL
                break
            record_move(trees, records, b, fence, step)
            slot["phase"] = IDLE
            if not trees.settings[0]["has_compiled_rules"]:
                game["phase"] = MOVE_CHOSEN
                break
            following = trees.states[b, -1]
            copy_to(following, trees.states[b, 0])
            rule_calls.play(trees.rules, following, records.positions[b, game["rows"]]["action"])
            chances = trees.chances[b]
            number = 0
            while rule_calls.is_chance(trees.rules, following, chances):
                rolled = roll(game, chances, trees.nodes[b], trees.edges[b], game["plies"] + 1, number)
                rule_calls.play(trees.rules, following, rolled)
                number += 1
            became = finish_move(trees, records, b, rule_calls.outcome(trees.rules, following))
            if became != TAKEN_BACK:
                copy_to(trees.states[b, 0], following)
            if became == SUBTREE_KEPT:
                trees.roots[b] = 0
                rule_calls.observe(trees.rules, trees.states[b, 0], trees.roots[b])
        waiting = join_batch(trees, b, waiting)
    return waiting


@cached_njit
def record_move(trees: Trees, records: GameRecords, b: int, fence: int, step: int) -> None:
    """Choose a move by the result of the search in slot `b`, and record both."""
    slot = trees.slots[b]
    root = trees.nodes[b, 0]
    game = records.games[b]
    settings = records.settings[0]
    row = trees.edges[b, root["first_edge"] : root["first_edge"] + root["num_edges"]]
    moves = records.moves[b, game["moves"] : game["moves"] + len(row)]
    position = records.positions[b, game["rows"]]
    if not record_observation(records.observations[b, game["rows"]], trees.roots[b], settings["packs_bits"]):
        game["is_binary"] = False
    record_search(position, slot, root, game["full"], fence, step)
    record_edges(moves, row, slot["algorithm"], trees.scratch)
    position["num_legal"] = len(row)
    if slot["algorithm"] == NO_SEARCH:
        chosen = int(uniform(game, MOVE_CHOICE) * len(row))
        if game["plies"] < records.starts.shape[1]:
            for i in range(len(moves)):
                if moves[i]["action"] == records.starts[game["start"], game["plies"]]:
                    chosen = i
    else:
        policy = policy_target(
            slot["algorithm"],
            moves["visits"],
            moves["prior"],
            moves["q"],
            position["network_value"],
            position["proven"],
            settings["c_visit"],
            settings["c_scale"],
        )
        chosen = sample_index(policy, temperature(game["plies"], settings), uniform(game, MOVE_CHOICE))
        records.counts[0] += 1
        records.counts[1] += slot["simulations"]
    position["action"] = moves[chosen]["action"]
    game["luck"] = 0.0
    game["edge"] = root["first_edge"] + chosen


@cached_njit
def roll(
    game: Record, chances: NDArray[np.float32], nodes: NDArray[np.void], edges: NDArray[np.void], ply: int, number: int
) -> int:
    """Return the roll, from the probabilities `chances`, `[K]`; move game["edge"] to its edge, and add its luck.

    ply, number: number of the move that follows, and of the roll before this move, both from 0 on.
    """
    if number >= MAX_ROLLS:
        raise ValueError(ENDLESS_ROLLS)
    rolled = roll_at(chances, roll_random(game["seed"], game["opening_plies"], ply, number))
    e = edge_of_roll(nodes, edges, game["edge"], rolled)
    if e != NO_EDGE:
        game["luck"] += luck_of_roll(nodes, edges, edges[game["edge"]]["child"], e)
    game["edge"] = e
    return rolled


@cached_njit
def edge_of_roll(nodes: NDArray[np.void], edges: NDArray[np.void], e: int, rolled: int) -> int:
    """Return the edge of a roll at the chance node below edge `e`, or NO_EDGE if no simulation has reached it."""
    if e == NO_EDGE or edges[e]["child"] == NO_NODE:
        return NO_EDGE
    node = nodes[edges[e]["child"]]
    for below in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
        if edges[below]["action"] == rolled:
            return below
    return NO_EDGE


@cached_njit
def luck_of_roll(nodes: NDArray[np.void], edges: NDArray[np.void], n: int, e: int) -> float:
    """Return the value of the roll of edge `e` at chance node `n` minus the expectation over all rolls, for player 0.

    The values are those of the search before the roll. So the mean luck of all rolls, weighted by their probabilities,
    is 0, whatever these values are (gnubg and others reduce the variance of rollouts in this way).
    """
    luck = value_of_roll(nodes, edges, n, e)[0] - expectation(nodes, edges, n)[0]
    return luck if nodes[n]["to_play"] == 0 else -luck


@cached_njit
def finish_move(trees: Trees, records: GameRecords, b: int, outcome: int) -> int:
    """Count the recorded move as played, with the `outcome` code after it, and begin the next search unless the game
    ends.

    The rolls after the move are played already. Return PLAYED; SUBTREE_KEPT if the next search continues from the
    subtree of this one; or TAKEN_BACK if a random opening has ended the game: without a search the network would learn
    nothing from it, so the search begins before that move.
    """
    slot, game = trees.slots[b], records.games[b]
    if slot["algorithm"] == NO_SEARCH and outcome != ONGOING:
        game["opening_plies"] = game["plies"]
        choose_search(trees, records, b, NO_EDGE)
        return TAKEN_BACK
    records.luck[b, game["rows"]] = game["luck"]
    game["moves"] += records.positions[b, game["rows"]]["num_legal"]
    game["rows"] += 1
    game["plies"] += 1
    game["outcome"] = outcome
    game["end"] = TRUNCATED if outcome == ONGOING else BY_RULE
    if outcome == ONGOING and resigns(game, records.positions[b, game["rows"] - 1], records.settings[0]):
        game["outcome"], game["end"] = 1 - game["resigner"], RESIGNED
    elif outcome == ONGOING and game["plies"] < records.settings[0]["max_plies"]:
        return SUBTREE_KEPT if choose_search(trees, records, b, game["edge"]) else PLAYED
    game["phase"] = OVER
    return PLAYED


@cached_njit
def resigns(game: Record, position: Record, settings: Record) -> bool:
    """Return whether the game is resigned: this search and the one before agree that a player has no chance.

    Two searches must agree because one may err. Without a model their values mean nothing.
    """
    score = (1 + position["root_value"]) / 2
    mover = position["to_play"]
    loser = NOBODY
    if position["model_fence"] and min(score, 1 - score) < settings["resign_below"]:
        loser = mover if score < settings["resign_below"] else 1 - mover
    if loser == NOBODY or loser != game["loser"] or game["resigner"] != NOBODY:
        game["loser"] = loser
        return False
    game["resigner"] = loser
    return bool(random_bits(game["seed"], (3 << 30) + 1) / 2**32 >= PLAYS_ON)  # a counter far from all others


@cached_njit
def begin_game(trees: Trees, records: GameRecords, b: int) -> None:
    """Begin a game, whose seed is set, at the position that is in slot `b`."""
    game, settings = records.games[b], records.settings[0]
    game["plies"] = 0
    game["rows"] = 0
    game["moves"] = 0
    game["outcome"] = ONGOING
    game["is_binary"] = True
    game["loser"] = NOBODY
    game["resigner"] = NOBODY
    game["opening_plies"] = np.count_nonzero(records.starts[game["start"]] >= 0)
    if game["opening_plies"] == 0:
        game["opening_plies"] = int(uniform(game, OPENING_LENGTH) * (settings["opening_plies"] + 1))
    choose_search(trees, records, b, NO_EDGE)


@cached_njit
def choose_search(trees: Trees, records: GameRecords, b: int, played: int) -> bool:
    """Begin the search for the next move: none in the opening, later a full one with noise, or a fast one.

    This is playout-cap randomisation (Wu, 2019). With tree reuse, PUCT goes on with the subtree below the edge
    `played`; Gumbel's sequential halving needs a root without visits. Return whether the subtree was kept.
    """
    slot = trees.slots[b]
    game = records.games[b]
    settings = records.settings[0]
    is_opening = game["plies"] < game["opening_plies"]
    full = not is_opening and uniform(game, FULL_SEARCH) < settings["full_search_probability"]
    if is_opening:
        algorithm, simulations = NO_SEARCH, 0
    elif full:
        algorithm, simulations = settings["algorithm"], settings["simulations"]
    else:
        algorithm, simulations = settings["fast_algorithm"], settings["fast_simulations"]
    game["full"] = full
    game["phase"] = SEARCHING
    noise_seed = random_word(game, SEARCH_NOISE)
    reuse = settings["reuse_trees"] and algorithm == PUCT and played != NO_EDGE
    if reuse and keep_subtree(trees, b, played, simulations):
        resume_search(trees, b, simulations, full, noise_seed)
        return True
    begin_search(slot, algorithm, simulations, full, noise_seed)
    return False


@cached_njit
def record_observation(row: NDArray[np.uint8], observation: NDArray[np.float32], packs_bits: int) -> bool:
    """Write an observation into a row of bytes, in the form of numpy.packbits if `packs_bits`.

    Return False if that loses something: a number that is not 0 or 1.
    """
    flat = observation.reshape(-1)
    if not packs_bits:
        copy_to(row, flat.view(np.uint8))
        return True
    is_binary = True
    for i in range(len(row)):
        row[i] = 0
    for i in range(len(flat)):
        if flat[i] != 0:
            row[i >> 3] += 128 >> (i & 7)
            is_binary = is_binary and flat[i] == 1
    return is_binary


@cached_njit
def record_search(position: Record, slot: Record, root: Record, full: int, fence: int, step: int) -> None:
    """Write the result of the search for the position itself."""
    position["to_play"] = root["to_play"]
    position["search"] = slot["algorithm"]
    position["full"] = full
    position["simulations"] = slot["simulations"]
    position["proven"] = root["proven"]
    position["root_value"], position["root_draw"] = root_value(root)
    position["network_value"] = root["network_value"]
    position["network_draw"] = root["network_draw"]
    is_searched = slot["algorithm"] != NO_SEARCH
    position["model_fence"] = fence if is_searched else 0
    position["model_step"] = step if is_searched else 0


@cached_njit
def record_edges(moves: NDArray[np.void], row: NDArray[np.void], algorithm: int, scratch: NDArray[np.float64]) -> None:
    """Write the result of the search for each legal move; `row` are the root's edges."""
    q = edge_values(row, scratch)
    for i in range(len(row)):
        moves[i]["action"] = row[i]["action"]
        moves[i]["visits"] = row[i]["visits"]
        moves[i]["q"] = q[i]
        moves[i]["prior"] = math.exp(row[i]["logit"]) if algorithm != NO_SEARCH else 0.0


@cached_njit
def temperature(plies: int, settings: Record) -> float:
    """Return the temperature after `plies` moves: it halves every `temperature_plies` down to the final one."""
    first, final = settings["temperature"], settings["final_temperature"]
    return float(final + (first - final) * 0.5 ** (plies / settings["temperature_plies"]))


@cached_njit
def sample_index(policy: NDArray[np.float64], temperature: float, random: float) -> int:
    """Return an index sampled from policy^(1/temperature) by `random`, from [0, 1); never one of probability 0."""
    highest = 0.0
    for i in range(len(policy)):
        highest = max(highest, policy[i])
    weights = np.empty(len(policy))
    left = 0.0
    chosen = 0
    for i in range(len(policy)):
        weights[i] = (policy[i] / highest) ** (1 / temperature)
        left += random * weights[i]
    for i in range(len(weights)):
        if weights[i] > 0:
            chosen = i
            left -= weights[i]
            if left < 0:
                break
    return chosen


@cached_njit
def uniform(game: Record, purpose: int) -> float:
    """Return the game's random number for `purpose` at this ply, from [0, 1)."""
    return float(random_word(game, purpose) / 2**32)


@cached_njit
def random_word(game: Record, purpose: int) -> int:
    """Return the 32 random bits of `uniform`."""
    return int(random_bits(game["seed"], NUM_PURPOSES * game["plies"] + purpose))
