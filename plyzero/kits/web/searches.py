"""Searches in threads, whose progress is streamed. A search ends when its visitor leaves, or after a time."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Final

from plyzero.errors import UserError
from plyzero.rules.user_errors import with_location

MAX_SECONDS: Final = 120.0
"""Longest time that a search may take, in seconds."""

MAX_WAITING_OF_VISITOR: Final = 40
MAX_WAITING: Final = 200
"""Largest number of searches that wait, of one visitor and of all together."""

Event = Mapping[str, object]
"""Results of a search as JSON; the last event has `done`, and `error` where the search has failed."""

Report = Callable[[Event], None]
"""Hands an event to the visitor, unless it is empty. Raises LeftError when the visitor has left, and UserError
after MAX_SECONDS, so a search calls it often."""

log = logging.getLogger(__name__)


class LeftError(Exception):
    """The visitor for whom a search is made has left."""


class Searches:
    """Runs at most `at_once` searches at a time, each in a thread; the visitors whose searches wait take turns."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the next visitor first

    async def stream(self, search: Callable[[Report], Event], visitor: str = "") -> AsyncGenerator[Event]:
        """Yield the events that `search` reports, and at last what it returns, with `done`.

        visitor: its network address. It has at most MAX_WAITING_OF_VISITOR waiting searches, all together MAX_WAITING.

        An error becomes a last event with a sentence in `error`. If this iterator is closed before, the next report of
        the search raises LeftError.
        """
        own = len(self._waiting.get(visitor, ()))
        total = sum(len(turns) for turns in self._waiting.values())
        if own >= MAX_WAITING_OF_VISITOR or total >= MAX_WAITING:
            yield {"done": True, "error": f"{max(own, total)} searches are waiting already; try again later"}
            return
        await self._turn(visitor)
        events: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        left = threading.Event()
        deadline = time.monotonic() + MAX_SECONDS

        def report(event: Event) -> None:
            if left.is_set():
                raise LeftError
            if time.monotonic() > deadline and not event.get("done"):
                raise UserError(f"the search has been ended after {MAX_SECONDS:g} s; ask for a smaller one")
            if event:
                loop.call_soon_threadsafe(events.put_nowait, event)

        task = loop.run_in_executor(None, run_search, search, report)
        task.add_done_callback(lambda _: self._end_turn())
        try:
            while True:
                event = await events.get()
                yield event
                if event.get("done"):
                    return
        finally:
            left.set()

    async def result(self, search: Callable[[Report], Event], visitor: str = "") -> Event:
        """Return the result of `search`, without its events. Raises UserError if it fails or too many wait."""
        async with aclosing(self.stream(search, visitor)) as events:
            async for event in events:
                last = event
        if "error" in last:
            raise UserError(str(last["error"]))
        return last

    async def _turn(self, visitor: str) -> None:
        """Wait until a search of a visitor may begin."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(visitor, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:  # the visitor has left
            if turn.cancelled():
                with suppress(KeyError, ValueError):  # `_end_turn` has seen it first
                    self._waiting[visitor].remove(turn)
            else:
                self._end_turn()
            raise

    def _end_turn(self) -> None:
        """Start the first search of the next visitor, if any waits. This visitor then goes to the end of the queue."""
        while self._waiting:
            visitor = next(iter(self._waiting))
            turns = self._waiting.pop(visitor)
            turn = turns.popleft() if turns else None
            if turns:
                self._waiting[visitor] = turns
            if turn and not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def run_search(search: Callable[[Report], Event], report: Report) -> None:
    """Search, and report the result with `done`; an error as a sentence in `error`, unless the visitor has left."""
    with suppress(LeftError, RuntimeError):  # RuntimeError: the event loop is closed, because the server ends
        try:
            report({**search(report), "done": True})
        except UserError as error:
            report({"done": True, "error": str(error)})
        except LeftError:
            raise
        except (Exception, SystemExit) as error:
            log.exception("a search has failed")
            report({"done": True, "error": f"the search has failed: {with_location(error)}"})
