"""A game: a position of a two-player, zero-sum, perfect-information game without chance."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from plyzero.rules.symmetry import Symmetry

MAX_NAMES: Final = 20
"""Of legal actions, in a message."""


ONGOING: Final = -2
DRAW: Final = -1
"""Outcome codes: what a compiled rule `outcome` returns and what a record stores. 0 and 1 name the winner."""


@dataclass(frozen=True)
class Outcome:
    """How a finished game ended.

    winner: 0 = the player who moved first from the initial position, 1 = the other one, None = a draw.
    """

    winner: int | None

    def value(self, player: int) -> int:
        """Return +1 if `player` won, -1 if the other one did, 0 for a draw."""
        if self.winner is None:
            return 0
        return 1 if self.winner == player else -1


def outcome_code(outcome: Outcome | None) -> int:
    """Return the outcome code: ONGOING, DRAW or the winner."""
    if outcome is None:
        return ONGOING
    return DRAW if outcome.winner is None else outcome.winner


class IllegalActionError(ValueError):
    """An action that the rules do not allow in this position; names the action, the position and the legal ones."""


class Game(ABC):
    """A position. Immutable: `play` returns a new one. `YourGame()` is the initial position.

    You write:    num_actions, observation_shape, max_plies, to_play, legal_actions, play, outcome, observe
    You may add:  symmetries, action_name, parse_action, key, __str__, observation_dtype (defaults are given)
    You get:      self-play, training, the command line

    Players are 0 and 1. Who moves is asked of `to_play`, never assumed to alternate: passes and double moves work.
    Keyword arguments of the class are the game's parameters (`othello(size=6)`) and need defaults.
    """

    version: ClassVar[int] = 1
    """Raise it (`class MyGame(Game, version=2)`) when rules or observation change: old records no longer fit."""

    num_actions: int
    """Number of different actions in the whole game; an action is an int in [0, num_actions)."""

    observation_shape: tuple[int, int, int]
    """Planes, rows, columns of what `observe` returns. A game without a board uses (n, 1, 1)."""

    observation_dtype: ClassVar[DTypeLike] = np.float32
    """How observations are stored; say `bool` if they hold only 0 and 1, which takes 32 times less room."""

    max_plies: int
    """No game is longer; self-play gives up a game that is, and does not learn its outcome."""

    def __init_subclass__(cls, *, version: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if version is not None:
            cls.version = version
        if "play" in vars(cls):
            cls.play_unchecked = vars(cls)["play"]  # type: ignore[method-assign]
            cls.play = _checked(cls.play_unchecked)  # type: ignore[method-assign, assignment]

    if TYPE_CHECKING:  # at run time an attribute, set in the class or in __init__, will do as well as a property

        @property
        @abstractmethod
        def to_play(self) -> int:
            """The player to move, 0 or 1; either when the game is over."""

    @abstractmethod
    def legal_actions(self) -> Sequence[int]:
        """Return the legal actions in ascending order; empty if and only if the game is over."""

    @abstractmethod
    def play(self, action: int) -> Self:
        """Return the position after `action`; the receiver does not change.

        What you write here may assume that `action` is legal: the toolkit checks it first and raises
        IllegalActionError otherwise. The search, which makes only legal moves, goes straight to your code.
        """

    def play_unchecked(self, action: int) -> Self:
        """Return the position after `action`, which must be legal: what the class wrote as `play`."""
        raise NotImplementedError  # replaced by __init_subclass__

    @abstractmethod
    def outcome(self) -> Outcome | None:
        """Return how the game ended, or None while it goes on. A draw is `Outcome(None)`, never None."""

    @abstractmethod
    def observe(self) -> NDArray[Any]:
        """Return what the network sees, seen by the player to move; shape `observation_shape`, finite numbers."""

    def __str__(self) -> str:
        """Return the position as people see it; by default the numbers of `observe`, plane beside plane."""
        rows = np.asarray(self.observe(), np.float32).transpose(1, 0, 2)
        board = ["   ".join(" ".join(f"{number:g}" for number in plane) for plane in row) for row in rows]
        return "\n".join([f"player {self.to_play} to move, who sees", *board])

    def symmetries(self) -> Sequence[Symmetry]:
        """Return the symmetries of the rules besides the identity; closed under composition."""
        return ()

    def action_name(self, action: int) -> str:
        """Return the name a person uses for a legal action, one word; no two legal ones of a position share one."""
        return str(action)

    def parse_action(self, text: str) -> int:
        """Return the legal action that a person calls `text`; ValueError names the legal ones otherwise."""
        wanted = text.strip().lower()
        for action in self.legal_actions():
            if self.action_name(action).lower() == wanted:
                return action
        names = self.legal_names().split()
        some = " ".join(names[:MAX_NAMES]) + (f" ... ({len(names)} in all)" if len(names) > MAX_NAMES else "")
        raise ValueError(f"expected one of {some}, got {text.strip()!r}")

    def legal_names(self) -> str:
        """Return the names of the legal actions, separated by blanks."""
        return " ".join(self.action_name(action) for action in self.legal_actions())

    def key(self) -> Hashable:
        """Return an exact identity: equal keys mean the same player to move and the same future.

        The default trusts the observation. Override it where the observation leaves something out.
        """
        return self.to_play, np.asarray(self.observe()).tobytes()


def _checked(play: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    @functools.wraps(play)
    def play_if_legal(self: Game, action: int) -> Game:
        legal = self.legal_actions()
        if action not in legal:
            name = _name(self, action)
            allowed = self.legal_names() if len(legal) else "none, the game is over"
            raise IllegalActionError(f"illegal action {action} ({name}) in\n{self}\nlegal: {allowed}")
        after: Game = play(self, action)
        return after

    return play_if_legal


def _name(position: Game, action: int) -> str:
    try:
        if 0 <= action < position.num_actions:
            return position.action_name(action)
    except Exception:  # a game need not have a name for what cannot be played, such as a step off the board
        pass
    return "no action of this game"
