"""Games between two people in two places: seats, turns, rolls, clocks, and how many are kept for how long."""

import http.client
import json
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from itertools import pairwise
from urllib.parse import urlencode, urlsplit

import pytest

from plyzero.errors import UserError
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.server import make_app
from plyzero.play import shared_games
from plyzero.play.shared_games import SharedGame, SharedGames
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import play_named
from tests.helpers.web import serving

TIC_TAC_TOE = load_game("tic-tac-toe")


class Time:
    """A time that goes on only when a test lets it."""

    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def begun(game=TIC_TAC_TOE, *, clock="", now=None, side=0):
    """Return a shared game in which both seats are taken, and the tokens of both sides."""
    shared = SharedGame(game, side=side, clock=clock, now=now or Time())
    shared.join()
    return shared, [shared.token_of(0), shared.token_of(1)]


def moves_of(shared):
    return shared.describe("")["moves"]


def test_two_people_move_in_turn_and_the_rules_are_kept():
    shared, (first, second) = begun()
    shared.play(first, "b2", 0)
    with pytest.raises(UserError, match=r"^it is not your move$"):
        shared.play(first, "a1", 1)
    with pytest.raises(UserError, match=r"^expected one of a1 b1"):
        shared.play(second, "b2", 1)
    with pytest.raises(UserError, match="you watch this game"):
        shared.play("", "a1", 1)
    shared.play(second, "A1", 1)
    assert moves_of(shared) == ["b2", "a1"]


def play_first_legal(shared, tokens):
    """Play the first legal move of the player to move; return what was sent."""
    names = moves_of(shared)
    position = play_named(shared.game.start, names)[0][-1]
    token, move = tokens[int(position.to_play)], position.action_name(int(position.legal_actions()[0]))
    shared.play(token, move, len(names))
    return token, move, len(names)


def test_a_move_that_is_sent_twice_is_played_once():
    shared, tokens = begun(load_game("backgammon"))
    sent = play_first_legal(shared, tokens)
    assert len(moves_of(shared)) == 2  # a roll and a move, after which the same player has the other die
    with pytest.raises(UserError, match=r"^it is not your move$"):
        shared.play(*sent)


def test_a_game_ends_by_its_rules_or_by_resignation_and_then_nobody_moves():
    shared, tokens = begun()
    for at, move in enumerate(["a1", "b1", "a2", "b2", "a3"]):
        shared.play(tokens[at % 2], move, at)
    assert shared.describe(tokens[0])["over"]
    resigned, resigned_tokens = begun()
    resigned.resign(resigned_tokens[1])
    assert resigned.describe("")["resigned"] == 1
    for each, (first, second) in ((shared, tokens), (resigned, resigned_tokens)):
        with pytest.raises(UserError, match=r"^the game is over$"):
            each.play(first, "c3", 0)
        with pytest.raises(UserError, match=r"^the game is over$"):
            each.resign(second)


def test_the_first_visitor_of_the_link_has_the_other_seat_and_the_next_ones_watch():
    shared = SharedGame(TIC_TAC_TOE, side=1, clock="")
    opener = shared.token_of(1)
    assert shared.describe(opener)["begun"] is False
    with pytest.raises(UserError, match="the other player has not opened the link yet"):
        shared.play(opener, "a1", 0)
    friend = shared.join()
    assert shared.join() is None
    assert [shared.describe(token)["you"] for token in (opener, friend, "", "é")] == [1, 0, None, None]
    assert len({shared.key, opener, friend}) == 3
    assert len(shared.key) >= 22


def test_rolls_are_made_once_by_the_server():
    shared, tokens = begun(load_game("backgammon"))
    assert len(moves_of(shared)) == 1
    rolled = 0
    for _ in range(6):
        before = moves_of(shared)
        play_first_legal(shared, tokens)
        after = moves_of(shared)
        assert after[: len(before)] == before
        rolled += len(after) - len(before) - 1
    assert rolled >= 1


