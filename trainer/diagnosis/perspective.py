"""The point of view of the observation: does it show the board from the side of the player to move, or of player 0?

A linear regression on the observation predicts, for games that it was not fitted to, the result for the player to move,
the result for player 0, and who is to move. If it can predict the second better than the first, but not the third, then
the network is asked for the result of a player whom it cannot know.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import DRAW, ONGOING, Game
from plyzero.run.records import Games

NEWEST_POSITIONS: Final = 16_384  # newest positions, half to fit the regression and half to test it
SEGMENT_POSITIONS: Final = 4096  # largest number from one segment
FEATURES: Final = 256  # a larger observation is projected at random
MIN_GAMES: Final = 200  # smallest number of games for a result


class PointOfView(NamedTuple):
    """R² of a linear regression on the observation, on games that it was not fitted to.

    mover:   the result for the player to move.
    first:   the result for player 0.
    turn:    which player is to move.
    surplus: by how much `first` exceeds `mover`, in standard errors of the mean over games.
    """

    mover: float
    first: float
    turn: float
    surplus: float


class _Rows(NamedTuple):
    """Positions of whole games: features `[N, F]`, targets `[N, 3]`, and `[N]` the number of each position's game."""

    features: NDArray[np.float32]
    targets: NDArray[np.float32]
    game: NDArray[np.int64]


class PointOfViewTest:
    """Keeps the newest positions and fits the regression."""

    def __init__(self, game: Game) -> None:
        cells = int(np.prod(game.observation_shape))
        signs = np.random.default_rng(0).choice(np.array([-1, 1], np.float32), (cells, FEATURES))
        self._projection = np.eye(cells, dtype=np.float32) if cells <= FEATURES else signs
        self._newest: deque[_Rows] = deque()
        self._games = 0

    def add(self, games: Games) -> None:
        """Add the first games of a segment that were not truncated, up to SEGMENT_POSITIONS positions."""
        ended = games.select(games.games["winner"] != ONGOING)
        chosen = ended.select(np.cumsum(ended.games["positions"]) <= SEGMENT_POSITIONS)
        if not len(chosen.games):
            return
        plies, position = chosen.games["positions"], chosen.positions
        number = np.repeat(np.arange(self._games, self._games + len(plies)), plies)
        winner = np.repeat(chosen.games["winner"], plies)
        first = np.where(winner == DRAW, 0, np.where(winner == 0, 1, -1))
        mover = np.where(position["to_play"] == 0, 1, -1)
        observations = chosen.observations.reshape(len(position), -1).astype(np.float32)
        targets = np.stack([first * mover, first, mover], axis=1).astype(np.float32)
        self._newest.append(_Rows(observations @ self._projection, targets, number))
        self._games += len(plies)
        while sum(len(rows.game) for rows in self._newest) - len(self._newest[0].game) >= NEWEST_POSITIONS:
            self._newest.popleft()

    def measure(self) -> PointOfView | None:
        """Return the result for the newest games, None if there are too few."""
        if not self._newest or len(np.unique(np.concatenate([rows.game for rows in self._newest]))) < MIN_GAMES:
            return None
        rows = _Rows(*(np.concatenate(parts) for parts in zip(*self._newest, strict=True)))
        features = rows.features.astype(np.float64)  # the squares of 32-bit numbers could be infinite
        features -= features.mean(axis=0)
        deviation = features.std(axis=0)
        features = features[:, deviation > 0] / deviation[deviation > 0]
        features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        fitted = rows.game % 2 == 0
        tested = ~fitted
        # A little ridge, because the numbers of an observation depend on each other.
        gram = features[fitted].T @ features[fitted] + 1e-3 * fitted.sum() * np.eye(features.shape[1])
        weights = np.linalg.solve(gram, features[fitted].T @ rows.targets[fitted])
        errors = (rows.targets[tested] - features[tested] @ weights) ** 2
        errors_of_mean = (rows.targets[tested] - rows.targets[fitted].mean(axis=0)) ** 2
        skill = 1 - errors.mean(axis=0) / np.maximum(errors_of_mean.mean(axis=0), 1e-6)
        gain = (errors_of_mean - errors)[:, 1] - (errors_of_mean - errors)[:, 0]
        of_game = np.bincount(rows.game[tested] - rows.game[0], gain)[rows.game[tested].min() - rows.game[0] :: 2]
        error = of_game.std() / np.sqrt(len(of_game))
        surplus = float(of_game.mean() / max(error, 1e-9))
        return PointOfView(mover=float(skill[0]), first=float(skill[1]), turn=float(skill[2]), surplus=surplus)
