"""Arguments that several commands share, and the error that ends a command with exit code 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from plyzero.rules.catalog import GameSpec

GameArgument = Annotated[
    str, typer.Argument(metavar="GAME", help="Such as connect-four, othello(size=6) or my_module:MyGame.")
]
GameOption = Annotated[
    str | None, typer.Option("--game", metavar="GAME", help="Create the run for this game if it does not exist.")
]
RunOption = Annotated[Path, typer.Option("--run", metavar="DIR", help="The run directory.")]
Options = Annotated[
    list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="A setting, such as selfplay.simulations=64.")
]
Preset = Annotated[str | None, typer.Option(help="quick (default), standard or gpu; only for a new run.")]
Seed = Annotated[int | None, typer.Option(help="Random seed; only for a new run (default 0).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
LogFormat = Annotated[str, typer.Option(metavar="FORMAT", help="text, or json: one object per line.")]
EndOfInput = Annotated[bool, typer.Option("--until-end-of-input", hidden=True)]


class FailedError(Exception):
    """A command failed although its input is valid; exit code 1."""


def find_game(text: str) -> GameSpec:
    """Return the game named by `text`. Raises UserError if there is none."""
    from plyzero.rules.catalog import load_game

    return load_game(text)


def quoted(game: str) -> str:
    """Return the name of a game, quoted for a shell if it has parentheses."""
    return f"'{game}'" if "(" in game else game
