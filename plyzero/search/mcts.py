"""Monte Carlo tree search guided by a network: one simulation.

The algorithms are PUCT (AlphaZero: Silver et al., 2018, "Methods, Search") and Gumbel AlphaZero (Danihelka et al.,
2022). Both make the same simulation and differ in how an edge is selected. Symbols as in the papers: a simulation runs
from the root s_0 to a leaf s_L; (p, v) = f_θ(s) is the network's opinion; N(s, a) counts visits, W(s, a) sums their
values, Q = W / N, P is the prior; N(s) = 1 + Σ_b N(s, b), where the 1 is the position's own evaluation.

Proven values are backed up like any other, and proofs are carried up the tree. Earlier sums stay as they are: where an
edge is proven, selection takes the proven value in place of W / N.

Where chance moves, a node's edges are the rolls, and a simulation passes through it to the next position at which a
player moves, or to the end of the game. No network evaluates it. With `all_rolls` the first simulation that comes there
evaluates what each roll r leads to, and from then on the node is worth Σ_r P(r) Q(r), which every backup computes anew.

Everything here is compiled. Slots share nothing: what happens in one does not depend on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import DRAW, ONGOING
from plyzero.search import rule_calls, tree
from plyzero.search.copying import copy_to
from plyzero.search.evaluation_cache import ABSENT, find, recall
from plyzero.search.numba_kernel import cached_njit
from plyzero.search.policy import utility
from plyzero.search.selection import (
    expectation,
    limit_rolls,
    prepare_root,
    select_chance,
    select_gumbel,
    select_gumbel_root,
    select_puct,
    set_priors,
)
from plyzero.search.tree import Record, Records, Trees

if TYPE_CHECKING:
    from plyzero.rules.compiled_game import Rules


@cached_njit(inline="always")
def simulate(trees: Trees, b: int) -> None:
    """Make one simulation in slot `b`, or as much of it as does not have to wait.

    Every step sets the slot's phase, which names the next one; plyzero.search.tree has the table. Where a step has to
    wait (for rules in plain Python, for the network) the steps below it are skipped, and the next call goes on from
    there, as it does where chance moves and the leaf is not yet reached. Before the first simulation the same steps
    make the root: s_L is s_0, and there is nothing to select or to back up.
    """
    slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
    if slot["phase"] == tree.SELECT:  # for t = 0 ... L - 1: a_t = argmax_a Q(s_t, a) + U(s_t, a), or Gumbel's rule
        select(slot, nodes, edges, trees.noise[b], trees.schedules[b], trees.settings[0], trees.scratch)
    if slot["phase"] == tree.ROLL:  # chance in full: the next roll, or v = Σ_r P(r) v(r) after the last one
        next_roll(slot, nodes, edges)
    if slot["phase"] == tree.READ and trees.settings[0]["has_compiled_rules"]:  # s_L = play(s_{L-1}, a_{L-1})
        read_leaf(trees, b)
    if slot["phase"] == tree.EXPAND:  # a node s_L with an edge for every legal action, N = W = 0
        expand(trees, b)
    if slot["phase"] == tree.EVALUATE:  # (p, v) = f_θ(s_L): remembered, or from the network's next batch
        evaluate(trees, b)
    if slot["phase"] == tree.BACKUP:  # for t = L - 1 ... 0: N(s_t, a_t) += 1, W(s_t, a_t) += ±v
        backup(slot, nodes, edges, trees.settings[0])


@cached_njit
def select(
    slot: Record,
    nodes: Records,
    edges: Records,
    noise: NDArray[np.float32],
    schedule: NDArray[np.int32],
    settings: Record,
    scratch: NDArray[np.float64],
) -> None:
    """Walk from the root to an edge that leads to no node yet, or whose value is known: there the simulation ends."""
    if slot["simulations"] >= slot["budget"] or nodes[0]["proven"] != tree.UNPROVEN:
        slot["phase"] = tree.DONE
        return
    n = 0
    while True:
        if nodes[n]["is_chance"]:
            e = select_chance(nodes[n], edges, n)
        elif slot["algorithm"] == tree.PUCT:
            e = select_puct(nodes[n], edges, settings, n == 0)
        elif n == 0:
            e = select_gumbel_root(slot, nodes[0], edges, noise, schedule, settings, scratch)
        else:
            e = select_gumbel(nodes[n], edges, settings, scratch)
        edge = edges[e]
        if edge["proven"] != tree.UNPROVEN or edge["child"] == tree.NO_NODE:
            break
        if nodes[edge["child"]]["is_exact"] or nodes[edge["child"]]["visits"] == 0:
            break
        n = edge["child"]
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = slot["nodes"], e, n
    if edge["proven"] != tree.UNPROVEN:
        score = abs(edge["proven"]) * nodes[n]["score_sum"] / max(1, nodes[n]["visits"])
        set_proven_value(slot, edge["proven"], score)
    elif edge["child"] == tree.NO_NODE:
        slot["phase"] = tree.READ
    elif nodes[edge["child"]]["visits"] == 0:  # a leaf of plyzero.search.batches, which has no value yet
        slot["phase"] = tree.NETWORK
    else:
        set_mean_value(slot, nodes[n], nodes[edge["child"]])


@cached_njit(inline="always")
def read_leaf(trees: Trees, b: int) -> None:
    """Make the leaf's position by compiled rules; read its outcome and, if the game goes on, what the search needs."""
    slot = trees.slots[b]
    mask, observation = trees.masks[b], trees.observations[b]
    keeps_all = trees.settings[0]["keeps_all_states"]
    state = trees.states[b, row_of(slot["leaf"], keeps_all)]
    if slot["leaf_edge"] != tree.NO_EDGE:
        path = trees.renumbered[0]
        play_to_leaf(trees.rules, trees.states[b], slot, trees.nodes[b], trees.edges[b], path, keeps_all)
    slot["outcome"] = rule_calls.outcome(trees.rules, state)
    if slot["outcome"] != ONGOING and trees.settings[0]["max_score"] > 0:
        slot["score"] = rule_calls.score(trees.rules, state) / trees.settings[0]["max_score"]
    slot["to_play"] = state[trees.settings[0]["to_play_offset"]]
    slot["is_chance"] = rule_calls.is_chance(trees.rules, state, trees.chances[b])
    if slot["outcome"] == ONGOING and not slot["is_chance"]:
        mask[:] = False
        rule_calls.legal(trees.rules, state, mask)
        observation[:] = 0
        rule_calls.observe(trees.rules, state, observation)
    slot["phase"] = tree.EXPAND


