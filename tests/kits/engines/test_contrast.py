"""Colours of drawn boards: the pieces of the two players can be told apart."""

from itertools import product

import numpy as np
import pytest

from plyzero.kits.engines.film import _render
from plyzero.rules.board import Board, Cell
from plyzero.rules.board_svg import render_svg

STYLES = ["squares", "checks", "holes", "points", "hexes", "dots"]
FORMS = {"stone": ("", "square"), "figure": (":♞", "square"), "text": (":K", "square"), "wall": ("", "bar-h")}
LEAST = 3
"""The contrast that WCAG 2.2 asks of parts of a picture (success criterion 1.4.11)."""


def contrast(one, other):
    """Return the contrast of two colours, as WCAG 2.2 defines it."""
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour):
    shares = np.array(colour) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def drawn(style, form, player):
    """Return the pixels of a picture of one piece, and of the same picture without it."""
    piece, shape = FORMS[form]
    pictures = []
    for each in (f"{player}{piece}", ""):
        cells = Cell("a", 0, 0, each, shape), Cell("b", 0, 3, "0:♞" if form in ("figure", "text") else "")
        pictures.append(np.asarray(_render(render_svg(Board(cells, style)), 160))[:160])
    return pictures


def colour_of_piece(style, form, player):
    """Return the colour of most of the pixels in which a piece differs from the empty cell."""
    piece, empty = drawn(style, form, player)
    pixels = piece[(piece != empty).any(axis=2)]
    colours, counts = np.unique(pixels, axis=0, return_counts=True)
    return colours[counts.argmax()]


@pytest.mark.parametrize(("style", "form"), [*product(STYLES, FORMS)])
def test_the_pieces_of_both_players_have_a_contrast_of_three_in_every_style(style, form):
    first, second = (colour_of_piece(style, form, player) for player in (0, 1))
    assert contrast(first, second) >= LEAST


@pytest.mark.parametrize(("style", "player"), [*product(STYLES, (0, 1))])
def test_a_wall_is_seen_on_its_edge(style, player):
    piece, empty = drawn(style, "wall", player)
    changed = (piece != empty).any(axis=2)
    outline = max(contrast(one, other) for one, other in zip(piece[changed], empty[changed], strict=True))
    assert outline >= LEAST
