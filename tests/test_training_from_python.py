"""plyzero.train: one call from Python, with a class that only the calling process has."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import plyzero
from plyzero.run.directory import read_run
from tests.helpers.surroundings import python

NOTEBOOK = Path(__file__).parent.parent / "examples" / "train_a_game.ipynb"


def test_a_training_without_an_end_or_a_game_is_refused(tmp_path: Path):
    with pytest.raises(plyzero.UserError, match="expected a budget: steps, games, positions, minutes or until"):
        plyzero.train("tic-tac-toe", run=tmp_path / "r")
    with pytest.raises(plyzero.UserError, match="'tictactoe' is not an installed game"):
        plyzero.train("tictactoe", run=tmp_path / "r", steps=1)
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_the_notebook_trains_and_evaluates_a_class_that_no_file_holds(tmp_path: Path):
    progress, match, best = executed(tmp_path)
    (written,) = tmp_path.glob("*.ipynb")
    assert "policy loss" in written.read_text()
    assert re.fullmatch(r"\[#{30}\] 100%  step 300, .*", progress)  # one line, not one for each model
    assert match.startswith("games  won  drawn  lost  score")
    assert best == "take 3, value 1.00\n"
    assert read_run(tmp_path / "runs" / "nim").identity == "__main__:Nim v1"
    assert executed(tmp_path) == [match, best]  # the budget is reached: there is no progress


def executed(folder: Path) -> list[str]:
    """Execute the notebook in a folder. Return what its cells print; the last one shows a table, training a chart."""
    copy = shutil.copy(NOTEBOOK, folder)
    python("-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", copy)
    cells = json.loads(Path(copy).read_text())["cells"]
    assert "<th>visits</th>" in "".join(cells[-1]["outputs"][0]["data"]["text/html"])
    printed = ["".join(text for output in cell.get("outputs", ()) for text in text_of(output)) for cell in cells[:-1]]
    return [text for text in printed if text]


def text_of(output: dict[str, Any]) -> list[str]:
    """Return what an output prints, or shows as text alone, in lines."""
    shown = output.get("data", {})
    return output.get("text") or (shown["text/plain"] if [*shown] == ["text/plain"] else [])
