"""What is learned of a small Connect Four, measured against perfect play; test_loop.py has the proof of the demo."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.strength.exams import Question
from benchmarks.strength.score import choices
from benchmarks.strength.solver import Solver
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.random_game import random_game
from plyzero.run.directory import create_run
from plyzero.settings import SearchSettings
from tests.helpers.learning import learn


def exam_of_random_games(game: GameSpec, *, count: int) -> list[Question]:
    """Return decisive positions, one of each game of random moves, no two alike."""
    solver, rng, found = Solver(game.start), np.random.default_rng(1), {}
    while len(found) < count:
        played = random_game(game.start, rng)
        ply = int(rng.integers(len(played.moves)))
        position = played.positions[ply]
        values = solver.move_values(position)
        if len(set(values.values())) > 1:
            found[position.key()] = Question.of(played.moves[:ply], position, values)
    return list(found.values())


def share_of_best_moves(player, exam: list[Question]) -> float:
    return float(np.mean([action in each.best for action, each in zip(choices(player, exam), exam, strict=True)]))


OPTIONS = (
    "network.blocks=2",
    "selfplay.simulations=32",
    "selfplay.fast_simulations=8",
    "trainer.batch_size=64",
    "trainer.learning_rate=0.003",
    "trainer.publish_seconds=0",
)


@pytest.mark.slow
def test_connect_four_on_a_small_board_is_learned_against_its_solved_table(tmp_path: Path):
    game = load_game("connect-four(rows=4, columns=4)")
    exam = exam_of_random_games(game, count=300)
    by_chance = share_of_best_moves(RandomPlayer(np.random.default_rng(0)), exam)
    network = learn(create_run(tmp_path / "r", game, options=OPTIONS), models=10, full=1000)
    raw, searching = (
        share_of_best_moves(Bot("bot", game, network, simulations=n, settings=SearchSettings()), exam) for n in (0, 64)
    )
    print(by_chance, raw, searching)
    assert by_chance < 0.45
    assert raw > 0.7
    assert searching > 0.93


@pytest.mark.slow
def test_a_small_kind_of_chess_is_learned_from_random_set_ups(tmp_path: Path):
    game = load_game("tests.helpers.setups:ShuffledRanks")
    network = learn(create_run(tmp_path / "r", game, options=OPTIONS), models=6, full=1000)
    bot = Bot("bot", game, network, simulations=64, settings=SearchSettings())
    played: list[PlayedGame] = []
    rng = np.random.default_rng(0)
    result = play_match(bot, RandomPlayer(rng), game.start, games=80, rng=rng, on_game=played.append)
    assert len({each.moves[0] for each in played}) > 30
    assert result.score > 0.9
