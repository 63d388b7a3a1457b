"""plyzero: an AlphaZero toolkit for your own two-player game.

What a program imports from here are the public names in `__all__`. Each folder answers one question and imports only
from the folders above it in this table:

errors, files, settings   what every folder uses
rules                     What is a game?
search                    How does it choose a move?
run                       What is on the volume?
play                      How is a bot used?
check                     Is a game right?
ops                       What is running?
commands                  the command line, by panel

The roles are packages of their own, beside this one: `selfplay` (the worker), `trainer`, and `games` (rules only).
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plyzero.check.violations import GameLaws
    from plyzero.play.players import Bot
    from plyzero.rules.compiled_game import CompiledGame, Record, kernel
    from plyzero.rules.game import DRAW, ONGOING, Game, IllegalActionError, Outcome
    from plyzero.rules.symmetry import Symmetry

__version__ = version("plyzero")

__all__ = [
    "DRAW",
    "ONGOING",
    "Bot",
    "CompiledGame",
    "Game",
    "GameLaws",
    "IllegalActionError",
    "Outcome",
    "Record",
    "Symmetry",
    "kernel",
]

_MODULES = {
    "Bot": "play.players",
    "CompiledGame": "rules.compiled_game",
    "GameLaws": "check.violations",
    "Record": "rules.compiled_game",
    "Symmetry": "rules.symmetry",
    "kernel": "rules.compiled_game",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `plyzero --help` need not wait for Numba."""
    if name not in __all__:
        raise AttributeError(f"module 'plyzero' has no attribute {name!r}")
    return getattr(import_module(f"plyzero.{_MODULES.get(name, 'rules.game')}"), name)
