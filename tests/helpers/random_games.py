"""A command that plays random games, and prints a digest of everything that the rules answered, a line for each game.

`python -m tests.helpers.random_games hex "hex(size=5)"`. The order of the lines is that of the arguments.
"""

import hashlib
import sys

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game
from plyzero.rules.random_game import random_game


def digest_of_games(start: Game, count: int = 3) -> str:
    """Return a digest of the states, legal actions, observations and outcomes of `count` random games from `start`."""
    digest = hashlib.blake2b(digest_size=8)
    for seed in range(count):
        for position in random_game(start, np.random.default_rng(seed)).positions:
            digest.update(repr((position.key(), position.legal_actions(), position.outcome())).encode())
            digest.update(position.observe().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    starts = {name: load_game(name).start for name in sys.argv[1:]}
    for each in starts.values():  # all rules are loaded before any is used
        if isinstance(each, CompiledGame):
            _ = each.rules
    for name, start in starts.items():
        checked = start.with_bounds_checked() if isinstance(start, CompiledGame) else start
        print(name, digest_of_games(start), digest_of_games(checked, 1), flush=True)
