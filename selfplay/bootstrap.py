"""The bounded phase before the first model: without a network a worker would drown the store within seconds."""

from __future__ import annotations

import time

from plyzero.run import Run
from plyzero.segments import list_segments
from selfplay.store import Store


class Bootstrap:
    """Counts, over all workers, the full-search positions made without a model."""

    def __init__(self, run: Run, store: Store) -> None:
        self._run, self._store = run, store
        self._limit = run.settings.selfplay.bootstrap_positions
        self._made = 0
        self._next_count = 0.0

    def is_over(self) -> bool:
        """Tell whether there are enough; workers may overshoot by what they have not sealed, an eighth each."""
        if self._store.unsealed_full_positions >= self._limit / 8:
            self._store.seal()  # the other workers count it from here on
            self._next_count = 0.0
        if time.monotonic() >= self._next_count:
            self._made = sum(name.full for name in list_segments(self._run.segments) if name.bootstrap)
            self._next_count = time.monotonic() + 1
        return self._made + self._store.unsealed_full_positions >= self._limit
