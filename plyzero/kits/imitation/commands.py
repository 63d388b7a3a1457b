"""imitate: train a bot on recorded games."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.errors import UserError, plain
from plyzero.volume_errors import explain

if TYPE_CHECKING:
    from plyzero.rules.catalog import GameSpec
    from plyzero.run.json_games import Fault
    from plyzero.run.records import Games

MAX_FAULTS: Final = 5
"""Largest number of faults in the error message."""


@common.in_panel("Train")
def imitate(
    game: common.GameArgument,
    games: Annotated[
        str,
        typer.Argument(
            metavar="GAMES",
            help="Finished games: JSON lines, as plyzero replay export prints them, SGF or PGN; - = standard input.",
        ),
    ],
    outputs: Annotated[
        list[str],
        typer.Option(
            "-o",
            metavar="BOT.onnx|KEY=VALUE",
            help="The file to write, which ends with .onnx; or a setting, such as network.blocks=4; may be repeated.",
        ),
    ],
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out what is not a finished game.")] = False,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, max=10_000_000, help="Stop after this many minutes; default: when it stops learning."),
    ] = None,
    preset: Annotated[str, typer.Option(help="The settings to begin with: quick, standard or gpu.")] = "quick",
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Random seed.")] = 0,
    device: common.Device = "auto",
) -> None:
    """Train a network on the moves and results of recorded games of GAME, and write it as a bot."""
    spec = common.find_game(game)
    bot, options = _split(outputs)
    path = bot.absolute()  # rules may leave the current directory
    from plyzero.kits.imitation.learning import HELD_OUT, TARGETS, Imitation, Progress
    from plyzero.run.configuration import preset_for, resolve
    from plyzero.trainer.first_model import write_bot

    settings = resolve(preset=preset_for(preset, spec.start), environment=os.environ, options=[TARGETS, *options])
    imitation = Imitation(spec, settings, seed=seed, device=device)
    with common.show_progress("reading games") as report, common.playing(spec):
        faults = _read(games, spec, imitation.add, report)
    name = "standard input" if games == "-" else games
    if faults and not skip_bad:
        raise UserError(_describe(name, spec, faults, games=imitation.games))
    if not imitation.games:
        raise UserError(f"{name} has no finished game of {spec.name}" + (f"; {faults[0]}" if faults else ""))
    left_out = f"; {len(faults)} left out, the first is {faults[0]}" if faults else ""
    unused = f", of which {imitation.unused} have nothing to learn from" if imitation.unused else ""
    print(
        f"{imitation.games} games{unused}: {len(imitation.training)} positions to train on, "
        f"{len(imitation.held_out)} of one game in {HELD_OUT} held out{left_out}"
    )
    print(f"{'':23s}{'training':>15s}{'held out':>15s}")
    print(_row(["time", "step", "passes", "policy", "value", "policy", "value", "agrees"]), flush=True)
    began = time.monotonic()

    def show(progress: Progress) -> None:
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        losses = (progress.policy, progress.value, progress.held_out_policy, progress.held_out_value)
        cells = [f"{minutes}:{seconds:02d}", str(progress.step), f"{progress.passes:.1f}"]
        print(_row([*cells, *(f"{loss:.3f}" for loss in losses), f"{progress.share:.1%}"]), flush=True)

    learned = imitation.learn(minutes=minutes, on_progress=show)
    write_bot(path, learned.model, learned.state)
    print(f"It agrees with the held-out games in {learned.agreement}; random moves would in {learned.guess:.1%}.")
    if learned.new:
        print(f"In positions that no other game has, it agrees in {learned.new}.")
    print(f"{bot} has the weights of step {learned.state['step']}. To play: plyzero play {quote(game)} --net {bot}")


def _split(outputs: list[str]) -> tuple[Path, list[str]]:
    """Return the file to write and the settings among the values of -o. Raises UserError if there is not one file."""
    files = [value for value in outputs if value.endswith(".onnx")]
    if len(files) != 1:
        raise UserError(f"expected one -o BOT.onnx, the file to write, got {' '.join(files) or 'none'}")
    if os.path.isdir(files[0]):
        raise UserError(f"{files[0]} is a directory; expected -o BOT.onnx, the file to write")
    return Path(files[0]), [value for value in outputs if value not in files]


def _read(path: str, game: GameSpec, add: Callable[[Games], None], report: Callable[[str], None]) -> list[Fault]:
    """Add the games in a file and return the faults in it."""
    from plyzero.kits.engines.game_files import find_games, open_lines
    from plyzero.run.json_games import Fault, import_games

    faults: list[Fault] = []
    games = 0
    try:
        with open_lines(path) as lines:
            for found in import_games(find_games(lines, game), game):
                if isinstance(found, Fault):
                    faults.append(found)
                else:
                    add(found)
                    games += 1
                report(f"{games} games read, {len(faults)} faults")
    except OSError as error:
        raise UserError(f"cannot read {path}: {explain(error)}") from error
    return faults


def _describe(name: str, game: GameSpec, faults: list[Fault], *, games: int) -> str:
    named = "; ".join(map(str, faults[:MAX_FAULTS])) + ("; ..." if len(faults) > MAX_FAULTS else "")
    count = f"{len(faults)} of {len(faults) + games} games in {name}"
    advice = "correct them, or leave them out with --skip-bad" if games else f"are these games of {game.name}?"
    return plain(f"{count} are not finished games of {game.name}: {named}; {advice}")


def _row(cells: list[str]) -> str:
    return " ".join(f"{cell:>7}" for cell in cells)