@cached_njit
def row_of(leaf: int, keeps_all: int) -> int:
    """Return the row of a slot's states that holds the position of `leaf`, the node that a simulation adds."""
    return leaf if keeps_all else min(leaf, 1)


@cached_njit
def play_to_leaf(
    rules: Rules,
    states: NDArray[np.uint8],
    slot: Record,
    nodes: Records,
    edges: Records,
    path: NDArray[np.int32],
    keeps_all: int,
) -> None:
    """Make the position of the slot's leaf, which is not the root, from the nearest one above it that is kept.

    states: `[R, S]`, of the slot. path: `[N]`, room for the actions in between.
    """
    n, plies = slot["leaf_parent"], 1
    path[0] = edges[slot["leaf_edge"]]["action"]
    while n > 0 and not keeps_all:
        path[plies] = edges[nodes[n]["edge"]]["action"]
        plies += 1
        n = nodes[n]["parent"]
    state = states[row_of(slot["leaf"], keeps_all)]
    copy_to(state, states[n])
    for i in range(plies - 1, -1, -1):
        rule_calls.play(rules, state, path[i])


@cached_njit(inline="always")
def expand(trees: Trees, b: int) -> None:
    """Add the position just read to the tree: as a node with its edges, or as a proven edge if the game is over."""
    slot, nodes, edges = trees.slots[b], trees.nodes[b], trees.edges[b]
    mask, chances = trees.masks[b], trees.chances[b]
    if slot["edges"] + max(len(mask), len(chances)) > len(edges) or slot["nodes"] == len(nodes):
        slot["phase"] = tree.NO_ROOM
    elif slot["outcome"] == ONGOING and slot["is_chance"]:
        add_node(slot, nodes, edges, chances)
        roll_in_tree(slot, nodes, edges, chances, trees.settings[0]["all_rolls"])
    elif slot["outcome"] == ONGOING:
        if slot["leaf_edge"] == tree.NO_EDGE:
            copy_to(trees.roots[b], trees.observations[b])
        add_node(slot, nodes, edges, mask)
        slot["phase"] = tree.DONE if slot["algorithm"] == tree.NO_SEARCH else tree.EVALUATE
        if nodes[slot["leaf"]]["num_edges"] == 0:
            slot["phase"] = tree.NO_MOVE
    else:
        value = tree.PROVEN_DRAW
        if slot["outcome"] != DRAW:
            mover = trees.nodes[b, slot["leaf_parent"]]["to_play"]
            value = tree.PROVEN_WIN if slot["outcome"] == mover else tree.PROVEN_LOSS
        edge = trees.edges[b, slot["leaf_edge"]]
        edge["proven"] = value
        edge["plies"] = 0 if nodes[slot["leaf_parent"]]["is_chance"] else 1
        set_proven_value(slot, value, value * slot["score"])


