"""The board that people see: cells with a name, a place and a piece. Text, pictures and clicks follow from it.

```python
class TicTacToe(Game):
    def render(self):
        return grid(self.board)    # 0 = empty, 1 = player 0, 2 = player 1
```

A game without `render` has the board that `read_text` finds in its text, if there is one.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

PIECES: Final = ("", "0", "1")
"""Pieces of `grid` and `hexes`: nothing, a stone of player 0, a stone of player 1."""

HEX_ROW: Final = 3**0.5 / 2
"""The distance of two rows of hexagons whose centres are 1 apart."""

FILLS: Final = {
    "black": "#222222",
    "white": "#fafafa",
    "red": "#c92a2a",
    "yellow": "#f2c230",
    "blue": "#1f5fae",
    "green": "#2b7a3d",
    "orange": "#e8832a",
    "brown": "#6b4226",
    "grey": "#8a8f98",
}
"""The colours that players can have: name -> its colour in pictures."""

MAX_CELLS: Final = 999
"""Largest number of cells of a board that is drawn."""

TEXT_STYLE: Final = "\ufe0e"
"""After a symbol: it is shown as text, not as an emoji."""

EMOJI: Final = 0x1F000
"""Characters from here on have colours of their own."""


class Cell(NamedTuple):
    """A place on a board.

    name:  what a click on it types; several cells may share one name, such as those of a column.
    x, y:  its centre. y grows downwards, and neighbouring squares are 1 apart.
    piece: "" = none, "0" or "1" = a stone of that player, "0:♞" = a figure of that player (one symbol), "0:K", "0:12"
           or "0:🐰" = a stone of that player with a text on it. Any other text is nobody's; a single letter is white
           if it is w or a capital but B, else black.
    shape: "square", "hex", "point" where lines cross, "dot", or "free" without a frame.
           "bar-h" and "bar-v" are edges, for walls, roads and fences: a piece "0" or "1" is a wall of that player, any
           other one is nobody's.
           "card" is wide, for cards and for moves that need no place, such as a pass: "0:tiger" is a card of player 0,
           "pass" one of nobody.
           "spike-up" and "spike-down" begin a point of backgammon, five cells long, and "rail-up" and "rail-down" a
           piece of its bar; in "tray-up" and "tray-down" lie stones that have left the board, "0:12" = twelve of them.
    """

    name: str
    x: float
    y: float
    piece: str = ""
    shape: str = "square"

    @property
    def is_edge(self) -> bool:
        """Whether the cell is an edge between others."""
        return self.shape in ("bar-h", "bar-v")

    def owned(self) -> tuple[int | None, str]:
        """Return the player whose piece this is, None if it is nobody's, and the text of the piece."""
        player, colon, text = self.piece.partition(":")
        if player in ("0", "1") and (colon or not text):
            return int(player), text
        return None, self.piece

    def has_figure(self) -> bool:
        """Return whether the piece is one symbol of a player, or a single letter that is nobody's, without a stone."""
        player, text = self.owned()
        text = text.removesuffix(TEXT_STYLE)
        if len(text) != 1 or self.is_edge:
            return False
        return text.isalpha() if player is None else not text.isalnum() and ord(text) < EMOJI


class Label(NamedTuple):
    """A text beside the board or on it, with its centre: a coordinate, a number of cards, or dice such as "⚅ ⚂"."""

    x: float
    y: float
    text: str


class Mark(NamedTuple):
    """The name of a cell to which players have to look, and why in a few words: a king in check."""

    name: str
    text: str


