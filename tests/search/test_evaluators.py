"""The evaluators without a network keep the contract."""

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.search.evaluators import Rollouts, Uniform
from plyzero.testing import EvaluatorContract


class TestUniform(EvaluatorContract):
    game = "othello(size=6)"

    def evaluator(self):
        return Uniform(load_game(self.game).start.num_actions)


class TestRollouts(EvaluatorContract):
    game = "connect-four"
    test_a_row_depends_on_its_position_alone = None  # it is the result of one random game

    tolerance = 1.0

    def evaluator(self):
        return Rollouts(load_game(self.game).start.num_actions, np.random.default_rng(0))


class TestRolloutsInPlainPython(TestRollouts):
    game = "plyzero.check.template.tic_tac_toe:TicTacToe"


class TestRolloutsWithDice(TestRollouts):
    game = "tests.helpers.dice:PlainRace"
