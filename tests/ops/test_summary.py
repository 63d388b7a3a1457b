"""A run in two lines: what it has reached and whether it learns, what it waits for and what is left."""

from pathlib import Path
from typing import Any

import pytest

from plyzero.kits.web.run_state import Dashboard
from plyzero.ops.status import snapshot
from plyzero.ops.summary import (
    FirstModel,
    describe_first_model,
    describe_games,
    describe_learning,
    describe_rest,
    first_model,
    first_model_bar,
    summarize_files,
)
from plyzero.run.directory import Run, open_run
from plyzero.run.events import Progress, Scores, parse_scores
from plyzero.run.metrics import TRAINER, Heartbeat, append_line
from plyzero.run.view import RunView
from tests.helpers.beats import beat_of
from tests.helpers.cli import plyzero
from tests.helpers.runs import small_run

MODEL = "000001-000001200-0123abcd.onnx"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r")


def rated(*scores: tuple[float, list[int]]) -> list[Scores | None]:
    """Scores, from time and counts against mcts:100; the first also has some against others."""
    lines: list[Any] = [{"model": MODEL, "time": time, "scores": {"mcts:100": counts}} for time, counts in scores]
    lines[0]["scores"] |= {"random": [20, 0, 0], "mcts:5": [20, 0, 0]}
    return [*map(parse_scores, lines)]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([(0, [6, 0, 14]), (300, [8, 0, 12]), (1000, [14, 0, 6])], "Learning: 70 % (48 % to 85 %)"),
        ([(0, [12, 0, 8]), (1000, [13, 0, 7])], "No clear change: 65 %"),
        ([(0, [12, 0, 8]), (1000, [5, 0, 15])], "Worse than before: 25 %"),
        ([(0, [12, 0, 8])], "Measured: 60 % (39 % to 78 %) against pure MCTS (100 random games a move)."),
    ],
)
def test_one_sentence_says_whether_a_run_learns(scores: list[tuple[float, list[int]]], words: str):
    said = describe_learning(rated(*scores), 2000, 1000)
    assert said.startswith(words)
    assert words[0] != "L" or said.endswith("against pure MCTS (100 random games a move), was 40 % 12 minutes ago.")


def test_nothing_is_judged_before_the_network_can_have_learned():
    assert describe_learning([], 999, 1000) == "Learning is judged from step 1000 on."
    assert describe_learning([], 1000, 1000) == "Not measured yet."


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({}, "it goes on until it is stopped"),
        ({"steps": 2400}, "about 10 min left to the budget of 2,400 steps"),
        ({"until": "score >= 0.9 against mcts:100"}, "the budget is score >= 0.9 against mcts:100"),
        (
            {"games": 1000, "until": "score >= 0.9 against mcts:100"},
            "about 10 min left to the budget of 1,000 games or score >= 0.9 against mcts:100",
        ),
    ],
)
def test_what_is_left_is_that_of_the_trainers_budget(run: Run, budget: dict[str, Any], words: str):
    other = open_run(run.root, options=["budget.steps=7"])
    assert describe_rest(other, Progress(step=1200, games=500, minutes=10, budget=budget)) == words


def test_the_first_model_is_counted_in_positions_and_then_in_steps(run: Run):
    settings, nothing = run.settings, Progress()
    said = describe_first_model(settings, made=164, trainer=nothing)
    assert said == "first model after 200 positions: 164 so far"
    learning = Progress(bootstrap_positions=210, credit=768, trained_positions=32)
    assert describe_first_model(settings, made=210, trainer=learning) == "first model: step 1 of 25, from 210 positions"
    early = Progress(bootstrap_positions=60, credit=160, trained_positions=32)  # the games are slow
    assert describe_first_model(settings, made=60, trainer=early) == "first model: step 1 of 6, from 60 positions"


def test_where_the_trainer_waits_for_fewer_positions_these_are_counted(run: Run):
    waiting = Progress(bootstrap_positions=20, state="waiting for 60 positions, about 9 s")
    assert first_model(run.settings, made=50, trainer=waiting) == ("positions", 50, 80)
    early = Progress(bootstrap_positions=80, trained_positions=64, credit=160, state="training")
    assert first_model(run.settings, made=90, trainer=early).counted == "steps"


def test_positions_of_games_under_way_are_a_part_of_the_bar():
    counted = FirstModel("positions", 50, 200)
    assert first_model_bar(counted, 30) == ("first model", 0.25, 0.15, "50 of 200 positions")
    assert first_model_bar(counted, 400, minutes=2.2) == (
        "first model",
        0.25,
        0.75,
        "50 of 200 positions, about 2 min left",
    )
    assert first_model_bar(FirstModel("steps", 3, 64), 30) == ("first model", 3 / 64, 0, "step 3 of 64")


def test_games_under_way_are_told_with_their_plies():
    under_way = ({"games_under_way": 64, "plies_under_way": 2500}, {"games_under_way": 36}, {})
    workers = [beat_of("selfplay", **each) for each in under_way]
    assert describe_games(workers) == "100 games under way, 25 plies each so far"
    assert describe_games([]) == ""


def test_status_dashboard_and_logs_begin_with_the_same_two_lines(run: Run, caplog: pytest.LogCaptureFixture):
    assert summarize_files(run) == (
        "No model yet. First model after 200 positions: 0 so far.",
        "It goes on until it is stopped.",
    )
    append_line(run.metrics / "rating.jsonl", {"model": MODEL, "scores": {"mcts:100": [12, 0, 8]}})
    beat = {"role": TRAINER, "state": "stopped", "step": 1200, "games": 4586, "positions": 90_000, "minutes": 12.0}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(beat | {"budget": {"steps": 1200}, "done": "1,200 steps"})
    lines = (
        "Step 1,200 after 4,586 games and 12 min. "
        "Measured: 60 % (39 % to 78 %) against pure MCTS (100 random games a move).",
        "END, 1,200 steps reached: step 1200, 4586 games with 90000 positions in 12.0 min.",
    )
    view = RunView(run)
    view.refresh()
    assert (*snapshot(view)["summary"],) == lines
    assert Dashboard(run, at_once=True).state()["summary"] == [*lines]
    assert plyzero("status", "--run", str(run.root)).stdout.splitlines()[:2] == [*lines]
    assert summarize_files(run)[0] == lines[0]
    with caplog.at_level("INFO"):
        assert plyzero("selfplay", "--run", str(run.root)).returncode == 0
    assert caplog.messages[:2] == [lines[0], "The training is over: 1,200 steps reached."]
    assert caplog.messages[-1] == "done: 1,200 steps; to continue, start it with a trainer that has a larger budget"
