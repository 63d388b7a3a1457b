"""Scores in records: format 2 for games with points, format 1 byte for byte as before for all others."""

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import replay_game
from plyzero.rules.game import Outcome
from plyzero.run.journals import read_header, read_journal
from plyzero.run.json_games import games_to_json, import_games, json_games
from plyzero.run.records import FORMAT_1, UNKNOWN_SCORE, Games, find_valid
from plyzero.run.segments import read_segment
from plyzero.run.zarr_zip import Archive
from plyzero.search.evaluators import Uniform
from plyzero.settings import SelfplaySettings, Settings
from tests.helpers.hostile import journal
from tests.helpers.recorded import random_games, recorded
from tests.helpers.runs import games_by_seed
from tests.helpers.segments import CONNECT_FOUR, same, some_games, write
from tests.helpers.toys import CompiledHarvest, Harvest

OTHELLO = load_game("othello(size=6)")
SETTINGS = Settings(selfplay=SelfplaySettings(parallel_games=4, simulations=4, fast_simulations=2))


def without_points(game: GameSpec) -> GameSpec:
    """Return the game as it was before it had points."""
    start = copy.copy(game.start)
    start.max_score = 0
    return GameSpec(game.name, start)


def scored(seed: int = 0) -> Games:
    games = some_games(OTHELLO, seed)
    games.games["score"] = [UNKNOWN_SCORE, 12.0]
    return games


def test_records_of_games_with_points_have_format_2(tmp_path: Path):
    path = write(tmp_path, scored(), OTHELLO)
    assert Archive(path.read_bytes()).attributes["schema"] == "plyzero.replay/2"
    assert same(read_segment(path, OTHELLO), scored())


def test_records_of_games_without_points_have_format_1(tmp_path: Path):
    games = some_games(CONNECT_FOUR)
    path = write(tmp_path, games, CONNECT_FOUR)
    assert Archive(path.read_bytes()).attributes["schema"] == "plyzero.replay/1"
    assert b"game/score" not in path.read_bytes()
    assert same(read_segment(path, CONNECT_FOUR), games)
    path = journal(tmp_path, CONNECT_FOUR, [games])
    assert read_header(path)["schema"] == "plyzero.journal/1"
    assert games.games[[*FORMAT_1.names]].astype(FORMAT_1).tobytes() in path.read_bytes()


def test_format_1_of_a_game_that_has_points_now_is_read_without_scores(tmp_path: Path):
    before, games = without_points(OTHELLO), some_games(OTHELLO)
    segment, dead = write(tmp_path, games, before), journal(tmp_path, before, [games])
    games.games["score"] = UNKNOWN_SCORE
    for found in (read_segment(segment, OTHELLO), *read_journal(dead, OTHELLO)):
        assert same(found, games)


def test_a_journal_keeps_scores(tmp_path: Path):
    path = journal(tmp_path, OTHELLO, [scored()])
    assert read_header(path)["schema"] == "plyzero.journal/2"
    (found,) = read_journal(path, OTHELLO)
    assert same(found, scored())
    with pytest.raises(ValueError, match=r"has the header .*journal/2"):
        read_journal(path, without_points(OTHELLO))


@pytest.mark.parametrize("score", [-2.0, math.inf, math.nan])
def test_an_impossible_score_is_left_out(score: float):
    games = scored()
    games.games["score"][1] = score
    valid, fault = find_valid(games, OTHELLO.start.num_actions)
    assert (valid.tolist(), fault) == ([True, False], "game/score has an impossible value at index 1")


@pytest.mark.parametrize("start", [Harvest(), CompiledHarvest()])
def test_self_play_records_the_score_of_the_rules(start):
    played, _ = games_by_seed(start, SETTINGS, Uniform(start.num_actions), count=20)
    for games in played:
        *_, (end, _) = replay_game(start, games.games[0], games.positions["action"].tolist())
        assert games.games["score"][0] == end.outcome().score
    assert len({float(games.games["score"][0]) for games in played}) > 2


def test_a_game_whose_score_is_impossible_is_given_up():
    class Endless(Harvest):
        def outcome(self):
            found = super().outcome()
            return found and Outcome(0, found.score + 100)

    with pytest.raises(UserError, match=r"the score is 10\d, larger than max_score = 6"):
        games_by_seed(Endless(), SETTINGS, Uniform(3), count=200)


def test_json_lines_have_the_score():
    spec = GameSpec("tests.helpers.toys:Harvest", Harvest())
    games = recorded(random_games(spec.start, 8))
    lines = [*games_to_json(games, spec.start)]
    assert [line["score"] for line in lines] == games.games["score"].tolist()
    imported = [*import_games(json_games([json.dumps(line).encode() for line in lines]), spec)]
    assert [float(each.games["score"][0]) for each in imported] == games.games["score"].tolist()
    cut = {**lines[0], "moves": lines[0]["moves"][:2], "winner": "first", "end": "resign"}
    (resigned,) = import_games(
        json_games([json.dumps({key: cut[key] for key in ("moves", "winner", "end")}).encode()]), spec
    )
    assert resigned.games["score"].tolist() == [UNKNOWN_SCORE]
    games.games["score"] = UNKNOWN_SCORE
    assert {line["score"] for line in games_to_json(games, spec.start)} == {None}
    plain = recorded(random_games(CONNECT_FOUR.start, 1))
    assert all("score" not in line for line in games_to_json(plain, CONNECT_FOUR.start))
    assert np.array_equal(plain.games["score"], [0])
