"""An evaluator and its workers as real processes, some of which are killed, stopped or started again."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run
from plyzero.run.events import read_heartbeats
from tests.helpers import victims
from tests.helpers.inference import ready_run
from tests.helpers.journals import adopt_journals
from tests.helpers.surroundings import wait_until

SECONDS = 5.0
"""Time in which games are counted. A worker waits longer than three times that before it evaluates by itself."""


@contextmanager
def evaluator(run: Run, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, which ends with this process at the latest, and its address."""
    arguments = ["evaluator", "--run", str(run.root), "--port", str(port), "--until-end-of-input"]
    command = [sys.executable, "-m", "plyzero", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            for line in process.stdout:
                if found := re.search(r"on (127\.0\.0\.1:\d+)", line):
                    yield process, found[1]
                    break
            else:
                raise AssertionError("the evaluator ended")
        finally:
            process.kill()


class Worker:
    """`plyzero selfplay --evaluator`, and the games that it has acknowledged."""

    def __init__(self, run: Run, name: str, address: str, log: Path):
        self.log = log
        arguments = ("selfplay", "--run", run.root, "--name", name, "--evaluator", address)
        self.process: ForkServerProcess = victims.start("command", log, *arguments)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def games(self) -> set[int]:
        lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
        return {int(line) for line in lines if line.endswith("\n")}

    def makes_games(self) -> bool:
        """Wait for more games."""
        before = len(self.games())
        wait_until(lambda: len(self.games()) > before + 5)
        return self.process.is_alive()


def made_meanwhile(workers: list[Worker]) -> list[int]:
    before = [len(worker.games()) for worker in workers]
    time.sleep(SECONDS)
    return [len(worker.games()) - count for worker, count in zip(workers, before, strict=True)]


def keep_their_rate(workers: list[Worker], usual: list[int]) -> bool:
    """Return whether workers make at least half as many games as usual; other work may slow them for a while."""
    return any(
        all(2 * number > least for number, least in zip(made_meanwhile(workers), usual, strict=True)) for _ in range(3)
    )


def evaluations(run: Run) -> int:
    """Return the positions evaluated by all evaluators of a run, by their heartbeats."""
    beats = read_heartbeats(run.workers).values()
    return sum(beat.evaluations for beat in beats if beat.role == "evaluator")


@pytest.mark.slow
def test_workers_do_not_stall_when_others_die_and_no_game_is_lost_with_the_evaluator(tmp_path: Path):
    run = ready_run(tmp_path / "r", "connect-four", "selfplay.cache_mb=0")
    with evaluator(run) as (process, address):
        workers = [Worker(run, f"w{number}", address, tmp_path / f"log{number}") for number in range(4)]
        killed, stopped, *others = workers
        try:
            assert all(worker.makes_games() for worker in workers)
            usual = made_meanwhile(others)
            killed.send(signal.SIGKILL)
            stopped.send(signal.SIGSTOP)
            evaluated = evaluations(run)
            assert keep_their_rate(others, usual)
            wait_until(lambda: evaluations(run) > evaluated)
            stopped.send(signal.SIGCONT)
            assert stopped.makes_games()
            process.kill()
            process.wait()
            evaluated = evaluations(run)
            with evaluator(run, int(address.rpartition(":")[2])):
                wait_until(lambda: evaluations(run) > evaluated + 1000)
                assert all(worker.makes_games() for worker in (stopped, *others))
                for worker in (stopped, *others):
                    worker.process.terminate()
                    worker.process.join(120)
                    assert worker.process.exitcode == 0
        finally:
            for worker in workers:
                worker.process.kill()
    adopt_journals(run)
    found = victims.visible(run)
    assert set().union(*(worker.games() for worker in workers)) <= found.keys(), "lost"
    assert set(found.values()) == {1}, "doubled"
    assert [fault for _, fault in find_faults(run) if fault] == []
