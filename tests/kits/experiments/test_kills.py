"""An experiment whose runner and tasks are killed at random moments."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w

from plyzero.kits.experiments.manifest import Record, read_manifest, read_record
from plyzero.kits.experiments.runner import MARK
from tests.helpers.cli import plyzero

KILLS = 8
RUNS = 24
TOTAL = 2 * RUNS + 1
"""Number of tasks."""

TASKS = {
    # Each writes a line when it begins, and its output only at its end, complete or not at all.
    name: {
        "command": f"sh -c '{script}'",
        "per_run": name != "average",
        "retries": 100,  # a killed task is repeated, so only what is done counts
        **more,
    }
    for name, script, more in [
        ("train", "mkdir -p {out} && sleep 0.7 && echo {seed} > {out}/.part && mv {out}/.part {out}/x", {"gpus": 1}),
        ("judge", "mkdir {out}; sleep 0.5 && cp {run}/train/x {out}/p && mv {out}/p {out}/y", {"needs": ["train"]}),
        ("average", "mkdir -p {out} && sleep 0.2 && cat run-*/judge/y > {out}/all", {"after": ["judge"]}),
    ]
}  # fmt: skip


def done(directory: Path) -> dict[str, Record]:
    """The records of the tasks that are done, by their names."""
    manifest = read_manifest(directory)
    found = {task["name"]: read_record(directory, task["name"]) for task in (manifest or {"tasks": ()})["tasks"]}
    return {name: record for name, record in found.items() if record is not None and record.state == "done"}


def processes_of(directory: Path) -> list[int]:
    """Processes of the experiment's tasks."""
    manifest = read_manifest(directory)
    mark = f"{MARK}={manifest['id']}".encode() if manifest else b"?"
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


@pytest.mark.slow
def test_runners_and_tasks_killed_at_random_lose_nothing_finished(tmp_path: Path):
    file, directory = tmp_path / "killed.toml", tmp_path / "out"
    about = {"version": 1, "name": "killed", "parameters": {"runs": RUNS}, "matrix": {"seed": "runs"}}
    file.write_text(tomli_w.dumps({**about, "tasks": TASKS}))
    command = [sys.executable, "-m", "plyzero", "experiment", "run", str(file), "--out", str(directory), "--cpus", "2"]
    rng, finished, killed = random.Random(0), dict[str, Record](), 0
    while killed < KILLS:
        runner = subprocess.Popen(command, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL))
        time.sleep(rng.uniform(0.5, 1.5))
        tasks = processes_of(directory)
        victim = rng.choice(tasks) if tasks and killed % 2 else runner.pid
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            killed += 1
        if victim != runner.pid:
            time.sleep(rng.uniform(0, 0.5))
            runner.kill()
        runner.wait()
        found = done(directory)
        assert {name: found.get(name) for name in finished} == finished  # nothing finished was run again
        finished = found
        assert len(finished) < TOTAL  # it is not over before the kills are
    last = plyzero("experiment", "run", str(file), "--out", str(directory))
    assert last.returncode == 0, last.stderr
    assert (directory / "average/all").read_text() == "".join(f"{number}\n" for number in range(RUNS))
    assert processes_of(directory) == []
    again = plyzero("experiment", "run", str(file), "--out", str(directory))
    assert again.stdout.startswith(f"nothing to do: {TOTAL} of {TOTAL}")
