"""The command line. The only module that imports upward, inside command bodies, so that help and play load no torch."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.catalog import GameSpec
    from plyzero.local import Report
    from plyzero.network import Network
    from plyzero.run import Run

app = typer.Typer(
    help="Learn a two-player game from its rules alone, and play it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
replay_app = typer.Typer(help="Look into the replay store.", no_args_is_help=True)
app.add_typer(replay_app, name="replay", rich_help_panel="Look")

VOLUME_ERRORS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
}
"""What a person can mend: shown as a sentence."""

GameArgument = Annotated[str, typer.Argument(metavar="GAME", help="connect-four, othello(size=6), my_module:MyGame")]
GameOption = Annotated[str | None, typer.Option("--game", metavar="GAME", help="Make the run if it is not there.")]
RunOption = Annotated[Path, typer.Option("--run", metavar="DIR", help="The run directory.")]
Options = Annotated[
    list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="A setting, such as selfplay.simulations=64.")
]
Preset = Annotated[str | None, typer.Option(help="quick (default), standard or gpu; only for a new run.")]
Seed = Annotated[int | None, typer.Option(help="Of all randomness; only for a new run (default 0).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
EndOfInput = Annotated[bool, typer.Option("--until-end-of-input", hidden=True)]


@app.command(rich_help_panel="Train")
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
    from plyzero.processes import interrupt_on_signals

    stop = interrupt_on_signals()  # before the slow imports
    from plyzero import local
    from plyzero.models import list_models
    from plyzero.run import open_or_create_run

    console = Console(highlight=False, soft_wrap=True)
    opened = open_or_create_run(run, _game(game), preset=preset, seed=seed, options=options or ())
    workers = workers or len(os.sched_getaffinity(0))
    console.print(f"{opened.game.name} · preset {opened.preset} · {workers} workers + trainer · run {run}")
    opponents = opened.settings.rating.opponents
    console.print(_row(["time", "games", "pos/s", "step", "policy", "value", "ratio", *opponents]))
    try:
        with console.status("starting") as status:
            local.train(
                opened,
                workers=workers,
                minutes=minutes,
                stop=stop,
                options=options or (),
                device=device,
                report=lambda report: console.print(_report_row(report, opponents)),
                doing=status.update,
            )
    except KeyboardInterrupt:
        pass  # what there is to tell follows
    except local.ChildFailedError as error:
        raise _Failed(str(error)) from error
    ended = "stopped and saved" if stop.is_set() else "saved"
    if list_models(opened.models):
        console.print(f"{ended}. To go on, the same command. To play: plyzero play {_quoted(game)} --run {run}")
    else:
        console.print(f"{ended}, but there is no model yet. To go on, the same command.")


@app.command(rich_help_panel="Train")
def init(game: GameArgument, run: RunOption, preset: Preset = None, seed: Seed = None, options: Options = None) -> None:
    """Make a run directory with its resolved settings in run.toml."""
    from plyzero.run import create_run

    try:
        made = create_run(run, _game(game), preset=preset or "quick", seed=seed or 0, options=options or ())
    except FileExistsError as error:
        raise UserError(f"{run} is a run directory already; it stays as it is") from error
    print(f"made {run} for {made.game.name}; its settings are in {run / 'run.toml'}")


@app.command(rich_help_panel="Train")
def selfplay(
    run: RunOption,
    game: GameOption = None,
    name: Annotated[str | None, typer.Option(help="Of this worker; default: the host's name.")] = None,
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    until_end_of_input: EndOfInput = False,
) -> None:
    """Play games for a run until stopped."""
    opened, stop = _begin_role(run, game, preset, seed, options, until_end_of_input)
    from selfplay.worker import run_worker

    worker = re.sub(r"[^a-z0-9_]", "_", (name or socket.gethostname()).lower())[:32]
    run_worker(opened, name=worker, stop=stop)


@app.command(rich_help_panel="Train")
def trainer(
    run: RunOption,
    game: GameOption = None,
    device: Device = "auto",
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    until_end_of_input: EndOfInput = False,
) -> None:
    """Train on a run's games and publish models until stopped."""
    opened, stop = _begin_role(run, game, preset, seed, options, until_end_of_input)
    from trainer.loop import run_trainer

    run_trainer(opened, device=device, stop=stop)


@app.command(rich_help_panel="Play")
def play(
    game: GameArgument,
    run: Annotated[Path | None, typer.Option("--run", metavar="DIR", help="Play its newest model.")] = None,
    net: Annotated[Path | None, typer.Option("--net", metavar="FILE", help="Play this ONNX file.")] = None,
    model: Annotated[int | None, typer.Option(metavar="STEP", help="With --run: the model of this step.")] = None,
    side: Annotated[str, typer.Option("--as", help="Your side: first, second or random.")] = "first",
    simulations: Annotated[int, typer.Option(min=0, help="The bot's; 0 = the raw network.")] = 64,
) -> None:
    """Play the bot in the terminal."""
    from plyzero.play import play_in_terminal

    if side not in ("first", "second", "random"):
        raise UserError(f"expected --as first, second or random, got {side!r}")
    spec = _game(game)
    play_in_terminal(spec, _network(spec, run, net, model), side=side, simulations=simulations)


