"""Limits of a search: the time of a player, its share for the next move, and when a search ends to keep within it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.search.tree import PROVEN_LOSS

if TYPE_CHECKING:
    from plyzero.search.slots import SearchSlots

DEFAULT_SIMULATIONS: Final = 64
"""Simulations per move of a bot with a network, unless another number is given."""

NO_LIMIT: Final = 1_000_000
"""Simulations per move of a bot that only a clock limits."""

UNCHANGED: Final[Mapping[str, object]] = {}
"""No changes of the search settings."""

MOVES: Final = 25
"""The time left is planned for so many moves."""

SEARCH_SHARE: Final = 0.92
SPARE_SECONDS: Final = 0.005
"""A search may take this share of the time of a move, less these seconds: the rest is for what follows it."""

UNKNOWN_RATE: Final = 1e9
"""The rate until a search has been measured."""

END_SHARE: Final = 0.04
"""Share of the time of a move for exact ends (plyzero.search.solver)."""


@dataclass
class Clock:
    """The time of a player, all in seconds.

    main:      for the whole game.
    increment: added after each move.
    per_move:  for each move besides, which is lost if it is not used.
    left:      of `main` and the increments so far.
    rate:      `[1]`, simulations per second of the last search, which copies by `after` share.
    """

    main: float = 0.0
    increment: float = 0.0
    per_move: float = 0.0
    rate: list[float] = field(default_factory=lambda: [UNKNOWN_RATE])
    now: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        self.restart()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the clock that `text` describes, such as 5m+3s or 90s. Raises UserError if it does not."""
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([hms])?(?:\+(\d{1,6}(?:\.\d{1,6})?)s?)?", text)
        clock = match and cls(
            main=float(match[1]) * {"h": 3600, "m": 60}.get(match[2], 1), increment=float(match[3] or 0)
        )
        if not clock or not clock.main:
            raise UserError(f"expected a clock, such as 5m+3s with 3 s more after each move, got {shown(text)}")
        return clock

    def __str__(self) -> str:
        if not self.main:
            return f"{self.per_move:g} s a move"
        return f"{self.main:g} s" + (f" + {self.increment:g} s a move" if self.increment else "")

    def restart(self) -> None:
        """Begin a new game."""
        self.left = self.main

    def after(self, moves: int) -> Clock:
        """Return this clock after so many moves of a new game, each of which has taken its `seconds`."""
        clock = replace(self)
        for _ in range(moves):
            clock.left += self.increment - (clock.seconds() - self.per_move)
        return clock

    def seconds(self) -> float:
        """Return the time for the next move."""
        return self.per_move + min(self.left / MOVES + 0.9 * self.increment, 0.5 * self.left)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the clock run during a move."""
        began = self.now()
        yield
        self.left = max(0.0, self.left - (self.now() - began)) + self.increment


class TimeLimit:
    """The end of a search in time.

    simulations: number that seems to fit, at the clock's rate.
    """

    def __init__(self, clock: Clock) -> None:
        """The search begins now, and has its share of the next move's time."""
        self._clock, self._began = clock, clock.now()
        seconds = max(0.0, SEARCH_SHARE * clock.seconds() - SPARE_SECONDS)
        self._end, self.simulations = self._began + seconds, max(1, int(clock.rate[0] * seconds))
        self._last, self._longest = self._began, 0.0

    def is_over(self, slots: SearchSlots) -> bool:
        """Return whether the next batch may take too long, or no simulation that fits can change any choice."""
        now, made = self._clock.now(), slots.simulations()
        expected = slots.waiting / self._clock.rate[0]
        self._longest, self._last = max(self._longest, now - self._last), now
        left = self._end - now
        if left <= 1.5 * max(self._longest, expected):
            return True
        budget = slots.trees.slots["budget"] - slots.trees.slots["simulations"]
        return is_decided(slots, min(float(budget.max()), left * (made + 1) / max(1e-9, now - self._began)))

    def measure(self, simulations: int) -> None:
        """Keep the rate of this search, which has ended with so many simulations, unless these are too few."""
        if simulations >= 16 or self._clock.rate[0] == UNKNOWN_RATE:
            self._clock.rate[0] = (simulations + 1) / max(1e-9, self._clock.now() - self._began)


def is_decided(slots: SearchSlots, simulations: float) -> bool:
    """Return whether no action can get more visits, by so many simulations, than the most visited one of its root."""
    for root, edges in zip(slots.trees.nodes[:, 0], slots.trees.edges, strict=True):
        row = edges[root["first_edge"] : root["first_edge"] + root["num_edges"]]
        visits = np.sort(row["visits"][row["proven"] != PROVEN_LOSS])[-2:]
        if len(visits) == 2 and visits[1] - visits[0] <= simulations:
            return False
    return True


def describe_limits(
    simulations: int = DEFAULT_SIMULATIONS,
    search: Mapping[str, object] = UNCHANGED,
    clock: Clock | None = None,
    threads: int = 0,
) -> str:
    """Return these arguments of `find_player` as words, such as 64 simulations."""
    words = [] if clock and simulations == NO_LIMIT else [f"{simulations} simulations"]
    words += [f"{key}={json.dumps(value)}" for key, value in sorted(search.items())]
    return ", ".join(words + ([str(clock)] if clock else []) + ([f"{threads} threads"] if threads else []))
