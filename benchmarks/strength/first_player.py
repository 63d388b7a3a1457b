"""A player that moves first, from each first move that is known to win: scores with their 95 % intervals.

python -m benchmarks.strength.first_player "hex(size=9)" plyzero/play/bots/hex.onnx --moves e5 --opponent mcts:10000

After the first move comes each reply that is no swap, or as many of them, drawn at random, as there are games.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from benchmarks.strength.perfect import play_all
from plyzero.play.players import find_player
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import load_game


def main() -> None:
    """Print a line for each first move, and one for all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("player", metavar="PLAYER", help="a run or an ONNX file")
    parser.add_argument("--moves", nargs="+", required=True, metavar="MOVE", help="first moves that win")
    parser.add_argument("--opponent", default="mcts:10000", metavar="PLAYER")
    parser.add_argument("--simulations", type=int, default=256)
    parser.add_argument("--games", type=int, default=40, help="of each first move")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    game, rng = load_game(given.game), np.random.default_rng(given.seed)
    player = find_player(given.player, game, rng, simulations=given.simulations)
    opponent = find_player(given.opponent, game, rng)
    total = Counter[int]()
    for move in given.moves:
        start = game.start.play(game.start.parse_action(move))
        replies = [action for action in start.legal_actions() if start.action_name(action) != "swap"]
        positions = [start.play(action) for action in rng.permutation(replies)[: given.games].tolist()]
        results, _ = play_all(positions, player, opponent, begins=True)
        print(f"{move}: {_result(results)}", flush=True)
        total += results
    result = _result(total)
    print(f"{player.name} against {opponent.name}, {result.games} games, lost {result.losses}: {result.short}")


def _result(results: Counter[int]) -> MatchResult:
    return MatchResult(wins=results[1], draws=results[0], losses=results[-1])


if __name__ == "__main__":
    main()
