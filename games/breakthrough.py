"""Breakthrough, compiled. examples/breakthrough.py is the same game in plain Python, with the same actions."""

import re

import numpy as np

from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import ONGOING
from plyzero.rules.symmetry import Symmetry, mirror_columns


class Breakthrough(CompiledGame, version=1):
    """Pawns step forward, capture diagonally, and win on the far row. On 8x8, or 4 to 10: `breakthrough(size=6)`."""

    rules_text = """A pawn steps one square forward, straight or diagonally, and captures diagonally only. Who reaches
    the far row, or captures all pawns of the opponent, wins."""

    observation_dtype = bool

    def __init__(self, size: int = 8) -> None:
        if size not in range(4, 11):
            raise ValueError(f"expected a size from 4 to 10, got {size!r}")
        self.State = np.dtype(
            [("board", "i1", (size, size)), ("pawns", "i1", (2,)), ("result", "i1"), ("to_play", "i1")]
        )
        # The action 2 * column + to, plus 3 * size - 2 for every row before, is the step from (row, column) to
        # (row + 1, to), as the player to move sees the board.
        self.num_actions = (size - 1) * (3 * size - 2)
        squares = np.reshape(square_names(size, size), (size, size))
        self.names = [
            [
                f"{seen[row, column]}-{seen[row + 1, to]}"
                for row in range(size - 1)
                for column in range(size)
                for to in range(max(column - 1, 0), min(column + 2, size))
            ]
            for seen in (squares, squares[::-1])
        ]
        self.observation_shape = (2, size, size)  # own pawns, the opponent's pawns
        self.max_plies = 2 * size * (2 * size - 5) + 1  # examples/breakthrough.py has the reason
        self.uci_variant = "breakthrough" if size == 8 else None
        super().__init__()

    def start(s: Record) -> None:
        s["board"][:2] = 1
        s["board"][-2:] = 2
        s["pawns"][:] = 2 * len(s["board"])
        s["result"] = ONGOING

    def legal(s: Record, mask: Record) -> None:
        size, own = len(s["board"]), s["to_play"] + 1
        for row in range(size - 1):
            for column in range(size):
                if s["board"][row_for(s, row), column] == own:
                    for to in range(max(column - 1, 0), min(column + 2, size)):
                        ahead = s["board"][row_for(s, row + 1), to]
                        mask[row * (3 * size - 2) + 2 * column + to] = ahead == 0 or (ahead != own and column != to)

    def play(s: Record, action: int) -> None:
        row, step = divmod(action, 3 * len(s["board"]) - 2)
        column = (step + 1) // 3
        to = step - 2 * column
        other = 1 - s["to_play"]
        if s["board"][row_for(s, row + 1), to]:
            s["pawns"][other] -= 1
        s["board"][row_for(s, row), column] = 0
        s["board"][row_for(s, row + 1), to] = s["to_play"] + 1
        if row + 2 == len(s["board"]) or s["pawns"][other] == 0:
            s["result"] = s["to_play"]
        s["to_play"] = other

    def outcome(s: Record) -> int:
        return s["result"]

    def observe(s: Record, planes: Record) -> None:
        for row in range(len(s["board"])):
            for column in range(len(s["board"])):
                pawn = s["board"][row_for(s, row), column]
                if pawn:
                    planes[(pawn - 1) ^ s["to_play"], row, column] = 1

    def action_name(self, action: int) -> str:
        return self.names[self.to_play][action]

    def uci_move(self, action: int) -> str:
        return self.action_name(action).replace("-", "")

    def fen(self) -> str:
        pieces = {0: "1", 1: "P", 2: "p"}
        ranks = ["".join(pieces[pawn] for pawn in rank) for rank in self.record["board"][::-1].tolist()]
        joined = re.sub("1+", lambda empty: str(len(empty[0])), "/".join(ranks))
        return f"{joined} {'wb'[self.to_play]} - - 0 1"

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the left-right reflection, which reverses the order of the steps from each row."""
        steps = 3 * len(self.record["board"]) - 2
        mirrored = np.arange(self.num_actions).reshape(-1, steps)[:, ::-1]
        return (mirror_columns(self.observation_shape, mirrored.ravel().tolist()),)

    def why_illegal(self, action: int) -> str:
        source, target = self.action_name(action).split("-")
        board = self.render()
        if board.landing(source).piece != str(self.to_play):
            return f"No pawn of yours is on {source}."
        return f"{source} to {target} is no move: a pawn steps one row ahead, and captures only diagonally."

    def render(self) -> Board:
        return grid(self.record["board"], rows_up=True, style="checks")


@kernel
def row_for(s: Record, row: int) -> int:
    """Return the row of the board that is `row` for the player to move: player 1 counts from the other side."""
    return row if s["to_play"] == 0 else len(s["board"]) - 1 - row
