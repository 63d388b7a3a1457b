"""The replay ratio: an account of the positions that may be trained, earned by those that were generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ledger:
    """Counts positions, never batches or games. It lives in the trainer's state, and rolls back with it in a crash.

    bootstrap: full-search positions taken in that were made before the first model.
    generated: full-search positions taken in that were made with a model.
    trained:   positions that went through the optimiser, symmetries not counted.
    free:      positions whose training the bootstrap paid for; the ratio leaves them out.
    skipped:   credit given up because more of it had piled up than the window deserves.
    credit:    positions that may be trained now; the trainer waits while it is less than a batch. Past ratios are in
               it as they were, so a run that goes on with another one has nothing to make up for.
    """

    bootstrap: int = 0
    generated: int = 0
    trained: int = 0
    free: float = 0.0
    skipped: float = 0.0
    credit: float = 0.0

    def earn(self, positions: int, *, ratio: float) -> None:
        """Take in positions that were made with a model."""
        self.generated += positions
        self.credit += ratio * positions

    def earn_bootstrap(self, positions: int, *, passes: float, limit: int) -> None:
        """Take in positions that were made without one; no more than `limit` of them in all earn anything."""
        counted = min(limit, self.bootstrap + positions) - min(limit, self.bootstrap)
        self.bootstrap += positions
        self.free += passes * counted
        self.credit += passes * counted

    def spend(self, positions: int) -> None:
        """Train `positions`."""
        self.trained += positions
        self.credit -= positions

    def cap(self, most: float) -> None:
        """Give up credit above `most`: a trainer that was away need not make up for all of it."""
        surplus = max(0.0, self.credit - most)
        self.skipped += surplus
        self.credit -= surplus

    def replay_ratio(self) -> float:
        """Return positions trained per position generated, the bootstrap left out on both sides."""
        return max(0.0, self.trained - self.free) / self.generated if self.generated else 0.0
