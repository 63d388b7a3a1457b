"""Chess on the page in a real browser: a whole game by clicks and by drags, and games of people as PGN files."""

import re

import pytest

from plyzero.kits.review.scale import Scale
from plyzero.kits.web import review_api
from plyzero.kits.web.opponents import Opponents
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
            assert (pieces["g1"], pieces["f1"], "h1" in pieces, "e1" in pieces) == (
                "white king",
                "white rook",
                False,
                False,
            )
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


MIDDLE = """(selector) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def middle_of(page, cell):
    """Return the place of a square in the window."""
    return tuple(page.evaluate(MIDDLE, f"[data-cell={cell}] .area"))


def drag(page, start, end):
    """Drag the piece of a square to another one with the mouse, and see that it follows the pointer."""
    there = middle_of(page, end)
    page.mouse.move(*middle_of(page, start))
    page.mouse.down()
    page.mouse.move(*there, steps=4)
    page.wait_for_selector(f"[data-cell={start}].lifted")
    assert page.evaluate(MIDDLE, ".dragged .figure") == pytest.approx(there, abs=5)
    page.mouse.up()


PROMOTION = "4k3/P7/8/8/8/8/8/4K3 w - - 0 1"


def test_a_piece_is_dragged_to_its_square_and_comes_back_from_a_square_where_it_may_not_go(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    drag(page, "e2", "e4")
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


OPERA = """[Event "Opera game"]
[Site "Paris"]
[Date "1858.??.??"]
[White "Paul Morphy"]
[Black "Duke Karl / Count Isouard"]
[Result "1-0"]

