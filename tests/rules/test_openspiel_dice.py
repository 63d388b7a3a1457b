"""OpenSpiel's games with dice: probabilities, rolls and players to move, and pig against plyzero's own."""

import itertools
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from games.pig import Pig
from plyzero.rules.adapters import openspiel
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import chances_of, is_chance, move_name, possible_moves
from plyzero.rules.game import Game
from plyzero.rules.random_game import random_game
from tests.helpers.cli import shown

DICE = ("backgammon", "banqi", "einstein_wurfelt_nicht", "maedn", "pig", "yacht(num_dice=2)", "chess(chess960=True)")


def start_of(name: str) -> Game:
    return load_game(f"openspiel:{name}").start


def played(name: str, seed: int) -> list[Game]:
    return random_game(start_of(name), np.random.default_rng(seed)).positions


@pytest.mark.parametrize("name", [*DICE, "pig(piglet=True)"])
def test_probabilities_are_exactly_those_of_openspiel(name: str):
    different = set()
    for position in played(name, 1):
        rolls = position._state.chance_outcomes() if position._state.is_chance_node() else []
        given = position.chances()
        assert {roll: given[roll] for roll in range(len(given)) if given[roll]} == dict(rolls)
        assert len(given) in (0, position.num_chances)
        assert is_chance(position) == bool(rolls)
        assert position.to_play in (0, 1)
        different |= {tuple(given)} if rolls else set()
    # Backgammon's first roll is not a double, pieces leave banqi's sack, cubes are placed before the die is rolled.
    assert (len(different) > 1) == name.startswith(("backgammon", "banqi", "einstein", "yacht"))


def test_pig_is_the_included_pig():
    rng, numbers = np.random.default_rng(0), re.compile(r"\d+")
    ends_by_stopping = 0
    for _ in range(20):
        theirs, ours = start_of("pig(winscore=30)"), Pig(goal=30).as_plain_python()
        while ours.outcome() is None:
            assert theirs.outcome() is None
            first, second, player, turn = map(int, numbers.findall(str(ours)))
            assert list(map(int, numbers.findall(str(theirs))))[:3] == [first, second, turn]
            assert chances_of(theirs).tolist() == chances_of(ours).tolist()
            move = int(rng.choice(possible_moves(ours)))
            name = move_name(ours, move)
            if not is_chance(ours):
                assert theirs.to_play == player
                assert theirs.legal_names() == "roll stop"  # here there must be something to keep
                assert ours.legal_names() == ("hold roll" if turn else "roll")
                name = name.replace("hold", "stop")
            by_name = {move_name(theirs, each): each for each in possible_moves(theirs)}
            theirs = theirs.play(by_name[name])
            ours = ours.play(move)
        if theirs.outcome() is None:  # which needs the move stop
            theirs = theirs.play(theirs.parse_action("stop"))
            ends_by_stopping += 1
        assert theirs.outcome() == ours.outcome()
    assert ends_by_stopping > 0


def test_backgammon_begins_with_a_roll_that_decides_who_moves_first():
    start = start_of("backgammon")
    assert (is_chance(start), start.num_chances) == (True, 36)
    movers = {}
    for roll in possible_moves(start):
        name = start.roll_name(roll)
        movers.setdefault(name[0], set()).add(start.play(roll).to_play)
        assert re.fullmatch(r"[XO]_starts,_[1-6]{2}", name)
    assert movers == {"X": {0}, "O": {1}}
    after = start.play(1)
    again = after.play(after.legal_actions()[0])
    assert {again.roll_name(roll) for roll in possible_moves(again)} >= {"11", "12", "66"}
    assert "-" not in after.legal_names()


@pytest.mark.parametrize("name", ["chess(chess960=True)", "einstein_wurfelt_nicht", "yacht(num_dice=2)"])
def test_who_moves_first_after_every_roll_is_player_0(name: str):
    for seed in range(5):
        assert next(each for each in played(name, seed) if not is_chance(each)).to_play == 0


def test_the_network_sees_the_die_in_einstein_wurfelt_nicht():
    for seed in range(3):
        for before, after in itertools.pairwise(played("einstein_wurfelt_nicht", seed)[:-1]):
            if is_chance(before) and not is_chance(after):
                assert np.flatnonzero(after.observe()[-7:-1]).tolist() == [after.key()[-1]]


def test_in_pig_a_plane_shows_the_plies():
    positions = [each for each in played("pig", 0)[:-1] if not is_chance(each)]
    assert [round(1000 * float(each.observe()[-2, 0, 0])) for each in positions] == list(range(len(positions)))


def test_a_match_with_dice_is_played_by_name():
    name = "openspiel:pig(winscore=5)"
    assert name in shown("match", "mcts:2", "random", "--game", name, "--games", "2")


def test_a_position_after_rolls_can_be_copied():
    position = played("chess(chess960=True)", 0)[6]
    other = pickle.loads(pickle.dumps(position))
    assert (other.key(), other.to_play, str(other)) == (position.key(), position.to_play, str(position))
    assert np.array_equal(other.observe(), position.observe())


def test_every_playable_game_can_be_loaded_and_is_in_the_table_of_games():
    root = Path(__file__).parents[2]
    table = (root / "benchmarks" / "results" / "openspiel.md").read_text()
    assert re.findall(r"^\| openspiel:(\w+) v", table, re.MULTILINE) == sorted(openspiel.playable_games())
    starts = {name: start_of(name) for name in sorted(openspiel.playable_games())}
    assert all(start.outcome() is None and len(possible_moves(start)) for start in starts.values())
    dice = (root / "docs" / "games.md").read_text().partition("37 games")[2].partition(" have dice")[0]
    assert re.findall(r"`(\w+)`", dice) == [name for name, start in starts.items() if start.num_chances]
