"""A player that moves first, from a first move that is known to win: score with its 95 % interval.

python -m benchmarks.strength.first_player "hex(size=9)" plyzero/play/bots/hex.onnx --moves e5 --opponent mcts:10000

After the first moves comes each reply that is no swap, or as many of them, drawn at random, as there are games.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.strength.perfect import play_all
from plyzero.play.players import find_player
from plyzero.play.ratings import MatchResult
from plyzero.rules.catalog import load_game


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("player", metavar="PLAYER", help="a run or an ONNX file")
    parser.add_argument("--moves", nargs="+", required=True, help="an odd number of moves")
    parser.add_argument("--opponent", default="mcts:10000", metavar="PLAYER")
    parser.add_argument("--simulations", type=int, default=256)
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    game, rng = load_game(given.game), np.random.default_rng(given.seed)
    player = find_player(given.player, game, rng, simulations=given.simulations)
    opponent = find_player(given.opponent, game, rng)
    start = game.start
    for name in given.moves:
        start = start.play(start.parse_action(name))
    replies = [action for action in start.legal_actions() if start.action_name(action) != "swap"]
    drawn = rng.permutation(replies)[: given.games].tolist()
    positions = [start.play(action) for action in drawn]
    results, distinct = play_all(positions, player, opponent, begins=True)
    result = MatchResult(*(results[value] for value in (1, 0, -1)), distinct=distinct)
    print(f"{player.name} against {opponent.name} after {' '.join(given.moves)}, {len(positions)} games: {result}")


if __name__ == "__main__":
    main()
