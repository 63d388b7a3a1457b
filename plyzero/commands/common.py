"""Shared by commands: arguments, tables and progress."""

from __future__ import annotations

import ctypes
import faulthandler
import io
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from importlib.util import find_spec
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TextIO, TypeVar, get_type_hints

import typer

from plyzero.errors import FailedError, UserError, install_command
from plyzero.files import list_names, read_file
from plyzero.threads import repeating

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from plyzero.rules.catalog import GameSpec
    from plyzero.run.directory import Run
    from plyzero.settings import Settings

T = TypeVar("T")

LINE_SECONDS: Final = 12.0
"""Seconds between two lines of progress without a terminal; at most 15 are promised."""

MAX_OUTPUT: Final = 100_000
"""Largest number of characters shown of the output of a game's code."""


class BoundedOutput(io.TextIOBase):
    """The output of a game's code: characters after the first MAX_OUTPUT are dropped, with one message."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._left = file, MAX_OUTPUT

    def write(self, text: str) -> int:
        """Write the part of `text` for which there is room, and return its whole length."""
        if self._left > 0:
            self._file.write(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                self._file.write("\nplyzero: the code of the game prints without end; further output is dropped\n")
            self._file.flush()
        return len(text)


FILTER: Final = f"""
import os
left = {MAX_OUTPUT}
while read := os.read(0, 1 << 16):
    os.write(1, read[:left])
    if 0 < left <= len(read):
        os.write(1, b"\\nplyzero: the code of the game prints without end; further output of C is dropped\\n")
    left = max(0, left - len(read))