@cached_njit
def add_node(slot: Record, nodes: Records, edges: Records, possible: NDArray[np.generic]) -> None:
    """Add the leaf as a node, with an edge for every action, or roll, that is not 0 in `possible`, `[A]` or `[K]`."""
    node = nodes[slot["leaf"]]
    node["parent"], node["edge"] = slot["leaf_parent"], slot["leaf_edge"]
    node["to_play"] = slot["to_play"]
    node["is_chance"] = slot["is_chance"]
    node["proven"] = tree.UNPROVEN
    node["is_exact"] = 0
    node["in_full"] = 0
    node["visits"] = 0
    node["value_sum"] = 0.0
    node["draw_sum"] = 0.0
    node["result_sum"] = 0.0
    node["score_sum"] = 0.0
    node["network_value"] = 0.0
    node["network_draw"] = 0.0
    node["first_edge"] = slot["edges"]
    for action in range(len(possible)):
        if possible[action]:
            edge = edges[slot["edges"]]
            edge["action"] = action
            edge["child"] = tree.NO_NODE
            edge["proven"] = tree.UNPROVEN
            edge["visits"] = 0
            edge["value_sum"] = 0.0
            slot["edges"] += 1
    node["num_edges"] = slot["edges"] - node["first_edge"]
    if slot["leaf_edge"] != tree.NO_EDGE:
        edges[slot["leaf_edge"]]["child"] = slot["leaf"]
    slot["nodes"] += 1


@cached_njit
def roll_in_tree(slot: Record, nodes: Records, edges: Records, chances: NDArray[np.float32], all_rolls: int) -> None:
    """Let the simulation go on from the chance node just added, of `chances`, `[K]`, to what a roll leads to.

    With `all_rolls` that is each roll in turn, if a player moved before and MAX_IN_FULL allows it. Of a roll that
    follows a roll, one is taken: there the rolls would multiply.
    """
    n = slot["leaf"]
    node = nodes[n]
    limit_rolls(nodes, n)
    for e in range(node["first_edge"], slot["edges"]):
        edges[e]["prior"] = chances[edges[e]["action"]]
        edges[e]["logit"] = 0.0
    if all_rolls and node["num_edges"] <= tree.MAX_IN_FULL and not nodes[node["parent"]]["is_chance"]:
        node["in_full"] = 1
        slot["rolling"] = n
        slot["phase"] = tree.ROLL
    else:
        set_leaf_below(slot, n, select_chance(node, edges, n))


@cached_njit
def next_roll(slot: Record, nodes: Records, edges: Records) -> None:
    """Let the simulation go on to the next roll of the node `rolling`, or end with their expectation after the last."""
    n = slot["rolling"]
    node = nodes[n]
    for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
        if edges[e]["visits"] == 0:
            set_leaf_below(slot, n, e)
            return
    node["visits"] = 1
    node["value_sum"], node["draw_sum"], node["score_sum"] = expectation(nodes, edges, n)
    node["result_sum"] = node["value_sum"]
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = n, node["edge"], node["parent"]
    slot["rolling"] = tree.NO_NODE
    set_mean_value(slot, nodes[node["parent"]], node)


@cached_njit
def set_leaf_below(slot: Record, n: int, e: int) -> None:
    """Let the leaf be what edge `e` of node `n` leads to."""
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = slot["nodes"], e, n
    slot["phase"] = tree.READ


@cached_njit(inline="always")
def evaluate(trees: Trees, b: int) -> None:
    """Take the leaf's evaluation from the cache, or let it wait for the network."""
    row = edges_below(trees.edges[b], trees.nodes[b, trees.slots[b]["leaf"]])
    found = find(trees.cache, trees.observations[b], row)
    if found == ABSENT:
        trees.slots[b]["phase"] = tree.NETWORK
    else:
        recall(trees.cache, found, row, trees.wdl)
        set_evaluation(trees, b, row, trees.wdl)


