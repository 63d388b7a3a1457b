"""A worker's end of the replay store: finished games wait here until they are sealed."""

from __future__ import annotations

import logging
import time

from plyzero.records import Games
from plyzero.run import Run
from plyzero.segments import write_segment

log = logging.getLogger(__name__)


class Store:
    """Collects one worker's finished games and seals them by size or by age."""

    def __init__(self, run: Run, *, worker: str, incarnation: str) -> None:
        self._run, self._worker, self._incarnation = run, worker, incarnation
        self._waiting: list[Games] = []
        self._oldest = 0.0
        self._sequence = 0
        self._games = self._positions = self._full = 0
        self._unsealed = 0
        self.unsealed_full_positions = 0

    def add(self, games: Games) -> None:
        """Keep finished games until the next seal."""
        if not self._waiting:
            self._oldest = time.monotonic()
        self._waiting.append(games)
        self._games += len(games.games)
        self._positions += len(games.positions)
        self._full += games.num_full
        self._unsealed += len(games.positions)
        self.unsealed_full_positions += games.num_full

    def seal_if_due(self) -> None:
        """Seal if the games that wait are many or old enough."""
        settings = self._run.settings.selfplay
        if self._waiting and (
            self._unsealed >= settings.seal_positions or time.monotonic() - self._oldest >= settings.seal_seconds
        ):
            self.seal()

    def seal(self) -> None:
        """Put all that waits onto the volume as one segment."""
        if not self._waiting:
            return
        path = write_segment(
            self._run.segments,
            Games.concatenate(self._waiting),
            self._run.game,
            worker=self._worker,
            incarnation=self._incarnation,
            sequence=self._sequence,
        )
        log.info("sealed %s", path.name)
        self._waiting.clear()
        self._sequence += 1
        self._unsealed = 0
        self.unsealed_full_positions = 0

    def totals(self) -> dict[str, int]:
        """Return what this process has made: games, positions, full_positions."""
        return {"games": self._games, "positions": self._positions, "full_positions": self._full}
