"""Boards: what their text, their pictures and their clicks have in common."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plyzero.rules.board import FILLS, TEXT_STYLE, Board, Cell, Label, Mark, grid, hexes, read_text, render_grid
from plyzero.rules.board_svg import render_svg
from plyzero.rules.catalog import load_game
from plyzero.rules.game import board_of
from tests.helpers import toys

BOARDS = arrays(np.int8, st.tuples(st.integers(1, 12), st.integers(1, 12)), elements=st.integers(0, 2))


@given(BOARDS, st.booleans())
def test_the_text_of_a_grid_is_that_of_render_grid_and_is_read_back(numbers, rows_up):
    board = grid(numbers, rows_up=rows_up)
    assert str(board) == render_grid(numbers, rows_up=rows_up)
    read = read_text(str(board))
    assert sorted(read.cells) == sorted(board.cells)
    assert sorted(read.labels) == sorted(board.labels)


def test_rows_of_hexagons_are_shifted_in_text_and_in_space():
    board = hexes([[0, 1], [2, 0]])
    assert str(board) == " 1 . x\n  2 o .\n     a b"
    a1, _, a2, _ = board.cells
    assert (a2.x - a1.x) ** 2 + (a2.y - a1.y) ** 2 == pytest.approx(1)
    assert {cell.shape for cell in board.cells} == {"hex"}


def test_dots_edges_and_boxes_have_their_shapes_and_signs():
    board = grid([[3, 3, 3], [0, 1, 3], [3, 0, 3]], pieces=("", "0", "1", "#"), style="dots")
    assert str(board) == " 1 + - +\n 2   x |\n 3 +   +\n   a b c"
    assert [cell.shape for cell in board.cells[:5]] == ["dot", "bar-h", "dot", "bar-v", "square"]


@pytest.mark.parametrize(
    "text", ["", "pig", "3 : 4", " 1 . x\n 2 o\n", "1 2 3\n   a b", " 1 . x o\n   a b", " 1 .-x\n   a b"]
)
def test_a_text_that_is_no_board_is_not_read(text):
    assert read_text(text) is None


def test_the_name_of_an_action_is_cut_into_cells():
    board = grid(np.zeros((12, 12), int))
    assert board.path("a2-b3") == ("a2", "b3")
    assert board.path("A2xB12") == ("a2", "b12")
    assert board.path("e7e8q") == ("e7", "e8")
    assert board.path("b12") == ("b12",)
    assert board.path("c1d1e1") == ("c1", "d1", "e1")
    assert board.path("pass") == board.path("swap") == board.path("a13") == ()


def test_a_click_on_a_column_fills_its_lowest_empty_cell():
    position = load_game("connect-four").start
    for name, row in (("4", 5), ("4", 4), ("4", 3)):
        assert board_of(position).path(name) == (name,)
        landing = board_of(position).landing(name)
        assert (landing.x, landing.y) == (3, row)
        after = position.play(position.parse_action(name))
        (changed,) = board_of(after).changed(board_of(position))
        assert changed[:3] == landing[:3]
        position = after


def test_columns_are_recognised_in_a_text():
    text = " 2 . .\n 1 x .\n   a b"
    assert {cell.name for cell in read_text(text).cells} == {"a1", "a2", "b1", "b2"}
    by_column = read_text(text, ["a", "b"])
    assert {cell.name for cell in by_column.cells} == {"a", "b"}
    assert by_column.landing("a").y == 0


def test_a_game_without_render_has_the_board_of_its_text_and_others_have_none():
    only_text = toys.variant(toys.Relay, __str__=lambda self: render_grid(np.array([[0, 1], [2, 0]])))()
    assert [cell.piece for cell in board_of(only_text).cells] == ["", "0", "1", ""]
    assert only_text._repr_svg_().startswith("<svg")
    assert board_of(toys.Relay()) is None
    assert toys.Relay()._repr_svg_() is None


@pytest.mark.parametrize("name", ["tic-tac-toe", "connect-four", "othello(size=6)", "hex(size=5)", "go(size=5)"])
def test_a_picture_shows_every_cell_stone_and_label(name):
    position = load_game(name).start
    for _ in range(3):
        before, position = position, position.play(position.legal_actions()[0])
    board = board_of(position)
    picture = ET.fromstring(render_svg(board, last=board.changed(board_of(before)), title=name))
    cells = [each for each in picture if each.get("data-cell")]
    assert [each.get("data-cell") for each in cells] == [cell.name for cell in board.cells]
    stones = [part.get("class")[-1] for cell in cells for part in cell if part.get("class").startswith("stone")]
    assert stones == [cell.piece for cell in board.cells if cell.piece]
    assert [each.text for each in picture if each.get("class") == "label"] == [label.text for label in board.labels]
    assert sum("last" in each.get("class").split() for each in cells) == len(board.changed(board_of(before))) > 0
    assert picture.get("aria-label") == name


def test_letters_of_two_players_stand_on_stones_of_their_colours():
    board = Board((Cell("a1", 0, 0, "0:K"), Cell("b1", 1, 0, "1:K"), Cell("c1", 2, 0, "0:♞"), Cell("d1", 3, 0, "?")))
    cells = [each for each in ET.fromstring(render_svg(board)) if each.get("data-cell")]
    kinds = [[(part.get("class"), part.get("fill"), part.text) for part in cell[1:]] for cell in cells]
    white, black = FILLS["white"], FILLS["black"]
    assert kinds[0] == [("stone p0", white, None), ("mark", black, "K")]
    assert kinds[1] == [("stone p1", black, None), ("mark", "#ffffff", "K")]
    assert kinds[2] == [("figure p0", white, "♞" + TEXT_STYLE)]
    assert kinds[3] == [("figure", None, "?")]
    assert board.player_colours == ("white", "black")
    assert Board(board.cells[:2]).player_colours == ("black", "white")


def test_the_pieces_of_a_player_have_one_colour_whatever_their_form():
    pieces = [f"{player}{form}" for player in (0, 1) for form in ("", ":♘", ":♞", ":K", ":12", ":card", ":🐰")]
    board = Board((*(Cell(f"a{i}", i, 0, piece) for i, piece in enumerate(pieces)), Cell("w", 0, 1, "0", "bar-h")))
    fills = {"p0": set(), "p1": set()}
    for part in ET.fromstring(render_svg(board)).iter():
        for player in fills.keys() & set(part.get("class", "").split()):
            fills[player].add(part.get("fill"))
    assert fills == {"p0": {FILLS["white"]}, "p1": {FILLS["black"]}}


def test_hollow_symbols_are_drawn_as_solid_ones():
    board = Board((Cell("a", 0, 0, "0:♔"), Cell("b", 1, 0, "1:♚"), Cell("c", 2, 0, "0:☖")))
    texts = [part.text for part in ET.fromstring(render_svg(board)).iter() if "figure" in part.get("class", "")]
    assert texts == ["♚" + TEXT_STYLE, "♚" + TEXT_STYLE, "☗" + TEXT_STYLE]


def test_the_colours_of_players_can_be_chosen():
    board = grid([[1, 2]], colours=("blue", "orange"))
    fills = [part.get("fill") for part in ET.fromstring(render_svg(board)).iter() if part.get("fill")]
    assert fills == [FILLS["blue"], FILLS["orange"]]


@pytest.mark.parametrize("style", ["squares", "checks", "holes", "points", "hexes", "dots"])
def test_walls_of_both_players_and_of_nobody_are_drawn_above_squares(style):
    walls = [Cell(f"w{i}", 0.5, i, piece, "bar-v") for i, piece in enumerate(("", "0", "1", "#", "0:2"))]
    board = Board((*walls, Cell("a", 0, 0, "0"), Cell("b", 1, 0, "1")), style)
    cells = [each for each in ET.fromstring(render_svg(board, last=walls[1:2])) if each.get("data-cell")]
    assert [cell.get("data-cell") for cell in cells] == ["a", "b", "w0", "w1", "w2", "w3", "w4"]
    first, second = (FILLS[name] for name in board.player_colours)
    drawn = [[(part.get("class"), part.get("fill")) for part in cell[1:]] for cell in cells[2:]]
    assert drawn[:4] == [[], [("wall p0", first)], [("wall p1", second)], [("wall taken", None)]]
    assert [kind for kind, _ in drawn[4]] == ["wall p0", "small mark"]
    assert [cell.get("data-cell") for cell in cells if "last" in cell.get("class").split()] == ["w1"]


@pytest.mark.parametrize(("size", "stars"), [(7, 0), (8, 0), (9, 5), (13, 5), (15, 5), (19, 9)])
def test_star_points_are_drawn_on_boards_of_go(size, stars):
    board = grid(np.zeros((size, size), int), style="points")
    places = {
        (part.get("cx"), part.get("cy"))
        for part in ET.fromstring(render_svg(board)).iter()
        if part.get("class") == "star"
    }
    assert len(places) == stars


@pytest.mark.parametrize(
    ("board", "words"),
    [
        (Board(()), "no cells"),
        ("a text", "is a str, expected a Board"),
        (Board((Cell("", 0, 0),)), "expected a word as name"),
        (Board((Cell("a 1", 0, 0),)), "expected a word as name"),
        (Board((Cell("a", 0, 0), Cell("b", 0, 0))), "a and b at one place"),
        (Board((Cell("a", float("nan"), 0),)), "a finite place"),
        (Board(tuple(Cell(f"c{i}", i, 0) for i in range(1000))), "1000 cells, expected at most 999"),
        (Board((Cell("a", 0, 0),), colours=("pink", "black")), "the colour 'pink'"),
        (Board((Cell("a", 0, 0),), marks=(Mark("b", "here"),)), "marks 'b', expected the name of one of its cells"),
    ],
)
def test_a_board_that_cannot_be_drawn_is_one_warning_and_the_text_is_shown(board, words):
    broken = toys.variant(toys.Relay, render=lambda self: board)()
    with pytest.warns(UserWarning, match=words):
        assert board_of(broken) is None
    assert "observation" in str(broken)


def test_a_render_that_raises_is_one_warning_with_the_error():
    broken = toys.variant(toys.Relay, render=lambda self: 1 // 0)()
    with pytest.warns(UserWarning, match=r"render\(\) raises ZeroDivisionError"):
        assert board_of(broken) is None
    assert "observation" in str(broken)


def test_letters_of_two_players_in_a_text_differ_in_more_than_the_letter():
    board = read_text(" 1 w b K k X O\n   a b c d e f")
    shapes = [ET.fromstring(render_svg(Board((cell,))))[-1] for cell in board.cells]
    kinds = [(shape[1].get("class"), shape[1].get("fill")) for shape in shapes]
    white, black = FILLS["white"], FILLS["black"]
    letters = [("figure", white), ("figure", black), ("figure", white), ("figure", black)]
    assert kinds == [*letters, ("stone p0", black), ("stone p1", white)]


def test_the_sides_of_hex_have_the_colours_of_those_who_connect_them():
    board = board_of(load_game("hex(size=4)").start)
    picture = ET.fromstring(render_svg(board))
    assert [each.get("class") for each in picture if "edge" in each.get("class", "")] == ["edge p0", "edge p1"] * 2
    cells = {cell.name: (cell.x, cell.y) for cell in board.cells}
    for edge, names in zip(board.edges, ("a1 d1", "a1 a4", "a4 d4", "d1 d4"), strict=True):
        for name in names.split():  # a side runs along the whole of its row
            distances = [np.hypot(x - cells[name][0], y - cells[name][1]) for x, y in edge.points]
            assert min(distances) == pytest.approx(3**-0.5)
        assert all(  # and through no hexagon
            np.hypot(x - a, y - b) > 3**-0.5 - 1e-9 for x, y in edge.points for a, b in cells.values()
        )
    assert board_of(load_game("hex(size=4)").start).changed(board) == ()


def test_dice_are_drawn_with_their_pips():
    cell = Cell("a", 0, 0)
    picture = ET.fromstring(render_svg(Board((cell,), labels=(Label(0, 1, "⚅ ⚂"), Label(0, 2, ""), Label(0, 3, "7")))))
    (dice,) = [each for each in picture if each.get("class") == "dice"]
    assert dice.get("aria-label") == "6 3"
    assert [part.get("class") for part in dice] == ["die", *["pip"] * 6, "die", *["pip"] * 3]
    assert len({(part.get("cx"), part.get("cy")) for part in dice if part.get("class") == "pip"}) == 9
    assert [each.text for each in picture if each.get("class") == "label"] == [None, "7"]


def test_a_cell_with_a_mark_is_drawn_with_its_text():
    board = replace(grid([[1, 2]]), marks=(Mark("b1", 'in "check"'),))
    cells = {each.get("data-cell"): each for each in ET.fromstring(render_svg(board)) if each.get("data-cell")}
    assert [cells[name].get("class") for name in ("a1", "b1")] == ["cell square", "cell square marked"]
    assert [cells[name].get("data-mark") for name in ("a1", "b1")] == [None, 'in "check"']


def test_text_in_a_picture_is_text():
    board = Board((Cell('<a href="x">', 0, 0, "0:<b>"), Cell("&", 1, 0, "7")))
    picture = ET.fromstring(render_svg(board, title="<i>"))
    cells = {each.get("data-cell"): each for each in picture if each.get("data-cell")}
    assert {name: cell[-1].text for name, cell in cells.items()} == {'<a href="x">': "<b>", "&": "7"}
