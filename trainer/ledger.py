"""The replay ratio, as an account: generated positions earn credit, trained positions spend it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ledger:
    """Counts positions, never batches or games. It is part of the trainer's state and rolls back with it in a crash.

    bootstrap: full-search positions read that were generated before the first model.
    generated: full-search positions read that were generated with a model.
    trained:   positions that were in a batch of an optimiser step; symmetries do not count separately.
    free:      credit earned by the bootstrap, in positions, which the replay ratio does not count.
    skipped:   credit discarded by `cap`, in positions.
    credit:    positions that may be trained now; the trainer waits while this is less than a batch. Each position earns
               credit at the ratio in use when it is read, so changing the ratio of a run creates no debt.
    """

    bootstrap: int = 0
    generated: int = 0
    trained: int = 0
    free: float = 0.0
    skipped: float = 0.0
    credit: float = 0.0

    def earn(self, positions: int, *, ratio: float) -> None:
        """Add `positions` that were generated with a model; each earns `ratio` positions of credit."""
        self.generated += positions
        self.credit += ratio * positions

    def earn_bootstrap(self, positions: int, *, passes: float, limit: int) -> None:
        """Add `positions` that were generated before the first model.

        Each earns `passes` positions of credit; those beyond the first `limit` of the run earn nothing.
        """
        counted = min(limit, self.bootstrap + positions) - min(limit, self.bootstrap)
        self.bootstrap += positions
        self.free += passes * counted
        self.credit += passes * counted

    def spend(self, positions: int) -> None:
        """Count `positions` as trained."""
        self.trained += positions
        self.credit -= positions

    def cap(self, max_credit: float) -> None:
        """Discard credit above `max_credit`, so that a trainer that was stopped need not catch up completely."""
        surplus = max(0.0, self.credit - max_credit)
        self.skipped += surplus
        self.credit -= surplus

    @property
    def made(self) -> int:
        """Full-search positions read, with and without a model."""
        return self.bootstrap + self.generated

    def replay_ratio(self) -> float:
        """Return positions trained per position generated, both without the bootstrap."""
        return max(0.0, self.trained - self.free) / self.generated if self.generated else 0.0
