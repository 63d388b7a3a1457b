"""train, init, selfplay, trainer: make a run, and the roles that work on it."""

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
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.ops.supervisor import Rating, Report
    from plyzero.run.directory import Run


def train(
    game: GameArgument,
    run: RunOption,
    workers: Annotated[int | None, typer.Option(min=1, help="Self-play processes; default: one a core.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop after so many; default: on Ctrl-C.")] = None,
    preset: Preset = None,
    seed: Seed = None,
    device: Device = "auto",
    options: Options = None,
) -> None:
    """Learn GAME on this machine. The same command goes on where the last one stopped."""
    from plyzero.ops.processes import interrupt_on_signals, usable_cores

    stop = interrupt_on_signals()  # before the slow imports
    from plyzero.ops import supervisor
    from plyzero.run.directory import open_or_create_run
    from plyzero.run.models import list_models

    console = Console(highlight=False, soft_wrap=True)
    opened = open_or_create_run(run, find_game(game), preset=preset, seed=seed, options=options or ())
    workers = workers or usable_cores()
    console.print(f"{opened.game.name} · preset {opened.preset} · {workers} workers + trainer · run {run}")
    console.print(_row(["time", "games", "pos/s", "step", "policy", "value", "ratio"]))
    warning = None

    def show(report: Report) -> None:
        nonlocal warning
        console.print(_report_row(report))
        before, warning = warning, report.fields.get("warning")
        if warning and warning != before:
            console.print(f"       warning: {warning}", style="bold")

    try:
        with console.status("starting") as status:
            supervisor.train(
                opened,
                workers=workers,
                minutes=minutes,
                stop=stop,
                options=options or (),
                device=device,
                report=show,
                rated=lambda rating: console.print(_rating_row(rating)),
                doing=status.update,
            )
    except KeyboardInterrupt:
        pass  # what there is to tell follows
    except supervisor.ChildFailedError as error:
        hint = f"; if the rules are to blame, plyzero check {quoted(game)} finds the moves"
        raise FailedError(f"{error}{hint}") from error
    ended = "stopped and saved" if stop.is_set() else "saved"
    if list_models(opened.models):
        console.print(f"{ended}. To go on, the same command. To play: plyzero play {quoted(game)} --run {run}")
    else:
        console.print(f"{ended}, but there is no model yet. To go on, the same command.")


def init(game: GameArgument, run: RunOption, preset: Preset = None, seed: Seed = None, options: Options = None) -> None:
    """Make a run directory with its resolved settings in run.toml."""
    from plyzero.run.directory import create_run

    try:
        made = create_run(run, find_game(game), preset=preset or "quick", seed=seed or 0, options=options or ())
    except FileExistsError as error:
        raise UserError(f"{run} is a run directory already; it stays as it is") from error
    print(f"made {run} for {made.game.name}; its settings are in {run / 'run.toml'}")


def selfplay(
    run: RunOption,
    game: GameOption = None,
    name: Annotated[str | None, typer.Option(help="Of this worker; default: the host's name.")] = None,
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    log_format: LogFormat = "text",
    until_end_of_input: EndOfInput = False,
) -> None:
    """Play games for a run until stopped."""
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
    """Train on a run's games and publish models until stopped."""
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
    """Return the run and what ends the role; signals are caught first, before the slow imports."""
    from plyzero.ops.processes import stop_on_end_of_input, stop_on_signals

    stop = stop_on_signals()
    if until_end:
        stop_on_end_of_input(stop)
    from plyzero.run.directory import open_or_create_run

    _log_lines(log_format)
    spec = find_game(game) if game else None
    # an empty --preset is what a compose file passes on when nobody has chosen one
    return open_or_create_run(run, spec, preset=preset or None, seed=seed, options=options or ()), stop


def _log_lines(log_format: str) -> None:
    if log_format not in LOG_FORMATS:
        raise UserError(f"expected --log-format {' or '.join(LOG_FORMATS)}, got {log_format!r}")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LOG_FORMATS[log_format])
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _JsonFormatter(logging.Formatter):
    """One JSON object a line, with the same parts as the text."""

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)  # a traceback included
        fields = {"time": round(record.created, 3), "level": record.levelname, "logger": record.name}
        return json.dumps({**fields, "message": message})


LOG_FORMATS: dict[str, logging.Formatter] = {
    "text": logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": _JsonFormatter("%(message)s"),
}
