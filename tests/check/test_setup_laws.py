"""The laws for games with set-ups: they hold where they should, and each mistake is named."""

import copy
import itertools

import numpy as np
import pytest

from plyzero import GameLaws
from plyzero.check.agreement import agreement_with, encoding_agreement_with
from plyzero.check.ends import first_moves
from plyzero.check.rule_by_rule import compare_rules
from plyzero.check.sample_laws import plies_left
from plyzero.check.sampling import NEAR_SETUPS, Sample, SamplePosition, extent_of, positions_near
from plyzero.check.survey import survey
from plyzero.check.violations import find_violation, laws_of
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.symmetry import Symmetry
from tests.helpers.setups import CompiledHeaps, FixedHeaps, Heaps, ShuffledRanks, ThrownHeaps, start_of
from tests.helpers.toys import variant

SETUP_LAWS = ("setups_are_counted", "same_number_same_setup", "setups_differ", "set_up_leaves_the_start")


class TestSmallChess(GameLaws):
    game = ShuffledRanks
    games = 10


class TestHeaps(GameLaws):
    game = Heaps
    games = 10


class TestThrownHeaps(GameLaws):
    game = ThrownHeaps
    games = 10


def test_the_laws_of_set_ups_are_for_games_with_set_ups_only():
    assert [law.name for law in laws_of(Heaps()) if law.name in SETUP_LAWS] == [*SETUP_LAWS]
    assert not {law.name for law in laws_of(TicTacToe())} & {*SETUP_LAWS}


counter = itertools.count()


class Random(Heaps):
    def set_up(self, number):
        return super().set_up(number + next(counter))


class Same(Heaps):
    def set_up(self, number):
        return self._with((1, 2, 2))


class Shared(Heaps):
    """All set-ups write into the list of the position they begin with."""

    def __init__(self):
        self.heaps = [1, 2, 3]

    def set_up(self, number):
        after = copy.copy(self)
        for heap in range(3):
            after.heaps[heap] = 1 + (number >> 2 * heap & 3)
        after.heaps = tuple(after.heaps)
        return after

    def key(self):
        return tuple(self.heaps), self.to_play


@pytest.mark.parametrize(
    ("cls", "law", "says"),
    [
        (Random, "same_number_same_setup", "called twice with the same number, set_up() returns different positions"),
        (Same, "setups_differ", "set_up() returns the same position for 0, 1, 2, 3, "),
        (Shared, "set_up_leaves_the_start", "set_up(0) changed the position it was called on"),
        (variant(Heaps, setups=2**32 + 1), "setups_are_counted", "setups is 4294967297, expected a number from 0"),
        (variant(Heaps, setups=-1), "setups_are_counted", "setups is -1, expected a number from 0 to 2**32"),
    ],
)
def test_a_broken_law_of_set_ups_is_named(cls, law, says):
    broken = find_violation(cls, games=5)
    assert (broken.law.name, broken.moves) == (law, ())
    assert says in broken.what


def test_each_random_game_begins_with_a_set_up_of_its_own():
    games = Sample(start_of(ShuffledRanks), extent_of(40)).games
    assert len({game.moves[0] for game in games}) > 30
    assert {game.positions[0].awaits_setup for game in games} == {True}


def test_positions_near_the_start_come_from_a_few_set_ups():
    near = positions_near(start_of(Heaps))
    assert len(near) >= 400
    assert len({each.moves[0] for each in near}) == 5 + NEAR_SETUPS
    assert max(len(each.moves) for each in near) > 3


@pytest.mark.parametrize(("cls", "moves"), [(FixedHeaps, (0, 2)), (Heaps, (63, 0, 2))])
def test_a_set_up_is_no_ply(cls, moves):
    sample = Sample(start_of(cls), extent_of(1))
    assert plies_left(sample, SamplePosition(moves, start_of(cls))) == cls.max_plies - 2


def test_a_mistake_after_some_set_ups_is_found_with_few_moves():
    class Overfull(Heaps):
        def legal_actions(self):
            return [5, *super().legal_actions()] if self.heaps[0] == 4 else super().legal_actions()

    broken = find_violation(Overfull, games=200)
    assert broken.law.name == "legal_actions_in_order"
    assert len(broken.moves) == 1
    assert int(broken.moves[0]) & 3 == 3


def test_a_set_up_that_raises_is_reported_with_its_number():
    class Picky(Heaps):
        def set_up(self, number):
            return super().set_up(number) if number & 7 != 5 else [][number]

    broken = find_violation(Picky, games=200)
    assert broken.law.name == "rules_answer" or broken.law.name in SETUP_LAWS
    assert "IndexError" in broken.what


def test_a_symmetry_is_tested_by_the_set_up_that_is_the_image_of_another():
    found = survey(start_of(ShuffledRanks), games=3)
    assert found.symmetries == (1, 1)

    class Unmirrored(ShuffledRanks):
        def symmetries(self):
            (right,) = ShuffledRanks.symmetries(self)
            return [Symmetry(right.planes, np.arange(self.num_actions))]

    broken = find_violation(Unmirrored, games=10)
    assert broken.law.name == "symmetries_agree_with_the_rules"
    assert len(broken.moves) == 1


def test_compiled_and_plain_set_ups_agree_and_others_do_not():
    both = [law(lambda: start_of(Heaps)) for law in (agreement_with, encoding_agreement_with)]
    assert find_violation(CompiledHeaps, games=10, extra_laws=both) is None

    shifted = variant(Heaps, set_up=lambda self, number: Heaps.set_up(self, number + 1))
    other = find_violation(CompiledHeaps, games=10, extra_laws=[agreement_with(lambda: awaiting(shifted))])
    assert other.law.name == "agrees_with_the_other"
    fewer = variant(Heaps, setups=4)
    other = find_violation(CompiledHeaps, games=10, extra_laws=[agreement_with(lambda: awaiting(fewer))])
    assert other.what == "setups is 4294967296 in this game and 4 in the other one"
    none = find_violation(CompiledHeaps, games=10, extra_laws=[agreement_with(FixedHeaps)])
    assert none.what == "setups is 4294967296 in this game and 0 in the other one"


def awaiting(cls):
    from plyzero.rules.chance import awaiting_setup

    return awaiting_setup(cls())


def test_a_wrong_rule_set_up_is_named_among_the_rules():
    right = compare_rules(awaiting(CompiledHeaps), awaiting(Heaps), games=20)
    assert right.rules == dict.fromkeys(("start", "set_up", "play", "outcome", "legal", "observe"), "right")

    class Wrong(CompiledHeaps):
        def set_up(s, number):
            s["heaps"][:] = 1 + (number & 3)

    wrong = compare_rules(awaiting(Wrong), awaiting(Heaps), games=20)
    assert wrong.rules["set_up"].startswith("wrong after ")
    assert "the field heaps is" in wrong.rules["set_up"]
    assert {rule for rule, state in wrong.rules.items() if state != "right"} == {"set_up"}

    class Unwritten(CompiledHeaps):
        def set_up(s, number):
            raise NotImplementedError("later")

    assert compare_rules(awaiting(Unwritten), awaiting(Heaps), games=5).rules["set_up"] == "not written yet"


def test_the_first_moves_are_those_after_a_set_up():
    lines = [*first_moves(start_of(ThrownHeaps))]
    assert lines[0] == "Set-ups (4294967296): numbers 0 to 4294967295"
    assert lines[1].startswith("First moves after set-up ")
    assert lines[1].split()[5] in ("heads", "tails")
