"""Gomoku: five stones in a row win."""

import numpy as np

from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors


class Gomoku(CompiledGame, version=1):
    """Five or more in a row win (freestyle); with `gomoku(size=15, exactly_five=True)` six or more do not."""

    rules_text = """In turn, each player places a stone. Who has five or more in a row first wins, in any
    direction."""
    sgf_game = 4

    observation_dtype = bool

    def __init__(self, size: int = 15, exactly_five: bool = False) -> None:
        if size not in range(5, 20):
            raise ValueError(f"expected a size from 5 to 19, got {size!r}")
        if exactly_five not in (False, True):
            raise ValueError(f"expected True or False for exactly_five, got {exactly_five!r}")
        # A row through a stone has at most 4 + 1 + 4 stones, or the game would have been over before.
        fields = [
            ("board", "i1", (size, size)),
            ("plies", "i2"),
            ("longest", "i1"),
            ("result", "i1"),
            ("to_play", "i1"),
        ]
        self.State = np.dtype(fields)
        self.num_actions = self.max_plies = size * size
        self.action_names = square_names(size, size)
        self.observation_shape = (2, size, size)
        self.policy_planes = 1
        super().__init__()
        self.record["longest"] = 5 if exactly_five else 9

    def start(s: Record) -> None:
        s["result"] = ONGOING

    def legal(s: Record, mask: Record) -> None:
        rows, columns = s["board"].shape
        for row in range(rows):
            for column in range(columns):
                mask[row * columns + column] = s["board"][row, column] == 0

    def play(s: Record, action: int) -> None:
        row, column = divmod(action, s["board"].shape[1])
        s["board"][row, column] = s["to_play"] + 1
        s["plies"] += 1
        if has_row(s["board"], row, column, 5, s["longest"]):
            s["result"] = s["to_play"]
        elif s["plies"] == s["board"].size:
            s["result"] = DRAW
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        return s["result"]

    def observe(s: Record, planes: Record) -> None:
        rows, columns = s["board"].shape
        for row in range(rows):
            for column in range(columns):
                if s["board"][row, column]:
                    planes[(s["board"][row, column] - 1) ^ s["to_play"], row, column] = 1

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the rotations and reflections of the board."""
        return turns_and_mirrors(self.observation_shape)

    def render(self) -> Board:
        return grid(self.record["board"], rows_up=True, style="points")


@kernel
def has_row(board: Record, row: int, column: int, shortest: int, longest: int) -> bool:
    """Return whether the stone on (row, column) is in a row of `shortest` to `longest` stones, in any direction."""
    stone = board[row, column]
    rows, columns = board.shape
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        count = 1
        for sign in (-1, 1):
            r, c = row + sign * down, column + sign * right
            while 0 <= r < rows and 0 <= c < columns and board[r, c] == stone:
                count += 1
                r, c = r + sign * down, c + sign * right
        if shortest <= count <= longest:
            return True
    return False
