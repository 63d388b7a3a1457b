"""Workers and a trainer on a Ray cluster of this machine: whatever is killed comes back, and no game is lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from plyzero.commands.common import describe_missing
from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.models import list_models
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.state import load_state
from tests.helpers.cli import refused
from tests.helpers.journals import adopt_journals
from tests.helpers.runs import small_run
from tests.helpers.surroundings import is_running, wait_until
from tests.helpers.victims import visible


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_command_says_what_to_install(tmp_path: Path):
    said = refused("ray", "up", "--run", str(tmp_path / "r"), "--game", "tic-tac-toe")
    assert said == f"plyzero: {describe_missing(['ray'])}\n"
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--workers", "0"], "expected --workers N with at least one worker, or --trainer"),
        (["--trainer", "--devices", "2"], "--devices 2 needs --device cuda, for Ray to give the trainer its GPUs"),
        (["--trainer"], "R is not a run directory: it has no run.toml; "),
    ],
)
def test_what_cannot_run_is_refused_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str
):
    monkeypatch.setattr("plyzero.commands.common.require", lambda *packages: None)
    said = refused("ray", "up", "--run", str(tmp_path / "r"), *options)
    assert said.startswith(f"plyzero: {sentence.replace('R is', f'{tmp_path}/r is')}")


@pytest.fixture
def ray_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray's own files, in a directory with a short name: it has sockets there."""
    folder = tempfile.mkdtemp(prefix="pz", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", folder)
    yield
    shutil.rmtree(folder, ignore_errors=True)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Cluster:
    """`plyzero ray up`, and the lines that it has printed."""

    def __init__(self, run: Run, log: Path) -> None:
        command = [sys.executable, "-m", "plyzero", "ray", "up", "--run", str(run.root), "--workers", "2", "--trainer"]
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def lines(self) -> str:
        return self._log.read_text()

    def process_of(self, name: str, *, not_before: int = 0) -> int:
        """Wait for a process of this name that has started after `not_before` others; return its number."""

        def found() -> list[str]:
            assert self.process.poll() is None, self.lines
            return re.findall(rf"{name} runs.*, process (\d+) on", self.lines)

        wait_until(lambda: len(found()) > not_before)
        return int(found()[not_before])


def acknowledged(run: Run) -> set[int]:
    """The games that are in a segment or in a journal now."""
    games = []
    for name in list_journals(run.journals):
        with suppress(FileNotFoundError):  # it is sealed at this moment
            games += read_journal(run.journals / str(name), run.game)
    return {int(i) for each in games for i in each.games["id"]} | visible(run).keys()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install -e '.[ray]'")
def test_a_killed_actor_or_process_is_started_again_and_loses_no_game(tmp_path: Path, ray_folder: None):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.seal_seconds=5", "trainer.publish_seconds=1")
    with Cluster(run, tmp_path / "log") as cluster:
        first = {name: cluster.process_of(name) for name in ("w0", "w1", "trainer")}
        wait_until(lambda: len(list_models(run.models)) >= 2)
        wait_until(lambda: {name.worker for name in list_journals(run.journals)} == {"w0", "w1"})

        known = acknowledged(run)
        os.kill(parent_of(first["w0"]), signal.SIGKILL)  # the actor
        began = time.monotonic()
        second = {"w0": cluster.process_of("w0", not_before=1)}
        seconds = time.monotonic() - began
        print(f"an actor is back after {seconds:.1f} s")
        assert seconds < 10
        wait_until(lambda: not is_running(first["w0"]), seconds=60)

        known |= acknowledged(run)
        os.kill(first["w1"], signal.SIGKILL)  # the process alone
        second["w1"] = cluster.process_of("w1", not_before=1)
        assert "w1 has ended: it was killed by SIGKILL" in cluster.lines
        assert parent_of(second["w1"]) != parent_of(second["w0"])

        known |= acknowledged(run)
        os.kill(parent_of(first["trainer"]), signal.SIGKILL)
        second["trainer"] = cluster.process_of("trainer", not_before=1)
        newest = list_models(run.models)[0]
        wait_until(lambda: list_models(run.models)[0].fence > newest.fence)

        cluster.process.send_signal(signal.SIGINT)
        assert cluster.process.wait(120) == 0
        assert not any(is_running(pid) for pid in [*first.values(), *second.values()])
    adopt_journals(run)  # the trainer would do it, of the process that was killed
    found = visible(run)
    assert known
    assert known - found.keys() == set(), "lost"
    assert set(found.values()) == {1}, "doubled"
    taken_in = sum(len(games.games) for _, games in ReplayReader(run).read_new())
    assert taken_in == found.total() >= load_state(run.trainer)["games"]
    assert [fault for _, fault in find_faults(run) if fault] == []
