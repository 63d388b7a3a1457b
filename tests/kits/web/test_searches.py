"""The queue of searches: whose turn it is, how many may wait, and how long one may take."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.web import searches
from plyzero.kits.web.searches import Searches


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run it in a thread of its own: the browser of other tests has left a loop in this one."""
    with ThreadPoolExecutor() as thread:
        return thread.submit(asyncio.run, coroutine).result()


def served(at_once: int, visitors: str) -> list[str]:
    """The order in which searches end that have come, while the first of them goes on, in the order of `visitors`."""
    order: list[str] = []
    may_end = threading.Event()

    async def ask(queue: Searches, visitor: str) -> None:
        def search(report):
            assert may_end.wait(60)
            order.append(visitor)
            return {}

        async for _ in queue.stream(search, visitor):
            pass

    async def everybody() -> None:
        queue = Searches(at_once)
        tasks = [asyncio.create_task(ask(queue, visitor)) for visitor in visitors]
        await asyncio.sleep(0)  # all are in the queue
        tasks[-1].cancel()
        may_end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(60):  # the thread of a search that was cancelled may still end
            while queue._free != at_once:
                await asyncio.sleep(0.01)

    run(everybody())
    return order


def test_visitors_take_turns_and_who_has_left_is_left_out():
    assert served(1, "aaaaabcbd") == [*"aabcabaa"]


def test_the_searches_of_a_visitor_are_bounded_without_refusing_others():
    queue = Searches(0)

    async def fill():
        tasks = [asyncio.create_task(anext(queue.stream(lambda report: {}, "many"))) for _ in range(40)]
        await asyncio.sleep(0)
        refused = await anext(queue.stream(lambda report: {}, "many"))
        tasks.append(asyncio.create_task(anext(queue.stream(lambda report: {}, "one"))))
        await asyncio.sleep(0)
        queue._end_turn()
        queue._end_turn()
        assert await tasks[0] == await tasks[-1] == {"done": True}
        for task in tasks:
            task.cancel()
        return refused["error"]

    assert run(fill()) == "40 searches are waiting already; try again later"


def test_a_search_that_takes_too_long_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(searches, "MAX_SECONDS", 0.0)

    def search(report):
        while True:
            report({})

    async def events() -> list[dict[str, Any]]:
        return [event async for event in Searches(1).stream(search, "")]

    assert run(events())[-1]["error"] == "the search has been ended after 0 s; ask for a smaller one"


def test_a_search_without_a_stream_has_its_turn_and_its_sentence():
    async def ask(queue: Searches, search):
        return await queue.result(search)

    def fails(report):
        raise UserError("no such board")

    queue = Searches(1)
    assert run(ask(queue, lambda report: {"found": 3}))["found"] == 3
    with pytest.raises(UserError, match=r"^no such board$"):
        run(ask(queue, fails))
