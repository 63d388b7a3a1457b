"""Processes: orderly stops, by signals and by the end of standard input; child processes, and ports for them."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from plyzero.files import open_to_append
from plyzero.threads import repeating, start_thread
from plyzero.volume_errors import explain

HUNG_SECONDS: Final = 8.0
"""Time in which code of others must return once its process is to stop, in seconds."""

_stops: Final = list[threading.Event]()  # of `stop_on_signals`
log = logging.getLogger(__name__)


def stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set; must be called in the main thread."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    _stops.append(stop)
    return stop


def note_signal() -> None:
    """Set the events of `stop_on_signals`, from a thread: Python calls no handler while code in C runs."""
    for stop in _stops:
        stop.set()


def interrupt_on_signals(on_repeat: Callable[[], None] = lambda: None) -> threading.Event:
    """Like `stop_on_signals`, but the first signal also raises KeyboardInterrupt in the main thread.

    The exception alone is not enough: if it is raised while Numba compiles, it is lost in a callback.

    on_repeat: called at every further signal, in a signal handler.
    """
    stop = threading.Event()

    def interrupt(*_: object) -> None:
        if not stop.is_set():
            stop.set()
            raise KeyboardInterrupt
        on_repeat()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    return stop


def stop_on_end_of_input(stop: threading.Event) -> None:
    """Set `stop` when standard input ends, which happens when the parent process, at the other end, dies."""

    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin: a thread blocked on it breaks the exit of the interpreter
            pass
        stop.set()

    start_thread(watch, name="end-of-input")


@contextmanager
def ending_at_once(stop: threading.Event, *, code: int = 0) -> Iterator[None]:
    """While the block runs, end this process with exit code `code` as soon as `stop` is set.

    For a start that has nothing to save yet, and that may last a minute: compiling cannot be interrupted otherwise.
    """

    def look() -> None:
        if stop.is_set():
            log.info("stopped while it started; there is nothing to store")
            os._exit(code)

    with repeating(look, 0.1, name="start"):
        yield


class Calls:
    """Calls of code of others, which may never return: each is a `with` block.

    is_in:   whether one has not returned yet.
    longest: time that the longest of those took that have returned, in seconds.
    """

    def __init__(self) -> None:
        self.is_in, self.longest, self._began = False, 0.0, 0.0

    def __enter__(self) -> None:
        self.is_in, self._began = True, time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.is_in, self.longest = False, max(self.longest, time.monotonic() - self._began)


@contextmanager
def ending_if_hung(stop: threading.Event, game: str) -> Iterator[Calls]:
    """Yield the calls in which `game` is played. The rules of a game that is not included may never return.

    If a call has not returned HUNG_SECONDS after `stop` was set, or three times what the longest took, end this process
    with exit code 1 and a sentence. Nothing that is in the journal is lost by that.
    """
    calls, looks, pause = Calls(), 0, HUNG_SECONDS / 20
    why = f"the games have not gone on for {HUNG_SECONDS:g} s since this process was to stop"
    why += f"; if its rules hang, this says which function: plyzero check {shlex.quote(game)}"

    def look() -> None:
        nonlocal looks
        looks += stop.is_set() and calls.is_in
        if looks * pause > max(HUNG_SECONDS, 3 * calls.longest):  # they are counted: a suspended process makes none
            print(f"plyzero: {why}", file=sys.stderr, flush=True)
            os._exit(1)

    with repeating(look, pause, name="hung") if ":" in game else nullcontext():
        yield calls


def start_beside(*arguments: str) -> None:
    """Start a command of plyzero that takes only time that nobody else needs, and that outlives this process."""
    command, none = [sys.executable, "-P", "-m", "plyzero", *arguments], subprocess.DEVNULL
    started = subprocess.Popen(command, process_group=0, stdin=none, stdout=none, stderr=none)
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, started.pid, 19)


MAX_LOG_BYTES: Final = 1 << 16
"""Number of bytes at the end of a log in which the reason for the end of its process is looked for."""


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Child:
    """A plyzero command in a child process, which stops by itself when this process ends.

    name:       what messages call it.
    log:        the file to which its output is appended.
    was_killed: whether `kill` ended it.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], log: Path, *, niceness: int = 0, sees_gpus: bool = True
    ) -> None:
        """Start it.

        niceness:  is added to that of this process: 10 leaves most of a core to a process that has 0.
        sees_gpus: whether it may use a GPU, of whose memory each process needs some for itself.
        """
        self.name, self.log, self.was_killed = name, log, False
        with open_to_append(log) as output:
            self._log_start = output.seek(0, os.SEEK_END)  # what is before belongs to older processes
            self._process = subprocess.Popen(
                # -P: no module is imported from the current directory, which may be a volume, except a game by its name
                [sys.executable, "-P", "-m", "plyzero", *arguments, "--until-end-of-input"],
                env=None if sees_gpus else os.environ | {"CUDA_VISIBLE_DEVICES": ""},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches only this process, which closes the pipes of the children. They stay in its session,
                # because Linux may give sessions equal shares of the cores, whatever the niceness of their processes.
                process_group=0,
            )
        if niceness:
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + niceness)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        """Close the standard input of the process, which then stops."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, but at most `seconds`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def kill(self) -> None:
        """End the process at once."""
        self.was_killed = True
        self._process.kill()
        self._process.wait()

    def read_log(self) -> str:
        """Return the end of what this process has written to its log, or a line that says why it cannot be read."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
                return file.read(MAX_LOG_BYTES).decode(errors="replace")
        except OSError as error:
            return f"plyzero: its log {self.log} cannot be read: {explain(error)}"
