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
    """The view of the second player, in which own and the opponent's pieces change places.

    planes: the order of the planes.
    board:  turns `[..., rows, columns]`; applied twice it changes nothing.
    kinds:  the order of the actions at a square, whose numbers are `square * len(kinds) + kind`; () if the actions are
            not turned.
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
"""Games whose tensor is the same for both players. In chess OpenSpiel's actions are turned already."""

MOVER_SEES: Final = frozenset({"clobber", "havannah", "othello", "pentago", "y"})
"""Games whose tensor is that of the player to move, and whose rules are the same for both players."""


class Past(NamedTuple):
    """The course of a game: its plies, the last one, the plies at the last capture, and the last roll."""

    plies: int = 0
    mover: int = -1  # who made the last move
    action: int = -1  # in that player's numbers
    captured: int = 0
    material: float | None = None  # a sum that every capture changes
    roll: int = -1


class Added(NamedTuple):
    """Planes behind a tensor, each of one number, which show of the course of a game what the tensor leaves out.

    again:    whether the player to move has also made the last move, and `square`: only at that action's square.
    plies:    the plies, as a share of max_plies.
    captures: the plies since the last capture, as a share of the 40 that checkers allows: the number of the last planes
              of the tensor whose sum changes with every capture. 0 = no such plane.
    rolls:    the number of planes for the last roll, whose plane is 1.
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
        return found + [float(roll == past.roll) for roll in range(self.rolls)]


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
"""The games whose rules depend on what these planes show."""

OMITTED: Final = {
    "banqi": "which player has which colour",
    "cursor_go": "the opponent's cursor",
    "hive": "which of two equal pieces is which",
    "quoridor": "the walls",
}
"""The parts of other games that their tensors leave out."""


def board_shape(name: str, shape: Sequence[int]) -> tuple[int, int, int]:
    """Return the shape of a tensor of OpenSpiel's as (planes, rows, columns); without a board (n, 1, 1)."""
    if len(shape) == 2 and (side := math.isqrt(shape[1])) ** 2 == shape[1]:
        return shape[0], side, side
    if len(shape) != 3:
        return math.prod(shape), 1, 1
    planes, rows, columns = shape
    return (planes, columns, rows) if name == "hex" else (planes, rows, columns)  # hex declares columns first


def turned(name: str, shape: tuple[int, int, int], num_actions: int) -> tuple[Array | None, list[int] | None]:
    """Return how the second player sees a game whose tensor is the same for both players.

    Two permutations, each its own inverse: the source of each number of the tensor, and of each action. None where
    nothing is turned; both are None if nothing is known for a tensor of this shape.
    """
    planes, rows, columns = shape
    turn = TURNS.get(name)
    if turn is None or len(turn.planes) != planes:
        return None, None
    numbers = turn.board(np.arange(math.prod(shape)).reshape(shape)[list(turn.planes)])
    at_squares = rows * columns * len(turn.kinds)
    if numbers.shape != shape or at_squares > num_actions:
        return None, None
    if not turn.kinds:
        return numbers.ravel(), None
    kinds = np.moveaxis(np.arange(at_squares).reshape(rows, columns, -1), -1, 0)[list(turn.kinds)]
    return numbers.ravel(), [*np.moveaxis(turn.board(kinds), 0, -1).ravel().tolist(), *range(at_squares, num_actions)]


def proposed_symmetries(name: str, shape: tuple[int, int, int], num_actions: int) -> list[Symmetry]:
    """Return symmetries that a game with this board and number of actions may have; a trial has to prove them."""
    _, rows, columns = shape
    squares = rows * columns
    if rows == columns > 1 and squares <= num_actions <= squares + 1:
        proposed = list(turns_and_mirrors(shape, non_board_actions=num_actions - squares))
        order = (0, 2, 1, 3, 4, 5, 7, 6, 8)  # the planes after a half turn: in hex they name the sides of the board
        if name == "hex" and len(order) == shape[0]:
            half_turn = proposed[1]
            proposed.append(Symmetry(half_turn.planes.reshape(shape)[list(order)].ravel(), half_turn.actions))
        return proposed
    return [mirror_columns(shape, range(columns)[::-1])] if num_actions == columns > 1 else []
