"""The command line: what a person types and reads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plyzero.models import publish_model
from plyzero.status import who_waits
from tests.runs import small_run
from trainer.export import untrained


def plyzero(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plyzero", *arguments]
    environment = os.environ | {"COLUMNS": "120"}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of tic-tac-toe with one model."""
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe")
    publish_model(run.models, untrained(run), fence=1, step=12)
    return run.root


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "conect-four", "--run", "R"], "no game is called 'conect-four'; nearest: connect-four"),
        (["train", "connect-four", "--run", "R"], "is a run of tic-tac-toe, not of connect-four"),
        (["play", "connect-four", "--run", "R"], "is a run of tic-tac-toe, not of connect-four"),
        (["train", "tic-tac-toe", "--run", "R", "-o", "selfplay.slot=1"], "no setting is called selfplay.slot; "),
        (["selfplay", "--run", "R", "-o", "selfplay.slots=x"], "setting selfplay.slots from -o"),
        (["trainer", "--run", "R/none"], "is not a run directory"),
        (["init", "tic-tac-toe", "--run", "R"], "is a run directory already; it stays as it is"),
        (["init", "tic-tac-toe", "--run", "R/run.toml/below"], "cannot write R/run.toml/below"),
        (["play", "tic-tac-toe", "--net", "R/run.toml"], "is not a model that ONNX Runtime can read"),
        (["play", "tic-tac-toe", "--net", "R/none.onnx"], "cannot use R/none.onnx"),
        (["play", "tic-tac-toe", "--run", "R", "--model", "5"], "no model of step 5"),
        (["play", "tic-tac-toe", "--as", "third"], "expected --as first, second or random, got 'third'"),
        (["trainer", "--run", "R", "--device", "gpu"], "expected --device auto, cpu or cuda, got 'gpu'"),
        (["train", "othello(size=7)", "--run", "R"], "expected size 6 or 8, got 7"),
        (["status", "--run", "R/models"], "is not a run directory"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(root: Path, arguments: list[str], sentence: str):
    before = files_of(root)
    done = plyzero(*(argument.replace("R", str(root), 1) if argument[0] == "R" else argument for argument in arguments))
    assert done.returncode == 2
    assert done.stderr.startswith("plyzero: ")
    assert sentence.replace("R/", f"{root}/") in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert files_of(root) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_to_is_one_sentence(tmp_path: Path):
    tmp_path.chmod(0o500)
    done = plyzero("init", "tic-tac-toe", "--run", str(tmp_path / "r"))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)


def test_games_lists_what_can_be_trained():
    done = plyzero("games")
    assert all(name in done.stdout for name in ("tic-tac-toe", "connect-four", "othello"))
    assert done.returncode == 0


def test_init_makes_a_run(tmp_path: Path):
    assert plyzero("init", "othello(size=6)", "--run", str(tmp_path / "r"), "--seed", "3").returncode == 0
    assert 'game = "othello(size=6)"\n' in (tmp_path / "r" / "run.toml").read_text()


def test_status_and_replay_ls_speak_to_people_and_to_programs(root: Path):
    assert "models: 1, newest 000001-000000012-" in plyzero("status", "--run", str(root)).stdout
    found = json.loads(plyzero("status", "--run", str(root), "--json").stdout)
    assert (found["version"], found["game"], found["models"]["count"]) == (1, "tic-tac-toe v1", 1)
    assert "total" in plyzero("replay", "ls", "--run", str(root)).stdout
    listed = json.loads(plyzero("replay", "ls", "--run", str(root), "--json").stdout)
    assert listed == {"version": 1, "segments": [], "totals": {"games": 0, "positions": 0, "full": 0}}


def test_a_game_is_played_to_its_end_and_bad_input_is_asked_again(root: Path):
    moves = "z9\nlegal\n" + "".join(f"{column}{row}\n" for row in (1, 2, 3) for column in "abc")
    done = plyzero("play", "tic-tac-toe", "--run", str(root), "--as", "second", text=moves)
    assert done.returncode == 0
    assert "you move second; the bot is 000001-000000012-" in done.stdout
    assert "That is not a move here: expected one of" in done.stdout
    assert "got 'z9'" in done.stdout
    assert "Legal: " in done.stdout
    assert done.stdout.rstrip().splitlines()[-1] in ("You win.", "The bot wins.", "A draw.")


@pytest.mark.parametrize("text", ["quit\n", ""])
def test_a_person_may_leave_at_any_time(text: str):
    done = plyzero("play", "tic-tac-toe", text=text)
    assert done.returncode == 0
    assert "pure MCTS with 1000 rollouts" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("trainer", "worker", "sentence"),
    [
        ("stopped", "stopped", "nothing is running"),
        ("waiting for 12 positions", "playing", "the trainer waits for the workers: waiting for 12 positions"),
        ("training", "waiting for the first model", "the workers wait for the trainer's first model"),
        ("training", "playing", "nobody waits"),
    ],
)
def test_status_says_who_waits_for_whom(trainer: str, worker: str, sentence: str):
    assert who_waits([{"role": "trainer", "state": trainer}, {"role": "selfplay", "state": worker}]) == sentence