class Edge(NamedTuple):
    """A side of the board that belongs to a player, as a line through the `points` (x, y)."""

    player: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Board:
    """A position as people see it.

    cells:   in an order that is the same in every position of a game.
    style:   "squares", "checks" (two colours in turn), "holes" (round, as in Connect Four), "points" (as in go),
             "hexes" or "dots".
    colours: of the pieces of players 0 and 1, of FILLS. By default red and yellow with "holes", white and black if
             there are figures, as in chess, otherwise black and white. Give them where figures can leave the board.
    marks:   cells to which players have to look. They are drawn in red, and their texts are read out with the cells.
    turns:   whether player 1 sits at the other side: the page turns the board for a person who plays player 1 alone.
    """

    cells: tuple[Cell, ...]
    style: str = "squares"
    labels: tuple[Label, ...] = ()
    edges: tuple[Edge, ...] = ()
    colours: tuple[str, str] | None = None
    marks: tuple[Mark, ...] = ()
    turns: bool = False

    @cached_property
    def player_colours(self) -> tuple[str, str]:
        """The colours of the pieces of players 0 and 1, in words."""
        if self.colours:
            return self.colours
        if self.style == "holes":
            return "red", "yellow"
        return ("white", "black") if any(map(Cell.has_figure, self.cells)) else ("black", "white")

    @property
    def names(self) -> Set[str]:
        """The names of all cells, in small letters."""
        return self._by_name.keys()

    def path(self, action_name: str) -> tuple[str, ...]:
        """Return the names of the cells that are clicked, one after the other, to play an action.

        The action's name is cut into names of cells, the longest first, and what lies between them or behind them is
        skipped: a2-b3 is a2, b3, and e7e8q is e7, e8. It is () if the name does not begin with a cell's.
        """
        text = action_name.lower()
        path: list[str] = []
        at = 0
        while at < len(text):
            found = self._name_at(text, at)
            if found:
                path.append(found)
            elif not path and text[at].isalnum():
                return ()
            at += len(found) or 1
        return tuple(path)

    def clicked(self, action_name: str) -> list[Cell]:
        """Return the cells of `path`: the piece that a move lifts, if it has several, and where each click lands."""
        path = self.path(action_name)
        first = [self.lifted(path[0])] if len(path) > 1 else []
        return [*first, *map(self.landing, path[len(first) :])]

    def landing(self, name: str) -> Cell:
        """Return the cell that a click of `name` fills: its first empty one, otherwise its last."""
        cells = self._by_name[name.lower()]
        return next((cell for cell in cells if not cell.piece), cells[-1])

    def lifted(self, name: str) -> Cell:
        """Return the cell whose piece a click of `name` lifts: its last one with a piece, otherwise its last."""
        cells = self._by_name[name.lower()]
        return next((cell for cell in reversed(cells) if cell.piece), cells[-1])

    def changed(self, before: Board) -> tuple[Cell, ...]:
        """Return the cells whose piece is another one than on the board `before`, which has the same cells."""
        if len(self.cells) != len(before.cells):
            return ()
        return tuple(cell for cell, old in zip(self.cells, before.cells, strict=True) if cell.piece != old.piece)

    def __str__(self) -> str:
        """Return the board as text: stones are x and o. Columns are wider if the texts of squares are longer."""
        marks = [(label.y, label.x, label.text) for label in self.labels]
        marks += [(cell.y, cell.x, glyph(cell, self.style)) for cell in self.cells]
        left = min(x for _, x, _ in marks)
        wide = 1 + max((len(glyph(cell, self.style)) for cell in self.cells if cell.shape == "square"), default=1)
        rows = groupby(sorted(marks), key=lambda mark: mark[0])
        return "\n".join(_line([(round(wide * (x - left)) + 1, text) for _, x, text in row]) for _, row in rows)

    def _name_at(self, text: str, at: int) -> str:
        """Return the longest name of a cell that stands in `text` from `at` on, "" if none does."""
        for size in range(min(self._longest, len(text) - at), 0, -1):
            name, rest = text[at : at + size], text[at + size :]
            # b1 is not meant in b12
            if name in self._by_name and not (name[-1].isdigit() and rest[:1].isdigit()):
                return name
        return ""

    @cached_property
    def _by_name(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.name.lower(), []).append(cell)
        return found

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._by_name), default=0)


