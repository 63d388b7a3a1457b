"""The search of the page, in JavaScript: the simulations are those of Python, and what it proves is true."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import rolled
from plyzero.rules.game import Game
from plyzero.search.evaluators import Uniform
from plyzero.search.slots import SearchResult
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN, UNPROVEN
from tests.helpers.node_search import HASHED, UNIFORM, search_in_node
from tests.helpers.searches import searched
from tests.helpers.toys import Hashed, after

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled_for_node")]  # rules take seconds to compile

RACE = "tests.helpers.dice:Race"  # rolls follow rolls, a player moves twice, and positions are proven
SURE = "tests.helpers.dice:SureThing"
POINTS = "tests.helpers.toys:CompiledHarvest"
GAMES = ("tic-tac-toe", "connect-four", "go(size=5)", "pig", "backgammon", RACE, SURE, POINTS)
NAMES = {UNPROVEN: None, PROVEN_WIN: "win", PROVEN_DRAW: "draw", PROVEN_LOSS: "loss"}
SIMULATIONS = 150


def found_in_node(
    game: GameSpec, positions: Sequence[Game], evaluator: Mapping[str, str] = UNIFORM, **options: Any
) -> list[dict[str, Any]]:
    searches = [{"state": position.state, "simulations": SIMULATIONS, **options} for position in positions]
    return search_in_node(game, searches, evaluator)[0]


def found_in_python(position: Game, evaluate: Any, leaves: int, all_rolls: bool) -> SearchResult:
    """Return the result of PUCT without noise and without alpha-beta; with room for all nodes, chance nodes too."""
    slots = searched(
        position, evaluate, SIMULATIONS, "puct", capacity=20 * SIMULATIONS, leaves=leaves, all_rolls=all_rolls
    )
    return slots.result_with_lines(0)


def random_positions(start: Game, count: int) -> list[Game]:
    """Return positions of random games in which a player moves: in turn one of the first 12, and one of the last 4."""
    rng, positions = np.random.default_rng(1), list[Game]()
    while len(positions) < count:
        game = [rolled(start, rng)]
        while game[-1].outcome() is None:
            game.append(rolled(game[-1].play_unchecked(int(rng.choice(game[-1].legal_actions()))), rng))
        some = game[-5:-1] if len(positions) % 2 else game[: min(12, len(game) - 1)]
        positions.append(some[int(rng.integers(len(some)))])
    return positions


def check_equal(page: dict[str, Any], python: SearchResult) -> None:
    """Check that both searches have found the same: exactly, where nothing but the order of a sum can differ."""
    moves = page["moves"]
    assert [move["action"] for move in moves] == python.actions.tolist()
    assert [move["visits"] for move in moves] == python.visits.tolist()
    assert [move["plies"] or 0 for move in moves] == python.plies.tolist()
    assert [tuple(move["line"]) for move in moves] == list(python.principal_variations)
    assert page["best"] == python.best_action()
    assert page["proven"] == NAMES[python.proven]
    assert page["plies"] == python.plies_to_end
    assert page["simulations"] == python.simulations
    close = {"abs": 2e-6, "nan_ok": True}  # Python returns single precision, and no mean of 1
    assert [np.nan if move["q"] is None else move["q"] for move in moves] == pytest.approx(python.q, **close)
    assert [move["prior"] for move in moves] == pytest.approx(python.prior, **close)
    assert [move["policy"] for move in moves] == pytest.approx(python.policy, **close)
    assert (page["value"], page["draw"]) == pytest.approx((python.value, python.draw), **close)
    assert page["networkValue"] == pytest.approx(python.network_value, **close)


@pytest.mark.parametrize("leaves", [1, 8])
@pytest.mark.parametrize("kind", ["uniform", "hashed"])
@pytest.mark.parametrize("name", GAMES)
def test_the_search_of_the_page_makes_the_simulations_of_python(name: str, kind: str, leaves: int):
    game = load_game(name)
    evaluator, evaluate = (UNIFORM, Uniform) if kind == "uniform" else (HASHED, Hashed)
    positions = random_positions(game.start, 8)
    for all_rolls in (False, True) if game.start.num_chances else (False,):
        found = found_in_node(game, positions, evaluator, leaves=leaves, allRolls=all_rolls)
        for position, page in zip(positions, found, strict=True):
            check_equal(page, found_in_python(position, evaluate(game.start.num_actions), leaves, all_rolls))


def test_other_constants_are_those_of_python():
    game = load_game("connect-four")
    positions = random_positions(game.start, 4)
    found = found_in_node(game, positions, HASHED, cPuct=3.0, fpuReduction=0.7)
    for position, page in zip(positions, found, strict=True):
        slots = searched(position, Hashed(7), SIMULATIONS, "puct", c_puct=3.0, fpu_reduction=0.7)
        assert [move["visits"] for move in page["moves"]] == slots.result(0).visits.tolist()


def test_without_simulations_the_policy_is_the_prior():
    game = load_game("connect-four")
    (found,) = found_in_node(game, [game.start], HASHED, simulations=0)
    priors = [move["prior"] for move in found["moves"]]
    assert [move["policy"] for move in found["moves"]] == pytest.approx(priors)
    assert found["best"] == int(np.argmax(priors))
    assert found["value"] == found["networkValue"]


@pytest.mark.parametrize("player", [0, 1])
def test_at_tic_tac_toe_it_never_loses_whatever_the_reply(player: int):
    game = load_game("tic-tac-toe")
    positions, ends = [game.start], 0
    while positions:
        mine = [each for each in positions if each.to_play == player]
        chosen = [found["best"] for found in found_in_node(game, mine, simulations=2000, leaves=8)] if mine else []
        after_mine = [each.play(action) for each, action in zip(mine, chosen, strict=True)]
        theirs = [each for each in positions if each.to_play != player]
        positions = after_mine + [each.play(action) for each in theirs for action in each.legal_actions()]
        for outcome in (each.outcome() for each in positions):
            ends += outcome is not None
            assert outcome is None or outcome.winner in (None, player)
        positions = [each for each in positions if each.outcome() is None]
    assert ends > 20


def test_forced_wins_at_connect_four_are_proven_with_their_distance():
    game = load_game("connect-four")
    in_one, in_three, lost = (after(game.start, moves) for moves in ("1 2 1 2 1 2", "4 4 3 3", "4 4 3 3 5"))
    one, three, two = found_in_node(game, [in_one, in_three, lost], simulations=3000, leaves=8)
    assert (one["proven"], one["plies"], one["best"]) == ("win", 1, 0)
    assert (three["proven"], three["plies"]) == ("win", 3)
    assert three["best"] in (1, 4)  # three in a row with both ends free
    assert (two["proven"], two["plies"]) == ("loss", 2)
    assert all(move["proven"] == "loss" for move in two["moves"])


def test_a_roll_is_no_ply_and_of_rolls_the_longest_counts():
    game = load_game(SURE)
    (first,) = found_in_node(game, [game.start])
    (second,) = found_in_node(game, [game.start], cPuct=100.0)  # so it proves the other die first
    assert (first["proven"], first["plies"], first["best"]) == ("win", 1, 0)
    assert (second["proven"], second["plies"], second["best"]) == ("win", 2, 1)


@pytest.mark.parametrize("all_rolls", [False, True])
def test_the_value_of_a_throw_is_its_expectation(all_rolls: bool):
    game = load_game("pig(goal=2)")  # all but a one wins, after a one the other player throws: p = 5/6 + (1 - p) / 6
    (found,) = found_in_node(game, [game.start], simulations=1000, allRolls=all_rolls)
    assert found["value"] == pytest.approx(2 * 6 / 7 - 1, abs=0.01)
    assert found["draw"] == pytest.approx(0, abs=0.01)
    assert found["proven"] is None


def test_a_network_that_returns_no_numbers_is_refused():
    game = load_game("tic-tac-toe")
    with pytest.raises(RuntimeError, match=r"The network returned numbers that are not finite"):
        found_in_node(game, [game.start], {"kind": "broken"})


def test_moves_that_end_the_game_have_its_points():
    game = load_game(POINTS)
    position = after(game.start, "0 1 2 0 0")  # 2 : 1, and the second player takes none, one or two
    (found,) = found_in_node(game, [position], cPuct=100.0, simulations=3)
    assert [move["points"] for move in found["moves"] if move["visits"]] == [-1, 0, 1]
    assert [move["proven"] for move in found["moves"]] == ["loss", "draw", "win"]


def test_a_batch_of_eight_needs_few_calls_and_evaluates_no_leaf_twice():
    game = load_game("connect-four")
    searches = [{"state": position.state, "simulations": 200} for position in random_positions(game.start, 20)]
    alone, usage_alone = search_in_node(game, [{**each, "leaves": 1} for each in searches], UNIFORM)
    together, usage = search_in_node(game, [{**each, "leaves": 8} for each in searches], UNIFORM)
    assert usage_alone["batches"] == usage_alone["evaluations"]
    assert usage["batches"] < usage["evaluations"] / 6
    visits = sum(sum(move["visits"] for move in found["moves"]) for found in together)
    assert usage["evaluations"] <= visits + len(together)
    same = [one["best"] == other["best"] for one, other in zip(alone, together, strict=True)]
    assert sum(same) >= 18
