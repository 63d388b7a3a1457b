"""Presets: default settings for a machine and the time available, enlarged where the game requires it."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

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
        "selfplay": {"parallel_games": 512},
        "network": {"blocks": 6, "channels": 96},
        "trainer": {"batch_size": 1024, "learning_rate": 2e-3, "window_positions": 100_000},
    },
}
"""Preset -> section -> key -> value. quick: minutes on two cores. standard: an hour or more on a few cores. gpu: a
trainer with a GPU and many workers."""

WINDOW_GAMES: Final = 1000
"""Smallest number of games that the window has room for, if they are as long as random games."""

NUM_GAMES: Final = 8
"""Number of random games from which the requirements of a game are estimated."""


class Requirement(NamedTuple):
    """The smallest value of a setting that suits a game.

    section, key: the setting.
    minimum:      its smallest suitable value.
    """

    section: str
    key: str
    minimum: int


def preset_for(name: str, start: Game) -> Layer:
    """Return the settings of the preset `name`, enlarged where the game with the position `start` requires it."""
    preset = {section: dict(values) for section, values in PRESETS[name].items()}
    for required in unmet_requirements(name, start):
        preset.setdefault(required.section, {})[required.key] = required.minimum
    return preset


def unmet_requirements(name: str, start: Game) -> list[Requirement]:
    """Return the requirements of a game that exceed the preset `name`.

    Rules that raise an error have none: the error is reported where the game is played next.
    """
    try:
        required = requirements(start)
    except Exception:
        return []
    settings = Settings.model_validate(PRESETS[name])
    return [each for each in required if each.minimum > getattr(getattr(settings, each.section), each.key)]


def requirements(start: Game) -> list[Requirement]:
    """Return the requirements of a game, estimated from its shapes and from NUM_GAMES random games.

    The network has enough blocks for its receptive field, 3 + 4 · blocks squares wide, to span the board. The window
    has room for WINDOW_GAMES games. With more than 64 legal moves a search has more simulations.
    """
    games = [random_game(start, np.random.default_rng(number)) for number in range(NUM_GAMES)]
    plies = sum(game.plies for game in games) / NUM_GAMES
    max_legal = max(len(game.positions[i].legal_actions()) for game in games for i in game.decisions)
    side = max(start.observation_shape[1:])
    window = WINDOW_GAMES * plies * Settings().selfplay.full_search_probability
    return [
        Requirement("network", "blocks", minimum=math.ceil((side - 3) / 4)),
        Requirement("trainer", "window_positions", minimum=math.ceil(window)),
        Requirement("selfplay", "simulations", minimum=0 if max_legal <= 64 else 128 if max_legal <= 200 else 256),
    ]
