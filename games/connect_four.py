"""Connect Four."""

import numpy as np

from plyzero.compiled import DRAW, ONGOING, CompiledGame, Record, kernel
from plyzero.drawing import draw_grid
from plyzero.symmetry import Symmetry, mirror_columns

ROWS, COLUMNS = 6, 7
GOING, DRAWN = 0, 3


class ConnectFour(CompiledGame, version=1):
    """Four in a row on a board of 7 columns and 6 rows; discs fall."""

    State = np.dtype([("board", "i1", (ROWS, COLUMNS)), ("plies", "i1"), ("result", "i1"), ("to_play", "i1")])
    num_actions = COLUMNS
    action_names = "1234567"
    observation_shape = (2, ROWS, COLUMNS)
    observation_dtype = bool
    max_plies = ROWS * COLUMNS

    def legal(s: Record, mask: Record) -> None:
        for column in range(COLUMNS):
            mask[column] = s["board"][ROWS - 1, column] == 0

    def play(s: Record, action: int) -> None:
        row = 0
        while s["board"][row, action]:
            row += 1
        s["board"][row, action] = s["to_play"] + 1
        s["plies"] += 1
        if four_through(s["board"], row, action):
            s["result"] = s["to_play"] + 1
        elif s["plies"] == ROWS * COLUMNS:
            s["result"] = DRAWN
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        if s["result"] == GOING:
            return ONGOING
        return DRAW if s["result"] == DRAWN else s["result"] - 1

    def observe(s: Record, planes: Record) -> None:
        for row in range(ROWS):
            for column in range(COLUMNS):
                if s["board"][row, column]:
                    planes[(s["board"][row, column] - 1) ^ s["to_play"], row, column] = 1

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the mirror image, left to right."""
        return (mirror_columns(self.observation_shape, range(COLUMNS - 1, -1, -1)),)

    def __str__(self) -> str:
        return draw_grid(self.record["board"], rows_up=True, files=self.action_names)


@kernel
def four_through(board: Record, row: int, column: int) -> bool:
    """Tell whether the disc on (row, column) is part of a line of four."""
    disc = board[row, column]
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        count = 1
        for sign in (-1, 1):
            r, c = row + sign * down, column + sign * right
            while 0 <= r < ROWS and 0 <= c < COLUMNS and board[r, c] == disc:
                count += 1
                r, c = r + sign * down, c + sign * right
        if count >= 4:
            return True
    return False