def test_a_game_begins_at_a_position_that_was_set_up():
    start = " 1 x . .\n 2 . o .\n 3 . . .\n   a b c"
    shared, tokens = begun(TIC_TAC_TOE.set_up(start, "the text"))
    assert shared.describe("")["start"] == start
    shared.play(tokens[0], "c3", 0)
    with pytest.raises(UserError, match="expected one of"):
        shared.play(tokens[1], "a1", 1)
    with pytest.raises(UserError, match="the game is over in this position"):
        SharedGame(TIC_TAC_TOE.set_up("a1 b1 a2 b2 a3", "the text"), side=0, clock="")


def test_the_clock_of_the_player_to_move_runs_from_the_first_move_on():
    now = Time()
    shared, (first, second) = begun(clock="1m+3s", now=now)
    now.seconds += 1000
    shared.play(first, "a1", 0)  # takes no time
    now.seconds += 10
    assert (shared.describe("")["left"], shared.describe("")["runs"]) == ([60.0, 50.0], 1)
    shared.play(second, "b1", 1)
    now.seconds += 20
    assert (shared.describe("")["left"], shared.describe("")["runs"]) == ([40.0, 53.0], 0)
    now.seconds += 39.5
    assert shared.seconds_left() == 0.5
    now.seconds += 0.5
    with pytest.raises(UserError, match="the game is over"):
        shared.play(first, "c3", 2)
    found = shared.describe(second)
    assert (found["resigned"], found["timeOver"], found["over"], found["left"]) == (0, True, True, [0.0, 53.0])
    with pytest.raises(UserError, match=r"expected a clock, such as 5m\+3s"):
        SharedGame(TIC_TAC_TOE, side=0, clock="long")


def test_the_increment_comes_after_a_turn_and_not_after_each_of_its_moves():
    now = Time()
    shared, tokens = begun(load_game("backgammon"), clock="1m+3s", now=now)
    runs = []
    for _ in range(6):
        play_first_legal(shared, tokens)
        now.seconds += 1
        found = shared.describe("")
        runs.append(found["runs"])
    turns = sum(one != other for one, other in pairwise(runs))
    assert 1 <= turns < 5  # some turns have two moves
    assert sum(found["left"]) == 120 - 6 + 3 * turns


def test_resignation_and_the_end_of_the_game_stop_the_clocks():
    now = Time()
    for end in ("rules", "resign"):
        shared, tokens = begun(clock="60", now=now)
        moves = ["a1", "b1", "a2", "b2", "a3"]
        for at, move in enumerate(moves if end == "rules" else moves[:2]):
            shared.play(tokens[at % 2], move, at)
        if end == "resign":
            shared.resign(tokens[0])
        now.seconds += 1000
        found = shared.describe("")
        assert (found["runs"], found["timeOver"], found["left"]) == (None, False, [60.0, 60.0])


def test_a_new_game_with_sides_swapped_needs_both_players():
    games = SharedGames(Time())
    shared = games.open(TIC_TAC_TOE, side=0, clock="5m+3s")
    first, second = shared.token_of(0), shared.join()
    with pytest.raises(UserError, match="when this one is over"):
        games.offer(shared, first)
    shared.resign(first)
    for _ in range(2):  # the same player twice is one offer
        games.offer(shared, second)
        assert (shared.describe(first)["offeredBy"], shared.next) == (1, "")
    with pytest.raises(UserError, match="you watch"):
        games.offer(shared, "")
    games.offer(shared, first)
    following = games.find(shared.next, TIC_TAC_TOE)
    assert [following.side_of(token) for token in (first, second)] == [1, 0]
    assert (following.clock, moves_of(following), following.is_over) == ("5m+3s", [], False)
    games.offer(shared, second)
    assert shared.next == following.key


def test_a_game_that_the_server_does_not_keep_is_one_sentence():
    games = SharedGames(Time())
    shared = games.open(TIC_TAC_TOE, side=0, clock="")
    for key, game in (("none", TIC_TAC_TOE), (shared.key, load_game("connect-four"))):
        with pytest.raises(UserError, match="there is no shared game with this link on the server"):
            games.find(key, game)
    assert games.find(shared.key, TIC_TAC_TOE) is shared


