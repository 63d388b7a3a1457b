"""Presets: how large everything is, for the time and the hardware there are, and for the game."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plyzero.rules.game import Game
from plyzero.rules.random_game import random_game
from plyzero.settings import Layer, Settings

PRESETS: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "quick": {"selfplay": {"seal_seconds": 4.0}, "trainer": {"publish_seconds": 8.0}},
    "standard": {
        "network": {"blocks": 4, "channels": 64},
        "trainer": {"window_positions": 50_000, "publish_seconds": 30.0},
    },
    "gpu": {
        "selfplay": {"slots": 512},
        "network": {"blocks": 6, "channels": 96},
        "trainer": {"batch_size": 1024, "learning_rate": 2e-3, "window_positions": 100_000},
    },
}
"""quick: minutes on two cores. standard: an hour or more on a few. gpu: a trainer with a GPU, many workers."""

WINDOW_GAMES: Final = 1000
"""The window has room for so many games at least, as long as random ones."""

GAMES: Final = 8
"""Random games that a game is judged by."""


def preset_for(name: str, start: Game) -> Layer:
    """Return the settings of the preset `name`, enlarged where the game asks for it."""
    preset = {section: dict(values) for section, values in PRESETS[name].items()}
    for section, key, number in enlarged(name, start):
        preset.setdefault(section, {})[key] = number
    return preset


def enlarged(name: str, start: Game) -> list[tuple[str, str, int]]:
    """Return section, key and value of what a game's board, length or choice of moves asks to be more than in a preset.

    Rules that fail ask for nothing: whoever plays by them next says what is wrong.
    """
    try:
        least = needs(start)
    except Exception:
        return []
    held = Settings.model_validate(PRESETS[name])
    return [each for each in least if each[2] > getattr(getattr(held, each[0]), each[1])]


def needs(start: Game) -> list[tuple[str, str, int]]:
    """Return section, key and least value of what a game asks for, judged by its shapes and GAMES random games.

    The network's blocks, each of which sees two squares further, let it see the board from one end to the other. The
    window holds the positions of WINDOW_GAMES. With more than 64 legal moves a search has more simulations.
    """
    games = [random_game(start, np.random.default_rng(number)) for number in range(GAMES)]
    plies = sum(len(game.moves) for game in games) / GAMES
    most_legal = max(len(position.legal_actions()) for game in games for position in game.positions)
    return [
        ("network", "blocks", math.ceil((max(start.observation_shape[1:]) - 3) / 4)),
        ("trainer", "window_positions", math.ceil(WINDOW_GAMES * plies * Settings().selfplay.full_search_probability)),
        ("selfplay", "simulations", 0 if most_legal <= 64 else 128 if most_legal <= 200 else 256),
    ]
