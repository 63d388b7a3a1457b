"""The tensors and actions of OpenSpiel's best-known games, turned to the player to move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.symmetry import Symmetry, mirror_columns, turns_and_mirrors

Array = NDArray[np.intp]


class Turn(NamedTuple):
    """The view of the second player, in which the pieces of both players are exchanged.

    planes: the order of the planes.
    board:  a function that turns `[..., rows, columns]`, and is its own inverse.
    kinds:  the order of the actions at a square; the number of an action is `square * len(kinds) + kind`. () if the
            actions are not turned.
    """

    planes: Sequence[int]
    board: Callable[[Array], Array] = lambda board: board
    kinds: Sequence[int] = ()


def _reverse_rows(board: Array) -> Array:
    return board[..., ::-1, :]


TURNS: Final = {
    "amazons": Turn((0, 2, 1, 3), _reverse_rows, (0,)),
    "breakthrough": Turn((1, 0, 2), _reverse_rows, (6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5)),
    "checkers": Turn((2, 3, 0, 1, 4), lambda board: board[..., ::-1, ::-1], (4, 5, 6, 7, 0, 1, 2, 3)),
    "chess": Turn((1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 12, 13, 14, 15, 18, 19, 16, 17), _reverse_rows),
    "connect_four": Turn((1, 0, 2)),
    "dots_and_boxes": Turn((0, 2, 1)),
    "go": Turn((1, 0, 2, 3)),
    "gomoku": Turn((1, 0, 2)),
    "hex": Turn((8, 7, 6, 5, 4, 3, 2, 1, 0), lambda board: np.swapaxes(board, -1, -2), (0,)),
    "lines_of_action": Turn((1, 0, 2)),
    "mnk": Turn((0, 2, 1)),
    "tic_tac_toe": Turn((0, 2, 1)),
}
"""Games with the same tensor for both players. In chess OpenSpiel's actions are turned already."""

MOVER_SEES: Final = frozenset({"clobber", "havannah", "othello", "pentago", "y"})
"""Games with a tensor for the player to move, and with the same rules for both players."""


class Past(NamedTuple):
    """The course of a game so far.

    plies:    number of plies.
    mover:    the player who made the last move, or -1.
    action:   this move, in the numbers of that player, or -1.
    captured: number of plies at the last capture.
    material: a sum that every capture changes; None if it is not known.
    roll:     the last roll, or -1.
    """

    plies: int = 0
    mover: int = -1
    action: int = -1
    captured: int = 0
    material: float | None = None
    roll: int = -1


class Added(NamedTuple):
    """Planes after a tensor that show the part of a game's course that the tensor leaves out; each has one number.

    again:    whether there is a plane that is 1 if the player to move has also made the last move.
    square:   whether that plane is 1 only at the square of that move.
    plies:    whether there is a plane with the number of plies, as a share of max_plies.
    captures: number of planes at the end of the tensor whose sum changes with every capture. If it is not 0, there is a
              plane with the plies since the last capture, as a share of the 40 that checkers allows.
    rolls:    number of planes for the last roll; the plane of the roll is 1.
    """

    again: bool = False
    square: bool = False
    plies: bool = False
    captures: int = 0
    rolls: int = 0

    def numbers(self, past: Past, mover: int, max_plies: int) -> list[float]:
        """Return the number of each plane after `past`, where the player `mover` is to move."""
        found: list[float] = []
        if self.again:
            found.append(float(mover == past.mover))
        if self.plies:
            found.append(past.plies / max_plies)
        if self.captures:
            found.append((past.plies - past.captured) / 40)
        for roll in range(self.rolls):
            found.append(float(roll == past.roll))
        return found


ADDED: Final = {
    "amazons": Added(again=True, square=True),
    "checkers": Added(again=True, captures=1),
    "einstein_wurfelt_nicht": Added(rolls=6),
    "lines_of_action": Added(plies=True, captures=1),
    "nine_mens_morris": Added(plies=True, again=True),
    "oware": Added(plies=True, captures=2),
    "pig": Added(plies=True),
    "xiangqi": Added(plies=True),
}
"""Games whose rules depend on the content of these planes."""

OMITTED: Final = {
    "banqi": "which player has which colour",
    "cursor_go": "the opponent's cursor",
    "hive": "which of two equal pieces is which",
    "quoridor": "the walls",
}
"""Other games -> the part of a position that the tensor leaves out."""


def board_shape(name: str, shape: Sequence[int]) -> tuple[int, int, int]:
    """Return the shape of a tensor of OpenSpiel's as (planes, rows, columns); without a board (n, 1, 1)."""
    if len(shape) == 2:
        side = math.isqrt(shape[1])
        if side**2 == shape[1]:
            return shape[0], side, side
    if len(shape) != 3:
        return math.prod(shape), 1, 1
    planes, rows, columns = shape
    return (planes, columns, rows) if name == "hex" else (planes, rows, columns)  # hex declares columns first


def turned(name: str, shape: tuple[int, int, int], num_actions: int) -> tuple[Array | None, list[int] | None]:
    """Return the view of the second player of a game with the same tensor for both players.

    It is two permutations, each its own inverse: the source of each number of the tensor, and of each action. The
    second is None if actions are not turned; both are None if the game is unknown, or has another shape here.
    """
    planes, rows, columns = shape
    turn = TURNS.get(name)
    if turn is None or len(turn.planes) != planes:
        return None, None
    numbers = np.arange(math.prod(shape)).reshape(shape)
    numbers = turn.board(numbers[list(turn.planes)])
    num_at_squares = rows * columns * len(turn.kinds)
    if numbers.shape != shape or num_at_squares > num_actions:
        return None, None
    if not turn.kinds:
        return numbers.ravel(), None
    by_kind = np.moveaxis(np.arange(num_at_squares).reshape(rows, columns, -1), -1, 0)
    by_kind = turn.board(by_kind[list(turn.kinds)])
    at_squares = np.moveaxis(by_kind, 0, -1).ravel().tolist()
    others = range(num_at_squares, num_actions)
    return numbers.ravel(), [*at_squares, *others]


def proposed_symmetries(name: str, shape: tuple[int, int, int], num_actions: int) -> list[Symmetry]:
    """Return possible symmetries of a game with this board and number of actions, which a trial has to prove."""
    _, rows, columns = shape
    squares = rows * columns
    if rows == columns > 1 and squares <= num_actions <= squares + 1:
        proposed = list(turns_and_mirrors(shape, non_board_actions=num_actions - squares))
        order = (0, 2, 1, 3, 4, 5, 7, 6, 8)  # the planes of hex after a half turn: some are for the sides of the board
        if name == "hex" and len(order) == shape[0]:
            half_turn = proposed[1]
            proposed.append(Symmetry(half_turn.planes.reshape(shape)[list(order)].ravel(), half_turn.actions))
        return proposed
    return [mirror_columns(shape, range(columns)[::-1])] if num_actions == columns > 1 else []
