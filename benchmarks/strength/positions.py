"""Make exams: positions with a perfect solver's opinion of every move.

pip install bitbully  # for Connect Four; the endgames of other games are solved by solver.py
python -m benchmarks.strength.positions connect-four --seed 1 --write benchmarks/strength/connect-four
python -m benchmarks.strength.positions "othello(size=6)" --seed 1 --write benchmarks/strength/othello-6x6

Every position is decisive: its legal moves are not all worth the same. Each is from a game of its own between players
of mixed strength, none is another's image under the game's symmetries, and each stratum of plies has as many.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.strength.exams import STRATA, after, write_line
from benchmarks.strength.solver import Solver
from plyzero.play.player import Player, RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

SPLITS = "dev", "test"
ROLLOUTS = 30, 300
RANDOM_SHARE = 0.15, 1.0
"""A player makes this share of its moves at random, from and to."""

GAMES_AT_ONCE = 64


def main() -> None:
    """Play games until every stratum of every split is full, and write a file per split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", help=f"one of {', '.join(STRATA)}")
    parser.add_argument("--count", type=int, default=1000, help="positions of each split")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--write", required=True, metavar="PATH", help="-dev.txt and -test.txt are added")
    given = parser.parse_args()

    rng, game = np.random.default_rng(given.seed), load_game(given.game)
    move_values, strata = solver_of(game), STRATA[game.name]
    per_stratum = -(-given.count // len(strata))
    found: dict[str, list[list[str]]] = {split: [[] for _ in strata] for split in SPLITS}
    seen: set[bytes] = set()
    for moves in games_of_mixed_strength(game, rng):
        wanted = [(split, i) for split in SPLITS for i in range(len(strata)) if len(found[split][i]) < per_stratum]
        split, stratum = wanted[int(rng.integers(len(wanted)))]
        low, high = strata[stratum]
        if len(moves) <= low:
            continue
        moves = moves[: int(rng.integers(low, min(high, len(moves))))]
        values, key = move_values(moves), identity(after(game.start, moves))
        if len(set(values.values())) > 1 and key not in seen:
            seen.add(key)
            found[split][stratum].append(write_line(game, moves, values))
        counts = [len(lines) for strata in found.values() for lines in strata]
        print(f"\r{sum(counts)} of {len(counts) * per_stratum}", end="", file=sys.stderr, flush=True)
        if min(counts) == per_stratum:
            break
    print(file=sys.stderr)
    for split, lines in found.items():
        text = "".join(f"{line}\n" for stratum in lines for line in stratum)
        Path(f"{given.write}-{split}.txt").write_text(text, encoding="utf-8")


def solver_of(game: GameSpec) -> Callable[[list[int]], dict[int, int]]:
    """Return a function from the moves that lead to a position to the value of every legal action in it."""
    if game.name == "connect-four":
        return connect_four_solver()
    solver = Solver(cast(CompiledGame, game.start))
    return lambda moves: solver.move_values(cast(CompiledGame, after(game.start, moves)))


def connect_four_solver() -> Callable[[list[int]], dict[int, int]]:
    from bitbully import BitBully, Board

    solver = BitBully()

    def move_values(moves: list[int]) -> dict[int, int]:
        board = Board()
        for move in moves:
            board.play(move)
        return {column: int(np.sign(score)) for column, score in solver.score_all_moves(board).items()}

    return move_values


def identity(position: Game) -> bytes:
    """Return a key that a position shares with its images under symmetries, and with no other position."""
    seen = position.observe().ravel()
    images = [seen[symmetry.planes] for symmetry in position.symmetries()]
    return min(image.tobytes() for image in [seen, *images])


def games_of_mixed_strength(game: GameSpec, rng: np.random.Generator) -> Iterator[list[int]]:
    """Yield the moves of whole games. Each side is a random one of the players, with a random share of random moves."""
    players: list[Player] = [RandomPlayer(rng)]
    players += [Bot.pure_mcts(game, rng, simulations=rollouts) for rollouts in ROLLOUTS]
    while True:
        positions: list[Game] = [game.start] * GAMES_AT_ONCE
        lines: list[list[int]] = [[] for _ in positions]
        sides = rng.integers(len(players), size=(GAMES_AT_ONCE, 2))
        distracted = rng.uniform(*RANDOM_SHARE, size=(GAMES_AT_ONCE, 2))
        going = list(range(GAMES_AT_ONCE))
        while going:
            movers: dict[int, int] = {}
            for i in going:
                side = positions[i].to_play
                movers[i] = 0 if rng.random() < distracted[i, side] else int(sides[i, side])
            for number, player in enumerate(players):
                mine = [i for i in going if movers[i] == number]
                if not mine:
                    continue
                for i, action in zip(mine, player.choose_all([positions[i] for i in mine]), strict=True):
                    lines[i].append(action)
                    positions[i] = positions[i].play_unchecked(action)
            going = [i for i in going if positions[i].outcome() is None]
        yield from lines


if __name__ == "__main__":
    main()
