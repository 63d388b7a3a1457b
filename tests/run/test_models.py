"""Models: the newest good one is found, whatever else lies there."""

import errno
import threading
import time
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from plyzero.errors import UserError
from plyzero.network import model_loader
from plyzero.network.model_loader import MAX_ATTEMPTS, ModelWatch, load_model, load_newest
from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.trainer.export import untrained
from plyzero.trainer.retention import Retention
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.runs import small_run


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Untrained models by game."""
    games = ("tic-tac-toe", "connect-four")
    return {game: untrained(small_run(tmp_path_factory.mktemp("run") / "r", game)) for game in games}


@pytest.fixture
def watch(run: Run) -> Iterator[ModelWatch]:
    with ModelWatch(run.models, run.game, poll_seconds=0, threads=1) as watch:
        yield watch


def test_the_newest_is_the_highest_name(run: Run, content):
    assert load_newest(run.models, run.game) is None
    publish_model(run.models, content["tic-tac-toe"], fence=1, step=9)
    newest = publish_model(run.models, content["tic-tac-toe"], fence=2, step=3)
    for name in (".tmp-1", "000002-000000004-0123456.onnx", "best.onnx"):
        (run.models / name).touch()
    assert [name.step for name in list_models(run.models)] == [3, 9]
    network = load_newest(run.models, run.game)
    assert (network.label, network.fence, network.step) == (str(newest), 2, 3)


def test_a_model_of_a_step_is_found_or_it_is_said_why_not(run: Run, content):
    publish_model(run.models, content["connect-four"], fence=1, step=1)
    with pytest.raises(UserError, match="its game is 'connect-four v1', expected 'tic-tac-toe v1'"):
        load_newest(run.models, run.game)
    for step in (3, 9):
        publish_model(run.models, content["tic-tac-toe"], fence=1, step=step)
    assert load_newest(run.models, run.game, step=3).step == 3
    with pytest.raises(UserError, match=r"no model of step 4 in .*; the newest are 9 3 1"):
        load_newest(run.models, run.game, step=4)


def test_a_watch_returns_every_newer_model_once_and_never_an_older_one(run: Run, content, watch: ModelWatch):
    assert watch.newer() is None
    publish_model(run.models, content["tic-tac-toe"], fence=1, step=9)
    assert watch.newer().step == 9
    assert watch.newer() is None
    publish_model(run.models, content["tic-tac-toe"], fence=1, step=5)
    assert watch.newer() is None
    newest = publish_model(run.models, content["tic-tac-toe"], fence=2, step=1)
    assert (watch.newer().fence, watch.newer()) == (2, None)
    (run.models / str(newest)).unlink()
    assert watch.newer() is None


def wait_for(watch: ModelWatch) -> Network:
    deadline = time.monotonic() + 60
    while (network := watch.newer()) is None:
        assert time.monotonic() < deadline
        watch.wait(0.01)
    return network


def test_a_file_event_wakes_a_watch_long_before_its_poll(run: Run, content):
    with ModelWatch(run.models, run.game, poll_seconds=3600, threads=1) as watch:
        assert watch.newer() is None
        publish_model(run.models, content["tic-tac-toe"], fence=1, step=1)
        assert wait_for(watch).step == 1


@pytest.mark.parametrize("call", ["watchdog.observers.Observer", "watchdog.observers.api.BaseObserver.schedule"])
def test_a_watch_without_file_events_polls(run: Run, content, monkeypatch: pytest.MonkeyPatch, caplog, call: str):
    threads = threading.active_count()
    monkeypatch.setattr(call, failing(errno.EMFILE))
    with ModelWatch(run.models, run.game, poll_seconds=0.02, threads=1) as watch:
        for step in (1, 2):
            publish_model(run.models, content["tic-tac-toe"], fence=1, step=step)
            assert wait_for(watch).step == step
        assert threading.active_count() == threads
    assert caplog.text.count("no file events ([Errno 24] Too many open files): polling") == 1


def test_a_model_retired_meanwhile_is_passed_over(
    run: Run, content, watch: ModelWatch, monkeypatch: pytest.MonkeyPatch, caplog
):
    publish_model(run.models, content["tic-tac-toe"], fence=1, step=1)
    found = [ModelName(1, 2, "00000000"), *list_models(run.models)]
    monkeypatch.setattr("plyzero.network.model_loader.list_models", lambda _: found)
    assert watch.newer().step == 1
    assert not caplog.records


@pytest.mark.parametrize("damage", ["cut short", "emptied", "gone"])
def test_damage_to_the_newest_model_leaves_the_older_one_in_use(run: Run, content, watch: ModelWatch, damage: str):
    publish_model(run.models, content["tic-tac-toe"], fence=1, step=1)
    path = run.models / str(publish_model(run.models, content["tic-tac-toe"], fence=1, step=2))
    if damage == "gone":
        path.unlink()
        path.symlink_to(run.models / "nowhere")
    else:
        path.write_bytes(content["tic-tac-toe"][:1000] if damage == "cut short" else b"")
    assert load_newest(run.models, run.game).step == 1
    assert watch.newer().step == 1


def test_a_slow_reader_gets_a_model_while_old_ones_go(
    run: Run, content, watch: ModelWatch, monkeypatch: pytest.MonkeyPatch, caplog
):
    clock = Clock()
    retention, load, steps = Retention(run, clock=clock), load_model, iter(range(1, 31))

    def publish_some() -> None:
        for _, step in zip(range(5), steps, strict=False):
            publish_model(run.models, content["tic-tac-toe"], fence=1, step=step)
            clock.now += 60
            retention.prune(covered={}, window=[])

    def slowly(*arguments, **keywords) -> Network:
        publish_some()  # between listing and opening
        return load(*arguments, **keywords)

    monkeypatch.setattr(model_loader, "load_model", slowly)
    publish_some()
    assert load_newest(run.models, run.game).step == 5
    assert [watch.newer().step for _ in range(5)] == [10, 15, 20, 25, 30]
    assert watch.newer() is None
    assert len(list_models(run.models)) < 30
    later, first = list_models(run.models)[-2:]
    assert (first.step, later.step > 2) == (1, True)
    assert not caplog.records


@pytest.mark.parametrize("mended", [True, False])
def test_a_damaged_model_is_looked_at_a_few_times_and_warned_of_once(
    mended: bool, run: Run, content, watch: ModelWatch, monkeypatch: pytest.MonkeyPatch, caplog
):
    load = Mock(side_effect=load_model)
    monkeypatch.setattr(model_loader, "load_model", load)
    name = publish_model(run.models, content["tic-tac-toe"], fence=1, step=4)
    (run.models / str(name)).write_bytes(content["tic-tac-toe"][:-1])
    for _ in range(MAX_ATTEMPTS - 1):
        assert watch.newer() is None
    if mended:
        (run.models / str(name)).write_bytes(content["tic-tac-toe"])
        assert watch.newer().step == 4
    else:
        assert [watch.newer() for _ in range(4)] == [None] * 4
        assert load.call_count == MAX_ATTEMPTS
        assert caplog.text.count(f"keeping the old model: {name}: its content has the digest") == 1
