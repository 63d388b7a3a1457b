"""Tic-tac-toe: three in a row on a 3x3 board wins."""

import numpy as np

from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors

WINNING_LINES = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])


class TicTacToe(CompiledGame, version=1):
    """Three in a row on a 3x3 board."""

    rules_text = """In turn, each player fills a square. Three in a row win, in any direction."""

    State = np.dtype([("board", "i1", (9,)), ("plies", "i1"), ("to_play", "i1")])
    num_actions = 9
    action_names = square_names(3, 3)
    observation_shape = (2, 3, 3)
    observation_dtype = bool
    max_plies = 9

    def legal(s: Record, mask: Record) -> None:
        for square in range(9):
            mask[square] = s["board"][square] == 0

    def play(s: Record, action: int) -> None:
        s["board"][action] = s["to_play"] + 1
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        board = s["board"]
        for i in range(8):
            first = board[WINNING_LINES[i, 0]]
            if first and first == board[WINNING_LINES[i, 1]] and first == board[WINNING_LINES[i, 2]]:
                return first - 1
        return DRAW if s["plies"] == 9 else ONGOING

    def observe(s: Record, planes: Record) -> None:
        for square in range(9):
            if s["board"][square]:
                planes[(s["board"][square] - 1) ^ s["to_play"], square // 3, square % 3] = 1

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the rotations and reflections of the board."""
        return turns_and_mirrors(self.observation_shape)

    def render(self) -> Board:
        return grid(self.record["board"].reshape(3, 3))
