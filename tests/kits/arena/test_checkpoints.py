"""The models of a run on its ladder: which ones, in which order, and that they are remembered."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from plyzero.kits.arena.checkpoints import Checkpoints
from plyzero.kits.arena.entrants import find_entrants
from plyzero.kits.arena.ladder import LADDER, Ladder, Limits, PairResult, open_ladder, read_table
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run
from plyzero.run.metrics import TRAINER, Heartbeat
from plyzero.run.models import list_models, publish_model
from plyzero.trainer.export import untrained

TIC_TAC_TOE = load_game("tic-tac-toe")


def publish(run: Run, *steps: int, fence: int = 1) -> None:
    for step in steps:
        publish_model(run.models, untrained(replace(run, seed=step)), fence=fence, step=step)


def checkpoints_of(run: Run) -> Checkpoints:
    found = Checkpoints(run, run.root / LADDER, 100, simulations=4, search={})
    found.add_new()
    return found


def names(checkpoints: Checkpoints) -> list[str]:
    return [entrant.name for entrant in checkpoints.entrants]


def ladder_of(run: Run, checkpoints: Checkpoints) -> Ladder:
    players = [*find_entrants(["random", "mcts:5"], TIC_TAC_TOE, simulations=4), *checkpoints.entrants]
    result = PairResult([], ["win", "draw"], [None] * 2, 0.1)
    with open_ladder(run.root / LADDER, TIC_TAC_TOE, players) as ladder:
        ladder.play(lambda pairs: [(pair, result) for pair in pairs], Limits(8))
    return ladder


def test_models_are_rated_as_they_come_so_many_steps_apart(run: Run):
    checkpoints = checkpoints_of(run)
    assert checkpoints.waiting == "waiting for the first model of the run"
    publish(run, 10, 60, 109, 110)
    assert checkpoints.add_new()
    assert names(checkpoints) == ["step 10", "step 110"]
    assert checkpoints.waiting == "waiting for a model of step 210 or later"
    publish(run, 209)
    assert not checkpoints.add_new()
    publish(run, 150, 500, fence=2)  # of a trainer that went on from an older state
    assert checkpoints.add_new()
    assert names(checkpoints) == ["step 10", "step 110", "step 500"]
    publish_model(run.models, untrained(replace(run, seed=500)), fence=2, step=700)  # it has learned nothing since
    assert not checkpoints.add_new()


def test_a_damaged_model_is_passed_over(run: Run):
    publish(run, 10, 200)
    (run.models / str(list_models(run.models)[0])).write_bytes(b"no model")
    assert names(checkpoints_of(run)) == ["step 10"]


def test_checkpoints_are_remembered_when_the_run_has_removed_their_models(run: Run):
    publish(run, 10, 110)
    before = checkpoints_of(run)
    table = ladder_of(run, before).table()
    assert [player["step"] for player in table["players"]] == [None, None, 10, 110]
    for name in list_models(run.models):
        (run.models / str(name)).unlink()
    publish(run, 300)
    after = checkpoints_of(run)
    assert names(after) == ["step 10", "step 110", "step 300"]
    assert after.entrants[:2] == before.entrants
    assert len(ladder_of(run, after).lines) == 4  # their games count


def test_more_may_come_while_somebody_works_there(run: Run):
    checkpoints = checkpoints_of(run)
    assert checkpoints.more_may_come()  # nobody has begun
    Heartbeat(run.workers / f"{TRAINER}.json").beat({"role": "trainer", "state": "stopped"})
    assert not checkpoints.more_may_come()


@pytest.mark.slow
def test_the_command_rates_models_as_they_come_until_the_run_ends(run: Run):
    trainer = Heartbeat(run.workers / f"{TRAINER}.json")

    def wait_for(steps: list[int | None]) -> None:
        rated: list[int | None] = []
        while rated != steps:
            assert process.poll() is None
            trainer.beat({"role": "trainer", "state": "training"})
            players = (read_table(run.root / LADDER) or {"players": ()})["players"]
            rated = [player["step"] for player in players if player["games"]]
            time.sleep(0.05)

    publish(run, 10)
    command = [sys.executable, "-m", "plyzero", "ladder", "tic-tac-toe", "--run", run.root, "--every", "20"]
    command += ["--players", "random", "mcts:5", "--games", "16", "--processes", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for([None, None, 10])
        publish(run, 30)
        wait_for([None, None, 10, 30])
        trainer.beat({"role": "trainer", "state": "stopped"}, force=True)
        shown, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert json.loads(shown) == read_table(run.root / LADDER)
    assert json.loads(shown)["games"] == 4 * 16
