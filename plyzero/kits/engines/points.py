"""The points of a board, such as D4, and moves made of them, for controllers of GTP that know only points."""

from __future__ import annotations

from collections import Counter
from typing import Final

from plyzero.rules.board import Board, Cell
from plyzero.rules.game import Game, board_of

LETTERS: Final = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of the columns; GTP leaves out I."""

Words = tuple[str, ...]
"""The words by which a controller plays one action, one word per command."""


class Points:
    """The points of a board: the letter of the column from the left, and the number of the row from the bottom.

    columns, rows: how many there are.
    """

    def __init__(self, board: Board) -> None:
        """Number the cells of `board`, at least one. Rows of hexagons are numbered as if they were straight."""
        by_row: dict[float, set[float]] = {}
        for cell in board.cells:
            by_row.setdefault(round(cell.y, 3), set()).add(round(cell.x, 3))
        xs = sorted(set().union(*by_row.values()))
        is_full = len({len(row) for row in by_row.values()}) == 1
        self.columns = len(next(iter(by_row.values()))) if is_full else len(xs)
        self.rows = len(by_row)
        self._place: dict[tuple[float, float], tuple[int, int]] = {}
        for number, y in enumerate(sorted(by_row, reverse=True)):
            for column, x in enumerate(sorted(by_row[y]) if is_full else xs):
                self._place[x, y] = column, number

    @property
    def size(self) -> int:
        """The size of the smallest square board that has all points."""
        return max(self.columns, self.rows)

    def place(self, cell: Cell) -> tuple[int, int]:
        """Return the column and the row of a cell, each from 0 on: from the left, and from the bottom."""
        return self._place[round(cell.x, 3), round(cell.y, 3)]

    def name(self, cell: Cell) -> str:
        """Return the point of a cell, such as D4."""
        column, row = self.place(cell)
        return f"{LETTERS[column]}{row + 1}"

    def path(self, board: Board, action_name: str) -> Words:
        """Return the points that are clicked, one after the other, to play an action; () if it has no cells.

        A move of one click is the point on which the piece lands, as a disc does in its column; a longer one begins at
        the piece that it lifts.
        """
        return tuple(map(self.name, board.clicked(action_name)))


def spell(position: Game, points: Points | None) -> dict[int, Words]:
    """Return the words of each legal action of `position`: its name, or with `points` those of its path.

    An action is spelled by its name if it has no cells, or if its points are those of another action, or the beginning
    of another one's. So no spelling is the beginning of another one.
    """
    actions = list(map(int, position.legal_actions()))
    names: dict[int, Words] = {action: (position.action_name(action),) for action in actions}
    board = board_of(position) if points else None
    if points is None or board is None:
        return names
    paths = {action: points.path(board, names[action][0]) for action in actions}
    beginnings = Counter(path[:size] for path in paths.values() for size in range(1, len(path) + 1))
    return {action: path if beginnings[path] == 1 else names[action] for action, path in paths.items()}
