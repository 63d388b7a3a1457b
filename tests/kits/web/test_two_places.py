"""Two people in two places, and clocks of people, in real browsers."""

import json
import re

import pytest

from plyzero.errors import UserError
from plyzero.kits.web.server import make_home
from plyzero.play.clock import Clock
from tests.helpers.play_page import (
    PHONE,
    by_mouse,
    by_touch,
    hash_fields,
    resign,
    saved,
    status_of,
    wait_for_moves,
    wait_for_status,
)
from tests.helpers.web import serving, violations

pytestmark = pytest.mark.browser


def opened(page, *, clock=None):
    """Open a game in two places, and return its link."""
    page.wait_for_selector("svg.board, pre")
    if clock:
        page.get_by_label("Clock", exact=True).select_option("own")
        page.get_by_label("Own clock").fill(clock)
    page.get_by_role("button", name="Play with a friend").click()
    wait_for_status(page, r"Waiting for the other player to open the link\.$")
    return page.get_by_label("Link for the other player").input_value()


def moves_shown(page):
    return page.locator("ol.moves > li").all_inner_texts()


def test_two_people_play_a_game_to_its_end_by_a_link_and_review_it(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    link = opened(one)
    assert violations(one) == []
    one.get_by_role("button", name="Copy link").click()
    one.wait_for_selector("text=/The link (was copied|is selected; copy it)/")
    two = open_page(link, **PHONE)
    wait_for_status(two, "^It is the other player's move.$")
    wait_for_status(one, "^It is your move.$")
    by_mouse(one, "b2")
    wait_for_status(two, "^The other player plays b2. It is your move.$")
    by_touch(two, "a2")
    wait_for_status(one, "^You play b2. The other player plays a2. It is your move.$")
    two.reload()
    wait_for_status(two, "^You play a2. It is the other player's move.$")
    for page in (one, two):
        assert page.get_by_role("button", name="Hint").is_disabled()
        assert page.get_by_role("button", name="Review the game").is_disabled()
        assert "No hints, analyses or reviews until this game is over." in page.inner_text("main")
        assert violations(page) == []
    assert two.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watching = open_page(link)
    wait_for_status(watching, "^White plays a2. Black is to move.$")
    assert watching.get_by_text("Both seats are taken; you watch.").count() == 1
    assert watching.locator(".playable").count() == 0
    for count, (page, press, cell) in enumerate(
        [(one, by_mouse, "c3"), (two, by_touch, "a1"), (one, by_mouse, "c1")], 3
    ):
        press(page, cell)
        for each in (one, two, watching):
            wait_for_moves(each, count)
    by_touch(two, "a3")
    wait_for_status(two, "You have won")
    wait_for_status(one, "You have lost")
    wait_for_status(watching, "White has won")
    for page in (one, two):
        page.get_by_role("button", name="Review the game").click()
        page.wait_for_selector("text=Accuracy: ")


def test_a_link_leads_to_the_game_below_the_home_page(open_page, tmp_path):
    with serving(make_home(tmp_path)) as address:
        one = open_page(f"{address}/game/tic-tac-toe/")
        link = opened(one)
        assert link.startswith(f"{address}/game/tic-tac-toe/#shared=")
        two = open_page(link)
        wait_for_status(one, "^It is your move")
        by_mouse(one, "b2")
        wait_for_status(two, "^The other player plays b2. It is your move")
        other = open_page(link.replace("tic-tac-toe", "connect-four"), refusals=True)
        wait_for_status(other, "There is no shared game with this link on the server")
        for page in (one, two, other):
            page.close()


def test_a_person_is_back_on_the_seat_in_a_tab_that_is_opened_anew(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    link = opened(one)
    two = open_page(link)
    wait_for_status(one, "^It is your move.$")
    context = one.context
    one.close()
    two.get_by_text("not connected").wait_for()
    one = context.new_page()
    one.goto(link)
    wait_for_status(one, "^It is your move.$")
    two.get_by_text("not connected").wait_for(state="detached")
    by_mouse(one, "b2")
    wait_for_status(two, "The other player plays b2. It is your move")


def test_a_lost_connection_is_told_and_the_game_goes_on_where_it_was(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    two = open_page(opened(one))
    wait_for_status(one, "^It is your move.$")
    two.evaluate(
        """() => {
          const original = window.fetch, Source = window.EventSource;
          window.restore = () => { window.fetch = original; window.EventSource = Source; };
          window.fetch = () => Promise.reject(new TypeError("offline"));
          window.EventSource = class { constructor() { setTimeout(() => this.onerror()); } close() {} };
        }"""
    )
    two.evaluate("location.hash = location.hash.replace(/shared=[^&]*/, '')")  # away, and back without a network
    two.get_by_role("button", name="Play with a friend").wait_for()
    two.go_back()
    two.get_by_text("The connection to the server is lost; it is tried again.").wait_for()
    by_mouse(one, "b2")
    wait_for_status(one, "It is the other player's move")
    two.evaluate("window.restore()")
    wait_for_status(two, "The other player plays b2. It is your move")
    assert two.get_by_text("The connection to the server is lost").count() == 0


def test_a_game_that_the_server_does_not_have_is_told_and_its_moves_stay(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#moves=a1+b2&shared=none", refusals=True)
    wait_for_status(page, "There is no shared game with this link on the server")
    page.wait_for_selector("svg.board")
    wait_for_moves(page, 2)
    assert "shared" not in hash_fields(page)
    page.get_by_role("button", name="Play with a friend").wait_for()


def test_both_see_the_same_rolls(serve, open_page):
    one = open_page(serve("tests.helpers.dice:PlainRace"))
    two = open_page(opened(one))
    for count in range(1, 30):
        for page in (one, two):
            wait_for_status(page, "your move|other player's move|won|lost|drawn")
        if not any("move." in status_of(page) for page in (one, two)):
            break
        mover = one if "It is your move" in status_of(one) else two
        before = mover.url
        name = "throw" if count % 2 else "step"
        mover.get_by_label("Move", exact=True).fill(name)
        mover.get_by_label("Move", exact=True).press("Enter")
        mover.wait_for_function("(before) => location.href !== before", arg=before)
        moves = hash_fields(mover)["moves"]
        for page in (one, two):
            page.wait_for_function(
                "(moves) => new URLSearchParams(location.hash.slice(1)).get('moves') === moves", arg=moves[0]
            )
            page.wait_for_function("() => document.querySelector('[aria-label=Board]').ariaBusy !== 'true'")
    assert moves_shown(one) == moves_shown(two)
    assert one.locator("li.rolled").count() >= 2
    assert re.search("won|lost|drawn", status_of(one))


def test_resignation_then_a_new_game_with_sides_swapped(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    two = open_page(opened(one))
    wait_for_status(one, "^It is your move.$")
    resign(two)
    wait_for_status(one, "^The other player resigned. Review the game")
    wait_for_status(two, "^You resigned. Review the game")
    one.get_by_role("button", name="Offer a new game, sides swapped").click()
    one.get_by_role("button", name="A new game is offered").wait_for()
    assert violations(one) == []
    two.get_by_role("button", name="Accept a new game, sides swapped").click()
    wait_for_status(two, "The new game has begun. It is your move.")
    wait_for_status(one, "The new game has begun. It is the other player's move.")
    by_mouse(two, "b2")
    wait_for_status(one, "The other player plays b2. It is your move.")
    one.go_back()  # the game before is still there
    wait_for_status(one, "The other player resigned.")
    one.get_by_role("button", name="Go to the new game").click()
    wait_for_status(one, "The other player plays b2. It is your move.")
    one.get_by_role("button", name="Leave this game").click()
    two.get_by_text("not connected").wait_for()
    assert "shared" not in hash_fields(one)


def test_after_the_end_what_could_have_been_is_tried_at_each_page_alone(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    two = open_page(opened(one))
    wait_for_status(one, "^It is your move.$")
    by_mouse(one, "b2")
    wait_for_status(two, "It is your move")
    resign(two)
    wait_for_status(one, "The other player resigned.")
    one.get_by_role("button", name="One move back").click()
    wait_for_status(one, "position 0 of 1")
    by_mouse(one, "a1")
    wait_for_status(one, "Black plays a1. White is to move.")
    assert hash_fields(one)["line"] == ["b2"]
    assert hash_fields(two)["moves"] == ["b2"]
    one.go_back()
    wait_for_status(one, "position 0 of 1")
    assert "shared" in hash_fields(one)


def test_a_game_in_two_places_begins_at_a_position_that_was_set_up_and_the_opener_may_be_second(serve, open_page):
    start = " 1 x . .\n 2 . o .\n 3 . . .\n   a b c"
    one = open_page(serve("tic-tac-toe") + "/#first=random&second=you&moves=a1")
    one.wait_for_selector("svg.board .playable")
    one.locator("summary", has_text="Set up a position").click()
    one.get_by_label("Position as text").fill(start)
    one.get_by_role("button", name="Set up", exact=True).click()
    one.wait_for_function("() => document.querySelectorAll('svg.board .stone').length === 3")  # the random player moves
    two = open_page(opened(one))
    wait_for_status(two, "^It is your move.$")
    two.wait_for_function("() => document.querySelectorAll('svg.board .stone').length === 2")
    by_mouse(two, "c3")
    wait_for_status(one, "The other player plays c3. It is your move.")
    assert one.locator("svg.board .stone").count() == 3


def test_a_clock_that_runs_out_in_a_game_in_two_places_ends_it_for_both(serve, open_page):
    one = open_page(serve("tic-tac-toe"))
    two = open_page(opened(one, clock="1s"))
    wait_for_status(one, "^It is your move.$")
    wait_for_status(two, "^It is the other player's move.$")
    assert two.get_by_role("timer").all_inner_texts() == ["1.0", "1.0"]
    by_mouse(one, "b2")  # and nobody moves any more
    wait_for_status(one, "^You play b2. The other player's time has run out; you have won.$")
    wait_for_status(two, "^The other player plays b2. Your time has run out; you have lost.$")
    assert one.get_by_role("timer").all_inner_texts() == ["0.0", "1.0"]
    for page in (one, two):
        assert page.get_by_role("button", name="Review the game").is_enabled()
        assert page.locator(".playable").count() == 0


def test_a_clock_that_runs_out_at_one_page_ends_the_game(serve, open_page, tmp_path):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&clock=1s", accept_downloads=True)
    page.wait_for_selector("svg.board .playable")
    by_mouse(page, "b2")
    wait_for_status(page, "^Black plays b2. White's time has run out; Black has won.$")
    record = json.loads(saved(page, tmp_path / "game.json"))
    assert (record["clock"], record["left"], record["timeOver"], record["result"]) == ("1s", [1, 0], True, "first")
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_moves(page, 0)
    page.get_by_label("File of a game").set_input_files(tmp_path / "game.json")
    wait_for_status(page, "White's time has run out; Black has won.")
    page.get_by_role("button", name="Undo").click()
    wait_for_status(page, "It is your move|Black is to move")
    assert page.get_by_role("timer").count() == 0


def at_second(page, seconds):
    """Let the time of the page stand still there."""
    page.evaluate("(time) => { Date.now = () => time; }", 1000 * seconds)


def wait_for_left(page, left):
    page.wait_for_function("(left) => new URLSearchParams(location.hash.slice(1)).get('left') === left", arg=left)


def test_the_clock_of_the_player_to_move_runs_and_each_turn_adds_the_increment(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=you&clock=1m%2B3s")
    page.wait_for_selector("svg.board .playable")
    at_second(page, 0)
    at_second(page, 1000)  # the first move takes no time
    by_mouse(page, "a1")
    page.locator(".clock.runs").wait_for()
    at_second(page, 1010)
    page.get_by_role("timer", name="Time of White").get_by_text("0:50").wait_for()
    by_mouse(page, "b1")
    wait_for_left(page, "60 53")
    page.locator(".player.lit", has_text="Black").locator(".clock.runs").wait_for()
    at_second(page, 1030)
    page.get_by_role("button", name="First position").click()  # looking back does not stop it
    wait_for_status(page, "position 0 of 2")
    at_second(page, 1061.5)
    page.get_by_role("timer", name="Time of Black").get_by_text("8.5").wait_for()
    page.get_by_role("button", name="Last position").click()
    wait_for_status(page, "Black is to move")
    by_mouse(page, "c3")
    wait_for_left(page, "11.5 53")
    page.reload()
    page.wait_for_selector("svg.board .playable")
    assert page.get_by_role("timer", name="Time of Black").inner_text() == "0:11"
    assert violations(page) == []


def test_a_person_has_a_clock_against_a_bot_and_the_bot_has_its_own(serve, open_page):
    page = open_page(serve("tic-tac-toe") + "/#first=you&second=random")
    page.wait_for_selector("svg.board .playable")
    at_second(page, 0)
    page.get_by_label("Clock", exact=True).select_option("3m+2s")
    page.get_by_role("timer").wait_for()
    assert page.get_by_role("timer").all_inner_texts() == ["3:00"]
    by_mouse(page, "b2")
    wait_for_moves(page, 2)
    page.locator(".clock.runs").wait_for()
    page.get_by_label("Clock", exact=True).select_option("none")
    page.get_by_text("from the next game on").wait_for()
    assert page.get_by_role("timer").count() == 1
    at_second(page, 180)
    wait_for_status(page, "Your time has run out; you have lost.")
    page.get_by_role("button", name="New game", exact=True).click()
    wait_for_moves(page, 0)
    assert page.get_by_role("timer").count() == 0


CLOCKS = ("5m+3s", "90s", "1h", "3m+2", "0.5", "1.5m+0.25s")
NO_CLOCKS = ("", "0", "0s+3s", "5m+3m", "long", "1234567", "5 m", "-1", "5M")


def test_the_page_reads_clocks_as_the_command_line_does(serve, open_page):
    page = open_page(serve("tic-tac-toe"))
    found = page.evaluate(
        "async (texts) => { const { parseClock } = await import('/static/clock.js'); return texts.map(parseClock); }",
        [*CLOCKS, *NO_CLOCKS],
    )
    for text, clock in zip(CLOCKS, found, strict=False):
        expected = Clock.parse(text)
        assert clock == {"main": expected.main, "increment": expected.increment}, text
    assert found[len(CLOCKS) :] == [None] * len(NO_CLOCKS)
    for text in NO_CLOCKS:
        with pytest.raises(UserError, match="expected a clock"):
            Clock.parse(text)
    page.get_by_label("Clock", exact=True).select_option("own")
    page.get_by_label("Own clock").fill("5 minutes")
    page.get_by_text("Expected a clock, such as 5m+3s").wait_for()
