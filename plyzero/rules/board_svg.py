"""Boards as SVG pictures: one drawing for the web page, for notebooks and for files; and tables for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import starmap
from typing import Final

from plyzero.rules.board import Board, Cell, Label

UNIT: Final = 40
"""Width of a square. With units larger than 1, focus rings and text keep their size in browsers."""

DICE: Final = "⚀⚁⚂⚃⚄⚅"
"""Characters of labels that are rendered as dice."""

PIPS: Final = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
"""Places of the pips of each die, numbered from 0 to 8 row by row."""

GLYPH_WIDTH: Final = 10.0
LINE_HEIGHT: Final = 22.0
"""Sizes in the picture of a text, whose font has the size 16 in board.css."""


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
    left, top = (min(each) - 0.6 for each in zip(*places, strict=True))
    right, bottom = (max(each) + 0.6 for each in zip(*places, strict=True))
    neighbours = {(cell.x, cell.y) for cell in board.cells}
    box = [UNIT * each for each in (left, top, right - left, bottom - top)]
    return [
        _beginning(board.style, title, style, *box) + "".join(_draw_edges(board, *box)),
        *("".join(_draw_cell(cell, board, cell in last, neighbours)) for cell in board.cells),
        *(
            "".join(_draw_dice(label))
            if label.text and set(label.text) <= set(DICE + " ")
            else f'<text class="label" x="{UNIT * label.x:g}" y="{UNIT * label.y:g}">{escape(label.text)}</text>'
            for label in board.labels
        ),
        "</svg>",
    ]


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


def _draw_cell(cell: Cell, board: Board, marked: bool, places: set[tuple[float, float]]) -> Iterator[str]:
    x, y, r = UNIT * cell.x, UNIT * cell.y, UNIT * 0.4
    chequered = board.style == "checks" or cell.shape.startswith("spike")
    dark = " dark" if chequered and (cell.x + cell.y) % 2 else ""
    yield f'<g class="cell {cell.shape}{dark}{" last" if marked else ""}" data-cell="{escape(cell.name)}">'
    match cell.shape:
        case "hex":
            # the unit is the radius of the hexagon
            corners = (0, -1), (0.866, -0.5), (0.866, 0.5), (0, 1), (-0.866, 0.5), (-0.866, -0.5)
            points = (f"{x + UNIT * dx / 3**0.5:.1f},{y + UNIT * dy / 3**0.5:.1f}" for dx, dy in corners)
            yield f'<polygon class="area" points="{" ".join(points)}"/>'
        case "dot":
            yield f'<circle class="spot" cx="{x:g}" cy="{y:g}" r="4"/>'
        case "spike-up" | "spike-down":
            half = UNIT / 2 if cell.shape == "spike-up" else -UNIT / 2
            yield f'<path class="spike" d="M{x - UNIT / 2:g} {y + half:g}h{UNIT}L{x:g} {y - 8.8 * half:g}z"/>'
            yield _rectangle("area", x, y, UNIT, UNIT)
        case "bar-h" | "bar-v":
            width, height = (0.84, 0.3) if cell.shape == "bar-h" else (0.3, 0.84)
            yield _rectangle("area taken" if cell.piece else "area", x, y, UNIT * width, UNIT * height)
        case _:
            yield _rectangle("area", x, y, UNIT, UNIT)
    if cell.shape == "point":
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (cell.x + dx, cell.y + dy) in places:
                yield f'<path class="line" d="M{x:g} {y:g}l{UNIT * dx / 2:g} {UNIT * dy / 2:g}"/>'
    if board.style == "holes" and not cell.piece:
        yield f'<circle class="hole" cx="{x:g}" cy="{y:g}" r="{r:g}"/>'
    player, colon, figure = cell.piece.partition(":")
    is_stone = cell.piece in ("0", "1") or (player in ("0", "1") and figure.isalnum())
    if is_stone:
        yield f'<circle class="stone p{player}" cx="{x:g}" cy="{y:g}" r="{r:g}"/>'
    if (figure or (player and not is_stone)) and not cell.shape.startswith("bar"):
        kind = f"{'mark' if is_stone else 'figure'} p{player if colon else _look(player)}"
        yield f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(figure or player)}</text>'
    yield "</g>"


def _look(letter: str) -> str:
    """Return whether a letter is drawn white, "0", or black, "1", as capitals and small letters are in chess."""
    if len(letter) != 1 or not letter.isalpha():
        return ""
    is_white = letter in "Ww" or (letter.isupper() and letter != "B")
    return "0" if is_white else "1"


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


def _draw_edges(board: Board, left: float, top: float, width: float, height: float) -> Iterator[str]:
    """Yield the sides of the players, on a background that shows both colours."""
    if board.edges:
        yield f'<rect class="ground" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{UNIT / 4:g}"/>'
    for player, points in board.edges:
        line = " ".join(f"{UNIT * x:.1f},{UNIT * y:.1f}" for x, y in points)
        yield f'<polyline class="edge p{player}" points="{line}"/>'


def _draw_dice(label: Label) -> Iterator[str]:
    numbers = [DICE.index(each) for each in label.text.replace(" ", "")]
    size = UNIT * 0.8
    yield f'<g class="dice" role="img" aria-label="{" ".join(str(number + 1) for number in numbers)}">'
    for place, number in enumerate(numbers):
        x = UNIT * (label.x + 0.9 * (place - (len(numbers) - 1) / 2))
        y = UNIT * label.y
        yield _rectangle("die", x, y, size, size).replace("/>", f' rx="{UNIT / 8:g}"/>')
        for pip in PIPS[number]:
            right, down = (size * 0.28 * (each - 1) for each in (pip % 3, pip // 3))
            yield f'<circle class="pip" cx="{x + right:g}" cy="{y + down:g}" r="{UNIT / 12:g}"/>'
    yield "</g>"


def _rectangle(name: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{name}" x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}"/>'


def spots_of(board: Board | None, name: str) -> list[tuple[float, float]]:
    """Return the places of the cells that are clicked to play an action, in units of the picture; [] without one."""
    return [(UNIT * cell.x, UNIT * cell.y) for cell in board.clicked(name)] if board else []