def is_kept(games, shared):
    try:
        return games.find(shared.key, shared.game) is shared
    except UserError:
        return False


def test_the_oldest_games_that_nobody_has_open_make_room(monkeypatch):
    monkeypatch.setattr(shared_games, "MAX_GAMES", 3)
    monkeypatch.setattr(shared_games, "MAX_GAMES_OF_VISITOR", 2)
    now = Time()
    games = SharedGames(now)

    def opened(visitor):
        now.seconds += 1
        return games.open(TIC_TAC_TOE, side=0, clock="", visitor=visitor)

    first, second, other = opened("a"), opened("a"), opened("b")
    with games.followed(first, ""):
        third = opened("a")  # who has opened too many loses an own one
        assert [is_kept(games, each) for each in (first, second, other, third)] == [True, False, True, True]
        opened("c")  # of all, the oldest one
        assert [is_kept(games, each) for each in (first, other, third)] == [True, False, True]
        with games.followed(third, ""), pytest.raises(UserError, match="2 games in two places are being played"):
            opened("a")


def test_games_are_forgotten_when_nobody_has_had_them_open_for_long(monkeypatch):
    now = Time()
    games = SharedGames(now)
    shared = games.open(TIC_TAC_TOE, side=0, clock="")
    with games.followed(shared, ""):
        now.seconds += 2 * shared_games.MAX_IDLE_SECONDS
        assert is_kept(games, shared)
    now.seconds += shared_games.MAX_IDLE_SECONDS
    assert is_kept(games, shared)
    now.seconds += 1
    assert not is_kept(games, shared)


def test_event_streams_are_bounded_and_who_has_the_game_open_is_known(monkeypatch):
    monkeypatch.setattr(shared_games, "MAX_FOLLOWERS", 3)
    monkeypatch.setattr(shared_games, "MAX_FOLLOWED", 2)
    games = SharedGames(Time())
    shared = games.open(TIC_TAC_TOE, side=1, clock="")
    with games.followed(shared, shared.token_of(1), "a"), games.followed(shared, "", "a"):
        assert shared.describe("")["here"] == [False, True]
        with pytest.raises(UserError, match="too many open pages"), games.followed(shared, "", "a"):
            pass
        with (
            games.followed(shared, "", "b"),
            pytest.raises(UserError, match="too many open pages"),
            games.followed(shared, "", "c"),
        ):
            pass
    assert (shared.describe("")["here"], shared.followers, games._followed) == ([False, False], [0, 0, 0], {})


def test_a_shared_game_has_so_many_moves(monkeypatch):
    monkeypatch.setattr(shared_games, "MAX_MOVES", 2)
    shared, (first, second) = begun()
    shared.play(first, "a1", 0)
    shared.play(second, "b1", 1)
    with pytest.raises(UserError, match="a game in two places has at most 2 moves"):
        shared.play(first, "c1", 2)


# The same by the server.


@pytest.fixture(scope="module")
def address():
    with serving(make_app(TIC_TAC_TOE, Opponents(TIC_TAC_TOE))) as found:
        yield found


