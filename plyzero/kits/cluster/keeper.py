"""A keeper runs a plyzero command in a child process and starts it again whenever it has ended.

It is an actor of a Ray cluster, of which there may be hundreds, so it imports next to nothing.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from plyzero.ops.child import Child, start_plyzero
from plyzero.threads import start_thread

POLL_SECONDS: Final = 0.5
"""Time between two looks at the process, in seconds."""

FIRST_DELAY: Final = 1.0
"""Time between the end of the first process and the next start, in seconds. It doubles each time."""

LONGEST_DELAY: Final = 60.0
"""The longest such time, in seconds. After a process that has lasted as long as this it is FIRST_DELAY again."""


class Role(NamedTuple):
    """A process to keep running: its name, which its log has too, its command, and the GPUs that it needs."""

    name: str
    arguments: list[str]
    gpus: int = 0


class Report(NamedTuple):
    """The state of a keeper's process.

    node:      the host.
    process:   the process number; 0 while it has ended and is not started again yet.
    ended:     number of processes that have ended so far.
    exit_code: of the last one of these.
    log:       end of what that one has written.
    """

    node: str
    process: int
    ended: int
    exit_code: int
    log: str


class Keeper:
    """Keeps a role's process running until `stop` is called; it ends with this one, whose pipe is its input."""

    def __init__(self, role: Role, log: Path, directory: str, environment: Mapping[str, str]) -> None:
        """Start the process in `directory`, where modules of games are, if it exists here; set `environment`."""
        with suppress(OSError):
            os.chdir(directory)
        os.environ.update(environment)
        self._role = role
        self._log_file = log
        self._child: Child | None = None
        self._started = 0.0  # when the last process was started
        self._next_start = 0.0
        self._delay = FIRST_DELAY
        self._is_stopping = False
        self._ended = 0
        self._exit_code = 0
        self._log = ""
        self._lock = threading.Lock()
        start_thread(self._keep, name="keeper")

    def report(self) -> Report:
        """Return the state of the process."""
        with self._lock:
            process = self._child.pid if self._child else 0
            return Report(socket.gethostname(), process, self._ended, self._exit_code, self._log)

    def stop(self) -> None:
        """Let the process store what it has and end, and start no other."""
        with self._lock:
            self._is_stopping = True
            if self._child:
                self._child.ask_to_stop()

    def _keep(self) -> None:
        while not (self._is_stopping and self._child is None):
            with self._lock:
                self._look(time.monotonic())
            time.sleep(POLL_SECONDS)

    def _look(self, now: float) -> None:
        if self._child is None:
            if now >= self._next_start and not self._is_stopping:
                self._started = now
                try:
                    self._log_file.parent.mkdir(parents=True, exist_ok=True)  # on a disk of this node
                    self._child = start_plyzero(self._role.name, self._role.arguments, self._log_file)
                except OSError as error:  # its log cannot be opened, or there is no memory for a process
                    self._take_note(now, 1, str(error))
        elif (code := self._child.exit_code()) is not None:
            self._take_note(now, code, self._child.read_log())
            self._child = None

    def _take_note(self, now: float, exit_code: int, log: str) -> None:
        self._ended += 1
        self._exit_code = exit_code
        self._log = log
        if now - self._started >= LONGEST_DELAY:
            self._delay = FIRST_DELAY
        self._next_start = now + self._delay
        self._delay = min(LONGEST_DELAY, 2 * self._delay)
