"""Batches of many calls: positions that arrive at about the same time are evaluated together by one network."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import ModelRefusedError
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import Network
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.threads import Thread

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """The evaluation of the positions of one call, and the model that has evaluated all of them."""

    evaluation: Evaluation
    fence: int
    step: int
    label: str


class NoModelError(Exception):
    """There is no model that can be used, usually because the run has none yet."""


@dataclass(frozen=True)
class _Request:
    observations: NDArray[np.float32]
    future: Future[Answer] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)


class Batcher:
    """Evaluates with the newest model of a run what other threads submit: one thread for batches, one for models.

    A batch leaves when it is full, or when its oldest call has waited for `wait_seconds`. No call waits for another one
    longer than that, so it does not matter who is alive. A newer model is loaded while batches go on with the old one;
    models change between two batches, never within one.

    max_batch:   number of positions with which a batch is full.
    label:       the model in use, None if there is none.
    evaluations: number of positions evaluated so far.
    batches:     number of batches so far.
    """

    def __init__(self, watch: ModelWatch, *, max_batch: int, wait_seconds: float) -> None:
        self._watch, self.max_batch, self._wait_seconds = watch, max_batch, wait_seconds
        self._network: Network | None = None
        self._requests: deque[_Request] = deque()
        self._refused: ModelRefusedError | None = None  # why the model that was loaded last is not used any more
        self._changed, self._stopped = threading.Condition(), False
        self._threads = [Thread(self._evaluate_batches, name="batches"), Thread(self._load_models, name="models")]
        self.evaluations = self.batches = 0

    def _evaluate_batches(self) -> None:
        while not self._stopped:
            requests = [each for each in self._next_batch() if each.future.set_running_or_notify_cancel()]
            if requests:
                self._answer(requests)

    def _load_models(self) -> None:
        while not self._stopped:
            if error := self._refused:
                self._refused = None
                self._watch.refuse_current(error)
            if newer := self._watch.newer():
                with self._changed:
                    self._network, self._refused = newer, None
                log.info("model %s, %s", newer.label, newer.precision)
            self._watch.wait(0.2)

    def _next_batch(self) -> list[_Request]:
        """Return whole calls, together at most `max_batch` positions unless one alone has more; [] once it stops.

        Calls that have been cancelled are dropped.
        """
        with self._changed:
            while not self._stopped:
                self._requests = deque(each for each in self._requests if not each.future.cancelled())
                left = self._requests[0].arrived + self._wait_seconds - time.monotonic() if self._requests else None
                is_full = sum(len(each.observations) for each in self._requests) >= self.max_batch
                if left is not None and (left <= 0 or is_full):
                    break
                self._changed.wait(left)
            taken: list[_Request] = []
            size = 0
            while self._requests and (not taken or size + len(self._requests[0].observations) <= self.max_batch):
                taken.append(self._requests.popleft())
                size += len(taken[-1].observations)
            return taken

    def _answer(self, requests: list[_Request]) -> None:
        network = self._network
        try:
            if network is None:
                raise NoModelError
            observations = np.concatenate([each.observations for each in requests])
            logits, wdl = network(EvaluationBatch(observations, list))
        except ModelRefusedError as error:  # before anybody has seen these answers
            with self._changed:
                if self._network is network:  # and no newer one has been loaded meanwhile
                    self._network, self._refused = None, error
            self._fail(requests, error)
        except Exception as error:  # of any kind: no caller may wait forever
            self._fail(requests, error)
        else:
            self.evaluations, self.batches, at = self.evaluations + len(observations), self.batches + 1, 0
            for each in requests:
                part = slice(at, at + len(each.observations))
                evaluation = Evaluation(logits[part], wdl[part])
                each.future.set_result(Answer(evaluation, network.fence, network.step, network.label))
                at = part.stop

    @staticmethod
    def _fail(requests: list[_Request], error: Exception) -> None:
        for each in requests:
            each.future.set_exception(error)

    @property
    def label(self) -> str | None:
        """The model in use, None if there is none."""
        return self._network.label if self._network else None

    def submit(self, observations: NDArray[np.float32]) -> Future[Answer]:
        """Return the future answer for `[n, C, H, W]`, n > 0; cancel it once it is not needed.

        Its errors are NoModelError, and ModelRefusedError if the model gives impossible answers.
        """
        request = _Request(observations)
        with self._changed:
            self._requests.append(request)
            self._changed.notify()
        return request.future

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        for thread in self._threads:
            thread.join()
        for each in self._requests:
            each.future.cancel()
