"""Set-ups: a game that begins with one of many random positions, in plain Python and compiled."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero import CompiledGame, Game, UserError
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import (
    MAX_SETUPS,
    awaiting_setup,
    chances_of,
    first_decision,
    is_chance,
    move_name,
    parse_move,
    possible_moves,
    random_setup,
    roll_dice,
    roll_on,
    roll_random,
    seed_of_setup,
    setup_at,
    setup_name,
    without_setup,
)
from plyzero.rules.counter_rng import murmur_finalizer, random_bits, seed_with_bits
from plyzero.rules.game import IllegalActionError
from plyzero.rules.notation import action_names, moves_to, play_named, read_starts
from plyzero.rules.random_game import random_game
from tests.helpers.setups import (
    FEW_BEGINNINGS,
    ORDERS,
    FixedHeaps,
    Heaps,
    RolledHeaps,
    ShuffledRanks,
    ThrownHeaps,
    start_of,
)
from tests.helpers.toys import variant

both_games = pytest.mark.parametrize("cls", [Heaps, ShuffledRanks], ids=["plain", "compiled"])


def test_the_class_makes_a_usual_position_and_the_catalog_a_start_that_awaits_a_set_up():
    for cls in (Heaps, ShuffledRanks):
        usual, start = cls(), start_of(cls)
        assert (usual.awaits_setup, start.awaits_setup) == (False, True)
        assert usual.outcome() is None
        assert len(usual.play(usual.legal_actions()[0]).legal_actions()) > 0
        assert without_setup(start).key() == usual.key()
        assert "a set-up is due" in repr(start)
        assert "player 0 to move" in repr(usual)
    assert start_of(FixedHeaps).awaits_setup is False
    assert str(ShuffledRanks()).splitlines()[-2].split() == ["1", "R", "N", "B", "Q", "K"]


@both_games
def test_a_set_up_is_played_by_its_number_as_the_first_roll(cls):
    start = start_of(cls)
    assert is_chance(start)
    for number in (0, 1, 518, cls.setups - 1):
        begun = start.play(number)
        assert begun.key() == start.play_unchecked(number).key() == start.set_up(number).key()
        assert begun.key() == cls().set_up(number).key()
        assert not begun.awaits_setup
        assert not is_chance(begun)
        assert begun.outcome() is None
    for number in (-1, cls.setups):
        with pytest.raises(IllegalActionError, match=f"from 0 to {cls.setups - 1}, got {number}"):
            start.play(number)
    with pytest.raises(TypeError):
        start.set_up(0.5)
    assert start.awaits_setup


def test_the_set_ups_of_the_small_chess_are_all_different():
    start = start_of(ShuffledRanks)
    assert start.setups == 8 * len(ORDERS) == 960
    assert len({start.play(number).key() for number in range(960)}) == 960


def test_a_start_that_returns_itself_as_a_set_up_goes_on_awaiting_one():
    class Lazy(Heaps):
        def set_up(self, number):
            return self

    start = awaiting_setup(Lazy())
    assert not start.play(3).awaits_setup
    assert start.awaits_setup


def test_nothing_lists_all_set_ups():
    start = start_of(Heaps)
    assert possible_moves(start) == range(1 << 32)
    assert move_name(start, 4_000_000_000) == "4000000000"
    assert parse_move(start, " 518") == 518
    expected = "expected the number of a set-up, from 0 to 4294967295, got"
    for text in ("4294967296", "-1", "heads", "", "9" * 5000, "²"):
        with pytest.raises(ValueError, match=expected):
            parse_move(start, text)
    with pytest.raises(ValueError, match="a set-up is due: play its number first"):
        chances_of(start)


@pytest.mark.parametrize("cls", [Heaps, ThrownHeaps, ShuffledRanks])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_of_a_start_await_a_set_up_and_those_of_other_positions_do_not(cls, again):
    start = start_of(cls)
    assert again(start).awaits_setup
    assert not again(start.play(5)).awaits_setup
    assert again(start).play(5).key() == start.play(5).key()


def test_a_position_of_a_state_awaits_no_set_up_whatever_it_is_made_from():
    start = start_of(ShuffledRanks)
    assert start.as_plain_python().awaits_setup
    assert start.with_bounds_checked().awaits_setup
    assert start.with_wide_fields().awaits_setup
    assert not start.with_state(start.state).awaits_setup
    wide = start.with_wide_fields().play(77)
    assert np.array_equal(wide.record["board"], start.play(77).record["board"])


def test_dice_may_follow_a_set_up():
    start = start_of(ThrownHeaps)
    begun = start.play(0)
    assert possible_moves(begun) == [0, 1]
    position, rolls = roll_dice(start, np.random.default_rng(1))
    assert len(rolls) == 2
    assert not is_chance(position)
    names = action_names(start, tuple(rolls))
    assert names == [str(rolls[0]), begun.roll_name(rolls[1])]
    assert play_named(start, names)[1] == rolls


def test_a_rolled_set_up_is_the_first_random_number():
    start = start_of(Heaps)
    assert roll_on(start, lambda number: 0.25)[1] == [1 << 30]
    assert first_decision(start).key() == first_decision(start).key()
    game = random_game(start, np.random.default_rng(0))
    assert game.plies == len(game.moves) - 1
    assert setup_name(game.positions, game.moves) == f"set-up {game.moves[0]}"
    assert setup_name(game.positions[1:], game.moves[1:]) == ""
    assert setup_name([start], []) == ""


def test_set_ups_are_equally_likely():
    rng = np.random.default_rng(0)
    found = np.bincount([setup_at(6, rng.random()) for _ in range(60_000)], minlength=6)
    assert len(found) == 6
    assert abs(found - 10_000).max() < 5 * 10_000**0.5
    assert setup_at(MAX_SETUPS, 1 - 2**-32) == MAX_SETUPS - 1
    assert setup_at(1, 1 - 2**-53) == 0
    assert setup_at(np.int64(MAX_SETUPS), 0.75) == 3 << 30


@given(st.integers(1, MAX_SETUPS), st.data())
def test_every_set_up_has_a_seed_that_gives_it(setups, data):
    number = data.draw(st.integers(0, setups - 1))
    like = data.draw(st.integers(0, 2**32 - 1))
    seed = np.uint64(seed_of_setup(number, setups, like))
    assert random_setup(seed, setups) == number
    assert int(seed) & 0xFFFF_FFFF == like
    assert setup_at(setups, roll_random(seed, 16, 0, 0)) == number


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**40))
def test_a_seed_is_found_for_any_bits(bits, low, n):
    assert random_bits(np.uint64(seed_with_bits(bits, n, low)), n) == bits


def test_the_finalizer_is_the_published_one():
    assert [murmur_finalizer(word) for word in (0, 1, 0xFFFF_FFFF)] == [0, 0x514E_28B7, 0x81F1_6F39]


# --- declarations ---


def error_of(cls: type[Game]) -> str:
    with pytest.raises(UserError) as error:
        load_game(cls)
    return str(error.value).removeprefix(f"{cls.__module__}:{cls.__name__}")


class Unset(FixedHeaps):
    setups = 4


class Uncounted(FixedHeaps):
    def set_up(self, number):
        return self


class UnsetCompiled(CompiledGame):
    State = np.dtype([("to_play", "i1")])
    num_actions, observation_shape, max_plies, setups = 1, (1, 1, 1), 1, 4

    def legal(s, mask):
        mask[:] = True

    def play(s, action):
        s["to_play"] = 1

    def outcome(s):
        return 0 if s["to_play"] else -2

    def observe(s, planes):
        planes[0, 0, 0] = 1


class UncountedCompiled(UnsetCompiled):
    setups = 0

    def set_up(s, number):
        s["to_play"] = 0


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (Unset, " has setups = 4, but no set_up(): define it, or leave out setups"),
        (Uncounted, " defines set_up(), but setups is 0: give the number of different set-ups"),
        (UnsetCompiled, " has setups = 4, but no set_up(): define it, or leave out setups"),
        (UncountedCompiled, " defines set_up(), but setups is 0: give the number of different set-ups"),
        (variant(Heaps, setups=2**32 + 1), ".setups: expected a number from 0 to 2**32, got 4294967297"),
        (variant(Heaps, setups=-1), ".setups: expected a number from 0 to 2**32, got -1"),
        (variant(Heaps, setups=True), ".setups: expected a number from 0 to 2**32, got True"),
        (variant(Heaps, setups="960"), ".setups: expected a number from 0 to 2**32, got '960'"),
    ],
)
def test_declarations_that_disagree_are_one_sentence(cls, says, monkeypatch):
    monkeypatch.setitem(globals(), cls.__name__, cls)
    monkeypatch.setattr(cls, "__module__", __name__)
    assert error_of(cls) == says


class Forgets(Heaps):
    def set_up(self, number):
        self._with((1, 1, 1))


def test_a_set_up_that_fails_at_once_is_told_when_the_game_is_loaded():
    with pytest.raises(UserError, match=r"cannot set up the first position of .*returns None, expected a position"):
        load_game(Forgets)


def test_a_compiled_rule_set_up_takes_the_record_and_the_number():
    with pytest.raises(TypeError, match=r"Wrong.set_up: a rule takes s, number, and no self"):

        class Wrong(ShuffledRanks):
            def set_up(self, s, number):
                pass


def test_the_number_of_set_ups_may_depend_on_a_parameter():
    class Sized(Heaps):
        def __init__(self, most: int = 0):
            self.setups = most

    assert not awaiting_setup(Sized()).awaits_setup
    assert possible_moves(awaiting_setup(Sized(3))) == range(3)


# --- other ways to begin ---


def test_a_start_given_by_text_awaits_no_set_up():
    game = load_game(FixedHeaps).starting_at("4 2")
    assert not game.start.awaits_setup
    game = load_game(Heaps).starting_at("4 2")
    assert not game.start.awaits_setup
    assert game.start.heaps == (1, 1, 2)


def test_a_list_of_starts_is_refused_because_a_set_up_comes_first(tmp_path):
    (tmp_path / "starts").write_text("4 2\n")
    with pytest.raises(UserError, match="a game with set-ups begins with rolls of its own"):
        read_starts(tmp_path / "starts", start_of(Heaps))
    assert read_starts(tmp_path / "starts", FixedHeaps()) == [[4, 2]]


def test_moves_are_named_from_the_set_up_on():
    start = start_of(ShuffledRanks)
    assert moves_to(start, "518 e2e3")[0] == 518
    with pytest.raises(
        ValueError, match=re.escape("move 1: expected the number of a set-up, from 0 to 959, got 'e2e3'")
    ):
        play_named(start, ["e2e3"])


def test_few_set_ups_are_a_first_roll():
    start = start_of(RolledHeaps)
    assert (start.awaits_setup, is_chance(start)) == (False, True)
    assert [start.play(roll).heaps for roll in possible_moves(start)] == [*FEW_BEGINNINGS]
