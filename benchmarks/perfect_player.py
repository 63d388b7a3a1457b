"""The perfect player of Connect Four, as an agent: `benchmarks.perfect_player:Perfect`.

pip install bitbully  # its solver and its book of openings (AGPL-3.0), only for benchmarks
"""

from __future__ import annotations

from typing import cast

import numpy as np

from plyzero.games.connect_four import ConnectFour
from plyzero.play.agents import Agent
from plyzero.rules.game import Game


class Perfect(Agent):
    """Wins as soon as it can, or loses as late as it can; of equally good moves it plays a random one."""

    def __init__(self) -> None:
        from bitbully import BitBully

        self._solver = BitBully()

    def choose(self, position: Game) -> int:
        from bitbully import Board

        board = np.asarray(cast(ConnectFour, position).record["board"], int)  # the bottom row first
        scores = self._solver.score_all_moves(Board(board[::-1].tolist()))
        best = max(scores.values())
        return int(self.rng.choice([column for column, score in scores.items() if score == best]))
