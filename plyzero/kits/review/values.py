"""Values of positions and moves, by searches of the judge: for player 0, in the unit in which the game is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plyzero.kits.review.verdicts import Unit, seen_by
from plyzero.rules.chance import chances_of, first_decision, roll_dice
from plyzero.rules.game import Game, Outcome
from plyzero.search.evaluators import Rollouts
from plyzero.search.slots import SearchResult, SearchSlots, at_intervals
from plyzero.search.tree import UNPROVEN

if TYPE_CHECKING:
    from plyzero.play.players import Bot

TOGETHER: Final = 64
"""Number of positions searched at a time."""

MAX_BRANCHES: Final = 400
"""Largest number of results of rolls in a row that are all searched; of more, SAMPLED are sampled."""

SAMPLED: Final = 64

LEAST: Final = 8
"""Least number of simulations after each roll."""

OnSearch = Callable[[int], None]
"""Called while positions are searched with the number of simulations made since the last call; it may raise."""


class Branch(NamedTuple):
    """A position that rolls lead to, in which a player moves or the game is over, and its probability."""

    probability: float
    position: Game


class Valuer:
    """Searches positions with a bot.

    unit:      "points" if the game counts them as its result (`Game.points_count`) and the bot estimates them.
    on_search: see OnSearch.
    seed:      of the random numbers of rollouts.
    """

    def __init__(self, bot: Bot, on_search: OnSearch = lambda made: None, *, seed: int = 0) -> None:
        self.bot, self._seed = bot, seed
        self.on_search = on_search
        self.unit: Unit = "score"
        if bot.game.start.points_count:
            (result,) = bot.with_simulations(1).search([first_decision(bot.game.start)])
            self.unit = "score" if result.score is None else "points"

    def restart(self) -> None:
        """Begin again with the random numbers of rollouts, so that a review does not depend on those before it."""
        if isinstance(self.bot.evaluator, Rollouts):
            self.bot.evaluator.rng = np.random.default_rng(self._seed)

    def search(self, positions: Sequence[Game], simulations: int) -> list[SearchResult]:
        """Return the search of each position, in which a player must move."""
        bot = self.bot.with_simulations(simulations)
        results: list[SearchResult] = []
        for first in range(0, len(positions), TOGETHER):
            group = positions[first : first + TOGETHER]
            reported = 0

            def report(slots: SearchSlots) -> None:
                nonlocal reported
                made = slots.simulations()
                self.on_search(made - reported)
                reported = made

            results += bot.search(group, on_batch=at_intervals(0.2, report, least=0))
            self.on_search(len(group) * simulations - reported)
        return results

    def of_result(self, position: Game, result: SearchResult) -> float:
        """Return the value of a searched position: that of the best move."""
        if self.unit == "points":
            return self._points(position, result)
        best = result.q[result.actions == result.best_action()][0]
        value = result.value if result.proven != UNPROVEN or math.isnan(best) else float(best)
        return seen_by(position.to_play, (1 + value) / 2, self.unit)

    def _points(self, position: Game, result: SearchResult) -> float:
        """Return the points that player 0 is expected to win by after the best move."""
        action = result.best_action()
        outcome = position.play_unchecked(action).outcome()
        if outcome is not None:
            return outcome.lead(0)
        points = math.nan if result.scores is None else float(result.scores[result.actions == action][0])
        if math.isnan(points):
            points = result.score or 0.0
        return seen_by(position.to_play, points, self.unit)

    def of_outcome(self, outcome: Outcome) -> float:
        """Return the value of the end of a game."""
        return outcome.lead(0) if self.unit == "points" else (1 + outcome.value(0)) / 2

    def of_ends(self, ends: Sequence[Game], simulations: int) -> list[float]:
        """Return the value of each position, with so many simulations each.

        They are shared equally by all that rolls can lead to, and the value is the expectation over the rolls.
        """
        branches = [branches_of(end) for end in ends]
        shares = [self._share(each, simulations) for each in branches]
        values: dict[tuple[int, int], float] = {}
        for share in sorted(set(shares)):
            places = [(i, j) for i, each in enumerate(branches) if shares[i] == share for j in range(len(each))]
            positions = [branches[i][j].position for i, j in places]
            values |= dict(zip(places, self.of_positions(positions, share), strict=True))
        return [
            sum(branch.probability * values[i, j] for j, branch in enumerate(each)) for i, each in enumerate(branches)
        ]

    def of_positions(self, positions: Sequence[Game], simulations: int) -> list[float]:
        """Return the value of each position, in which a player moves or the game is over."""
        outcomes = [position.outcome() for position in positions]
        unfinished = [position for position, outcome in zip(positions, outcomes, strict=True) if outcome is None]
        results = iter(self.search(unfinished, simulations))
        return [
            self.of_result(position, next(results)) if outcome is None else self.of_outcome(outcome)
            for position, outcome in zip(positions, outcomes, strict=True)
        ]

    def cost(self, end: Game, simulations: int) -> int:
        """Return the number of simulations that `of_ends` makes for one position."""
        branches = branches_of(end)
        return sum(each.position.outcome() is None for each in branches) * self._share(branches, simulations)

    @staticmethod
    def _share(branches: Sequence[Branch], simulations: int) -> int:
        return simulations if len(branches) == 1 else max(LEAST, simulations // len(branches))


def branches_of(position: Game) -> list[Branch]:
    """Return what the rolls in `position` lead to; `position` alone if chance does not move there."""
    found = [Branch(1.0, position)]
    while any(len(chances_of(each.position)) for each in found):
        if len(found) > MAX_BRANCHES:
            rng = np.random.default_rng(0)
            return [Branch(1 / SAMPLED, roll_dice(position, rng)[0]) for _ in range(SAMPLED)]
        found = [branch for each in found for branch in _rolled(each)]
    return found


def _rolled(branch: Branch) -> Iterator[Branch]:
    chances = chances_of(branch.position)
    if not len(chances):
        yield branch
    total = float(chances.sum(dtype=np.float64))
    for roll in np.flatnonzero(chances).tolist():
        probability = branch.probability * float(chances[roll]) / total
        yield Branch(probability, branch.position.play_unchecked(roll))
