"""The verdict on a turn, and two ways to reach it: by the tree of each position, or by the ends of turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class Verdict(NamedTuple):
    """What is found of a turn. Values are for player 0, in the unit of the judgement.

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
    def verdicts(self, margins: Sequence[float]) -> list[Verdict]: ...
