"""The server: what it answers, what it refuses, and that it searches for nobody who has left."""

import asyncio
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from plyzero.errors import UserError
from plyzero.kits.web import answers, connections, pages, play_api, searches
from plyzero.kits.web.connections import listen
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.pages import PAGE
from plyzero.kits.web.server import make_app
from plyzero.play.agents import Agent
from plyzero.rules.catalog import GameSpec, load_game
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until
from tests.helpers.toys import Branching, variant
from tests.helpers.web import events, get, serving, wait_until_ready


@pytest.fixture(scope="module")
def address():
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game), allowed_hosts={"board.example"})) as found:
        wait_until_ready(found)
        yield found


def test_the_server_tells_what_it_serves(address):
    about = wait_until_ready(address)
    assert (about["game"], about["identity"]) == ("tic-tac-toe", "tic-tac-toe v1")
    ids = [player["id"] for player in about["players"]]
    assert about["opponent"] in ids
    assert about["hasNetwork"]
    assert about["rules"].startswith("In turn, each player fills a square.")
    assert ids[-5:] == ["mcts:100", "mcts:1000", "alphabeta:4", "greedy", "random"]


def test_the_first_moves_and_the_ends_of_random_games_are_shown(address, monkeypatch):
    status, found = get(address, "/api/ends")
    assert (status, found["firstMoves"]) == (200, ["First moves (9): a1 b1 c1 a2 b2 c2 a3 b3 c3"])
    drawn = [end for end in found["ends"] if end["caption"][0] == "drawn"]
    assert [(end["svg"].count("stone"), end["svg"].count(" last"), end["text"].count(".")) for end in drawn] == [
        (9, 1, 0)
    ]
    monkeypatch.setattr("plyzero.kits.web.answers.describe_ends", None)
    assert get(address, "/api/ends") == (200, found)  # the games are played once


def test_a_game_without_a_bundled_bot_has_no_network():
    game = load_game("tests.helpers.toys:Relay")
    with serving(make_app(game, Opponents(game))) as found:
        about = get(found, "/api/about")[1]
    assert (about["hasNetwork"], about["opponent"]) == (False, "mcts:1000")


def test_a_game_begins_at_the_position_that_a_visitor_has_set_up():
    game = load_game("tic-tac-toe")
    start = " 1 x . .\n 2 . o .\n 3 . . .\n   a b c"
    with serving(make_app(game, Opponents(game))) as found:
        position = get(found, "/api/position", start=start, moves="c3")[1]
        assert (position["moves"], position["svg"].count("stone"), position["toPlay"]) == (["c3"], 3, 1)
        assert get(found, "/api/position", start=start, moves="a1")[0] == 400  # there is a stone
        assert get(found, "/api/position", moves="c3")[1]["svg"].count("stone") == 1
        wrong, long = (get(found, "/api/position", start=text) for text in ("nothing", "x" * 4001))
    assert wrong[1]["error"].startswith("cannot begin at the position in the text: expected a board")
    assert long[1]["error"] == "expected a position of at most 4000 characters, got 4001"


def test_rules_that_fail_are_named_with_their_line_where_a_position_or_a_search_is_asked_for():
    def fails(self):
        if self.moves == (0, 1):
            raise ValueError("no moves")
        return Branching.legal_actions(self)

    game = GameSpec("fails:Fails", variant(Branching, legal_actions=fails)())
    line = fails.__code__.co_firstlineno + 2
    with serving(make_app(game, Opponents(game))) as found:
        status, answer = get(found, "/api/position", moves="0 1")
        assert get(found, "/api/position", moves="0 2")[0] == 200
        searched = events(found, "/api/think", moves="0", player="mcts:100")[-1]
    assert status == 500
    assert answer["error"] == f"this cannot be answered: ValueError: no moves (test_server.py, line {line}, in fails)"
    assert searched["error"] == f"the search has failed: ValueError: no moves (test_server.py, line {line}, in fails)"


