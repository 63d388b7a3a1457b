"""Connect Four: drop discs into columns, four in a row wins."""

import numpy as np

from plyzero.games.gomoku import has_row
from plyzero.rules.board import Board, grid
from plyzero.rules.compiled_game import CompiledGame, Record
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, mirror_columns


class ConnectFour(CompiledGame, version=1):
    """Four in a row wins; discs fall. 6 rows and 7 columns, or others: `connect-four(rows=4, columns=5)`."""

    rules_text = """In turn, each player drops a disc into a column. Who has four in a row first wins: across, upwards
    or diagonally. A full board without four is a draw."""

    observation_dtype = bool

    def __init__(self, rows: int = 6, columns: int = 7) -> None:
        if not (4 <= rows <= 9 and 4 <= columns <= 9):
            raise ValueError(f"expected 4 to 9 rows and columns, got {rows!r} and {columns!r}")
        self.State = np.dtype([("board", "i1", (rows, columns)), ("plies", "i1"), ("result", "i1"), ("to_play", "i1")])
        self.num_actions = columns
        self.action_names = "123456789"[:columns]
        self.observation_shape = (2, rows, columns)
        self.max_plies = rows * columns
        super().__init__()

    def start(s: Record) -> None:
        s["result"] = ONGOING

    def legal(s: Record, mask: Record) -> None:
        rows, columns = s["board"].shape
        for column in range(columns):
            mask[column] = s["board"][rows - 1, column] == 0

    def play(s: Record, action: int) -> None:
        row = 0
        while s["board"][row, action]:
            row += 1
        s["board"][row, action] = s["to_play"] + 1
        s["plies"] += 1
        if has_row(s["board"], row, action, 4, s["board"].size):
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
        """Return the left-right reflection."""
        return (mirror_columns(self.observation_shape, range(self.num_actions - 1, -1, -1)),)

    def why_illegal(self, action: int) -> str:
        return f"Column {self.action_name(action)} is full."

    def render(self) -> Board:
        files = "".join(self.action_names)
        return grid(self.record["board"], rows_up=True, files=files, by_column=True, style="holes")
