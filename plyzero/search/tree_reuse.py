"""What one search found, kept for the next: the tree below the move that was played."""

from __future__ import annotations

import numba

from plyzero.search.numba_arrays import copy_to
from plyzero.search.tree import NOTHING, Trees


@numba.njit(cache=True)
def keep_subtree(trees: Trees, b: int, e: int, simulations: int) -> bool:
    """Make the node below edge `e` of slot `b` the root, and keep all that hangs below it.

    Return False, with nothing changed, if there is no such node, or if no room would be left for `simulations` more.
    trees.renumbered then holds each node's new number, or NOTHING.
    """
    slot, nodes, edges, states = trees.slots[b], trees.nodes[b], trees.edges[b], trees.states[b]
    number, shift = trees.renumbered[0], trees.renumbered[1]
    root, kept = edges[e]["child"], 0
    if root == NOTHING:
        return False
    number[: slot["nodes"]] = NOTHING
    for n in range(root, slot["nodes"]):
        if n == root or number[nodes[n]["parent"]] != NOTHING:
            number[n] = kept
            kept += 1
    if kept + simulations >= len(nodes):
        return False
    free = 0
    # Nodes and their edges lie in the order in which they were made, parents first: all of them move down.
    for n in range(root, slot["nodes"]):
        if number[n] == NOTHING:
            continue
        node, moved = nodes[n], nodes[number[n]]
        shift[n] = node["first_edge"] - free
        above = NOTHING if n == root else node["parent"]
        place = NOTHING if n == root else node["edge"] - shift[above]
        for i in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            edges[free] = edges[i]
            free += 1
        nodes[number[n]] = node
        moved["first_edge"] -= shift[n]
        moved["parent"] = NOTHING if n == root else number[above]
        moved["edge"] = place
        if n != root:
            edges[place]["child"] = number[n]
        copy_to(states[number[n]], states[n])
    slot["nodes"], slot["edges"] = kept, free
    return True
