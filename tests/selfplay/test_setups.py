"""Self-play of games with set-ups: the set-up follows from the seed, and records replay, are exported and come back."""

import json

import numpy as np
import pytest

from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import is_chance, random_setup, replay_game
from plyzero.run.json_games import games_to_json, import_games, json_games
from plyzero.run.records import Games
from plyzero.run.replay import check_rules, find_disagreement
from plyzero.run.segments import read_segment
from plyzero.settings import SearchSettings, SelfplaySettings, Settings
from plyzero.trainer.diagnosis.consistency import ConsistencyCheck
from tests.helpers.runs import bytes_of, games_by_seed, play_segment, small_run
from tests.helpers.setups import CompiledHeaps, Heaps, ShuffledRanks, ThrownHeaps, start_of
from tests.helpers.toys import Hashed

every_game = pytest.mark.parametrize("cls", [Heaps, ThrownHeaps, ShuffledRanks], ids=["plain", "dice", "compiled"])


def played(start, count, **selfplay):
    """The games of the seeds 0 to count - 1."""
    options = {"parallel_games": 4, "simulations": 8, "fast_simulations": 4, "full_search_probability": 0.5}
    settings = Settings(search=SearchSettings(), selfplay=SelfplaySettings(**options | selfplay))
    return games_by_seed(start, settings, Hashed(start.num_actions), count=count)[0]


@every_game
def test_seed_and_actions_replay_a_game_with_its_set_up(cls):
    start = start_of(cls)
    games = played(start, 40)
    assert {find_disagreement(game, start) for game in games} == {None}
    begun = set()
    for game in games:
        (record,) = game.games
        (_, rolls), *_ = replay_game(start, record, game.positions["action"].tolist())
        assert rolls[0] == random_setup(record["seed"], cls.setups)
        assert len(rolls) == (2 if cls is ThrownHeaps else 1)
        begun.add(rolls[0])
    assert len(begun) > 35


@every_game
def test_openings_that_end_a_game_are_taken_back_behind_the_set_up(cls):
    start = start_of(cls)
    games = played(start, 30, opening_plies=8)
    assert {find_disagreement(game, start) for game in games} == {None}
    assert max(int(game.games["opening_plies"][0]) for game in games) > 2


def test_compiled_and_plain_games_with_equal_seeds_are_equal_byte_for_byte():
    one, other = (played(start_of(each), 50) for each in (CompiledHeaps, Heaps))
    assert [bytes_of(game) for game in one] == [bytes_of(game) for game in other]


@pytest.mark.parametrize("cls", [Heaps, ShuffledRanks], ids=["plain", "compiled"])
def test_exported_games_begin_with_the_set_up_and_come_back(cls):
    spec = GameSpec("mine", start_of(cls))
    games = played(spec.start, 20)
    lines = [line for game in games for line in games_to_json(game, spec.start)]
    assert [int(line["moves"][0]) for line in lines] == [
        random_setup(game.games["seed"][0], cls.setups) for game in games
    ]
    assert {len(line["moves"]) - 1 - len(line["values"]) for line in lines} == {0}
    found = [*import_games(json_games([json.dumps(line).encode() for line in lines]), spec)]
    assert [line for game in found for line in games_to_json(game, spec.start)] == lines
    assert {find_disagreement(game, spec.start) for game in found} == {None}
    for game, again in zip(games, found, strict=True):
        assert np.array_equal(game.observations, again.observations)


def test_a_game_without_its_set_up_is_no_game():
    spec = GameSpec("mine", start_of(Heaps))
    (fault,) = import_games(json_games([b'{"moves": ["0", "2"], "winner": "second"}']), spec)
    assert fault.reason.startswith("the game is not over after its 2 moves")
    (fault,) = import_games(json_games([b'{"moves": ["x"], "winner": "second"}']), spec)
    assert fault.reason == "move 1: expected the number of a set-up, from 0 to 4294967295, got 'x'"


def test_the_trainer_compares_games_from_the_same_set_up_only():
    start = start_of(ShuffledRanks)
    games = Games.concatenate(played(start, 40))
    found = ConsistencyCheck(start)
    found.add(games)
    assert found.compare().repeats.different == 0

    once, again = (Games.concatenate(played(start, 20)) for _ in range(2))
    found = ConsistencyCheck(start)
    found.add(once)
    found.add(again)
    assert found.compare().repeats.compared > 20
    assert found.compare().repeats.different == 0
    blind = ConsistencyCheck(ShuffledRanks())  # which takes the set-ups for one start
    blind.add(games)
    assert blind.compare().repeats.different > 0


def test_a_run_is_recorded_and_its_rules_are_compared(tmp_path):
    run = small_run(tmp_path / "r", "tests.helpers.setups:Heaps")
    games = read_segment(play_segment(run), run.game)
    assert len({random_setup(seed, Heaps.setups) for seed in games.games["seed"]}) == len(games.games)
    assert not any(map(is_chance, [load_game("tests.helpers.setups:FixedHeaps").start]))
    check_rules(run)
