"""Does observe() show own and the opponent's pieces, or those of player 0 and player 1? A guess from random games."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.check.laws import evenly_spaced
from plyzero.check.wording import shown_moves
from plyzero.rules.game import Game, observation_text
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import PlayedGame

MAX_PASSES: Final = 300  # moves that are compared, at most
MIN_PASSES: Final = 10  # moves of each player, and at which a plane changes, at least, for a conclusion
MIN_LEANING: Final = 0.5  # least share of a plane's changes that are growth by one player or decrease by the other
MIN_RIGHT: Final = 0.15  # least share of the passes at which two planes change places
MIN_TIMES: Final = 4  # so many times more passes at which they do so than passes at which they clearly stay
MIN_WRONG: Final = 0.05  # least share of the passes, or of the other moves, at which they do what they should not
MAX_PLANES: Final = 16  # planes of which pairs are tried
SHOWN_PLY: Final = 5  # approximate ply of the two positions that a warning shows

Array = NDArray[np.float32]


class Pass(NamedTuple):
    """A move that passes the turn to the other player, and the observations before and after it, `[C, H, W]`.

    ply, following: the indices of the positions before and after it and, if chance moves then, the rolls.
    """

    game: PlayedGame
    ply: int
    following: int
    before: Array
    after: Array


def absolute_view(played: Sequence[PlayedGame]) -> str:
    """Return a warning if observations show player 0's and player 1's pieces, whoever is to move; "" if they do not.

    In such an observation one plane grows when player 0 moves and another one when player 1 moves, and each is much
    nearer to itself than to the other one, also turned around, when the turn passes. Planes of own and opponent's
    pieces change places then. An observation that says who is to move is not suspected, nor are pieces that both share,
    nor is a plane that is nearer to what another one was before than to itself, such as a number of points, nor one
    that rises and falls at the moves of both, or hardly ever, such as a counter of moves without progress.
    """
    passes = turn_passes(played)
    movers = np.array([each.game.positions[each.ply].to_play for each in passes])
    if min(np.count_nonzero(movers == player) for player in (0, 1)) < MIN_PASSES:
        return ""
    before, after = stacked(passes)
    if shows_player(np.concatenate([before, after]), np.concatenate([movers, 1 - movers])):
        return ""
    change = (after - before).sum(axis=(2, 3))
    growth = np.array([change[movers == player].mean(axis=0) for player in (0, 1)])
    extent = np.array([np.abs(change[movers == player]).mean(axis=0) for player in (0, 1)]).sum(axis=0)
    leaning = (growth[0] - growth[1]) / np.maximum(extent, 1e-9)
    leaning[np.count_nonzero(change, axis=0) < MIN_PASSES] = 0
    stays = [turned_distance(after[:, plane], before[:, plane]) for plane in range(before.shape[1])]
    own = np.array([stays[i] <= nearest(after[:, [i]], np.delete(before, i, axis=1)) for i in range(len(stays))])
    planes_of_0 = np.flatnonzero(own & (leaning >= MIN_LEANING))
    planes_of_1 = np.flatnonzero(own & (leaning <= -MIN_LEANING))
    for one, other in itertools.product(planes_of_0, planes_of_1):
        swapped = turned_distance(after[:, one], before[:, other]) + turned_distance(after[:, other], before[:, one])
        if stays[one] + stays[other] <= swapped / 2:
            return _warning(passes, f"plane {one} grows when player 0 moves, plane {other} when player 1 moves")
    for plane in np.flatnonzero(own & (growth[0] * growth[1] < 0) & (np.abs(leaning) >= MIN_LEANING)):
        if stays[plane] <= turned_distance(after[:, plane], -before[:, plane]) / 2:
            return _warning(
                passes, f"the sum of plane {plane} grows when one player moves and falls when the other moves"
            )
    return ""


def sides_change_wrongly(played: Sequence[PlayedGame]) -> str:
    """Return a warning if two planes change places where the same player moves again, or stay where the turn passes.

    They are two planes that mostly change places when the turn passes, as own and the opponent's pieces do.
    """
    passes, repeats = turn_passes(played), turn_passes(played, repeated=True)
    if len(passes) < MIN_PASSES or passes[0].before[0].size == 1:  # numbers are equal by chance
        return ""
    at_passes, at_repeats = stacked(passes), stacked(repeats)
    for one, other in itertools.combinations(range(min(MAX_PLANES, len(passes[0].before))), 2):
        swap, stay = changes(*at_passes, one, other)
        right, stayed = (2 * swap <= stay) & (stay > 0), (2 * stay <= swap) & (swap > 0)
        if right.mean() < MIN_RIGHT or right.sum() < MIN_TIMES * stayed.sum():
            continue
        wrong = list(itertools.compress(passes, stayed))
        least = MIN_WRONG * len(passes)
        if repeats and len(wrong) < least:
            swap, stay = changes(*at_repeats, one, other)
            wrong = list(itertools.compress(repeats, (2 * swap <= stay) & (stay > 0)))
            least = MIN_WRONG * len(repeats)
        if len(wrong) >= max(MIN_PASSES, least):
            return (
                f"planes {one} and {other} of observe() change places when the turn passes, but at {len(wrong)} moves "
                "they do not, or do so though the same player moves again: to_play or observe() is wrong. "
                f"{_example(wrong)}"
            )
    return ""


def stacked(moves: Sequence[Pass]) -> tuple[Array, Array]:
    """Return the observations before and after all of `moves`, `[N, C, H, W]`."""
    return np.array([each.before for each in moves]), np.array([each.after for each in moves])


def changes(before: Array, after: Array, one: int, other: int) -> tuple[Array, Array]:
    """Return in how many numbers two planes differ after each move, `[N]`, if they change places and if they stay.

    If they change places, the board may be turned around or reflected, in the same way at all moves.
    """
    stay = different(after[:, one], before[:, one]) + different(after[:, other], before[:, other])
    swaps = [
        different(after[:, one], before[:, other, ::rows, ::columns])
        + different(after[:, other], before[:, one, ::rows, ::columns])
        for rows in (1, -1)
        for columns in (1, -1)
    ]
    return min(swaps, key=lambda each: float(each.sum())), stay


def different(one: Array, other: Array) -> Array:
    """Return in how many numbers each of a stack of planes `[N, H, W]` differs from another one, `[N]`."""
    return (one != other).sum(axis=(1, 2))


def turn_passes(played: Sequence[PlayedGame], *, repeated: bool = False) -> Sequence[Pass]:
    """Return up to MAX_PASSES moves that pass the turn to the other player, who moves next, maybe after rolls.

    repeated: the moves after which the same player moves again instead.
    """
    found = [
        (game, ply, following)
        for game in played
        for ply, following in itertools.pairwise(game.decisions)
        if (game.positions[ply].to_play == game.positions[following].to_play) == repeated
    ]
    return [
        Pass(game, ply, following, _observed(game.positions[ply]), _observed(game.positions[following]))
        for game, ply, following in evenly_spaced(found, max_count=MAX_PASSES)
    ]


def shows_player(observations: Array, players: NDArray[np.integer]) -> bool:
    """Return whether some number of the observations has one value for player 0 to move and another for player 1."""
    seen_by_0, seen_by_1 = (observations[players == player] for player in (0, 1))
    is_constant = (seen_by_0 == seen_by_0[0]).all(axis=0) & (seen_by_1 == seen_by_1[0]).all(axis=0)
    return bool((is_constant & (seen_by_0[0] != seen_by_1[0])).any())


def distance(one: Array, other: Array) -> float:
    """Return in how many numbers two stacks of planes `[N, H, W]` differ, on average."""
    return np.count_nonzero(one != other) / len(one)


def turned_distance(one: Array, other: Array) -> float:
    """Return the smallest distance between `one` and `other`, which may be turned around or reflected."""
    return min(distance(one, other[:, ::rows, ::columns]) for rows in (1, -1) for columns in (1, -1))


def nearest(one: Array, others: Array) -> float:
    """Return the smallest distance of a plane `[N, 1, H, W]` from one of `others`, `[N, C, H, W]`, maybe turned."""
    turned = [others[:, :, ::rows, ::columns] for rows in (1, -1) for columns in (1, -1)]
    return min(float((one != each).mean(axis=0).sum(axis=(1, 2)).min(initial=np.inf)) for each in turned)


def _warning(passes: Sequence[Pass], evidence: str) -> str:
    return (
        "observe() seems to show the pieces of player 0 and of player 1, whoever is to move, where own and the "
        f"opponent's pieces are expected: {evidence}. Show the pieces of the player to move first, or add a plane that "
        f"says who is to move. {_example(passes)}"
    )


def _example(moves: Sequence[Pass]) -> str:
    shown = min(moves, key=lambda each: abs(each.ply - SHOWN_PLY))
    positions = [shown.game.positions[ply] for ply in (shown.ply, shown.following)]
    names = action_names(shown.game.positions[0], tuple(shown.game.moves[: shown.following]))
    names, last = names[: shown.ply], " ".join(names[shown.ply :])
    return (
        f"Two positions to compare, after {shown_moves(names, 'no move')}, and then {last}:\n"
        f"{observation_text(*positions)}\n{observation_text(*positions[::-1])}"
    )


def _observed(position: Game) -> Array:
    return np.asarray(position.observe(), np.float32)
