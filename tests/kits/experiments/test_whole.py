"""The shipped experiment from its command to its page, without a network and without standard input."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from plyzero.kits.experiments.tasks.results import AVERAGE_COLUMNS, AVERAGE_SCORES, EVAL_COLUMNS, TRAIN_COLUMNS
from plyzero.network.model_loader import load_network
from plyzero.rules.catalog import load_game
from tests.helpers.runs import SMALL

RUNS = ("run-00", "run-01")


def offline() -> list[str]:
    """The beginning of a command that is given no network, where that is possible."""
    words = ["unshare", "--net"]
    possible = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if possible and possible.returncode == 0 else []


def rows_of(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    with path.open() as file:
        reader = csv.DictReader(file)
        rows = [*reader]
    assert reader.fieldnames == [*columns]
    return rows


@pytest.mark.slow
def test_one_command_trains_evaluates_and_averages_and_again_does_nothing(tmp_path: Path):
    out = tmp_path / "ttt"
    options = ["runs=2", "steps=20", "games=10", "ladder_games=10", "opponents=random", "opponents=mcts:20"]
    options += ["workers=1", f"settings={' '.join((*SMALL, 'rating.games=4'))}"]
    command = [*offline(), sys.executable, "-m", "plyzero", "experiment", "run", "tic-tac-toe", "--out", str(out)]
    command += [part for each in options for part in ("-p", each)]
    first = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"14 of 14 tasks are done; results: {out}/index.html\n"

    game = load_game("tic-tac-toe")
    for run in RUNS:
        card = json.loads((out / run / "train/card.json").read_text())
        assert load_network(out / run / "train/agent.onnx", game).label
        steps = [int(row["step"]) for row in rows_of(out / run / "train/train.csv", TRAIN_COLUMNS)]
        assert steps == sorted({*steps})
        assert steps[-1] == card["step"] > 0
        results = rows_of(out / run / "evaluate/eval.csv", EVAL_COLUMNS)
        assert [row["opponent"] for row in results] == ["random", "mcts:20", *RUNS[: RUNS.index(run)]]
        assert all(float(row["low"]) <= float(row["score"]) <= float(row["high"]) for row in results)
        games = [json.loads(line) for line in (out / run / "examples/games.jsonl").read_text().splitlines()]
        assert len(games) == 2
    plots = [f"{run}/{plot}" for run in RUNS for plot in ("train-plots/train.png", "eval-plots/eval.png")]
    for path in (*plots, "average-plots/train.png", "average-plots/eval.png", "ladder/ratings.png"):
        with Image.open(out / path) as picture:
            picture.load()
            assert picture.format == "PNG"
    assert max(int(row["policy_loss_n"]) for row in rows_of(out / "average/train.csv", AVERAGE_COLUMNS)) == 2
    assert [row["runs"] for row in rows_of(out / "average/eval.csv", AVERAGE_SCORES)] == ["2", "2"]
    page = (out / "index.html").read_text()
    assert not re.search(r"(src|href)=.(https?:)?//|<script", page)
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(links) > 40
    assert all((out / link).exists() for link in links)
    assert "missing" not in re.sub(r"missing\.json|\.missing", "", page)

    again = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert again.stdout == f"nothing to do: 14 of 14 tasks are done; results: {out}/index.html\n"
    assert os.listdir(tmp_path) == ["ttt"]
