"""Ratings beside the training: they are written down, adapt to slow rules, and never end or hold up anything."""

import errno
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero.errors import UserError
from plyzero.ops import rating
from plyzero.ops.rating import Rater, Rating, check_opponents, run_rater
from plyzero.play.scores import MatchResult
from plyzero.run.budget import find_reached, note_confirmation
from plyzero.run.directory import Run, open_run
from plyzero.run.events import Confirmation, Progress, best_model, read_lines, read_scores
from plyzero.run.metrics import TRAINER, Heartbeat, append_line
from plyzero.run.models import ModelName, list_models
from tests.helpers.beats import fields_of
from tests.helpers.guests import Guests
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until


def measured(run: Run) -> tuple[Rater, list[Rating | str]]:
    """A rater that has measured the newest model, and all it has said."""
    rater = Rater(run)
    rater.offer(list_models(run.models)[0])
    wait_until(lambda: not rater.is_busy)
    return rater, [*iter(rater.poll, None)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.opponents=random,mcts:5", "rating.games=5")
    add_model(run)
    return run


def test_a_model_is_measured_beside_the_training_and_written_down(run: Run):
    rater, (result,) = measured(run)
    assert result.step == 12
    assert [(name, each.games) for name, each in result.scores.items()] == [("random", 5), ("mcts:5", 5)]
    (line,) = (run.metrics / "rating.jsonl").read_text().splitlines()
    assert str(list_models(run.models)[0]) in line
    (events,) = (run.tensorboard / "rating").iterdir()
    assert all(f"score/{name}".encode() in events.read_bytes() for name in result.scores)
    rater.offer(list_models(run.models)[0])  # only for a tenth of the time
    assert not rater.is_busy
    assert rater.doing is None


def test_with_slow_rules_fewer_games_are_played_and_two_always(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rating, "MATCH_SECONDS", 0.0)
    _, (result,) = measured(run)
    assert [each.games for each in result.scores.values()] == [2, 2]


def test_a_match_that_takes_too_long_is_given_up_with_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rating, "MAX_MATCH_SECONDS", -1.0)
    _, results = measured(run)
    assert results == ["step 12 is not measured: two games against random take more than -1 s"]


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        ("play_match", ZeroDivisionError("in the rules"), "step 12 is not measured: ZeroDivisionError: in the rules"),
        ("find_player", MemoryError("mcts:99999"), "step 12 is not measured: MemoryError: mcts:99999"),
        (
            "append_line",
            OSError(errno.EROFS, "Read-only"),
            "the scores of step 12 are not written to rating.jsonl: Read-",
        ),
    ],
)
def test_a_failed_measurement_ends_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, target: str, error: Exception, said: str
):
    monkeypatch.setattr(rating, target, Mock(side_effect=error))
    rater, results = measured(run)
    assert next(result for result in results if isinstance(result, str)).startswith(said)
    rater.offer(list_models(run.models)[0])
    assert not rater.is_busy or target == "append_line"


def test_a_measurement_is_given_up_within_a_move_when_training_ends(tmp_path: Path):
    run = small_run(tmp_path / "r", "connect-four", "rating.opponents=mcts:200000", "rating.games=400")
    add_model(run)
    rater = Rater(run)
    rater.offer(list_models(run.models)[0])
    wait_until(lambda: rater.doing == "measuring step 12 against mcts:200000")
    rater.close()
    assert rater.poll() is None
    assert not (run.metrics / "rating.jsonl").exists()
    assert not any(thread.name == "rating" for thread in threading.enumerate())


def test_a_process_of_its_own_measures_the_newest_models_until_the_run_is_over(run: Run):
    stop = threading.Event()
    rater = threading.Thread(target=run_rater, args=(run,), kwargs={"stop": stop})
    rater.start()
    wait_until((run.metrics / "rating.jsonl").exists)
    with pytest.raises(UserError, match=f"another process measures the models of {run.root}"):
        run_rater(run, stop=stop)
    assert fields_of(run.workers / "rater.json")["role"] == "rater"
    stop.set()
    rater.join()
    done = open_run(run.root, options=["budget.steps=13", "rating.opponents=random"])
    add_model(run, 13)
    over = {"role": TRAINER, "state": "stopped", "step": 13, "done": "13 steps"}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(over)
    run_rater(done, stop=threading.Event())
    assert [scores.model.step for scores in read_scores(run.metrics)] == [12, 13]
    assert fields_of(run.workers / "rater.json")["state"] == "stopped"