@cached_njit(inline="always")
def edges_below(edges: Records, node: Record) -> Records:
    """Return the edges of `node`, `[n]` EDGE."""
    return edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]


@cached_njit(inline="always")
def set_evaluation(trees: Trees, b: int, row: Records, wdl: NDArray[np.float32]) -> None:
    """Give the leaf its value `wdl`: win, draw, loss and perhaps the score for its player to move.

    The logits are in its edges.
    """
    slot, node = trees.slots[b], trees.nodes[b, trees.slots[b]["leaf"]]
    set_priors(row)
    value, draw = wdl[0] - wdl[2], wdl[1]
    score = np.float32(0.0) if len(wdl) < 4 else wdl[3]
    if slot["leaf_edge"] == tree.NO_EDGE:
        slot["score_centre"] = score if node["to_play"] == 0 else -score
    own = utility(float(value), float(score), node["to_play"], slot, trees.settings[0])
    node["network_value"] = own
    node["network_draw"] = draw
    node["visits"] = 1
    node["value_sum"] = own
    node["draw_sum"] = draw
    node["result_sum"] = value
    node["score_sum"] = score
    if slot["leaf_edge"] == tree.NO_EDGE:
        prepare_root(slot, row, trees.noise[b], trees.schedules[b], trees.settings[0])
        slot["phase"] = tree.SELECT
    else:
        same_player = trees.nodes[b, slot["leaf_parent"]]["to_play"] == node["to_play"]
        slot["leaf_value"] = value if same_player else -value
        slot["leaf_draw"] = draw
        slot["leaf_score"] = score if same_player else -score
        slot["phase"] = tree.BACKUP


@cached_njit
def set_proven_value(slot: Record, proven: int, score: float) -> None:
    """Let the simulation end at an edge whose value is `proven`, with a score, for the player who moves there.

    PROVEN_LOSS, PROVEN_DRAW and PROVEN_WIN are the values -1, 0 and +1.
    """
    slot["leaf_value"] = proven
    slot["leaf_draw"] = 1.0 if proven == tree.PROVEN_DRAW else 0.0
    slot["leaf_score"] = score
    slot["phase"] = tree.BACKUP


@cached_njit
def set_mean_value(slot: Record, above: Record, node: Record) -> None:
    """Let the simulation end above chance node `node`, with its mean value; `above` is the node above it."""
    sign = 1 if above["to_play"] == node["to_play"] else -1
    slot["leaf_value"] = sign * node["value_sum"] / node["visits"]
    slot["leaf_score"] = sign * node["score_sum"] / node["visits"]
    slot["leaf_draw"] = node["draw_sum"] / node["visits"]
    slot["phase"] = tree.BACKUP


@cached_njit
def backup(slot: Record, nodes: Records, edges: Records, settings: Record) -> None:
    """Add one visit and the leaf's utility to every edge and node on the path, from the leaf's parent to the root.

    The sign turns where the player to move turns, not at every ply: a player may move twice. The leaf's own first visit
    was counted in `set_evaluation`. Where the simulation ended at a proven edge, what follows from it is proven too.

    The path ends at the node whose rolls are being evaluated. Above one whose rolls all have a value, the simulation
    adds what makes the sum N(s) · Σ_r P(r) Q(r).
    """
    n, e = slot["leaf_parent"], slot["leaf_edge"]
    result, draw, score = slot["leaf_value"], slot["leaf_draw"], slot["leaf_score"]
    value = utility(result, score, nodes[n]["to_play"], slot, settings)
    while True:
        node, edge = nodes[n], edges[e]
        edge["visits"] += 1
        edge["value_sum"] += value
        if n == slot["rolling"]:
            break
        node["visits"] += 1
        if node["in_full"]:
            value, draw, score = expectation(nodes, edges, n)
            value = value * node["visits"] - node["value_sum"]
            draw = draw * node["visits"] - node["draw_sum"]
            score = score * node["visits"] - node["score_sum"]
            if settings["score_weight"] == 0:
                result = value
        node["value_sum"] += value
        node["draw_sum"] += draw
        node["result_sum"] += result
        node["score_sum"] += score
        if node["parent"] == tree.NO_NODE:
            break
        if nodes[node["parent"]]["to_play"] != node["to_play"]:
            value, result, score = -value, -result, -score
        n, e = node["parent"], node["edge"]
    if edges[slot["leaf_edge"]]["proven"] != tree.UNPROVEN:
        prove(nodes, edges, slot["leaf_parent"], settings)
    if slot["rolling"] != tree.NO_NODE:
        slot["phase"] = tree.ROLL
    else:
        slot["simulations"] += 1
        slot["phase"] = tree.SELECT


