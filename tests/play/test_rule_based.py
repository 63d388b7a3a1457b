"""Players by rules alone, against what is known of small games."""

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.play.match import play_match
from plyzero.play.player import RandomPlayer
from plyzero.play.players import find_player
from plyzero.play.rule_based import AlphaBeta, Greedy
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import play_named
from plyzero.rules.random_game import random_game
from tests.helpers.dice import Race, decisions
from tests.helpers.toys import after_move

TIC_TAC_TOE = load_game("tic-tac-toe")


def made(agent, seed: int = 0):
    agent.rng = np.random.default_rng(seed)
    return agent


def after(moves: str, game: str = "tic-tac-toe"):
    return play_named(load_game(game).start, moves.split())[0][-1]


@pytest.mark.parametrize("agent", [Greedy(), AlphaBeta(depth=2), AlphaBeta(depth=3)])
def test_a_player_wins_if_it_can_and_blocks_if_it_must(agent):
    for moves, chosen in (("a1 b1 a2 b2", "a3"), ("a1 b1 c3 b2", "b3")):  # b3 would win for the other player
        position = after(moves)
        assert {position.action_name(made(agent, seed).choose(position)) for seed in range(20)} == {chosen}


def test_greedy_chooses_each_of_the_best_moves():
    position = after("a1 b1")
    assert {made(Greedy(), seed).choose(position) for seed in range(100)} == set(position.legal_actions())


def test_a_complete_search_never_loses_tic_tac_toe_and_beats_random():
    rng = np.random.default_rng(0)
    perfect, greedy = (find_player(name, TIC_TAC_TOE, rng) for name in ("alphabeta:9", "greedy"))
    result = play_match(perfect, RandomPlayer(rng), TIC_TAC_TOE.start, games=18, rng=rng, opening_plies=1)
    assert result.losses == 0
    assert result.wins > 9
    assert play_match(perfect, greedy, TIC_TAC_TOE.start, games=18, rng=rng, opening_plies=1).losses == 0
    assert play_match(greedy, RandomPlayer(rng), TIC_TAC_TOE.start, games=100, rng=rng).score > 0.7


def minimax(position, depth: int, player: int, plies: int = 0) -> float:
    """Return what alpha-beta search finds, without cutting anything off."""
    outcome = position.outcome()
    if outcome is not None:
        return outcome.value(player) * (1 - 1e-3 * plies)
    if depth == 0:
        return 0.0
    values = [minimax(position.play(action), depth - 1, player, plies + 1) for action in position.legal_actions()]
    return max(values) if position.to_play == player else min(values)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("game", ["tic-tac-toe", "othello(size=6)"])
def test_cutting_off_changes_no_choice(game: str, depth: int):
    for number in range(6):
        for position in random_game(load_game(game).start, np.random.default_rng([depth, number])).positions[:6]:
            if position.outcome() is not None:
                break
            values = {a: minimax(position.play(a), depth - 1, position.to_play, 1) for a in position.legal_actions()}
            best = {action for action, value in values.items() if value == max(values.values())}
            for seed in range(4):
                assert made(AlphaBeta(depth), seed).choose(position) in best


def test_with_dice_the_mean_over_the_rolls_counts():
    memo: dict = {}
    for position in decisions(Race())[::5]:
        values = [after_move(position, action, memo) for action in position.legal_actions()]
        chosen = made(AlphaBeta(depth=14)).choose(position)
        assert values[chosen] >= max(values) - 0.02  # a win counts less for each ply that it takes


@pytest.mark.parametrize("depth", ["", ":", ":x", ":0", ":65", ":-1"])
def test_a_depth_that_is_none_is_one_sentence(depth: str):
    with pytest.raises(UserError, match=r"expected (alphabeta:DEPTH|a depth from 1 to 64)|does not exist"):
        find_player(f"alphabeta{depth}", TIC_TAC_TOE, np.random.default_rng(0))
