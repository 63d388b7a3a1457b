"""The replay ratio: how many positions may be trained for those that were generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ledger:
    """Counts positions, never batches or games. It lives in the trainer's state, and rolls back with it in a crash.

    bootstrap: full-search positions taken in that were made before the first model.
    generated: full-search positions taken in that were made with a model.
    trained:   positions that went through the optimiser, symmetries not counted.
    skipped:   credit given up because more of it had piled up than the window deserves.
    """

    bootstrap: int = 0
    generated: int = 0
    trained: int = 0
    skipped: int = 0

    def level(self, *, ratio: float, bootstrap_credit: float) -> float:
        """Return how many positions may be trained now; the trainer waits while it is less than a batch."""
        return bootstrap_credit + ratio * self.generated - self.trained - self.skipped

    def cap(self, level: float, *, most: float) -> None:
        """Give up what `level` has above `most`: a trainer that was away need not make up for all of it."""
        self.skipped += int(max(0.0, level - most))

    def replay_ratio(self, *, bootstrap_credit: float) -> float:
        """Return positions trained per position generated, the bootstrap left out on both sides."""
        return max(0.0, self.trained - bootstrap_credit) / self.generated if self.generated else 0.0
