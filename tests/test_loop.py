"""The whole system in real processes: it learns, goes on after a stop and leaves nothing running."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from plyzero.run.events import read_heartbeats
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments
from tests.helpers.cli import plyzero_process
from tests.helpers.runs import SMALL
from tests.helpers.surroundings import is_running, python, wait_until

pytestmark = pytest.mark.slow


def start(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "plyzero", *arguments], cwd=cwd, stdout=subprocess.DEVNULL)


def fences(models: Path) -> set[int]:
    return {name.fence for name in list_models(models)}


def pids_of(root: Path) -> list[int]:
    return [beat.pid for beat in read_heartbeats(root / "workers").values() if beat.state != "stopped"]


def test_train_goes_on_after_a_kill_and_leaves_no_process(tmp_path: Path):
    root, examples = tmp_path / "r", Path(__file__).parent.parent / "examples"
    options = [part for option in SMALL for part in ("-o", option)]
    game = "dots_and_boxes:DotsAndBoxes(size=2)"  # in plain Python, and found where the command is given
    command = ("train", game, "--run", str(root), "--workers", "2", *options)
    train = start(*command, cwd=examples)
    wait_until(lambda: (root / "models").exists() and len(list_models(root / "models")) >= 2, alive=train)
    train.send_signal(signal.SIGINT)
    assert train.wait(300) == 0
    assert {beat.state for beat in read_heartbeats(root / "workers").values()} == {"stopped"}

    train = start(*command, cwd=examples)
    wait_until(lambda: 2 in fences(root / "models"), alive=train)
    newest, *_, oldest = list_models(root / "models")
    assert (oldest.fence, newest.fence) == (1, 2)
    assert newest.step > oldest.step
    wait_until(lambda: any(name.first_step > 0 for name in list_segments(root / "replay")), alive=train)
    wait_until(lambda: len(pids_of(root)) == 3, alive=train)
    pids = pids_of(root)
    assert all(map(is_running, pids))
    train.kill()
    train.wait()
    train = start(*command, cwd=examples)  # at once, while the processes of the killed one still save
    wait_until(lambda: 3 in fences(root / "models"), alive=train)
    wait_until(lambda: not any(map(is_running, pids)), alive=train)  # the workers may save for longer than the trainer
    train.send_signal(signal.SIGINT)
    assert train.wait(300) == 0


def test_a_child_that_fails_ends_train_with_its_last_words(tmp_path: Path):
    command = ["train", "tic-tac-toe", "--run", str(tmp_path / "r"), "--workers", "1", "--device", "cuda"]
    done = python("-m", "plyzero", *command, code=1, CUDA_VISIBLE_DEVICES="")
    assert "trainer stopped by itself: " in done.stderr
    assert "cuda" in done.stderr


def test_the_demo_trains_a_network_that_cannot_be_beaten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert demo.main(["--run", str(tmp_path / "r"), "--seconds", "600"]) == 0
    printed = capsys.readouterr().out
    assert "untrained network: loses, for example" in printed
    assert "trained network: cannot be beaten" in printed


def test_a_budget_ends_every_process_and_a_larger_one_continues(tmp_path: Path):
    root = str(tmp_path / "r")
    options = [part for option in (*SMALL, "rating.games=2") for part in ("-o", option)]

    def train(*budget: str) -> str:
        command = ("train", "tic-tac-toe", "--run", root, "--workers", "1", *budget, *options)
        done = plyzero_process(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = train("--steps", "20")
    assert "done: 20 steps" in first
    assert "step 20 scores" in first
    assert {name.step for name in list_models(tmp_path / "r" / "models")} >= {20}
    assert {beat.state for beat in read_heartbeats(tmp_path / "r" / "workers").values()} == {"stopped"}
    assert "done: 20 steps" in (again := train("--steps", "20"))
    assert "scores" not in again  # it has been measured
    assert len(fences(tmp_path / "r" / "models")) == 1
    for command in (["wait"], ["selfplay"], ["trainer"]):
        assert "20 steps" in plyzero_process(*command, "--run", root).stdout
    assert "done: 30 steps" in train("--steps", "30")
    assert len(fences(tmp_path / "r" / "models")) == 2
