"""The laws for games with dice: they hold where they should, and each mistake is named."""

import copy
import itertools

import numpy as np
import pytest

from plyzero import GameLaws, Outcome
from plyzero.check.agreement import agreement_with
from plyzero.check.survey import survey
from plyzero.check.violations import find_violation, laws_of
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.chance import ENDLESS_ROLLS
from plyzero.rules.random_game import random_game
from plyzero.run.configuration import requirements
from tests.helpers.dice import CHANCES, GOAL, PlainRace, Race, WhoBegins
from tests.helpers.toys import variant


class TestCompiledDice(GameLaws):
    game = Race
    games = 15


def test_the_law_of_chance_is_for_games_with_dice_only():
    name = "chances_are_probabilities"
    assert name in [law.name for law in laws_of(PlainRace())]
    assert name not in [law.name for law in laws_of(TicTacToe())]


def test_compiled_and_plain_dice_agree_and_others_do_not():
    assert find_violation(Race, games=5, extra_laws=[agreement_with(PlainRace)]) is None

    loaded = variant(PlainRace, chances=lambda self: PlainRace.chances(self)[:: -1 if self.thrown else 1])
    broken = find_violation(PlainRace, games=5, extra_laws=[agreement_with(loaded)])
    assert broken.law.name == "agrees_with_the_other"
    assert "the roll one has the probability 0.5 in this game and 0.125 in the other one" in broken.what


@pytest.mark.parametrize(
    ("chances", "what"),
    [
        ((0.5, 0.5, 0.5, 0.5), "chances() is 0.5 0.5 0.5 0.5, whose sum is 2, expected 1"),
        ((1.5, -0.5, 0, 0), "chances() is 1.5 -0.5 0 0, expected numbers from 0 to 1"),
        ((0.5, 0.5), "chances() has 2 numbers, expected one for each of num_chances = 4 rolls"),
        ((0.0, 0.0, 0.0, 0.0), "chances() is all zeros: return () where a player moves"),
        ((float("nan"), 0, 0, 1), "expected finite numbers"),
    ],
)
def test_what_is_no_probability_is_reported(chances, what):
    wrong = variant(PlainRace, chances=lambda self: chances if self.thrown else PlainRace.chances(self))
    broken = find_violation(wrong, games=10)
    assert (broken.law.name, len(broken.moves), broken.moves[-1]) == ("chances_are_probabilities", 2, "throw")
    assert what in broken.what


def test_dice_may_decide_who_begins_but_not_end_the_game_before_a_move():
    assert find_violation(WhoBegins, games=10) is None

    won = variant(WhoBegins, outcome=lambda self: Outcome(1) if self.at == (0, 1) else WhoBegins.outcome(self))
    broken = find_violation(won, games=10)
    assert (broken.law.name, broken.moves) == ("games_begin", (PlainRace().roll_name(1),))
    assert broken.what == "the game is over before any player has moved: Outcome(winner=1)"


def test_a_position_that_is_nobodys_turn_is_reported():
    class Stuck(Race):
        def chances(s, weights):
            if s["begun"] == 0:
                weights[0] = 1

        def legal(s, mask):
            mask[:] = s["thrown"] == 0

    broken = find_violation(Stuck, games=10, skip=["compiled_as_written"])
    assert broken.law.name == "legal_actions_in_order"
    assert broken.what.startswith("legal_actions() is empty, and chances() is empty, but outcome() is None")


class Endless(PlainRace):
    """The die is thrown for ever."""

    def play(self, action):
        return copy.copy(self) if self.thrown else super().play(action)


@pytest.mark.parametrize("skip", [(), ("games_end",)])
def test_rolls_that_never_end_are_reported(skip, monkeypatch):
    monkeypatch.setattr("plyzero.rules.chance.MAX_ROLLS", 16)
    broken = find_violation(Endless, games=2, skip=skip)
    assert (broken.law.name, broken.what) == ("games_end", ENDLESS_ROLLS)
    assert broken.moves.count("throw") == 1
    assert len(broken.moves) >= 18
    with pytest.raises(ValueError, match=ENDLESS_ROLLS[:20]):
        random_game(Endless(), np.random.default_rng(0))


class HiddenDie(PlainRace):
    """A die is thrown before a move and decides its length, but the network does not see it."""

    num_actions, num_chances, max_plies = 1, 2, 20
    at, die, to_play = (0, 0), 0, 0

    def legal_actions(self):
        return [] if self.outcome() else [0]

    def chances(self):
        return () if self.die else (0.5, 0.5)

    def play(self, action):
        after = copy.copy(self)
        if not self.die:
            after.die = action + 1
        else:
            at = list(self.at)
            at[self.to_play] += self.die
            after.at, after.die, after.to_play = tuple(at), 0, 1 - self.to_play
        return after

    def key(self):
        return self.at, self.die, self.to_play


def test_a_die_that_the_network_does_not_see_is_reported_with_the_roll():
    broken = find_violation(HiddenDie, games=20)
    assert broken.law.name == "equal_observations_equal_futures"
    assert broken.what.splitlines()[1].split()[0] in (HiddenDie().roll_name(0), HiddenDie().roll_name(1))
    assert "have equal observations, but different futures" in broken.what


def test_a_game_whose_plies_all_end_with_a_roll_is_found_to_be_too_long():
    broken = find_violation(variant(HiddenDie, max_plies=5), games=5)
    assert broken.law.name == "games_with_dice_end"
    assert "a random game is not over after max_plies = 5 plies" in broken.what
    assert len(broken.moves) == 11  # the rolls before five plies, and one after them


def test_bad_luck_breaks_no_law():
    class Patient(HiddenDie):
        """One roll leads nowhere, so with bad luck a game is endless."""

        max_plies = 100

        def play(self, action):
            after = super().play(action)
            after.at = self.at if self.die == 1 else after.at
            return after

        def observe(self):
            return super().observe() + self.die

    assert find_violation(Patient, games=20) is None


def test_rolls_need_names_and_rules_that_are_functions_of_the_moves():
    same = variant(PlainRace, roll_name=lambda self, roll: "die")
    assert "rolls 0 and 1 are both called 'die'" in find_violation(same, games=5).what

    class Random(PlainRace):
        def play(self, action):
            after = super().play(action)
            if self.thrown:
                after.at = (after.at[0] + next(counter) % 2, after.at[1])
            return after

    counter = itertools.count()
    assert find_violation(Random, games=20).law.name in ("same_moves_same_position", "play_makes_a_new_position")


def test_statistics_count_moves_and_not_rolls():
    found = survey(PlainRace(), games=60)
    assert found.branching == (2.0, 2)
    assert found.plies[2] < 2 * GOAL
    game = random_game(PlainRace(), np.random.default_rng(0))
    assert 0 < game.plies < len(game.moves)
    assert [game.positions[i].thrown for i in game.decisions] == [False] * len(game.decisions)
    assert requirements(PlainRace())[-1].minimum == 0


def test_random_games_roll_by_probability():
    rng, rolls = np.random.default_rng(0), []
    for _ in range(800):
        game = random_game(PlainRace(), rng)
        rolls += [move for each, move in zip(game.positions, game.moves, strict=False) if each.thrown]
    assert np.bincount(rolls, minlength=4) / len(rolls) == pytest.approx(np.array(CHANCES), abs=0.03)
