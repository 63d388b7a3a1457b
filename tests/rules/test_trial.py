"""A trial by random games proves the symmetries that a game has, and no others."""

import copy

import numpy as np
import pytest

from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.rules.game import Outcome
from plyzero.rules.symmetry import turns_and_mirrors
from plyzero.rules.trial import play_trial
from tests.helpers.toys import variant

PROPOSED = turns_and_mirrors((2, 3, 3))


def test_with_the_symmetries_that_are_proven_come_their_products():
    trial = play_trial(TicTacToe(), plies=100)
    assert len(trial.proven(PROPOSED[:1])) == 3  # of a quarter turn
    proven = trial.proven([PROPOSED[0], PROPOSED[3]])  # and of a reflection
    assert {each.actions.tobytes() for each in proven} == {each.actions.tobytes() for each in PROPOSED}


class LastRowDraws(TicTacToe):
    """Three in the last row are a draw."""

    def outcome(self):
        return Outcome(None) if self.board[6:9] in ((1, 1, 1), (2, 2, 2)) else super().outcome()


legal = TicTacToe.legal_actions
OneForbidden = variant(TicTacToe, legal_actions=lambda self: [each for each in legal(self) if each or any(self.board)])
LookedAtFromTheLeft = variant(
    TicTacToe, observation_dtype=np.float32, observe=lambda self: np.cumsum(TicTacToe.observe(self), axis=2)
)


@pytest.mark.parametrize("wrong", [LastRowDraws, OneForbidden, LookedAtFromTheLeft])
def test_a_game_that_differs_in_outcomes_actions_or_observations_has_fewer(wrong: type[TicTacToe]):
    assert len(play_trial(wrong(), plies=100).proven(PROPOSED)) == 1


class CoinFirst(TicTacToe):
    """A coin is thrown before the first move, and again after it."""

    num_chances = 2
    coins: tuple[int, ...] = ()
    odds = (0.5, 0.5)

    def chances(self):
        return self.odds if len(self.coins) < min(2, 10 - self.board.count(0)) else ()

    def play(self, action):
        after = super().play(action) if not self.chances() else copy.copy(self)
        after.coins = (*self.coins, (0, 1)[action]) if self.chances() else self.coins
        return after


class CoinKnowsCorners(CoinFirst):
    """The coin falls otherwise once the first corner is taken."""

    def chances(self):
        return (0.25, 0.75) if super().chances() and self.board[0] else super().chances()


def test_rolls_stay_as_they_are_and_need_equal_chances():
    assert len(play_trial(CoinFirst(), plies=100).proven(PROPOSED)) == 7
    assert len(play_trial(CoinKnowsCorners(), plies=100).proven(PROPOSED)) == 1


def test_nothing_is_proven_by_games_that_do_not_end():
    endless = variant(TicTacToe, max_plies=4)
    assert play_trial(endless(), plies=50).proven(PROPOSED) == ()


def test_a_trial_finds_whether_observations_are_binary():
    assert play_trial(TicTacToe(), plies=50).has_binary_observations()
    assert not play_trial(LookedAtFromTheLeft(), plies=50).has_binary_observations()


def test_the_checksum_is_that_of_the_rules_the_observation_and_the_chances():
    unfair = variant(CoinFirst, odds=(0.5 + 1e-6, 0.5 - 1e-6))
    for start, others in ((TicTacToe, (LastRowDraws, OneForbidden, LookedAtFromTheLeft)), (CoinFirst, (unfair,))):
        checksum = play_trial(start(), plies=100).checksum()
        assert play_trial(start(), plies=100).checksum() == checksum
        for other in others:
            assert play_trial(other(), plies=100).checksum() != checksum
