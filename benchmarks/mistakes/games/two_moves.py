"""Four in a row with two stones a turn, in plain Python: a game whose players move twice in a row."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, square_names, turns_and_mirrors

SIZE = 6
SQUARES = SIZE * SIZE
LENGTH = 4
NAMES = square_names(SIZE, SIZE)
STONES = "xo"


def lines_through_squares() -> list[list[list[int]]]:
    """Return for each square the lines of LENGTH squares that it is on."""
    lines: list[list[list[int]]] = [[] for _ in range(SQUARES)]
    for row in range(SIZE):
        for column in range(SIZE):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                last_row, last_column = row + (LENGTH - 1) * down, column + (LENGTH - 1) * right
                if last_row < SIZE and 0 <= last_column < SIZE:
                    line = [(row + i * down) * SIZE + column + i * right for i in range(LENGTH)]
                    for square in line:
                        lines[square].append(line)
    return lines


LINES = lines_through_squares()


class TwoMoves(Game, version=1):
    """Put two stones on empty squares in each turn, but one in the first turn. Four of your stones in a row win."""

    num_actions = SQUARES
    observation_shape = (3, SIZE, SIZE)  # own stones, the other's stones, whether one stone of the turn is left
    observation_dtype = bool
    max_plies = SQUARES  # each puts a stone on the board

    def __init__(self) -> None:
        self.board = [0] * SQUARES  # 0 = empty, 1 = player 0, 2 = player 1
        self.empty = SQUARES
        self.to_play = 0
        self.stones_left = 1  # of this turn
        self.winner: int | None = None

    def legal_actions(self) -> list[int]:
        if self.winner is not None:
            return []
        return [square for square, stone in enumerate(self.board) if stone == 0]

    def play(self, action: int) -> Self:
        after = copy.copy(self)
        after.board = self.board.copy()
        after._put(action)
        return after

    def _put(self, square: int) -> None:
        stone = self.to_play + 1
        board = self.board
        board[square] = stone
        self.empty -= 1
        if any(all(board[each] == stone for each in line) for line in LINES[square]):
            self.winner = self.to_play
        self.stones_left -= 1
        if self.stones_left == 0:
            self.to_play = 1 - self.to_play
            self.stones_left = 2

    def outcome(self) -> Outcome | None:
        if self.winner is not None:
            return Outcome(self.winner)
        return Outcome(None) if self.empty == 0 else None

    def observe(self) -> NDArray[np.bool_]:
        planes = np.zeros(self.observation_shape, np.bool_)
        board = np.reshape(self.board, (SIZE, SIZE))
        planes[0] = board == self.to_play + 1
        planes[1] = board == 2 - self.to_play
        planes[2] = self.stones_left == 1
        return planes

    def symmetries(self) -> tuple[Symmetry, ...]:
        return turns_and_mirrors(self.observation_shape)

    def action_name(self, action: int) -> str:
        return NAMES[action]

    def render(self) -> Board:
        return grid(np.reshape(self.board, (SIZE, SIZE)), style="points")

    def __str__(self) -> str:
        stones = "one stone" if self.stones_left == 1 else "two stones"
        return f"{self.render()}\n{STONES[self.to_play]} puts {stones}"

    def from_text(self, text: str) -> Self:
        """Return the position of a text as `__str__` prints it; the numbers of stones tell whose turn it is."""
        rows = [line[2:].split() for line in text.splitlines() if line[:2].strip().isdigit()]
        squares = [square for row in rows for square in row]
        if len(squares) != SQUARES or not {*squares} <= {".", *STONES}:
            raise ValueError(f"expected {SIZE} rows, each a number and {SIZE} of . x o, got {text!r}")
        left = [[square for square in range(SQUARES) if squares[square] == stone] for stone in STONES]
        position = copy.copy(self)
        position.board = self.board.copy()
        while left[position.to_play]:
            position._put(left[position.to_play].pop())
        if left[0] or left[1]:
            raise ValueError("expected one x, then two o and two x in turn: one player has too many stones")
        return position