# --- proofs: exact values of decided positions, and exact expectations over rolls ---


@cached_njit
def prove(nodes: Records, edges: Records, n: int, settings: Record) -> None:
    """Prove what follows at node `n` and above: a winning move proves a win, else the best of moves all proven.

    This is right because a player chooses the edge. Chance does not: rolls prove a value only if all of them lead to
    it. If all are proven but differ, their expectation is exact, and nothing follows above.

    A win lasts as long as the shortest of the winning moves that are known, a loss as the longest move: the plies are
    the most that the game can last if the winner plays what is proven. Of rolls the longest counts; they are no plies.
    """
    while n != tree.NO_NODE:
        node = nodes[n]
        best, worst, all_proven = tree.PROVEN_LOSS, tree.PROVEN_WIN, True
        shortest, longest = tree.MAX_DISTANCE, 0
        for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            edge = edges[e]
            if edge["proven"] == tree.UNPROVEN:
                all_proven = False
            else:
                best = max(best, edge["proven"])
                worst = min(worst, edge["proven"])
                longest = max(longest, edge["plies"])
                if edge["proven"] == tree.PROVEN_WIN:
                    shortest = min(shortest, edge["plies"])
        if not all_proven and (node["is_chance"] or best != tree.PROVEN_WIN):
            return
        if node["is_chance"] and best != worst:
            set_expectation(nodes, edges, n, settings)
            return
        node["proven"] = best
        node["plies"] = shortest if best == tree.PROVEN_WIN and not node["is_chance"] else longest
        if node["parent"] == tree.NO_NODE:
            return
        above = nodes[node["parent"]]
        edge = edges[node["edge"]]
        edge["proven"] = best if above["to_play"] == node["to_play"] else -best
        edge["plies"] = node["plies"] if above["is_chance"] else min(node["plies"] + 1, tree.MAX_DISTANCE)
        n = node["parent"]


@cached_njit
def set_expectation(nodes: Records, edges: Records, n: int, settings: Record) -> None:
    """Give chance node `n`, whose rolls are all proven, and the edge that leads to it their exact expected value."""
    node = nodes[n]
    value, draw, _ = expectation(nodes, edges, n)
    node["value_sum"] = value * node["visits"]
    node["draw_sum"] = draw * node["visits"]
    node["is_exact"] = 1
    node["in_full"] = 1  # leaves below may still wait for the network: their values must not change this one
    above = edges[node["edge"]]
    same_player = nodes[node["parent"]]["to_play"] == node["to_play"]
    if settings["score_weight"] == 0:  # otherwise the sum keeps earlier utilities, and only later ones are exact
        above["value_sum"] = above["visits"] * (value if same_player else -value)


# --- the beginning of a search ---


@cached_njit
def begin_search(slot: Record, algorithm: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Begin with an empty tree, whose first leaf is the root. The position must not be finished."""
    set_plan(slot, algorithm, simulations, noisy, noise_seed)
    slot["nodes"], slot["edges"] = 0, 0
    slot["leaf"], slot["leaf_edge"], slot["leaf_parent"] = 0, tree.NO_EDGE, tree.NO_NODE
    slot["rolling"] = tree.NO_NODE
    slot["row"] = 0
    slot["phase"] = tree.READ


@cached_njit
def set_plan(slot: Record, algorithm: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Store what is asked of a search of which no simulation has been made."""
    slot["algorithm"] = algorithm
    slot["budget"] = simulations
    slot["simulations"] = 0
    slot["noisy"] = noisy
    slot["noise_seed"] = noise_seed


@cached_njit
def resume_search(trees: Trees, b: int, simulations: int, noisy: bool, noise_seed: int) -> None:
    """Begin with the tree that slot `b` holds, by PUCT."""
    slot, root = trees.slots[b], trees.nodes[b, 0]
    row = edges_below(trees.edges[b], root)
    set_plan(slot, tree.PUCT, simulations, noisy, noise_seed)
    slot["phase"] = tree.SELECT
    score = root["score_sum"] / root["visits"]
    slot["score_centre"] = score if root["to_play"] == 0 else -score
    prepare_root(slot, row, trees.noise[b], trees.schedules[b], trees.settings[0])
