"""Searches in threads, whose progress is streamed. A search ends when its visitor leaves."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from plyzero.errors import UserError

MAX_WAITING: Final = 200
"""So many searches may wait for others; further ones are refused."""

Event = dict[str, Any]
"""What a search has found, as JSON; the last one has `done`, and `error` where the search has failed."""

Report = Callable[[Event], None]
"""Hands an event to the visitor; raises LeftError if there is none any more."""

log = logging.getLogger(__name__)


class LeftError(Exception):
    """The visitor for whom a search is made has left."""


class Searches:
    """Runs at most so many searches at a time, each in a thread; the others wait in order."""

    def __init__(self, at_once: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def stream(self, search: Callable[[Report], Event]) -> AsyncIterator[Event]:
        """Yield the events that `search` reports, and at last what it returns, with `done`.

        An error becomes a last event with a sentence in `error`. If this iterator is closed before, the next report
        of the search raises LeftError.
        """
        if self._waiting >= MAX_WAITING:
            yield {"done": True, "error": f"{MAX_WAITING} searches are waiting already; try again later"}
            return
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        events: asyncio.Queue[Event] = asyncio.Queue()
        loop, left = asyncio.get_running_loop(), threading.Event()

        def report(event: Event) -> None:
            if left.is_set():
                raise LeftError
            loop.call_soon_threadsafe(events.put_nowait, event)

        task = loop.run_in_executor(None, _run, search, report)
        task.add_done_callback(lambda _: self._free.release())
        try:
            while True:
                event = await events.get()
                yield event
                if event.get("done"):
                    return
        finally:
            left.set()


def _run(search: Callable[[Report], Event], report: Report) -> None:
    try:
        try:
            report({**search(report), "done": True})
        except UserError as error:
            report({"done": True, "error": str(error)})
        except LeftError:
            raise
        except (Exception, SystemExit) as error:
            log.exception("a search has failed")
            report({"done": True, "error": f"the search has failed: {type(error).__name__}: {error}"})
    except (LeftError, RuntimeError):  # the loop is closed when the server ends
        pass