@app.command(rich_help_panel="Look")
def games() -> None:
    """List the games that can be trained."""
    from plyzero.catalog import installed_games

    table = Table("game", "what it is", box=None)
    for name, what in installed_games().items():
        table.add_row(name, what)
    Console().print(table)
    print("\nYour own game is my_module:MyGame, found from the directory you are in.")


@app.command(rich_help_panel="Look")
def status(
    run: RunOption,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds.")] = False,
) -> None:
    """Show what every process of a run is doing and who waits for whom."""
    from plyzero.run import open_run
    from plyzero.status import snapshot

    opened, console = open_run(run), Console(highlight=False)
    while True:
        found = snapshot(opened)
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            if watch:
                console.clear()
            _print_status(console, found)
        if not watch:
            return
        time.sleep(2)


@replay_app.command("ls")
def replay_ls(run: RunOption, as_json: Json = False) -> None:
    """List the segments of a run."""
    from dataclasses import asdict

    from plyzero.run import open_run
    from plyzero.segments import list_segments

    names = sorted(list_segments(open_run(run).segments), key=lambda name: (name.low, name.worker, name.sequence))
    totals = {key: sum(getattr(name, key) for name in names) for key in ("games", "positions", "full")}
    if as_json:
        print(json.dumps({"version": 1, "segments": [asdict(name) for name in names], "totals": totals}))
        return
    table = Table("writer", "segment", "games", "positions", "full search", "model steps", box=None)
    for name in names:
        steps = "no model" if name.bootstrap else f"{name.low} to {name.high}"
        writer, counts = f"{name.worker}.{name.incarnation}", (name.sequence, name.games, name.positions, name.full)
        table.add_row(writer, *map(str, counts), steps)
    table.add_row("total", str(len(names)), *map(str, totals.values()), "", style="bold")
    Console().print(table)


def main() -> None:
    """Run a command. Exit codes: 0 = done, 1 = it failed on the way, 2 = bad input."""
    try:
        app()
    except UserError as error:
        _exit(error, 2)
    except _Failed as error:
        _exit(error, 1)
    except OSError as error:
        if error.errno not in VOLUME_ERRORS:
            raise
        _exit(f"cannot use {error.filename or 'the volume'}: {error.strerror}", 2)
    except KeyboardInterrupt:
        sys.exit(130)


class _Failed(Exception):
    """A command that could not be finished, through no fault of its input."""


def _exit(message: object, code: int) -> None:
    print(f"plyzero: {message}", file=sys.stderr)
    sys.exit(code)


def _game(text: str) -> GameSpec:
    from plyzero.catalog import load_game

    return load_game(text)


def _network(game: GameSpec, run: Path | None, net: Path | None, step: int | None) -> Network | None:
    from plyzero.models import load_newest
    from plyzero.network import ModelRefusedError, Network
    from plyzero.run import open_run

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if step is not None and run is None:
        raise UserError(f"--model {step} needs the --run it belongs to")
    if net is not None:
        try:
            return Network(net.read_bytes(), game, label=net.name)
        except (OSError, ModelRefusedError) as error:
            raise UserError(f"cannot use {net}: {error}") from error
    if run is not None:
        network = load_newest(open_run(run, game=game).models, game, step=step)
        if network is None:
            raise UserError(f"{run} has no model yet; train it first, or leave out --run to meet pure MCTS")
        return network
    return None


def _row(cells: list[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 8, 6, 7, 6, 5, 5, *[12] * 9), strict=False))


def _report_row(report: Report, opponents: tuple[str, ...]) -> str:
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
            *(str(report.scores.get(name, "")) for name in opponents),
        ]
    ).rstrip()


def _print_status(console: Console, found: dict[str, Any]) -> None:
    replay, models = found["replay"], found["models"]
    console.print(f"{found['run']}: {found['game']}")
    console.print(
        f"replay: {replay['games']} games, {replay['positions']} positions "
        f"({replay['full_positions']} with a full search) in {replay['segments']} segments"
    )
    console.print(f"models: {models['count']}, newest {models['newest'] or 'none yet'}")
    table = Table("process", "doing", "last heard", "done", box=None)
    for process in found["processes"]:
        if process["role"] == "trainer":
            ratio, wanted = process["replay_ratio"], process["replay_ratio_wanted"]
            done = f"step {process['step']}, replay ratio {ratio:.2f} of {wanted:g}, window {process['window']}"
        else:
            done = f"{process['games']} games with {process.get('model') or 'no model'}"
        heard = f"{process['seconds_since_beat']:.0f} s ago"
        table.add_row(process["name"], process["state"], heard, done)
    console.print(table)
    console.print(found["waiting"])


def _begin_role(
    run: Path, game: str | None, preset: str | None, seed: int | None, options: list[str] | None, until_end: bool
) -> tuple[Run, threading.Event]:
    """Return the run and what ends the role; signals are caught first, before the slow imports."""
    from plyzero.processes import stop_on_end_of_input, stop_on_signals

    stop = stop_on_signals()
    if until_end:
        stop_on_end_of_input(stop)
    from plyzero.run import open_or_create_run

    _log_lines()
    spec = _game(game) if game else None
    return open_or_create_run(run, spec, preset=preset, seed=seed, options=options or ()), stop


def _quoted(game: str) -> str:
    return f"'{game}'" if "(" in game else game


def _log_lines() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stdout)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
