"""Boards as pixels: draws with Pillow what plyzero.rules.board_svg has drawn as SVG, in the colours of board.css.

It knows the few elements and properties that occur there, so a board has one drawing and one definition of its colours.
"""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from plyzero.rules.board_svg import board_css

OVERSAMPLING: Final = 3
"""Pictures are drawn so many times larger and then reduced, which smooths their edges."""

BACKGROUND: Final = "#ffffff"
"""Colour of what no element covers."""

CHESS_LETTERS: Final = str.maketrans("♔♕♖♗♘♙♚♛♜♝♞♟", "KQRBNPKQRBNP")
"""What stands for chess pieces in a font that lacks them."""

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Point = tuple[float, float]


class Rule(NamedTuple):
    """A rule of a style sheet for one selector: `path` has the tag or the classes of an element and of its parents."""

    path: tuple[str, ...]
    properties: Mapping[str, str]


def draw_svg(svg: str, width: int) -> Image.Image:
    """Return a picture of plyzero.rules.board_svg as an RGB image that is `width` pixels wide."""
    root = ET.fromstring(svg)
    canvas = _Canvas([float(each) for each in root.attrib["viewBox"].split()], width)
    _draw_children(root, (_words_of(root),), canvas)
    return canvas.image.reduce(OVERSAMPLING)


@cache
def colours() -> frozenset[str]:
    """Return the colours of boards, such as `#e3cfa3`, and the background."""
    found = re.findall(r"(?:fill|stroke): (#\w+)", board_css())
    return frozenset(
        {BACKGROUND, *(each if len(each) == 7 else "#" + "".join(2 * c for c in each[1:]) for each in found)}
    )


@cache
def find_font(size: float, *, mono: bool = False) -> tuple[Font, bool]:
    """Return a font of `size` pixels, and whether it has chess pieces.

    It is DejaVu, which matplotlib brings along and most systems have, otherwise the font in Pillow.
    """
    name = "DejaVuSansMono.ttf" if mono else "DejaVuSans.ttf"
    matplotlib = importlib.util.find_spec("matplotlib")  # only its files are used, so it need not be imported
    folders = [
        Path(each) / "mpl-data" / "fonts" / "ttf"
        for each in (matplotlib and matplotlib.submodule_search_locations) or ()
    ]
    for place in (*(str(folder / name) for folder in folders), name):
        try:
            return ImageFont.truetype(place, size), True
        except OSError:
            continue
    return ImageFont.load_default(size), False


class _Canvas:
    """An image that is larger than the picture by OVERSAMPLING; shapes come in the units of the SVG element."""

    def __init__(self, box: Sequence[float], width: int) -> None:
        self._left, self._top, across, down = box
        self._scale = OVERSAMPLING * width / across
        size = (OVERSAMPLING * width, OVERSAMPLING * max(1, round(width * down / across)))
        self.image = Image.new("RGB", size, BACKGROUND)
        self._pen = ImageDraw.Draw(self.image)

    def rectangle(self, x: float, y: float, width: float, height: float, style: Mapping[str, str]) -> None:
        self._outlined(self._pen.rectangle, (x, y, x + width, y + height), style)

    def circle(self, x: float, y: float, r: float, style: Mapping[str, str]) -> None:
        self._outlined(self._pen.ellipse, (x - r, y - r, x + r, y + r), style)

    def polygon(self, points: Sequence[Point], style: Mapping[str, str]) -> None:
        corners = [self._at(point) for point in points]
        self._pen.polygon(corners, fill=_colour(style, "fill"))
        if edge := _colour(style, "stroke"):
            self._pen.line([*corners, *corners[:2]], fill=edge, width=self._line_width(style), joint="curve")

    def line(self, start: Point, end: Point, style: Mapping[str, str]) -> None:
        """Draw a horizontal or vertical line as a rectangle: Pillow's lines shift by a pixel with their direction."""
        half = float(style["stroke-width"]) / 2
        (left, right), (top, bottom) = sorted((start[0], end[0])), sorted((start[1], end[1]))
        out = (half, 0) if left == right else (0, half)
        self.rectangle(
            left - out[0],
            top - out[1],
            right - left + 2 * out[0],
            bottom - top + 2 * out[1],
            {"fill": style["stroke"]},
        )

    def text(self, x: float, y: float, text: str, style: Mapping[str, str]) -> None:
        font, has_chess = find_font(self._scale * float(style["font-size"]), mono="Mono" in style.get("font", ""))
        self._pen.text(
            self._at((x, y)),
            text if has_chess else text.translate(CHESS_LETTERS),
            fill=_colour(style, "fill"),
            font=font,
            anchor="lm" if style["text-anchor"] == "start" else "mm",
            stroke_width=self._line_width(style) / 2 if "stroke" in style else 0,
            stroke_fill=_colour(style, "stroke"),
        )

    def _outlined(
        self, draw: Callable[..., None], box: tuple[float, float, float, float], style: Mapping[str, str]
    ) -> None:
        """Draw a shape in a box; half of its outline lies outside."""
        edge = _colour(style, "stroke")
        half = float(style.get("stroke-width", 1)) / 2 if edge else 0.0
        for colour, out in ((edge, half), (_colour(style, "fill"), -half)):
            if colour:
                (left, top), (right, bottom) = (
                    self._at((box[0] - out, box[1] - out)),
                    self._at((box[2] + out, box[3] + out)),
                )
                draw((left, top, max(left, right - 1), max(top, bottom - 1)), fill=colour)

    def _at(self, point: Point) -> Point:
        return round((point[0] - self._left) * self._scale), round((point[1] - self._top) * self._scale)

    def _line_width(self, style: Mapping[str, str]) -> int:
        return max(1, round(self._scale * float(style.get("stroke-width", 1))))


