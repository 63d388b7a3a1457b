"""plyzero: an AlphaZero toolkit for your own two-player game.

What a program imports from here are the public names in `__all__`. Each folder answers one question and imports only
from the folders above it in this table:

errors, extensions, files, lines, machine, pulse, setting_types, settings, threads  what every folder uses
volume_errors, volumes  errors of a volume, and volumes that are no directories
rules                What is a game?
run                  What is on the volume?
search               How does it choose a move?
network              What is a published model?
play                 How is a bot used?
check                Is a game right?
ops                  What is running?
games                the included games, each by itself
selfplay, trainer    the worker, and the trainer: the two roles of the loop
commands             the command line, by panel
testing              Do parts of your own keep the promises?
kits                 what a person opens when they need it

The folders `games`, `selfplay` and `trainer` are links to those at the top of the repository.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plyzero.check.violations import GameLaws
    from plyzero.errors import UserError
    from plyzero.kits.adapters.native_game import NativeGame  # type checkers read no entry points
    from plyzero.ops.training import train
    from plyzero.play.agents import Agent
    from plyzero.play.match import play_match
    from plyzero.play.player import RandomPlayer
    from plyzero.play.players import Bot
    from plyzero.rules.board import Board, Cell, Label, Mark, grid, hexes, render_grid, square_names
    from plyzero.rules.catalog import load_game
    from plyzero.rules.chance import played, rolled
    from plyzero.rules.compiled_game import CompiledGame, Record, kernel
    from plyzero.rules.game import DRAW, ONGOING, Game, IllegalActionError, Outcome
    from plyzero.rules.symmetry import Symmetry, mirror_columns, turns_and_mirrors
    from plyzero.run.records import Games
    from plyzero.run.replay import read_games
    from plyzero.search.evaluators import Evaluation, EvaluationBatch
    from plyzero.settings import SearchSettings, Settings

    __version__: str

_MODULES = {
    "plyzero.check.violations": ["GameLaws"],
    "plyzero.errors": ["UserError"],
    "plyzero.ops.training": ["train"],
    "plyzero.play.agents": ["Agent"],
    "plyzero.play.match": ["play_match"],
    "plyzero.play.player": ["RandomPlayer"],
    "plyzero.play.players": ["Bot"],
    "plyzero.rules.board": ["Board", "Cell", "Label", "Mark", "grid", "hexes", "render_grid", "square_names"],
    "plyzero.rules.catalog": ["load_game"],
    "plyzero.rules.chance": ["played", "rolled"],
    "plyzero.rules.compiled_game": ["CompiledGame", "Record", "kernel"],
    "plyzero.rules.game": ["DRAW", "ONGOING", "Game", "IllegalActionError", "Outcome"],
    "plyzero.rules.symmetry": ["Symmetry", "mirror_columns", "turns_and_mirrors"],
    "plyzero.run.records": ["Games"],
    "plyzero.run.replay": ["read_games"],
    "plyzero.search.evaluators": ["Evaluation", "EvaluationBatch"],
    "plyzero.settings": ["SearchSettings", "Settings"],
}

NAMES = "plyzero.names"
"""The entry-point group of the public names that kits bring: a name of `__all__` -> the object."""

__all__ = [
    "DRAW",
    "ONGOING",
    "Agent",
    "Board",
    "Bot",
    "Cell",
    "CompiledGame",
    "Evaluation",
    "EvaluationBatch",
    "Game",
    "GameLaws",
    "Games",
    "IllegalActionError",
    "Label",
    "Mark",
    "NativeGame",
    "Outcome",
    "RandomPlayer",
    "Record",
    "SearchSettings",
    "Settings",
    "Symmetry",
    "UserError",
    "grid",
    "hexes",
    "kernel",
    "load_game",
    "mirror_columns",
    "play_match",
    "played",
    "read_games",
    "render_grid",
    "rolled",
    "square_names",
    "train",
    "turns_and_mirrors",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `plyzero --help` does not wait for Numba."""
    if name == "__version__":
        return import_module("importlib.metadata").version("plyzero")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    if name in __all__:  # a kit brings it
        extensions = import_module("plyzero.extensions")
        if entry := extensions.find_extensions(NAMES).get(name):
            return extensions.load_extension(entry, f"plyzero.{name}")
    raise AttributeError(f"module 'plyzero' has no attribute {name!r}")
