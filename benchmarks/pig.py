"""A bot at pig, without chance: its exact probability to win against hold at 20 and against the optimum.

python -m benchmarks.pig RUN --simulations 0 16 64

The bot's move in each position makes a table of rules; what two tables are worth against each other is computed, not
played. Games are played only to count how often each position is met.
"""

from __future__ import annotations

import argparse
import sys

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.games.pig import HOLD, ROLL, Pig
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.play.search_player import SearchPlayer
from plyzero.rules.catalog import load_game

Rule = NDArray[np.float64]
"""`[goal, goal, goal]`: HOLD, ROLL or BEST with own score i, the opponent's j, and k in this turn.

A number between HOLD = 0 and ROLL = 1 is the probability to roll."""

BEST = 2
"""The move that is more likely to win."""

PRECISION = 1e-6
"""Moves whose probabilities to win differ by less count as equal; of those the rules hold."""

GAMES = 20_000
"""Games from each side, in which it is counted how often positions are met."""

TOGETHER = 20_000
"""Positions that are searched together."""


def main() -> None:
    """Print a row for each number of simulations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", help="a run, an ONNX file, mcts:N or random")
    parser.add_argument("--simulations", type=int, nargs="+", default=[64], help="of a network; 0 = raw")
    parser.add_argument("--goal", type=int, default=100)
    parser.add_argument("--all-rolls", action="store_true", help="search.all_rolls for the player")
    given = parser.parse_args()

    game = load_game(f"pig(goal={given.goal})")
    optimum, hold = optimal(given.goal), hold_at(20, given.goal)
    print("probability to win as the first and the second player, and their mean; share of optimal moves")
    print(f"the optimum: {describe(optimum, hold, 'hold at 20')}")
    for simulations in given.simulations:
        search = {"all_rolls": True} if given.all_rolls else {}
        rng = np.random.default_rng(0)
        rule = rule_of(find_player(given.player, game, rng, simulations=simulations, search=search), given.goal)
        choice = has_choice(given.goal)
        optimal_share = (rule == optimum)[choice]
        agrees, weighted = optimal_share.mean(), np.average(optimal_share, weights=visits(rule, optimum)[choice])
        values = describe(rule, hold, "hold at 20"), describe(rule, optimum, "the optimum")
        moves = f"{agrees:.1%} optimal moves, {weighted:.1%} where each counts as often as it is met"
        print(f"{simulations} simulations: {'; '.join(values)}; {moves}")


@numba.njit
def visits(own: Rule, other: Rule) -> NDArray[np.float64]:
    """Return `[goal, goal, goal]`, how often the player of rule `own` meets each position in GAMES games each way."""
    np.random.seed(0)
    goal = len(own)
    met = np.zeros((goal, goal, goal))
    for game in range(2 * GAMES):
        scores = np.zeros(2, np.int64)
        turn = 0
        player = 0
        while scores[player] + turn < goal:
            i, j = scores[player], scores[1 - player]
            mine = player == game % 2
            met[i, j, turn] += mine
            roll = np.random.randint(1, 7)
            if turn > 0 and (own if mine else other)[i, j, turn] == HOLD:
                scores[player] += turn
                player, turn = 1 - player, 0
            elif roll == 1:
                player, turn = 1 - player, 0
            else:
                turn += roll
    return met


def describe(rule: Rule, opponent: Rule, name: str) -> str:
    """Return the probabilities to win in words."""
    first, second = duel(rule, opponent), 1 - duel(opponent, rule)
    return f"against {name} {first:.4f}, {second:.4f}, mean {(first + second) / 2:.4f}"


def against_optimum(player: SearchPlayer) -> float:
    """Return the player's probability to win against the optimum, the mean of both sides."""
    goal = 100
    rule, best = rule_of(player, goal), optimal(goal)
    return (duel(rule, best) + 1 - duel(best, rule)) / 2


def duel(first: Rule, second: Rule) -> float:
    """Return the probability that the player who begins wins, if both play by their rules."""
    return float(solve_pig(first, second)[0, 0, 0, 0])


def optimal(goal: int) -> Rule:
    """Return the rule that maximises the probability to win."""
    best = np.full((goal, goal, goal), BEST, float)
    p = solve_pig(best, best)[0]
    own, other, turn = np.indices(p.shape)
    held = 1 - p[other, np.minimum(own + turn, goal - 1), 0]
    return np.where((turn > 0) & (held > p - PRECISION), HOLD, ROLL).astype(float)


def hold_at(total: int, goal: int) -> Rule:
    """Return the rule to hold with `total` in a turn."""
    return np.where(np.indices((goal, goal, goal))[2] < total, ROLL, HOLD).astype(float)


@numba.njit
def solve_pig(first: Rule, second: Rule) -> NDArray[np.float64]:
    """Return `[2, goal, goal, goal]`, the probability that the player to move wins: the first player, or the second.

    This is equation 1 of Neller and Presser, "Optimal play of the dice game Pig" (2004), iterated.
    """
    goal = len(first)
    p = np.zeros((2, goal, goal, goal))
    change = 1.0
    while change > PRECISION / 1000:
        change = 0.0
        for i in range(goal - 1, -1, -1):
            for j in range(goal - 1, -1, -1):
                for k in range(goal - i - 1, -1, -1):
                    for player in range(2):
                        own, other = p[player], p[1 - player]
                        rolled = 1 - other[j, i, 0]
                        for r in range(2, 7):
                            rolled += own[i, j, k + r] if i + k + r < goal else 1.0
                        rolled /= 6
                        held = 1 - other[j, i + k, 0] if k else 0.0
                        move = (first if player == 0 else second)[i, j, k]
                        if move == BEST:
                            value = max(rolled, held)
                        else:
                            value = move * rolled + (1 - move) * held if k else rolled
                        change = max(change, abs(value - own[i, j, k]))
                        own[i, j, k] = value
    return p


def rule_of(player: Player, goal: int) -> Rule:
    """Return the rule by which `player` plays; one that samples its moves has probabilities."""
    rule = np.full((goal, goal, goal), ROLL, float)
    places = np.argwhere(has_choice(goal))
    for first in range(0, len(places), TOGETHER):
        part = places[first : first + TOGETHER]
        positions = [place(goal, *scores) for scores in part.tolist()]
        if isinstance(player, SearchPlayer):
            rule[tuple(part.T)] = [player.probabilities(result)[ROLL] for result in player.search(positions)]
        else:
            rule[tuple(part.T)] = player.choose_all(positions)
        print(f"\r{first + len(part):,} of {len(places):,} positions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rule


def has_choice(goal: int) -> NDArray[np.bool_]:
    """Return in which positions there is a choice: those with 2 or more in this turn, and the goal not reached."""
    own, _, turn = np.indices((goal, goal, goal))
    choice: NDArray[np.bool_] = (turn >= 2) & (own + turn < goal)
    return choice


def place(goal: int, own: int, other: int, turn: int) -> Pig:
    """Return the position in which player 0 has `own` points and `turn` more in this turn, and player 1 `other`."""
    pig = Pig(goal)
    pig.record["scores"], pig.record["turn"] = (own, other), turn
    return pig


if __name__ == "__main__":
    main()
