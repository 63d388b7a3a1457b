"""The watch of models: when a worker of many loads a new one."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from plyzero.network import model_loader
from plyzero.network.model_loader import SPREAD_SECONDS, ModelWatch
from plyzero.rules.catalog import load_game
from plyzero.run.models import ModelName, publish_model
from tests.helpers.clock import Clock

POLL_SECONDS = 2.0


@pytest.fixture
def watch(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> ModelWatch:
    """A watch whose models are their names."""
    monkeypatch.setattr(model_loader, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(model_loader, "load_model", lambda directory, name, *_, **__: name)
    return ModelWatch(tmp_path, load_game("tic-tac-toe"), poll_seconds=POLL_SECONDS, threads=1)


def publish(watch: ModelWatch, step: int) -> ModelName:
    """Publish a model, of which the watch has a file event."""
    name = publish_model(watch._directory, b"%d" % step, fence=1, step=step)
    watch._woken.set()
    return name


def test_a_worker_alone_loads_a_model_at_its_file_event(watch: ModelWatch):
    watch.spread(1)
    for step in (1, 2, 3):
        assert watch.newer() is None
        name = publish(watch, step)
        assert watch.newer() == name


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize(("workers", "seconds"), [(11, 10 * SPREAD_SECONDS), (1000, POLL_SECONDS)])
def test_many_workers_load_a_model_at_random_moments_but_within_poll_seconds(
    share: float, workers: int, seconds: float, watch: ModelWatch, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(model_loader.random, "random", lambda: share)
    watch.spread(workers)
    assert watch.newer() is None  # a poll
    name = publish(watch, 1)
    began = clock.now
    while (found := watch.newer()) is None:
        clock.now += 0.01
    assert found == name
    assert clock.now - began == pytest.approx(share * seconds, abs=0.011)


def test_a_model_without_a_file_event_is_loaded_within_poll_seconds_by_many_too(watch: ModelWatch, clock: Clock):
    watch.spread(1000)
    for step in itertools.islice(itertools.count(1), 3):
        name = publish_model(watch._directory, b"%d" % step, fence=1, step=step)
        clock.now += POLL_SECONDS
        assert watch.newer() == name
