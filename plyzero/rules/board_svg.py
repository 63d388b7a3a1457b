"""Boards as SVG pictures: one drawing for the web page, for notebooks and for files; and tables for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from itertools import product, starmap
from typing import Any, Final, NamedTuple

from plyzero.rules.board import FILLS, TEXT_STYLE, Board, Cell, Label

UNIT: Final = 40
"""Width of a square. With units larger than 1, focus rings and text keep their size in browsers."""

DICE: Final = "⚀⚁⚂⚃⚄⚅"
"""Characters of labels that are rendered as dice."""

PIPS: Final = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
"""Places of the pips of each die, numbered from 0 to 8 row by row."""

GLYPH_WIDTH: Final = 10.0
LINE_HEIGHT: Final = 22.0
"""Sizes in the picture of a text, whose font has the size 16 in board.css."""

RADIUS: Final = UNIT * 0.4
"""Radius of a stone."""

LONG: Final = UNIT * 5.0
"""Length of the points, the bar and the trays of backgammon, to one side."""

LIGHT: Final = 120
"""Texts and outlines are black on a colour that is lighter, from 0 to 255."""

SOLID: Final = str.maketrans("♔♕♖♗♘♙☖⛀⛁♤♡♢♧○◯△▽□◇☆", "♚♛♜♝♞♟☗⛂⛃♠♥♦♣●●▲▼■◆★")
"""Hollow symbols, whose background would be seen through them -> solid ones."""


Places = frozenset[tuple[float, float]]


def render_svg(board: Board, *, last: Collection[Cell] = (), title: str = "board", style: bool = True) -> str:
    """Return `board` as an SVG element that needs no other file.

    last:  the cells that the last move changed; they are marked.
    title: the name of the picture for people who cannot see it.
    style: False omits the colours, for pages that link to board.css: every part has a class, and a cell's element has
           its name as data-cell.
    """
    return "".join(svg_parts(board, last=last, title=title, style=style))


def svg_parts(board: Board, *, last: Collection[Cell] = (), title: str = "board", style: bool = True) -> list[str]:
    """Return what `render_svg` joins: the beginning, one part for each cell and each label, and the end.

    Two positions of a game differ in few of these parts.
    """
    places = [(cell.x, cell.y) for cell in board.cells] + [(label.x, label.y) for label in board.labels]
    places += [point for edge in board.edges for point in edge.points]
    places += [(cell.x + side, cell.y) for cell in board.cells if cell.shape == "card" for side in (-0.7, 0.7)]
    left, top = (min(each) - 0.6 for each in zip(*places, strict=True))
    right, bottom = (max(each) + 0.6 for each in zip(*places, strict=True))
    neighbours = frozenset((cell.x, cell.y) for cell in board.cells)
    box = [UNIT * each for each in (left, top, right - left, bottom - top)]
    look = _look(board.style, tuple(board.player_colours), neighbours, _star_points(board))
    marks = {mark.name.lower(): mark.text for mark in board.marks}
    return [
        _beginning(board.style, title, style, *box) + "".join(_draw_ground(board, *box)),
        *(_part_of_cell(cell, look, cell in last, marks.get(cell.name.lower(), "")) for cell in drawn_cells(board)),
        *(
            "".join(_draw_dice(label))
            if label.text and set(label.text) <= set(DICE + " ")
            else f'<text class="label" x="{UNIT * label.x:g}" y="{UNIT * label.y:g}">{escape(label.text)}</text>'
            for label in board.labels
        ),
        "</svg>",
    ]


def drawn_cells(board: Board) -> list[Cell]:
    """Return the cells in the order of their parts in `svg_parts`."""
    return sorted(board.cells, key=_layer)


def _layer(cell: Cell) -> int:
    """Return the order in which cells are drawn: edges above areas, and dots above edges."""
    return 2 if cell.shape == "dot" else int(cell.is_edge)


def with_shares(picture: str, moves: Iterable[tuple[Sequence[Cell], float]]) -> str:
    """Return a picture of `render_svg` with moves on it: circles and arrows that are larger where the share is.

    moves: for each move the cells that are clicked to play it, and its share from 0 to 1.
    """
    return picture.removesuffix("</svg>") + "".join(starmap(_draw_share, moves)) + "</svg>"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML, for notebooks."""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    lines = ("".join(f"<td>{escape(str(each))}</td>" for each in row) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as lines of text."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def text_svg(text: str) -> str:
    """Return a text as an SVG element, for positions without a board."""
    lines = text.splitlines() or [""]
    width = GLYPH_WIDTH * max(map(len, lines)) + 2 * GLYPH_WIDTH
    rows = (
        f'<text class="row" x="{GLYPH_WIDTH:g}" y="{LINE_HEIGHT * (number + 1):g}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    beginning = _beginning("text", "position", True, 0, 0, width, LINE_HEIGHT * (len(lines) + 1))
    return "".join([beginning, *rows, "</svg>"])


def board_css() -> str:
    """Return the colours of boards as a style sheet."""
    return files("plyzero.rules").joinpath("board.css").read_text("utf-8")


def _beginning(kind: str, title: str, style: bool, *box: float) -> str:
    """Return the tag that opens a picture; `box`: its left, its top, its width and its height."""
    view = " ".join(f"{each:g}" for each in box)
    css = f"<style>{board_css()}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="board {kind}" viewBox="{view}"'
        f' role="group" aria-label="{escape(title)}">{css}'
    )


class _Look(NamedTuple):
    """The properties of a board on which the drawing of a cell depends, with the centres of all its cells."""

    style: str
    colours: tuple[str, str]
    places: Places
    stars: Places


@lru_cache(maxsize=64)
def _look(*fields: Any) -> _Look:
    """Return the same object for the same fields, so that it is quickly compared."""
    return _Look(*fields)


@lru_cache(maxsize=1 << 13)
def _part_of_cell(cell: Cell, look: _Look, is_last: bool, mark: str) -> str:
    return "".join(_draw_cell(cell, look, is_last, mark))


def _draw_cell(cell: Cell, look: _Look, is_last: bool, mark: str) -> Iterator[str]:
    chequered = look.style == "checks" or cell.shape.startswith("spike")
    dark = " dark" if chequered and (cell.x + cell.y) % 2 else ""
    classes = f"cell {cell.shape}{dark}{' last' if is_last else ''}{' marked' if mark else ''}"
    why = f' data-mark="{escape(mark)}"' if mark else ""
    yield f'<g class="{classes}" data-cell="{escape(cell.name)}"{why}>'
    yield from _draw_ground_of(cell)
    if cell.shape == "point":
        yield from _draw_lines(cell, look.places)
    if (cell.x, cell.y) in look.stars:
        yield f'<circle class="star" cx="{UNIT * cell.x:g}" cy="{UNIT * cell.y:g}" r="3.5"/>'
    if look.style == "holes" and cell.shape == "square" and (not cell.piece or cell.has_figure()):
        yield f'<circle class="hole" cx="{UNIT * cell.x:g}" cy="{UNIT * cell.y:g}" r="{RADIUS:g}"/>'
    if cell.piece:
        yield from _draw_piece(cell, look.colours)
    yield "</g>"


def _draw_ground_of(cell: Cell) -> Iterator[str]:
    """Yield what a cell without a piece shows."""
    x, y = UNIT * cell.x, UNIT * cell.y
    upwards = 1 if cell.shape.endswith("-up") else -1
    end = y + upwards * UNIT / 2  # of a shape that is five cells long
    match cell.shape:
        case "hex":
            # the unit is the radius of the hexagon
            corners = (0, -1), (0.866, -0.5), (0.866, 0.5), (0, 1), (-0.866, 0.5), (-0.866, -0.5)
            points = (f"{x + UNIT * dx / 3**0.5:.1f},{y + UNIT * dy / 3**0.5:.1f}" for dx, dy in corners)
            yield f'<polygon class="area" points="{" ".join(points)}"/>'
        case "dot":
            yield f'<circle class="spot" cx="{x:g}" cy="{y:g}" r="4"/>'
        case "card":
            yield _card("area", x, y)
        case "bar-h" | "bar-v":
            yield _rectangle("area", x, y, *_size_of_edge(cell))
        case "spike-up" | "spike-down":
            yield f'<path class="spike" d="M{x - UNIT / 2:g} {end:g}h{UNIT}L{x:g} {y - upwards * 4.4 * UNIT:g}z"/>'
            yield _rectangle("area", x, y, UNIT, UNIT)
        case "rail-up" | "rail-down" | "tray-up" | "tray-down":
            kind = cell.shape.partition("-")[0]
            yield _rectangle(f"{kind} area", x, end - upwards * LONG / 2, UNIT, LONG)
        case _:
            yield _rectangle("area", x, y, UNIT, UNIT)


def _draw_lines(cell: Cell, places: Places) -> Iterator[str]:
    """Yield the lines from a crossing to its neighbours."""
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        if (cell.x + dx, cell.y + dy) in places:
            x, y = UNIT * cell.x, UNIT * cell.y
            yield f'<path class="line" d="M{x:g} {y:g}l{UNIT * dx / 2:g} {UNIT * dy / 2:g}"/>'


def _draw_piece(cell: Cell, colours_of: tuple[str, str]) -> Iterator[str]:
    x, y = UNIT * cell.x, UNIT * cell.y
    player, text = cell.owned()
    name = _colour_of_letter(text, colours_of) if player is None else colours_of[player]
    colours = f'fill="{FILLS[name]}" stroke="{_ink_on(name)}"' if name else ""
    kind = "" if player is None else f" p{player}"
    if cell.has_figure():
        yield f'<text class="figure{kind}" {colours} x="{x:g}" y="{y:g}">{escape(_solid(text))}</text>'
        return
    if cell.shape.startswith("tray"):
        yield from _draw_tray(cell, f"lying stone{kind}", colours)
        return
    if cell.is_edge:
        yield _rectangle(f"wall{kind or ' taken'}", x, y, *_size_of_edge(cell), colours)
    elif cell.shape == "card" and player is not None:
        yield _card(f"owned{kind}", x, y, colours)
    elif player is not None:
        yield f'<circle class="stone{kind}" {colours} cx="{x:g}" cy="{y:g}" r="{RADIUS:g}"/>'
    if player is None and not cell.is_edge:
        yield f'<text class="figure" x="{x:g}" y="{y:g}">{escape(text)}</text>'
    elif player is not None and text:
        is_small = cell.is_edge or (len(text) > 2 and cell.shape != "card")
        size = "small mark" if is_small else "mark"
        yield f'<text class="{size}" fill="{_ink_on(name)}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _draw_tray(cell: Cell, kind: str, colours: str) -> Iterator[str]:
    """Yield the stones in a tray, which lie on their sides; `kind` and `colours` are their classes and attributes."""
    player, text = cell.owned()
    if player is None:
        return
    number = int(text) if text.isdigit() else 1
    upwards = 1 if cell.shape == "tray-up" else -1
    x, end = UNIT * cell.x, UNIT * (cell.y + upwards / 2)
    thickness = min(LONG / 15, LONG / number)
    for place in range(number):
        yield _rectangle(kind, x, end - upwards * (place + 0.5) * thickness, UNIT * 0.8, thickness - 2, colours)


def _card(name: str, x: float, y: float, colours: str = "") -> str:
    return _rectangle(name, x, y, 2.4 * UNIT, UNIT, f'rx="{UNIT / 5:g}" {colours}'.rstrip())


def _size_of_edge(cell: Cell) -> tuple[float, float]:
    long, short = 0.84 * UNIT, 0.3 * UNIT
    return (long, short) if cell.shape == "bar-h" else (short, long)


def _colour_of_letter(letter: str, colours_of: tuple[str, str]) -> str:
    """Return the colour of a letter that is nobody's piece, "" if it has none. As in chess, capitals are player 0's."""
    if len(letter) != 1 or not letter.isalpha():
        return ""
    if letter in "WwBb":
        return "white" if letter in "Ww" else "black"
    return colours_of[0 if letter.isupper() else 1]


def _ink_on(colour: str) -> str:
    """Return the colour of texts and outlines that is seen on the colour of a player."""
    red, green, blue = bytes.fromhex(FILLS[colour].removeprefix("#"))
    is_light = 0.299 * red + 0.587 * green + 0.114 * blue > LIGHT
    return FILLS["black"] if is_light else "#ffffff"


def _solid(symbol: str) -> str:
    """Return a symbol as a filled shape, which can have the colour of a player, and not as an emoji."""
    return symbol.removesuffix(TEXT_STYLE).translate(SOLID) + TEXT_STYLE


def _draw_share(cells: Sequence[Cell], share: float) -> str:
    if not cells or share < 0.005:
        return ""
    points = [(UNIT * cell.x, UNIT * cell.y) for cell in cells]
    x, y = (sum(each) / 2 for each in zip(points[0], points[-1], strict=True))
    drawn = f'<circle class="heat" cx="{x:g}" cy="{y:g}" r="{6 + 11 * share**0.5:.1f}" fill-opacity="0.7"/>'
    if len(points) > 1:
        line = " ".join(f"{x:g},{y:g}" for x, y in points)
        drawn = f'<polyline class="arrow" points="{line}" stroke-width="{2 + 7 * share**0.5:.1f}"/>'
        drawn += f'<circle class="tip" cx="{points[-1][0]:g}" cy="{points[-1][1]:g}" r="{4 + 6 * share**0.5:.1f}"/>'
    return f'<g class="overlay">{drawn}<text x="{x:g}" y="{y:g}">{100 * share:.0f}</text></g>'


def _draw_ground(board: Board, left: float, top: float, width: float, height: float) -> Iterator[str]:
    """Yield the background of boards that have one, and the sides of the players, which are seen on it."""
    is_table = any(cell.shape.startswith("spike") for cell in board.cells)
    if board.edges or is_table:
        kind = "table" if is_table else "ground"
        yield f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{UNIT / 4:g}"/>'
    if any(cell.is_edge for cell in board.cells):  # what is seen between squares and walls
        yield _rectangle("floor", *_middle_and_size(board))
    if board.style == "points":  # one area, so that no seams are seen between the cells
        yield _rectangle("wood", *_middle_and_size(board))
    for player, points in board.edges:
        line = " ".join(f"{UNIT * x:.1f},{UNIT * y:.1f}" for x, y in points)
        yield f'<polyline class="edge p{player}" stroke="{FILLS[board.player_colours[player]]}" points="{line}"/>'


def _middle_and_size(board: Board) -> tuple[float, float, float, float]:
    """Return the middle of the cells and their width and height, in units of the picture."""
    xs, ys = [cell.x for cell in board.cells], [cell.y for cell in board.cells]
    width, height = max(xs) - min(xs) + 1, max(ys) - min(ys) + 1
    return UNIT * (min(xs) + max(xs)) / 2, UNIT * (min(ys) + max(ys)) / 2, UNIT * width, UNIT * height


def _star_points(board: Board) -> Places:
    """Return the star points of a square board of crossings with an odd number of lines, at least nine."""
    size = round(len(board.cells) ** 0.5)
    if board.style != "points" or size < 9 or size % 2 == 0 or size * size != len(board.cells):
        return frozenset()
    near = 2 if size < 13 else 3
    left, top = min(cell.x for cell in board.cells), min(cell.y for cell in board.cells)
    middle = size // 2
    on_sides = size >= 17
    lines = near, middle, size - 1 - near
    return frozenset(
        (left + x, top + y) for x, y in product(lines, repeat=2) if on_sides or (x == middle) == (y == middle)
    )


def _draw_dice(label: Label) -> Iterator[str]:
    numbers = [DICE.index(each) for each in label.text.replace(" ", "")]
    size = UNIT * 0.8
    yield f'<g class="dice" role="img" aria-label="{" ".join(str(number + 1) for number in numbers)}">'
    for place, number in enumerate(numbers):
        x = UNIT * (label.x + 0.9 * (place - (len(numbers) - 1) / 2))
        y = UNIT * label.y
        yield _rectangle("die", x, y, size, size, f'rx="{UNIT / 8:g}"')
        for pip in PIPS[number]:
            right, down = (size * 0.28 * (each - 1) for each in (pip % 3, pip // 3))
            yield f'<circle class="pip" cx="{x + right:g}" cy="{y + down:g}" r="{UNIT / 12:g}"/>'
    yield "</g>"


def _rectangle(name: str, x: float, y: float, width: float, height: float, attributes: str = "") -> str:
    place = f'x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{name}" {place} {attributes}'.rstrip() + "/>"
