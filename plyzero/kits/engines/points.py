"""The points of a board, such as D4, and moves as points, for GTP controllers that know only these."""

from __future__ import annotations

from collections import Counter
from typing import Final

from plyzero.rules.board import Board, Cell
from plyzero.rules.game import Game, board_of

LETTERS: Final = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of the columns; GTP leaves out I."""

Words = tuple[str, ...]
"""The words of one action; a controller sends each in a command."""


class Points:
    """The points of a board: the letter of the column from the left, and the number of the row from the bottom.

    columns, rows: how many there are.
    """

    def __init__(self, board: Board) -> None:
        """Number the cells of `board`, which has at least one. The columns of hexagons are those of straight rows."""
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
        """Return the column of a cell, from the left, and its row, from the bottom, both from 0 on."""
        return self._place[round(cell.x, 3), round(cell.y, 3)]

    def name(self, cell: Cell) -> str:
        """Return the point of a cell, such as D4."""
        column, row = self.place(cell)
        return f"{LETTERS[column]}{row + 1}"

    def path(self, board: Board, action_name: str) -> Words:
        """Return the points that are clicked, one after the other, to play an action; () if it has no cells.

        If there is one click, it is on the point where the piece lands; if there are more, the first is on the piece
        that moves.
        """
        return tuple(map(self.name, board.clicked(action_name)))


def spell(position: Game, points: Points | None) -> dict[int, Words]:
    """Return the words of each legal action of `position`: its name, or with `points` the points of its path.

    An action is spelled by its name if it has no cells, or if its path is that of another action or the beginning of
    one. So no spelling is the beginning of another one.
    """
    actions = list(map(int, position.legal_actions()))
    names: dict[int, Words] = {action: (position.action_name(action),) for action in actions}
    board = board_of(position) if points else None
    if points is None or board is None:
        return names
    paths = {action: points.path(board, names[action][0]) for action in actions}
    beginnings: Counter[Words] = Counter()
    for path in paths.values():
        beginnings.update(path[:size] for size in range(1, len(path) + 1))
    return {action: path if beginnings[path] == 1 else names[action] for action, path in paths.items()}