"""
"""A program that copies at most MAX_OUTPUT bytes from its input to its output."""


def bound_output_of_c() -> None:
    """Bound the output of code in C, which does not use `sys.stdout`, to MAX_OUTPUT bytes.

    It goes through another process, which still copies the last words of this one if a fault in C ends it.
    """
    is_ours = sys.stdout is sys.__stdout__  # otherwise a test has replaced it
    if not (is_ours and sys.stdout and sys.stderr):  # closed by the parent process
        return
    sys.stdout.flush()
    outputs = [os.fdopen(os.dup(each), "w", buffering=1, errors="backslashreplace") for each in (1, 2)]
    command = [sys.executable, "-I", "-S", "-c", FILTER]
    filtering = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=outputs[0], process_group=0)
    assert filtering.stdin
    for each in (1, 2):
        os.dup2(filtering.stdin.fileno(), each)
    filtering.stdin.close()
    sys.stdout, sys.stderr = outputs
    for handler in logging.root.handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stdout)
    if faulthandler.is_enabled():
        faulthandler.enable(sys.stderr, all_threads=False)


EXTRAS: Final = {
    "onnx": "cpu",
    "onnxruntime": "cpu",
    "torch": "train",
    "grpc": "grpc",
    "starlette": "web",
    "uvicorn": "web",
    "matplotlib": "plot",
    "PIL": "plot",
    "resvg_py": "plot",
    "scipy": "experiments",
    "ray": "ray",
    "hera": "argo",
    "wasmtime": "share",
}
"""Package that plyzero can do without -> the extra that installs it."""


def read_directory(text: str) -> Path:
    """Return the directory or bucket that --run names. Raises UserError if the name is empty."""
    if not text:
        raise UserError("expected --run DIR, got an empty name; for the current directory write --run .")
    if "//" not in text:
        return Path(text)
    from plyzero.volumes import to_path

    return to_path(text)


GameArgument = Annotated[
    str,
    typer.Argument(
        metavar="GAME",
        help="Such as connect-four, othello(size=6), my_module:MyGame, openspiel:go or azg:module:Class.",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Begin at the position in this file: names of moves, or a board as printed."),
]
RunOption = Annotated[
    Path, typer.Option("--run", metavar="DIR", parser=read_directory, help="The run directory, or s3://BUCKET/PREFIX.")
]
Options = Annotated[
    list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="A setting, such as selfplay.simulations=64.")
]
Scratch = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="For a run in a bucket: where this machine keeps games that are not sealed."),
]
Preset = Annotated[str | None, typer.Option(help="quick (default), standard or gpu; only for a new run.")]
Seed = Annotated[int | None, typer.Option(help="Random seed; only for a new run (default 0).")]
Device = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to train; auto = a GPU if there is one.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class Budget(NamedTuple):
    """The options for the budget of a training."""

    steps: Annotated[int | None, typer.Option(min=1, help="The training is over after this many optimiser steps.")]
    games: Annotated[int | None, typer.Option(min=1, help="The training is over when this many games have been read.")]
    positions: Annotated[int | None, typer.Option(min=1, help="The training is over after this many positions.")]
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=10_000_000,
            help="The training is over after this many minutes from the first game on, but not without a model.",
        ),
    ]
    until: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help='The training is over at a score, "score >= 0.9 against mcts:100", or "points >= 2 against mcts:100".',
        ),
    ]

    def added_to(self, options: Sequence[str] | None) -> list[str]:
        """Return settings in the form of -o, with those of this budget."""
        settings = list(options or ())
        for key, value in self._asdict().items():
            if value is not None:
                settings.append(f"budget.{key}={value}")
        return settings


class RunOptions(NamedTuple):
    """The options of a process that creates its run if it does not exist."""

    game: Annotated[str | None, typer.Option(metavar="GAME", help="Create the run for this game if it does not exist.")]
    preset: Preset
    seed: Seed
    scratch: Scratch
    options: Options

    def open(self, run: Path, check: Callable[[Run], None]) -> Run:
        """Return the run, as `open_or_create_run` does with these options and this check."""
        from plyzero.run.directory import open_or_create_run

        return open_or_create_run(
            run,
            find_game(self.game) if self.game else None,
            preset=self.preset or None,  # "" in compose.yaml
            seed=self.seed,
            options=self.options or (),
            scratch=self.scratch,
            check=check,
        )


class LogOptions(NamedTuple):
    """The options of a process that others start."""

    log_format: Annotated[Literal["text", "json"], typer.Option(help="Lines of text, or of JSON objects.")] = "text"
    stopped_code: Annotated[
        int, typer.Option(min=0, max=125, help="Exit code if it is stopped before the run is over, for Kubernetes.")
    ] = 0
    until_end_of_input: Annotated[bool, typer.Option("--until-end-of-input", hidden=True)] = False


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of its NamedTuples; without a default it is None."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if hasattr(hint, "_fields")}
    parameters = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        defaults = groups[name]._field_defaults
        for field, hint in get_type_hints(groups[name], include_extras=True).items():
            parameters.append(parameter.replace(name=field, default=defaults.get(field), annotation=hint))

    def run(**given: Any) -> None:
        made = {}
        for name, group in groups.items():
            made[name] = group(**{field: given.pop(field) for field in group._fields})
        command(**given, **made)

    run.__doc__ = command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


PANEL: Final = "panel"
"""The attribute of a command that names its panel in the help."""

M = TypeVar("M")


def in_panel(name: str) -> Callable[[M], M]:
    """Return a decorator that puts a kit's command, or group of commands, into this panel of `plyzero --help`."""

    def put(command: M) -> M:
        setattr(command, PANEL, name)
        return command

    return put


def require(*packages: str) -> None:
    """Raise UserError, with the command that installs them, if packages of EXTRAS are missing; none is imported."""
    if missing := [package for package in packages if find_spec(package) is None]:
        raise UserError(describe_missing(missing))


def describe_missing(packages: Sequence[str]) -> str:
    """Return a sentence with the command that installs these packages of EXTRAS."""
    extras = ",".join(dict.fromkeys(EXTRAS[package] for package in packages))
    return f"this needs {' and '.join(packages)}, which cannot be found here: {install_command(extras)}"


