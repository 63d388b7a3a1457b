"""plyzero: an AlphaZero toolkit for your own two-player game."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plyzero.check import GameLaws
    from plyzero.compiled import CompiledGame, kernel
    from plyzero.game import Game, IllegalActionError, Outcome
    from plyzero.players import Bot
    from plyzero.symmetry import Symmetry

__version__ = version("plyzero")

__all__ = ["Bot", "CompiledGame", "Game", "GameLaws", "IllegalActionError", "Outcome", "Symmetry", "kernel"]

_HOMES = {
    "Bot": "players",
    "CompiledGame": "compiled",
    "GameLaws": "check",
    "Symmetry": "symmetry",
    "kernel": "compiled",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `plyzero --help` need not wait for Numba."""
    if name not in __all__:
        raise AttributeError(f"module 'plyzero' has no attribute {name!r}")
    return getattr(import_module(f"plyzero.{_HOMES.get(name, 'game')}"), name)
