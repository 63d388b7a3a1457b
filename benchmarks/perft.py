"""Perft: the number of sequences of moves from a position of a compiled game, and how many its rules play a second.

python -m benchmarks.perft chess 5
python -m benchmarks.perft "chess(chess960=True)" 5 --position "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
"""

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.rules.catalog import load_game
from plyzero.rules.chance import without_setup
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("depth", type=int)
    parser.add_argument("--position", metavar="TEXT", default="", help="count from this position, as the game reads it")
    parser.add_argument("--counted", action="store_true", help="only count the last moves, do not also play them")
    given = parser.parse_args()

    start = without_setup(load_game(given.game).start)
    if not isinstance(start, CompiledGame) or start.num_chances:
        raise SystemExit(f"expected a compiled game without dice, got {given.game}")
    if given.position:
        start = start.from_text(given.position)
    began = time.process_time()
    count = counter(start)
    print(f"compiled in {time.process_time() - began:.1f} s")
    for plays_last in (False,) if given.counted else (False, True):
        for depth in range(1, given.depth + 1):
            began = time.process_time()
            nodes = count(start.state, depth, plays_last)
            rate = nodes / max(time.process_time() - began, 1e-9) / 1e6
            how = "the last move played" if plays_last else "the last move counted"
            print(f"depth {depth}: {nodes} sequences, {rate:.2f} million a second, {how}")


def counter(start: CompiledGame) -> Callable[[NDArray[np.uint8], int, bool], int]:
    """Return a compiled function of a state, a depth, and whether the last move is played and not only counted."""
    play, outcome, legal, *_ = start.rules
    actions = start.num_actions

    @numba.njit
    def count(state: NDArray[np.uint8], depth: int, plays_last: bool) -> int:
        if outcome(state) != ONGOING:
            return 0
        mask = np.zeros(actions, np.bool_)
        legal(state, mask)
        if depth == 1 and not plays_last:
            return np.count_nonzero(mask)
        nodes = 0
        for action in range(actions):
            if mask[action]:
                after = state.copy()
                play(after, action)
                nodes += 1 if depth == 1 else count(after, depth - 1, plays_last)
        return nodes

    count(start.state, 1, True)
    return count


if __name__ == "__main__":
    main()
