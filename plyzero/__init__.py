"""plyzero: an AlphaZero toolkit for your own two-player game."""

from importlib.metadata import version

from plyzero.compiled import CompiledGame, kernel
from plyzero.game import Game, IllegalActionError, Outcome
from plyzero.symmetry import Symmetry

__version__ = version("plyzero")

__all__ = ["CompiledGame", "Game", "IllegalActionError", "Outcome", "Symmetry", "kernel"]
