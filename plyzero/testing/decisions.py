"""Positions at which a player moves, from random games."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from plyzero.rules.game import Game
from plyzero.rules.random_game import random_game

MAX_GAMES: Final = 1000
"""Number of random games that are played to find positions."""


def decisions_of(start: Game, count: int) -> list[Game]:
    """Return up to `count` different positions of random games at which a player moves, always the same ones."""
    found: dict[object, Game] = {}
    for number in range(MAX_GAMES):
        game = random_game(start, np.random.default_rng(number))
        found |= {game.positions[i].key(): game.positions[i] for i in game.decisions}
        if len(found) >= count:
            break
    every = max(1, len(found) // count)  # so that they are from beginnings, middles and ends
    return list(itertools.islice(found.values(), 0, None, every))[:count]


def final_position(start: Game) -> Game:
    """Return the last position of a random game; it is finished unless the game goes on at max_plies."""
    return random_game(start, np.random.default_rng(0)).positions[-1]
