"""Play Connect Four against the perfect player, from the empty board and from positions that are drawn.

pip install bitbully  # the solver of the perfect player (AGPL-3.0), only for benchmarks
python -m benchmarks.strength.perfect MODEL.onnx --simulations 800 --exam benchmarks/strength/connect-four-dev.txt
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.perfect_player import Perfect
from benchmarks.strength.exams import read_exam
from plyzero.play.agents import AgentPlayer
from plyzero.play.player import Player
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game


def main() -> None:
    """Print a line for each of the two tasks: what the player achieves, and in how many different games."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player", help="as in plyzero match")
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--games", type=int, default=100, help="of each task")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exam", type=Path, required=True, help="the drawn positions are among these")
    given = parser.parse_args()
    game, rng = load_game("connect-four"), np.random.default_rng(given.seed)
    player = find_player(given.player, game, rng, simulations=given.simulations)
    agent = Perfect()
    agent.rng = rng
    perfect = AgentPlayer("perfect", agent)
    drawn = [each.position for each in read_exam(given.exam, game) if each.value == 0]
    chosen = rng.choice(len(drawn), given.games, replace=len(drawn) < given.games)
    tasks = {
        "first, from the empty board, which is won": ([game.start] * given.games, True),
        "second, from drawn positions": ([drawn[number] for number in chosen], False),
    }
    for task, (positions, begins) in tasks.items():
        results, lines = play_all(positions, player, perfect, begins=begins)
        print(
            f"{player.name}, {given.simulations} simulations, {task}: {results[1]} won, {results[0]} drawn, "
            f"{results[-1]} lost of {given.games}; {lines} different games"
        )


def play_all(positions: Sequence[Game], player: Player, other: Player, *, begins: bool) -> tuple[Counter[int], int]:
    """Play a game from each position, in which `player` moves first if it `begins`.

    Return result for `player`, 1, 0 or -1, -> number of games, and the number of games that differ in their moves.
    """
    reached = list(positions)
    sides = [position.to_play if begins else 1 - position.to_play for position in positions]
    lines: list[list[int]] = [[] for _ in positions]
    while going := [i for i, position in enumerate(reached) if position.outcome() is None]:
        for mover in (player, other):
            mine = [i for i in going if (reached[i].to_play == sides[i]) == (mover is player)]
            for i, action in zip(mine, mover.choose_all([reached[i] for i in mine]) if mine else [], strict=True):
                lines[i].append(action)
                reached[i] = reached[i].play(action)
            going = [i for i in going if reached[i].outcome() is None]
        print(f"\r{len(positions) - len(going)} of {len(positions)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    results = Counter(
        int(end.value(side)) for each, side in zip(reached, sides, strict=True) if (end := each.outcome())
    )
    return results, len({(start.key(), *line) for start, line in zip(positions, lines, strict=True)})


if __name__ == "__main__":
    main()
