"""The law of games with dice: chances() holds probabilities."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from plyzero.check.laws import GameTrace, Law, expect, register

MAX_CHANCE_ERROR: Final = 1e-5
"""By how much the sum of probabilities may differ from 1; float32 needs some of it."""

CHANCE_LAWS: Final[list[Law]] = []
"""The laws that are checked at every position of a game with dice, before those of plyzero.check.laws."""


@register(CHANCE_LAWS)
def chances_are_probabilities(trace: GameTrace) -> None:
    """Where chance moves, chances() has num_chances probabilities with the sum 1; where a player moves it is empty."""
    position = trace.position
    if position.outcome() is not None:
        return
    chances = np.asarray(position.chances(), np.float64)
    if not chances.size:
        return
    expect(
        chances.shape == (position.num_chances,),
        f"chances() has {chances.size} numbers, expected one for each of num_chances = {position.num_chances} rolls",
    )
    expect(bool(np.isfinite(chances).all()), f"chances() is {_numbers(chances)}, expected finite numbers")
    expect(bool((chances >= 0).all()), f"chances() is {_numbers(chances)}, expected numbers from 0 to 1")
    expect(
        bool(chances.any()),
        "chances() is all zeros: return () where a player moves, and probabilities with the sum 1 where chance does",
    )
    total = float(chances.sum())
    expect(abs(total - 1) <= MAX_CHANCE_ERROR, f"chances() is {_numbers(chances)}, whose sum is {total:g}, expected 1")


def _numbers(chances: NDArray[np.float64]) -> str:
    return " ".join(f"{chance:g}" for chance in chances)
