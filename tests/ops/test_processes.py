"""Processes that are stopped while they start."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plyzero.ops import processes
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


HUNG_SAYS = (
    "plyzero: the games have not gone on for 0.2 s since this process was to stop; if its rules hang, this says which "
    "function: plyzero check mine:Game\n"
)
HUNG = """
import ctypes, threading
from plyzero.ops import processes

processes.HUNG_SECONDS, stop = 0.2, threading.Event()
stop.set()
with processes.ending_if_hung(stop, "mine:Game") as calls:
    with calls:
        if {hangs}:
            ctypes.CDLL(None).pause()
    threading.Event().wait(0.5)
print("it has ended")
"""


@pytest.mark.parametrize(("hangs", "code", "output"), [(True, 1, ("", HUNG_SAYS)), (False, 0, ("it has ended\n", ""))])
def test_a_process_that_is_to_stop_ends_although_code_of_others_never_returns(hangs: bool, code: int, output):
    done = python("-c", HUNG.format(hangs=hangs), code=code)
    assert (done.stdout, done.stderr) == output


def test_a_signal_stops_a_process_whose_main_thread_is_in_c(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "_stops", [threading.Event(), threading.Event()])
    processes.note_signal()
    assert all(each.is_set() for each in processes._stops)


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
