"""Make openings of Othello that are drawn under perfect play: random moves, whose outcome an exact solver knows.

python -m benchmarks.strength.openings "othello(size=6)" --plies 12 --count 50 --seed 1 \\
    --write benchmarks/strength/othello-6x6-drawn.txt

Lines are as in exams, with the value of every move. None is another's image under the game's symmetries.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final, cast

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from benchmarks.strength.exams import after, write_line
from benchmarks.strength.positions import identity
from plyzero.games.othello import Othello, flipped_by, moves_of, popcount, shifted
from plyzero.play.match import random_opening
from plyzero.rules.catalog import load_game

SLOT_BITS: Final = 22
"""The table remembers 2^SLOT_BITS positions, the newest ones."""

REACHED: Final = 1
MISSED: Final = 2
"""Known results of a position: two bits for the goal 0, a draw, and two for the goal 1, a win; 0 = nothing."""

CORNER_BONUS: Final = 8
"""A corner is tried as early as a move that leaves the opponent this many answers less."""


def main() -> None:
    """Write drawn openings to the file, each as soon as it is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=["othello(size=6)"])
    parser.add_argument("--plies", type=int, default=12, help="random moves")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE")
    given = parser.parse_args()

    game = load_game(given.game)
    rng = np.random.default_rng(given.seed)
    solver = OthelloSolver()
    seen: set[bytes] = set()
    found = 0
    with given.write.open("w", encoding="utf-8") as lines:
        while found < given.count:
            moves = random_opening(game.start, given.plies, rng)
            position = cast(Othello, after(game.start, moves))
            key = identity(position)
            if key in seen:
                continue
            seen.add(key)
            if solver.value(position) == 0:
                found += 1
                lines.write(write_line(game, moves, solver.move_values(position)) + "\n")
                lines.flush()
            print(f"\r{found} of {given.count} among {len(seen)} positions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


class OthelloSolver:
    """Exact values of Othello positions, by null-window alpha-beta; remembers many of the positions it has met."""

    def __init__(self) -> None:
        self._keys = np.zeros((1 << SLOT_BITS, 2), np.uint64)
        self._known = np.zeros(1 << SLOT_BITS, np.uint8)

    def value(self, position: Othello) -> int:
        if self._reaches(position, 1):
            return 1
        return 0 if self._reaches(position, 0) else -1

    def move_values(self, position: Othello) -> dict[int, int]:
        return {action: -self.value(position.play(action)) for action in position.legal_actions()}

    def _reaches(self, position: Othello, goal: int) -> bool:
        record = position.record
        own = record["discs"][position.to_play]
        other = record["discs"][1 - position.to_play]
        return bool(reaches(own, other, record["squares"], goal, self._keys, self._known))


@numba.njit
def is_corner(disc: Any, squares: Any) -> bool:
    """Return whether a square has two neighbours at most in a row and a column."""
    neighbours = 0
    for step in (1, -1, 8, -8):
        neighbours += (shifted(disc, step) & squares) != 0
    return neighbours == 2


@numba.njit(
    types.boolean(types.uint64, types.uint64, types.uint64, types.int64, types.uint64[:, ::1], types.uint8[::1])
)
def reaches(own: Any, other: Any, squares: Any, goal: int, keys: NDArray[np.uint64], known: NDArray[np.uint8]) -> bool:
    """Return whether the player of the discs `own`, who is to move, gets at least `goal`: 0, a draw, or 1, a win.

    It gets that if a move leaves the opponent unable to get at least 1 - goal.
    """
    moves = moves_of(own, other, squares)
    if moves == 0:
        if moves_of(other, own, squares) == 0:
            return popcount(own) - popcount(other) >= goal
        return not reaches(other, own, squares, 1 - goal, keys, known)

    slot = (own * np.uint64(0x9E3779B97F4A7C15) ^ other * np.uint64(0xC2B2AE3D27D4EB4F)) >> np.uint64(64 - SLOT_BITS)
    same = keys[slot, 0] == own and keys[slot, 1] == other
    answer = (known[slot] >> np.uint8(2 * goal)) & 3 if same else 0
    if answer:
        return answer == REACHED

    discs = np.empty(32, np.uint64)
    flips = np.empty(32, np.uint64)
    ranks = np.empty(32, np.int64)
    count = 0
    while moves:
        disc = moves & (~moves + np.uint64(1))
        moves ^= disc
        flipped = flipped_by(disc, own, other)
        answers = moves_of(other & ~flipped, own | disc | flipped, squares)
        rank = popcount(answers) - CORNER_BONUS * is_corner(disc, squares)
        place = count
        while place and ranks[place - 1] > rank:
            discs[place] = discs[place - 1]
            flips[place] = flips[place - 1]
            ranks[place] = ranks[place - 1]
            place -= 1
        discs[place] = disc
        flips[place] = flipped
        ranks[place] = rank
        count += 1

    found = False
    for i in range(count):
        if not reaches(other & ~flips[i], own | discs[i] | flips[i], squares, 1 - goal, keys, known):
            found = True
            break
    if not (keys[slot, 0] == own and keys[slot, 1] == other):
        keys[slot, 0] = own
        keys[slot, 1] = other
        known[slot] = 0
    known[slot] |= np.uint8((REACHED if found else MISSED) << (2 * goal))
    return found


if __name__ == "__main__":
    main()
