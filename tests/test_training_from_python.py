"""plyzero.train: one call from Python, with a class that only the calling process has."""

import subprocess
import sys
from pathlib import Path

import pytest

import plyzero
from plyzero.check.template import tic_tac_toe
from plyzero.run.directory import read_run
from tests.helpers.runs import SMALL

RULES = Path(tic_tac_toe.__file__).read_text()
CALL = """
import sys
import plyzero

reports = []
settings = sys.argv[2].split()
bot = plyzero.train(TicTacToe, run=sys.argv[1], workers=1, steps=30, settings=settings)
again = plyzero.train(TicTacToe, run=sys.argv[1], workers=1, steps=30, settings=settings, on_report=reports.append)
assert reports == []
result = again.evaluate("random", games=20)
print()
print(bot.game.name, bot.name == again.name, result.games)
"""


def test_a_training_without_an_end_or_a_game_is_refused(tmp_path: Path):
    with pytest.raises(plyzero.UserError, match="expected a budget: steps, games, positions, minutes or until"):
        plyzero.train("tic-tac-toe", run=tmp_path / "r")
    with pytest.raises(plyzero.UserError, match="'tictactoe' is not an installed game"):
        plyzero.train("tictactoe", run=tmp_path / "r", steps=1)
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_a_class_that_no_file_holds_is_trained_and_evaluated(tmp_path: Path):
    options = " ".join((*SMALL, "rating.games=2"))
    command = [sys.executable, "-c", RULES + CALL, str(tmp_path / "r"), options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, progress, last = done.stdout.strip().splitlines()
    assert "100%  step 30, " in done.stdout, progress
    assert last == "__main__:TicTacToe True 20"
    assert read_run(tmp_path / "r").identity == "__main__:TicTacToe v1"
