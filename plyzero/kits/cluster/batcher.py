"""Batches of many calls: positions that arrive at about the same time are evaluated together by one network."""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import ModelRefusedError, UserError
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import Network
from plyzero.search.evaluators import Answer, Evaluation, EvaluationBatch
from plyzero.threads import Thread

log = logging.getLogger(__name__)


class NoModelError(Exception):
    """There is no model that can be used, usually because the run has none yet."""

    def __init__(self) -> None:
        super().__init__("there is no model yet; workers play without one until it comes")


class Request:
    """A call: `[n, C, H, W]` float32, n > 0, and what takes their evaluation, or the error that prevents it."""

    def __init__(self, observations: NDArray[np.float32], take: Callable[[Answer | Exception], object]) -> None:
        self.observations, self.take = observations, take
        self.arrived, self.is_cancelled = time.monotonic(), False

    def cancel(self) -> None:
        """Let nothing be evaluated any more, if that has not begun."""
        self.is_cancelled = True


class Batcher:
    """Evaluates with the newest model of a run what other threads submit: one thread for batches, one for models.

    A batch leaves when it is full, or when its oldest call has waited for `wait_seconds`. No call waits for another one
    longer than that, so it does not matter who is alive. A newer model is loaded while batches go on with the old one;
    models change between two batches, never within one. The thread for batches also reads the connections that it is
    given to watch, before each batch, so that what has arrived during the one before is in the next.

    max_batch:   number of positions with which a batch is full.
    label:       the model in use, None if there is none.
    evaluations: number of positions evaluated so far.
    batches:     number of batches so far.
    """

    def __init__(self, watch: ModelWatch, *, max_batch: int, wait_seconds: float) -> None:
        self._watch, self.max_batch, self._wait_seconds = watch, max_batch, wait_seconds
        self._network: Network | None = None
        self._requests: deque[Request] = deque()
        self._refused: ModelRefusedError | None = None  # why the model that was loaded last is not used any more
        self._lock, self._stopped = threading.Lock(), False  # of the three above
        self._tried: Network | None = None  # the model that has failed at a call, but not at positions of random games
        self._selector, (self._woken, self._wakes) = selectors.DefaultSelector(), socket.socketpair()
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        self.watch(self._woken, lambda: self._woken.recv(4096))
        self._threads = [Thread(self._evaluate_batches, name="batches"), Thread(self._load_models, name="models")]
        self.evaluations = self.batches = 0

    def _evaluate_batches(self) -> None:
        while not self._stopped:
            self._answer(self._next_batch())  # no name: nothing refers to a batch that has been answered

    def _load_models(self) -> None:
        while not self._stopped:
            if error := self._refused:
                self._refused = None
                self._watch.refuse_current(error)
            if newer := self._watch.newer():
                with self._lock:
                    self._network, self._refused = newer, None
                log.info("model %s, %s", newer.label, newer.precision)
            self._watch.wait(0.2)

    def _next_batch(self) -> list[Request]:
        """Return whole calls, together at most `max_batch` positions unless one alone has more; [] once it stops.

        Calls that have been cancelled are dropped.
        """
        timeout = 0.0 if self._requests else None
        while not self._stopped:
            for key, _ in self._selector.select(timeout):
                key.data()
            with self._lock:
                self._requests = deque(each for each in self._requests if not each.is_cancelled)
                timeout = self._requests[0].arrived + self._wait_seconds - time.monotonic() if self._requests else None
                is_full = sum(len(each.observations) for each in self._requests) >= self.max_batch
                if timeout is not None and (timeout <= 0 or is_full):
                    return self._take()
        return []

    def _take(self) -> list[Request]:
        taken: list[Request] = []
        size = 0
        while self._requests and (not taken or size + len(self._requests[0].observations) <= self.max_batch):
            taken.append(self._requests.popleft())
            size += len(taken[-1].observations)
        return taken

    def _answer(self, requests: list[Request]) -> None:
        network = self._network
        try:
            if not requests:
                return
            if network is None:
                raise NoModelError
            parts = [each.observations for each in requests]
            observations = np.concatenate(parts) if len(parts) > 1 else parts[0]
            logits, wdl = network(EvaluationBatch(observations, list))
        except ModelRefusedError as error:  # before anybody has seen these answers
            assert network
            self._refuse(requests, network, error)
        except Exception as error:  # of any kind: no caller may wait forever
            for each in requests:
                each.take(error)
        else:
            self.evaluations, self.batches, at = self.evaluations + len(observations), self.batches + 1, 0
            for each in requests:
                part = slice(at, at + len(each.observations))
                evaluation = Evaluation(logits[part], wdl[part])
                each.take(Answer(evaluation, network.fence, network.step, network.label))
                at = part.stop

    def _refuse(self, requests: list[Request], network: Network, error: ModelRefusedError) -> None:
        """Refuse a model that has failed if it fails at positions of random games too; otherwise only the calls at
        which it fails, since one client must not spoil it for the others."""
        try:
            if self._tried is not network:
                network.test_again()
                self._tried = network
                log.warning("positions of a client are refused, but not the model, which evaluates others: %s", error)
        except ModelRefusedError as refused:
            with self._lock:
                if self._network is network:  # and no newer one has been loaded meanwhile
                    self._network, self._refused = None, refused
            for each in requests:
                each.take(refused)
            return
        if len(requests) == 1:
            requests[0].take(UserError(f"{error}; it evaluates those of random games, so it stays in use"))
        else:
            for each in requests:
                self._answer([each])

    @property
    def label(self) -> str | None:
        """The model in use, None if there is none."""
        return self._network.label if self._network else None

    def add(self, request: Request) -> None:
        """Evaluate a call of the thread for batches, where its `take` is called too, and may not raise.

        The errors are NoModelError, ModelRefusedError if the model gives impossible answers, and UserError if it does
        so for these positions alone.
        """
        with self._lock:
            self._requests.append(request)

    def submit(self, observations: NDArray[np.float32]) -> Future[Answer]:
        """Return the future answer to a call of any other thread; cancel it once it is not needed."""
        future: Future[Answer] = Future()

        def take(found: Answer | Exception) -> None:
            if future.set_running_or_notify_cancel():
                if isinstance(found, Exception):
                    future.set_exception(found)
                else:
                    future.set_result(found)

        request = Request(observations, take)
        future.add_done_callback(lambda done: request.cancel() if done.cancelled() else None)
        self.add(request)
        self._wake()
        return future

    def _wake(self) -> None:
        with suppress(OSError):  # it has been woken often enough, or has stopped
            self._wakes.send(b"\0")

    def watch(self, connection: socket.socket, on_ready: Callable[[], object]) -> None:
        """Let the thread for batches call `on_ready`, which neither waits nor raises, while there are messages."""
        self._selector.register(connection, selectors.EVENT_READ, on_ready)

    def unwatch(self, connection: socket.socket) -> None:
        """End that; before the connection is closed."""
        self._selector.unregister(connection)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._wake()
        for thread in self._threads:
            thread.join()
        for each in self._requests:
            each.take(CancelledError())
        for closed in (self._selector, self._woken, self._wakes):
            closed.close()
