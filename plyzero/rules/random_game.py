"""Random games: every move is sampled uniformly from the legal actions, every roll by its probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from plyzero.rules.chance import ENDLESS_ROLLS, chances_of, is_chance, roll_at, rolls_endlessly, setup_at
from plyzero.rules.game import Game


def random_game(start: Game, rng: np.random.Generator) -> PlayedGame:
    """Return a game of uniformly random moves from `start`. A game that does not end is cut off after max_plies.

    Raises ValueError after MAX_ROLLS rolls in a row.
    """
    game = PlayedGame([], [start])
    play_on(game, lambda positions: random_move(positions[-1], rng))
    return game


def few_random_games(start: Game) -> list[PlayedGame]:
    """Return eight random games, always the same ones, from which lengths and numbers of moves are estimated."""
    return [random_game(start, np.random.default_rng(number)) for number in range(8)]


def play_on(game: PlayedGame, choose: Callable[[Sequence[Game]], int]) -> None:
    """Play `game` from its initial position to the end, or until it is cut off after max_plies.

    choose: returns the next action or roll, given the positions so far.
    Raises ValueError after MAX_ROLLS rolls in a row, and what a rule raises; `game` then holds what was played.
    """
    positions, plies = game.positions, 0
    while positions[-1].outcome() is None and (plies < positions[0].max_plies or is_chance(positions[-1])):
        if rolls_endlessly(positions):
            raise ValueError(ENDLESS_ROLLS)
        if not is_chance(positions[-1]):
            plies += 1
        game.moves.append(choose(positions))
        positions.append(positions[-1].play_unchecked(game.moves[-1]))


def random_move(position: Game, rng: np.random.Generator) -> int:
    """Return a uniformly random legal action or, if chance moves, a set-up or a roll sampled by its probability."""
    if position.awaits_setup:
        return setup_at(position.setups, rng.random())
    chances = chances_of(position)
    if len(chances):
        return roll_at(chances, rng.random())
    legal = position.legal_actions()
    return int(legal[int(rng.integers(len(legal)))])


class PlayedGame(NamedTuple):
    """The moves of a game and the positions before, between and after them.

    moves:     the actions and rolls played.
    positions: one more than moves: the initial position first, the final position last.
    """

    moves: list[int]
    positions: list[Game]

    @property
    def decisions(self) -> list[int]:
        """The indices of the positions at which a player moves: not chance, and the game is not over."""
        return [i for i, each in enumerate(self.positions) if each.outcome() is None and not is_chance(each)]

    @property
    def plies(self) -> int:
        """The number of moves of players."""
        return sum(i < len(self.moves) for i in self.decisions)
