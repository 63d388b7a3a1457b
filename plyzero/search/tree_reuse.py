"""Tree reuse: the subtree below the move that was played becomes the next search's tree."""

from __future__ import annotations

from plyzero.search.numba_kernel import cached_njit, copy_to
from plyzero.search.tree import NO_EDGE, NO_NODE, Trees


@cached_njit
def keep_subtree(trees: Trees, b: int, e: int, simulations: int) -> bool:
    """Make the node below edge `e` of slot `b` the root, with its whole subtree.

    Return False, with nothing changed, if there is no such node, or no room for `simulations` more nodes. Otherwise
    trees.renumbered[0] holds each old node's new number, or NO_NODE. The caller puts the root's position into its place
    unless every node's position is kept.
    """
    slot, nodes, edges, states = trees.slots[b], trees.nodes[b], trees.edges[b], trees.states[b]
    number, shift, keeps_all = trees.renumbered[0], trees.renumbered[1], trees.settings[0]["keeps_all_states"]
    root, kept = edges[e]["child"], 0
    if root == NO_NODE:
        return False
    number[: slot["nodes"]] = NO_NODE
    for n in range(root, slot["nodes"]):
        if n == root or number[nodes[n]["parent"]] != NO_NODE:
            number[n] = kept
            kept += 1
    if kept + simulations >= len(nodes):
        return False
    free = 0
    # Nodes and their edges lie in the order in which they were added, parents first: all of them move down.
    for n in range(root, slot["nodes"]):
        if number[n] == NO_NODE:
            continue
        node, moved = nodes[n], nodes[number[n]]
        shift[n] = node["first_edge"] - free
        above = NO_NODE if n == root else node["parent"]
        place = NO_EDGE if n == root else node["edge"] - shift[above]
        for i in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
            edges[free] = edges[i]
            free += 1
        nodes[number[n]] = node
        moved["first_edge"] -= shift[n]
        moved["parent"] = NO_NODE if n == root else number[above]
        moved["edge"] = place
        if n != root:
            edges[place]["child"] = number[n]
        if keeps_all:
            copy_to(states[number[n]], states[n])
    slot["nodes"], slot["edges"] = kept, free
    return True
