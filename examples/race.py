"""A game with dice, as docs/writing-a-game.md explains it."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Game, Outcome


class Race(Game, version=1):
    """Walk one square or throw a die; a six loses the turn. The player who first reaches square 20 wins."""

    num_actions, num_chances = 2, 6
    observation_shape = (2, 21, 1)
    observation_dtype = bool
    max_plies = 500
    squares = (0, 0)
    is_throwing = False
    to_play = 0

    def legal_actions(self) -> list[int]:
        return [0, 1] if self.outcome() is None else []

    def chances(self) -> list[float] | tuple[()]:
        return [1 / 6] * 6 if self.is_throwing else ()

    def play(self, move: int) -> Self:  # an action, 0 = walk and 1 = throw, or a roll from 0 to 5
        after = copy.copy(self)
        if move == 1 and not self.is_throwing:
            after.is_throwing = True
            return after
        steps = 1
        if self.is_throwing:
            steps = 0 if move == 5 else move + 1  # roll 5 is a six
        squares = list(self.squares)
        squares[self.to_play] = min(20, squares[self.to_play] + steps)
        after.squares = tuple(squares)
        after.is_throwing = False
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        return Outcome(1 - self.to_play) if self.squares[1 - self.to_play] == 20 else None

    def observe(self) -> NDArray[np.bool_]:
        order = (self.to_play, 1 - self.to_play)
        return np.stack([np.arange(21) == self.squares[p] for p in order]).reshape(2, 21, 1)

    def action_name(self, action: int) -> str:
        return "walk" if action == 0 else "throw"

    def roll_name(self, roll: int) -> str:
        return str(roll + 1)

    def __str__(self) -> str:
        return f"player 0 on square {self.squares[0]}, player 1 on square {self.squares[1]}"
