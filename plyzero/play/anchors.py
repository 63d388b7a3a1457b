"""Anchors: the measured scores of a player against players that people know, and what these say of its strength.

With the score s of a player against X, and the 95 % interval [low, high] of s:

    about X           low <= 1/2 <= high, and the interval is at most MOST_WIDTH wide
    stronger than X   low > 1/2
    weaker than X     high < 1/2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

MOST_WIDTH: Final = 0.4
"""Width of an interval above which it does not tell that two players are about equal: 20 points to either side."""

PERFECT: Final = "perfect play"
"""Name of the opponent that knows the player's next moves and makes the best reply to them."""


class Anchor(NamedTuple):
    """A measured score.

    opponent: for people, such as "GNU Go level 1".
    score:    of the player, from 0 to 1; a draw counts 1/2.
    low, high: its 95 % interval; both are the score if that was computed.
    """

    opponent: str
    score: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{100 * self.score:.1f} % against {self.opponent} (computed)"
        is_extreme = self.low >= 0.99 or self.high <= 0.01
        interval = "" if is_extreme else f" ({100 * self.low:.0f} to {100 * self.high:.0f})"
        return f"{self.share}{interval} against {self.opponent}"

    @property
    def share(self) -> str:
        """The score as a percentage."""
        if self.low >= 0.99:
            return "over 99 %"
        if self.high <= 0.01:
            return "under 1 %"
        return f"{100 * self.score:.0f} %"


def claim(anchors: Sequence[Anchor]) -> str:
    """Return what the anchors say of the strength of a player, in words; those against weaker players come first.

    Of several players it names the one whose score is nearest to one half, and of those below and above it both.
    """
    if any(each.opponent == PERFECT and each.low >= 0.5 for each in anchors):
        return "cannot be beaten"
    nearest = sorted(anchors, key=distance)
    equal = [each for each in nearest if each.low <= 0.5 <= each.high and each.high - each.low <= MOST_WIDTH]
    below = sorted((each for each in reversed(anchors) if each.low > 0.5), key=distance)
    above = [each for each in nearest if each.high < 0.5]
    if equal:
        return f"about {equal[0].opponent}"
    if below and above:
        return f"between {below[0].opponent} and {above[0].opponent}"
    if below:
        return f"stronger than {below[0].opponent}"
    if above:
        return f"weaker than {above[0].opponent}"
    return f"scores {nearest[0]}"


def distance(anchor: Anchor) -> float:
    """Return how far a score is from one half."""
    return abs(anchor.score - 0.5)
