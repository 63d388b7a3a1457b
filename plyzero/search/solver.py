"""Exact ends: alpha-beta search from the root of a compiled game without dice, under a budget of nodes.

A search with a network errs in the end of a game, where every move matters and few are left. There alpha-beta (Knuth
and Moore, 1975) finds the exact value of each move: the values are -1, 0 and 1, so a window closes soon, and moves that
leave the fewest replies are searched first. What it proves replaces what the search has found of the same moves.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.search import rule_calls
from plyzero.search.numba_kernel import borrowed, cached_njit, copy_to
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN, UNPROVEN, Record

if TYPE_CHECKING:
    from plyzero.search.slots import SearchResult

MAX_PLIES: Final = 128
"""Plies to the end of a game beyond which nothing is proven."""

FIRST_SHARE: Final = 8
"""The first move gets this part of the positions: where it is not solved by then, the game is too far from its end."""

ROOM_FOR_LUCK: Final = 50.0
"""A search is tried if it seems to need at most so many times the positions that it may make."""

FEW: Final = 100
"""Positions that are made to measure how long one takes."""

FRAME: Final = np.dtype(
    [
        ("moves", "i4"),  # number of moves
        ("next", "i4"),  # the move to search next
        ("plies", "i4"),  # length of the best line
        ("low", "i1"),  # the window: only values above this and
        ("high", "i1"),  # below this matter to the positions above
        ("best", "i1"),  # value of the best move so far
    ],
    align=True,
)
"""A position on the path that is searched. Values are for its player to move."""


class Path(NamedTuple):
    """The positions on the path that is searched, at most P of them.

    states: `[P, S]` uint8.
    frames: `[P]` FRAME.
    moves:  `[P, A]` int32, in the order in which they are searched.
    lines:  `[P, P]` int32, the best line from each position.
    mask:   `[A]` bool, room for legal actions.
    ranks:  `[A]` int32, room for the ranks of moves.
    """

    states: NDArray[np.uint8]
    frames: NDArray[np.void]
    moves: NDArray[np.int32]
    lines: NDArray[np.int32]
    mask: NDArray[np.bool_]
    ranks: NDArray[np.int32]


@cached_njit
def solve(rules: Rules, path: Path, to_play: int, budget: int) -> tuple[int, int]:
    """Return the value of `path.states[0]` for its player to move, or UNPROVEN, and the number of positions made.

    to_play: the byte of a state that holds the player to move. The line to the end is then in `path.lines[0]`.
    """
    path = borrowed(path)
    states, frames, moves, lines = path.states, path.frames, path.moves, path.lines
    d, nodes = 0, 0
    frames[0]["low"], frames[0]["high"] = PROVEN_LOSS, PROVEN_WIN
    while True:
        if nodes > budget or d + 1 == len(frames) or not enter(rules, path, d, to_play):
            return UNPROVEN, nodes
        nodes += 1 + frames[d]["moves"]
        while frames[d]["next"] == frames[d]["moves"] or frames[d]["best"] >= frames[d]["high"]:
            if d == 0:
                return frames[0]["best"], nodes
            d -= 1
            leave(
                frames[d], frames[d + 1], states[d, to_play] == states[d + 1, to_play], moves[d], lines[d], lines[d + 1]
            )
        frame, below = frames[d], frames[d + 1]
        copy_to(states[d + 1], states[d])
        rule_calls.play(rules, states[d + 1], moves[d, frame["next"]])
        frame["next"] += 1
        same_player = states[d, to_play] == states[d + 1, to_play]
        below["low"] = frame["low"] if same_player else -frame["high"]
        below["high"] = frame["high"] if same_player else -frame["low"]
        d += 1


@cached_njit
def enter(rules: Rules, path: Path, d: int, to_play: int) -> bool:
    """Begin with position `d` of the path: its value if the game is over, else its moves; False if there are none."""
    frame, state = path.frames[d], path.states[d]
    frame["next"], frame["plies"] = 0, 0
    code = rule_calls.outcome(rules, state)
    if code != ONGOING:
        frame["moves"] = 0
        frame["best"] = PROVEN_DRAW if code == DRAW else PROVEN_WIN if code == state[to_play] else PROVEN_LOSS
        return True
    frame["best"] = PROVEN_LOSS - 1
    frame["moves"] = order_moves(rules, path, d, to_play)
    return bool(frame["moves"] > 0)


@cached_njit
def order_moves(rules: Rules, path: Path, d: int, to_play: int) -> int:
    """Put the moves of position `d` into order, and return their number: wins, then those that leave fewest replies."""
    moves, ranks, mask, state, after = path.moves[d], path.ranks, path.mask, path.states[d], path.states[d + 1]
    mask[:] = False
    rule_calls.legal(rules, state, mask)
    count = 0
    for action in range(len(mask)):
        if mask[action]:
            moves[count] = action
            count += 1
    for i in range(count):
        action = moves[i]
        copy_to(after, state)
        rule_calls.play(rules, after, action)
        code = rule_calls.outcome(rules, after)
        rank = -2 * len(mask) if code == state[to_play] else 0
        if code == ONGOING:
            mask[:] = False
            rule_calls.legal(rules, after, mask)
            rank = mask.sum() - (len(mask) if after[to_play] == state[to_play] else 0)
        j = i  # insertion sort
        while j > 0 and ranks[j - 1] > rank:
            ranks[j], moves[j] = ranks[j - 1], moves[j - 1]
            j -= 1
        ranks[j], moves[j] = rank, action
    return count


@cached_njit
def leave(
    above: Record,
    below: Record,
    same_player: bool,
    moves: NDArray[np.int32],
    line: NDArray[np.int32],
    line_below: NDArray[np.int32],
) -> None:
    """Take the value of the move just searched, that of `below`, into `above`, the position before it."""
    value = below["best"] if same_player else -below["best"]
    if value > above["best"]:
        above["best"], above["low"] = value, max(above["low"], value)
        above["plies"] = 1 + below["plies"]
        line[0] = moves[above["next"] - 1]
        line[1 : above["plies"]] = line_below[: below["plies"]]


@cached_njit
def log_size(rules: Rules, path: Path) -> float:
    """Return the logarithm of about how many positions alpha-beta makes from `path.states[0]`, as one line shows it.

    In the best order it needs the square root of the number of lines (Knuth and Moore). Infinite if the line does not
    end within the room of `path`.
    """
    path = borrowed(path)
    size, state, mask = 0.0, path.states[1], path.mask
    copy_to(state, path.states[0])
    for ply in range(len(path.states)):
        if rule_calls.outcome(rules, state) != ONGOING:
            return size
        mask[:] = False
        rule_calls.legal(rules, state, mask)
        count = mask.sum()
        if count == 0:
            break
        size += 0.5 * math.log(count)
        skipped = 7919 * ply % count  # some move, always the same
        for action in range(len(mask)):
            if mask[action]:
                if skipped == 0:
                    rule_calls.play(rules, state, action)
                    break
                skipped -= 1
    return math.inf


def with_exact_end(position: Game, result: SearchResult, *, nodes: int, seconds: float = math.inf) -> SearchResult:
    """Return `result`, of a search of `position`, with the values that alpha-beta proves.

    nodes:   positions that it may make; where it seems to need many more, it is not tried.
    seconds: time that it may take: it makes no more positions than seem to fit.

    The moves are solved from the best to the worst. A win ends this, and so does the first move whose value is not
    proven. Nothing changes for games with dice or in plain Python, nor without simulations: that is the raw network.
    """
    if not isinstance(position, CompiledGame) or position.num_chances or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return result
    if not nodes or not result.simulations or result.proven != UNPROVEN:
        return result
    assert position.State.fields is not None
    rules, to_play = rule_calls.addresses(position.rules), position.State.fields["to_play"][1]
    path = _room(position)
    path.states[0] = position.state
    if seconds < math.inf:
        began = perf_counter()
        made = solve(rules, path, to_play, FEW)[1]
        nodes = min(nodes, int(made * seconds / (perf_counter() - began)))
    if not nodes or log_size(rules, path) > math.log(ROOM_FOR_LUCK * nodes):
        return result
    q, lines = result.q.copy(), [*result.principal_variations]
    left, limit = nodes, nodes // FIRST_SHARE
    order = np.argsort(-result.policy, kind="stable").tolist()
    for solved, i in enumerate(order):
        action = int(result.actions[i])
        path.states[0] = position.state
        position.rules.play(path.states[0], action)
        is_same_player = path.states[0, to_play] == position.to_play
        value, used = solve(rules, path, to_play, min(left, limit) if solved == 0 else left)
        left -= used
        if value == UNPROVEN:
            return replace(result, q=q, principal_variations=tuple(lines))
        q[i] = value if is_same_player else -value
        if lines:
            lines[i] = (action, *path.lines[0, : path.frames[0]["plies"]].tolist())
        if q[i] == PROVEN_WIN:
            break
    best = int(np.nanmax(q[order[: solved + 1]]))
    return replace(
        result,
        q=q,
        proven=best,
        value=float(best),
        draw=float(best == PROVEN_DRAW),
        principal_variations=tuple(lines),
    )


def _room(position: CompiledGame) -> Path:
    plies, actions = min(position.max_plies + 1, MAX_PLIES) + 1, position.num_actions
    return Path(
        states=np.zeros((plies, len(position.state)), np.uint8),
        frames=np.zeros(plies, FRAME),
        moves=np.zeros((plies, actions), np.int32),
        lines=np.zeros((plies, plies), np.int32),
        mask=np.zeros(actions, np.bool_),
        ranks=np.zeros(actions, np.int32),
    )
