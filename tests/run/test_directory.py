"""The run directory: where it is."""

import os
from pathlib import Path

import pytest

from plyzero.rules.catalog import load_game
from plyzero.run.directory import create_run, open_run
from tests.helpers.runs import SMALL, play_segment

RULES = """
import os
from plyzero.check.template.tic_tac_toe import TicTacToe

os.chdir("elsewhere")

class Leaves(TicTacToe):
    def outcome(self):
        os.chdir("/")
        return super().outcome()
"""


def test_rules_may_leave_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "leaves_cwd.py").write_text(RULES)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    game = load_game("leaves_cwd:Leaves")
    assert os.getcwd() == str(tmp_path)
    run = create_run(Path("runs/first"), game, options=SMALL)
    play_segment(run, full=1)
    assert os.getcwd() == "/"
    monkeypatch.chdir(tmp_path)
    (segment,) = open_run(Path("runs/first")).segments.iterdir()
    assert segment.parent == tmp_path / "runs/first/replay"
    assert [*(tmp_path / "elsewhere").iterdir()] == []
