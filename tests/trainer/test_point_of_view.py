"""The point of view: an observation from the side of player 0 is told from one of the player to move."""

import numpy as np
import pytest

from examples.breakthrough import Breakthrough
from examples.dots_and_boxes import DotsAndBoxes
from plyzero.rules.game import Game
from plyzero.trainer.diagnosis.guard import shows_the_first_player
from plyzero.trainer.diagnosis.perspective import MIN_GAMES, PointOfView, PointOfViewTest
from tests.helpers.recorded import random_games, recorded
from tests.helpers.zoo import Kalah, Shuffle


class CupsOfPlayer0(Kalah):
    """The cups of player 0 are shown first."""

    def observe(self):
        half = len(self.cups) // 2
        return super().observe() if self.to_play == 0 else super().observe()[[*range(half, 2 * half), *range(half)]]


def view_of(start: Game, *, games: int = 400) -> PointOfView | None:
    test, played = PointOfViewTest(start), random_games(start, games)
    for first in range(0, games, 50):
        test.add(recorded(played[first : first + 50]))
    return test.measure()


@pytest.mark.parametrize(
    "start", [DotsAndBoxes(size=2), Kalah(), Breakthrough(size=4), Shuffle()], ids=lambda start: type(start).__name__
)
def test_an_observation_from_the_side_of_the_player_to_move_is_right(start: Game):
    assert not shows_the_first_player(view_of(start))


def test_the_side_of_player_0_is_wrong_unless_the_mover_is_shown():
    view = view_of(CupsOfPlayer0())
    assert shows_the_first_player(view)
    assert not shows_the_first_player(view._replace(turn=1.0))


class Huge(CupsOfPlayer0):
    """The numbers of the observation have squares that float32 cannot hold."""

    def observe(self):
        return super().observe() * np.float32(1e30)


def test_the_unit_of_the_observation_does_not_matter():
    assert view_of(Huge()) == pytest.approx(view_of(CupsOfPlayer0()), rel=1e-3)


def test_the_point_of_view_is_unknown_before_there_are_enough_games():
    assert view_of(Kalah(), games=MIN_GAMES - 1) is None
