"""Boards of own games in a browser: walls, marks, clicks that are no legal moves, boards that cannot be drawn."""

import pytest

from plyzero.errors import UserError
from plyzero.kits.web.play_api import pieces_added, unwrapped, why_illegal
from plyzero.rules.catalog import load_game
from tests.helpers.play_page import (
    WINDOW,
    by_keyboard,
    by_mouse,
    hash_fields,
    moves_before_a_pass,
    wait_for_moves,
    wait_for_status,
)
from tests.helpers.web import violations

WALLS = "tests.helpers.walls:Walls"
FAULTY = "tests.helpers.walls:Faulty"
STEP = "a pawn steps one row ahead, and captures only diagonally."
TWO_PEOPLE = "/#first=you&second=you"

COLOURS = """() => {
  const of = (selector, property) => [...document.querySelectorAll(selector)].map((each) =>
    getComputedStyle(each)[property]);
  return [0, 1].map((player) => [...new Set([...of(`svg.board .cell .p${player}`, "fill"),
    ...of(`.piece.p${player}`, "backgroundColor")])]);
}"""


@pytest.mark.browser
@pytest.mark.parametrize("game", [WALLS, "connect-four", "breakthrough(size=5)", "backgammon", "go(size=9)", "pig"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_player_has_one_colour_on_the_board_and_beside_it(game, scheme, serve, open_page):
    page = open_page(serve(game) + TWO_PEOPLE, color_scheme=scheme, **WINDOW)
    page.wait_for_selector("svg.board [data-cell]")
    first, second = page.evaluate(COLOURS)
    assert (len(first), len(second)) == (1, 1)
    assert first != second


@pytest.mark.browser
def test_walls_are_placed_by_a_click_in_the_colour_of_their_player_and_marked(serve, open_page):
    page = open_page(serve(WALLS) + TWO_PEOPLE, **WINDOW)
    by_mouse(page, "a1h")
    wait_for_moves(page, 1)
    by_mouse(page, "b2v")
    wait_for_moves(page, 2)
    assert page.locator("[data-cell=a1h] .wall.p0").count() == page.locator("[data-cell=b2v] .wall.p1").count() == 1
    assert page.locator(".cell.last [class~=wall]").count() == 1
    assert page.locator("[data-cell=a1h]").get_attribute("aria-label") == "a1h, black"
    assert page.locator(".scoreboard").all_text_contents() == ["1 walls", "1 walls"]
    assert violations(page) == []


@pytest.mark.browser
def test_a_wall_below_the_pointer_is_shown_as_a_wall(serve, open_page):
    page = open_page(serve(WALLS) + TWO_PEOPLE, **WINDOW)
    page.locator("[data-cell=a1h]").hover(force=True)
    page.wait_for_selector("rect.ghost.p0", state="attached")
    page.locator("[data-cell=b2]").hover(force=True)
    page.wait_for_selector("circle.ghost.p0", state="attached")


@pytest.mark.browser
def test_a_wall_of_two_edges_below_the_pointer_is_shown_whole(serve, open_page):
    page = open_page(serve("tests.helpers.walls:LongWalls") + TWO_PEOPLE, **WINDOW)
    page.locator("[data-cell=a1h]").hover(force=True)
    page.wait_for_function("() => document.querySelectorAll('rect.ghost.p0').length === 2")
    page.locator("[data-cell=b2]").hover(force=True)
    page.wait_for_function("() => !document.querySelector('rect.ghost')")


@pytest.mark.browser
def test_squares_that_can_be_clicked_are_marked_where_not_nearly_all_can(serve, open_page):
    page = open_page(serve(WALLS) + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector(".overlay .target", state="attached")
    assert page.locator(".overlay .target").count() == 3  # the squares beside the pawn; all edges are free
    page = open_page(serve("go(size=9)") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .playable")
    assert page.locator(".overlay .target").count() == 0


@pytest.mark.browser
def test_a_click_that_is_no_legal_move_says_why(serve, open_page):
    page = open_page(serve(WALLS) + TWO_PEOPLE + "&moves=a1v+a1h+b1h", **WINDOW)
    page.locator("[data-cell=b3]").click(force=True)
    wait_for_status(page, "b3 is taken.")
    page = open_page(serve(WALLS) + TWO_PEOPLE + "&moves=b1h+a1h", **WINDOW)
    page.locator("[data-cell=b2]").click(force=True)
    wait_for_status(page, "A wall stands in between.")
    page = open_page(serve(WALLS) + "/#first=random&second=you&moves=b1h+a1h&at=0", **WINDOW)
    page.wait_for_selector("svg.board [data-cell=b2]")
    page.locator("[data-cell=b2]").click(force=True)
    wait_for_status(page, "It is not your turn.")


@pytest.mark.browser
def test_the_only_legal_move_is_played_by_enter(serve, open_page):
    moves = moves_before_a_pass()
    page = open_page(serve("othello(size=6)") + f"{TWO_PEOPLE}&moves={'+'.join(moves)}", **WINDOW)
    page.get_by_role("group", name="Further moves").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('ol.moves').textContent.endsWith('pass')")


@pytest.mark.browser
def test_a_game_with_walls_is_played_by_keyboard_alone(serve, open_page):
    page = open_page(serve(WALLS) + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board [tabindex='0']")
    for count, cell in enumerate(("a1v", "b2", "b1h", "a2", "b1v", "a1"), 1):
        by_keyboard(page, cell)
        wait_for_moves(page, count)
    wait_for_status(page, "White has won.")
    assert hash_fields(page)["moves"] == ["a1v b2 b1h a2 b1v a1"]


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore:no board is drawn")
def test_a_board_that_cannot_be_drawn_is_the_text_and_one_sentence(serve, open_page):
    page = open_page(serve(FAULTY) + TWO_PEOPLE, **WINDOW)
    by_mouse(page, "a1h")
    page.wait_for_selector("p.warning")
    assert "The board cannot be drawn: render() raises IndexError" in page.locator("p.warning").text_content()
    assert "observation" in page.get_by_role("region", name="Position").text_content()
    page.get_by_label("Move", exact=True).fill("b2")  # the game goes on
    page.keyboard.press("Enter")
    wait_for_moves(page, 2)
    page.get_by_text("The scoreboard cannot be shown: scoreboard() raises IndexError").wait_for()


@pytest.mark.parametrize(
    ("game", "moves", "cells", "sentence"),
    [
        ("go(size=5)", "a2 e5 b1", ["a1"], "A stone there would be without a liberty, or repeat an earlier board."),
        ("go(size=5)", "a2", ["a2"], "a2 is taken."),
        ("othello(size=6)", "", ["a1"], "A disc on a1 would turn none over."),
        ("connect-four", "4 4 4 4 4 4", ["4"], "Column 4 is full."),
        ("breakthrough(size=5)", "", ["a2", "c3"], "a2 to c3 is not a legal move here."),
        (
            "breakthrough(size=5)",
            "",
            ["a1", "a2"],
            "a1 to a2 is no move: a pawn steps one row ahead, and captures only diagonally.",
        ),
        ("breakthrough(size=5)", "", ["a3"], "No pawn of yours is on a3."),
        ("tic-tac-toe", "b2", ["b2"], "b2 is taken."),
        ("backgammon", "3-1", ["24", "22"], "24 to 22 is not a legal move here."),
        ("backgammon", "3-1", ["2"], "No checker of yours is on 2."),
        ("backgammon", "5-3", ["6", "1"], "1 is blocked by two or more checkers."),
        ("backgammon", "6-1", ["12"], "No checker of yours is on 12."),
    ],
)
def test_the_reason_is_told_in_the_words_of_the_game(game, moves, cells, sentence):
    assert why_illegal(load_game(game), moves, cells) == sentence


def test_the_pieces_that_a_move_adds_are_those_of_its_board():
    added = pieces_added(load_game("tests.helpers.walls:LongWalls"), "", "a1h")
    assert added == [{"spot": (0, -26), "by": 0}, {"spot": (52, -26), "by": 0}]
    assert len(pieces_added(load_game("othello(size=6)"), "", "c2")) == 2  # the disc and the one that it turns over
    with pytest.raises(UserError, match="expected one of"):
        pieces_added(load_game("othello(size=6)"), "", "a1")


def test_the_lines_of_rules_are_joined_to_paragraphs():
    assert unwrapped("One\n    two.\n\n    Three:\n    * a\n    * b") == "One two.\n\nThree:\n* a\n* b"
