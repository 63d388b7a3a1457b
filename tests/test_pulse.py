"""The health check of a container: it knows the processes of its own container, and asks nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from plyzero import pulse
from plyzero.pulse import answer, find_stalled, pulse_file
from plyzero.run.directory import Run
from plyzero.run.metrics import BEAT_SECONDS, Heartbeat
from tests.helpers.cli import plyzero, shown

FIELDS = {"role": "selfplay", "state": "playing"}


@pytest.fixture
def slept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let nothing wait and nothing be written outside the test; return the pauses that were asked for."""
    slept: list[float] = []
    monkeypatch.setattr(pulse, "FOLDER", str(tmp_path))
    monkeypatch.setattr(pulse.time, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(pulse.time, "sleep", slept.append)
    return slept


def enter(container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a container from now on, which shares everything with others but its mount namespace."""
    monkeypatch.setattr(pulse.os, "readlink", lambda _: f"mnt:[{container}]")


def grow_old(seconds: float) -> None:
    before = os.stat(pulse_file("r")).st_mtime
    os.utime(pulse_file("r"), (before - seconds, before - seconds))


def test_of_two_containers_with_one_host_name_the_one_that_hangs_is_told(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
):
    hearts = {}
    for container in ("1", "2"):
        enter(container, monkeypatch)
        hearts[container] = Heartbeat(Path(pulse_file("r")))
        hearts[container].beat(FIELDS)
    monkeypatch.setattr(pulse.time, "sleep", lambda seconds: (slept.append(seconds), other.beat(FIELDS, force=True)))
    other = hearts["1"]
    grow_old(20)
    assert (
        find_stalled("r", 15) == f"the selfplay of this container, process {os.getpid()}, has made no progress for 15 s"
    )
    enter("1", monkeypatch)
    assert find_stalled("r", 15) is None
    assert 14 < sum(slept) < 16


def test_a_process_is_healthy_while_its_heartbeat_moves_however_late_it_comes(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(FileNotFoundError):
        find_stalled("r", 15)
    heartbeat = Heartbeat(Path(pulse_file("r")))
    heartbeat.beat(FIELDS)
    for seconds in (0, BEAT_SECONDS, 13.0):
        grow_old(seconds)
        assert (find_stalled("r", 15.5), slept) == (None, [])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if sum(slept) > 14:  # on a machine that is busy
            heartbeat.beat(FIELDS, force=True)

    monkeypatch.setattr(pulse.time, "sleep", sleep)
    for seconds in (60.0, -7200.0):  # also where the clock was set
        slept.clear()
        grow_old(seconds)
        assert find_stalled("r", 15) is None
    heartbeat.beat({**FIELDS, "state": "stopped"}, force=True)
    monkeypatch.setattr(pulse.time, "sleep", slept.append)
    with pytest.raises(FileNotFoundError):
        find_stalled("r", 15)


def test_runs_have_files_of_their_own_by_every_spelling_of_their_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert pulse_file("r") == pulse_file(f"{tmp_path}/x/../r") == pulse_file("./r/")
    assert len({pulse_file(name) for name in ("r", "s", "s3://runs/r", "s3://runs/s")}) == 4


def test_the_check_imports_nothing_but_the_standard_library_and_reads_nothing_of_the_run(run: Run, tmp_path: Path):
    Heartbeat(*run.heartbeats("w0.00000001")).beat(FIELDS)
    run.root.rename(tmp_path / "unmounted")
    script = (
        "import sys; before = set(sys.modules)\n"
        "from plyzero.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, *sorted({name for name in sys.modules if name not in before}))"
    )
    command = [sys.executable, "-S", "-c", script, "health", "--run", str(run.root)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    says, found = done.stdout.splitlines()
    code, *modules = found.split()
    assert (says, code) == ("ok", "0")
    own = [name for name in modules if name.startswith("plyzero")]
    assert own == ["plyzero", "plyzero.__main__", "plyzero.pulse"]
    assert {"typer", "numpy", "json", "pathlib", "subprocess", "logging"}.isdisjoint(modules)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--run"],
        ["--run", "r", "--within", "0"],
        ["--run", "r", "--within", "x"],
        ["--run", "s3://r/a"],
    ],
)
def test_what_is_not_a_plain_question_is_for_the_command_line(arguments: list[str], slept: list[float]):
    Heartbeat(Path(pulse_file("r"))).beat(FIELDS)
    assert answer(["--run", "r"]) == answer(["--run=r", "--within=20"]) == 0
    assert answer(arguments) is None


def test_the_command_says_that_nothing_runs_or_that_there_is_no_run(run: Run, tmp_path: Path):
    assert "no process of this run is running in this container" in plyzero("health", "--run", str(run.root)).stderr
    Heartbeat(*run.heartbeats("w0.00000001")).beat(FIELDS)
    assert shown("health", "--run", str(run.root)) == "ok\n"
    assert "is not a run directory" in plyzero("health", "--run", str(tmp_path / "typo")).stderr
