"""Exact ends: alpha-beta search from the root of a compiled game without dice, under a budget of nodes.

A search with a network errs in the end of a game, where every move matters and few are left. There alpha-beta (Knuth
and Moore, 1975) finds the exact value of each move: the values are -1, 0 and 1, so a window closes soon, and moves that
leave the fewest replies are searched first. Positions that several lines reach are searched once, as long as a table
has room. What is proven replaces what the search has found of the same moves.

Whoever wins should hurry, and whoever loses should not. So where a win or a loss is proven, by alpha-beta or by the
tree, alpha-beta goes on with a horizon of 1, 2, 3 ... plies, at which nothing is won (iterative deepening): the first
one within which a move wins or loses is the distance to the end of the game.

A search with a network may also miss a win of a few plies: among many moves it tries some, or has no visits left for
the answers. So where nothing is proven, alpha-beta first looks for a win within 1, 3, 5 ... plies, for a small part of
the time that the search took.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame, Rules
from plyzero.rules.counter_rng import random_bits
from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.search import rule_calls
from plyzero.search.copying import copy_to
from plyzero.search.numba_kernel import borrowed, cached_njit, is_plain_python
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN, UNPROVEN, Record

if TYPE_CHECKING:
    from plyzero.search.slots import SearchResult

MAX_PLIES: Final = 128
"""Plies to the end of a game beyond which nothing is proven."""

LINES: Final = 8
"""Random lines to the end of the game, each of which suggests how many positions alpha-beta makes."""

ROOM_FOR_LUCK: Final = 500.0
"""The end is near by a line that suggests at most so many times the positions that may be made."""

NEAR_SHARE: Final = 4
LUCKY_SHARE: Final = 256
"""The first move gets one part in NEAR_SHARE of the positions if all LINES say that the end is near, and one in
LUCKY_SHARE if some do. If it is not solved by then, the end is too far."""

DISTANCE_NODES: Final = 200_000
"""Positions that may be made for distances, besides those for values."""

SHORT_WIN_NODES: Final = 64
"""Positions for each simulation of the search that may be made to find a win of a few plies. In chess, 800 simulations
give enough for nearly all mates in 3, and this adds about a tenth to their time with a network of 3 x 32."""

UNORDERED_PLIES: Final = 2
"""Plies before a horizon in which replies are not counted: that would take longer than to search the moves."""

NO_HORIZON: Final = -1

FRAME: Final = np.dtype(
    [
        ("moves", "i4"),  # number of moves
        ("next", "i4"),  # the move to search next
        ("plies", "i4"),  # length of the best line
        ("low", "i1"),  # the window: only values above this and
        ("high", "i1"),  # below this matter to the positions above
        ("best", "i1"),  # value of the best move so far
        ("floor", "i1"),  # `low` at first
        ("key", "i8"),  # hash of the position
    ],
    align=True,
)
"""A position on the path that is searched. Values are for its player to move."""

BOUNDS: Final = np.dtype([("key", "i8"), ("low", "i1"), ("high", "i1")], align=True)
"""Bounds of the value of the position with a hash, for its player to move. Of 64 bits, no two positions of a search
have the same hash, but for a chance of one in millions."""


class Path(NamedTuple):
    """The positions on the path that is searched, at most P of them.

    states: `[P, S]` uint8.
    frames: `[P]` FRAME.
    moves:  `[P, A]` int32, in the order in which they are searched.
    lines:  `[P, P]` int32, the best line from each position.
    mask:   `[A]` bool, room for legal actions.
    ranks:  `[A]` int64, room for the ranks of moves.
    cuts:   `[2, A]` int64, how often each move of each player has cut off the others of its position.
    table:  `[T]` BOUNDS, T a power of two: the newest position whose hash ends in the bits of a place.
    """

    states: NDArray[np.uint8]
    frames: NDArray[np.void]
    moves: NDArray[np.int32]
    lines: NDArray[np.int32]
    mask: NDArray[np.bool_]
    ranks: NDArray[np.int64]
    cuts: NDArray[np.int64]
    table: NDArray[np.void]


@cached_njit
def solve(rules: Rules, path: Path, to_play: int, budget: int, low: int, high: int, horizon: int) -> tuple[int, int]:
    """Return the value of `path.states[0]` for its player to move, or UNPROVEN, and the number of positions made.

    to_play:   the byte of a state that holds the player to move.
    low, high: the window: of a value that is not between them, it is only found that it is not.
    horizon:   plies after which a game that goes on counts as drawn, or NO_HORIZON.

    The best line is then in `path.lines[0]`; it ends with the game or at a position in the table.
    """
    path = borrowed(path)
    states, frames, moves = path.states, path.frames, path.moves
    d, nodes = 0, 0
    frames[0]["low"], frames[0]["high"] = low, high
    while True:
        if nodes > budget or d + 1 == len(frames) or not enter(rules, path, d, to_play, horizon):
            return UNPROVEN, nodes
        nodes += 1 + frames[d]["moves"]
        while frames[d]["next"] == frames[d]["moves"] or frames[d]["best"] >= frames[d]["high"]:
            if frames[d]["moves"]:
                remember(path.table, frames[d])
                if frames[d]["next"] < frames[d]["moves"] and frames[d]["plies"] > 1:
                    path.cuts[states[d, to_play], moves[d, frames[d]["next"] - 1]] += 1
            if d == 0:
                return frames[0]["best"], nodes
            d -= 1
            leave(path, d, to_play)
        frame, below = frames[d], frames[d + 1]
        copy_to(states[d + 1], states[d])
        rule_calls.play(rules, states[d + 1], moves[d, frame["next"]])
        frame["next"] += 1
        same_player = states[d, to_play] == states[d + 1, to_play]
        below["low"] = frame["low"] if same_player else -frame["high"]
        below["high"] = frame["high"] if same_player else -frame["low"]
        d += 1


@cached_njit
def enter(rules: Rules, path: Path, d: int, to_play: int, horizon: int) -> bool:
    """Begin with position `d` of the path: its value if it is known well enough, else its moves; False without any."""
    frame, state = path.frames[d], path.states[d]
    frame["next"] = 0
    frame["plies"] = 0
    frame["moves"] = 0
    frame["floor"] = frame["low"]
    code = rule_calls.outcome(rules, state)
    if code != ONGOING:
        if code == DRAW:
            frame["best"] = PROVEN_DRAW
        elif code == state[to_play]:
            frame["best"] = PROVEN_WIN
        else:
            frame["best"] = PROVEN_LOSS
        return True
    if d == horizon:
        frame["best"] = PROVEN_DRAW
        return True
    frame["key"] = hash_of(state)
    if horizon != NO_HORIZON:  # what is known of a position depends on the plies that are left
        frame["key"] ^= (horizon - d) * -7046029254386353131
    known = path.table[frame["key"] & (len(path.table) - 1)]
    if d and known["key"] == frame["key"]:  # not at d = 0, where the caller also wants the best line
        frame["best"] = known["low"] if known["low"] >= frame["high"] else known["high"]
        if known["low"] == known["high"] or known["low"] >= frame["high"] or known["high"] <= frame["low"]:
            return True
    frame["best"] = PROVEN_LOSS - 1
    frame["moves"] = list_moves(rules, path, d)
    order_moves(rules, path, d, to_play, horizon == NO_HORIZON or horizon - d > UNORDERED_PLIES)
    return bool(frame["moves"] > 0)


@cached_njit
def remember(table: NDArray[np.void], frame: Record) -> None:
    """Store what the best value of a finished `frame` says, which is a bound if it is outside of the window."""
    known = table[frame["key"] & (len(table) - 1)]
    if known["key"] != frame["key"]:
        known["key"] = frame["key"]
        known["low"], known["high"] = PROVEN_LOSS, PROVEN_WIN
    if frame["best"] > frame["floor"]:
        known["low"] = max(known["low"], frame["best"])
    if frame["best"] < frame["high"]:
        known["high"] = min(known["high"], frame["best"])


@cached_njit
def hash_of(state: NDArray[np.uint8]) -> int:
    """Return 64 bits that depend on all bytes of `state`: FNV-1a, and a last step of SplitMix64."""
    key = -3750763034362895579
    for k in range(len(state)):
        key = (key ^ state[k]) * 1099511628211
    key = (key ^ (key >> 30)) * -4658895280553007687
    return key ^ (key >> 27)


@cached_njit
def list_moves(rules: Rules, path: Path, d: int) -> int:
    """Write the moves of position `d` in ascending order, and return their number."""
    moves, mask = path.moves[d], path.mask
    mask[:] = False
    rule_calls.legal(rules, path.states[d], mask)
    count = 0
    for action in range(len(mask)):
        if mask[action]:
            moves[count] = action
            count += 1
    return count


@cached_njit
def order_moves(rules: Rules, path: Path, d: int, to_play: int, looks_ahead: bool) -> None:
    """Put the moves of position `d` into order.

    Moves that win come first, then those that leave the fewest replies, if it `looks_ahead`. Among equals, those that
    have cut off the most come first (history heuristic; Schaeffer, 1989).
    """
    moves, ranks = path.moves[d], path.ranks
    cuts = path.cuts[path.states[d, to_play]]
    all_cuts = cuts.sum() + 1
    for i in range(path.frames[d]["moves"]):
        action = moves[i]
        rank = rank_of(rules, path, d, to_play, action) if looks_ahead else 0
        rank = 1000 * rank - 999 * cuts[action] // all_cuts  # cuts weigh less than one reply
        j = i  # insertion sort
        while j > 0 and ranks[j - 1] > rank:
            ranks[j], moves[j] = ranks[j - 1], moves[j - 1]
            j -= 1
        ranks[j], moves[j] = rank, action


@cached_njit
def rank_of(rules: Rules, path: Path, d: int, to_play: int, action: int) -> int:
    """Return the number of replies to `action` at position `d`; less if it wins, or the same player moves again."""
    state, after, mask = path.states[d], path.states[d + 1], path.mask
    copy_to(after, state)
    rule_calls.play(rules, after, action)
    code = rule_calls.outcome(rules, after)
    if code != ONGOING:
        return -2 * len(mask) if code == state[to_play] else 0
    mask[:] = False
    rule_calls.legal(rules, after, mask)
    return int(mask.sum()) - (len(mask) if after[to_play] == state[to_play] else 0)


@cached_njit
def leave(path: Path, d: int, to_play: int) -> None:
    """Take the value of the move just searched, that of position `d + 1`, into position `d`, the one before it."""
    above, below, line = path.frames[d], path.frames[d + 1], path.lines[d]
    value = below["best"] if path.states[d, to_play] == path.states[d + 1, to_play] else -below["best"]
    if value > above["best"]:
        above["best"] = value
        above["low"] = max(above["low"], value)
        above["plies"] = 1 + below["plies"]
        line[0] = path.moves[d, above["next"] - 1]
        for ply in range(below["plies"]):  # a slice would compile the text of its error, for seconds
            line[1 + ply] = path.lines[d + 1, ply]


@cached_njit
def near_ends(rules: Rules, path: Path, positions: float) -> int:
    """Return how many of LINES random lines from `path.states[0]` suggest that alpha-beta makes at most `positions`.

    A line with b, c, d ... legal moves suggests √(b · c · d ...), as of moves in the best order (Knuth and Moore).
    """
    path = borrowed(path)
    state, mask = path.states[1], path.mask
    most = math.log(positions)
    near = 0
    for line in range(LINES):
        size = 0.0
        copy_to(state, path.states[0])
        for ply in range(len(path.states)):
            if rule_calls.outcome(rules, state) != ONGOING:
                near += 1
                break
            mask[:] = False
            rule_calls.legal(rules, state, mask)
            moves = np.flatnonzero(mask)
            size += 0.5 * math.log(max(len(moves), 1))
            if len(moves) == 0 or size > most:
                break
            rule_calls.play(rules, state, moves[random_bits(np.uint64(line), ply) % len(moves)])
    return near


def with_exact_end(position: Game, result: SearchResult, *, nodes: int, seconds: float = math.inf) -> SearchResult:
    """Return `result`, of a search of `position`, with the values that alpha-beta proves, and distances to the end.

    nodes:   positions that it may make for values; where it seems to need many more, few or none are tried. 0 = the
             result stays as it is: a reference such as mcts:100 costs and plays what it always did.
    seconds: time that it may take: it makes no more positions than seem to fit.

    Nothing changes for games with dice or in plain Python, nor without simulations: that is the raw network.
    """
    if not isinstance(position, CompiledGame) or position.num_chances or is_plain_python():
        return result
    if not nodes or not result.simulations or result.proven == PROVEN_DRAW:
        return result
    end = _End(position, nodes + DISTANCE_NODES, seconds)
    if result.proven == UNPROVEN and not result.settings.score_weight:
        result = _with_short_win(end, result, min(nodes, SHORT_WIN_NODES * result.simulations, end.left))
    if result.proven == UNPROVEN:
        result = _with_values(end, result, min(nodes, end.left))
    if result.proven in (PROVEN_WIN, PROVEN_LOSS) and not result.settings.score_weight:
        result = _with_distances(end, result)
    return result


def _with_short_win(end: _End, result: SearchResult, nodes: int) -> SearchResult:
    """Look for a win within 1, 3, 5 ... plies, as far as so many positions suffice."""
    spared = end.left - nodes
    end.winner = end.position.to_play
    for horizon in range(1, MAX_PLIES, 2):
        value = end.value(end.left - spared, horizon)
        if value == UNPROVEN:
            break
        if value == PROVEN_WIN:
            line = end.line(horizon)
            i = result.actions.tolist().index(line[0])
            q, plies, lines = result.q.copy(), result.plies.copy(), [*result.principal_variations]
            q[i], plies[i] = PROVEN_WIN, horizon
            if lines:
                lines[i] = line
            result = replace(result, q=q, plies=plies, principal_variations=tuple(lines))
            return replace(result, proven=PROVEN_WIN, value=1.0, draw=0.0)
    return result


def _with_values(end: _End, result: SearchResult, nodes: int) -> SearchResult:
    """Solve the moves from the best to the worst.

    A win ends this, and so does the first move whose value is not proven.
    """
    near = end.near(nodes) if nodes else 0
    if not near:
        return result
    first = nodes // (NEAR_SHARE if near == LINES else LUCKY_SHARE)
    spared = end.left - nodes
    q, lines = result.q.copy(), [*result.principal_variations]
    order = np.argsort(-result.policy, kind="stable").tolist()
    for solved, i in enumerate(order):
        action = int(result.actions[i])
        value = end.value_of(action, end.left - spared if solved else first)
        if value == UNPROVEN:
            return replace(result, q=q, principal_variations=tuple(lines))
        q[i] = value
        if lines:
            lines[i] = end.line_of(action)
        if value == PROVEN_WIN:
            break
    best = int(np.nanmax(q[order[: solved + 1]]))
    result = replace(result, q=q, principal_variations=tuple(lines))
    return replace(result, proven=best, value=float(best), draw=float(best == PROVEN_DRAW))


def _with_distances(end: _End, result: SearchResult) -> SearchResult:
    """Find the fastest win, or how long each move resists, as far as the positions suffice.

    What the tree knows is the most that it can be, so it need not be found again.
    """
    q, plies, lines = result.q.copy(), result.plies.copy(), [*result.principal_variations]
    end.winner = end.position.to_play if result.proven == PROVEN_WIN else 1 - end.position.to_play
    order = np.lexsort((-result.visits, np.where(plies > 0, plies, MAX_PLIES))).tolist()
    open_moves = [i for i in order if result.proven == PROVEN_LOSS or q[i] != PROVEN_LOSS]
    for horizon in range(1, MAX_PLIES):
        for i in tuple(open_moves):
            action = int(result.actions[i])
            is_new = plies[i] != horizon
            if is_new:
                value = end.value_of(action, end.left, horizon - 1)
                if value == UNPROVEN:
                    return replace(result, q=q, plies=plies, principal_variations=tuple(lines))
                if value != result.proven:
                    continue
            if is_new and lines:
                lines[i] = end.line_of(action, horizon - 1)
            q[i], plies[i] = result.proven, horizon
            open_moves.remove(i)
            if result.proven == PROVEN_WIN:
                open_moves.clear()
                break
        if not open_moves:
            break
    return replace(result, q=q, plies=plies, principal_variations=tuple(lines))


class _End:
    """Alpha-beta after the moves of one position, which share a number of positions.

    left:   number that may still be made.
    winner: with a horizon it is only asked whether this player wins within it.
    """

    def __init__(self, position: CompiledGame, nodes: int, seconds: float) -> None:
        assert position.State.fields is not None
        self.position = position
        self.left = nodes
        self.winner = 0
        self._rules, self._to_play = rule_calls.addresses(position.rules), position.State.fields["to_play"][1]
        self._path = _room(position, nodes)
        self._path.states[0] = position.state
        self._solve(-1, NO_HORIZON)  # makes no position, but compiles: now, not at the end of a game
        if seconds < math.inf:
            began, before = perf_counter(), self.left
            self._solve(100, NO_HORIZON)  # measures how long a position takes
            self.left = min(nodes, int((before - self.left) * seconds / (perf_counter() - began)))

    def near(self, nodes: int) -> int:
        """Return how many of LINES random lines suggest that the end is near enough for so many positions."""
        self._path.states[0] = self.position.state
        return near_ends(self._rules, self._path, ROOM_FOR_LUCK * nodes)

    def value(self, most: int, horizon: int) -> int:
        """Return the value of the position for its player to move, or UNPROVEN; `most`: positions to make."""
        self._path.states[0] = self.position.state
        return self._solve(most, horizon)

    def value_of(self, action: int, most: int, horizon: int = NO_HORIZON) -> int:
        """Return the value of an action for the player who makes it, or UNPROVEN; `most`: positions to make."""
        state = self._path.states[0]
        state[:] = self.position.state
        self.position.rules.play(state, action)
        value = self._solve(most, horizon)
        is_same_player = state[self._to_play] == self.position.to_play
        return value if is_same_player or value == UNPROVEN else -value

    def line_of(self, action: int, horizon: int = NO_HORIZON) -> tuple[int, ...]:
        """Return the best line from the action whose value was found last, itself first."""
        return action, *self.line(horizon)

    def line(self, horizon: int = NO_HORIZON) -> tuple[int, ...]:
        """Return the best line from the position whose value was found last."""
        line, value = list[int](), PROVEN_DRAW
        while self._path.frames[0]["plies"] and value != UNPROVEN:  # a line may end at a position in the table
            found = self._path.lines[0, : self._path.frames[0]["plies"]].tolist()
            for each in found:
                self.position.rules.play(self._path.states[0], each)
            line += found
            horizon = NO_HORIZON if horizon == NO_HORIZON else horizon - len(found)
            value = self._solve(self.left, horizon)
        return tuple(line)

    def _solve(self, most: int, horizon: int) -> int:
        """Return the value of the first position of the path for its player to move, or UNPROVEN."""
        low, high = PROVEN_LOSS, PROVEN_WIN
        if horizon != NO_HORIZON:
            wins = self._path.states[0, self._to_play] == self.winner
            low, high = (PROVEN_DRAW, PROVEN_WIN) if wins else (PROVEN_LOSS, PROVEN_DRAW)
        value, used = solve(self._rules, self._path, self._to_play, most, low, high, horizon)
        self.left -= used
        return value


def _room(position: CompiledGame, nodes: int) -> Path:
    plies, actions = min(position.max_plies + 1, MAX_PLIES) + 1, position.num_actions
    return Path(
        states=np.zeros((plies, len(position.state)), np.uint8),
        frames=np.zeros(plies, FRAME),
        moves=np.zeros((plies, actions), np.int32),
        lines=np.zeros((plies, plies), np.int32),
        mask=np.zeros(actions, np.bool_),
        ranks=np.zeros(actions, np.int64),
        cuts=np.zeros((2, actions), np.int64),
        table=np.zeros(1 << min(22, (nodes // 4).bit_length()), BOUNDS),  # 64 MB or less
    )
