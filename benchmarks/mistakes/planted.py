"""A game with a planted mistake: the rules of another game, with a change in what its methods return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry
from plyzero.check.final_board_laws import seen_by_other

Make = Callable[[], Game]
"""The type of a function that returns a new initial position."""


class Mistake(NamedTuple):
    """A mistake, planted into a game.

    operator:    the name of the kind of mistake.
    where:       the place where it was planted, such as the number of a plane.
    contradicts: whether the parts of the game contradict one another; otherwise it is another game, right in itself.
    make:        returns the initial position with the mistake.
    """

    operator: str
    where: str
    contradicts: bool
    make: Make


class Planted(Game):
    """A position of `inner`, whose answers a subclass changes.

    inner:  the position of the game without the mistake.
    before: the position before the last move; None in the initial position.
    plies:  the number of moves and rolls so far.
    """

    def __init__(self, inner: Game, before: Planted | None = None) -> None:
        self.inner = inner
        self.before = before
        self.plies = 0 if before is None else before.plies + 1
        for name in DECLARED:
            if name not in vars(type(self)):
                setattr(self, name, getattr(inner, name))

    @property
    def to_play(self) -> int:
        return self.inner.to_play

    @to_play.setter
    def to_play(self, player: int) -> None:
        if player != self.inner.to_play:
            other = seen_by_other(self.inner)
            if other is None:
                raise AttributeError("to_play")
            self.inner = other

    def legal_actions(self) -> Sequence[int]:
        return self.inner.legal_actions()

    def play(self, action: int) -> Self:
        return self.after(self.inner.play_unchecked(action))

    def after(self, inner: Game) -> Self:
        """Return the position after a move that leads to `inner`."""
        return type(self)(inner, self)

    def outcome(self) -> Outcome | None:
        return self.inner.outcome()

    def chances(self) -> Sequence[float]:
        return self.inner.chances()

    def observe(self) -> NDArray[Any]:
        return self.inner.observe()

    def final_board(self) -> NDArray[Any]:
        return self.inner.final_board()

    def key(self) -> Any:
        return super().key() if type(self.inner).key is Game.key else self.inner.key()

    def symmetries(self) -> Sequence[Symmetry]:
        return self.inner.symmetries()

    def action_name(self, action: int) -> str:
        return self.inner.action_name(action)

    def roll_name(self, roll: int) -> str:
        return self.inner.roll_name(roll)

    def render(self) -> Board | None:
        return self.inner.render()

    def __str__(self) -> str:
        return str(self.inner)

    def __copy__(self) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __getstate__(self) -> object:
        """Return what the position without the mistake holds: it tells positions apart."""
        return self.inner.__getstate__()


DECLARED = (
    "num_actions",
    "observation_shape",
    "observation_dtype",
    "max_plies",
    "max_score",
    "num_chances",
    "final_planes",
    "waived_laws",
)
"""The attributes that are copied from `inner`, unless the subclass has its own."""


def with_changes(make: Make, changes: Mapping[str, Any]) -> Make:
    """Return a function that makes the initial position of the game with `changes`: methods and attributes by name."""
    inner = make()
    methods = dict(changes)
    if type(inner).from_text is not Game.from_text:
        methods.setdefault("from_text", lambda self, text: type(self)(self.inner.from_text(text)))
    changed = type("Planted", (Planted,), methods)
    return lambda: changed(make())


def numbers(position: Game) -> NDArray[np.float32]:
    """Return the observation as float32, to be changed."""
    return np.array(position.observe(), np.float32)


def spread(these: Sequence[Any], most: int = 6) -> Sequence[Any]:
    """Return all of `these`, or `most` of them, evenly spaced."""
    return [these[len(these) * i // most] for i in range(most)] if len(these) > most else these
