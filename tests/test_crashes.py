"""Nothing is lost: processes are killed where it hurts most, and everything that was acknowledged is there, once."""

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from plyzero import files
from plyzero.network.model_loader import ModelWatch
from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run
from plyzero.run.models import list_models, publish_model
from plyzero.run.segments import list_segments
from plyzero.trainer.export import untrained
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.state import load_state
from tests.helpers import victims
from tests.helpers.beats import fields_of
from tests.helpers.buckets import connected, new_prefix, s3_server
from tests.helpers.fault_points import FAULT_POINTS
from tests.helpers.journals import adopt_journals
from tests.helpers.runs import small_run
from tests.helpers.victims import visible

ROOT = Path(__file__).parent.parent
IN_STORE = [
    (point, part)
    for point in FAULT_POINTS
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


started: list[ForkServerProcess] = []


def victim(role: str, *arguments: object, scratch: Path | None = None) -> ForkServerProcess:
    started.append(victims.start(role, *arguments, scratch=scratch))
    return started[-1]


def ended(process: ForkServerProcess) -> int | None:
    """Wait for the end of a process; return its exit code, the negative number of a signal."""
    process.join(300)
    return process.exitcode


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
        assert ended(process) == -signal.SIGKILL, "the point was never reached"
    adopt_journals(run)
    found = visible(run)
    assert acknowledged(log) <= found.keys()
    assert set(found.values()) <= {1}
    assert list(run.journals.glob("*.wal")) == []
    reader = ReplayReader(run)
    assert sorted(int(i) for _, games in reader.read_new() for i in games.games["id"]) == sorted(found)
    assert faults(run) == []


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


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with games enough for many models, and one segment that cannot be read."""
    root = tmp_path_factory.mktemp("filled")
    often = ("trainer.publish_seconds=0", "trainer.batch_size=16", "trainer.replay_ratio=24")  # half of the time
    run = small_run(root / "r", "tic-tac-toe", *often)
    publish_model(run.models, untrained(run), fence=0, step=0)
    for incarnation in ("00000001", "00000002"):
        assert ended(victim("store", run.root, root / "log", incarnation)) == 0
    assert visible(run) == Counter([*range(1000, 1040), *range(2000, 2040)]) == Counter(acknowledged(root / "log"))
    names = sorted(list_segments(run.segments))
    damaged = run.segments / str(names[-1])
    damaged.write_bytes(damaged.read_bytes()[:-100])
    return run


def waits(run: Run, trainer: ForkServerProcess) -> bool:
    """Whether this trainer has trained all it may."""
    beat = fields_of(run.workers / "trainer.json")
    return bool(beat) and beat["pid"] == trainer.pid and beat["state"].startswith("waiting")


@pytest.mark.parametrize(
    ("point", "part"),
    [
        pytest.param(*each, marks=pytest.mark.soak if number % 3 else pytest.mark.slow)
        for number, each in enumerate(IN_TRAINER)
    ],
)
def test_a_trainer_killed_at_any_fault_point_counts_games_once(tmp_path: Path, filled: Run, point: str, part: str):
    run = replace(filled, root=Path(shutil.copytree(filled.root, tmp_path / "r")))
    assert ended(victim("trainer", run.root, "--die-at", point, part, 1)) == -signal.SIGKILL
    process = victim("trainer", run.root)
    deadline = time.monotonic() + 300
    while not (list(run.quarantine.glob("*")) and waits(run, process)):
        assert process.is_alive()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    process.terminate()
    assert ended(process) == 0
    state = load_state(run.trainer)
    assert state is not None
    assert state["games"] == visible(run).total()
    assert list_models(run.models)[0].step == state["step"] > 0
    assert [fault for fault in faults(run) if "quarantine" not in fault] == []


def at_progress(run: Run, kills: str) -> Iterator[int | None]:
    """Yield who is to be killed, a worker's number or None for the trainer, each after two more models."""
    for each in kills:
        models, deadline = list_models(run.models)[:1], time.monotonic() + 300
        while len([name for name in list_models(run.models) if [name] > models]) < 2:
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.2)
        yield None if each == "t" else int(each)


def at_random(logs: list[Path], seconds: float, chance: random.Random) -> Iterator[int | None]:
    """Yield who is to be killed: 40 workers or more, on average each after three times what it needs for a first game.

    The trainer is killed a tenth as often.
    """

    def wait_for_a_game() -> float:
        began, size = time.monotonic(), logs[0].stat().st_size if logs[0].exists() else 0
        while not logs[0].exists() or logs[0].stat().st_size == size:
            assert time.monotonic() - began < 300, "waited in vain"
            time.sleep(0.05)
        return time.monotonic() - began

    wait_for_a_game()
    yield 0
    pause = min(wait_for_a_game(), 5.0)  # so many games that all can be trained in the end
    began, next_trainer, kills = time.monotonic(), 8 * pause, 0
    while time.monotonic() - began < seconds or kills < 40:
        time.sleep(chance.uniform(0.4, 1.6) * pause)
        yield chance.randrange(3)
        kills += 1
        if time.monotonic() - began > next_trainer:
            yield None
            next_trainer += chance.uniform(8, 12) * pause


