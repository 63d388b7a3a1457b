"""A child process: it ends when this process dies, writes to a log, and is killed if it does not end when asked to.

The child has one end of a pipe, by default as its standard input; this process has the other end and never writes to it
unless it has something to send. When this process ends in any way, even by SIGKILL, the child reads the end of the
pipe, and stops by itself.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Final

from plyzero.files import open_to_append
from plyzero.volume_errors import explain

MAX_LOG_BYTES: Final = 1 << 16
"""Number of bytes at the end of a log in which the reason for the end of its process is looked for."""

KILLED_SECONDS: Final = 1.0
"""Time between two attempts to kill a process that does not end, in seconds."""

PYTHON: Final = (sys.executable, "-P")
"""-P: nothing is imported from the current directory, which may be a volume, except a game or a part by its name."""


class Child:
    """A command in a child process, in a process group of its own.

    name:       its name in messages.
    log:        the file to which its output is appended; None = it has the output of this process.
    input:      this process's end of the pipe. The other end is the child's standard input, or `watched` by it. With
                `answers` it is also read from here.
    was_killed: whether `kill` ended it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path | None = None,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        niceness: int = 0,
        watched: str = "",
        answers: bool = False,
    ) -> None:
        """Start it. Raises OSError if it cannot be started.

        directory:   it works there; None = where this process does.
        environment: all its variables; None = those of this process.
        niceness:    is added to that of this process: 10 leaves most of a core to a process that has 0.
        watched:     for a command of any other program: the variable that names its end of the pipe, a descriptor. Such
                     a command has an empty standard input and a session of its own, and SIGTERM asks it to stop.
        answers:     whether the child writes to the pipe too: a socket pair.
        """
        self.name = name
        self.log = log
        self.was_killed = False
        self._stop_by = math.inf
        self._stops_on_sigterm = bool(watched)
        theirs, self.input = Pipe(duplex=answers)
        with theirs, open_to_append(log) if log else nullcontext() as output:
            self._log_start = output.seek(0, os.SEEK_END) if output else 0  # what is before belongs to older processes
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                cwd=directory,
                stdout=output,
                stderr=subprocess.STDOUT if output else None,
                **_tie(theirs.fileno(), environment, watched),
            )
        if niceness:
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + niceness)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return the exit code, minus the number of the signal that ended it, or None while the process runs.

        A process that was asked to stop, and has had the time for it, is killed.
        """
        code = self._process.poll()
        if code is None and time.monotonic() > self._stop_by:
            self.kill()
        return code

    def ask_to_stop(self, seconds: float = math.inf) -> None:
        """Ask the process, once, to store what it has and to end within `seconds`."""
        if self._stop_by < math.inf:
            return
        self._stop_by = time.monotonic() + seconds
        if self._stops_on_sigterm:
            self._signal(signal.SIGTERM)
        else:
            self.input.close()

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, but at most `seconds`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self, seconds: float) -> None:
        """Ask the process to stop, and return when it has ended, after `seconds` by SIGKILL."""
        self.ask_to_stop(seconds)
        self.wait(max(0.0, self._stop_by - time.monotonic()))
        while self.exit_code() is None:
            self.wait(KILLED_SECONDS)

    def kill(self) -> None:
        """Send SIGKILL to the process, and to all that it has left in its group."""
        self.was_killed = self.was_killed or self._process.poll() is None
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def read_log(self) -> str:
        """Return the end of what this process has written to its log, or a line that says why it cannot be read."""
        assert self.log
        try:
            with self.log.open("rb") as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
                return file.read(MAX_LOG_BYTES).decode(errors="replace")
        except OSError as error:
            return f"plyzero: its log {self.log} cannot be read: {explain(error)}"


def _tie(pipe: int, environment: Mapping[str, str] | None, watched: str) -> dict[str, Any]:
    """Return the options of a process that has the descriptor `pipe` as its input, or in the variable `watched`."""
    if not watched:
        # Ctrl-C reaches only this process, which closes the pipes of the children. They stay in its session, because
        # Linux may give sessions equal shares of the cores, whatever the niceness of their processes.
        return {"stdin": pipe, "env": environment, "process_group": 0}
    variables = dict(os.environ if environment is None else environment)
    variables[watched] = str(pipe)
    return {"stdin": subprocess.DEVNULL, "env": variables, "pass_fds": [pipe], "start_new_session": True}


def plyzero_command(*arguments: str) -> list[str]:
    """Return the command line of a plyzero command."""
    return [*PYTHON, "-m", "plyzero", *arguments]


def start_plyzero(
    name: str, arguments: Sequence[str], log: Path, *, niceness: int = 0, sees_gpus: bool = True
) -> Child:
    """Start a plyzero command, such as `selfplay`, that stores what it has and ends when its standard input ends.

    sees_gpus: whether it may use a GPU; each process that does needs some of its memory.
    """
    environment = None if sees_gpus else os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = plyzero_command(*arguments, "--until-end-of-input")
    return Child(name, command, log=log, environment=environment, niceness=niceness)


def start_beside(*arguments: str) -> None:
    """Start a plyzero command that takes only time that nobody else needs, and that outlives this process."""
    none = subprocess.DEVNULL
    started = subprocess.Popen(plyzero_command(*arguments), process_group=0, stdin=none, stdout=none, stderr=none)
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, started.pid, 19)


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
