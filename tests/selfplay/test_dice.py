"""Self-play with dice: the rolls follow from the seed, compiled and plain games are equal, and records stay true."""

import itertools

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.rules.chance import MAX_ROLLS, chances_of, is_chance, replay_game, roll_at, roll_on, roll_random
from plyzero.rules.counter_rng import random_bits
from plyzero.rules.notation import play_named
from plyzero.run.json_games import games_to_json
from plyzero.run.records import Games
from plyzero.run.replay import find_disagreement
from plyzero.selfplay.step import NUM_PURPOSES
from plyzero.settings import SearchSettings, SelfplaySettings, Settings
from plyzero.trainer.diagnosis.consistency import ConsistencyCheck
from plyzero.trainer.diagnosis.diagnostics import game_results
from tests.helpers.dice import CHANCES, GOAL, PlainRace, Race
from tests.helpers.runs import bytes_of, games_by_seed, moves_of, replay
from tests.helpers.toys import Hashed

both_games = pytest.mark.parametrize("start", [Race(), PlainRace()], ids=["compiled", "plain"])


def played(start, count, *, algorithm="gumbel", **selfplay):
    """The games of the seeds 0 to count - 1."""
    options = {"parallel_games": 4, "simulations": 16, "fast_simulations": 4, "full_search_probability": 0.5}
    settings = Settings(search=SearchSettings(algorithm=algorithm), selfplay=SelfplaySettings(**options | selfplay))
    return games_by_seed(start, settings, Hashed(start.num_actions), count=count)[0]


@pytest.mark.parametrize(("algorithm", "reuse"), [("gumbel", False), ("gumbel", True), ("puct", True)])
def test_compiled_and_plain_games_with_equal_seeds_are_equal_byte_for_byte(algorithm, reuse):
    one, other = (played(each, 150, algorithm=algorithm, reuse_trees=reuse) for each in (Race(), PlainRace()))
    assert [bytes_of(game) for game in one] == [bytes_of(game) for game in other]


@pytest.mark.parametrize("reuse", [False, True])
@both_games
def test_seed_and_actions_replay_a_game_with_its_rolls(start, reuse):
    games = played(start, 100, algorithm="puct", reuse_trees=reuse)
    assert {find_disagreement(game, start) for game in games} == {None}
    records = ((moves_of(game, i), record) for game in games for i, record in enumerate(game.positions))
    kept = sum(moves["visits"].sum() > record["simulations"] for moves, record in records)
    assert (kept > 10) == reuse


@both_games
def test_rolls_after_the_opening_are_as_frequent_as_their_probabilities(start):
    """In the opening they are not: one that ends the game is taken back, so rolls that end games are rarer there."""
    heads, rolls = [], ([], [])
    for game in played(start, 1200, simulations=2, fast_simulations=2):
        (record,) = game.games
        (_, first), *others = replay_game(start, record, game.positions["action"].tolist())
        heads += first
        for _, found in others[record["opening_plies"] :]:
            for which, roll in zip(rolls, found, strict=False):
                which.append(roll)
    assert_frequencies(heads, [3 / 4, 1 / 4])
    for each in rolls:
        assert_frequencies(each, CHANCES)


def assert_frequencies(found, expected):
    n, expected = len(found), np.array(expected)
    assert n > 150
    difference = np.bincount(found, minlength=len(expected)) / n - expected
    assert (abs(difference) < 3.5 * np.sqrt(expected * (1 - expected) / n)).all()


def test_no_roll_shares_its_random_number_with_anything_else():
    seed = np.uint64(123)
    rolls = [roll_random(seed, *each) for each in itertools.product((0, 200), range(100), range(3))]
    others = [random_bits(seed, n) / 2**32 for n in range(100 * NUM_PURPOSES)]
    assert len({*rolls, *others}) == len(rolls) + len(others) - 3  # before the first move there is always an opening
    assert np.mean(rolls) == pytest.approx(0.5, abs=0.05)


@both_games
def test_an_opening_that_a_roll_ends_is_taken_back_and_rolled_anew(start):
    # Openings as long as whole games: every one of them runs into the end.
    again = 0
    for seed, game in enumerate(played(start, 200, opening_plies=2 * GOAL - 1, simulations=2)):
        opening = int(game.games["opening_plies"][0])
        assert game.positions["search"][opening] > 0
        (line,) = replay(start, game)
        assert line[-1].outcome() is not None
        position = line[opening].play(1)
        if is_chance(position):
            random = [roll_random(np.uint64(seed), plies, opening + 1, 0) for plies in (opening, opening + 1)]
            again += len({roll_at(chances_of(position), each) for each in random}) > 1
    assert again > 20


def test_a_roll_is_never_of_probability_0_and_follows_the_numbers():
    chances = np.array([0, 0.25, 0, 0.5, 0.25, 0], np.float32)
    random = (0, 0.2499, 0.25, 0.7499, 0.75, np.nextafter(1, 0))
    assert [roll_at(chances, each) for each in random] == [1, 1, 3, 3, 4, 4]


class Endless(PlainRace):
    def play(self, action):
        return self

    def chances(self):
        return (0, 0, 0, 1)


def test_a_roll_that_never_ends_is_an_error():
    with pytest.raises(ValueError, match=f"after {MAX_ROLLS} rolls"):
        roll_on(Endless(), lambda number: 0.5)
    with pytest.raises(UserError, match=f"after {MAX_ROLLS} rolls"):
        played(Endless(), 1)


class Over(PlainRace):
    """The head start is the whole way."""

    def play(self, action):
        after = super().play(action)
        after.at = (0, GOAL)
        return after


def test_a_game_that_the_first_roll_ends_is_refused():
    with pytest.raises(UserError, match="before any player has moved"):
        played(Over(), 1)


@both_games
def test_an_exported_game_names_its_rolls_and_can_be_played_again(start):
    for game in played(start, 40):
        (exported,) = games_to_json(game, start)
        positions, _ = play_named(start, exported["moves"])
        (line,) = replay(start, game)
        assert positions[-1].key() == line[-1].key()
        assert sum(not is_chance(each) for each in positions[:-1]) == len(exported["values"]) == len(game.positions)
        assert exported["moves"][0] in ("one", "three")


@both_games
def test_the_trainer_finds_nothing_inconsistent_in_games_with_dice(start):
    check = ConsistencyCheck(start)
    for game in played(start, 200):
        check.add(game)
    found = check.compare()
    assert found.legal.compared > 20
    assert found.values.compared > 2
    for each in (found.repeats, found.legal, found.effects, found.values, found.images):
        assert each.different == 0


def test_games_that_differ_in_their_rolls_do_not_look_alike():
    games = Games.concatenate(played(Race(), 100, opening_plies=0, temperature=0.01))
    actions = {tuple(each) for each in np.split(games.positions["action"], np.cumsum(games.games["positions"])[:-1])}
    assert len({each.opening for each in game_results(games)}) > len(actions) / 2