def post(address, path, *, method="POST", headers=None, **fields):
    """Return the status and the JSON object that the server answers."""
    request = urllib.request.Request(
        f"{address}/api/shared/{path}?{urlencode(fields)}", method=method, headers=headers or {}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@contextmanager
def following(address, **fields):
    """Yield a function that returns the next event in which a condition holds."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", f"/api/shared/follow?{urlencode(fields)}")
    with closing(connection), connection.getresponse() as answer:

        def next_event(condition=lambda event: True):
            for line in answer:
                if line.startswith(b"data: ") and condition(event := json.loads(line[6:])):
                    return event
            raise AssertionError("the stream has ended")

        yield next_event


def test_both_players_see_each_move_by_events(address):
    opened = post(address, "open", side=1)[1]
    key, second = opened["key"], opened["token"]
    with following(address, key=key, token=second) as seen:
        assert seen()["you"] == 1
        first = post(address, "join", key=key)[1]["token"]
        assert seen(lambda event: event["begun"])["here"] == [False, True]
        with following(address, key=key, token=first) as seen_too:
            assert seen_too()["you"] == 0
            assert seen(lambda event: event["here"][0])["moves"] == []
            assert post(address, "play", key=key, token=first, move="a1", at=0) == (200, {})
            assert [each(lambda event: event["moves"])["moves"] for each in (seen, seen_too)] == [["a1"], ["a1"]]
        assert seen(lambda event: not event["here"][0])["moves"] == ["a1"]  # a closed stream is seen at once
    assert post(address, "join", key=key) == (200, {"token": None})
    with following(address, key=key, token=first) as seen:  # after a reload
        assert (seen()["you"], post(address, "resign", key=key, token=second)[0]) == (0, 200)
        assert seen(lambda event: event["over"])["resigned"] == 1
        assert [post(address, "offer", key=key, token=token)[0] for token in (first, second)] == [200, 200]
        assert seen(lambda event: event["next"])["next"] != key


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("open", {"clock": "5 minutes"}, "expected a clock, such as 5m+3s"),
        ("open", {"side": 2}, "expected side from 0 to 1, got '2'"),
        ("open", {"start": "nothing"}, "cannot begin at the position in the text"),
        ("join", {"key": "none"}, "there is no shared game with this link"),
        ("play", {"key": "none", "move": "a1"}, "there is no shared game with this link"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(address, path, fields, words):
    status, found = post(address, path, **fields)
    assert (status, words in found["error"]) == (400, True)


def test_an_unknown_game_and_a_wrong_move_are_told_in_one_sentence(address):
    with following(address, key="none") as seen:
        found = seen()
    assert (found["done"], found["error"]) == (True, shared_games.UNKNOWN)
    opened = post(address, "open", side=0)[1]
    post(address, "join", key=opened["key"])
    asked = {"key": opened["key"], "token": opened["token"], "at": 0}
    assert post(address, "play", **asked, move="d9")[1]["error"].startswith("expected one of a1 b1")
    assert post(address, "play", **{**asked, "token": "x"}, move="a1")[1]["error"].startswith("you watch this game")


def test_no_page_of_another_site_opens_or_changes_a_game(address):
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        assert post(address, "open", headers=headers)[0] == 403
    assert post(address, "open", method="GET")[0] == 405


def test_a_clock_runs_out_without_a_request(address):
    opened = post(address, "open", side=0, clock="0.001")[1]
    friend = post(address, "join", key=opened["key"])[1]["token"]
    with following(address, key=opened["key"], token=friend) as seen:
        post(address, "play", key=opened["key"], token=opened["token"], move="a1", at=0)
        found = seen(lambda event: event["over"])
    assert (found["resigned"], found["timeOver"]) == (1, True)


def test_streams_that_stay_open_leave_the_searches_their_places(monkeypatch):
    monkeypatch.setattr("plyzero.kits.web.server.usable_cores", lambda: 1)
    with serving(make_app(TIC_TAC_TOE, Opponents(TIC_TAC_TOE))) as found:
        opened = post(found, "open", side=0)[1]
        with following(found, **opened) as seen, following(found, **opened) as seen_too:
            assert seen()["you"] == seen_too()["you"] == 0
            asked = {"player": "greedy", "moves": "a1"}
            with urllib.request.urlopen(f"{found}/api/think?{urlencode(asked)}", timeout=60) as answer:
                assert b'"done": true' in answer.read()


def test_streams_that_stay_open_end_with_the_server():
    with serving(make_app(TIC_TAC_TOE, Opponents(TIC_TAC_TOE))) as found:
        opened = post(found, "open", side=0)[1]
        answer = urllib.request.urlopen(f"{found}/api/shared/follow?{urlencode(opened)}", timeout=60)
        assert answer.readline().startswith(b"data: ")
    with answer:
        answer.read()  # raises an error for one that is cut