def find_board_fault(board: object) -> str:
    """Return why a board cannot be drawn, as a clause for an error; "" if it can."""
    if not isinstance(board, Board):
        return f"render() is a {type(board).__name__}, expected a Board"
    if not board.cells:
        return "render() has no cells, expected None or a Board with cells"
    if len(board.cells) > MAX_CELLS:
        return f"render() has {len(board.cells)} cells, expected at most {MAX_CELLS}"
    if unknown := [name for name in board.colours or () if name not in FILLS]:
        return f"render() has the colour {unknown[0]!r}, expected two of {', '.join(FILLS)}"
    places: dict[tuple[float, float], Cell] = {}
    for cell in board.cells:
        if not (isinstance(cell.name, str) and cell.name.split() == [cell.name] and isinstance(cell.piece, str)):
            return f"render() has {cell}, expected a word as name, and text as piece"
        if not (math.isfinite(cell.x) and math.isfinite(cell.y)):
            return f"render() has {cell}, expected a finite place"
        other = places.setdefault((cell.x, cell.y), cell)
        if other is not cell:
            return f"render() has {other.name} and {cell.name} at one place, x={cell.x:g}, y={cell.y:g}"
    if lost := [mark.name for mark in board.marks if mark.name.lower() not in board.names]:
        return f"render() marks {lost[0]!r}, expected the name of one of its cells"
    return ""


def grid(
    rows: ArrayLike,
    *,
    pieces: Sequence[str] = PIECES,
    rows_up: bool = False,
    files: str = string.ascii_lowercase,
    by_column: bool = False,
    style: str = "squares",
    colours: tuple[str, str] | None = None,
) -> Board:
    """Return a board of squares named a1, b1, ... with the letter of the column and the number of the row.

    rows:      `[rows, columns]` int; the square has the piece `pieces[rows[row, column]]`.
    rows_up:   row 1 is at the bottom, not at the top.
    files:     the letters of the columns.
    by_column: a click anywhere in a column types its letter alone; the lowest row is filled first.
    style:     see Board. With "dots", cells in even rows and columns are dots, and those between two dots are edges.
    colours:   of the players' pieces, see Board.
    """
    numbers = np.asarray(rows)
    height, width = numbers.shape
    names = square_names(height, width, files=files)
    cells, labels = [], [Label(column, height, files[column]) for column in range(width)]
    for row in range(height):
        y = height - 1 - row if rows_up else row
        labels.append(Label(-1, y, str(row + 1)))
        for column in range(width):
            name = files[column] if by_column else names[row * width + column]
            cells.append(Cell(name, column, y, pieces[numbers[row, column]], _shape(style, row, column)))
    if by_column:
        cells.sort(key=lambda cell: -cell.y)
    return Board(tuple(cells), style, tuple(labels), colours=colours)


def hexes(
    rows: ArrayLike,
    *,
    pieces: Sequence[str] = PIECES,
    files: str = string.ascii_lowercase,
    edges: bool = False,
    colours: tuple[str, str] | None = None,
) -> Board:
    """Return a board of hexagons, each row half a hexagon further right. The other arguments are those of `grid`.

    edges: whether the sides have colours: top and bottom are player 0's, left and right player 1's.
    """
    squares = grid(rows, pieces=pieces, files=files)
    cells = (Cell(cell.name, cell.x + cell.y / 2, cell.y * HEX_ROW, cell.piece, "hex") for cell in squares.cells)
    labels = (Label(x + y / 2, y * HEX_ROW, text) for x, y, text in squares.labels)
    return Board(tuple(cells), "hexes", tuple(labels), _sides(*np.shape(rows)) if edges else (), colours)


