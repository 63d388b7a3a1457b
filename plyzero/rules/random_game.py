"""Random games: every move is sampled uniformly from the legal actions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plyzero.rules.game import Game


def random_game(start: Game, rng: np.random.Generator) -> PlayedGame:
    """Return a game of uniformly random moves from `start`. A game that does not end is cut off after max_plies."""
    game = PlayedGame([], [start])
    while game.positions[-1].outcome() is None and len(game.moves) < start.max_plies:
        legal = game.positions[-1].legal_actions()
        game.moves.append(int(legal[int(rng.integers(len(legal)))]))
        game.positions.append(game.positions[-1].play_unchecked(game.moves[-1]))
    return game


class PlayedGame(NamedTuple):
    """The moves of a game and the positions before, between and after them.

    moves:     the actions played.
    positions: one more than moves: the initial position first, the final position last.
    """

    moves: list[int]
    positions: list[Game]
