"""The task train: its curves from a planted run, what a training that was killed still needs, and a real one."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from plyzero import __version__
from plyzero.errors import UserError
from plyzero.kits.experiments.tasks import train as task
from plyzero.kits.experiments.tasks.results import TRAIN_COLUMNS
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run
from plyzero.run.metrics import append_line
from plyzero.run.models import publish_model
from tests.helpers.experiments import rows_of

FIELDS = {"games": 10, "positions": 80, "replay_ratio": 1.5, "policy_learned": 0.25, "value_learned": None}
SHARES = {"won": [0.5, 0.25], "drawn": 0.25}


def publish(run: Run, fence: int, step: int, seconds: float, **fields: Any) -> str:
    """Publish a model as the trainer does, and write its line."""
    name = str(publish_model(run.models, f"model {fence} {step}".encode(), fence=fence, step=step))
    line = {"step": step, "seconds": seconds, "policy_loss": 0.5, "value_loss": None, **FIELDS, **SHARES, **fields}
    append_line(run.metrics / f"trainer-{fence:06d}.jsonl", {**line, "model": name})
    return name


def rate(run: Run, model: str, **scores: list[int]):
    append_line(run.metrics / "rating.jsonl", {"model": model, "scores": scores})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run-00"


@pytest.fixture
def run(root: Path) -> Run:
    return create_run(root / "train/run", load_game("tic-tac-toe"), seed=7)


@pytest.fixture
def popen(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """In place of the child process, which succeeds and does nothing."""
    made = Mock(**{"return_value.wait.return_value": 0})
    monkeypatch.setattr(task.subprocess, "Popen", made)
    return made


def run_task(root: Path, **options: Any):
    arguments = {"game": "tic-tac-toe", "minutes": 1.0, "seed": 7, "group": "g", **options}
    task.train(root, root / "train", report=lambda text: None, **arguments)


def test_the_curve_has_a_row_and_a_score_for_each_model(root: Path, run: Run):
    publish(run, 1, 100, 10.04)
    model = publish(run, 1, 200, 20.0, policy_loss=0.25, games=30.0)
    append_line(run.metrics / "trainer-000001.jsonl", {"step": 250, "seconds": 55.0, "games": 40})  # no model
    rate(run, model, random=[20, 0, 0], **{"mcts:100": [8, 2, 10]})
    publish(run, 2, 300, 30.0)
    rows = task.curve(run)
    assert [row["step"] for row in rows] == [100, 200, 300]
    assert [row["seconds"] for row in rows] == [10.0, 20.0, 85.0]
    expected = {"games": 30, "positions": 80, "replay_ratio": 1.5, "policy_loss": 0.25, "value_loss": None}
    expected |= {"policy_learned": 0.25, "value_learned": None, "first_won": 0.5, "second_won": 0.25, "drawn": 0.25}
    assert rows[1].items() >= expected.items()
    # Wilson's interval of 9 points in 20 games
    assert [rows[1][name] for name in ("score", "score_low", "score_high")] == [0.45, 0.2582, 0.6579]
    assert "score" not in rows[0]
    assert {*rows[1]} <= {*TRAIN_COLUMNS}


def test_steps_increase_although_a_second_trainer_went_on_from_an_older_step(run: Run):
    for step, seconds in ((100, 10.0), (200, 20.0), (300, 30.0)):
        publish(run, 1, step, seconds)
    for step, seconds in ((150, 5.0), (250, 15.0), (350, 25.0)):
        publish(run, 2, step, seconds, policy_loss=0.125)
    rows = task.curve(run)
    assert [row["step"] for row in rows] == [100, 150, 250, 350]
    assert [row["seconds"] for row in rows] == [10.0, 35.0, 45.0, 55.0]  # the lost steps took their time
    assert [row["policy_loss"] for row in rows] == [0.5, 0.125, 0.125, 0.125]


def test_a_step_that_was_published_twice_is_there_once(run: Run):
    publish(run, 1, 100, 10.0)
    publish(run, 2, 100, 5.0, policy_loss=None)
    assert [(row["step"], row["policy_loss"]) for row in task.curve(run)] == [(100, None)]


def test_a_new_run_trains_all_its_minutes_and_leaves_its_files(root: Path, popen: Mock):
    def works() -> int:
        made = create_run(root / "train/run", load_game("tic-tac-toe"), seed=7)
        publish(made, 1, 100, 30.0)
        rate(made, publish(made, 1, 200, 60.0), random=[20, 0, 0], **{"mcts:100": [17, 3, 0]})
        return 0

    popen.return_value.wait = works
    settings = "selfplay.simulations=32  search.c_puct=2"
    run_task(root, settings=settings, workers=3, device="cpu")
    [((command,), options)] = popen.call_args_list
    assert options == {"stdin": subprocess.DEVNULL}
    assert command[0] == sys.executable
    words = f"-P -m plyzero train tic-tac-toe --run {root}/train/run --minutes 1.0 --seed 7 --preset quick --device cpu"
    assert command[1:] == f"{words} --workers 3 -o selfplay.simulations=32 -o search.c_puct=2".split()
    out, sha256 = root / "train", hashlib.sha256(b"model 1 200").hexdigest()
    assert (out / "agent.onnx").read_bytes() == b"model 1 200"
    assert (out / "values/score").read_text() == "0.925\n"
    about = {"version": 1, "plyzero": __version__, "game": "tic-tac-toe v1", "step": 200, "score": 0.925}
    given = {"seed": 7, "group": "g", "settings": settings, "preset": "quick", "minutes": 1.0, "steps": 0, "until": ""}
    assert json.loads((out / "card.json").read_text()) == about | given | {"sha256": sha256}
    rows = rows_of(out / "train.csv")
    assert [*rows[0]] == [*TRAIN_COLUMNS]
    found = [(row["run"], row["group"], row["step"], row["score"]) for row in rows]
    assert found == [("run-00", "g", "100", ""), ("run-00", "g", "200", "0.925")]


def test_a_training_that_was_killed_goes_on_with_the_same_command(root: Path, run: Run, popen: Mock):
    rate(run, publish(run, 1, 100, 12.0), random=[1, 0, 1])
    for _ in range(2):
        run_task(root, steps=300, until="score >= 0.9 against mcts:100")
    command, again = (call.args[0] for call in popen.call_args_list)
    assert command == again
    limits = ["--minutes", "1.0", "--steps", "300", "--until", "score >= 0.9 against mcts:100"]
    assert command[8:14] == limits
    assert command[14:18] == ["--seed", "7", "--preset", "quick"]  # which plyzero train accepts if they are the same


def test_a_training_that_fails_leaves_no_card(root: Path, popen: Mock):
    popen.return_value.wait.return_value = 3
    with pytest.raises(SystemExit, match="3"):
        run_task(root)
    assert not (root / "train/card.json").exists()


def test_a_run_without_a_model_or_a_rating_is_an_error(root: Path, run: Run, popen: Mock):
    with pytest.raises(UserError, match="has no model: its training was stopped before; the same"):
        run_task(root)
    publish(run, 1, 100, 59.5)
    with pytest.raises(UserError, match="has no rating of a model: its training was stopped before; the same"):
        run_task(root)
    assert not (root / "train/agent.onnx").exists()
