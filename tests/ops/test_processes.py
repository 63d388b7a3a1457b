"""Processes that are stopped while they start."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero.ops import keeper
from plyzero.ops.processes import Child
from tests.helpers.surroundings import python, wait_until

START = """
import threading, time
from plyzero.ops.processes import ending_at_once

stop = threading.Event()
threading.Timer(0.2, stop.set).start()
with ending_at_once(stop):
    time.sleep({seconds})  # as uninterruptible as a compiler
print("it has started")
time.sleep(0.5)
"""


@pytest.mark.parametrize(("seconds", "printed"), [(600, ""), (0, "it has started\n")])
def test_a_process_ends_at_once_while_it_starts_and_goes_on_afterwards(seconds: int, printed: str):
    done = python("-c", START.format(seconds=seconds))
    assert (done.stdout, done.stderr) == (printed, "")


@pytest.mark.slow
def test_a_worker_stopped_while_it_compiles_ends_at_once(tmp_path: Path):
    root, cache = tmp_path / "r", tmp_path / "cache"
    words = ("selfplay", "--run", str(root), "--game", "tic-tac-toe", "--until-end-of-input")
    streams = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    with subprocess.Popen([sys.executable, "-m", "plyzero", *words], text=True, env=environment, **streams) as worker:
        # until it has compiled the first kernel
        wait_until(lambda: set(cache.glob("*.machinecode")) - set(cache.glob("rule-*")), alive=worker)
        said, _ = worker.communicate(timeout=100)
    assert worker.returncode == 0
    assert "stopped while it started; there is nothing to store" in said
    assert [list((root / name).iterdir()) for name in ("journal", "replay")] == [[], []]


def test_a_keeper_restarts_a_process_whose_log_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started: list[str] = []

    class Ended(Child):
        """A process that has ended, whose log has gone."""

        pid, ask_to_stop, exit_code = 1, Mock(), Mock(return_value=1)

        def __init__(self, name: str, *_: object) -> None:
            started.append(name)
            self.log, self._log_start = tmp_path / "gone", 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keeper, "Child", Ended)
    monkeypatch.setattr(keeper, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(keeper, "FIRST_DELAY", 0.01)
    kept = keeper.Keeper(keeper.Role("w0", []), tmp_path / "w0.log", str(tmp_path), {})
    wait_until(lambda: len(started) >= 3)
    kept.stop()
    assert kept.report().log == f"plyzero: its log {tmp_path}/gone cannot be read: No such file or directory"
