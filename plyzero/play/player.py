"""Players: objects that choose moves, with a name, a strength and an identity; and the one that plays at random.

A match calls `begin_game` of both players, then `choices` with the positions in which one is to move, and the moves
that have led there:

    an action    it is played; it must be legal
    a Forfeit    the player has lost this game
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.rules.game import Game


class Forfeit(NamedTuple):
    """Answer in place of an action: the player has lost the game.

    reason:   in one sentence.
    resigned: whether the player gives the game up, and has not failed.
    """

    reason: str
    resigned: bool = False


class ForfeitError(UserError):
    """A player has failed to move, or resigns; the message says which one and why."""


class Strength(NamedTuple):
    """The measured strength of a judge of moves.

    text:   for people, such as "step 182 scored 50% (34-66) in 40 games against mcts:100".
    judges: whether it is measured to beat mcts:100: the 95 % interval of a score against it or more is above one half.
    """

    text: str
    judges: bool


class Player(ABC):
    """Anything that chooses moves.

    name:          for results.
    takes_limits:  whether the simulations, settings of the search, clock and threads of `find_player` change it.
    games_at_once: largest number of games that it plays in parallel; None = any.
    on_wait:       called from time to time while it waits for an agent or a program. An error that it raises ends that.
    """

    name: str
    takes_limits: bool = False
    games_at_once: int | None = None
    on_wait: Callable[[], None] = staticmethod(lambda: None)

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

    def choices(self, positions: Sequence[Game], moves: Sequence[Sequence[int]]) -> list[int | Forfeit]:
        """Return its choice in each of `positions`. Agents and programs forfeit; other errors are raised.

        moves: for each position, the actions and rolls that have led there from the start of the game.
        """
        return [*self.choose_all(positions)]

    def choose_in_game(self, position: Game, moves: Sequence[int]) -> int:
        """Return its action after `moves`, as `choices` does. Raises ForfeitError if it forfeits."""
        (choice,) = self.choices([position], [moves])
        if isinstance(choice, Forfeit):
            raise ForfeitError(choice.reason)
        return choice

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