def missing_package(error: BaseException) -> str | None:
    """Return the package of EXTRAS whose absence has caused the error; None if another thing has."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    return package if package in EXTRAS else None


def find_game(text: str, start: Path | None = None) -> GameSpec:
    """Return a game, which begins at the position in the file `start` if one is given.

    Raises UserError if there is no such game or position. The output of its module goes to standard error.
    """
    from plyzero.lines import MAX_LINE
    from plyzero.rules.catalog import load_game

    with data_output():
        spec = load_game(text)
        try:
            if start is None:
                return spec
            text = read_file(start, max_bytes=MAX_LINE).decode()
            return spec.set_up(text, str(start))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot begin at the position in {start}: {error}") from error


@contextmanager
def data_output() -> Iterator[TextIO]:
    """Yield standard output for the data of a command; anything else that is printed goes to standard error.

    Rules may print when they are imported and called, in Python, in C, or in a child process.
    """
    output, ours = sys.stdout or io.StringIO(), sys.__stdout__
    if not ours or output is not ours or not sys.stderr:  # replaced by a test, or closed by the parent process
        with redirect_stdout(BoundedOutput(sys.stderr)):
            yield output
        return
    ours.flush()
    with (
        os.fdopen(os.dup(1), "w", encoding=ours.encoding, errors=ours.errors) as data,
        redirect_stdout(BoundedOutput(sys.stderr)),
    ):
        os.dup2(2, 1)
        try:
            yield data
        finally:
            ctypes.CDLL(None).fflush(None)  # write what C code has buffered
            os.dup2(data.fileno(), 1)


def check_continues(run: Path, options: Sequence[str] | None) -> None:
    """Raise UserError if `run` exists and its trainer could not continue it; imports torch only if it must."""
    from plyzero.network.model_loader import is_of_network
    from plyzero.run.directory import open_run

    if not (run / "run.toml").exists():
        return
    opened = open_run(run, options=options or ())
    with suppress(OSError):  # the process that is about to start waits for the volume itself
        if not is_of_network(opened) and any(name.startswith("state-") for name in list_names(opened.trainer)):
            from plyzero.trainer.loop import check_resumes

            check_resumes(opened)


def check_new_run(run: Run, *, workers: int = 0, trainer: bool = False) -> None:
    """Raise UserError if this machine could not train a run that is about to be created.

    Where torch is installed, custom parts such as network.module are tried in another process.
    """
    from plyzero.ops.sizes import check_sizes
    from plyzero.settings import Settings

    check_sizes(run.game.start, run.settings, workers=workers, trainer=trainer)
    found, usual = run.settings, Settings()

    def parts(settings: Settings) -> tuple[str, ...]:
        trainer = settings.trainer
        return settings.network.module, trainer.targets, trainer.loss, trainer.optimizer, trainer.schedule

    if parts(found) != parts(usual) and find_spec("torch"):
        in_another_process(_try_parts, run.game.name, run.settings)


def in_another_process(function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function that runs in another process, so that its memory is freed."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _try_parts(game: str, settings: Settings) -> None:
    from plyzero.trainer.parts import make_parts

    make_parts(find_game(game), settings)


@contextmanager
def playing(game: GameSpec, *, may_print: bool = False) -> Iterator[TextIO]:
    """Turn an error in the rules of a custom game into one sentence with the command that tests them.

    Yields standard output, which the rules do not reach unless they `may_print`.
    """
    try:
        with nullcontext(sys.stdout) if may_print else data_output() as output:
            yield output
    except (UserError, FailedError, MemoryError, EOFError):
        raise
    except (Exception, SystemExit) as error:
        from plyzero.rules.user_errors import own_frames, with_location

        if (
            game.is_included
            or missing_package(error)
            or (isinstance(error, OSError | SystemExit) and not own_frames(error))
        ):
            raise
        hint = f"plyzero check {shlex.quote(game.name)} tests the rules"
        raise FailedError(f"{game.name} cannot be played: {with_location(error)}; {hint}") from error


def make_console(**options: Any) -> Console:
    """Return a console that prints text unchanged; without a terminal it never breaks or cuts a line."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, **options)
    if not console.is_terminal:
        console.width = 10_000
    return console


def make_table(*headers: str, **options: Any) -> Table:
    """Return a table without borders. In a narrow terminal its cells are wrapped, never cut."""
    from rich.table import Column, Table

    return Table(*(Column(header, overflow="fold") for header in headers), box=None, **options)


@contextmanager
def show_progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show `text` on standard error, and later each text that is passed to the yielded function.

    On a terminal it is one line that changes; "" hides it. Elsewhere the latest text and the elapsed time are printed
    every LINE_SECONDS.
    """
    console = make_console(stderr=True)
    if console.is_terminal:
        with console.status(text) as status:

            def update(text: str) -> None:
                status.update(text[: console.width - 4])  # rich does not erase a status that wraps
                if text:
                    status.start()
                else:
                    status.stop()

            yield update
        return
    latest = text
    began = time.monotonic()

    def set_latest(text: str) -> None:
        nonlocal latest
        latest = text

    def print_line() -> None:
        if latest:
            print(f"{time.monotonic() - began:.0f} s: {latest}\n", end="", file=sys.stderr, flush=True)

    with repeating(print_line, LINE_SECONDS, name="progress"):
        yield set_latest
