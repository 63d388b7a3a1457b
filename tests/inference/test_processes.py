"""The evaluator and its workers as real processes, some of which are killed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero.run.metrics import read_heartbeats
from plyzero.run.models import publish_model
from plyzero.run.segments import list_segments
from tests.helpers.runs import small_run
from trainer.export import untrained

pytestmark = pytest.mark.slow


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start a command; it ends with this process, at the latest."""
    command = [sys.executable, "-m", "plyzero", *arguments, "--until-end-of-input"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)


def wait_for_line(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"the process ended without {pattern}")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_a_worker_outlives_another_worker_and_the_evaluator(tmp_path: Path):
    run = small_run(tmp_path / "r")
    publish_model(run.models, untrained(run), fence=1, step=10)
    with start("evaluator", "--run", str(run.root), "--port", "0") as evaluator:
        address = wait_for_line(evaluator, r"on (127\.0\.0\.1:\d+)")[1]
        names, workers = ("w0", "w1"), []
        for name in names:
            workers.append(start("selfplay", "--run", str(run.root), "--name", name, "--evaluator", address))
        for worker in workers:
            wait_for_line(worker, f"the evaluator {address} answers, model 000001-000000010")

        def sealed() -> int:
            return sum(name.first_step == 10 for name in list_segments(run.segments) if name.worker == "w1")

        wait_until(lambda: sealed() > 0)
        workers[0].kill()
        before = sealed()
        wait_until(lambda: sealed() > before)
        beats = [beat for beat in read_heartbeats(run.workers).values() if beat["role"] == "evaluator"]
        assert [beat["state"] for beat in beats] == ["serving"]
        evaluator.kill()
        wait_for_line(workers[1], "evaluating here")
        before = sealed()
        wait_until(lambda: sealed() > before)
        assert workers[1].poll() is None
        workers[1].stdin.close()
        assert workers[1].wait(300) == 0
        workers[0].wait()
        for each in workers:
            each.stdout.close()
