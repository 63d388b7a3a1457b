"""What the end of the game tells of the positions above it: proven values, and exact expectations over rolls."""

from __future__ import annotations

from plyzero.search.kernel_cache import cached_njit
from plyzero.search.tree import NO_NODE, PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN, UNPROVEN, Records


@cached_njit
def prove(nodes: Records, edges: Records, n: int) -> None:
    """Prove what follows at node `n` and above: a winning move proves a win, else the best of moves all proven.

    This is right because a player chooses the edge. Chance does not: rolls prove a value only if all of them lead to
    it. If all are proven but differ, their expectation is exact, and nothing follows above.
    """
    while n != NO_NODE:
        node = nodes[n]
        best, worst, all_proven = PROVEN_LOSS, PROVEN_WIN, True
        for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            if edges[e]["proven"] == UNPROVEN:
                all_proven = False
            else:
                best = max(best, edges[e]["proven"])
                worst = min(worst, edges[e]["proven"])
        if not all_proven and (node["is_chance"] or best != PROVEN_WIN):
            return
        if node["is_chance"] and best != worst:
            set_expectation(nodes, edges, n)
            return
        node["proven"] = best
        if node["parent"] == NO_NODE:
            return
        same_player = nodes[node["parent"]]["to_play"] == node["to_play"]
        edges[node["edge"]]["proven"] = best if same_player else -best
        n = node["parent"]


@cached_njit
def set_expectation(nodes: Records, edges: Records, n: int) -> None:
    """Give chance node `n`, whose rolls are all proven, and the edge that leads to it their exact expected value."""
    node = nodes[n]
    total, value, draw = 0.0, 0.0, 0.0
    for e in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
        edge = edges[e]
        total += edge["prior"]
        value += edge["prior"] * edge["proven"]
        draw += edge["prior"] if edge["proven"] == PROVEN_DRAW else 0.0
    value, draw = value / total, draw / total
    node["is_exact"], node["value_sum"], node["draw_sum"] = 1, value * node["visits"], draw * node["visits"]
    above = edges[node["edge"]]
    same_player = nodes[node["parent"]]["to_play"] == node["to_play"]
    above["value_sum"] = above["visits"] * (value if same_player else -value)
