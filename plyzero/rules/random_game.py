"""Games of random moves: what laws, surveys and presets judge a game by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plyzero.rules.game import Game


def random_game(start: Game, rng: np.random.Generator) -> PlayedGame:
    """Return a game of random moves; one that goes on after max_plies is left there."""
    game = PlayedGame([], [start])
    while game.positions[-1].outcome() is None and len(game.moves) < start.max_plies:
        legal = game.positions[-1].legal_actions()
        game.moves.append(int(legal[int(rng.integers(len(legal)))]))
        game.positions.append(game.positions[-1].play_unchecked(game.moves[-1]))
    return game


class PlayedGame(NamedTuple):
    """A whole game: `positions` from the initial one to the finished one, `moves` between them."""

    moves: list[int]
    positions: list[Game]