def test_the_moves_to_a_position_are_found_in_a_search_once(monkeypatch):
    game, counted = load_game("tic-tac-toe"), []
    original = searches.Searches.stream

    def stream(self, search, visitor=""):
        counted.append(visitor)
        return original(self, search, visitor)

    monkeypatch.setattr(searches.Searches, "stream", stream)
    start = " 1 x . .\n 2 . o .\n 3 . . .\n   a b c"
    with serving(make_app(game, Opponents(game))) as found:
        for fields in ({}, {"moves": "c3"}, {"at": 0}):
            assert get(found, "/api/position", start=start, **fields)[0] == 200
        assert counted == ["127.0.0.1"]
        assert [get(found, "/api/position", start="x" * 99)[0] for _ in range(2)] == [400, 400]
        assert len(counted) == 3


def test_a_game_as_long_as_the_server_takes_comes_in_its_address():
    game = load_game("tests.helpers.toys:Relay")
    with serving(make_app(game, Opponents(game))) as found:
        status, answer = get(found, "/api/position", moves="é" * play_api.MAX_TEXT, start="é" * 4000)
        assert (status, "expected a board" in answer["error"]) == (400, True)  # and not: a bad request


def test_further_opponents_come_first_and_must_exist():
    game = load_game("tic-tac-toe")
    opponents = Opponents(game, others=["alphabeta:2"])
    assert opponents.usual() == next(iter(opponents.names())) == "alphabeta:2"
    with pytest.raises(UserError, match="expected alphabeta:DEPTH"):
        Opponents(game, others=["alphabeta:x"])


def test_an_earlier_position_is_asked_for_with_the_whole_game(address):
    status, found = get(address, "/api/position", moves="a1 b2 c3", at=1)
    assert (status, found["at"], found["toPlay"], len(found["legal"])) == (200, 1, 1, 8)
    assert found["moves"] == ["a1", "b2", "c3"]


def test_every_opponent_chooses_a_legal_move(address):
    for player in wait_until_ready(address)["players"]:
        found = events(address, "/api/think", moves="a1 b1 a2 b2", player=player["id"])[-1]
        assert found["done"]
        assert found["choice"] in ("c1", "c2", "a3", "b3", "c3")


def test_an_analysis_and_a_review_end_with_their_results(address):
    searched = events(address, "/api/think", moves="a1 b1 a2 b2", simulations=64)[-1]
    assert searched["choice"] == "a3"
    reviewed = events(address, "/api/review", moves="b2 a2 c3", simulations=64)[-1]
    assert [turn["mistake"] for turn in reviewed["turns"]] == [None, "blunder", None]
    assert [move["by"] for move in reviewed["turns"][1]["line"][:2]] == [1, 0]
    assert all(found["judge"].startswith("The judge: the bundled bot, level ") for found in (searched, reviewed))
    status, view = get(address, "/api/inspect", moves="a1")
    assert (status, len(view["planes"])) == (200, 2)


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("position", {"moves": "a1 a1"}, "move 2: expected one of"),
        ("inspect", {"moves": "a1 b1 a2 b2 a3"}, "the game is over after these moves"),
        ("think", {"simulations": "many"}, "expected simulations from 0 to 99999999, got 'many'"),
        ("review", {"simulations": "-1"}, "expected simulations from 0 to 99999999, got '-1'"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence(address, path, fields, words):
    status, found = get(address, f"/api/{path}", **fields)
    assert (status, words in found["error"]) == (400, True)


def post(address, path, body, **fields):
    request = urllib.request.Request(f"{address}/api/{path}?{urlencode(fields)}", data=body)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_files_of_games_come_and_go(address):
    status, found = post(address, "file", b"1. b2 a1 *\n\n1. a1 *\n", number=1)
    assert (status, found["titles"], found["game"]["moves"]) == (200, ["Game 1", "Game 2"], ["a1"])
    saved = {"version": 1, "game": "tic-tac-toe v1", "person": "first", "bot": "you", "moves": ["b2", "a1"]}
    status, found = post(address, "export", json.dumps(saved).encode(), kind="pgn")
    assert (status, found["text"].endswith("\n\n1. b2 a1 *\n")) == (200, True)
    status, found = post(address, "export", json.dumps(saved).encode(), kind="sgf")
    assert (status, found["error"].endswith("has no names for its moves in SGF files")) == (400, True)


def test_a_file_that_is_too_large_is_one_sentence(address, monkeypatch):
    monkeypatch.setattr(answers, "MAX_FILE", 2 << 20)
    status, found = post(address, "file", b"x" * (2 << 20) + b"x")
    assert (status, found["error"]) == (400, "expected a file of at most 2 MiB, got a larger one; cut it into parts")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moves": "d9"}, "move 1: expected one of"),
        ({"simulations": 10**6}, "expected simulations from 0 to 10000"),
        ({"player": "mcts:1000000"}, "expected a player, one of"),
    ],
)
def test_a_search_that_is_impossible_ends_with_a_sentence(address, fields, words):
    (found,) = events(address, "/api/think", **fields)
    assert (words in found["error"], found["done"]) == (True, True)


