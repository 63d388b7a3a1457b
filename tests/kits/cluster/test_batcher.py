"""The batcher: a model that fails is dropped, and the one that comes after it is not blamed for it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np
import pytest

from plyzero.errors import ModelRefusedError, UserError
from plyzero.kits.cluster.batcher import Batcher, NoModelError
from plyzero.search.evaluators import Answer, Evaluation, EvaluationBatch
from tests.helpers.surroundings import wait_until


class Model:
    """A network of one action that says a number; `before` is called before each of its answers.

    It fails at observations above `most`.
    """

    most = 100.0

    def __init__(self, step: int, before: Callable[[], None] = lambda: None):
        self.fence, self.step, self.label, self.precision = 1, step, f"model {step}", "fp32"
        self.before = before

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        self.before()
        n = len(batch.observations)
        if (batch.observations > self.most).any():
            raise ModelRefusedError("impossible numbers")
        return Evaluation(np.full((n, 1), self.step, np.float32), np.tile(np.float32([0, 1, 0]), (n, 1)))

    def test_again(self) -> None:
        self.before()


class Watch:
    """Hands out models in turn, each once `ready` has so many permits, and notes which are refused."""

    def __init__(self, *models: Model):
        self.models, self.ready, self.refused = list(models), threading.Semaphore(1), []
        self.current: Model | None = None

    def newer(self) -> Model | None:
        if not self.models or not self.ready.acquire(blocking=False):
            return None
        self.current = self.models.pop(0)
        return self.current

    def refuse_current(self, error: ModelRefusedError) -> None:
        self.refused.append(self.current.step)

    def wait(self, seconds: float) -> None:
        time.sleep(0.01)


@contextmanager
def batcher(watch: Watch) -> Iterator[Batcher]:
    with Batcher(watch, max_batch=8, wait_seconds=0) as made:  # type: ignore[arg-type]
        wait_until(lambda: made.label)
        yield made


def submit(made: Batcher) -> Future[Answer]:
    return made.submit(np.zeros((1, 1, 1, 1), np.float32))


def raise_refusal() -> None:
    raise ModelRefusedError("it is no good")


def test_a_model_that_fails_is_refused_and_the_next_one_is_used():
    watch = Watch(Model(1, before=raise_refusal), Model(2))
    with batcher(watch) as made:
        with pytest.raises(ModelRefusedError, match="no good"):
            submit(made).result(10)
        with pytest.raises(NoModelError):
            submit(made).result(10)
        watch.ready.release()
        wait_until(lambda: made.label)
        assert submit(made).result(10).step == 2
    assert watch.refused == [1]


def test_a_model_that_fails_at_the_positions_of_one_client_stays_and_the_others_are_answered():
    watch = Watch(Model(1))
    with Batcher(watch, max_batch=3, wait_seconds=60) as made:  # type: ignore[arg-type]
        wait_until(lambda: made.label)
        for _ in range(2):
            wrong, *others = [made.submit(np.full((1, 1, 1, 1), value, np.float32)) for value in (1e4, 1, 2)]
            with pytest.raises(UserError, match="impossible numbers; it evaluates those of random games") as caught:
                wrong.result(10)
            assert not isinstance(caught.value, ModelRefusedError)
            assert [each.result(10).step for each in others] == [1, 1]
        assert made.label == "model 1"
    assert watch.refused == []


def test_a_model_that_fails_once_a_newer_one_is_loaded_is_not_mistaken_for_it():
    def fail_late() -> None:
        watch.ready.release()
        wait_until(lambda: made.label != "model 1")
        raise_refusal()

    watch = Watch(Model(1, before=fail_late), Model(2))
    with batcher(watch) as made:
        with pytest.raises(ModelRefusedError, match="no good"):
            submit(made).result(10)
        assert submit(made).result(10).step == 2
        time.sleep(0.1)  # for several looks
        assert made.label == "model 2"
    assert watch.refused == []


def test_calls_that_wait_when_it_stops_are_cancelled():
    watch = Watch(Model(1))
    with Batcher(watch, max_batch=8, wait_seconds=60) as made:  # type: ignore[arg-type]
        waiting = [submit(made) for _ in range(2)]
    assert all(each.done() for each in waiting)
