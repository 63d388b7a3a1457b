"""Toy games with dice, compiled and plain."""

from __future__ import annotations

import copy

import numba
import numpy as np

from plyzero.rules.chance import is_chance
from plyzero.rules.compiled_game import ONGOING, CompiledGame
from plyzero.rules.game import DRAW, Game, Outcome
from tests.helpers.toys import all_positions

GOAL = 7
CHANCES = (1 / 2, 1 / 4, 1 / 8, 1 / 8)
STEPS = (1, 3, 4, 2)
AGAIN = 3


class Race(CompiledGame, version=1):
    """First to seven wins, but eight is a draw. Step two, or throw a die: one, three, four, or two and throw again.

    Chance moves first, for a head start of the second player: of none or of one.
    """

    State = np.dtype([("at", "i1", (2,)), ("begun", "i1"), ("thrown", "i1"), ("to_play", "i1")])
    num_actions, num_chances = 2, 4
    action_names, roll_names = ("step", "throw"), ("one", "three", "four", "again")
    observation_shape, max_plies = (2, GOAL + 4, 1), 2 * GOAL

    def legal(s, mask):
        mask[:] = True

    def chances(s, weights):
        if s["begun"] == 0:
            weights[0], weights[1] = 3 / 4, 1 / 4
        elif s["thrown"]:
            for roll in range(4):
                weights[roll] = CHANCES[roll]

    def play(s, action):
        if s["begun"] == 0:
            s["begun"] = 1
            s["at"][1] = action
        elif s["thrown"] == 0 and action == 1:
            s["thrown"] = 1
        elif s["thrown"] and action == AGAIN:
            s["at"][s["to_play"]] += 2
        else:
            s["at"][s["to_play"]] += STEPS[action] if s["thrown"] else 2
            s["thrown"] = 0
            s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        for player in range(2):
            if s["at"][player] >= GOAL:
                return DRAW if s["at"][player] == GOAL + 1 else player
        return ONGOING

    def observe(s, planes):
        planes[0, s["at"][s["to_play"]], 0] = 1
        planes[1, s["at"][1 - s["to_play"]], 0] = 1


class PlainRace(Game, version=1):
    """The same in plain Python."""

    num_actions, num_chances = 2, 4
    observation_shape, max_plies = (2, GOAL + 4, 1), 2 * GOAL
    at = (0, 0)
    begun = False
    thrown = False
    to_play = 0

    def legal_actions(self):
        return [] if self.outcome() else [0, 1]

    def chances(self):
        if not self.begun:
            return (3 / 4, 1 / 4, 0, 0)
        return CHANCES if self.thrown else ()

    def play(self, action):
        after = copy.copy(self)
        if not self.begun:
            after.begun, after.at = True, (0, action)
        elif action == 1 and not self.thrown:
            after.thrown = True
        else:
            at = list(self.at)
            at[self.to_play] += STEPS[action] if self.thrown else 2
            after.at = tuple(at)
            if not (self.thrown and action == AGAIN):
                after.thrown, after.to_play = False, 1 - self.to_play
        return after

    def outcome(self):
        for player in range(2):
            if self.at[player] >= GOAL:
                return Outcome(None if self.at[player] == GOAL + 1 else player)
        return None

    def observe(self):
        planes = np.zeros(self.observation_shape, np.float32)
        planes[0, self.at[self.to_play], 0] = planes[1, self.at[1 - self.to_play], 0] = 1
        return planes

    def action_name(self, action):
        return Race.action_names[action]

    def roll_name(self, roll):
        return Race.roll_names[roll]

    def key(self):
        return self.at, self.begun, self.thrown, self.to_play


class WhoBegins(PlainRace):
    """The first roll decides who begins."""

    def play(self, action):
        after = super().play_unchecked(action)
        after.to_play = after.to_play if self.begun else action
        return after


