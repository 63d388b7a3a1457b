"""Before the search of a server is prepared: positions and moves of bots, the process that makes them, its end."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.kits.web import answers, preparation
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.preparation import PlainSearch
from plyzero.kits.web.searches import LeftError
from plyzero.kits.web.server import make_app
from plyzero.play.clock import Clock
from plyzero.rules import compiled_game
from plyzero.rules.catalog import GameSpec, load_game
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import is_running, wait_until
from tests.helpers.toys import Branching, variant
from tests.helpers.web import events, get, hold_back_preparation, serving, wait_until_ready

ROOT = Path(__file__).parents[3]


@pytest.fixture
def prepare(monkeypatch):
    """Hold back the first search of every server. Return the event that lets it go on."""
    return hold_back_preparation(monkeypatch)


@contextmanager
def nothing_compiled(monkeypatch):
    """Let everything fail for which the server itself would need machine code."""

    def fail(*_, **__):
        raise AssertionError("this needs machine code")

    with monkeypatch.context() as patched:
        patched.setattr(answers, "search_position", fail)
        patched.setattr(compiled_game, "compile_rules", fail)
        yield


@pytest.mark.parametrize(
    ("name", "player"),
    [
        ("connect-four", "level:9"),
        ("connect-four", "mcts:100"),
        ("go(size=9)", "level:1"),
        ("backgammon", "level:7"),
        ("backgammon", "mcts:100"),
        ("tests.helpers.toys:Relay", "mcts:100"),
    ],
)
def test_bots_move_before_the_search_is_prepared_and_then_with_all_their_simulations(
    name, player, prepare, monkeypatch
):
    game = load_game(name)
    with serving(make_app(game, Opponents(game))) as address:
        with nothing_compiled(monkeypatch):
            about = get(address, "/api/about")[1]
            assert (about["ready"], about["playsMeanwhile"]) == (False, True)
            position = get(address, "/api/position")[1]
            moves = [*position["moves"], position["legal"][0]["name"]]
            position = get(address, "/api/position", moves=" ".join(moves))[1]
            legal = [each["name"] for each in position["legal"]]
            moves = " ".join(position["moves"])
            chosen = events(address, "/api/think", moves=moves, player=player)[-1]
            assert chosen["choice"] in legal
        prepare.set()
        assert not wait_until_ready(address)["playsMeanwhile"]
        searched = []
        original = answers.search_position
        monkeypatch.setattr(
            answers, "search_position", lambda bot, *rest, **more: searched.append(bot) or original(bot, *rest, **more)
        )
        assert events(address, "/api/think", moves=moves, player=player)[-1]["choice"] in legal
        [bot] = searched
        assert bot.simulations == Opponents(game).find(player).simulations
        assert bot.clock is None


def test_the_network_of_a_run_moves_before_the_search_is_prepared(tmp_path, prepare, monkeypatch):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    add_model(run, step=12)
    with serving(make_app(run.game, Opponents(run.game, run=run.root), run=run)) as address:
        with nothing_compiled(monkeypatch):
            for step in ("", "12"):
                chosen = events(address, "/api/think", moves="a1 b1 a2 b2", player="net:64", step=step)[-1]
                assert chosen["choice"] in ("c1", "c2", "a3", "b3", "c3")
            wrong = events(address, "/api/think", player="net:64", step="13")[-1]
            assert "13" in wrong["error"]
        prepare.set()
        wait_until_ready(address)


def test_a_position_that_is_set_up_and_a_bot_under_a_clock_need_no_preparation(prepare, monkeypatch):
    game = load_game("tic-tac-toe")
    start = " 1 x . .\n 2 . o .\n 3 . . .\n   a b c"
    opponents = Opponents(game, others=["mcts:50", "greedy"], clock=Clock(per_move=100.0))
    with serving(make_app(game, opponents)) as address:
        assert get(address, "/api/position", start=start)[0] == 200
        with nothing_compiled(monkeypatch):
            for player in ("mcts:50", "clock"):
                chosen = events(address, "/api/think", start=start, moves="c3", player=player)[-1]
                assert chosen["choice"] in ("b1", "c1", "a2", "c2", "a3", "b3")
        assert not opponents.is_bot("greedy")
        assert opponents.as_fields()["others"] == ["mcts:50"]
        prepare.set()
        wait_until_ready(address)


FAILS = """
from tests.helpers.toys import Branching

