"""Exact ends: what alpha-beta proves is true, and its line leads there."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.strength.exams import after, every_position, read_exam
from benchmarks.strength.solver import Solver
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.random_game import random_game
from plyzero.search.evaluators import Uniform
from plyzero.search.slots import search
from plyzero.search.solver import with_exact_end
from plyzero.search.tree import PROVEN_DRAW, UNPROVEN
from plyzero.settings import SearchSettings

EXAMS = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "strength"


def exact(position, *, nodes, simulations=2):
    (result,) = search([position], Uniform(position.num_actions), simulations=simulations)
    return with_exact_end(position, result, nodes=nodes)


def check_line(position, line, value):
    """Check that a principal variation ends the game with `value` for the player to move in `position`."""
    outcome = after(position, line).outcome()
    assert outcome is not None
    assert outcome.value(position.to_play) == value


@pytest.mark.parametrize("rows", [3, 4])
def test_all_values_of_a_small_game_are_those_of_exhaustive_search(rows):
    start = load_game("tic-tac-toe" if rows == 3 else "connect-four(rows=4, columns=4)").start
    solver, rng = Solver(start), np.random.default_rng(0)
    if rows == 3:
        positions = [each.position for each in every_position(load_game("tic-tac-toe"))][::7]
    else:
        games = [random_game(start, rng).positions[:-1] for _ in range(60)]
        positions = [game[int(rng.integers(len(game)))] for game in games]
    for position in positions:
        found, values = exact(position, nodes=10_000_000), solver.move_values(position)
        assert (found.proven, found.value) == (max(values.values()),) * 2
        assert found.draw == (found.proven == PROVEN_DRAW)
        assert values[found.best_action()] == found.proven
        for action, q, line in zip(found.actions.tolist(), found.q, found.principal_variations, strict=True):
            if found.proven != 1:
                assert q == values[action]
            if q == found.proven and len(line) > 1:
                check_line(position, line, values[action])


@pytest.mark.parametrize(
    ("name", "exam", "least"), [("connect-four", "connect-four-dev.txt", 90), ("othello(size=6)", "othello-6x6-dev.txt", 150)]
)
def test_nothing_is_proven_that_is_not_so(name, exam, least):
    questions = read_exam(EXAMS / exam, load_game(name))[::5]
    proven = 0
    for question in questions:
        found = exact(question.position, nodes=1_000_000)
        if found.proven != UNPROVEN:
            proven += 1
            assert found.proven == question.value
            assert found.best_action() in question.best
    assert proven >= least


def test_a_player_who_moves_twice_is_understood():
    """Othello: the other player passes."""
    game = load_game("othello(size=4)")
    solver, rng, twice = Solver(game.start), np.random.default_rng(1), 0
    for _ in range(40):
        positions = random_game(game.start, rng).positions
        for position, following in zip(positions, positions[1:], strict=False):
            if following.to_play == position.to_play and following.outcome() is None:
                twice += 1
                assert exact(position, nodes=1_000_000).proven == solver.value(position)
    assert twice > 5


def test_a_small_budget_changes_only_what_is_proven():
    start = load_game("connect-four").start
    (plain,) = search([start], Uniform(7), simulations=20)
    found = with_exact_end(start, plain, nodes=20_000)
    assert found.proven == UNPROVEN
    assert np.array_equal(found.q, plain.q)
    (raw,) = search([start], Uniform(7), simulations=0)
    assert with_exact_end(start, raw, nodes=10**7) is raw


@pytest.mark.parametrize("name", ["pig", "examples.dots_and_boxes:DotsAndBoxes"])
def test_games_with_dice_or_in_plain_python_are_left_to_the_search(name):
    game = load_game(name)
    (plain,) = search([game.start], Uniform(game.start.num_actions), simulations=4)
    assert with_exact_end(game.start, plain, nodes=1000) is plain


def test_bots_play_exact_ends_and_pure_mcts_is_as_it_was():
    game = load_game("connect-four")
    question = next(each for each in read_exam(EXAMS / "connect-four-dev.txt", game) if each.plies > 24)
    bot = Bot("bot", game, Uniform(7), simulations=4)
    assert bot.search([question.position])[0].proven == question.value
    without = Bot("bot", game, Uniform(7), simulations=4, settings=SearchSettings(solver_nodes=0))
    assert without.search([question.position])[0].proven == UNPROVEN
    assert find_player("mcts:4", game, np.random.default_rng(0)).settings.solver_nodes == 0
