"""Players: objects that choose moves, with a name, a strength and an identity; and the one that plays at random.

A match calls `begin_game` of both players, then `choices` with the positions in which one is to move:

    an action    it is played; it must be legal
    a Forfeit    the player has lost this game
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.rules.game import Game


class Forfeit(NamedTuple):
    """Answer in place of an action: the player has lost the game, for a reason in one sentence."""

    reason: str


class Strength(NamedTuple):
    """The measured strength of a judge of moves.

    text:   for people, such as "step 182 scored 50% (34-66) in 40 games against mcts:100".
    judges: whether it is measured to beat mcts:100: the 95 % interval of a score against it or more is above one half.
    """

    text: str
    judges: bool


class Player(ABC):
    """Anything that chooses moves.

    name:         for results.
    takes_limits: whether the simulations, settings of the search, clock and threads of `find_player` change it.
    """

    name: str
    takes_limits: bool = False

    @abstractmethod
    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        """Return a legal action for each of `positions`, none of which may be finished; [] for none."""

    @property
    def identity(self) -> str:
        """Text that differs if the way it plays does, apart from the limits, such as the digest of a network."""
        return self.name

    def strength(self) -> Strength:
        """Return its measured strength so far, and whether it is enough to judge moves."""
        return Strength("the strength of this player has not been measured", judges=False)

    def choices(self, positions: Sequence[Game]) -> list[int | Forfeit]:
        """Return its choice in each of `positions`. Only an agent forfeits; other errors are raised."""
        return [*self.choose_all(positions)]

    def begin_game(self) -> None:  # noqa: B027, most players need none
        """Prepare for a new game, such as by giving a clock all of its time."""


class RandomPlayer(Player):
    """A player that chooses uniformly among the legal actions."""

    name = "random"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [int(self._rng.choice(np.asarray(position.legal_actions()))) for position in positions]


def as_player(found: object) -> Player:
    """Return `found` if it is a Player, else a player with its `name` and its `choose_all`.

    Raises UserError if it has not both.
    """
    if isinstance(found, Player):
        return found
    if not (isinstance(getattr(found, "name", None), str) and callable(getattr(found, "choose_all", None))):
        raise UserError(f"expected a player: an object with a name and a method choose_all, got {shown(found)}")
    return _Adapted(found)


class _Adapted(Player):
    """A player by the name and the `choose_all` of an object of another class."""

    def __init__(self, other: Any) -> None:
        self.name, self._other = other.name, other

    def choose_all(self, positions: Sequence[Game]) -> list[int]:
        return [*self._other.choose_all(positions)]
