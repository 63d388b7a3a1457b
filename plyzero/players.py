"""Players: anything that chooses moves, for many positions at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from plyzero.errors import UserError
from plyzero.evaluate import Evaluate, Rollouts
from plyzero.game import Game
from plyzero.search import search
from plyzero.settings import SearchSettings

PURE_MCTS = SearchSettings(kind="puct", c_puct=1.25, fpu_reduction=0.0)
"""Of the opponent `mcts:N`: uniform priors, one random playout per leaf, proven values backed up."""


class Player(Protocol):
    """Chooses moves."""

    @property
    def name(self) -> str:
        """What to call it in a table."""
        ...

    def choose(self, positions: Sequence[Game]) -> list[int]:
        """Return a legal action for each of `positions`, at least one, none finished."""
        ...


class RandomPlayer:
    """Any legal action, all alike probable."""

    name = "random"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose(self, positions: Sequence[Game]) -> list[int]:
        return [int(self._rng.choice(np.asarray(position.legal_actions()))) for position in positions]


class SearchPlayer:
    """Searches without noise and plays the best; with 0 simulations it plays what the network likes most."""

    def __init__(self, name: str, evaluate: Evaluate, *, simulations: int, settings: SearchSettings) -> None:
        self.name = name
        self._evaluate, self._simulations, self._settings = evaluate, simulations, settings

    def choose(self, positions: Sequence[Game]) -> list[int]:
        roots = search(positions, self._evaluate, simulations=self._simulations, settings=self._settings)
        return [root.best_action() for root in roots]


def fixed_player(name: str, game: Game, rng: np.random.Generator) -> Player:
    """Return the player that `name` describes: `random`, or `mcts:N`, pure MCTS with N rollouts a move."""
    kind, _, number = name.partition(":")
    if name == "random":
        return RandomPlayer(rng)
    if kind == "mcts" and number.isdecimal() and int(number) > 0:
        rollouts = Rollouts(game.num_actions, rng)
        return SearchPlayer(name, rollouts, simulations=int(number), settings=PURE_MCTS)
    raise UserError(f"expected a player such as random or mcts:1000, got {name!r}")
