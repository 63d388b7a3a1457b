"""The review of a game: known mistakes are found and named, luck is none, and accuracy follows from what was lost."""

import math

import pytest

from plyzero import Bot
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import play_named
from plyzero.web.reviews import review
from tests.helpers.toys import Constant, Exact


def reviewed(game: str, moves: str, evaluate, simulations: int = 4096):  # enough for proofs
    spec = load_game(game)
    reports = []
    positions, actions = play_named(spec.start, moves.split())
    found = review(Bot("exact", spec, evaluate, simulations=simulations), positions, actions)(reports.append)
    return found, reports


def test_the_losing_move_is_a_blunder_and_the_better_one_is_named():
    found, reports = reviewed("tic-tac-toe", "b2 a2 c3 a1 b3 c1", Exact(9))  # an edge loses against the centre
    lost = {ply: each["lost"] for ply, each in enumerate(found["plies"]) if each.get("lost")}
    assert found["plies"][1]["mistake"] == "blunder"
    assert found["plies"][1]["by"] == 1
    assert found["plies"][1]["best"] in ("a1", "c1", "a3", "c3")
    assert lost[1] == pytest.approx(0.5, abs=0.05)
    assert found["plies"][0]["mistake"] is None
    assert [each["winrate"] for each in found["plies"][:3]] == pytest.approx([0.5, 0.5, 1.0], abs=0.05)
    assert reports == [{"done_of": [0, 7]}]


def test_a_game_without_losses_is_fully_accurate_and_a_blunder_costs():
    perfect, _ = reviewed("tic-tac-toe", "b2 a1", Exact(9))
    assert perfect["accuracy"] == [100.0, 100.0]
    poor, _ = reviewed("tic-tac-toe", "b2 a2", Exact(9))
    assert poor["accuracy"][0] == 100.0
    assert poor["accuracy"][1] == pytest.approx(103.1668 * math.exp(-4.354 * 0.5) - 3.1669, abs=1.5)
    nothing, _ = reviewed("tic-tac-toe", "", Exact(9))
    assert nothing["accuracy"] == [None, None]


def test_a_roll_is_nobodys_mistake():
    found, _ = reviewed(
        "backgammon", "6-1 13/7 8/7 6-6", Constant(load_game("backgammon").start.num_actions, 0.5, 0, 0.5)
    )
    assert [each.get("by") for each in found["plies"]] == [None, 0, 0, None, None]
    assert found["plies"][0]["winrate"] is None
    assert found["plies"][3]["winrate"] is None
    assert found["plies"][1]["winrate"] is not None