def _sides(height: int, width: int) -> tuple[Edge, ...]:
    """Return the four sides of a rhombus of hexagons."""
    tip, shoulder = HEX_ROW * 2 / 3, HEX_ROW / 3  # the corners of a hexagon are so far above and below its centre
    top = [at for x in range(width) for at in ((x - 0.5, -shoulder), (x, -tip))] + [(width - 0.5, -shoulder)]
    left = [(y / 2 - 0.5, y * HEX_ROW + down) for y in range(height) for down in (-shoulder, shoulder)]
    last_x, last_y = width - 1 + (height - 1) / 2, (height - 1) * HEX_ROW  # the centre of the last hexagon
    turned = ([(last_x - x, last_y - y) for x, y in side] for side in (top, left))
    return tuple(Edge(n % 2, tuple(side)) for n, side in enumerate((top, left, *turned)))


def render_grid(board: NDArray[np.int8], *, glyphs: str = ".xo", rows_up: bool = False, files: str = "") -> str:
    """Return `board`, `[rows, columns]` int, as text with coordinates.

    A square of value `v` is rendered as `glyphs[v]`; by default 0 is empty, 1 is player 0 and 2 is player 1. Row 0 is
    labelled 1 and rendered at the top, or at the bottom with `rows_up`. `files` labels the columns, by default a, b,
    c and so on.
    """
    rows, columns = board.shape
    order = range(rows - 1, -1, -1) if rows_up else range(rows)
    lines = [f"{row + 1:2d} " + " ".join(glyphs[board[row, column]] for column in range(columns)) for row in order]
    return "\n".join([*lines, "   " + " ".join((files or string.ascii_lowercase)[:columns])])


def square_names(rows: int, columns: int, *, files: str = string.ascii_lowercase) -> tuple[str, ...]:
    """Return the names of all squares, row by row: a1, b1, ... with the letter of the column and the row's number.

    files: the letters of the columns.
    """
    return tuple(f"{files[column]}{row + 1}" for row in range(rows) for column in range(columns))


def read_text(text: str, action_names: Iterable[str] = ()) -> Board | None:
    """Return the board that a text shows as `render_grid` renders it, None if it does not.

    action_names: the names of all actions. If the letters of all columns are among them, a click means a column.
    """
    *body, foot = [line for line in text.splitlines() if line.strip()] or [""]
    rows = [re.fullmatch(r"([ \d]\d) (.*)", line) for line in body]
    files = foot.split()
    if not rows or not files or not foot.startswith("   ") or {len(file) for file in files} != {1}:
        return None
    names = set(action_names)
    by_column = names.issuperset(files)
    cells, labels = [], [Label(column, len(body), file) for column, file in enumerate(files)]
    for y, row in enumerate(rows):
        if row is None or len(row[2]) > 2 * len(files) - 1 or row[2][1::2].strip():
            return None
        labels.append(Label(-1, y, row[1].strip()))
        for x, glyph in enumerate(row[2].ljust(2 * len(files) - 1)[::2]):
            piece = {".": "", " ": "", "x": "0", "o": "1", "X": "0:X", "O": "1:O"}.get(glyph, glyph)
            cells.append(Cell(files[x] if by_column else f"{files[x]}{row[1].strip()}", x, y, piece))
    if by_column:
        cells.reverse()  # pieces fall
    return Board(tuple(cells), labels=tuple(labels))


def _shape(style: str, row: int, column: int) -> str:
    if style == "dots":
        return (("dot", "bar-h"), ("bar-v", "square"))[row % 2][column % 2]
    return "point" if style == "points" else "square"


def glyph(cell: Cell, style: str) -> str:
    """Return a cell in text: its figure, x and o for stones."""
    if cell.shape == "dot":
        return "+"
    player, text = cell.owned()
    if player is not None:
        return text or "xo"[player]
    if cell.is_edge:
        wall = "-" if cell.shape == "bar-h" else "|"
        return wall if text else " "
    return text or (" " if style == "dots" else ".")


def _line(marks: list[tuple[int, str]]) -> str:
    """Return a line of texts; each text ends at its column."""
    line = ""
    for column, text in marks:
        line = line.ljust(column + 1 - len(text)) + text
    return line