def test_other_hosts_are_refused_so_that_no_other_page_can_point_here(address):
    for host, status in (("evil.example", 400), ("board.example:80", 200), ("localhost:1", 200), ("[::1]:1", 200)):
        assert get(address, "/api/about", headers={"Host": host})[0] == status, host
    assert "does not answer for 'evil.example'" in get(address, "/", headers={"Host": "evil.example"})[1]["error"]


def test_a_page_may_load_nothing_from_elsewhere(address):
    with urllib.request.urlopen(f"{address}/") as answer:
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "http" not in answer.read().decode().replace("plyzero", "")
    status, found = get(address, "/api/nothing")
    assert (status, found) == (404, {"error": "/api/nothing: Not Found"})


def test_the_page_names_all_modules_that_it_imports_so_that_they_come_together():
    named = re.findall(r'rel="modulepreload" href="/static/(.*?)"', pages.text_of("index.html"))
    assert sorted(named) == sorted(pages._imported("play.js"))


@pytest.mark.parametrize("name", ["../server.py", "%2e%2e/server.py", "vendor", "", "/etc/passwd", "none.js"])
def test_what_is_no_file_of_the_page_is_not_served(address, name):
    assert get(address, f"/static/{name}")[0] == 404


def test_a_search_ends_when_its_visitor_leaves(address, monkeypatch):
    ended = threading.Event()
    original = searches.run_search

    def run(search, report):
        original(search, report)
        ended.set()

    monkeypatch.setattr(searches, "run_search", run)
    monkeypatch.setattr("plyzero.kits.web.play_api.EVENT_SECONDS", 0.0)
    with urllib.request.urlopen(f"{address}/api/think?player=analysis&simulations=10000", timeout=30) as answer:
        answer.readline()
    assert ended.wait(30)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),  # typed by a person
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this machine
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://192.168.0.9:8765", "Host": "192.168.0.9:8765"}, 200),
        ({"Origin": "http://192.168.0.9:80", "Host": "192.168.0.9:8765"}, 403),
        ({"Origin": "null"}, 403),
        ({"User-Agent": "Mozilla/5.0", "Referer": "http://192.168.0.9:8765/", "Host": "192.168.0.9:8765"}, 200),
        ({"User-Agent": "Mozilla/5.0", "Referer": "http://evil.example/", "Host": "192.168.0.9:8765"}, 403),
        ({"User-Agent": "Mozilla/5.0"}, 403),  # an image of a page that tells no referrer
    ],
)
def test_the_page_of_another_site_starts_no_search(address, headers, status):
    found = get(address, "/api/inspect", moves="a1", headers=headers)
    assert found[0] == status
    assert status == 200 or "from a page of another site" in found[1]["error"]


class Endless(Agent):
    begun, ended = threading.Event(), threading.Event()

    def choose(self, position):
        self.begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            self.ended.set()


def test_an_agent_ends_when_its_visitor_leaves():
    game = load_game("tic-tac-toe")
    name = f"{__name__}:Endless"
    with serving(make_app(game, Opponents(game, others=[name]))) as found:
        with urllib.request.urlopen(f"{found}/api/think?player={name}", timeout=30):
            assert Endless.begun.wait(30)
        assert Endless.ended.wait(30)


BEGINS = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", BEGINS, BEGINS + b"\r\n" + BEGINS, BEGINS + b"Content-Length: 9\r\n\r\n"])
def test_a_request_that_does_not_arrive_is_cut(address, monkeypatch, sent):
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=60) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            while connection.recv(1 << 16):
                pass  # until it is cut


