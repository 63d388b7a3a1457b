"""The scale of a game's losses: what random play loses in it, and how sure the judge is. Measured once for each game.

In a game such as backgammon few turns lose a tenth of the expected score, in another one most do. So what counts as a
mistake, and the accuracy of a player, follow from the losses of random play.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from plyzero.kits.review.verdicts import Unit

Kind = Literal["inaccuracy", "mistake", "blunder"]

KINDS: Final[tuple[tuple[float, Kind], ...]] = ((0.3, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))
"""(smallest loss, as a share of `spread`, the name of such a turn), the largest first. Where random play may lose the
whole game with a move, as in chess, the bounds are those of lichess."""


USUAL_SLOPE: Final = -0.25
"""The margin falls as this power of the number of simulations if it is measured for one number alone. The errors of a
network are alike in all positions of a tree, so its margin falls more slowly than that of independent samples."""


class Scale(NamedTuple):
    """The measured losses in a game, by a judge.

    unit:    of `spread` and `margins`.
    spread:  what few turns of random play exceed, see plyzero.kits.review.measuring; 1 = the whole game, of a score.
    margins: simulations -> 95 % of the losses change by less if the judge searches much longer.
    random, bot: the accuracy of random play and of the judge's own play, in percent; None if not measured.
    """

    unit: Unit
    spread: float
    margins: Mapping[int, float]
    random: float | None = None
    bot: float | None = None

    @property
    def bounds(self) -> tuple[tuple[float, Kind], ...]:
        """(smallest loss, the name of such a turn), the largest first."""
        return tuple((share * self.spread, kind) for share, kind in KINDS)

    def kind(self, lost: float) -> Kind | None:
        """Return the name of a turn that has lost so much; None if it is too little to have a name."""
        return next((kind for bound, kind in self.bounds if lost >= bound), None)

    def margin(self, simulations: int) -> float:
        """Return the uncertainty of a loss after so many simulations, by a power law between those measured."""
        if not self.margins:
            return 0.0
        known = sorted(self.margins)
        slope = USUAL_SLOPE
        if len(known) > 1:
            least, most = known[0], known[-1]
            slope = math.log(self.margins[most] / self.margins[least]) / math.log(most / least)
        return self.margins[known[-1]] * (max(simulations, 1) / known[-1]) ** min(slope, 0.0)

    def accuracy(self, losses: Sequence[float]) -> float | None:
        """Return the mean accuracy of turns with these losses, in percent; None without any.

        A turn that loses nothing has 100 %; one that loses a share x of `spread` has 103.17 exp(-4.354 x) - 3.17 %, a
        curve that lichess has published, and at least 0.
        """
        if not losses:
            return None
        shares = [103.1668 * math.exp(-4.354 * lost / self.spread) - 3.1669 for lost in losses]
        return sum(min(100.0, max(0.0, share)) for share in shares) / len(shares)
