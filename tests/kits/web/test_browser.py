"""The page on which a game is played, in a real browser: by mouse, by touch and by keyboard alone."""

import json
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlsplit

import numpy as np
import pytest

from plyzero.kits.engines.game_files import find_games
from plyzero.kits.engines.game_record import read_game
from plyzero.kits.review.scale import Scale
from plyzero.kits.web import review_api
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.server import make_app
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import random_game
from tests.helpers.learning import add_model
from tests.helpers.play_page import (
    PHONE,
    WINDOW,
    by_keyboard,
    by_mouse,
    by_touch,
    hash_fields,
    moves_before_a_pass,
    of_all,
    resign,
    saved,
    status_of,
    wait_for_moves,
    wait_for_status,
)
from tests.helpers.runs import small_run
from tests.helpers.web import hold_back_preparation, serving, violations

pytestmark = pytest.mark.browser

EXAMPLES = Path(__file__).parents[3] / "examples"
GAMES = (
    "tic-tac-toe",
    "connect-four",
    "othello(size=6)",
    "breakthrough(size=5)",
    "dots_and_boxes:DotsAndBoxes(size=2)",
    "hex(size=4)",
    "backgammon",
    "openspiel:tic_tac_toe",
)
AGAINST_RANDOM = "#first=you&second=random"

STATE = """async () => {
  for (;;) {
    const moves = new URLSearchParams(location.hash.slice(1)).get("moves") ?? "";
    const answer = await (await fetch(`/api/position?moves=${encodeURIComponent(moves)}`)).json();
    if (answer.moves.join(" ") === moves) return answer;  // otherwise a roll is not in the address yet
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}"""


@pytest.fixture(autouse=True)
def examples_are_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("dots_and_boxes", None)


def alert_of(page):
    page.wait_for_selector("[role=alert]")
    return page.locator("[role=alert]").inner_text()


def play_move(page, move, press, *, legal, keyboard):
    """Play one legal move: click its cells or, where it has none, its button or its name."""
    if keyboard and not move["path"]:
        page.get_by_label("Move", exact=True).fill(move["name"])
        return page.keyboard.press("Enter")
    if not move["path"]:
        summary = page.locator("details", has=page.locator("summary", has_text="Legal moves"))
        button = page.get_by_role("button", name=move["name"], exact=True)
        if not button.first.is_visible():
            summary.locator("summary").click()
        return button.first.click()
    if keyboard and len(legal) == 1:  # Enter plays the only move, wherever the focus is
        return press(page, move["path"][0])
    for cell in move["path"]:
        press(page, cell)
    if any(each["path"][: len(move["path"])] == move["path"] for each in legal if each != move):
        choice = page.get_by_role("group", name="Further moves").get_by_role("button", name=move["name"], exact=True)
        choice.press("Enter") if keyboard else choice.click()
    return None


def wait_for_other_moves(page, before):
    page.wait_for_function(
        "(before) => new URLSearchParams(location.hash.slice(1)).get('moves') !== before", arg=" ".join(before)
    )


def play_to_the_end(page, press, *, keyboard=False):
    """Play against random moves to the end; return the names of all moves."""
    for turn in range(400):
        wait_for_status(page, "It is your move|You have won|You have lost|game is drawn")
        state = page.evaluate(STATE)
        if state["outcome"]:
            return state["moves"]
        moves = state["legal"]
        move = moves[(7 * turn + 3) % len(moves)]
        play_move(page, move, press, legal=moves, keyboard=keyboard)
        wait_for_other_moves(page, state["moves"])
    raise AssertionError("the game does not end")


def late_position():
    """Return the moves of a game of backgammon up to where most checkers are borne off, which saves minutes."""
    game = random_game(load_game("backgammon").start, np.random.default_rng(0))
    names = action_names(game.positions[0], tuple(game.moves))
    return " ".join(names[: game.decisions[-40]])


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("how", ["mouse", "touch", "keyboard"])
def test_a_game_is_played_to_its_end(how, game, serve, open_page):
    press = {"mouse": by_mouse, "touch": by_touch, "keyboard": by_keyboard}[how]
    begun = f"&moves={quote_plus(late_position())}" if game == "backgammon" else ""
    page = open_page(serve(game) + "/" + AGAINST_RANDOM + begun, **(PHONE if how == "touch" else {}))
    moves = play_to_the_end(page, press, keyboard=how == "keyboard")
    assert len(moves) >= 5
    assert re.search("You have won|You have lost|The game is drawn", status_of(page))


def test_the_players_stand_above_and_below_the_board_and_the_turn_is_seen(serve, open_page):
    page = open_page(serve("connect-four") + "/#first=level:6&second=you&moves=4", **WINDOW)
    page.wait_for_selector(".player.lit")
    above, below = page.locator(".player").all()
    assert re.match(r"Red.*Bundled bot, level 6 of 9: .*97 % \(", above.inner_text(), re.DOTALL)
    assert re.match("Yellow.*You.*to move", below.inner_text(), re.DOTALL)
    assert "lit" not in above.get_attribute("class")
    board = page.locator("svg.board").bounding_box()
    assert above.bounding_box()["y"] < board["y"] < below.bounding_box()["y"]
    assert board["height"] > 600  # as large as the window allows
    assert below.bounding_box()["y"] + below.bounding_box()["height"] <= 900
    by_mouse(page, "4")
    wait_for_moves(page, 3)
    page.wait_for_selector(".overlay .placed", state="attached")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(".evaluation span")
    said = page.locator(".evaluation").get_attribute("aria-label")
    assert re.match("Expected score of Yellow: [0-9]+ percent", said)


