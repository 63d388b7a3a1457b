"""Compile, while the image is built, every function that a worker or a trainer compiles and caches."""

import itertools

import numpy as np

from games.tic_tac_toe import TicTacToe
from plyzero.rules.catalog import installed_games, load_game
from plyzero.search.evaluators import Uniform
from plyzero.search.slots import search
from plyzero.settings import SearchSettings, Settings
from selfplay.games_in_play import GamesInPlay

for name in installed_games():
    load_game(name).start.legal_actions()
for kind in ("puct", "gumbel"):
    settings = SearchSettings(algorithm=kind)
    for root in search([TicTacToe()], Uniform(9), simulations=32, settings=settings, rng=np.random.default_rng(0)):
        root.policy.sum()
GamesInPlay(TicTacToe(), Settings(), seeds=itertools.count()).run(Uniform(9))
