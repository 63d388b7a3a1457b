"""A game of dice and points in plain Python: a die says in which column a stone may be put."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, square_names

ROWS, COLUMNS = 4, 6
SQUARES = ROWS * COLUMNS
PASS = SQUARES
NAMES = (*square_names(ROWS, COLUMNS), "pass")
BESIDE = [
    [
        other
        for other in range(SQUARES)
        if abs(square // COLUMNS - other // COLUMNS) + abs(square % COLUMNS - other % COLUMNS) == 1
    ]
    for square in range(SQUARES)
]


class DicePoints(Game, version=1):
    """Throw a die: it says in which column you put a stone. Stones of the other player beside it become yours.

    You pass if the column is full. After twenty turns every stone is a point for its owner; most points win.
    """

    num_actions = SQUARES + 1
    num_chances = 6
    policy_planes = 1  # the pass belongs to no square
    observation_shape = (4, ROWS, COLUMNS)  # own stones, the other's stones, the column of the die, turns
    final_planes = 1
    max_plies = 20  # each game has so many
    max_score = 20

    def __init__(self) -> None:
        self.board = [0] * SQUARES  # 0 = empty, 1 = player 0, 2 = player 1
        self.column: int | None = None  # what the die says, None before it is thrown
        self.plies = 0
        self.to_play = 0

    def chances(self) -> list[float] | tuple[()]:
        return [1 / 6] * 6 if self.column is None else ()

    def legal_actions(self) -> list[int]:
        if self.column is None:
            return []  # the game is over
        return [square for square in range(self.column, SQUARES, COLUMNS) if self.board[square] == 0] or [PASS]

    def play(self, move: int) -> Self:  # an action, or where the die is to be thrown a column
        after = copy.copy(self)
        if self.column is None:
            after.column = move
            return after
        if move != PASS:
            own, other = self.to_play + 1, 2 - self.to_play
            after.board = self.board.copy()
            after.board[move] = own
            for square in BESIDE[move]:
                if self.board[square] == other:
                    after.board[square] = own
        after.column = None
        after.plies += 1
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if self.plies < self.max_plies:
            return None
        first, second = self.board.count(1), self.board.count(2)
        if first == second:
            return Outcome(None, score=0)
        return Outcome(winner=0 if first > second else 1, score=abs(first - second))

    def final_board(self) -> NDArray[np.float32]:
        board = np.reshape(self.board, (1, ROWS, COLUMNS))
        own, other = board == self.to_play + 1, board == 2 - self.to_play
        return own.astype(np.float32) - other.astype(np.float32)

    def observe(self) -> NDArray[np.float32]:
        planes = np.zeros(self.observation_shape, np.float32)
        board = np.reshape(self.board, (ROWS, COLUMNS))
        planes[0] = board == self.to_play + 1
        planes[1] = board == 2 - self.to_play
        if self.column is not None:
            planes[2, :, self.column] = 1
        planes[3] = self.plies / self.max_plies
        return planes

    def key(self) -> Hashable:
        return self.to_play, self.plies, self.column, tuple(self.board)

    # Rows may be exchanged, but not columns: the die names them.
    def symmetries(self) -> list[Symmetry]:
        planes = np.arange(np.prod(self.observation_shape)).reshape(self.observation_shape)
        squares = np.arange(SQUARES).reshape(ROWS, COLUMNS)
        return [Symmetry(planes[:, ::-1].ravel(), np.append(squares[::-1].ravel(), PASS))]

    def action_name(self, action: int) -> str:
        return NAMES[action]

    def roll_name(self, roll: int) -> str:
        return f"column-{NAMES[roll][0]}"

    def render(self) -> Board:
        return grid(np.reshape(self.board, (ROWS, COLUMNS)))

    def __str__(self) -> str:
        if self.plies == self.max_plies:
            return f"{self.render()}\nthe game is over"
        die = "the die is to be thrown" if self.column is None else f"the die says {NAMES[self.column][0]}"
        return f"{self.render()}\nturn {self.plies + 1} of {self.max_plies}: {die}"
