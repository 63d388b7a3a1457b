"""The verdict on a turn, in the unit of the judgement, and what the two ways to reach it have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

Unit = Literal["score", "points"]
"""Expected score from 0 to 1, a draw counts 1/2; or expected points, where a win by more is worth more."""


class Verdict(NamedTuple):
    """The finding about a turn. Values are for player 0, in the unit of the judgement.

    before:   the value with the best turn.
    after:    the value after the turn that was played.
    best:     the moves of the best turn, and after them perhaps what is expected; those played if none is better.
    is_exact: whether both values are proven.
    """

    before: float
    after: float
    best: tuple[int, ...]
    is_exact: bool


class Judging(Protocol):
    """The judgement of the turns of a game, which are numbered from 0."""

    def cost(self, number: int, simulations: int) -> int: ...
    def search(self, numbers: Iterable[int], simulations: int) -> None: ...
    def searches_of(self, number: int) -> set[int]: ...
    def unconfirmed(self, number: int, simulations: int) -> Sequence[tuple[int, int]]: ...
    def confirm(self, numbers: Iterable[int], simulations: int) -> None: ...
    def verdicts(self, margins: Sequence[float]) -> list[Verdict]: ...


def seen_by(player: int, value: float, unit: Unit) -> float:
    """Return a value of player 0 as that of `player`, and the other way round."""
    if player == 0:
        return value
    return -value if unit == "points" else 1 - value
