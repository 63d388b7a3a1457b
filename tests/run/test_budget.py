"""The budget of a run: what reaches it, what the trainer and the workers then do, and the same command again."""

import threading
from types import SimpleNamespace

import pytest

from plyzero.errors import UserError
from plyzero.run.budget import (
    describe_end,
    describe_left,
    find_reached,
    how_to_continue,
    measured_opponents,
    read_done,
    share_used,
)
from plyzero.run.configuration import resolve
from plyzero.run.directory import Run, open_run
from plyzero.run.events import Progress
from plyzero.run.metrics import TRAINER, Heartbeat, append_line
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments
from plyzero.selfplay.worker import run_worker
from plyzero.settings import BudgetSettings, RatingSettings
from plyzero.trainer.loop import run_trainer
from tests.helpers.beats import fields_of
from tests.helpers.cli import plyzero, shown
from tests.helpers.clock import Clock
from tests.helpers.learning import training
from tests.helpers.runs import play_segment, playing

SCORE = {"quantity": "score against mcts:100", "least": 0.9, "first": 0.95}
SCORE |= {"value": 0.93, "low": 0.905, "high": 0.96, "games": 120, "reached": True}
POINTS = SCORE | {"quantity": "points against mcts:100", "least": 2.0, "first": 2.5}
POINTS |= {"value": 2.25, "low": 2.0, "high": 2.5}
CONFIRMED = {each["quantity"]: each for each in (SCORE, POINTS)}
PROGRESS = Progress(step=300, games=40, positions=1500, minutes=2.5, confirmed=CONFIRMED, done="300 steps")


@pytest.mark.parametrize(
    ("budget", "reached"),
    [
        ({}, ""),
        ({"steps": 300}, "300 steps"),
        ({"steps": 301}, ""),
        ({"games": 40, "minutes": 9}, "40 games"),
        ({"positions": 1500}, "1,500 positions"),
        ({"minutes": 2.5}, "2.5 minutes of training since the first game"),
        ({"minutes": 2.6, "steps": 301, "until": "score >= 0.91 against mcts:100"}, ""),
        (
            {"until": "score>=.9 against mcts:100"},
            "score 0.95, then 0.93 (0.91 to 0.96) in 120 more games, against mcts:100",
        ),
        (
            {"until": "score>=.8 against mcts:100"},
            "score 0.95, then 0.93 (0.91 to 0.96) in 120 more games, against mcts:100",
        ),
        ({"until": "score >= 0.1 against random"}, ""),
        (
            {"until": "points >= 2 against mcts:100"},
            "points 2.50, then 2.25 (2.00 to 2.50) in 120 more games, against mcts:100",
        ),
        ({"until": "points >= 2.5 against mcts:100"}, ""),
        ({"until": "points >= 2 against random"}, ""),
    ],
)
def test_a_budget_is_reached_by_the_first_of_its_parts(budget: dict, reached: str):
    found = find_reached(BudgetSettings(**budget), PROGRESS)
    assert (found.text if found else "") == reached
    assert find_reached(BudgetSettings(**budget), Progress()) is None


@pytest.mark.parametrize(
    ("budget", "share", "left"),
    [
        ({}, 0.0, ""),
        ({"until": "score >= 0.95 against mcts:100"}, 0.0, ""),
        ({"steps": 1200}, 0.25, "about 8 min left to the budget"),  # 2.5 minutes for each quarter
        ({"steps": 1200, "minutes": 5}, 0.5, "about 2 min left to the budget"),
        ({"games": 10}, 1.0, "less than a minute left to the budget"),
    ],
)
def test_the_time_left_is_that_of_the_part_that_is_used_most(budget: dict, share: float, left: str):
    found = BudgetSettings(**budget)
    assert (share_used(found, PROGRESS), describe_left(found, PROGRESS)) == (share, left)
    assert (share_used(found, Progress()), describe_left(found, Progress())) == (0.0, "")


def test_the_last_line_has_the_sums():
    expected = "END, 300 steps reached: step 300, 40 games with 1500 positions in 2.5 min"
    assert describe_end(PROGRESS) == expected


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("until=score >= 1.2 against mcts:100", "expected a score above 0 and at most 1, and an opponent: score >="),
        ("until=score > 0.9 against mcts:100", "expected a score above 0 and at most 1"),
        (
            "until=score >= 0.9 against gnugo",
            "expected a player such as random, mcts:100, bot:3, my_agent:MyAgent or gtp:",
        ),
        ("steps=0", "greater than or equal to 1"),
        ("minutes=0", "greater than 0"),
    ],
)
def test_a_budget_that_cannot_be_reached_is_refused(option: str, says: str):
    with pytest.raises(UserError, match="budget.*" + says):
        resolve(environment={}, options=[f"budget.{option}"])


def test_the_opponent_of_the_budget_is_measured():
    until = BudgetSettings(until="score >= 0.9 against mcts:300")
    assert measured_opponents(RatingSettings(), until) == ("random", "mcts:100", "mcts:300")
    assert measured_opponents(RatingSettings(), BudgetSettings()) == ("random", "mcts:100")


def test_the_trainer_ends_with_a_model_after_its_steps_and_the_same_command_makes_none(run: Run):
    play_segment(run)
    wanted = open_run(run.root, options=["budget.steps=3"])
    run_trainer(wanted, device="cpu", stop=threading.Event())
    assert [name.step for name in list_models(run.models)] == [3]
    assert read_done(wanted) == "3 steps"
    assert read_done(open_run(run.root, options=["budget.steps=4"])) == ""
    run_trainer(open_run(run.root, options=["budget.steps=4"]), device="cpu", stop=threading.Event())
    assert [name.step for name in list_models(run.models)] == [4, 3]


