"""Stopping cleanly: by signal, and when the process that started us is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from plyzero.files import open_to_append


def stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set; the main thread must be the caller."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def interrupt_on_signals() -> threading.Event:
    """Like `stop_on_signals`, and the first signal also raises KeyboardInterrupt in the main thread.

    The exception alone is not to be trusted: raised while Numba compiles, it gets lost in a callback.
    """
    stop = threading.Event()

    def interrupt(*_: object) -> None:
        if not stop.is_set():
            stop.set()
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    return stop


def stop_on_end_of_input(stop: threading.Event) -> None:
    """Set `stop` when standard input ends: a pipe that closes when its other end's process dies, however it dies."""

    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin: a thread that waits there breaks the interpreter's exit
            pass
        stop.set()

    threading.Thread(target=watch, name="end-of-input", daemon=True).start()


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many cores this process may use: of those it may run on, as many as a container's quota pays for."""
    cores = len(os.sched_getaffinity(0))
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # cgroup version 2, version 1
        try:
            quota, period = " ".join((cgroup / file).read_text() for file in files).split()
            return max(1, min(cores, int(quota) // int(period))) if int(quota) > 0 else cores
        except (OSError, ValueError):  # no such cgroup, or a quota of "max"
            continue
    return cores


class Child:
    """A plyzero command in a process of its own, which stops by itself when this process does."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name, self.log = name, log
        with open_to_append(log) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "plyzero", *arguments, "--until-end-of-input"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us alone; the pipe tells the children
            )

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        """Close its standard input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def wait(self, seconds: float) -> None:
        """Wait until it has stopped; kill it when `seconds` are over."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing"
