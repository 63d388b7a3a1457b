"""The review of a game: known mistakes are found and named, luck is none, and accuracy follows from what was lost."""

import itertools
import math

import numpy as np
import pytest

from plyzero import Bot
from plyzero.kits.web.reviews import review
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import action_names, play_named
from plyzero.rules.random_game import random_game
from plyzero.settings import SearchSettings
from tests.helpers.toys import Constant, Exact


def reviewed(game: str, moves: str, evaluate, simulations: int = 4096):  # enough for proofs
    spec = load_game(game)
    reports = []
    positions, actions = play_named(spec.start, moves.split())
    bot = Bot("exact", spec, evaluate, simulations=simulations, settings=SearchSettings(solver_nodes=0))
    found = review(bot, positions, actions)(reports.append)
    return found, reports


def test_the_losing_move_is_a_blunder_and_the_better_one_is_named():
    found, reports = reviewed("tic-tac-toe", "b2 a2 c3 a1 b3 c1", Exact(9))  # an edge loses against the centre
    lost = {ply: each["lost"] for ply, each in enumerate(found["plies"]) if each.get("lost")}
    assert found["plies"][1]["mistake"] == "blunder"
    assert found["plies"][1]["by"] == 1
    assert found["plies"][1]["best"] in ("a1", "c1", "a3", "c3")
    assert found["plies"][1]["line"][0]["name"] == found["plies"][1]["best"]
    assert [each["by"] for each in found["plies"][1]["line"][:2]] == [1, 0]
    assert found["plies"][1]["answer"][0]["by"] == 0
    assert lost[1] == pytest.approx(0.5, abs=0.05)
    assert found["plies"][0]["mistake"] is None
    assert [each["winrate"] for each in found["plies"][:3]] == pytest.approx([0.5, 0.5, 1.0], abs=0.05)
    made = [each["done_of"][0] for each in reports]
    assert made[0] == 0
    assert made == sorted(made)
    assert all(each["done_of"][1] == 7 * 4096 for each in reports)


def test_a_loss_that_is_seen_only_later_is_blamed_on_the_move_that_made_it():
    game, weak = "b2 a2 a1 c3 b1 b3 c1", Constant(9, 0, 1, 0)  # a2 loses; 32 simulations see it two moves later
    found, _ = reviewed("tic-tac-toe", game, weak, simulations=32)
    before, _ = reviewed("tic-tac-toe", "b2 a2", weak, simulations=32)
    assert before["plies"][2]["winrate"] == pytest.approx(0.5, abs=0.05)
    assert [each["winrate"] for each in found["plies"]] == pytest.approx([0.5, 0.5, 1, 1, 1, 1, 1, 1], abs=0.05)
    assert [each.get("mistake") for each in found["plies"]] == [None, "blunder", *[None] * 6]
    assert found["plies"][1]["best"] != "a2"
    assert found["accuracy"][1] < 75


def test_the_score_falls_only_where_a_move_has_lost_it():
    for seed in range(8):
        game = random_game(load_game("connect-four").start, np.random.default_rng(seed))
        names = action_names(game.positions[0], tuple(game.moves))
        found, _ = reviewed("connect-four", " ".join(names), Constant(7, 0.4, 0.2, 0.4), simulations=24)
        for ply, (now, then) in enumerate(itertools.pairwise(found["plies"])):
            fallen = (now["winrate"] - then["winrate"]) * (1 if now["by"] == 0 else -1)
            assert fallen > -1e-9, f"seed {seed}: move {ply + 1} gains"
            assert fallen < 0.1 or now["mistake"], f"seed {seed}: move {ply + 1} is not blamed"


@pytest.mark.parametrize("number", [4, 5])
def test_a_forced_move_loses_nothing(number):
    spec = load_game(f"tests.helpers.toys:Relay(n={number})")
    positions = [spec.start]
    for _ in range(number):
        positions.append(positions[-1].play(0))
    found = review(Bot("weak", spec, Constant(1, 0, 1, 0), simulations=1), positions, [0] * number)(lambda event: None)
    assert [each["winrate"] for each in found["plies"]] == [float(number % 2 == 0)] * (number + 1)
    assert found["accuracy"] == [100.0, 100.0]


def test_a_game_without_losses_is_fully_accurate_and_a_blunder_costs():
    perfect, _ = reviewed("tic-tac-toe", "b2 a1", Exact(9))
    assert perfect["accuracy"] == [100.0, 100.0]
    poor, _ = reviewed("tic-tac-toe", "b2 a2", Exact(9))
    assert poor["accuracy"][0] == 100.0
    assert poor["accuracy"][1] == pytest.approx(103.1668 * math.exp(-4.354 * 0.5) - 3.1669, abs=1.5)
    nothing, _ = reviewed("tic-tac-toe", "", Exact(9))
    assert nothing["accuracy"] == [None, None]


def test_a_roll_is_nobodys_mistake():
    even = Constant(load_game("backgammon").start.num_actions, 0.5, 0, 0.5)
    found, _ = reviewed("backgammon", "6-1 13/7 8/7 6-6", even)
    assert [each.get("by") for each in found["plies"]] == [None, 0, 0, None, None]
    assert [each["winrate"] is None for each in found["plies"][:4]] == [True, False, False, True]


def test_what_was_rolled_says_nothing_of_the_move_before_the_roll():
    race = "tests.helpers.dice:Race"
    found, _ = reviewed(race, "one throw four step throw three", Constant(2, 0.5, 0, 0.5))
    assert found["plies"][-1]["winrate"] == 1
    assert found["plies"][5]["winrate"] is None
    assert found["plies"][4]["winrate"] < 0.95  # the throw might have failed
