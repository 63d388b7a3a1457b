"""A trial by random games proves the symmetries that a game has, and no others."""

import numpy as np
import pytest

from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.rules.game import Outcome
from plyzero.rules.symmetry import turns_and_mirrors
from plyzero.rules.trial import play_trial
from tests.helpers import toys

PROPOSED = turns_and_mirrors((2, 3, 3))


def test_all_symmetries_of_tic_tac_toe_are_proven():
    proven = play_trial(TicTacToe(), plies=100).proven(PROPOSED)
    assert {each.actions.tobytes() for each in proven} == {each.actions.tobytes() for each in PROPOSED}
    assert len(proven) == 7


def test_with_the_symmetries_that_are_proven_come_their_products():
    quarter_turn, reflection = PROPOSED[0], PROPOSED[3]
    trial = play_trial(TicTacToe(), plies=100)
    assert len(trial.proven([quarter_turn])) == 3
    proven = trial.proven([quarter_turn, reflection])
    assert {each.actions.tobytes() for each in proven} == {each.actions.tobytes() for each in PROPOSED}


class LastRowDraws(TicTacToe):
    """Three in the last row are a draw."""

    def outcome(self):
        return Outcome(None) if self.board[6:9] in ((1, 1, 1), (2, 2, 2)) else super().outcome()


class OneForbidden(TicTacToe):
    """The first player may not begin in the first corner."""

    def legal_actions(self):
        return [action for action in super().legal_actions() if action or any(self.board)]


class LookedAtFromTheLeft(TicTacToe):
    """The observation counts stones from the left."""

    observation_dtype = np.float32

    def observe(self):
        return np.cumsum(super().observe(), axis=2)


@pytest.mark.parametrize("wrong", [LastRowDraws, OneForbidden, LookedAtFromTheLeft])
def test_a_game_that_differs_in_outcomes_actions_or_observations_has_fewer(wrong: type[TicTacToe]):
    proven = play_trial(wrong(), plies=100).proven(PROPOSED)
    assert len(proven) == 1


def test_nothing_is_proven_by_games_that_do_not_end():
    class Endless(TicTacToe):
        max_plies = 4

    trial = play_trial(Endless(), plies=50)
    assert trial.proven(PROPOSED) == ()


def test_a_trial_tells_whether_observations_are_binary():
    assert play_trial(TicTacToe(), plies=50).has_binary_observations()
    assert not play_trial(LookedAtFromTheLeft(), plies=50).has_binary_observations()


def test_the_checksum_is_that_of_the_rules_and_of_the_observation():
    checksum = play_trial(TicTacToe(), plies=100).checksum()
    assert play_trial(TicTacToe(), plies=100).checksum() == checksum
    for other in (LastRowDraws, OneForbidden, LookedAtFromTheLeft):
        assert play_trial(other(), plies=100).checksum() != checksum


def test_a_trial_has_the_plies_that_are_asked_for():
    trial = play_trial(toys.Relay(7), plies=20)
    assert [len(game.moves) for game in trial.games] == [7, 7, 7]
    assert [len(seen) for seen in trial.seen] == [8, 8, 8]