class Fails(Branching, version=1):
    def legal_actions(self):
        if self.moves == (0, 1):
            raise ValueError("no moves")
        return super().legal_actions()
"""


def test_own_rules_that_fail_are_named_before_the_search_is_prepared(prepare, monkeypatch, tmp_path):
    (tmp_path / "failing_rules.py").write_text(FAILS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    game = load_game("failing_rules:Fails")
    with serving(make_app(game, Opponents(game))) as address:
        with nothing_compiled(monkeypatch):
            failed = events(address, "/api/think", moves="0", player="mcts:100")[-1]
            assert get(address, "/api/about")[1]["playsMeanwhile"]  # it goes on
        line = FAILS.splitlines().index('            raise ValueError("no moves")') + 1
        assert failed["error"].startswith("the search has failed: ValueError: no moves (failing_rules.py, line ")
        assert f"line {line}, in legal_actions" in failed["error"]
        prepare.set()
        wait_until_ready(address)
    sys.modules.pop("failing_rules")


def test_without_the_other_process_the_server_searches(prepare):
    game = GameSpec("nowhere:Nothing", variant(Branching)())  # which no other process can find
    with serving(make_app(game, Opponents(game))) as address:
        assert "choice" in events(address, "/api/think", player="mcts:100")[-1]
        wait_until(lambda: not get(address, "/api/about")[1]["playsMeanwhile"])
        prepare.set()
        wait_until_ready(address)


def test_there_is_no_other_process_where_machine_code_is_on_disk(prepare, monkeypatch):
    begun = []
    monkeypatch.setattr(preparation, "is_compiled", lambda: True)
    monkeypatch.setattr(preparation, "PlainSearch", begun.append)
    monkeypatch.setattr(preparation, "MOMENT", 300.0)
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game))) as address:
        assert not get(address, "/api/about")[1]["playsMeanwhile"]
        prepare.set()
        wait_until_ready(address)
    assert begun == []


def test_the_other_process_begins_after_a_moment_where_the_rules_alone_are_compiled(prepare, monkeypatch):
    monkeypatch.setattr(preparation, "is_compiled", lambda: True)
    monkeypatch.setattr(preparation, "MOMENT", 0.0)
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game))) as address:
        wait_until(lambda: get(address, "/api/about")[1]["playsMeanwhile"])
        prepare.set()
        assert not wait_until_ready(address)["playsMeanwhile"]


def test_an_answer_for_nobody_is_not_taken_for_the_next_one():
    plain = PlainSearch(Opponents(load_game("tic-tac-toe")))
    asked = {"player": "level:4", "step": "", "start": "", "moves": ""}

    def leave(event):
        raise LeftError

    with pytest.raises(LeftError):  # the process has only begun
        plain.search(asked, leave)
    with pytest.raises(UserError, match="expected a player, one of"):
        plain.search({**asked, "player": "mcts:12345"}, lambda event: None)
    assert plain.search({**asked, "moves": "a1 b1 a2 b2"}, lambda event: None)["choice"] == "a3"
    plain.end()
    assert not plain.is_running()
    assert plain.search(asked, lambda event: None) is None


SERVE = """
import sys, threading
from plyzero.commands.cli import main
from plyzero.kits.web import preparation

preparation.is_compiled = lambda: False
preparation.first_search = lambda *_, **__: threading.Event().wait()
sys.argv = ["plyzero", "serve", "tic-tac-toe", "--port", "0"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_running_when_a_server_ends_that_prepares_its_search(number):
    with subprocess.Popen([sys.executable, "-c", SERVE], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        address = re.search(r"http://\S+", server.stdout.readline())[0].rstrip("/")
        with urllib.request.urlopen(f"{address}/api/about", timeout=60):
            [child] = children_of(server.pid)
        server.send_signal(number)
        server.wait(60)
    wait_until(lambda: not is_running(child))


def children_of(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for path in lists for each in path.read_text().split()]


def test_what_bots_search_with_in_the_other_process_needs_no_torch():
    code = "import sys, plyzero.kits.web.preparation, plyzero.kits.web.opponents; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "False\n"