def test_nothing_but_steps_ends_a_training_before_its_first_model(run: Run):
    play_segment(run)
    with training(open_run(run.root, options=["budget.games=1", "budget.minutes=0.000001"]), steps=0) as trainer:
        trainer.ingest()
        assert trainer.intake.minutes > 0
        assert trainer.reached() == ""
        trainer.train_step()
        trainer.publish()
        assert trainer.reached() == "1 game"


def test_minutes_are_those_of_all_starts_after_the_first_game(run: Run):
    with training(run, steps=0) as trainer:
        trainer.ingest()
        assert trainer.intake.minutes == 0.0
    play_segment(run)
    with training(run) as trainer:
        trainer.ingest()
        trainer.publisher.save()
        first = trainer.intake.minutes
        assert first > 0
    with training(run, steps=0) as trainer:
        assert trainer.intake.minutes == first


def test_a_score_ends_a_training_when_further_games_have_confirmed_it(run: Run):
    play_segment(run)
    line = {"model": "000001-000000001-0123abcd.onnx", "scores": {"mcts:100": [20, 0, 0]}}
    append_line(run.metrics / "rating.jsonl", line)
    append_line(run.metrics / "rating.jsonl", line | {"confirmed": SCORE | {"reached": False}})
    with training(open_run(run.root, options=["budget.until=score >= 0.9 against mcts:100"])) as trainer:
        trainer.publish()
        assert trainer.reached() == ""
        append_line(run.metrics / "rating.jsonl", line | {"confirmed": SCORE})
        trainer.ingest()
        assert trainer.reached().startswith("score 0.95, then 0.93")
    with training(open_run(run.root, options=["budget.until=score >= 0.91 against mcts:100"])) as trainer:
        trainer.publish()
        assert trainer.reached() == ""


def test_no_segment_is_read_after_the_games_of_the_budget(run: Run):
    play_segment(run)
    with training(run) as trainer:
        trainer.publish()
        read = trainer.intake.games
    for sequence in (1, 2, 3):
        play_segment(run, full=20, sequence=sequence)
    counts = [name.games for name in sorted(list_segments(run.segments), key=lambda name: name.sequence)]
    with training(open_run(run.root, options=[f"budget.games={read + counts[1] + 1}"]), steps=0) as trainer:
        assert trainer.intake.games == sum(counts[:3])
        trainer.ingest()
        assert trainer.intake.games == sum(counts[:3])


def test_what_the_trainer_reaches_ends_every_process_of_the_run(run: Run):
    done = {"role": TRAINER, "state": "stopped", "step": 3, "games": 7, "done": "3 steps"}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(done)
    assert read_done(run) == "3 steps"
    assert read_done(open_run(run.root, options=["budget.steps=4"])) == ""
    assert read_done(open_run(run.root, options=["budget.steps=2"])) == "2 steps"
    run_worker(run, name="w0", stop=threading.Event(), incarnation="0" * 8)
    assert fields_of(run.workers / "w0.00000000.json")["games"] == 0


def test_who_goes_on_after_the_budget_is_told_which_budget_holds(run: Run):
    text = (run.root / "run.toml").read_text()
    (run.root / "run.toml").write_text(text.replace("[budget]", "[budget]\ngames = 7"))
    beat = Progress(done="7 games", games=7, positions=90)
    assert how_to_continue(open_run(run.root), None) == ""
    instead = "with a larger --games than that of run.toml, or without it: -o budget.games=none"
    assert how_to_continue(open_run(run.root, options=["budget.positions=900"]), beat) == instead
    assert how_to_continue(open_run(run.root, options=["budget.games=7"]), beat) == "with a larger budget"
    assert read_done(open_run(run.root, options=["budget.games=none"])) == ""


def test_a_worker_plays_on_for_a_larger_budget_of_its_own(run: Run):
    done = {"role": TRAINER, "state": "stopped", "step": 3, "done": "3 steps"}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(done)
    with playing(open_run(run.root, options=["budget.steps=4"]), name="w1", incarnation="0" * 8) as until:
        until(lambda: fields_of(run.workers / "w1.00000000.json").get("games"))


def test_wait_ends_with_0_when_the_training_is_over_and_with_3_when_nothing_runs(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr("plyzero.commands.inspect.time", SimpleNamespace(monotonic=clock, sleep=sleep))
    stopped = plyzero("wait", "--run", str(run.root))
    says = f"plyzero: {run.root} is not over, and none of its processes runs\n"
    assert (stopped.returncode, stopped.stderr) == (3, says)
    assert clock.now > 1030
    Heartbeat(run.workers / f"{TRAINER}.json").beat({"role": TRAINER, "state": "stopped", "done": "3 steps"})
    assert shown("wait", "--run", str(run.root)) == "the training is over: 3 steps\n"


def test_wait_waits_for_a_run_that_is_just_being_created(run: Run, monkeypatch: pytest.MonkeyPatch):
    clock, hidden = Clock(), run.root.with_name("hidden")

    def sleep(seconds: float) -> None:
        clock.now += seconds
        if clock.now > 1020 and hidden.exists():
            hidden.rename(run.root)

    monkeypatch.setattr("plyzero.commands.inspect.time", SimpleNamespace(monotonic=clock, sleep=sleep))
    Heartbeat(run.workers / f"{TRAINER}.json").beat({"role": TRAINER, "state": "stopped", "done": "3 steps"})
    run.root.rename(hidden)
    assert shown("wait", "--run", str(run.root)) == "the training is over: 3 steps\n"
    run.root.rename(run.root.with_name("gone"))
    assert plyzero("wait", "--run", str(run.root)).returncode == 2
