"""The whole system in real processes: it learns, survives SIGKILL, keeps its ratio and leaves nothing running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from examples import demo
from plyzero.run.metrics import read_heartbeats, read_lines
from plyzero.run.models import list_models
from plyzero.run.segments import list_segments, read_segment
from tests.helpers.runs import SMALL, small_run

pytestmark = pytest.mark.slow


def start(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "plyzero", *arguments], cwd=cwd, stdout=subprocess.DEVNULL)


def wait_until(condition: Callable[[], bool], *, alive: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert alive is None or alive.poll() is None, "the process ended by itself"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def heard_from(root: Path) -> set[int]:
    return {beat["pid"] for beat in read_heartbeats(root / "workers").values()}


def trainer_beat(root: Path) -> dict:
    return read_heartbeats(root / "workers").get("trainer", {})


def trainer_has_trained_all(root: Path, full: int) -> bool:
    beat = trainer_beat(root)
    return beat["generated_positions"] == full and beat["state"].startswith("waiting")


def test_trainer_and_worker_killed_in_mid_run_go_on_and_the_ratio_is_still_right(tmp_path: Path):
    options = ("trainer.replay_ratio=2", "trainer.window_positions=1000000")  # so big that no credit is given up
    run = small_run(tmp_path / "r", "tic-tac-toe", *options)
    roles = {"trainer": ("trainer", "--device", "cpu"), "w0": ("selfplay", "--name", "w0")}
    running = {name: start(role, "--run", str(run.root), *rest) for name, (role, *rest) in roles.items()}
    for victim in ("trainer", "w0", "trainer", "w0"):
        models = len(list_models(run.models))
        wait_until(lambda models=models: len(list_models(run.models)) >= models + 2)
        running[victim].kill()
        running[victim].wait()
        role, *rest = roles[victim]
        running[victim] = start(role, "--run", str(run.root), *rest)
    wait_until(lambda: {running["w0"].pid, running["trainer"].pid} <= heard_from(run.root))
    models = len(list_models(run.models))
    wait_until(lambda: len(list_models(run.models)) >= models + 2)
    running["w0"].send_signal(signal.SIGTERM)
    assert running["w0"].wait(300) == 0
    segments = list(list_segments(run.segments))
    full = sum(name.full for name in segments if not name.bootstrap)
    wait_until(lambda: trainer_has_trained_all(run.root, full))  # everything sealed is counted, once
    running["trainer"].send_signal(signal.SIGTERM)
    assert running["trainer"].wait(300) == 0
    steps = [line["step"] for path in sorted(run.metrics.glob("trainer-*")) for line in read_lines(path)]
    assert len(list(run.metrics.glob("trainer-*"))) == 3
    assert steps[-1] > steps[0]

    assert len({name.incarnation for name in segments}) >= 2
    ids = [int(i) for name in segments for i in read_segment(run.segments / str(name), run.game).games["id"]]
    assert len(set(ids)) == len(ids)
    beat = trainer_beat(run.root)
    assert beat["generated_positions"] == full
    credit = 4 * min(200, beat["bootstrap_positions"]) + 2 * full
    assert beat["skipped_positions"] == 0
    assert 0 <= credit - beat["trained_positions"] < 32
    assert beat["replay_ratio"] == pytest.approx(2, abs=0.1)


def test_train_killed_with_sigkill_leaves_no_process_behind(tmp_path: Path):
    options = [part for option in SMALL for part in ("-o", option)]
    train = start("train", "tic-tac-toe", "--run", str(tmp_path / "r"), "--workers", "2", *options)
    workers = tmp_path / "r" / "workers"
    wait_until(lambda: workers.exists() and len(read_heartbeats(workers)) == 3)
    pids = [beat["pid"] for beat in read_heartbeats(workers).values()]
    assert all(map(is_running, pids))
    os.kill(train.pid, signal.SIGKILL)
    train.wait()
    wait_until(lambda: not any(map(is_running, pids)))


def fences(models: Path) -> set[int]:
    return {name.fence for name in list_models(models)}


def test_train_stops_cleanly_on_ctrl_c_and_the_same_command_goes_on(tmp_path: Path):
    options = [part for option in SMALL for part in ("-o", option)]
    command = ("train", "tic-tac-toe", "--run", str(tmp_path / "r"), "--workers", "1", *options)
    models = tmp_path / "r" / "models"
    for fence in (1, 2):
        train = start(*command)
        wait_until(lambda fence=fence: models.exists() and fence in fences(models), alive=train)
        train.send_signal(signal.SIGINT)
        assert train.wait(300) == 0
        beats = read_heartbeats(tmp_path / "r" / "workers")
        assert {beat["state"] for beat in beats.values()} == {"stopped"}
    newest, *_, oldest = list_models(models)
    assert (oldest.fence, newest.fence) == (1, 2)
    assert newest.step > oldest.step


def test_a_child_that_fails_ends_train_with_its_last_words(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    (run.trainer / "state-000001-000000001.pt").write_bytes(b"not a state")
    command = [sys.executable, "-m", "plyzero", "train", "tic-tac-toe", "--run", str(run.root), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "trainer stopped by itself" in done.stderr


def test_a_plain_python_game_trains_through_the_same_path(tmp_path: Path):
    examples = Path(__file__).parent.parent / "examples"
    options = [part for option in SMALL for part in ("-o", option)]
    command = ("train", "dots_and_boxes:DotsAndBoxes(size=2)", "--run", str(tmp_path / "r"), "--workers", "1", *options)
    train = start(*command, cwd=examples)
    models = tmp_path / "r" / "models"
    wait_until(lambda: models.exists() and len(list_models(models)) >= 3, alive=train)
    train.send_signal(signal.SIGINT)
    assert train.wait(300) == 0
    assert any(name.first_step > 0 for name in list_segments(tmp_path / "r" / "replay"))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_demo_trains_a_network_that_cannot_be_beaten(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert demo.main(["--run", str(tmp_path / "r"), "--seed", str(seed), "--seconds", "600"]) == 0
    printed = capsys.readouterr().out
    assert "untrained network: loses, for example" in printed
    assert "trained network: cannot be beaten" in printed


def test_metrics_are_json_lines_with_a_version(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    worker, trainer = (start(role, "--run", str(run.root)) for role in ("selfplay", "trainer"))
    wait_until(lambda: len(list_models(run.models)) >= 2)
    for process in (worker, trainer):
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    text = (run.metrics / "trainer-000001.jsonl").read_text()
    assert all(json.loads(line)["version"] == 1 for line in text.splitlines())