def test_a_port_in_use_is_one_sentence():
    with listen("127.0.0.1", 0) as taken, pytest.raises(UserError, match="choose another --port"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_pure_search_plays_and_analyses_until_a_run_has_a_model(tmp_path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    with serving(make_app(run.game, Opponents(run.game, run=run.root), run=run)) as found:
        about = wait_until_ready(found)
        assert (about["opponent"], about["hasNetwork"], about["newest"]) == ("mcts:1000", False, None)
        assert not any(player["id"].startswith("net:") for player in about["players"])
        for player in ("analysis", "mcts:100", "greedy"):
            assert events(found, "/api/think", moves="a1 b1 a2 b2", player=player)[-1]["choice"]
        judge = events(found, "/api/review", moves="a1 b1 a2 b2 a3", simulations=16)[-1]["judge"]
        assert re.match("The judge: the bundled bot, level .*, because the run has no model yet.$", judge)
        add_model(run, step=12)
        about = get(found, "/api/about")[1]
        assert (about["ready"], about["opponent"], about["hasNetwork"], about["newest"]) == (True, "net:64", True, 12)
        assert events(found, "/api/think", moves="a1 b1 a2 b2", player="net:64")[-1]["choice"]


def test_a_run_that_does_not_exist_yet_has_no_model():
    opponents = Opponents(load_game("tic-tac-toe"), run=Path("none"))
    assert (opponents.usual(), opponents.has_network) == ("mcts:1000", False)


def test_a_search_that_fails_says_why_the_page_is_not_ready(tmp_path):
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game, net=tmp_path / "none.onnx"))) as found:
        wait_until(lambda: "preparing" not in get(found, "/api/about")[1]["waitsFor"])
        about = get(found, "/api/about")[1]
        assert not about["ready"]
        assert about["waitsFor"].startswith("not ready: ")
        assert "none.onnx" in about["waitsFor"]
        assert get(found, "/api/position", moves="a1")[0] == 200
        for player in ("mcts:100", "greedy", "random"):
            assert events(found, "/api/think", moves="a1 b1 a2 b2", player=player)[-1]["choice"]


def test_the_libraries_of_others_are_those_of_their_packages():
    digests = {
        "preact.js": "bdcbd9abdf2c77c5c45326eab42191e949222d479d0d5f69467387a77040cb55",
        "preact-hooks.js": "e862ab2973aa6455eaa0f77c5d832d2157d6be59a17c8ba546550a575b58c6b4",
        "htm.js": "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    }
    texts = {name: (PAGE / "vendor" / name).read_bytes() for name in digests}
    texts["preact-hooks.js"] = texts["preact-hooks.js"].replace(b'"/static/vendor/preact.js"', b'"preact"')
    assert {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()} == digests
    assert sum(path.stat().st_size for path in PAGE.rglob("*") if path.is_file()) < 245_000


@pytest.mark.parametrize("is_there", [False, True])
def test_the_server_says_where_it_is_and_ends_with_ctrl_c(tmp_path, is_there):
    run, game = tmp_path / "run", ["tic-tac-toe"]
    if is_there:  # and names the game
        small_run(run, *game)
        game = []
    command = [sys.executable, "-m", "plyzero", "serve", *game, "--run", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            said = server.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"<title>plyzero</title>" in answer.read()
            assert f"; Watch {run} on {address}run ; " in said
            with urllib.request.urlopen(f"{address}run", timeout=60) as answer:
                assert b"<title>Run" in answer.read()
            os.kill(server.pid, signal.SIGINT)
            assert server.wait(60) in (0, 130)
            assert "Traceback" not in server.stderr.read()
        finally:
            server.kill()


def test_a_visitor_whom_the_end_of_the_server_cuts_short_is_told(caplog):
    begun = threading.Event()

    async def endless(request):
        begun.set()
        await asyncio.Event().wait()

    routes = [Route("/api/endless", endless)]
    app = connections.guarded(routes, (), lifespan=lambda app: nullcontext(), end_streams=lambda: None)
    with ThreadPoolExecutor() as visitors:
        with serving(app) as found:
            answer = visitors.submit(get, found, "/api/endless")
            assert begun.wait(60)
        assert answer.result() == (503, {"error": "the server has ended"})
    assert not [record for record in caplog.records if record.exc_info]
