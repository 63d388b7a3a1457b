"""Compile what workers, trainers and players would compile at their first start, and keep it: python warm.py [GAME ...]

GAME: names of included games whose rules are compiled as well as the search; all of them if none is named.
"""

import itertools
import sys

import numpy as np

from plyzero.rules.catalog import installed_games, load_game
from plyzero.rules.chance import rolled
from plyzero.rules.game import Game
from plyzero.run.records import Games
from plyzero.search.evaluators import Evaluation, Rollouts, Uniform, find_fault
from plyzero.search.slots import search
from plyzero.search.solver import with_exact_end
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import SearchSettings, Settings
from plyzero.trainer.targets import make_samples


def play(start: Game) -> None:
    """Search with every algorithm, prove an end, and make training samples from a game of self-play."""
    settings = Settings.model_validate({"trainer": {"luck_adjustment": bool(start.num_chances)}})
    uniform, rng = Uniform(start.num_actions), np.random.default_rng(0)
    rollouts = Rollouts(start.num_actions, rng)
    for algorithm in ("puct", "gumbel"):
        own = SearchSettings(algorithm=algorithm)
        (root,) = search([rolled(start, rng)], rollouts, simulations=32, settings=own, rng=rng, leaves=2)
    with_exact_end(start, root, nodes=1_000_000)
    games_in_play, played = GamesInPlay(start, settings, seeds=itertools.count()), list[Games]()
    while not played:
        played += games_in_play.run(uniform)
    make_samples(Games.concatenate(played), search=settings.search, trainer=settings.trainer)
    find_fault(
        Evaluation(np.zeros((1, start.num_actions), np.float32), np.eye(1, 3, dtype=np.float32)), 1, start.num_actions
    )


starts = [load_game(name).start for name in sys.argv[1:] or installed_games()]
for start in starts:
    start.legal_actions()
# With dice the trainer's code is another; otherwise one game stands for all.
for start in {bool(start.num_chances): start for start in starts}.values():
    play(start)
