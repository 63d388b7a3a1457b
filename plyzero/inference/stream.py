"""One long gRPC call on which batches go out and their answers come back: cheaper than a call for each batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from plyzero.threads import start_thread


class Stream:
    """A stream of requests to a server that answers them in their order.

    After an error of the server, or after `close`, it has ended: all answers that are still missing, and all that are
    asked for later, are that error.
    """

    def __init__(self, method: Callable[[Iterator[Any]], Any]) -> None:
        """`method` takes an iterator of requests and returns a call, which is an iterator of answers."""
        self._requests: SimpleQueue[Any] = SimpleQueue()  # None ends them
        self._waiting: deque[Future[Any]] = deque()
        self._error: Exception | None = None
        self._lock = threading.Lock()  # of the two above
        self._call = method(iter(self._requests.get, None))
        start_thread(self._read, name="answers")

    def send(self, request: Any) -> Future[Any]:
        """Send a request on its way, and return its answer to be."""
        future: Future[Any] = Future()
        with self._lock:
            if self._error:
                future.set_exception(self._error)
            else:
                self._waiting.append(future)
                self._requests.put(request)
        return future

    def _read(self) -> None:
        error: Exception = self._call
        try:
            for answer in self._call:
                self._waiting.popleft().set_result(answer)
        except Exception as raised:  # whatever it is, nobody may wait forever
            error = raised
        with self._lock:
            self._error = error
        for future in self._waiting:
            future.set_exception(error)
        self._requests.put(None)

    def close(self) -> None:
        """End the stream; an answer that is still missing is an error."""
        self._call.cancel()
