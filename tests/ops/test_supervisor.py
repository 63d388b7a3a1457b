"""Training on one machine, the parts that need no processes; the whole is in test_loop.py."""

import threading
import time
from pathlib import Path

import pytest

from plyzero.ops.supervisor import Rater, Rating
from plyzero.play.model_loader import load_newest
from plyzero.run.models import publish_model
from tests.helpers.runs import small_run
from trainer.export import untrained


def finished(rater: Rater) -> Rating:
    while True:
        if rating := rater.poll():
            return rating
        time.sleep(0.01)


def test_a_model_is_measured_beside_the_training_and_written_down(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.opponents=random,mcts:5", "rating.games=4")
    publish_model(run.models, untrained(run), fence=1, step=12)
    network = load_newest(run.models, run.game)
    rater = Rater(run)
    assert rater.poll() is None
    rater.offer(network)
    rater.offer(network)  # one is being measured, and then it is not time yet
    rating = finished(rater)
    assert rating.step == 12
    assert [(name, result.games) for name, result in rating.scores.items()] == [("random", 4), ("mcts:5", 4)]
    assert rater.poll() is None
    lines = (run.metrics / "rating.jsonl").read_text().splitlines()
    assert len(lines) == 1
    assert str(load_newest(run.models, run.game).label) in lines[0]


def test_what_goes_wrong_while_a_model_is_measured_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("in the rules")

    run = small_run(tmp_path / "r", "tic-tac-toe")
    publish_model(run.models, untrained(run), fence=1, step=12)
    monkeypatch.setattr("plyzero.ops.supervisor.play_match", fail)
    rater = Rater(run)
    rater.offer(load_newest(run.models, run.game))
    with pytest.raises(ZeroDivisionError, match="in the rules"):
        finished(rater)


def test_a_measurement_is_given_up_when_training_ends(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "rating.opponents=mcts:2000", "rating.games=400")
    publish_model(run.models, untrained(run), fence=1, step=12)
    rater = Rater(run)
    rater.offer(load_newest(run.models, run.game))
    rater.close()
    assert rater.poll() is None
    assert not (run.metrics / "rating.jsonl").exists()
    assert not any(thread.name == "rating" for thread in threading.enumerate())
