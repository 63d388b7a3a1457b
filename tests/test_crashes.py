"""Nothing is lost: processes are killed where it hurts most, and everything that was acknowledged is there, once."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plyzero.files import POINTS
from plyzero.ops.verify import find_faults
from plyzero.play.model_loader import ModelWatch
from plyzero.run.directory import Run
from plyzero.run.journals import adopt_journals
from plyzero.run.lease import Lease
from plyzero.run.metrics import read_heartbeat
from plyzero.run.models import list_models, publish_model
from plyzero.run.segments import list_segments
from tests.helpers.runs import small_run
from tests.helpers.victims import visible
from trainer.export import untrained
from trainer.replay_reader import ReplayReader
from trainer.state import load_state

ROOT = Path(__file__).parent.parent
IN_STORE = [
    (point, part)
    for point in POINTS
    for part in ("journal/", "replay/")
    if not (point.startswith(("rename", "append", "remove")) and part == "replay/") and not point.startswith("move")
]
IN_TRAINER = [
    ("write: half", "state-"),
    ("write: before sync", "state-"),
    ("write: before it appears", "state-"),
    ("write: before the directory is synced", "state-"),
    ("remove: before", "state-"),
    ("write: half", ".onnx"),
    ("write: before it appears", ".onnx"),
    ("write: before the directory is synced", ".onnx"),
    ("write: before it appears", "fence-"),
    ("move: before", "replay/"),
]


def victim(role: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.helpers.victims", role, *map(str, arguments)]
    started.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
    return started[-1]


started: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def nobody_is_left_alone() -> Iterator[None]:
    """Whatever a test comes to, its processes end with it."""
    yield
    while started:
        started.pop().kill()


def acknowledged(log: Path) -> set[int]:
    return (
        {int(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")}
        if log.exists()
        else set()
    )


def faults(run: Run) -> list[str]:
    return [fault for _, fault in find_faults(run) if fault]


@pytest.mark.parametrize(("point", "part"), IN_STORE)
def test_a_worker_killed_at_any_fault_point_loses_no_acknowledged_game(tmp_path: Path, point: str, part: str):
    run = small_run(tmp_path / "r", "tic-tac-toe", "store.sync_seconds=0")
    log = tmp_path / "acknowledged"
    for number, time_ in enumerate((1, 5)):
        process = victim("store", run.root, log, f"{number:08x}", "--die-at", point, part, time_)
        assert process.wait(300) == -signal.SIGKILL, "the point was never reached"
    adopt_journals(run)
    found = visible(run)
    assert acknowledged(log) <= found.keys()
    assert set(found.values()) <= {1}
    assert list(run.journals.glob("*.wal")) == []
    intake = ReplayReader(run)
    assert sorted(int(i) for _, games in intake.new() for i in games.games["id"]) == sorted(found)
    assert faults(run) == []


def test_a_worker_that_is_not_killed_seals_everything(tmp_path: Path):
    run = small_run(tmp_path / "r")
    assert victim("store", run.root, tmp_path / "log", "00000001").wait(300) == 0
    assert visible(run) == Counter(range(1000, 1040)) == Counter(acknowledged(tmp_path / "log"))


def outlasted(command: list[str], root: Path, limit: str) -> dict[str, Any]:
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.helpers.victims", "outlast", str(root), limit],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_on_a_full_volume_every_game_waits_for_room(tmp_path: Path):
    in_namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=3m none "$0" && exec "$@"'
    if subprocess.run([*in_namespace, "sh", "-c", mount, str(tmp_path), "true"], capture_output=True).returncode:
        pytest.skip("no small volume can be mounted here")
    found = outlasted([*in_namespace, "sh", "-c", mount, str(tmp_path)], tmp_path, "volume")
    assert found["trouble"] == "cannot write to the volume: No space left on device"
    assert 0 < found["visible"] < found["added"]
    assert (found["unfinished"], found["lost"], found["doubled"]) == ([], 0, 0)


def test_beyond_a_limit_on_files_every_game_waits_for_a_larger_one(tmp_path: Path):
    found = outlasted([], tmp_path, "quota")
    assert found["trouble"] == "cannot write to the volume: File too large"
    assert found["visible"] == 0
    assert (found["unfinished"], found["lost"], found["doubled"]) == ([], 0, 0)


def filled_run(root: Path) -> Run:
    """A run with games enough for many models, one after every step, and one segment that cannot be read."""
    run = small_run(root, "tic-tac-toe", "trainer.publish_seconds=0")
    publish_model(run.models, untrained(run), fence=0, step=0)
    for incarnation in ("00000001", "00000002"):
        assert victim("store", run.root, root / "log", incarnation).wait(300) == 0
    names = sorted(list_segments(run.segments))
    damaged = run.segments / str(names[-1])
    damaged.write_bytes(damaged.read_bytes()[:-100])
    return run


def waits(run: Run, trainer: subprocess.Popen[bytes]) -> bool:
    """Whether this trainer has trained all it may."""
    beat = read_heartbeat(run.workers / "trainer.json")
    return beat is not None and beat["pid"] == trainer.pid and beat["state"].startswith("waiting")


@pytest.mark.slow
@pytest.mark.parametrize(("point", "part"), IN_TRAINER)
def test_a_trainer_killed_at_any_fault_point_goes_on_and_counts_every_game_once(tmp_path: Path, point: str, part: str):
    run = filled_run(tmp_path / "r")
    assert victim("trainer", run.root, "--die-at", point, part, 1).wait(300) == -signal.SIGKILL
    process = victim("trainer", run.root)
    deadline = time.monotonic() + 300
    while not (list(run.quarantine.glob("*")) and waits(run, process)):
        assert process.poll() is None
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    state = load_state(run.trainer)
    assert state is not None
    assert state["games"] == visible(run).total()
    assert list_models(run.models)[0].step == state["step"] > 0
    assert [fault for fault in faults(run) if "quarantine" not in fault] == []


@pytest.mark.slow
def test_every_acknowledged_game_is_taken_in_once_while_everybody_is_killed_at_random(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "trainer.publish_seconds=1", "selfplay.seal_seconds=1")
    rng = random.Random(0)
    roles = [("worker", run.root, tmp_path / f"log{i}", "same_name") for i in range(3)]
    workers = [victim(*role) for role in roles]
    trainer = victim("trainer", run.root)
    kills = {"worker": 0, "trainer": 0}
    began, next_trainer = time.monotonic(), 20.0
    while time.monotonic() - began < 180 or sum(kills.values()) < 40:
        time.sleep(rng.uniform(1, 4))
        i = rng.randrange(3)
        workers[i].kill()
        workers[i].wait()
        kills["worker"] += 1
        workers[i] = victim(*roles[i])
        if time.monotonic() - began > next_trainer:
            trainer.kill()
            trainer.wait()
            kills["trainer"] += 1
            trainer = victim("trainer", run.root)
            next_trainer += rng.uniform(20, 40)
    for process in workers:
        process.send_signal(signal.SIGTERM)
    assert {process.wait(300) for process in workers} <= {0, -signal.SIGTERM}  # one may have been killed by it, newborn
    adopt_journals(run)
    found = visible(run)
    last = max((name.sequence for name in list_segments(run.segments)), default=0)
    trainer.kill()
    trainer.wait()
    taken_in = Counter(int(i) for _, games in ReplayReader(run).new() for i in games.games["id"])
    trainer = victim("trainer", run.root)
    deadline = time.monotonic() + 300
    while sum(found.values()) != games_of_newest_state(run):
        assert trainer.poll() is None
        assert time.monotonic() < deadline, f"{games_of_newest_state(run)} of {sum(found.values())} taken in"
        time.sleep(0.5)
        if rng.random() < 0.1:
            trainer.send_signal(signal.SIGTERM)
            trainer.wait()
            trainer = victim("trainer", run.root)
    trainer.send_signal(signal.SIGTERM)
    assert trainer.wait(300) in {0, -signal.SIGTERM}
    acknowledged_ids = set().union(*(acknowledged(tmp_path / f"log{i}") for i in range(3)))
    print(f"{kills} kills, {len(acknowledged_ids)} games acknowledged, {len(found)} recorded, last sequence {last}")
    assert sum(kills.values()) >= 40
    assert kills["trainer"] >= 4
    assert acknowledged_ids - found.keys() == set(), "lost"
    assert set(found.values()) == {1}, "doubled"
    assert taken_in == found
    assert list(run.quarantine.glob("*")) == []
    assert faults(run) == []


def games_of_newest_state(run: Run) -> int:
    state = load_state(run.trainer)
    return int(state["games"]) if state else 0


@pytest.mark.slow
def test_readers_see_no_torn_model_and_never_go_back_while_the_publisher_is_killed(tmp_path: Path):
    run = small_run(tmp_path / "r")
    template = tmp_path / "template.onnx"
    template.write_bytes(untrained(run))
    stop, seen, errors = threading.Event(), [], []

    def read() -> None:
        try:
            with ModelWatch(run.models, run.game, poll_seconds=0.01, threads=1) as watch:
                while not stop.is_set():
                    if network := watch.newer():
                        seen.append((network.step, int(network.metadata["step"])))
                assert not watch._refused
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    rng = random.Random(0)
    for _ in range(15):
        newest = list_models(run.models)
        process = victim("publisher", run.root, template, newest[0].step + 1 if newest else 1)
        before = len(seen)
        while len(seen) < before + 5:
            assert reader.is_alive(), errors
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        process.kill()
        process.wait()
    stop.set()
    reader.join()
    assert errors == []
    assert len(seen) >= 75
    assert all(name == inside for name, inside in seen)
    assert [step for step, _ in seen] == sorted({step for step, _ in seen})


def test_a_lease_whose_holder_is_killed_is_free(tmp_path: Path):
    code = f"""
import time
from pathlib import Path
from plyzero.run.lease import Lease
lease = Lease(Path({str(tmp_path)!r}), {{"pid": 1, "host": "h"}})
print("held", flush=True)
time.sleep(600)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert Lease(tmp_path, {}).fence == 2
