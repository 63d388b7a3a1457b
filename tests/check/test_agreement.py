"""Two implementations of a game are compared move for move: by number where they look alike, by name otherwise."""

import functools

import numpy as np
import pytest

from plyzero.check.agreement import agreement_with
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.check.violations import find_violation
from plyzero.games.othello import Othello
from plyzero.games.tic_tac_toe import TicTacToe as CompiledTicTacToe
from plyzero.rules.game import Game
from tests.helpers.toys import with_winner


class OneMoveLess(TicTacToe):
    """One move is missing after b2."""

    missing = 3

    def legal_actions(self):
        return [action for action in super().legal_actions() if action != self.missing or self.board[4] != 1]

    def symmetries(self):
        return ()


class Backwards(TicTacToe):
    """The squares are numbered from the other end, names are in capitals, and a plane says who is to move."""

    observation_shape = (3, 3, 3)

    def legal_actions(self):
        return sorted(8 - action for action in super().legal_actions())

    def play(self, action):
        return TicTacToe.play_unchecked(self, 8 - action)

    def action_name(self, action):
        return super().action_name(8 - action).upper()

    def observe(self):
        planes = super().observe()
        return np.concatenate([planes, np.full((1, 3, 3), self.to_play, planes.dtype)])

    def symmetries(self):
        return ()


class BackwardsOneMoveLess(OneMoveLess, Backwards):
    missing = 5


ThreeInARowLose = with_winner(Backwards, lambda winner: 1 - winner)


@pytest.mark.parametrize("other", [CompiledTicTacToe, Backwards])
def test_two_forms_of_a_game_agree(other: type[Game]):
    assert find_violation(TicTacToe, games=30, extra_laws=[agreement_with(other)]) is None


@pytest.mark.parametrize(
    ("game", "moves", "difference"),
    [
        (OneMoveLess, ("b2",), "legal_actions(): "),
        (BackwardsOneMoveLess, ("B2",), "names: "),
        (ThreeInARowLose, None, "outcome(): "),
    ],
)
def test_a_form_that_differs_in_one_position_is_found(game: type[Game], moves: tuple[str, ...] | None, difference: str):
    broken = find_violation(game, games=60, extra_laws=[agreement_with(CompiledTicTacToe)])
    assert broken is not None
    assert broken.law.name == "agrees_with_the_other"
    assert moves is None or broken.moves == moves
    assert f"this game (first) and the other one (second) disagree: {difference}" in broken.what


def test_a_game_of_another_size_does_not_agree():
    small, large = (functools.partial(Othello, size=size) for size in (6, 8))
    assert find_violation(small, games=2, extra_laws=[agreement_with(large)]).moves == ()
