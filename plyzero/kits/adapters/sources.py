"""The toolkits whose games have names, each imported when one of its games is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Final

from plyzero.errors import UserError, install_command
from plyzero.rules.catalog import GameSource
from plyzero.rules.game import Game


def _openspiel() -> ModuleType:
    try:
        from plyzero.kits.adapters import openspiel
    except ImportError as error:
        raise UserError(f"OpenSpiel is missing ({error}): {install_command('openspiel')}") from error
    return openspiel


def _openspiel_class(name: str) -> type[Game]:
    found: type[Game] = _openspiel().game_class(name)
    return found


def _openspiel_games() -> Mapping[str, Mapping[str, object]]:
    found: Mapping[str, Mapping[str, object]] = _openspiel().playable_games()
    return found


def _azg_class(name: str) -> type[Game]:
    from plyzero.kits.adapters import alpha_zero_general

    return alpha_zero_general.game_class(f"azg:{name}")


OPENSPIEL: Final = GameSource("OpenSpiel", "hex(board_size=7)", _openspiel_class, _openspiel_games)
ALPHA_ZERO_GENERAL: Final = GameSource("alpha-zero-general", "othello.OthelloGame:OthelloGame(n=6)", _azg_class, dict)