def _draw_children(parent: ET.Element, above: tuple[frozenset[str], ...], canvas: _Canvas) -> None:
    for element in parent:
        chain = (*above, _words_of(element))
        if len(element):
            _draw_children(element, chain, canvas)
        else:
            _draw(element, _style_of(chain), canvas)


def _draw(element: ET.Element, style: Mapping[str, str], canvas: _Canvas) -> None:
    def number(name: str) -> float:
        return float(element.attrib[name])

    match _tag(element):
        case "rect":
            canvas.rectangle(number("x"), number("y"), number("width"), number("height"), style)
        case "circle":
            canvas.circle(number("cx"), number("cy"), number("r"), style)
        case "polygon":
            places = (each.split(",") for each in element.attrib["points"].split())
            canvas.polygon([(float(x), float(y)) for x, y in places], style)
        case "path":
            x, y, dx, dy = map(float, re.findall(r"-?[\d.]+", element.attrib["d"]))
            canvas.line((x, y), (x + dx, y + dy), style)
        case "text":
            canvas.text(number("x"), number("y"), element.text or "", style)


@cache
def _style_of(chain: tuple[frozenset[str], ...]) -> Mapping[str, str]:
    """Return the properties of an element by the classes and tags of itself, the last, and of its parents."""
    style: dict[str, str] = {}
    for rule in _rules():
        if _applies(rule.path, chain):
            style |= rule.properties
    return style


@cache
def _rules() -> tuple[Rule, ...]:
    """Return the rules of board.css, those that count more behind those that count less."""
    rules: list[tuple[tuple[int, int], Rule]] = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", board_css()):
        properties = dict(_declarations(body))
        for selector in selectors.split(","):
            weight = (selector.count("."), len(re.findall(r"(?:^|\s)\w", selector.strip())))
            rules.append((weight, Rule(tuple(selector.split()), properties)))
    return tuple(rule for _, rule in sorted(rules, key=lambda each: each[0]))


def _declarations(body: str) -> Iterator[tuple[str, str]]:
    for declaration in body.split(";"):
        name, colon, value = map(str.strip, declaration.partition(":"))
        if colon:
            yield name, value.removesuffix("px")
        if name == "font":
            yield "font-size", value.partition("px")[0]


def _applies(path: Sequence[str], chain: Sequence[frozenset[str]]) -> bool:
    """Return whether the last of a chain of elements is one that a selector names."""

    def fits(selector: str, words: frozenset[str]) -> bool:
        return set(re.findall(r"\.?[\w-]+", selector)) <= words

    if not fits(path[-1], chain[-1]):
        return False
    parents = iter(chain[:-1])
    return all(any(fits(selector, words) for words in parents) for selector in path[:-1])


def _words_of(element: ET.Element) -> frozenset[str]:
    """Return the tag of an element and its classes, each with its dot, as selectors name them."""
    return frozenset({_tag(element), *(f".{name}" for name in element.attrib.get("class", "").split())})


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _colour(style: Mapping[str, str], name: str) -> str | None:
    found = style.get(name)
    return None if found == "none" else found
