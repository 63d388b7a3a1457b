"""Pig solved by value iteration, and players who know the solution or a rule of thumb."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from games.pig import HOLD, ROLL
from plyzero.rules.game import Game


@numba.njit
def solve_pig(goal: int, precision: float = 1e-9) -> NDArray[np.float64]:
    """Return `[goal, goal, goal]`, the probability to win with own score i, the opponent's j and k in this turn.

    This is equation 1 of Neller and Presser, "Optimal play of the dice game Pig" (2004), iterated.
    """
    p = np.zeros((goal, goal, goal))
    change = 1.0
    while change > precision:
        change = 0.0
        for i in range(goal - 1, -1, -1):
            for j in range(goal - 1, -1, -1):
                for k in range(goal - i - 1, -1, -1):
                    rolled = 1 - p[j, i, 0]
                    for r in range(2, 7):
                        rolled += p[i, j, k + r] if i + k + r < goal else 1.0
                    best = rolled / 6
                    if k > 0:
                        best = max(best, 1 - p[j, i + k, 0])
                    change = max(change, abs(best - p[i, j, k]))
                    p[i, j, k] = best
    return p


class Optimal:
    """The player who maximises the probability to win."""

    name = "optimal"

    def __init__(self, goal: int):
        self.p = solve_pig(goal)

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [self.choose(each) for each in positions]

    def choose(self, position: Game) -> int:
        own, other, turn = numbers(position)
        return HOLD if turn and 1 - self.p[other, own + turn, 0] >= self.p[own, other, turn] - 1e-12 else ROLL


class HoldAt:
    """The player who holds at a sum, 20 as a rule."""

    def __init__(self, total: int = 20):
        self.total, self.name = total, f"hold at {total}"

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [HOLD if numbers(each)[2] >= self.total else ROLL for each in positions]


def numbers(position: Game) -> tuple[int, int, int]:
    """Return the score of the player to move, the opponent's, and the sum of this turn."""
    state = position.record
    mover = int(state["to_play"])
    return int(state["scores"][mover]), int(state["scores"][1 - mover]), int(state["turn"])