class Tosses(CompiledGame, version=1):
    """Each player throws a die twice, by turns, and the larger sum wins. There is one move: to throw."""

    State = np.dtype([("sums", "i1", (2,)), ("plies", "i1"), ("thrown", "i1"), ("to_play", "i1")])
    num_actions, num_chances, action_names, roll_names = 1, 3, ("throw",), "123"
    observation_shape, max_plies = (3, 1, 1), 4

    def legal(s, mask):
        mask[:] = True

    def chances(s, weights):
        if s["thrown"]:
            weights[0] = 1 / 2
            weights[1] = 1 / 3
            weights[2] = 1 / 6

    def play(s, action):
        if s["thrown"] == 0:
            s["thrown"] = 1
            return
        s["sums"][s["to_play"]] += action + 1
        s["thrown"] = 0
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        if s["plies"] < 4:
            return ONGOING
        if s["sums"][0] == s["sums"][1]:
            return DRAW
        return 0 if s["sums"][0] > s["sums"][1] else 1

    def observe(s, planes):
        planes[0, 0, 0], planes[1, 0, 0] = s["sums"][s["to_play"]], s["sums"][1 - s["to_play"]]
        planes[2, 0, 0] = s["plies"]


class ManySided(Game):
    """One throw of a die with `sides` sides, of which every second one wins."""

    num_actions, max_plies, observation_shape, to_play = 1, 1, (1, 1, 1), 0

    def __init__(self, sides: int = 36):
        self.num_chances = sides
        self.moves: tuple[int, ...] = ()

    def legal_actions(self):
        return [] if self.moves else [0]

    def chances(self):
        return [1 / self.num_chances] * self.num_chances if len(self.moves) == 1 else ()

    def play(self, action):
        after = copy.copy(self)
        after.moves = (*self.moves, action)
        return after

    def outcome(self):
        return Outcome(self.moves[1] % 2) if len(self.moves) == 2 else None

    def observe(self):
        return np.zeros((1, 1, 1))


def decisions(start):
    """All unfinished positions in which a player moves."""
    return [each for each in all_positions(start) if each.outcome() is None and not is_chance(each)]


@numba.njit
def solve_pig(goal):
    """Return `[goal, goal, goal]`, the probability to win with own score i, the other's j, and k in this turn.

    This is equation 1 of Neller and Presser, "Optimal play of the dice game Pig" (2004), iterated.
    """
    p = np.zeros((goal, goal, goal))
    change = 1.0
    while change > 1e-9:
        change = 0.0
        for i in range(goal - 1, -1, -1):
            for j in range(goal - 1, -1, -1):
                for k in range(goal - i - 1, -1, -1):
                    rolled = 1 - p[j, i, 0]
                    for r in range(2, 7):
                        rolled += p[i, j, k + r] if i + k + r < goal else 1.0
                    held = 1 - p[j, i + k, 0] if k else 0.0
                    value = max(rolled / 6, held)
                    change = max(change, abs(value - p[i, j, k]))
                    p[i, j, k] = value
    return p


def points_of(position):
    """The points of the player to move, those of the other player, and those of this turn, in a position of pig."""
    state = position.record
    mover = int(state["to_play"])
    return int(state["scores"][mover]), int(state["scores"][1 - mover]), int(state["turn"])


class SureThing(CompiledGame, version=1):
    """Every throw wins: with the first die at once, with the second one perhaps a move later."""

    State = np.dtype([("die", "i1"), ("is_late", "i1"), ("is_won", "i1"), ("to_play", "i1")])
    num_actions, num_chances, observation_shape, max_plies = 2, 2, (1, 1, 1), 2

    def legal(s, mask):
        mask[:] = True

    def chances(s, weights):
        if s["die"]:
            weights[0], weights[1] = 1 / 4, 3 / 4

    def play(s, action):
        if s["is_late"] or (s["die"] and (s["die"] == 1 or action == 0)):
            s["is_won"] = 1
        elif s["die"]:
            s["die"], s["is_late"] = 0, 1
        else:
            s["die"] = action + 1

    def outcome(s):
        return s["to_play"] if s["is_won"] else ONGOING

    def observe(s, planes):
        planes[0, 0, 0] = s["is_late"]