1. e4 e5 2. Nf3 d6 3. d4 Bg4 {a pin} 4. dxe5 Bxf3 5. Qxf3 dxe5 6. Bc4 Nf6 7. Qb3 Qe7 8. Nc3 c6 9. Bg5 b5
10. Nxb5! cxb5 (10... Qb4+ 11. Qxb4) 11. Bxb5+ Nbd7 12. O-O-O Rd8 13. Rxd7 Rxd7 14. Rd1 Qe6 15. Bxd7+ Nxd7
16. Qb8+ Nxb8 17. Rd8# 1-0
"""


FEW = 16
"""Number of simulations for each position of a review."""


def open_file(page, path, content):
    """Choose a file of games on the page."""
    path.write_text(content, encoding="utf-8")
    page.get_by_label("File of a game").set_input_files(path)


def test_a_game_of_people_is_opened_stepped_through_and_reviewed(serve, open_page, tmp_path, monkeypatch):
    scale = Scale("score", spread=0.5, margins={256: 0.05}, random=40.0, bot=70.0)
    monkeypatch.setattr(review_api, "scale_of", lambda *args, **options: scale)  # to measure it takes minutes
    judge = Opponents.judge
    monkeypatch.setattr(Opponents, "judge", lambda self, step="", _=None, **more: judge(self, step, FEW, **more))
    page = open_page(serve("chess"), **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    open_file(page, tmp_path / "opera.pgn", OPERA)
    wait_for_moves(page, 33)
    wait_for_status(page, "The game was loaded. White plays Rd8#. White has won")
    names = [each.inner_text().split("\n")[0] for each in page.locator(".player span:nth-child(2)").all()]
    assert names == ["Duke Karl / Count Isouard", "Paul Morphy"]
    assert hash_fields(page)["name"] == ["Paul Morphy", "Duke Karl / Count Isouard"]
    page.get_by_role("button", name="Move 19, Nxb5").click()
    wait_for_status(page, "White plays Nxb5. This is position 19 of 33: Black was to move")
    assert pieces_of(page)["b5"] == "white knight"
    page.get_by_role("button", name="One move forward").click()
    wait_for_status(page, "Black plays cxb5. This is position 20 of 33")
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector("text=Accuracy: ", timeout=300_000)
    game = page.get_by_role("region", name="Game").inner_text()
    assert re.search(r"Black has lost \d+ percentage points by \d+ turns|The turns of Black were as good", game)
    turning = page.locator(".turning").first.locator("li").all_inner_texts()
    assert 1 <= len(turning) <= 3
    assert all(re.search(r"^Move \d+ Black played \S+, .* lost \d+", each) for each in turning)
    page.locator(".turning button").first.click()
    wait_for_status(page, "Black was to move")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_game_is_saved_as_pgn_and_opened_again(serve, open_page, tmp_path):
    moves = WITH_ALL_KINDS.replace(" ", "+")
    page = open_page(f"{serve('chess')}{TWO_PEOPLE}&moves={moves}&line=d2d4&note=e2e4+|+best+by+test", **WINDOW)
    page.wait_for_selector(".player:has-text('has won')")
    text = saved(page, tmp_path / "game.pgn", button="Save as PGN")
    assert text == (
        '[Event "?"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "?"]\n[White "?"]\n[Black "?"]\n[Result "1-0"]\n\n'
        "1. e4 {best by test} (1. d4) 1... Nf6 2. e5 d5 3. exd6 a6 4. dxc7 a5 5. cxb8=N\n"
        "Rxb8 6. Bc4 h6 7. Nf3 h5 8. O-O h4 9. Ne5 h3 10. Bxf7# 1-0\n"
    )
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_moves(page, 0)
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.pgn")
    wait_for_moves(page, 19)
    assert hash_fields(page)["moves"] == [WITH_ALL_KINDS]


def test_a_game_from_another_position_is_saved_with_its_fen_names_and_result(serve, open_page, tmp_path):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    open_file(page, tmp_path / "a.pgn", f'[White "Ann"]\n[Black "Bo"]\n[FEN "{PROMOTION}"]\n\n1. a8=R+ Kd7 0-1\n')
    wait_for_moves(page, 2)
    assert pieces_of(page) == {"a8": "white rook", "d7": "black king", "e1": "white king"}
    text = saved(page, tmp_path / "game.pgn", button="Save as PGN")
    assert (
        f'[White "Ann"]\n[Black "Bo"]\n[Result "0-1"]\n[SetUp "1"]\n[FEN "{PROMOTION}"]\n\n1. a8=R+ Kd7 0-1\n' in text
    )


def test_a_game_of_chess960_is_saved_with_its_set_up_and_opened_again(serve, open_page, tmp_path):
    page = open_page(serve("chess(chess960=True)") + f"{TWO_PEOPLE}&moves=0+e2e4", **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    text = saved(page, tmp_path / "game.pgn", button="Save as PGN")
    assert (
        '[Variant "Chess960"]\n[SetUp "1"]\n[FEN "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1"]\n' in text
    )
    assert text.endswith("\n\n1. e4 *\n")
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.pgn")
    wait_for_moves(page, 1)
    assert pieces_of(page)["b1"] == "white bishop"


def test_one_of_many_games_of_a_file_is_chosen(serve, open_page, tmp_path):
    page = open_page(serve("chess") + TWO_PEOPLE, refusals=True, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    wrong = '[White "Cy"]\n[Black "<b id=forged>x</b>"]\n[Result "1-0"]\n\n1. Zz9 1-0\n'
    content = f'{OPERA}\n[Event "?"]\n\n1. d4 *\n\n{wrong}'
    open_file(page, tmp_path / "games.pgn", content)
    wait_for_moves(page, 33)
    choice = page.get_by_label("Game of the file")
    assert choice.locator("option").all_inner_texts() == [
        "Paul Morphy – Duke Karl / Count Isouard, 1-0, 1858",
        "Game 2",
        "Cy – <b id=forged>x</b>, 1-0",
    ]
    choice.select_option("1")
    wait_for_moves(page, 1)
    assert hash_fields(page)["moves"] == ["d2d4"]
    choice.select_option("2")
    page.wait_for_selector("[role=alert]")
    said = page.locator("[role=alert]").inner_text()
    assert re.match(r"the game in line 16: move 1 in line 20, 'Zz9': expected one of", said), said
    assert hash_fields(page)["moves"] == ["d2d4"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1. e4 e5 2. -- Nf6 *", "move 3 in line 1, '--': expected a move, got '--', by which a player passes"),
        ("1. e4 e5 2. Qh6 *", "move 3 in line 1, 'Qh6': expected one of .* got 'Qh6'"),
        (
            '[Variant "Crazyhouse"]\n\n1. e4 *',
            'expected a game of chess, got one with the tag Variant "Crazyhouse"; choose a file of this game',
        ),
        (
            '[SetUp "1"]\n[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n\n1. e4 *',
            "cannot begin at the position in its tag FEN: expected one king of White, got 0",
        ),
        ('[FEN "rubbish/"]\n\n1. e4 *', "cannot begin at the position in its tag FEN: expected FEN such as .* got"),
        ('[Event "no moves"', "expected a tag such as .* in line 1, got"),
    ],
)
def test_a_file_that_is_no_game_of_chess_is_one_sentence(content, words, serve, open_page, tmp_path):
    page = open_page(serve("chess") + TWO_PEOPLE, refusals=True)
    page.wait_for_selector("svg.board .lifts")
    open_file(page, tmp_path / "wrong.pgn", content)
    page.wait_for_selector("[role=alert]")
    said = page.locator("[role=alert]").inner_text()
    assert re.match("wrong.pgn cannot be loaded: the game in line 1: ", said)
    assert re.search(words, said)
    assert hash_fields(page).get("moves") is None


def test_moves_are_typed_as_people_write_them(serve, open_page):
    page = open_page(serve("chess") + TWO_PEOPLE, **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    field = page.get_by_label("Move", exact=True)
    for count, name in enumerate(("e4", "e7e5", "Nf3", "nc6", "Bb5"), 1):
        field.fill(name)
        field.press("Enter")
        wait_for_moves(page, count)
    assert hash_fields(page)["moves"] == ["e2e4 e7e5 g1f3 b8c6 f1b5"]
    assert page.locator(".moves button").all_inner_texts() == ["1. e4", "2. e5", "3. Nf3", "4. Nc6", "5. Bb5"]


def test_a_person_who_plays_black_alone_sees_the_board_from_the_side_of_black(serve, open_page):
    page = open_page(serve("chess") + "/#first=random&second=you&moves=e2e4", **WINDOW)
    page.wait_for_selector("svg.board .lifts")
    (ax, ay), (hx, hy) = middle_of(page, "a1"), middle_of(page, "h8")
    assert (ax > hx, ay < hy) == (True, True)
    drag(page, "e7", "e5")
    wait_for_moves(page, 3)
    assert hash_fields(page)["moves"][0].startswith("e2e4 e7e5 ")
    page.locator("[data-cell=d7]").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.cell") == "d6"
    page.get_by_label("First player, white").select_option("you")
    page.wait_for_selector(".picture:not(.turned)")
    assert middle_of(page, "a1")[1] > middle_of(page, "h8")[1]
