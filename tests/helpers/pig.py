"""Pig without chance: optimal play, and the exact probability that one rule wins against another."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from games.pig import HOLD, ROLL, Pig
from plyzero.play.players import Player

Rule = NDArray[np.int8]
"""`[goal, goal, goal]`: HOLD, ROLL or BEST with own score i, the opponent's j, and k in this turn."""

BEST = 2
"""The move that is more likely to win."""

PRECISION = 1e-6
"""Of probabilities; moves whose difference is smaller count as equal, and the rules hold."""

TOGETHER = 20_000
"""Positions that are searched together."""


def duel(first: Rule, second: Rule) -> float:
    """Return the probability that the player who begins wins, if both play by their rules."""
    return float(solve_pig(first, second)[0, 0, 0, 0])


def optimal(goal: int) -> Rule:
    """Return the rule that maximises the probability to win."""
    best = np.full((goal, goal, goal), BEST, np.int8)
    p = solve_pig(best, best)[0]
    own, other, turn = np.indices(p.shape)
    held = 1 - p[other, np.minimum(own + turn, goal - 1), 0]
    return np.where((turn > 0) & (held > p - PRECISION), HOLD, ROLL).astype(np.int8)


def hold_at(total: int, goal: int) -> Rule:
    """Return the rule to hold with `total` in a turn."""
    return np.where(np.indices((goal, goal, goal))[2] < total, ROLL, HOLD).astype(np.int8)


@numba.njit
def solve_pig(first: Rule, second: Rule) -> NDArray[np.float64]:
    """Return `[2, goal, goal, goal]`, the probability that the player to move wins: the first player, or the second.

    This is equation 1 of Neller and Presser, "Optimal play of the dice game Pig" (2004), iterated.
    """
    goal = len(first)
    p = np.zeros((2, goal, goal, goal))
    change = 1.0
    while change > PRECISION / 1000:
        change = 0.0
        for i in range(goal - 1, -1, -1):
            for j in range(goal - 1, -1, -1):
                for k in range(goal - i - 1, -1, -1):
                    for player in range(2):
                        own, other = p[player], p[1 - player]
                        rolled = 1 - other[j, i, 0]
                        for r in range(2, 7):
                            rolled += own[i, j, k + r] if i + k + r < goal else 1.0
                        rolled /= 6
                        held = 1 - other[j, i + k, 0] if k else 0.0
                        move = (first if player == 0 else second)[i, j, k]
                        value = max(rolled, held) if move == BEST else held if k and move == HOLD else rolled
                        change = max(change, abs(value - own[i, j, k]))
                        own[i, j, k] = value
    return p


def rule_of(player: Player, goal: int) -> Rule:
    """Return the rule by which `player` plays."""
    rule = np.full((goal, goal, goal), ROLL, np.int8)
    places = np.argwhere(has_choice(goal))
    for first in range(0, len(places), TOGETHER):
        part = places[first : first + TOGETHER]
        rule[tuple(part.T)] = player.choose_all([place(goal, *scores) for scores in part.tolist()])
    return rule


def has_choice(goal: int) -> NDArray[np.bool_]:
    """Return in which positions there is a choice: those with 2 or more in this turn, and the goal not reached."""
    own, _, turn = np.indices((goal, goal, goal))
    choice: NDArray[np.bool_] = (turn >= 2) & (own + turn < goal)
    return choice


def place(goal: int, own: int, other: int, turn: int) -> Pig:
    """Return the position in which player 0 has `own` points and `turn` more in this turn, and player 1 `other`."""
    pig = Pig(goal)
    pig.record["scores"], pig.record["turn"] = (own, other), turn
    return pig
