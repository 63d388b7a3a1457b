"""Exact ends: what alpha-beta proves is true, and its line leads there."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.strength.exams import after, read_exam
from benchmarks.strength.solver import Distances, Solver
from plyzero.play.bundled_bots import find_card
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.random_game import random_game
from plyzero.search.evaluators import Uniform
from plyzero.search.slots import search
from plyzero.search.solver import with_exact_end
from plyzero.search.tree import PROVEN_DRAW, UNPROVEN
from plyzero.settings import SearchSettings
from tests.helpers import toys

EXAMS = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "strength"


def exact(position, *, nodes, simulations=2):
    (result,) = search([position], Uniform(position.num_actions), simulations=simulations)
    return with_exact_end(position, result, nodes=nodes)


def check_exact(position, solver, *, shortest_line=2):
    """Check an exact result against exhaustive search."""
    found, values = exact(position, nodes=10_000_000), solver.move_values(position)
    assert (found.proven, found.value) == (max(values.values()),) * 2
    assert found.draw == (found.proven == PROVEN_DRAW)
    assert values[found.best_action()] == found.proven
    for action, q, line in zip(found.actions.tolist(), found.q, found.principal_variations, strict=True):
        if found.proven != 1:
            assert q == values[action]
        if q == found.proven and len(line) >= shortest_line:
            assert after(position, line).outcome().value(position.to_play) == values[action]


def check_distances(position, solver):
    """Check distances to the end against exhaustive search; return whether the position has one."""
    found, distances = exact(position, nodes=10_000_000), solver.moves(position, 20)
    if found.proven not in (-1, 1):
        assert found.plies_to_end is None
        return False
    distance = solver.distance(position, 20)
    assert found.plies_to_end == abs(distance)
    assert distances[found.best_action()] == distance
    for action, plies in zip(found.actions.tolist(), found.plies.tolist(), strict=True):
        assert plies == abs(distances[action]) or (found.proven == 1 and action != found.best_action())
    return True


@pytest.mark.parametrize("name", ["tic-tac-toe", "connect-four(rows=4, columns=4)"])
def test_the_fastest_win_and_the_longest_resistance_are_those_of_exhaustive_search(name):
    start, rng, decided = load_game(name).start, np.random.default_rng(1), 0
    solver = Distances(start)
    for _ in range(60):
        positions = random_game(start, rng).positions[:-1]
        decided += check_distances(positions[rng.integers(len(positions))], solver)
    assert decided > 10


def test_what_a_tree_has_proven_is_won_faster_by_a_few_positions():
    position = toys.after(load_game("connect-four").start, "4 4 3 3")  # 5 wins in 3
    (slow,) = search([position], Uniform(7), simulations=2)
    slow = replace(slow, proven=1, q=np.float32([0, 0, 0, 0, 0, 0, 1]), plies=np.array([0] * 6 + [9]))
    assert slow.best_action() == 6
    assert with_exact_end(position, slow, nodes=0) is slow
    found = with_exact_end(position, slow, nodes=100)
    assert found.plies_to_end == 3
    assert position.action_name(found.best_action()) in ("2", "5")
    points = replace(slow, settings=SearchSettings(score_weight=0.5))  # count more than haste
    assert with_exact_end(position, points, nodes=100) is points


@pytest.mark.parametrize("name", ["tic-tac-toe", "connect-four(rows=4, columns=4)"])
def test_all_values_of_a_small_game_are_those_of_exhaustive_search(name):
    start, rng = load_game(name).start, np.random.default_rng(0)
    solver = Solver(start)
    for _ in range(120):
        positions = random_game(start, rng).positions[:-1]
        check_exact(positions[rng.integers(len(positions))], solver)


@pytest.mark.parametrize(
    ("name", "exam", "least"),
    [("connect-four", "connect-four-dev.txt", 20), ("othello(size=6)", "othello-6x6-dev.txt", 50)],
)
def test_nothing_is_proven_that_is_not_so(name, exam, least):
    questions = read_exam(EXAMS / exam, load_game(name))[::16]
    proven = 0
    for question in questions:
        found = exact(question.position, nodes=1_000_000)
        if found.proven != UNPROVEN:
            proven += 1
            assert found.proven == question.value
            assert found.best_action() in question.best
    assert proven >= least


class Again(CompiledGame, version=1):
    """Take 1 to 3 of the matches; who takes 2 moves again, and who takes the last one wins, or draws by taking 3."""

    State = np.dtype([("left", "i1"), ("result", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 3, (1, 1, 1), 30

    def start(s):
        s["left"], s["result"] = 8, ONGOING

    def legal(s, mask):
        mask[: s["left"]] = True

    def play(s, action):
        s["left"] -= action + 1
        if s["left"] == 0:
            s["result"] = DRAW if action == 2 else s["to_play"]
        if action != 1:
            s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return s["result"]

    def observe(s, planes):
        planes[0, 0, 0] = s["left"]


def test_a_player_who_moves_twice_is_understood():
    solver, position = Solver(Again()), Again()
    while position.outcome() is None:
        check_exact(position, solver, shortest_line=1)
        check_distances(position, Distances(position))
        position = position.play(1 if position.record["left"] > 1 else 0)


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
    ends = [each for each in read_exam(EXAMS / "connect-four-dev.txt", game) if each.plies > 26][:20]
    bot = Bot("bot", game, Uniform(7), simulations=4)
    without = Bot("bot", game, Uniform(7), simulations=4, settings=SearchSettings(solver_nodes=0))
    positions = [each.position for each in ends]
    assert [found.proven for found in bot.search(positions)] == [each.value for each in ends]
    assert UNPROVEN in {found.proven for found in without.search(positions)}
    assert find_player("mcts:4", game, np.random.default_rng(0)).settings.solver_nodes == 0


def test_of_the_levels_of_a_bundled_bot_only_the_last_plays_exact_ends():
    game = load_game("tic-tac-toe")  # where all ends are near: every level would be perfect
    weak, strong = Bot.at_level(game, 1), Bot.at_level(game, len(find_card(game).levels))
    assert (weak.settings.solver_nodes, strong.settings.solver_nodes) == (0, 1_000_000)
