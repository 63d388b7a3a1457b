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
    """A call: its observations, `[n, C, H, W]` float32 with n > 0, and the function that takes the answer or error."""

    def __init__(self, observations: NDArray[np.float32], take: Callable[[Answer | Exception], object]) -> None:
        self.observations = observations
        self.take = take
        self.arrived = time.monotonic()
        self.is_cancelled = False

    def cancel(self) -> None:
        """Drop the call, unless its evaluation has begun."""
        self.is_cancelled = True


class Batcher:
    """Evaluates the calls of other threads with the newest model of a run: one thread for batches, one for models.

    A batch leaves when it is full, or when its oldest call has waited for `wait_seconds`. No call waits longer than
    that for another one, so it does not matter which clients are alive. A newer model is loaded while batches go on
    with the old one; models change between two batches, never within one. Before each batch the thread for batches
    also reads the connections that it watches, so calls that have arrived during a batch are in the next one.

    max_batch:   number of positions of a full batch.
    label:       the model in use, None if there is none.
    evaluations: number of positions evaluated so far.
    batches:     number of batches so far.
    """

    def __init__(self, watch: ModelWatch, *, max_batch: int, wait_seconds: float) -> None:
        self._watch = watch
        self._wait_seconds = wait_seconds
        self.max_batch = max_batch
        self.evaluations = 0
        self.batches = 0
        self._network: Network | None = None
        self._requests: deque[Request] = deque()
        self._refused: ModelRefusedError | None = None  # why the model that was loaded last is not used any more
        self._lock = threading.Lock()  # for the three above
        self._stopped = False
        self._tried: Network | None = None  # the model that has failed at a call, but not at positions of random games
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = socket.socketpair()
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        self.watch(self._woken, lambda: self._woken.recv(4096))
        self._threads = [Thread(self._evaluate_batches, name="batches"), Thread(self._load_models, name="models")]

    def _evaluate_batches(self) -> None:
        while not self._stopped:
            self._answer(self._next_batch())  # no variable, so that the memory of an answered batch is freed

    def _load_models(self) -> None:
        while not self._stopped:
            if error := self._refused:
                self._refused = None
                self._watch.refuse_current(error)
            if newer := self._watch.newer():
                with self._lock:
                    self._network = newer
                    self._refused = None
                log.info("model %s, %s", newer.label, newer.precision)
            self._watch.wait(0.2)

    def _next_batch(self) -> list[Request]:
        """Return whole calls with at most `max_batch` positions together, or one call with more; [] once it stops.

        Calls that have been cancelled are dropped.
        """
        timeout = 0.0 if self._requests else None
        while not self._stopped:
            for key, _ in self._selector.select(timeout):
                key.data()
            with self._lock:
                self._requests = deque(each for each in self._requests if not each.is_cancelled)
                if not self._requests:
                    timeout = None
                    continue
                timeout = self._requests[0].arrived + self._wait_seconds - time.monotonic()
                is_full = sum(len(each.observations) for each in self._requests) >= self.max_batch
                if timeout <= 0 or is_full:
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
        except ModelRefusedError as error:  # nobody has seen these answers yet
            assert network
            self._refuse(requests, network, error)
        except Exception as error:  # any error: no caller may wait forever
            for each in requests:
                each.take(error)
        else:
            self.evaluations += len(observations)
            self.batches += 1
            first = 0
            for each in requests:
                part = slice(first, first + len(each.observations))
                evaluation = Evaluation(logits[part], wdl[part])
                each.take(Answer(evaluation, network.fence, network.step, network.label))
                first = part.stop

    def _refuse(self, requests: list[Request], network: Network, error: ModelRefusedError) -> None:
        """Refuse a model that has failed, if it also fails at positions of random games.

        Otherwise refuse only the calls at which it fails: one client must not disable the model of all others.
        """
        try:
            if self._tried is not network:
                network.test_again()
                self._tried = network
                log.warning("positions of a client are refused, but not the model, which evaluates others: %s", error)
        except ModelRefusedError as refused:
            with self._lock:
                if self._network is network:  # otherwise a newer one has been loaded meanwhile
                    self._network = None
                    self._refused = refused
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
        """Evaluate a call that the thread for batches makes. Its `take` is called in that thread, and may not raise.

        The errors are NoModelError, ModelRefusedError if the model gives impossible answers, and UserError if it does
        so only for these positions.
        """
        with self._lock:
            self._requests.append(request)

    def submit(self, observations: NDArray[np.float32]) -> Future[Answer]:
        """Return the future answer to a call of another thread; cancel it if it is not needed any more."""
        future: Future[Answer] = Future()

        def take(found: Answer | Exception) -> None:
            if not future.set_running_or_notify_cancel():
                return
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

        def cancel_request(done: Future[Answer]) -> None:
            if done.cancelled():
                request.cancel()

        request = Request(observations, take)
        future.add_done_callback(cancel_request)
        self.add(request)
        self._wake()
        return future

    def _wake(self) -> None:
        with suppress(OSError):  # it has been woken often enough, or has stopped
            self._wakes.send(b"\0")

    def watch(self, connection: socket.socket, on_ready: Callable[[], object]) -> None:
        """Make the thread for batches call `on_ready`, which neither waits nor raises, while there are messages."""
        self._selector.register(connection, selectors.EVENT_READ, on_ready)

    def unwatch(self, connection: socket.socket) -> None:
        """End `watch`; to be called before the connection is closed."""
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
