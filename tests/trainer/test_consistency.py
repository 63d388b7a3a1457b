"""Consistency: recorded games of right rules never contradict themselves; those of wrong rules do, each in its way."""

import numpy as np
import pytest

from examples.breakthrough import Breakthrough
from examples.dots_and_boxes import DotsAndBoxes
from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry
from plyzero.run.records import Games
from plyzero.trainer.diagnosis.consistency import Agreement, Consistency, ConsistencyCheck
from plyzero.trainer.diagnosis.guard import differs
from tests.helpers.recorded import random_games, recorded
from tests.helpers.toys import Written
from tests.helpers.zoo import Clobber, Kalah, Shuffle


def consistency_of(start: Game, *, games: int = 200, proven: bool = False) -> Consistency:
    played, check = random_games(start, games), ConsistencyCheck(start)
    for first in range(0, games, 50):
        check.add(recorded(played[first : first + 50], proven=proven))
    return check.compare()


RIGHT = [Kalah(), Shuffle(), Clobber(), Breakthrough(size=4), DotsAndBoxes(size=2)]


@pytest.mark.parametrize("start", RIGHT, ids=lambda start: type(start).__name__)
def test_recorded_games_of_right_rules_never_contradict_themselves(start: Game):
    found = consistency_of(start)
    assert found.positions > 200
    for name in ("repeats", "legal", "effects"):
        agreement = getattr(found, name)
        assert (agreement.compared > 20, agreement.different) == (True, 0), name
    assert (found.images.compared > 100, found.images.different) == (bool(start.symmetries()), 0)


class Noisy(Kalah):
    """The observation is random."""

    def observe(self):
        return np.random.default_rng().random(self.observation_shape, np.float32)


class Blind(Clobber):
    """Only the own stones are shown."""

    def observe(self):
        return super().observe() * [[[1]], [[0]]] == 1


class Late(Clobber):
    """The board is shown as it was before the last move."""

    def play(self, action):
        after = super().play(action)
        after.before = self
        return after

    def observe(self):
        return super().observe() if self.to_play == 0 else self.before.observe()[::-1]


class Forgetful(Shuffle):
    """The third repetition of a position is a draw, but how often it has occurred is not shown."""

    def observe(self):
        return super().observe() * [[[1]], [[0]], [[0]]]


class HiddenRule(Written):
    """Two plies, of which the first decides who wins; the observation shows how many there were."""

    def __init__(self):
        super().__init__("01", "0011")
        self.observation_shape = (1, 1, 1)

    def observe(self):
        return np.full((1, 1, 1), len(self.moves))


class Turned(DotsAndBoxes):
    """The rotations turn the actions the other way round than the boxes."""

    def symmetries(self):
        return tuple(Symmetry(planes, np.argsort(actions)) for planes, actions in super().symmetries())


class Reversed(Kalah):
    """The pits in reverse order are declared to be an image, but sowing has a direction."""

    def symmetries(self):
        cups = np.arange(len(self.cups)).reshape(2, -1)
        return [Symmetry(np.concatenate([cups[:, -2::-1], cups[:, -1:]], axis=1).ravel(), np.arange(4)[::-1])]


@pytest.mark.parametrize(
    ("start", "field"),
    [
        (Noisy(), "repeats"),
        (Blind(), "legal"),
        (Late(), "legal"),
        (Forgetful(), "effects"),
        (Turned(size=2), "images"),
        (Reversed(), "images"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Game) else "",
)
def test_recorded_games_of_wrong_rules_contradict_themselves(start: Game, field: str):
    found = consistency_of(start)
    assert differs(getattr(found, field))
    assert field == "repeats" or not differs(found.repeats)


def test_an_observation_with_two_proven_values_contradicts_itself():
    found = consistency_of(HiddenRule(), proven=True)
    assert found.values == Agreement(compared=2, different=1)


def test_a_game_that_was_cut_off_says_nothing_of_its_last_move():
    start = Shuffle()
    start.max_plies = 5
    check = ConsistencyCheck(start)
    check.add(recorded(random_games(start, 100) + random_games(Shuffle(), 100)))
    assert check.compare().effects.different == 0


def test_processors_that_round_differently_do_not_contradict_each_other():
    games = recorded(random_games(Kalah(), 1))
    check = ConsistencyCheck(Kalah())
    check.add(games)
    rounded = np.nextafter(games.observations, np.float32(np.inf)) * (games.observations > 0)
    check.add(Games(games.games, games.positions, games.moves, rounded))
    found = check.compare()
    assert (found.legal.compared, found.repeats.different) == (found.positions, 0)
