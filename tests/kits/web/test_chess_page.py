"""Chess on the page in a real browser: a whole game by clicks and by drags, and games of people as PGN files."""

import io
import re

import pytest

from plyzero.kits.engines.game_record import read_game
from plyzero.kits.review.scale import Scale
from plyzero.kits.web import review_api
from plyzero.rules.catalog import load_game
from tests.helpers.play_page import (
    PHONE,
    WINDOW,
    by_mouse,
    hash_fields,
    saved,
    status_of,
    wait_for_moves,
    wait_for_status,
)
from tests.helpers.web import violations

pytestmark = pytest.mark.browser

TWO_PEOPLE = "/#first=you&second=you"

WITH_ALL_KINDS = "e2e4 g8f6 e4e5 d7d5 e5d6 a7a6 d6c7 a6a5 c7b8n a8b8 f1c4 h7h6 g1f3 h6h5 e1g1 h5h4 f3e5 h4h3 c4f7"
"""A game with an en passant capture, a promotion to a knight, castling and mate."""

PIECES = """() => Object.fromEntries([...document.querySelectorAll("svg.board [data-cell]")]
  .filter((cell) => cell.querySelector(".figure"))
  .map((cell) => [cell.dataset.cell, cell.getAttribute("aria-label").split(", ")[1]]))"""


def pieces_of(page):
    """Return the pieces on the board as it is read out: name of the square -> colour and kind."""
    return page.evaluate(PIECES)


def choose_promotion(page, name):
    page.get_by_role("group", name="Further moves").get_by_role("button", name=name, exact=True).click()


def test_a_whole_game_is_played_by_clicks_with_castling_en_passant_and_a_promotion_to_a_knight(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    for count, name in enumerate(WITH_ALL_KINDS.split(), 1):
        by_mouse(page, name[:2])
        by_mouse(page, name[2:4])
        if name == "c7b8n":
            page.wait_for_selector("[aria-label='Further moves']")
            buttons = page.get_by_role("group", name="Further moves").get_by_role("button")
            assert buttons.all_inner_texts() == ["cxb8=Q", "cxb8=N", "cxb8=B", "cxb8=R"]
            choose_promotion(page, "cxb8=N")
        wait_for_moves(page, count)
        pieces = pieces_of(page)
        if name == "e5d6":
            assert (pieces["d6"], "d5" in pieces, "e5" in pieces) == ("white pawn", False, False)
        elif name == "c7b8n":
            assert pieces["b8"] == "white knight"
        elif name == "e1g1":
            assert (pieces["g1"], pieces["f1"], "h1" in pieces, "e1" in pieces) == ("white king", "white rook", False, False)
    wait_for_status(page, "White has won")
    king = page.locator("[data-cell=e8]")
    assert king.get_attribute("aria-label") == "e8, black king, in check"
    assert re.search("Black.*in check", page.locator(".player").first.inner_text(), re.DOTALL)
    assert "has won" in page.locator(".player").last.inner_text()
    assert violations(page) == []


def fill_of(page, cell):
    return page.locator(f"[data-cell={cell}] .area").evaluate("(each) => getComputedStyle(each).fill")


def test_the_king_in_check_is_marked_and_what_was_taken_stands_beside_the_players(serve, open_page):
    page = open_page(serve("chess") + f"{TWO_PEOPLE}&moves=e2e4+d7d5+e4d5+d8d5+b1c3", **PHONE)
    page.wait_for_selector("svg.board .lifts")
    assert page.locator(".scoreboard").all_inner_texts() == ["♙", "♟\ufe0e"]
    assert page.locator("[data-mark]").count() == 0
    usual = fill_of(page, "e1")
    by_mouse(page, "d5")
    by_mouse(page, "e5")  # a check along the file
    wait_for_moves(page, 6)
    assert page.locator("[data-mark]").get_attribute("aria-label") == "e1, white king, in check"
    assert fill_of(page, "e1") != usual
    assert page.locator(".scoreboard").all_inner_texts() == ["♙", "♟\ufe0e, in check"]
    assert violations(page) == []
    by_mouse(page, "f1")
    by_mouse(page, "e2")
    wait_for_moves(page, 7)
    assert page.locator("[data-mark]").count() == 0
    assert fill_of(page, "e1") == usual


def middle_of(page, cell):
    box = page.locator(f"[data-cell={cell}] .area").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, start, end):
    """Drag from the middle of a square to that of another one with the mouse; return where the piece is drawn then."""
    page.mouse.move(*middle_of(page, start))
    page.mouse.down()
    page.mouse.move(*middle_of(page, end), steps=4)
    page.wait_for_selector(f"[data-cell={start}].lifted")
    box = page.locator(".dragged .figure").bounding_box()
    page.mouse.up()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


PROMOTION = "4k3/P7/8/8/8/8/8/4K3 w - - 0 1"


def test_a_piece_is_dragged_to_its_square_and_comes_back_from_a_square_where_it_may_not_go(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    x, y = drag(page, "e2", "e4")
    assert (x, y) == pytest.approx(middle_of(page, "e4"), abs=5)
    wait_for_moves(page, 1)
    assert pieces_of(page)["e4"] == "white pawn"
    drag(page, "g8", "g5")
    wait_for_status(page, "g8 to g5 is no move of a knight")
    assert pieces_of(page)["g8"] == "black knight"
    assert page.locator(".dragged, .lifted, .picked").count() == 0
    drag(page, "g8", "f6")
    wait_for_moves(page, 2)
    assert hash_fields(page)["moves"] == ["e2e4 g8f6"]


def test_a_drag_that_ends_beside_the_board_is_no_move(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    before = status_of(page)
    page.mouse.move(*middle_of(page, "e2"))
    page.mouse.down()
    page.mouse.move(5, 5, steps=3)
    page.wait_for_selector(".dragged .figure")
    page.mouse.up()
    page.wait_for_function("() => !document.querySelector('.dragged, .lifted, .picked')")
    assert status_of(page) == before
    by_mouse(page, "e2")
    by_mouse(page, "e4")
    wait_for_moves(page, 1)


def test_a_promotion_by_a_drag_has_the_same_choice(serve, open_page):
    page = open_page(f"{serve('chess')}{TWO_PEOPLE}&start={PROMOTION}", **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    drag(page, "a7", "a8")
    page.wait_for_selector("[aria-label='Further moves']")
    choose_promotion(page, "a8=R+")
    wait_for_moves(page, 1)
    assert (pieces_of(page)["a8"], page.locator("[data-mark]").get_attribute("data-cell")) == ("white rook", "e8")


def test_a_piece_is_dragged_with_a_finger_without_scrolling_the_page(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **PHONE)
    page.wait_for_selector("svg.board .lifts")
    touch = page.context.new_cdp_session(page)
    (x0, y0), (x1, y1) = middle_of(page, "e2"), middle_of(page, "e4")

    def send(kind, *points):
        places = [{"x": x, "y": y} for x, y in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    send("touchStart", (x0, y0))
    for part in range(1, 6):
        send("touchMove", (x0 + (x1 - x0) * part / 5, y0 + (y1 - y0) * part / 5))
    page.wait_for_selector(".dragged .figure")
    send("touchEnd")
    wait_for_moves(page, 1)
    assert hash_fields(page)["moves"] == ["e2e4"]
    assert page.evaluate("scrollY") == 0
