"""The command line, as a person uses it."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer.main

from plyzero.commands.cli import app, main


def plyzero(
    *arguments: str,
    text: str = "",
    code: int | None = None,
    cwd: Path | None = None,
    line_seconds: float = 1e6,
    descriptors: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which saves the seconds of starting one.

    text: what is typed.
    code: the exit code with which it has to end, if one is given.
    cwd:  where the command is given; what it imports from there is forgotten.
    line_seconds: time between two lines of progress; with the default a slow machine prints none.
    descriptors:  whether to return also what C and child processes print.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    command, ended_with = ["plyzero", *arguments], 0
    imported = set(sys.modules)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch, _printed_to(streams, patch, descriptors):
        patch.setenv("COLUMNS", "120")
        patch.setattr("plyzero.commands.common.LINE_SECONDS", line_seconds)
        patch.setattr("sys.argv", command)
        patch.setattr("sys.stdin", io.StringIO(text))
        patch.setattr("sys.path", list(sys.path))  # a command adds its current directory
        patch.chdir(cwd or Path.cwd())
        try:
            main()
        except SystemExit as ended:
            ended_with = ended.code if isinstance(ended.code, int) else 0
    for number, handler in handlers.items():  # a role replaces them
        signal.signal(number, handler)
    for name in set(sys.modules) - imported if cwd else ():
        module = sys.modules[name]
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]  # a folder has no file
        if any(place and Path(place).is_relative_to(cwd) for place in places):
            del sys.modules[name]
    for stream in streams:
        stream.seek(0)
    output, errors = (stream.read() for stream in streams)
    assert code in (None, ended_with), f"exit code {ended_with}\n{output}\n{errors}"
    return subprocess.CompletedProcess(command, ended_with, output, errors)


@contextmanager
def _printed_to(streams: list[io.TextIOWrapper], patch: pytest.MonkeyPatch, descriptors: bool) -> Iterator[None]:
    """Let `streams` have what is printed to standard output and standard error, by Python alone or by all."""
    if not descriptors:
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        yield
        return
    kept = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            for number, name, file in ((1, "stdout", output), (2, "stderr", errors)):
                os.dup2(file.fileno(), number)
                made = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
                patch.setattr(sys, name, made)
                patch.setattr(sys, f"__{name}__", made)
            yield
        finally:
            for each in (sys.stdout, sys.stderr):
                each.flush()
            ctypes.CDLL(None).fflush(None)  # C does this at the end of a process
            for number, before in zip((1, 2), kept, strict=True):
                os.dup2(before, number)
                os.close(before)
        for stream, file in zip(streams, (output, errors), strict=True):
            file.seek(0)
            stream.write(file.read().decode())


def plyzero_process(
    *arguments: str, text: str = "", cwd: Path | None = None, isolated: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own; `isolated`: without the current directory, like the installed script."""
    options = ["-P"] if isolated else []
    command = [sys.executable, *options, "-m", "plyzero", *arguments]
    environment = os.environ | {"COLUMNS": "120"}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment, cwd=cwd)


def shown(*arguments: str, text: str = "", cwd: Path | None = None) -> str:
    """Return the output of a command that succeeds."""
    done = plyzero(*arguments, text=text, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(*arguments: str, cwd: Path | None = None) -> str:
    """Return the one sentence with which a command refuses its arguments."""
    done = plyzero(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("plyzero: ")
    return done.stderr


GROUP = typer.main.get_command(app)


def parsed(words: list[str]) -> tuple[str, dict]:
    """Return a command of plyzero and the values of its options. Raises click's error for a command that is none."""
    context = GROUP.make_context("plyzero", list(words), resilient_parsing=True)
    name, command, rest = GROUP.resolve_command(context, words)
    if name == "replay":
        name, command, rest = command.resolve_command(command.make_context(name, rest, resilient_parsing=True), rest)
    return name, command.make_context(name, rest).params
