"""The rules of game_name. So far they are those of tic-tac-toe on a 3x3 board; change them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, square_names, turns_and_mirrors

EMPTY = 0
NAMES = square_names(3, 3)  # a1, b1, c1, a2, ...
WINNING_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class TicTacToe(Game, version=1):
    """Three in a row on a 3x3 board."""

    num_actions = 9  # action = square = row * 3 + column
    observation_shape = (2, 3, 3)  # own squares, the opponent's squares
    observation_dtype = bool
    max_plies = 9

    def __init__(self) -> None:
        self.board: tuple[int, ...] = (EMPTY,) * 9  # 1 = player 0, 2 = player 1

    @property
    def to_play(self) -> int:
        return (9 - self.board.count(EMPTY)) % 2

    def legal_actions(self) -> Sequence[int]:
        if self.outcome() is not None:
            return []
        return [square for square in range(9) if self.board[square] == EMPTY]

    def play(self, action: int) -> Self:
        after = copy.copy(self)  # positions are immutable: change a copy
        after.board = (*self.board[:action], self.to_play + 1, *self.board[action + 1 :])
        return after

    def outcome(self) -> Outcome | None:
        for a, b, c in WINNING_LINES:
            if self.board[a] != EMPTY and self.board[a] == self.board[b] == self.board[c]:
                return Outcome(winner=self.board[a] - 1)
        return None if EMPTY in self.board else Outcome(winner=None)

    def observe(self) -> NDArray[np.bool_]:
        board = np.reshape(self.board, (3, 3))
        return np.array([board == self.to_play + 1, board == 2 - self.to_play])

    # The methods below are optional.

    def action_name(self, action: int) -> str:
        return NAMES[action]

    def symmetries(self) -> Sequence[Symmetry]:
        # Only for a square board whose actions are its squares, row by row.
        return turns_and_mirrors(self.observation_shape)

    def render(self) -> Board:
        return grid(np.reshape(self.board, (3, 3)))
