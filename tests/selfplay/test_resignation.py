"""Resigned games of self-play: they are the beginnings of the others, and a tenth of them tests that it is right."""

import itertools

import numpy as np
import pytest

from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.run.records import BY_RULE, RESIGNED, Games, find_valid
from plyzero.run.replay import find_disagreement
from plyzero.settings import SelfplaySettings, Settings, TrainerSettings
from plyzero.trainer.targets import value_targets
from tests.helpers.beats import fields_of
from tests.helpers.learning import add_model
from tests.helpers.runs import bytes_of, games_by_seed, games_of, playing, small_run
from tests.helpers.toys import Hashed, Plain

COUNT = 200
BELOW = 0.45


def played(start, resign_below: float, *, fence: int = 1, count: int = COUNT) -> tuple[list[Games], list[int]]:
    """The games of the seeds 0 to `count` - 1, and the numbers of resignations among all that have ended."""
    selfplay = SelfplaySettings(parallel_games=4, simulations=4, fast_simulations=2, resign_below=resign_below)
    found, games = games_by_seed(start, Settings(selfplay=selfplay), Hashed(9), count=count, fence=fence)
    return found, games.resignations.tolist()


def losers(game: Games) -> list[int | None]:
    """Return, for each position, the player who scores less than BELOW by its search; None without a search."""
    score = (1 + game.positions["root_value"]) / 2
    mover = game.positions["to_play"].astype(int)
    found = np.where(score < BELOW, mover, np.where(1 - score < BELOW, 1 - mover, -1))
    return np.where(game.positions["search"] > 0, found, -1).tolist()


@pytest.fixture(scope="module")
def both():
    return played(TicTacToe(), 0), played(TicTacToe(), BELOW)


def test_a_resigned_game_is_the_beginning_of_the_game_that_is_played_on(both):
    (whole, _), (short, (resigned, *_)) = both
    ended = 0
    for game, full in zip(short, whole, strict=True):
        record, plies, moves = game.games[0], len(game.positions), len(game.moves)
        assert game.positions.tobytes() == full.positions[:plies].tobytes()
        assert game.moves.tobytes() == full.moves[:moves].tobytes()
        if record["end"] == RESIGNED:
            ended += 1
            assert losers(game)[-2:] == [1 - record["winner"]] * 2
        else:
            assert game.games.tobytes() == full.games.tobytes()
    assert 30 < ended <= resigned


def test_a_tenth_of_the_games_goes_on_and_counts_the_resignations_that_were_wrong(both):
    (_, never), (short, (resigned, tested, false)) = both
    would, wrong = 0, 0
    for game in short:
        if game.games["end"][0] == BY_RULE:
            two = [a for a, b in itertools.pairwise(losers(game)[:-1]) if a == b != -1]
            would += bool(two)
            wrong += bool(two) and game.games["winner"][0] != 1 - two[0]
    assert never == [0, 0, 0]
    assert (tested, false) == (would, wrong)
    assert 0 < false < tested
    assert 0.04 < tested / (tested + resigned) < 0.16


def test_a_resigned_game_is_valid_and_lost_for_the_player_who_resigned(both):
    _, (short, _) = both
    games = Games.concatenate([game for game in short if game.games["end"][0] == RESIGNED])
    assert find_valid(games, 9)[1] is None
    assert find_disagreement(games, TicTacToe()) is None
    winner = np.repeat(games.games["winner"], games.games["positions"])
    wdl = value_targets(games.games, games.positions, 0.0, TrainerSettings().td_lambda)
    open_ones = (games.positions["search"] > 0) & (games.positions["proven"] == 2)
    assert (wdl[open_ones].argmax(axis=1) == np.where(winner == games.positions["to_play"], 0, 2)[open_ones]).all()


def test_plain_rules_resign_in_the_same_games(both):
    _, (short, _) = both
    plain, _ = played(Plain(TicTacToe()), BELOW, count=30)
    assert RESIGNED in [game.games["end"][0] for game in plain]
    assert [bytes_of(game)[:2] for game in plain] == [bytes_of(game)[:2] for game in short[:30]]


def test_nobody_resigns_before_there_is_a_model():
    found, counts = played(TicTacToe(), BELOW, fence=0, count=50)
    assert counts == [0, 0, 0]
    assert {int(game.games["end"][0]) for game in found} == {BY_RULE}


@pytest.mark.slow
def test_a_worker_reports_its_resignations(tmp_path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.resign_below=0.49", "selfplay.seal_positions=30")
    add_model(run)
    with playing(run, incarnation="00000001") as until:
        until(lambda: fields_of(run.workers / "w0.00000001.json").get("resigned_games", 0) > 20)
    beat, games = fields_of(run.workers / "w0.00000001.json"), games_of(run)
    assert beat["resigned_games"] == (games.games["end"] == RESIGNED).sum()
    assert beat["false_resignations"] <= beat["tested_resignations"]
