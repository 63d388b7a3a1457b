"""Players that search: a tree search without noise with any evaluator, which plays the best move.

search          a result for each position, which alpha-beta from the root makes exact near the end of a game,
                and which knows how far the end is
select_action   the best action of a result or, with a temperature, a sampled one
choose_all      both, while the clock of the player runs, if there is one
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.play.clock import DEFAULT_SIMULATIONS, END_SHARE, NO_LIMIT, UNKNOWN_RATE, Clock, TimeLimit
from plyzero.play.found_moves import FoundMoves
from plyzero.play.player import Player, Strength
from plyzero.play.strength import UNKNOWN
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch, find_fault
from plyzero.search.slots import SearchResult, SearchSlots, search
from plyzero.search.solver import with_exact_end
from plyzero.setting_types import MAX_SIMULATIONS
from plyzero.settings import SearchSettings

MAX_NODES: Final = 1_000_000
"""Number of nodes, in all trees together, above which positions are searched one group after another."""

MAX_LEAVES: Final = 16
"""Largest number of leaves of one search in a batch; it is also at most one in MAX_LEAVES of its simulations."""


class Origin(NamedTuple):
    """The source of what a player searches with.

    identify: returns the identity of the player; None = its name.
    strength: returns the measured strength with a number of simulations.
    file:     the ONNX file of the network, if there is one.
    """

    identify: Callable[[], str] | None = None
    strength: Callable[[int], Strength] = lambda simulations: UNKNOWN
    file: Path | None = None


class SearchPlayer(Player):
    """A player that searches without noise and plays the best move; with 0 simulations, what the evaluator prefers.

    game:        the game it plays.
    simulations: number per move.
    settings:    those of the search.
    clock:       limits the time, and `simulations` is then the largest number; None = no limit.
    """

    _origin = Origin()

    def __init__(
        self,
        name: str,
        game: GameSpec,
        evaluate: Evaluate,
        *,
        simulations: int = DEFAULT_SIMULATIONS,
        settings: SearchSettings | None = None,
        temperature: float = 0.0,
        clock: Clock | None = None,
        threads: int = 0,
    ) -> None:
        """Make a player that evaluates leaves with `evaluate`, a network or any other evaluator.

        settings:    those of the search; None = the defaults.
        temperature: moves are sampled from policy^(1/temperature); 0 = the best move.
        threads:     number that evaluates a network; from 1 on, leaves of one position are evaluated together, which
                     finds nearly the same. 0 = one leaf at a time, as in self-play.

        Raises UserError for a negative temperature, and for simulations that are negative or above MAX_SIMULATIONS.
        """
        if not 0 <= temperature < math.inf:
            raise UserError(f"expected a temperature of at least 0, got {shown(temperature)}")
        self.name = name
        self.game = game
        self.simulations = _checked(simulations, MAX_SIMULATIONS)
        self.settings = settings or SearchSettings()
        self.clock = clock and replace(clock, rate=[UNKNOWN_RATE])
        self._own_evaluate = evaluate
        self._temperature = temperature
        self._rng = np.random.default_rng()
        self._leaves = MAX_LEAVES if threads else 1
        self._measure_rate()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} at {self.game.name}>"

    @property
    def identity(self) -> str:
        return self._origin.identify() if self._origin.identify else self.name

    @property
    def model_file(self) -> Path | None:
        """The ONNX file of the network; None without one, and for a network that was loaded by somebody else."""
        return self._origin.file

    @property
    def evaluator(self) -> Evaluate:
        """The evaluator of leaves: a network, rollouts or another one."""
        return self._own_evaluate

    def strength(self) -> Strength:
        """Return the measured strength so far, and whether it is enough to judge moves."""
        return self._origin.strength(self.simulations)

    def choose(self, position: Game) -> int:
        """Return the action to play in `position`, which must not be finished."""
        return self.choose_all([position])[0]

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return the action to play in each of `positions`, none of which may be finished."""
        with self.clock.running() if self.clock else nullcontext():
            return [self.select_action(result) for result in self.search(positions)]

    def select_action(self, result: SearchResult) -> int:
        """Return the action to play after a search: the best one, or sampled with the temperature.

        Where a win or a loss is proven and the distance to the end is known, it is the best one at any temperature.
        """
        if not self._temperature:
            return result.best_action()
        return int(self._rng.choice(result.actions, p=self.probabilities(result)))

    def probabilities(self, result: SearchResult) -> NDArray[np.float64]:
        """Return the probability of each of `result.actions` to be played."""
        if not self._temperature or result.plies_to_end is not None:
            return np.asarray(result.actions == result.best_action(), float)
        weights = result.policy ** (1 / self._temperature)
        return np.asarray(weights / weights.sum(), float)

    def search(
        self, positions: Sequence[Game], *, on_batch: Callable[[SearchSlots], None] = lambda slots: None
    ) -> list[SearchResult]:
        """Return the search result for each of `positions`, none of which may be finished.

        As many are searched together as MAX_NODES allows; with a clock, all of them.

        on_batch: called before every batch of evaluations, to show progress.

        Raises UserError for positions of another game, and for evaluations that do not fit.
        """
        for position in positions:
            _check_position(position, self.game)
        limit = TimeLimit(self.clock) if self.clock else None
        simulations, together = self.simulations, len(positions)
        if limit:
            simulations = min(simulations, limit.simulations // max(1, len(positions)))
        else:
            together = MAX_NODES // (simulations + 1)
        together = max(1, together)
        leaves = min(self._leaves, simulations // MAX_LEAVES) if len(positions) == 1 else 1
        results: list[SearchResult] = []
        for first in range(0, len(positions), together):
            results += search(
                positions[first : first + together],
                self._evaluate,
                simulations=simulations,
                settings=self.settings,
                leaves=max(1, leaves),
                on_batch=on_batch,
                is_over=limit.is_over if limit else lambda slots: False,
            )
        seconds = math.inf
        if limit and self.clock:
            limit.measure(sum(result.simulations for result in results))
            seconds = END_SHARE * self.clock.seconds() / max(1, len(positions))
        return [
            with_exact_end(position, result, nodes=self.settings.solver_nodes, seconds=seconds)
            for position, result in zip(positions, results, strict=True)
        ]

    def show(self, position: Game) -> FoundMoves:
        """Search `position` and return what is found: a table when it is printed, and in a notebook also the board."""
        return FoundMoves(position, self.search([position])[0])

    def begin_game(self) -> None:
        if self.clock:
            self.clock.restart()

    def with_simulations(self, simulations: int, *, most: int = MAX_SIMULATIONS) -> Self:
        """Return the same bot with another number of simulations. Raises UserError if it is not from 0 to `most`."""
        other = copy.copy(self)
        other.simulations = _checked(simulations, most)
        return other

    def with_clock(self, clock: Clock | None, *, simulations: int = NO_LIMIT) -> Self:
        """Return the same bot with a clock or without one, and with at most so many simulations."""
        other = copy.copy(self)
        other.simulations = simulations
        other.clock = clock
        other._measure_rate()
        return other

    def with_rng(self, rng: np.random.Generator) -> Self:
        """Return the same bot that samples its moves with `rng`; without a temperature this changes nothing."""
        other = copy.copy(self)
        other._rng = rng
        return other

    def _measure_rate(self) -> None:
        """Measure how fast the bot searches if its clock does not know it, within a second once it is compiled."""
        if self.clock and self.simulations and self.clock.rate[0] == UNKNOWN_RATE:
            position = first_decision(self.game.start)
            self.with_clock(None, simulations=1).search([position])  # loads or compiles the search
            timed = copy.copy(self)
            timed.simulations = min(self.simulations, MAX_LEAVES**2)
            timed.clock = replace(self.clock, main=0.0, per_move=0.4)
            timed.search([position])

    def _evaluate(self, batch: EvaluationBatch) -> Evaluation:
        """Return the evaluation of `batch`. Raises UserError if it has impossible values, such as NaN."""
        evaluation = Evaluation(*(np.asarray(each, np.float32) for each in self._own_evaluate(batch)))
        if fault := find_fault(evaluation, len(batch.observations), self.game.start.num_actions):
            raise UserError(f"{self.name}: {fault}")
        return evaluation


def _checked(simulations: int, most: int) -> int:
    """Return a number of simulations. Raises UserError if it is not from 0 to `most`."""
    if not 0 <= simulations <= most:
        raise UserError(f"expected simulations from 0 to {most}, got {shown(simulations)}")
    return simulations


def _check_position(position: Game, game: GameSpec) -> None:
    """Raise UserError if `position` is not one of `game`.

    Classes are compared by name: a script that is run as __main__ and imported by its name has each class twice.
    """
    found, expected = _form(position), _form(game.start)
    if found != expected:
        raise UserError(f"expected a position of {game.name}, {expected}, got one of {found}")


def _form(position: Game) -> str:
    shape = tuple(position.observation_shape)
    return f"{type(position).__name__} with {position.num_actions} actions and observations {shape}"
