"""train, init, selfplay, trainer: create a run, and start the processes that work on it."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from plyzero.commands.common import (
    Device,
    EndOfInput,
    FailedError,
    GameArgument,
    GameOption,
    LogFormat,
    Options,
    Preset,
    RunOption,
    Seed,
    find_game,
    quoted,
)
from plyzero.errors import UserError, plain

if TYPE_CHECKING:
    from plyzero.ops.supervisor import Rating, Report
    from plyzero.run.directory import Run


def train(
    game: GameArgument,
    run: RunOption,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of self-play processes; default: one per core.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many minutes; default: run until Ctrl-C.")
    ] = None,
    preset: Preset = None,
    seed: Seed = None,
    device: Device = "auto",
    options: Options = None,
) -> None:
    """Train GAME on this machine. The same command continues a training that was stopped."""
    from plyzero.ops.processes import interrupt_on_signals, usable_cores

    stop = interrupt_on_signals()  # before the slow imports
    from plyzero.ops import supervisor
    from plyzero.run.directory import open_or_create_run
    from plyzero.run.models import list_models

    console = Console(highlight=False, soft_wrap=True)
    opened = open_or_create_run(run, find_game(game), preset=preset, seed=seed, options=options or ())
    workers = workers or usable_cores()
    processes = f"{workers} worker{'s' if workers > 1 else ''} + trainer"
    console.print(f"{opened.game.name} · preset {opened.preset} · {processes} · run {run}")
    console.print(_row(["time", "games", "pos/s", "step", "policy", "value", "ratio"]))
    warning = None

    def show(report: Report) -> None:
        nonlocal warning
        console.print(_report_row(report))
        before, warning = warning, report.fields.get("warning")
        if warning and warning != before:
            console.print(f"       warning: {plain(str(warning))}", style="bold", markup=False)

    try:
        with console.status("starting") as status:
            supervisor.train(
                opened,
                workers=workers,
                minutes=minutes,
                stop=stop,
                options=options or (),
                device=device,
                on_report=show,
                on_rating=lambda rating: console.print(_rating_row(rating)),
                on_progress=lambda sentence: status.update(Text(plain(sentence, 400))),
            )
    except KeyboardInterrupt:
        pass  # how to continue is printed below
    except supervisor.ChildFailedError as error:
        hint = f"; to test the rules of the game: plyzero check {quoted(game)}"
        raise FailedError(f"{error}{hint}") from error
    ended = "stopped and saved" if stop.is_set() else "saved"
    if list_models(opened.models):
        console.print(f"{ended}. To continue: the same command. To play: plyzero play {quoted(game)} --run {run}")
    else:
        console.print(f"{ended}, but there is no model yet. To continue: the same command.")


def init(game: GameArgument, run: RunOption, preset: Preset = None, seed: Seed = None, options: Options = None) -> None:
    """Create a run directory and write all its settings to run.toml."""
    from plyzero.run.directory import create_run

    try:
        created = create_run(run, find_game(game), preset=preset or "quick", seed=seed or 0, options=options or ())
    except FileExistsError as error:
        raise UserError(f"{run} is a run directory already; it was not changed") from error
    print(f"created {run} for {created.game.name}; its settings are in {run / 'run.toml'}")


def selfplay(
    run: RunOption,
    game: GameOption = None,
    name: Annotated[str | None, typer.Option(help="Name of this worker; default: the host name.")] = None,
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    log_format: LogFormat = "text",
    until_end_of_input: EndOfInput = False,
) -> None:
    """Run a self-play worker for a run until it is stopped."""
    opened, stop = _begin_role(run, game, preset, seed, options, log_format, until_end_of_input)
    from selfplay.worker import run_worker

    worker = re.sub(r"[^a-z0-9_]", "_", (name or socket.gethostname()).lower())[:32]
    run_worker(opened, name=worker, stop=stop)


def trainer(
    run: RunOption,
    game: GameOption = None,
    device: Device = "auto",
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    log_format: LogFormat = "text",
    until_end_of_input: EndOfInput = False,
) -> None:
    """Run the trainer of a run, which trains on its games and publishes models, until it is stopped."""
    opened, stop = _begin_role(run, game, preset, seed, options, log_format, until_end_of_input)
    from trainer.loop import run_trainer

    run_trainer(opened, device=device, stop=stop)


def _row(cells: list[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 8, 6, 7, 6, 5, 5), strict=True))


def _rating_row(rating: Rating) -> str:
    scores = ", ".join(f"{result} against {opponent}" for opponent, result in rating.scores.items())
    return f"       step {rating.step} scores {scores}"


def _report_row(report: Report) -> str:
    fields, minutes = report.fields, int(report.seconds) // 60
    return _row(
        [
            f"{minutes}:{int(report.seconds) % 60:02d}",
            str(fields["games"]),
            f"{report.positions_per_second:.0f}" if report.positions_per_second else "",
            str(fields["step"]),
            f"{fields['policy_loss']:.3f}",
            f"{fields['value_loss']:.3f}",
            f"{fields['replay_ratio']:.2f}",
        ]
    ).rstrip()


def _begin_role(
    run: Path,
    game: str | None,
    preset: str | None,
    seed: int | None,
    options: list[str] | None,
    log_format: str,
    until_end: bool,
) -> tuple[Run, threading.Event]:
    """Return the run and the event that stops the process. Signals are caught before the slow imports."""
    from plyzero.ops.processes import stop_on_end_of_input, stop_on_signals

    stop = stop_on_signals()
    if until_end:
        stop_on_end_of_input(stop)
    from plyzero.run.directory import open_or_create_run

    _set_up_logging(log_format)
    spec = find_game(game) if game else None
    # compose.yaml passes an empty --preset if none is set
    return open_or_create_run(run, spec, preset=preset or None, seed=seed, options=options or ()), stop


def _set_up_logging(log_format: str) -> None:
    if log_format not in LOG_FORMATS:
        raise UserError(f"expected --log-format {' or '.join(LOG_FORMATS)}, got {log_format!r}")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LOG_FORMATS[log_format])
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _TextFormatter(logging.Formatter):
    """Formats a log record as a line of text. What comes from the volume cannot control a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(plain(line) for line in super().format(record).split("\n"))

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message)  # in one line; a traceback has lines of its own
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object per line, with the same fields as the text format."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)  # a traceback included
        fields = {"time": round(record.created, 3), "level": record.levelname, "logger": record.name}
        return json.dumps({**fields, "message": message})


LOG_FORMATS: dict[str, logging.Formatter] = {
    "text": _TextFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": _JsonFormatter("%(message)s"),
}