def test_what_can_be_picked_is_marked_and_then_where_it_can_go(serve, open_page):
    page = open_page(serve("breakthrough(size=5)") + "/#first=you&second=you", **PHONE)
    page.wait_for_selector(".overlay .pick", state="attached")
    assert page.locator(".overlay .pick").count() == 5  # the front row
    by_touch(page, "a2")
    page.wait_for_selector(".overlay .target", state="attached")
    assert page.locator(".overlay .target").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_piece_is_moved_by_dragging(serve, open_page):
    page = open_page(serve("breakthrough(size=5)") + "/#first=you&second=you")
    page.wait_for_selector("svg.board .playable")
    for start, end, moves in (("a2", "c4", 0), ("a2", "a3", 1), ("b4", "b3", 2)):  # the first one is no move
        page.locator(f"[data-cell={start}]").drag_to(page.locator(f"[data-cell={end}]"), force=True)
        wait_for_moves(page, moves)
    assert hash_fields(page)["moves"] == ["a2-a3 b4-b3"]


def test_the_focus_stays_on_the_board_for_a_whole_game_by_keyboard(serve, open_page):
    page = open_page(serve("connect-four") + "/#first=you&second=you")
    page.wait_for_selector("svg.board [tabindex='0']")
    by_keyboard(page, "4")
    wait_for_moves(page, 1)
    page.wait_for_function("() => document.activeElement.dataset.cell === '4'")
    assert page.locator(".framing .frame").count() == 1
    page.keyboard.press("Enter")
    wait_for_moves(page, 2)


def test_another_move_in_an_earlier_position_is_a_variation(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=a1+b1+a2")
    page.get_by_role("button", name="Move 1, a1").click()
    wait_for_status(page, "position 1 of 3")
    by_mouse(page, "c3")
    wait_for_status(page, "plays c3. Black is to move")
    assert hash_fields(page)["moves"] == ["a1 c3"]
    assert hash_fields(page)["line"] == ["a1 b1 a2"]
    page.get_by_role("button", name="Variation b1 a2", exact=True).click()
    wait_for_status(page, "position 2 of 3")
    assert hash_fields(page)["moves"] == ["a1 b1 a2"]
    assert hash_fields(page)["line"] == ["a1 c3"]
    by_mouse(page, "a2")  # the move that was played there
    wait_for_status(page, "plays a2. White is to move")
    assert hash_fields(page)["line"] == ["a1 c3"]
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_moves(page, 0)
    assert "line" not in hash_fields(page)


def test_a_tree_with_comments_is_saved_and_loaded_and_its_variations_are_deleted(serve, open_page, tmp_path):
    address = serve("tic-tac-toe") + "/#first=you&second=you&moves=a1+b1+a2&line=a1+c3&line=b2"
    page = open_page(address, accept_downloads=True)
    page.get_by_role("button", name="Move 1, a1").click()
    wait_for_status(page, "position 1 of 3")
    comment = page.get_by_label("Comment on this position")
    comment.fill("corner | or centre?")
    comment.press("Enter")
    page.wait_for_selector("[title='corner | or centre?']")
    record = json.loads(saved(page, tmp_path / "tree.json"))
    assert (record["variations"], record["comments"]) == ([["a1", "c3"], ["b2"]], {"a1": "corner | or centre?"})
    assert read_game([json.dumps(record)], load_game("tic-tac-toe"), "1", "tree.json").winner is None
    page.get_by_role("button", name="Delete the variation b2").click()
    page.wait_for_function("() => !location.hash.includes('line=b2')")
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_moves(page, 0)
    page.get_by_label("File of a game").set_input_files(tmp_path / "tree.json")
    page.wait_for_function("() => location.hash.includes('line=b2')")
    page.reload()
    for at in (2, 1):
        page.get_by_role("button", name="One move back").click()
        wait_for_status(page, f"position {at} of 3")
    assert page.get_by_label("Comment on this position").input_value() == "corner | or centre?"


SGF = """(;FF[4]CA[UTF-8]AP[Sabaki:0.52.2]KM[6.5]SZ[5]GM[1]C[A game\\]];B[cc]
(;W[bb]C[close];B[];W[tt])(;W[dd]))"""
TWICE = '{"version": 1, "game": "tic-tac-toe v1", "moves": ["a1", "a1"], "person": "first"}'
"""A record whose second move is illegal."""


def test_a_game_with_variations_is_loaded_from_sgf_and_saved(serve, open_page, tmp_path):
    page = open_page(serve("go(size=5)") + "/#first=you&second=you", accept_downloads=True)
    page.wait_for_selector("svg.board")
    (tmp_path / "game.sgf").write_text(SGF)
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.sgf")
    wait_for_status(page, "The game was loaded. Its komi is 6.5, here it is 7.5")
    wait_for_moves(page, 4)
    found = hash_fields(page)
    assert (found["moves"], found["line"]) == (["c3 b4 pass pass"], ["c3 d2"])
    assert found["note"] == [" | A game]", "c3 b4 | close"]
    text = saved(page, tmp_path / "saved.sgf", button="Save as SGF")
    assert text.replace("\n", "") == (
        "(;FF[4]CA[UTF-8]AP[plyzero]GM[1]SZ[5]KM[7.5]RE[W+7.5]C[A game\\]];B[cc](;W[bb]C[close];B[];W[])(;W[dd]))"
    )
    page.get_by_label("File of a game").set_input_files(tmp_path / "saved.sgf")
    page.wait_for_function("(before) => location.hash === before", arg=page.evaluate("location.hash"))


@pytest.mark.parametrize(
    ("game", "content", "words"),
    [
        ("go(size=5)", "(;GM[1]SZ[9];B[cc])", "expected SZ[5], got SZ[9]: another size"),
        ("go(size=5)", "(;GM[1]SZ[5]AB[aa][bb];W[cc])", "got stones that are placed, AB"),
        ("go(size=5)", "(;GM[1]SZ[5];B[cc];B[dd])", "expected B and W in turn, got B as move 2"),
        ("go(size=5)", "(;GM[1]SZ[5];B[cc]", "expected a game as SGF, which ends with a parenthesis"),
        ("hex(size=4)", "(;GM[11]SZ[4];B[a1];W[z9])", "move 2: expected one of"),
        ("tic-tac-toe", "(;GM[1]SZ[3];B[aa])", "SGF, which has no names for this game's moves"),
        ("tic-tac-toe", "no JSON", "expected a game as JSON"),
        ("tic-tac-toe", '{"version": 7}', "expected a game record of version 1"),
        ("tic-tac-toe", TWICE.replace("tic-tac-toe", "chess"), "it is a game of chess v1, not of tic-tac-toe v1"),
        ("tic-tac-toe", TWICE, "move 2: expected one of"),
    ],
)
def test_a_file_that_is_no_such_game_is_one_sentence(game, content, words, serve, open_page, tmp_path):
    page = open_page(serve(game), refusals=True)
    page.wait_for_selector("svg.board")
    file = tmp_path / ("game.sgf" if content[0] == "(" else "wrong.json")
    file.write_text(content)
    page.get_by_label("File of a game").set_input_files(file)
    assert words in alert_of(page)


FORGED = {"type": "b", "props": {"id": "forged", "children": "x"}, "key": None, "ref": None, "__k": None, "__": None}
FORGED |= {"__b": 1, "__e": None, "__c": None, "__v": 1, "__i": -1, "__u": 0}
"""An element as preact keeps one."""

MARKUP = "<b id=forged>x</b>"

RECORDED = {"version": 2, "game": "tic-tac-toe v1", "start": "a1", "moves": ["b1"], "person": "first", "bot": "random"}
RECORDED |= {"result": "draw", "winner": "draw", "end": "adjudicated", "resigned": False}
RECORDED |= {"variations": [], "comments": {}}
"""A record with every field that the page uses."""


def load_games(page, path, *records):
    """Load a file with these games."""
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    page.get_by_label("File of a game").set_input_files(path)


def is_forged(page):
    return page.evaluate("() => Boolean(document.querySelector('#forged'))")


def test_no_field_of_a_file_becomes_an_element(serve, open_page, tmp_path):
    page = open_page(serve("tic-tac-toe"), refusals=True)
    page.wait_for_selector("svg.board")
    inside = {"moves": [FORGED], "variations": [[FORGED]], "comments": {"": FORGED}}
    for field in RECORDED:
        for wrong in (FORGED, [FORGED], *([inside[field]] if field in inside else ())):
            load_games(page, tmp_path / f"{field}.json", RECORDED, {**RECORDED, field: wrong})
            page.wait_for_function(
                "(name) => document.querySelector('[role=alert]')?.textContent.startsWith(`${name} cannot be loaded`)",
                arg=f"{field}.json",
            )
            assert re.search("game 2: (expected|it is a game of)", alert_of(page)), field
            assert not is_forged(page), field
            assert not page.get_by_label("Game of the file").count()


def test_texts_of_a_file_stay_texts(serve, open_page, tmp_path):
    page = open_page(serve("tic-tac-toe"), refusals=True)
    page.wait_for_selector("svg.board")
    texts = {"bot": MARKUP, "result": MARKUP, "winner": MARKUP, "end": "resign", "note": MARKUP}
    texts |= {"variations": [[MARKUP]], "comments": {"a1 b1": MARKUP, "a1": MARKUP, MARKUP: MARKUP}, "person": None}
    load_games(page, tmp_path / "g.jsonl", {**RECORDED, **texts}, {**RECORDED, "winner": None, "resigned": True})
    wait_for_status(page, r"^The game was loaded\.")
    assert MARKUP in page.get_by_label("Game of the file").inner_text()
    page.get_by_label("Game of the file").select_option("1")
    wait_for_status(page, "resigned")
    assert not is_forged(page)
    load_games(page, tmp_path / "start.json", {**RECORDED, "start": MARKUP})
    assert "got '<b'" in alert_of(page)
    assert not is_forged(page)


@pytest.mark.parametrize("address", ["/", "/run"])
def test_what_is_no_element_shows_nothing(address, open_page, tmp_path):
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game), run=tmp_path / "none")) as found:
        page = open_page(found + address)
        page.evaluate(
            """async (forged) => {
              const { html, render } = await import("/static/html.js"), place = document.createElement("div");
              document.body.append(place);
              for (let i = 0; i < 2; i++) render(html`<p>${forged}</p><ul>${[forged]}</ul>`, place);
            }""",
            FORGED,
        )
        assert not is_forged(page)
        page.close()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("resigned=x", "White is to move"),
        ("resigned=2", "White is to move"),
        ("resigned=constructor", "White is to move"),
        ("resigned=", "White is to move"),
        ("resigned=0", "Black resigned"),
        ("at=x", "White is to move"),
        ("at=-1", "White is to move"),
        ("note=x&note=&line=", "White is to move"),
        ("step=x&resigned=1", "White resigned"),
    ],
)
def test_what_an_address_cannot_mean_is_ignored(fields, words, serve, open_page):
    page = open_page(serve("tic-tac-toe") + f"/#first=you&second=you&moves=a1&{fields}", refusals=True)
    wait_for_status(page, words)


