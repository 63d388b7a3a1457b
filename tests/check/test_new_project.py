"""`plyzero new`: a project that works at once, outside of this repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plyzero.check.new_project import MAX_KNOWN_MOVES, TEMPLATE, known_ends, make_project
from plyzero.errors import UserError
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Outcome
from plyzero.rules.notation import play_named
from tests.helpers.cli import shown

TIC_TAC_TOE = (TEMPLATE / "tic_tac_toe.py").read_text()


def run_tests(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # which saves a second
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_new_project_has_rules_tests_and_a_readme_under_its_own_name(tmp_path: Path):
    root = make_project(tmp_path, "dots-and-boxes")
    assert sorted(path.name for path in root.iterdir()) == ["README.md", "dots_and_boxes.py", "test_dots_and_boxes.py"]
    text = "".join(path.read_text() for path in root.iterdir())
    assert "class DotsAndBoxes(Game, version=1):" in text
    assert "plyzero check dots_and_boxes:DotsAndBoxes " in text
    assert not {"my_module", "game_name", "TicTacToe"} & set(text.replace("(", " ").replace(":", " ").split())


def test_its_tests_are_green_at_once_and_its_rules_keep_the_laws(tmp_path: Path):
    root = make_project(tmp_path, "my-game")
    done = run_tests(root)
    assert done.returncode == 0, done.stdout
    assert "37 passed" in done.stdout
    assert shown("check", "my_game:MyGame", "--games", "2", cwd=root).startswith("my_game:MyGame v1: 20 laws hold")


def test_a_game_that_is_rewritten_has_its_numbers_and_is_compared_with_the_original(tmp_path: Path):
    shown("new", "noughts", "--from", "tic-tac-toe", cwd=tmp_path)
    rules = tmp_path / "noughts" / "noughts.py"
    assert "num_actions = 9\n    observation_shape = (2, 3, 3)\n    max_plies = 9\n" in rules.read_text()
    done = run_tests(rules.parent, "-k", "agree_with_the_original")
    assert done.returncode == 1
    assert "NotImplementedError" in done.stdout
    rules.write_text(TIC_TAC_TOE.replace("TicTacToe", "Noughts"))
    done = run_tests(rules.parent, "-k", "original")
    assert "5 passed" in done.stdout  # random games, and games that are known to end in each of four ways
    rules.write_text(rules.read_text().replace("winner=None", "winner=0"))
    done = run_tests(rules.parent, "-k", "known")
    assert "Outcome(winner=0) == Outcome(winner=None)" in done.stdout
    assert "1 failed, 3 passed" in done.stdout


@pytest.mark.parametrize(("name", "count"), [("tests.helpers.dice:PlainRace", 3), ("backgammon", 4)])
def test_known_ends_are_short_games_with_their_rolls_and_end_as_they_say(name: str, count: int):
    game = load_game(name)
    cases = eval(f"[{known_ends(game)}]", {"Outcome": Outcome})
    assert len(cases) == count
    for moves, outcome in cases:
        assert len(moves.split()) <= MAX_KNOWN_MOVES
        assert play_named(game.start, moves.split())[0][-1].outcome() == outcome


def test_its_tests_notice_a_broken_rule(tmp_path: Path):
    root = make_project(tmp_path, "my-game")
    rules = root / "my_game.py"
    rules.write_text(rules.read_text().replace("after = copy.copy(self)", "after = self"))
    done = run_tests(root, "-k", "play")
    assert done.returncode == 1
    assert "broken law play_makes_a_new_position" in done.stdout


@pytest.mark.parametrize("name", ["", "2048", "a b", "a/b", "../x", "json", "numpy", "games", "if"])
def test_a_name_that_python_could_not_import_is_refused(tmp_path: Path, name: str):
    with pytest.raises(UserError, match=r"expected a name such as my-game|would be the module"):
        make_project(tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_what_is_there_already_stays_as_it_is(tmp_path: Path):
    (tmp_path / "my-game").mkdir()
    (tmp_path / "my-game" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="exists already and was not changed"):
        make_project(tmp_path, "my-game")
    assert [path.name for path in (tmp_path / "my-game").iterdir()] == ["notes.txt"]