@pytest.mark.parametrize(
    ("further", "reached", "games"),
    [  # results of 20 further games each, the last of which is repeated
        ([MatchResult(7, 0, 13)], False, 20),
        ([MatchResult(17, 0, 3)], False, 140),
        ([MatchResult(20, 0, 0)], True, 40),
        ([MatchResult(18, 0, 2)], True, 400),
        ([MatchResult(19, 0, 1)], True, 140),
        ([MatchResult(17, 1, 2)], False, 400),
    ],
)
def test_a_score_that_ends_a_training_is_measured_again_until_its_interval_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, further: list[MatchResult], reached: bool, games: int
):
    options = ("rating.opponents=random", "rating.games=20", "budget.until=score >= 0.9 against random")
    run = small_run(tmp_path / "r", "tic-tac-toe", *options)
    add_model(run)
    results = iter([MatchResult(2, 0, 0), MatchResult(16, 0, 2), *further])
    monkeypatch.setattr(rating, "play_match", lambda *_, **__: next(results, further[-1]))
    _, (first, again) = measured(run)
    assert str(first).startswith("step 12 scores 90% (70-97) in 20 games against random")
    assert (again.scores["random"].games, again.confirmation["reached"]) == (games, reached)
    assert str(again).endswith(f" in {games} games against random, played because it had reached 0.90 before")
    confirmed: dict[str, Confirmation] = {}
    for line in read_lines(run.metrics / "rating.jsonl"):
        note_confirmation(confirmed, line)
    found = find_reached(run.settings.budget, Progress(confirmed=confirmed))
    assert (found is not None) == reached
    assert found is None or found.text.startswith("score 0.90, then ")


def test_only_what_reaches_the_condition_of_a_training_that_goes_on_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.opponents=random", "rating.games=20")
    add_model(run)
    results = iter([MatchResult(2, 0, 0), MatchResult(15, 1, 2)])
    monkeypatch.setattr(rating, "play_match", lambda *_, **__: next(results))
    beat = {"role": TRAINER, "state": "training", "budget": {"until": "score >= 0.9 against random"}}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(beat)  # whose budget this process was not given
    assert len(measured(run)[1]) == 1
    results = iter([MatchResult(2, 0, 0), MatchResult(18, 0, 0)])
    Heartbeat(run.workers / f"{TRAINER}.json").beat({**beat, "done": "300 steps"})
    assert len(measured(run)[1]) == 1


def test_the_model_that_ended_a_training_is_the_best(run: Run):
    for step in (13, 14):
        add_model(run, step)
    known = {"quantity": "score against mcts:5", "least": 0.9, "first": 0.9, "value": 0.92, "low": 0.9, "high": 0.95}
    for step, counts, reached in ((13, [9, 0, 1], True), (14, [20, 0, 0], False)):
        name = next(name for name in list_models(run.models) if name.step == step)
        line = {"model": str(name), "scores": {"mcts:5": counts}}
        append_line(run.metrics / "rating.jsonl", line | {"confirmed": known | {"games": 120, "reached": reached}})
    assert best_model(run.models, run.metrics).step == 13


def test_a_rater_ends_with_its_run_though_the_last_model_cannot_be_measured(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rating, "play_match", Mock(side_effect=ZeroDivisionError("in the rules")))
    Heartbeat(run.workers / f"{TRAINER}.json").beat({"role": TRAINER, "state": "stopped", "done": "12 steps"})
    run_rater(run, stop=threading.Event())
    assert fields_of(run.workers / "rater.json")["state"] == "stopped"


def test_the_score_of_the_last_model_is_logged_though_it_is_completed_between_two_looks(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def unmeasured(rater: Rater) -> ModelName | None:
        wait_until(lambda: not rater.is_busy)
        return look(rater)

    look = Rater.unmeasured
    monkeypatch.setattr(Rater, "unmeasured", unmeasured)
    monkeypatch.setattr(rating, "read_done", lambda _: "12 steps")
    with caplog.at_level("INFO"):
        run_rater(run, stop=Mock(wait=lambda _: False))
    assert [record.message.split(":")[0][:14] for record in caplog.records] == ["step 12 scores", "done"]


def test_a_model_is_measured_against_a_program_whose_failures_are_no_wins(tmp_path: Path):
    guests = Guests(tmp_path / "log")
    for fault, found in (("", 2), ("dies", 0)):
        name = guests.name("text", fault)
        run = small_run(tmp_path / f"r{found}", "tic-tac-toe", f"rating.opponents={name}", "rating.games=2")
        add_model(run)
        _, results = measured(run)
        if found:
            assert results[0].scores[name].games == found
        else:
            (sentence,) = results
            assert sentence.startswith("step 12 is not measured: text:")
            assert "it ended with exit code 1: no memory left for the tables" in sentence


def test_an_opponent_that_cannot_be_used_is_refused_before_anything_starts(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "budget.until=score >= 0.5 against gtp:no-such-program --mode gtp")
    with pytest.raises(UserError, match="cannot use gtp:no-such-program --mode gtp: there is no program"):
        check_opponents(run)