def test_a_game_that_is_too_long_for_an_address_is_one_sentence(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you", refusals=True)
    wait_for_status(page, "Black is to move")
    page.evaluate("location.hash = `first=you&second=you&moves=${'a1+'.repeat(60000)}`")
    page.wait_for_selector("text=expected at most 100000 characters of moves, got 179999")
    page.evaluate("location.hash = `first=you&second=you&moves=${'a1+'.repeat(200000)}`")
    page.wait_for_selector("text=/The game is too long for this page: .* at most 400000 characters, got 6\\d{5}/")


READ_SGF = """async (text) => {
  const about = await (await fetch("/api/about")).json();
  const { readSgf } = await import("/static/sgf.js");
  return readSgf(text, about.sgf).moves;
}"""


@pytest.mark.parametrize(
    ("game", "content"),
    [
        ("go(size=5)", SGF.replace("KM[6.5]", "KM[7.5]")),
        ("go(size=5)", "(;FileFormat[3]GaMe[1];Black[ cc ];White[tt](;B[])(;B[dd]))"),
        ("hex(size=4)", "(;GM[11]SZ[4];B[ab];W[Swap-Pieces];B[B3];W[DD])"),
        ("hex(size=4)", "(;GM[11]SZ[4];B[d4];W[swap])"),
    ],
)
def test_the_page_reads_the_moves_of_sgf_as_the_commands_do(game, content, serve, open_page):
    page = open_page(serve(game))
    page.wait_for_selector("svg.board")
    (found,) = find_games(content.splitlines(keepends=True), load_game(game))
    assert page.evaluate(READ_SGF, content) == found.fields()["moves"]


def test_games_name_their_moves_in_sgf_as_its_pages_say(serve, open_page, tmp_path):
    address = serve("hex(size=4)") + "/#first=you&second=you&moves=b1+swap+c3"
    page = open_page(address, accept_downloads=True)
    page.wait_for_selector("svg.board")
    text = saved(page, tmp_path / "hex.sgf", button="Save as SGF")
    assert text.endswith("GM[11]SZ[4]\n;B[b1];W[swap-pieces];B[c3])\n")


def test_a_comment_is_typed_while_an_analysis_runs(serve, open_page):
    page = open_page(serve("connect-four") + "/#first=you&second=you&moves=4")
    page.get_by_label("Simulations", exact=True).select_option("4096")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=of 4096")
    page.get_by_label("Comment on this position").press_sequentially("centre", delay=50)
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('centre')")


def test_a_game_of_a_match_is_chosen_from_its_file(serve, open_page, tmp_path):
    lines = [
        {"version": 1, "game": "tic-tac-toe v1", "first": "random", "second": "mcts:9", "moves": moves, **how}
        for moves, how in (
            (["a1", "b1", "a2", "b2", "a3"], {"winner": "first", "end": "rule"}),
            (["c3"], {"winner": "second", "end": "resign"}),
        )
    ]
    file = tmp_path / "match.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    page = open_page(serve("tic-tac-toe"))
    page.wait_for_selector("svg.board")
    page.get_by_label("File of a game").set_input_files(file)
    wait_for_status(page, "Black has won. Review the game to find the mistakes")
    assert page.get_by_label("Game of the file").locator("option").all_inner_texts() == [
        "Game 1: first player won, 5 moves",
        "Game 2: second player won, 1 moves",
    ]
    page.get_by_label("Game of the file").select_option("1")
    wait_for_status(page, "Black plays c3. Black resigned")


def test_a_mistake_is_retried_until_a_good_move_is_found(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=b2+a2+c3+a1")
    page.get_by_role("button", name="Review the game").click()
    first = page.locator("ol.turning li").first
    first.get_by_role("button", name="Retry").click()
    wait_for_status(page, "Find a better move than a2")
    assert "Better" not in first.inner_text()
    assert page.locator(".overlay .ghost").count() == 0
    by_mouse(page, "c2")
    wait_for_status(page, "c2 loses 50 percentage points; try another move")
    by_mouse(page, "c1")
    wait_for_status(page, "Right: c1")
    assert hash_fields(page)["moves"] == ["b2 a2 c3 a1"]
    page.wait_for_selector(".overlay .ghost.p1")


def test_keys_walk_through_a_game(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=a1+b1+a2")
    wait_for_status(page, "is to move")
    page.keyboard.press("ArrowLeft")
    wait_for_status(page, "position 2 of 3")
    page.locator("svg.board [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")  # to the next cell
    page.keyboard.press("Home")
    wait_for_status(page, "position 0 of 3")
    page.keyboard.press("PageDown")
    wait_for_status(page, "position 1 of 3")
    assert page.evaluate("document.activeElement.dataset.cell")
    page.keyboard.press("End")
    wait_for_status(page, "White is to move")


def test_a_position_is_set_up_from_text_and_played_on(serve, open_page, tmp_path):
    page = open_page(serve("tic-tac-toe") + "/" + AGAINST_RANDOM, refusals=True, accept_downloads=True)
    wait_for_status(page, "It is your move")
    page.locator("summary", has_text="Set up a position").click()
    field = page.get_by_label("Position as text")
    field.fill("no position")
    page.get_by_role("button", name="Set up", exact=True).click()
    assert alert_of(page).startswith("cannot begin at the position in the text: expected")
    field.fill(" 1 x . .\n 2 . o .\n 3 . . .\n   a b c")
    page.get_by_role("button", name="Set up", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 2")
    by_mouse(page, "c3")
    wait_for_moves(page, 2)
    record = json.loads(saved(page, tmp_path / "game.json"))
    assert (record["version"], record["start"].split()[1:4]) == (2, ["x", ".", "."])
    page.get_by_role("button", name="Initial position").click()
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 0")
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.json")
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 4")


def test_a_position_is_set_up_by_clicks_and_by_keyboard(serve, open_page):
    page = open_page(serve("hex(size=4)") + "/#first=you&second=you", refusals=True)
    page.wait_for_selector("svg.board")
    page.locator("summary", has_text="Set up a position").click()
    brush = page.get_by_role("group", name="Piece that a click places")
    page.get_by_role("button", name="Row 2, column 3: .").click()
    page.get_by_role("button", name="Set up", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('svg.board .stone.p0').length === 1")
    brush.get_by_role("button", name="o", exact=True).click()
    page.get_by_role("button", name="Row 4, column 1: .").press("Enter")
    assert page.get_by_label("Position as text").input_value().splitlines()[3].split() == ["4", "o", ".", ".", "."]
    page.get_by_role("button", name="Set up", exact=True).click()
    page.wait_for_selector("svg.board [data-cell=a4] .stone.p1")
    assert violations(page) == []


def press_by_tab(page, name):
    """Walk with Tab to what has this name, and press Enter."""
    for _ in range(120):
        page.keyboard.press("Tab")
        here = "document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()"
        if page.evaluate(here) == name:
            return page.keyboard.press("Enter")
    raise AssertionError(f"{name} cannot be reached with Tab")


def test_a_variation_a_review_and_a_position_by_keyboard_alone(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you")
    page.wait_for_selector("svg.board .playable")
    for count, cell in enumerate(("a1", "b1", "a2"), 1):
        by_keyboard(page, cell)
        wait_for_moves(page, count)
    page.keyboard.press("PageUp")
    wait_for_status(page, "position 2 of 3")
    by_keyboard(page, "b2")
    wait_for_status(page, "plays b2")
    page.wait_for_function("() => location.hash.includes('line=a1+b1+a2')")
    press_by_tab(page, "Review the game")
    page.wait_for_selector("text=Accuracy: ")
    press_by_tab(page, "Set up a position")
    press_by_tab(page, "Row 2, column 3: .")
    press_by_tab(page, "o")
    press_by_tab(page, "Row 1, column 3: .")
    press_by_tab(page, "Set up")
    page.wait_for_function("() => location.hash.includes('start=')")
    page.wait_for_function("() => document.querySelectorAll('svg.board .stone').length === 5")


def test_a_key_is_heard_before_the_position_after_the_last_move_has_come(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=a1")
    page.wait_for_selector("svg.board .playable")
    page.route("**/api/position*", lambda route: None)  # it is never answered
    by_keyboard(page, "b1")
    wait_for_moves(page, 2, shown=False)
    page.unroute("**/api/position*")
    page.keyboard.press("PageUp")
    wait_for_status(page, "position 1 of 2")


def test_a_pass_is_a_button(serve, open_page):
    page = open_page(serve("othello(size=6)") + f"/#first=you&second=you&moves={'+'.join(moves_before_a_pass())}")
    page.get_by_role("group", name="Further moves").get_by_role("button", name="pass").click()
    page.wait_for_function("() => document.querySelector('ol.moves').textContent.endsWith('pass')")


def test_undo_hint_resign_and_a_new_game_with_sides_swapped(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/" + AGAINST_RANDOM)
    by_mouse(page, "b2")
    wait_for_moves(page, 2)
    page.get_by_role("button", name="Undo").click()
    wait_for_moves(page, 0)
    page.get_by_role("button", name="Hint").click()
    wait_for_status(page, "Hint: [abc][123].")
    resign(page)
    wait_for_status(page, "You resigned")
    page.get_by_role("button", name="New game, sides swapped").click()
    wait_for_moves(page, 1)
    wait_for_status(page, "It is your move")
    assert re.match("The random player plays [abc][123]. It is your move.", status_of(page))


def test_a_bot_without_hope_offers_to_resign(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=mcts:100&moves=a1+b2+c3+a3+c1")
    page.get_by_role("button", name="Accept").click()
    wait_for_status(page, "Pure MCTS.* resigned")
    assert hash_fields(page)["resigned"] == ["1"]
    page.get_by_role("button", name="Undo").click()
    wait_for_status(page, "It is your move")
    assert not page.get_by_role("button", name="Accept").count()


def test_a_game_is_saved_loaded_shared_and_survives_a_reload(serve, open_page, tmp_path):
    address = serve("tic-tac-toe")
    page = open_page(f"{address}/#first=you&second=you&moves=a1+b2+c3", accept_downloads=True)
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 3")
    record = json.loads(saved(page, tmp_path / "game.json"))
    assert (record["version"], record["game"], record["moves"]) == (1, "tic-tac-toe v1", ["a1", "b2", "c3"])
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 3")
    page.get_by_role("button", name="New game", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.stone').length === 0")
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.json")
    page.wait_for_function("() => document.querySelectorAll('.stone').length >= 3")
    other = open_page(page.url)
    other.wait_for_function("() => document.querySelectorAll('.stone').length >= 3")


def test_an_analysis_grows_on_the_board_and_a_review_finds_the_losing_move(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=b2+a2+c3+a1")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(".overlay circle.heat")
    for mode in ("visits", "line", "nothing", "policy"):
        page.get_by_role("button", name=mode, exact=True).click()
        page.get_by_role("button", name=mode, exact=True, pressed=True).wait_for()
    assert re.search(r"Black (scores|wins) \d|that Black wins", page.get_by_label("Analysis").inner_text())
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector("text=Accuracy: ")
    game = page.get_by_role("region", name="Game")
    assert "White played a2, " in game.inner_text()
    assert "The judge: the bundled bot, level " in game.inner_text()
    assert "The judge: the bundled bot, level " in page.get_by_label("Analysis").inner_text()
    first = game.locator("ol.turning li").first
    assert re.search(
        r", a blunder that lost 50 percentage points\. The answer: .* Better: [ac][13]",
        first.inner_text(),
    )
    page.get_by_role("button", name="Stop", exact=True).click()
    assert page.locator(".overlay .ghost").count() == 0
    first.get_by_role("button", name="Move 2", exact=True).click()
    page.wait_for_selector(".overlay .ghost.p1")  # the better move
    page.wait_for_function("() => new URLSearchParams(location.hash.slice(1)).get('at') === '1'")
    page.locator("summary", has_text="What the network sees").click()
    page.wait_for_selector(".planes canvas")
    assert page.locator(".planes canvas").count() == 2


def test_impossible_moves_in_the_address_are_one_sentence(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#moves=a1+a1", refusals=True)
    assert alert_of(page).startswith("move 2: expected one of")
    page.get_by_role("button", name="New game", exact=True).click()
    page.wait_for_selector("svg.board")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("game", ["tic-tac-toe", "connect-four", "backgammon", "openspiel:tic_tac_toe"])
def test_nothing_stands_in_the_way_of_people_who_cannot_see_or_use_a_mouse(game, scheme, serve, open_page):
    page = open_page(serve(game) + "/#first=you&second=you", color_scheme=scheme)
    page.wait_for_selector("svg.board, pre")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=The search plays")
    if page.get_by_role("region", name="Network").count():  # there is a bundled bot
        page.locator("summary", has_text="What the network sees").click()
        page.wait_for_selector(".planes canvas")
    assert violations(page) == []


def shown_text(page):
    return page.locator(".picture pre").inner_text()


def test_the_status_tells_of_the_position_that_is_shown(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=random&moves=a1+b1+a2+b2+a3")
    wait_for_status(page, "You have won.")
    assert status_of(page).startswith("You play a3. You have won. Review the game")
    page.get_by_role("button", name="Move 2, b1").click()
    wait_for_status(page, "was|were")
    assert status_of(page) == "You play a1. The random player plays b1. This is position 2 of 5: you were to move."
    page.get_by_role("button", name="Hint").click()
    wait_for_status(page, "Hint: [abc][123]")
    page.get_by_role("button", name="One move back").click()
    wait_for_status(page, "position 1 of 5")
    assert status_of(page) == "You play a1. This is position 1 of 5: the random player was to move."
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_status(page, "^The browser's Back button shows the game before. It is your move. *$")
    resign(page)
    wait_for_status(page, "^You resigned. Review the game")


def test_undo_keeps_to_the_end_and_the_back_button_shows_what_was_shown_before(serve, open_page):
    moves = "moves=a1+b1+a2+b2"
    page = open_page(serve("tic-tac-toe") + f"/#first=you&second=you&{moves}")
    wait_for_status(page, "Black is to move")
    page.get_by_role("button", name="Move 2, b1").click()
    wait_for_status(page, "position 2 of 4")
    assert page.get_by_role("button", name="Undo").is_disabled()
    assert page.get_by_role("button", name="Undo").get_attribute("title").startswith("at the last position")
    by_mouse(page, "c3")
    wait_for_moves(page, 3)
    page.go_back()
    wait_for_moves(page, 4)
    wait_for_status(page, "position 2 of 4")
    page.go_back()
    wait_for_status(page, "b2. Black is to move")
    page.get_by_role("button", name="Undo").click()
    wait_for_moves(page, 3)


def test_the_steps_through_a_game_with_dice_are_decisions(serve, open_page):
    moves = "one throw again one step step"
    page = open_page(serve("tests.helpers.dice:PlainRace") + f"/#first=you&second=you&moves={quote_plus(moves)}")
    wait_for_status(page, "is to move")
    game = page.get_by_role("region", name="Game")
    assert "position 3 of 3" in game.inner_text()
    assert page.locator("ol.moves li.rolled").all_inner_texts() == ["one", "again", "one"]
    seen = [shown_text(page)]
    for step in (2, 1, 0):
        page.get_by_role("button", name="One move back").click()
        wait_for_status(page, f"position {step} of 3")
        assert page.locator("ol.moves li.rolled").count() == 3
        seen.append(shown_text(page))
    assert page.get_by_role("button", name="One move back").is_disabled()
    assert len(set(seen)) == 4
    page.get_by_role("button", name="Move 1, throw").click()
    wait_for_status(page, "The first player plays throw. again one were rolled. This is position 1 of 3")
    assert shown_text(page) == seen[2]


def test_an_own_roll_is_told_beside_the_answer(serve, open_page):
    moves = "one throw four step"
    page = open_page(serve("tests.helpers.dice:PlainRace") + f"/#first=you&second=random&moves={quote_plus(moves)}")
    wait_for_status(page, "^You play throw. four was rolled. The random player plays step. It is your move.")


def test_the_page_says_that_dice_let_the_second_player_begin(serve, open_page):
    address = serve("tests.helpers.dice:WhoBegins")
    page = open_page(f"{address}/#first=random&second=you&moves=three")
    wait_for_status(page, "^three was rolled. It is your move. The second player begins.")
    page = open_page(f"{address}/#first=you&second=random&moves=one")
    wait_for_status(page, "^one was rolled. It is your move.")
    assert "begins" not in status_of(page)


def test_without_a_model_the_page_says_so_once_and_pure_mcts_plays_until_there_is_one(tmp_path, open_page):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    with serving(make_app(run.game, Opponents(run.game, run=run.root), run=run)) as address:
        page = open_page(address)
        wait_for_status(page, "^It is your move. Pure MCTS plays by the same rules until the run has a model")
        by_mouse(page, "b2")
        wait_for_moves(page, 2)
        wait_for_status(page, "^You play b2. Pure MCTS plays [abc][123]. It is your move.$")
        add_model(run)
        wait_for_status(page, "^You play b2. The network plays [abc][123]. It is your move.$")
        taken = parse_qs(urlsplit(page.url).fragment)["moves"][0].split()
        by_mouse(page, "a1" if "a1" not in taken else "c3")
        wait_for_moves(page, 4)
        page.close()


def test_a_game_is_begun_while_the_search_is_prepared_and_goes_on_when_it_is(open_page, monkeypatch):
    prepare = hold_back_preparation(monkeypatch)
    game = load_game("tic-tac-toe")
    less = "Preparing the search, which takes up to a minute, once per machine; the bot thinks less until then.$"
    with serving(make_app(game, Opponents(game))) as address:
        page = open_page(address)
        wait_for_status(page, f"^It is your move. {less}")
        by_mouse(page, "b2")
        wait_for_moves(page, 2)
        wait_for_status(page, f"^You play b2. The bundled bot plays [abc][123]. It is your move. {less}")
        hint = page.get_by_role("button", name="Hint")
        assert hint.is_disabled()
        assert hint.get_attribute("title") == "Preparing the search, which takes up to a minute, once per machine."
        prepare.set()
        wait_for_status(page, "It is your move.$")
        hint.click()
        wait_for_status(page, "Hint: ")
        taken = parse_qs(urlsplit(page.url).fragment)["moves"][0].split()
        by_mouse(page, "a1" if "a1" not in taken else "c3")
        wait_for_moves(page, 4)
        page.close()


def test_a_person_who_plays_both_sides_is_told_nothing_of_a_bot(open_page, monkeypatch):
    prepare = hold_back_preparation(monkeypatch)
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game))) as address:
        page = open_page(f"{address}/#first=you&second=you")
        wait_for_status(page, "^Black is to move. Preparing the search, which takes up to a minute, once per machine.$")
        page.close()
        prepare.set()


def test_without_a_board_sentences_are_wrapped_and_nothing_needs_a_board(serve, open_page):
    page = open_page(serve("tests.helpers.toys:Talking") + "/#first=you&second=you", **PHONE)
    page.wait_for_selector("text=Give the game render() to click on its board.")
    line = page.locator(".picture pre .sentence")
    assert line.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    assert line.bounding_box()["height"] > 40  # two lines at least
    assert page.locator(".picture pre div").nth(1).get_attribute("class") == ""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=The search plays")
    assert page.get_by_role("group", name="Show on the board").count() == 0
    assert page.locator("td.line button").count() == 0
    assert page.get_by_text("What the network sees").count() == 0  # there is none


def test_an_analysis_says_which_move_is_played_and_planes_fit(serve, open_page):
    page = open_page(serve("connect-four") + "/#first=you&second=you&moves=4+4")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=256 of 256")
    bold = page.locator("tr.best td").first.inner_text()
    said, score = page.get_by_label("Analysis").inner_text(), page.locator("tr.best td").nth(2).inner_text()
    why = "It( was tried|.* and .* were tried) most often(, and its (policy|score) is the highest of these)?"
    assert re.search(rf"The search plays {bold}\. {why}\.", said)
    assert re.search(rf"Red (wins {score}|scores {score} \(a draw is half a win\))\.", said)
    page.locator("summary", has_text="What the network sees").click()
    page.wait_for_selector("text=largest value 1")


CENTRES = """(all) => all.map((each) => {
  const box = each.getBBox();
  return [box.x + box.width / 2, box.y + box.height / 2].map(Math.round);
})"""


def centres(page, selector):
    """Return the places of parts of the board, in units of its picture."""
    return of_all(page, f"svg.board {selector}", CENTRES)


GO_MOVES = "h2 e4 d7 j5 g2 d5 d6 c4 g6 g3 f3 g4 f4 f5 g5 f6 f7 e6 e7 h4"  # Black has the upper side, White the left one


def test_the_expected_final_board_is_drawn_on_the_board(serve, open_page):
    page = open_page(f"{serve('go')}/#first=you&second=you&moves={quote_plus(GO_MOVES)}")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("button", name="final board", exact=True).click()
    page.wait_for_selector(".overlay .owner")
    of_black, of_white = (set(map(tuple, centres(page, f".owner.{player}"))) for player in ("p0", "p1"))
    places = {tuple(place) for place in centres(page, ".cell .area")}
    assert of_black | of_white <= places
    upper = {(40 * column, 0) for column in range(9)}  # e9 and its row
    assert upper <= of_black
    assert {(0, 40 * row) for row in range(3, 9)} <= of_white  # a6 and below
    assert re.search(
        r"the board alone, without points such as komi, Black has \d+\.\d points more than White at the end\.",
        page.get_by_label("Analysis").inner_text(),
    )
    page.get_by_role("button", name="nothing", exact=True).click()
    page.wait_for_function("() => !document.querySelector('.owner')")
    assert violations(page) == []


def test_a_game_whose_network_expects_no_final_board_does_not_offer_it(serve, open_page):
    page = open_page(serve("connect-four") + "/#first=you&second=you")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=The search plays")
    assert page.get_by_role("group", name="Show on the board").inner_text().split() == [
        "policy",
        "visits",
        "line",
        "nothing",
    ]


@pytest.mark.parametrize(
    ("game", "moves", "plane", "piece", "mirrored"),
    [
        ("go", "c2", 1, (2, 7), (2, 1)),  # columns from the left, rows from the top
        ("breakthrough", "a2-a3", 1, (0, 5), (0, 2)),  # seen by the second player, who sees the board turned
        ("breakthrough", "a2-a3 h7-h6", 0, (0, 5), (0, 2)),
    ],
)
def test_planes_are_pictures_as_the_board_is_drawn(game, moves, plane, piece, mirrored, serve, open_page):
    page = open_page(f"{serve(game)}/#first=you&second=you&moves={quote_plus(moves)}")
    page.locator("summary", has_text="What the network sees").click()
    page.wait_for_selector(".planes canvas")
    page.wait_for_function(
        """([plane, piece, mirrored]) => {
          const picture = [...document.querySelectorAll(".planes")].at(-1).querySelectorAll("canvas")[plane];
          const light = ([x, y]) => picture.getContext("2d").getImageData(10 * x + 5, 10 * y + 5, 1, 1).data[0];
          return light(piece) === 255 && light(mirrored) === 0;
        }""",
        arg=[plane, piece, mirrored],
    )


def test_planes_of_one_number_are_one_picture(serve, open_page):
    page = open_page(serve("backgammon") + "/#first=you&second=you&moves=3-1")
    page.locator("summary", has_text="What the network sees").click()
    page.wait_for_selector(".planes canvas")
    numbers = load_game("backgammon").start.observation_shape[0]
    assert f"the {numbers} numbers of observe()" in page.get_by_role("region", name="Network").inner_text()
    assert page.locator(".planes canvas").count() == 1


SHARES = """async () => {
  const { drawingOf } = await import("/static/analysis.js");
  const legal = [["e7-e8=Q", [[1, 2], [1, 1]]], ["e7-e8=N", [[1, 2], [1, 1]]], ["a2-a3", [[0, 7], [0, 6]]]];
  const found = [["e7-e8=Q", 0.5], ["a2-a3", 0.3], ["e7-e8=N", 0.2]];
  const moveInfos = found.map(([move, policy]) => ({ move, policy, visits: 0 }));
  const position = { legal: legal.map(([name, spots]) => ({ name, spots })) };
  const { shares } = drawingOf(position, { mode: "policy", found: { moveInfos } });
  return shares.map(({ spots, label }) => [spots[1], label]);
}"""


def test_moves_of_the_same_clicks_are_one_arrow_with_their_common_share(serve, open_page):
    page = open_page(serve("tic-tac-toe"))
    assert page.evaluate(SHARES) == [[[1, 1], 70], [[0, 6], 30]]


def test_what_has_no_place_on_the_board_is_told_in_words(serve, open_page):
    page = open_page(serve("hex(size=4)") + "/#first=you&second=you&moves=b3")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("text=256 of 256")
    page.get_by_role("button", name="visits", exact=True).click()
    assert re.search(r"Not on the board: swap\S* \d+ %\.", page.get_by_label("Analysis").inner_text())


def test_a_review_has_a_strength_and_falls_where_a_move_has_lost(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&moves=b2+a2+c3+a1")
    page.get_by_label("Simulations of a review").select_option("256")
    with page.expect_request("**/api/review*") as asked:
        page.get_by_role("button", name="Review the game").click()
    assert "simulations=256" in asked.value.url
    page.wait_for_selector("text=Accuracy: ")
    curve = page.locator("svg.graph[aria-label^=Expected]").get_attribute("aria-label")
    assert curve.startswith("Expected score of Black: 50 50 100")
    page.get_by_role("button", name="Undo").click()
    wait_for_moves(page, 3)
    page.wait_for_function("() => !document.body.innerText.includes('Accuracy')")
    page.go_back()
    page.wait_for_selector("text=Accuracy: ")


def test_a_review_of_a_game_with_dice_tells_luck_from_play_in_points(serve, open_page, monkeypatch):
    scale = Scale("points", spread=0.9, margins={256: 0.03}, random=50.0, bot=89.0)
    monkeypatch.setattr(review_api, "scale_of", lambda *args, **options: scale)  # to measure it takes a minute
    moves = "3-1 24/23 24/21 6-6 24/18 24/18 13/7 13/7 5-2 13/8 13/11 4-2"  # and not the 8/5 6/5 that everybody plays
    page = open_page(f"{serve('backgammon')}/#first=you&second=you&resigned=0&moves={moves.replace(' ', '+')}", **PHONE)
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector("text=Accuracy: ")
    game = page.get_by_role("region", name="Game").inner_text()
    assert re.search(r"Black lost .* luck[:,].* play -0\.\d\d points\.", game)
    assert re.search(
        r"Turn 1 \(moves 1-2\) Black played 24/23 24/21, an? \w+ that lost 0\.\d\d ± 0\.\d\d points\.", game
    )
    assert "Better: 8/5 6/5" in game or "Better: 6/5 8/5" in game
    assert "random play has 50 %, the bot 89 % in this game" in game
    assert page.locator("li.rolled small").count() == 4
    assert page.locator("li.rolled").nth(1).get_attribute("title").startswith("luck of Black: -0.")
    assert page.locator("svg.graph polyline").count() == 2
    assert page.locator("svg.graph[aria-label^='Expected points of Black: ']").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


CONTROLS = """() => [...document.querySelectorAll("button, select, input:not(.hidden), textarea, summary, a")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }))
  .map((each) => [each.getBoundingClientRect().height, each.outerHTML.slice(0, 120)])
  .filter(([height]) => height < 40)"""


def fits_on_a_phone(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(CONTROLS) == []


def test_on_a_phone_the_board_stays_in_view_while_a_review_is_read(serve, open_page, monkeypatch):
    scale = Scale("score", spread=0.5, margins={256: 0.03}, random=73.0, bot=97.0)
    monkeypatch.setattr(review_api, "scale_of", lambda *args, **options: scale)
    page = open_page(serve("connect-four") + "/#first=you&second=you&moves=4+5+1+2+4+4+4+2+2", **PHONE)
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector("text=Accuracy: ")
    board, last = page.locator("svg.board").first, page.locator("[aria-label=Game] > *").last
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_selector(".middle:not(.reading)")
    in_play, height = board.bounding_box(), page.evaluate("document.documentElement.scrollHeight")
    last.evaluate("(each) => scrollTo(0, each.getBoundingClientRect().bottom + scrollY - innerHeight)")
    page.wait_for_selector(".middle.reading")
    seen, line = board.bounding_box(), last.bounding_box()
    assert seen["y"] >= 0
    assert seen["y"] + seen["height"] <= 844 / 2
    assert seen["height"] < in_play["height"]
    assert line["y"] >= seen["y"] + seen["height"]
    assert page.evaluate("document.documentElement.scrollHeight") == height  # nothing has moved
    fits_on_a_phone(page)
    assert violations(page) == []
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_selector(".middle:not(.reading)")
    assert board.bounding_box() == in_play


def test_styles_of_the_page_leave_the_parts_of_a_board_alone(serve, open_page):
    page = open_page(serve("backgammon") + "/#first=you&second=you&moves=3-1", **PHONE)
    ground = page.locator("svg.board .table")
    ground.wait_for()
    board = page.locator("svg.board").first.bounding_box()
    assert ground.bounding_box()["width"] > 0.9 * board["width"]


def test_a_set_up_is_said_and_stands_before_the_moves(serve, open_page):
    page = open_page(serve("tests.helpers.setups:ThrownHeaps") + "/#first=you&second=you&moves=27+heads")
    wait_for_status(page, "^Set-up 27. heads was rolled. The first player is to move.")
    assert page.locator("ol.moves li.rolled").all_inner_texts() == ["set-up 27", "heads"]
    page = open_page(serve("tests.helpers.setups:ShuffledRanks") + "/" + AGAINST_RANDOM)
    wait_for_status(page, r"^Set-up \d+. It is your move.")
    (number,) = page.evaluate(STATE)["moves"]
    assert page.locator("ol.moves li.rolled").all_inner_texts() == [f"set-up {number}"]


@pytest.mark.parametrize("game", ["connect-four", "go", "backgammon", "breakthrough"])
def test_all_controls_are_large_enough_for_a_finger(game, serve, open_page):
    page = open_page(serve(game) + "/#first=you&second=you", **PHONE)
    page.wait_for_selector("svg.board")
    for closed in ("Legal moves", "Rules", "Set up a position", "What the network sees"):
        page.locator("summary", has_text=closed).first.click()
    page.wait_for_selector(".ends figure")
    page.wait_for_selector(".planes canvas")
    fits_on_a_phone(page)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector("td.line button")
    fits_on_a_phone(page)
    assert of_all(
        page, ".scroll", "(all) => all.every((each) => each.scrollWidth <= each.clientWidth)"
    )  # no column is cut


CUT = """(all) => all
  .filter((each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight)
  .map((each) => each.outerHTML.slice(0, 120))"""


def test_what_was_measured_of_a_player_is_never_cut_off(serve, open_page):
    for width in (390, 1024, 1440):
        page = open_page(serve("go") + "/#first=level:7&second=you", viewport={"width": width, "height": 900})
        page.wait_for_selector(".strength:not(:empty)")
        cut = of_all(page, ".strength", CUT)
        assert cut == []
        page.close()