def check_that_nothing_is_lost(run: Run, logs: list[Path], kills: Iterator[int | None]) -> None:
    """Let workers of one name and a trainer work, kill those that `kills` names, and count the games that are left.

    Where the run is in a bucket, the trainer is on another machine than the workers.
    """

    def start_worker(log: Path) -> ForkServerProcess:
        return victim("worker", run.root, log, "same_name", scratch=run.scratch)

    def start_trainer() -> ForkServerProcess:
        return victim("trainer", run.root, scratch=run.scratch and run.scratch / "of the trainer")

    workers, trainer = [start_worker(log) for log in logs], start_trainer()
    for each in kills:
        if each is None:
            trainer.kill()
            trainer.join()
            trainer = start_trainer()
        else:
            workers[each].kill()
            workers[each].join()
            workers[each] = start_worker(logs[each])
    for process in workers:
        process.terminate()
    assert {ended(process) for process in workers} <= {0, -signal.SIGTERM}  # one may have been killed by it, newborn
    adopt_journals(run)
    found = visible(run)
    trainer.kill()
    trainer.join()
    taken_in = Counter(int(i) for _, games in ReplayReader(run).read_new() for i in games.games["id"])
    trainer = start_trainer()
    deadline = time.monotonic() + 900
    while sum(found.values()) != games_of_newest_state(run) or not waits(run, trainer):
        assert trainer.is_alive()
        assert time.monotonic() < deadline, f"{games_of_newest_state(run)} of {sum(found.values())} taken in"
        time.sleep(0.2)
    trainer.terminate()
    assert ended(trainer) == 0
    check_the_ratio(run)
    known = set().union(*map(acknowledged, logs))
    assert known
    assert known - found.keys() == set(), "lost"
    assert set(found.values()) == {1}, "doubled"
    assert taken_in == found
    assert list(run.quarantine.glob("*")) == []
    assert faults(run) == []


def check_the_ratio(run: Run) -> None:
    """Check that a trainer which waits has trained what `SURVIVAL` allows, less than a batch of 32 apart."""
    beat = fields_of(run.workers / "trainer.json")
    full = sum(name.full for name in list_segments(run.segments) if not name.bootstrap)
    allowed = 4 * min(200, beat["bootstrap_positions"]) + 2 * full
    assert (beat["generated_positions"], beat["skipped_positions"]) == (full, 0)
    assert 0 <= allowed - beat["trained_positions"] < 32
    assert beat["replay_ratio"] == pytest.approx(2, abs=max(0.1, 32 / max(full, 1)))


SURVIVAL = (
    "selfplay.simulations=200",  # fewer games, of which each is counted in the end
    "selfplay.fast_simulations=100",
    "selfplay.when_ahead=throttle",
    "trainer.publish_seconds=1",
    "selfplay.seal_seconds=1",
    "trainer.replay_ratio=2",
    "trainer.window_positions=1000000",  # so large that no credit is given up
)


@pytest.mark.slow
def test_every_acknowledged_game_is_read_once_though_processes_are_killed(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", *SURVIVAL)
    check_that_nothing_is_lost(run, [tmp_path / "log0", tmp_path / "log1"], at_progress(run, "0t"))


@pytest.mark.soak
def test_random_kills_of_processes_lose_no_game(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", *SURVIVAL)
    logs = [tmp_path / f"log{number}" for number in range(3)]
    check_that_nothing_is_lost(run, logs, at_random(logs, 180, random.Random(0)))


@pytest.fixture
def run_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(files, "BUCKET_SECONDS", 0.5)
    with s3_server() as endpoint, connected(endpoint):
        # one request after another: with segments of 100 positions the trainer would read more slowly than they come
        larger = (*SURVIVAL, "selfplay.seal_positions=2000")
        yield replace(small_run(new_prefix(), "tic-tac-toe", *larger), scratch=tmp_path / "scratch")


@pytest.mark.slow
def test_every_game_in_a_bucket_is_read_once_though_processes_are_killed(tmp_path: Path, run_in_a_bucket: Run):
    run, logs = run_in_a_bucket, [tmp_path / "log0", tmp_path / "log1"]
    check_that_nothing_is_lost(run, logs, at_progress(run, "0t"))


@pytest.mark.soak
def test_random_kills_of_processes_lose_no_game_in_a_bucket(tmp_path: Path, run_in_a_bucket: Run):
    logs = [tmp_path / f"log{number}" for number in range(3)]
    check_that_nothing_is_lost(run_in_a_bucket, logs, at_random(logs, 180, random.Random(0)))


def games_of_newest_state(run: Run) -> int:
    state = load_state(run.trainer)
    return int(state["games"]) if state else 0


def check_that_models_go_forward(tmp_path: Path, kills: int) -> None:
    """Kill a publisher again and again, and check that whoever watches its directory sees whole and newer models."""
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
    for _ in range(kills):
        newest = list_models(run.models)
        process = victim("publisher", run.root, template, newest[0].step + 1 if newest else 1)
        before = len(seen)
        while len(seen) < before + 5:
            assert reader.is_alive(), errors
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        process.kill()
        process.join()
    stop.set()
    reader.join()
    assert errors == []
    assert len(seen) >= 5 * kills
    assert all(name == inside for name, inside in seen)
    assert [step for step, _ in seen] == sorted({step for step, _ in seen})


def test_readers_see_whole_and_newer_models_of_a_killed_publisher(tmp_path: Path):
    check_that_models_go_forward(tmp_path, kills=5)


@pytest.mark.soak
def test_readers_see_whole_and_newer_models_of_many_killed_publishers(tmp_path: Path):
    check_that_models_go_forward(tmp_path, kills=60)
