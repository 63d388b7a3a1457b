"""Compile and keep the machine code that workers, trainers and players need: python warm.py [GAME ...]

GAME: names of included games whose rules are compiled too; all of them if none is named.
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
    rng = np.random.default_rng(0)
    uniform = Uniform(start.num_actions)
    rollouts = Rollouts(start.num_actions, rng)
    for algorithm in ("puct", "gumbel"):
        own = SearchSettings(algorithm=algorithm)
        (root,) = search([rolled(start, rng)], rollouts, simulations=32, settings=own, rng=rng, leaves=2)
    with_exact_end(start, root, nodes=1_000_000)
    games_in_play = GamesInPlay(start, settings, seeds=itertools.count())
    played: list[Games] = []
    while not played:
        played += games_in_play.run(uniform)
    make_samples(Games.concatenate(played), search=settings.search, trainer=settings.trainer)
    logits = np.zeros((1, start.num_actions), np.float32)
    certain_win = np.eye(1, 3, dtype=np.float32)
    find_fault(Evaluation(logits, certain_win), 1, start.num_actions)


starts = [load_game(name).start for name in sys.argv[1:] or installed_games()]
for start in starts:
    start.legal_actions()
# The search is compiled once for all games; the trainer's code once for games with dice and once for the others.
one_of_each_kind = {bool(start.num_chances): start for start in starts}
for start in one_of_each_kind.values():
    play(start)
