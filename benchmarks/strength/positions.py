"""Make Connect Four positions with a perfect solver's opinion of every move, for a network's exams.

pip install bitbully
python benchmarks/strength/positions.py --count 1000 --seed 1 --write benchmarks/strength

Every position is decisive: its legal moves are not all worth the same. Each is from a game of its own between players
of mixed strength, none is another's mirror image, and a quarter each is from plies 0 to 7, 8 to 15, 16 to 23 and later.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bitbully import BitBully, Board

from plyzero.catalog import load_game
from plyzero.game import Game
from plyzero.players import Bot, Player, RandomPlayer

SPLITS = "dev", "test"
STRATA = (0, 8), (8, 16), (16, 24), (24, 41)
"""Plies, from and before."""

ROLLOUTS = 30, 300
RANDOM_SHARE = 0.15, 1.0
"""A player makes this share of its moves at random, from and to."""

GAMES_AT_ONCE = 64


def main() -> None:
    """Play games until every stratum of every split is full, and write a file per split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="positions of each split")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--write", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()

    rng, solver = np.random.default_rng(given.seed), BitBully()
    per_stratum = -(-given.count // len(STRATA))
    found: dict[str, list[list[str]]] = {split: [[] for _ in STRATA] for split in SPLITS}
    seen: set[bytes] = set()
    for moves in games_of_mixed_strength(rng):
        wanted = [(split, i) for split in SPLITS for i in range(len(STRATA)) if len(found[split][i]) < per_stratum]
        split, stratum = wanted[int(rng.integers(len(wanted)))]
        low, high = STRATA[stratum]
        if len(moves) <= low:
            continue
        moves = moves[: int(rng.integers(low, min(high, len(moves))))]
        line, key = labelled(solver, moves), identity(moves)
        if line is not None and key not in seen:
            seen.add(key)
            found[split][stratum].append(line)
        counts = [len(lines) for strata in found.values() for lines in strata]
        print(f"\r{sum(counts)} of {len(counts) * per_stratum}", end="", file=sys.stderr, flush=True)
        if min(counts) == per_stratum:
            break
    print(file=sys.stderr)
    for split, strata in found.items():
        path = given.write / f"connect-four-{split}.txt"
        path.write_text("".join(f"{line}\n" for lines in strata for line in lines), encoding="utf-8")


def labelled(solver: BitBully, moves: list[int]) -> str | None:
    """Return the moves, columns from 1, and each column's value for the player to move: 1, 0, -1 or "." for full.

    None if all legal moves are worth the same.
    """
    board = Board()
    for move in moves:
        board.play(move)
    scores = solver.score_all_moves(board)
    values = [str(int(np.sign(scores[column]))) if column in scores else "." for column in range(7)]
    if len(set(values) - {"."}) < 2:
        return None
    return " ".join(["".join(str(move + 1) for move in moves) or "-", *values])


def identity(moves: list[int]) -> bytes:
    """Return what a position and its mirror image have in common and no other one has."""
    return min(played(moves).key(), played([6 - move for move in moves]).key())


def played(moves: list[int]) -> Game:
    """Return the position after `moves`."""
    position = load_game("connect-four").start
    for move in moves:
        position = position.play_unchecked(move)
    return position


def games_of_mixed_strength(rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield the moves of whole games, each side now this player, now that one, and more or less distracted."""
    game = load_game("connect-four")
    players: list[Player] = [RandomPlayer(rng)]
    players += [Bot.pure_mcts(game, rng, simulations=rollouts) for rollouts in ROLLOUTS]
    while True:
        positions: list[Game] = [game.start] * GAMES_AT_ONCE
        lines: list[list[int]] = [[] for _ in positions]
        sides = rng.integers(len(players), size=(GAMES_AT_ONCE, 2))
        distracted = rng.uniform(*RANDOM_SHARE, size=(GAMES_AT_ONCE, 2))
        going = list(range(GAMES_AT_ONCE))
        while going:
            movers = {
                i: 0 if rng.random() < distracted[i, positions[i].to_play] else int(sides[i, positions[i].to_play])
                for i in going
            }
            for number, player in enumerate(players):
                mine = [i for i in going if movers[i] == number]
                for i, action in zip(
                    mine, player.choose_all([positions[i] for i in mine]) if mine else [], strict=True
                ):
                    lines[i].append(action)
                    positions[i] = positions[i].play_unchecked(action)
            going = [i for i in going if positions[i].outcome() is None]
        yield from lines


if __name__ == "__main__":
    main()
