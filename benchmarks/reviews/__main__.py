"""Whether reviews are right: beside exact values, beside another network, beside each other, and beside the result.

python -m benchmarks.reviews connect-four othello luck-pig
python -m benchmarks.reviews quoridor  # with the directory of quoridor.py, a class Quoridor, in PYTHONPATH

`pip install bitbully bitbully-databases` for connect-four, `pip install gnubg-nn` for gnubg. The cases that
were wrong and progress go to stderr.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from benchmarks.reviews import exact, rows
from plyzero.rules.catalog import load_game


def _exact(name: str, simulations: int) -> Callable[[int, int], None]:
    return lambda games, seed: exact.exact_row(load_game(name), games, simulations, seed)


def _coverage(name: str) -> Callable[[int, int], None]:
    return lambda games, seed: rows.coverage_row(load_game(name), games, 256, 4096, seed)


def _agreement(simulations: int, other: int, *, rollouts: bool = False) -> Callable[[int, int], None]:
    game = "backgammon"
    return lambda games, seed: rows.agreement_row(load_game(game), games, simulations, other, seed, rollouts=rollouts)


def _luck(name: str) -> Callable[[int, int], None]:
    return lambda games, seed: rows.luck_row(load_game(name), games, 64, seed)


ROWS: Final[dict[str, tuple[int, Callable[[int, int], None]]]] = {
    "random": (10, lambda games, seed: rows.random_row(load_game("backgammon"), games, 256, seed)),
    "agreement-900": (20, _agreement(900, 1024)),
    "agreement-256": (20, _agreement(256, 1024)),
    "agreement-mcts": (20, _agreement(256, 256, rollouts=True)),
    "connect-four": (100, _exact("connect-four", 256)),
    "connect-four-1024": (100, _exact("connect-four", 1024)),
    "othello": (100, _exact("othello(size=6)", 256)),
    "othello-1024": (100, _exact("othello(size=6)", 1024)),
    "quoridor": (6, lambda games, seed: rows.mistakes_row(load_game("quoridor:Quoridor"), games, 256, 1024, seed)),
    "gnubg": (20, lambda games, seed: rows.gnubg_row(load_game("backgammon"), games, 256, seed)),
    "luck-backgammon": (200, _luck("backgammon")),
    "luck-pig": (200, _luck("pig")),
    "coverage-connect-four": (10, _coverage("connect-four")),
    "coverage-othello": (10, _coverage("othello(size=6)")),
    "coverage-backgammon": (10, _coverage("backgammon")),
    "coverage-breakthrough": (10, _coverage("breakthrough")),
}
"""Name -> number of games, and the function from number and seed that prints the figures."""


def main() -> None:
    """Print the figures of each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", choices=[*ROWS, []], help=f"of {', '.join(ROWS)}; default: all"
    )
    parser.add_argument("--games", type=int, help="of each row, instead of its usual number")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name in given.rows or ROWS:
        games, print_figures = ROWS[name]
        print_figures(given.games or games, given.seed)


if __name__ == "__main__":
    main()
