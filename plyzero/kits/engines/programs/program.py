"""A program of somebody else in a process of its own, to which lines are sent and from which lines are read.

It runs without a shell, in a session and a process group of its own. Its memory, what it prints, and the time for an
answer are limited. Whatever it does wrong is a ProgramError.
"""

from __future__ import annotations

import os
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from plyzero.errors import UserError, plain, shown
from plyzero.play.agents import LOOK_SECONDS
from plyzero.run.models import digest_of

MAX_LINE: Final = 1 << 16
MAX_PRINTED: Final = 1 << 24
"""Number of bytes that a program may print in a line, and before an answer."""

MAX_READS: Final = 64
"""Number of pieces of MAX_LINE bytes that are read at once from each output."""

KEPT_ERRORS: Final = 2000
"""Number of bytes at the end of what it prints on standard error, in which the reason for its end is looked for."""

END_SECONDS: Final = 0.5
"""Time that a program has to end after it has been asked to, in seconds."""

GAMES_OF_DEBIAN: Final = "/usr/games"
"""Debian's folder of games, which is not on the path of every user."""


class ProgramError(Exception):
    """A program has failed; the message is a clause about it, such as "no answer after 60 s"."""


class Command(NamedTuple):
    """A program and how it is started.

    words:    its path and its arguments.
    settings: the words KEY=VALUE before it, by key.
    """

    words: Sequence[str]
    settings: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> Command:
        """Return the command that `text` describes: [KEY=VALUE ...] PROGRAM [ARGUMENT ...], quoted as in a shell.

        Raises UserError if there is no such program.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UserError(f"{error}, in the command {shown(text)}") from error
        settings: dict[str, str] = {}
        while words and "=" in words[0] and not os.path.exists(words[0]):
            key, _, value = words.pop(0).partition("=")
            settings[key] = value
        if not words:
            raise UserError(f"expected a program, such as gtp:gnugo --mode gtp, got {shown(text)}")
        program = shutil.which(words[0], path=os.pathsep.join((os.environ.get("PATH", os.defpath), GAMES_OF_DEBIAN)))
        if program is None:
            raise UserError(f"there is no program {shown(words[0])}; install it, or give its path")
        return cls([os.path.abspath(program), *words[1:]], settings)

    def digest(self) -> str:
        """Return a digest of the files in the command, which changes with the program."""
        files = [Path(word) for word in self.words if os.path.isfile(word)]
        return digest_of(b"".join(digest_of(file.read_bytes()).encode() for file in files))


class Program:
    """A program that runs. It ends with this object."""

    def __init__(self, command: Sequence[str], *, directory: str, memory: int) -> None:
        """Start it.

        directory: in which it works.
        memory:    largest number of bytes of data that it may have; Linux alone can limit it.

        Raises ProgramError if it cannot be started.
        """
        try:
            process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise ProgramError(f"it cannot be started: {error.strerror}") from error
        self.on_wait: Callable[[], None] = lambda: None
        self._process = process
        self._end = weakref.finalize(self, _end, process)  # also when this process ends
        if sys.platform == "linux":
            with suppress(OSError):  # it has ended already
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (memory, memory))
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._input = process.stdin
        self._output, self._errors = process.stdout, process.stderr
        for pipe in (self._output, self._errors, self._input):
            os.set_blocking(pipe.fileno(), False)
        self._open = [self._output, self._errors]
        self._begun = b""
        self._lines: list[bytes] = []
        self._said = b""
        self._printed = 0
        self._sent_at, self._is_late = time.monotonic(), False

    def send(self, line: str) -> None:
        """Write a line to its standard input. Raises ProgramError if it has ended, or does not read its input."""
        self._printed = 0
        self._sent_at, self._is_late = time.monotonic(), False
        data = f"{line}\n".encode()
        try:
            written = self._input.write(data)
        except OSError as error:
            self._read_what_is_there()
            raise self._ended() from error
        if written != len(data):
            raise ProgramError("it does not read its standard input")

    def read(self, seconds: float, waited_for: str = "answer") -> str:
        """Return the next line of its standard output, without the end of the line.

        seconds:    time for it since the last line was sent. What has been printed by then is returned.
        waited_for: for the message.

        Raises ProgramError if there is none in time, if the program has ended, or if it prints too much.
        """
        deadline = self._sent_at + seconds
        if not self._is_late:
            self._read_what_is_there()
            self._is_late = time.monotonic() > deadline  # what it prints from now on does not count
        while not self._lines:
            if self._output not in self._open:
                raise self._ended()
            left = deadline - time.monotonic()
            if left <= 0:
                raise ProgramError(f"no {waited_for} after {seconds:.3g} s")
            self.on_wait()
            select.select(self._open, [], [], min(left, LOOK_SECONDS))
            self._read_what_is_there()
        return self._lines.pop(0).decode(errors="replace").rstrip("\r")

    def forget_output(self) -> None:
        """Drop what it has printed so far."""
        self._read_what_is_there()
        self._lines.clear()

    def end(self) -> None:
        """End it and all processes in its group."""
        self._end()

    def _read_what_is_there(self) -> None:
        """Read both outputs as far as they are there."""
        for pipe in [*self._open]:
            for _ in range(MAX_READS):  # a program may print without end
                data = _available(pipe)
                if data is None:
                    break
                if not data:
                    self._open.remove(pipe)
                    break
                if pipe is self._errors:
                    self._said = (self._said + data)[-KEPT_ERRORS:]
                else:
                    self._take(data)

    def _take(self, data: bytes) -> None:
        self._printed += len(data)
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._lines += lines
        if len(self._begun) > MAX_LINE or any(len(line) > MAX_LINE for line in lines):
            raise ProgramError(f"it prints a line of more than {MAX_LINE >> 10} KiB")
        if self._printed > MAX_PRINTED:
            raise ProgramError(f"it prints more than {MAX_PRINTED >> 20} MiB without an answer")

    def _ended(self) -> ProgramError:
        """Return how it has ended, with the last line that it printed on standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        code = self._process.poll()
        if code is None:
            how = "it has closed its standard output"
        elif code < 0:
            how = f"it was ended by {signal.Signals(-code).name}"
        else:
            how = f"it ended with exit code {code}"
        said = self._said.decode(errors="replace").strip().splitlines()
        return ProgramError(f"{how}: {plain(said[-1], 200)}" if said else how)


def _available(pipe: object) -> bytes | None:
    """Return what a pipe has, b"" at its end, None if nothing is there now."""
    try:
        return os.read(pipe.fileno(), MAX_LINE)  # type: ignore[attr-defined]
    except BlockingIOError:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a process, which asks it to end, and then kill its group."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe
        with suppress(OSError):
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
