"""The evaluator: answers of a real server are those of the network, and nobody depends on it, or on another client."""

import itertools
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.cluster import model_repository, wire
from plyzero.kits.cluster.evaluation_server import run_evaluator
from plyzero.kits.cluster.local_evaluator import LocalEvaluator
from plyzero.kits.cluster.remote_network import RemoteNetwork
from plyzero.network import model_loader
from plyzero.network.model_loader import ModelWatch, load_newest
from plyzero.run.directory import Run, RunId, open_run
from plyzero.run.events import read_heartbeats
from plyzero.run.metrics import TRAINER, Heartbeat
from plyzero.run.models import ModelName
from plyzero.search.evaluators import EvaluationBatch
from plyzero.selfplay.evaluated_games import EvaluatedGames
from plyzero.testing import EvaluatorContract
from tests.helpers.inference import ask, batch_of, connected, finished, ready_run, refusal, same_games, server
from tests.helpers.learning import add_model
from tests.helpers.runs import playing, small_run
from tests.helpers.surroundings import wait_until

PARTS = [slice(0, 1), slice(1, 4), slice(4, 6)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return ready_run(tmp_path / "r")


@pytest.fixture
def by_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator is on another machine."""
    monkeypatch.setattr(LocalEvaluator, "find", lambda run, port: None)


@pytest.fixture(params=["shared memory", "gRPC"])
def way(request: pytest.FixtureRequest) -> str:
    """Each way to the evaluator in turn."""
    if request.param == "gRPC":
        request.getfixturevalue("by_grpc")
    return request.param


@pytest.mark.parametrize("game", ["tic-tac-toe", "tests.helpers.toys:Written"])  # by gRPC one sends bits, one numbers
class TestRemoteNetwork(EvaluatorContract):
    @pytest.fixture(autouse=True)
    def given(self, game: str, tmp_path: Path, way: str) -> Iterator[None]:
        self.game, self.run = game, ready_run(tmp_path / "r", game)
        with connected(self.run) as (self.remote, _, _):
            yield

    def evaluator(self) -> RemoteNetwork:
        return self.remote

    def test_answers_are_those_of_the_network_and_name_the_model(self, way: str) -> None:
        expected = load_newest(self.run.models, self.run.game)(batch_of(self.run))
        found = self.remote(batch_of(self.run))
        assert found.logits == pytest.approx(expected.logits, abs=1e-5)
        assert found.wdl == pytest.approx(expected.wdl, abs=1e-5)
        assert (self.remote.fence, self.remote.step) == (1, 10)
        assert (self.remote._local is None) == (way == "gRPC")


@pytest.mark.usefixtures("way")
def test_answers_go_on_while_a_newer_model_is_loaded(run: Run, monkeypatch: pytest.MonkeyPatch):
    begun, may_end, load = threading.Event(), threading.Event(), model_loader.load_model

    def load_slowly(directory: Path, name: ModelName, *arguments: Any, **more: Any) -> Any:
        if name.step == 20:
            begun.set()
            assert may_end.wait(60)
        return load(directory, name, *arguments, **more)

    monkeypatch.setattr(model_loader, "load_model", load_slowly)
    with connected(run, deadline_seconds=5) as (remote, _, _):
        add_model(run, 20)
        assert begun.wait(60)
        try:
            for _ in range(20):
                remote(batch_of(run))
                assert remote.step == 10
        finally:
            may_end.set()
        while remote.step == 10:
            remote(batch_of(run))
        assert remote.step == 20


@pytest.mark.usefixtures("way")
def test_positions_of_two_clients_are_evaluated_in_one_batch(run: Run):
    with connected(run, max_batch=16, wait_seconds=60) as (remote, address, batcher), ThreadPoolExecutor() as pool:
        clients = [remote, RemoteNetwork(address, run)]
        answers = list(pool.map(lambda client: client(batch_of(run)), clients))
        assert batcher.batches == 1
        assert batcher.evaluations == 16
        assert np.array_equal(answers[0].logits, answers[1].logits)
        clients[1].close()


def test_a_batch_leaves_when_its_time_is_over_although_nobody_else_has_asked(run: Run):
    with connected(run, max_batch=1000, wait_seconds=0.2) as (remote, _, batcher):
        remote(batch_of(run))
        assert batcher.batches == 1


@pytest.mark.usefixtures("way")
def test_a_client_that_goes_while_it_waits_does_not_stall_the_other(run: Run):
    with connected(run, max_batch=8, wait_seconds=60) as (other, address, batcher):
        gone = RemoteNetwork(address, run)
        call = gone.send(batch_of(run, 5))
        wait_until(lambda: batcher._requests)
        waiting = batcher._requests[0]
        gone.close()
        assert call.answer() is None
        wait_until(lambda: waiting.is_cancelled)
        assert len(other(batch_of(run)).wdl) == 8
        assert batcher.evaluations == 8


@pytest.mark.usefixtures("way")
def test_batches_of_one_client_are_answered_in_order_with_several_in_flight(run: Run):
    with connected(run, max_batch=6, wait_seconds=60) as (remote, _, batcher):
        expected = load_newest(run.models, run.game)(batch_of(run, 6)).wdl
        calls = [remote.send(EvaluationBatch(batch_of(run, 6).observations[part], list)) for part in PARTS]
        answers = [call.answer() for call in calls]
        assert batcher.batches == 1
        for part, answer in zip(PARTS, answers, strict=True):
            assert answer.evaluation.wdl == pytest.approx(expected[part], abs=1e-5)


@pytest.mark.usefixtures("way")
def test_a_batch_that_is_late_is_given_up_and_the_next_is_answered(run: Run, caplog, monkeypatch):
    late = {"deadline_seconds": 0.3, "retry_seconds": 0.1}
    with connected(run, max_batch=8, wait_seconds=60, **late) as (remote, address, batcher):
        submitted, add = [], batcher.add
        monkeypatch.setattr(batcher, "add", lambda request: add(request) or submitted.append(request))
        calls = [remote.send(batch_of(run, 3)) for _ in range(2)]
        wait_until(lambda: len(submitted) == 2)
        assert [call.answer() for call in calls] == [None, None]
        late = f"the evaluator {address} is not used: it has not answered a batch in time; evaluating here"
        assert [record.message for record in caplog.records] == [late]
        wait_until(lambda: remote.refresh() or remote.is_ready)
        wait_until(lambda: all(request.is_cancelled for request in submitted))  # once the server hears of it
        assert len(remote(batch_of(run, 8)).wdl) == 8
        assert batcher.evaluations == 8  # what was late has been dropped


@pytest.mark.usefixtures("by_grpc")
def test_a_late_batch_has_the_same_reason_if_grpc_notices_first(run: Run, caplog: pytest.LogCaptureFixture):
    with connected(run, max_batch=8, wait_seconds=60, deadline_seconds=0.1) as (remote, _, _):
        call = remote.send(batch_of(run, 3))
        wait_until(call._receive.args[0].done)
        assert call.answer() is None
        assert "it has not answered a batch in time; evaluating here" in caplog.text


def test_the_positions_of_a_call_are_bounded(run: Run):
    name, shape = wire.model_name(run), wire.input_shape(run.game.start, "UINT8")
    with server(run, max_batch=2) as (address, _):

        def send(positions: int) -> tuple[str, str]:
            tensor = {"name": "observations", "datatype": "UINT8", "shape": [positions, *shape]}
            content = bytes(positions * shape[0])
            return refusal(address, "ModelInfer", model_name=name, inputs=[tensor], raw_input_contents=[content])

        assert send(9) == (
            "INVALID_ARGUMENT",
            "expected at most 8 positions in a call, got 9; send them in parts, or start the evaluator with "
            "--max-batch 9",
        )
        assert send(1 << 20)[0] == "RESOURCE_EXHAUSTED"  # before it is in memory


@pytest.mark.usefixtures("way")
def test_no_model_yet_is_one_sentence_and_the_first_model_ends_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run = small_run(tmp_path / "r")
    with connected(run, retry_seconds=0.1) as (remote, address, _):
        assert not ask(address, "ServerReady").ready
        assert ask(address, "ServerLive").live
        assert not ask(address, "ModelReady", name=wire.model_name(run)).ready
        assert not remote.is_ready
        assert "there is no model yet; workers play without one until it comes" in caplog.text
        assert remote.send(batch_of(run)).answer() is None
        add_model(run, 10)
        wait_until(lambda: remote.refresh() or remote.is_ready)
        remote(batch_of(run))
        assert ask(address, "ModelReady", name=wire.model_name(run)).ready


def request_of(run: Run) -> dict[str, Any]:
    content = wire.pack_observations(batch_of(run).observations, "UINT8")
    tensor = {"name": "observations", "datatype": "UINT8", "shape": [8, *wire.input_shape(run.game.start, "UINT8")]}
    return {"model_name": wire.model_name(run), "inputs": [tensor], "raw_input_contents": [content]}


def test_wrong_requests_are_refused_with_one_sentence(run: Run):
    with server(run) as (address, _):
        name = wire.model_name(run)
        assert refusal(address, "ModelInfer", model_name="connect-four_v1") == (
            "INVALID_ARGUMENT",
            f"this evaluator is for {name}, got a request for 'connect-four_v1'; give both the same --run",
        )
        right = request_of(run)
        (tensor,), (content,) = right["inputs"], right["raw_input_contents"]
        assert ask(address, "ModelInfer", **right).outputs[0].datatype == "FP32"
        shape = wire.MESSAGES["InferParameter"](string_param="1x2x3")
        for wrong, part in (
            ({"inputs": [tensor | {"shape": [8, 99]}]}, "shape [8, 99]"),
            ({"inputs": [tensor | {"datatype": "FP32"}]}, "of type 'FP32'"),
            ({"raw_input_contents": [content[:-1]]}, "bytes for shape"),
            ({"raw_input_contents": []}, "0 contents"),
            ({"model_version": "7"}, "only the newest model is served"),
            ({"parameters": {"observation_shape": shape}}, "got '1x2x3'"),
        ):
            code, sentence = refusal(address, "ModelInfer", **(right | wrong))
            assert code == "INVALID_ARGUMENT"
            assert part in sentence


@pytest.mark.usefixtures("way")
def test_huge_numbers_of_one_client_leave_the_model_to_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run = ready_run(tmp_path / "r", "tests.helpers.toys:Written")
    with connected(run) as (remote, address, batcher):
        for number in (3e38, np.nan, 6e4):
            observations = batch_of(run, 2).observations.copy()
            observations[1] = number
            client = RemoteNetwork(address, run)
            if client.send(EvaluationBatch(observations, list)).answer() is None:
                assert "expected observations of numbers between -65504 and 65504, got some that are not" in caplog.text
            client.close()
            assert remote.send(batch_of(run)).answer().step == 10
        assert batcher.label
    assert "the model is no longer used" not in caplog.text


def test_an_evaluator_of_another_run_is_refused_and_no_move_is_recorded_as_its(run: Run, tmp_path: Path, caplog):
    other = small_run(tmp_path / "other")  # of the same game, with another network
    add_model(other, 70)
    with server(other) as (address, batcher), ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        remote = RemoteNetwork(address, run, retry_seconds=0.01)
        games = finished(EvaluatedGames(run, itertools.count(), watch, remote), 8)
        remote.close()
        assert not batcher.evaluations
    searched = [each.positions[each.positions["search"] > 0] for each in games.values()]
    evaluators = np.unique(np.concatenate(searched)[["model_fence", "model_step"]])
    assert evaluators.tolist() == [(1, 10)]  # the run's own, in this process
    wanted, found = wire.model_name(run), wire.model_name(other)
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"the evaluator {address} is not used: this evaluator is for {found}, got a request for '{wanted}'; "
        "give both the same --run (INVALID_ARGUMENT); evaluating here"
    ]


def test_an_evaluator_of_a_fork_is_refused_while_it_has_a_model_that_the_run_has_not(run: Run, tmp_path: Path, caplog):
    shutil.copytree(run.root, tmp_path / "fork")
    fork = open_run(tmp_path / "fork")
    with server(fork) as (address, _):
        remote = RemoteNetwork(address, run)
        assert remote.send(batch_of(run)).answer().step == 10
        name = add_model(fork, 20, fence=2)
        while (answer := remote.send(batch_of(run)).answer()) is not None:
            assert answer.step == 10
        assert f"its answer names '{name}', which is no model of the run; evaluating here" in caplog.text
        shutil.copy(fork.models / str(name), run.models)
        assert remote.send(batch_of(run)).answer().step == 20
        remote.close()


@pytest.mark.usefixtures("by_grpc")
def test_an_answer_that_says_that_it_is_of_another_run_is_refused(run: Run, caplog, monkeypatch):
    with connected(run) as (remote, address, _):
        assert ask(address, "ModelInfer", **request_of(run)).parameters["run"].string_param == run.id.text
        monkeypatch.setattr(remote, "_id", RunId("0123456789abcdef"))
        assert remote.send(batch_of(run)).answer() is None
    assert f"its answer is refused: it is of the run '{run.id.text}', and this is the run 01234567" in caplog.text


def test_a_server_that_has_gone_is_one_warning_and_no_error(run: Run, caplog: pytest.LogCaptureFixture):
    with server(run) as (address, _):
        pass
    refused = RemoteNetwork(address, run, retry_seconds=0.05)
    for _ in range(20):
        refused.refresh()
        time.sleep(0.02)
    assert not refused.is_ready
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "UNAVAILABLE" in caplog.text
    refused.close()
    with pytest.raises(UserError, match="HOST:PORT, got 'localhost'"):
        RemoteNetwork("localhost", run)


@pytest.mark.usefixtures("by_grpc")
def test_impossible_answers_are_not_used(run: Run):
    with connected(run) as (remote, address, _):
        response = ask(address, "ModelInfer", **request_of(run))
        assert not isinstance(remote.find_answer(response, 8), str)
        assert "its outputs are" in remote.find_answer(response, 9)
        response.raw_output_contents[1] = np.full(24, np.nan, np.float32).tobytes()
        assert "wdl are not finite" in remote.find_answer(response, 8)
        response.model_version = "mine"
        assert "its answer names 'mine', which is no model of the run" in remote.find_answer(response, 8)


CHEAP = ("selfplay.parallel_games=4", "selfplay.simulations=8", "selfplay.fast_simulations=2")
SEVERAL_KINDS = {
    "tic-tac-toe": (30, ()),
    "plyzero.check.template.tic_tac_toe:TicTacToe": (12, CHEAP),  # plain Python
    "tests.helpers.dice:PlainRace": (12, CHEAP),  # dice
    "othello": (2, CHEAP),  # a larger board
}
"""Game -> how many games are compared, and under which settings."""


@pytest.mark.parametrize("game", SEVERAL_KINDS)
@pytest.mark.usefixtures("way")
def test_games_are_the_same_as_with_the_network_in_this_process(tmp_path: Path, game: str):
    count, options = SEVERAL_KINDS[game]
    run = ready_run(tmp_path / "r", game, *options)
    with connected(run) as (remote, _, _):
        found = same_games(run, remote, count)
    assert {int(step) for each in found.values() for step in each.positions["model_step"]} <= {0, 10}


@pytest.mark.usefixtures("way")
def test_a_server_that_goes_is_replaced_by_this_process_until_it_comes_back(run: Run, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        with server(run) as (address, _):
            remote = RemoteNetwork(address, run, retry_seconds=0.1)
            games = EvaluatedGames(run, itertools.count(), watch, remote)
            finished(games, 5)
        stamps: set[int] = set()
        while games._network is None or 10 not in stamps:
            games.refresh()
            stamps |= {int(step) for each in games.run() for step in each.positions["model_step"]}
        assert stamps <= {0, 10}  # 0: random opening moves
        add_model(run, 30)
        with server(run, port=int(address.rpartition(":")[2])) as (_, batcher):
            while not batcher.evaluations or not batcher.label or remote.step != 30:
                games.refresh()
                games.run()
        remote.close()
    words = [record.message for record in caplog.records if "the evaluator 127" in record.message]
    assert [" answers " in each for each in words[:3]] == [True, False, True]
    assert "evaluating here" in words[1]


def test_a_worker_stops_while_the_server_does_not_answer(run: Run):
    remote = RemoteNetwork("127.0.0.1:9", run)
    with playing(run, evaluator=remote) as until:
        until(lambda: any(run.segments.iterdir()))
    remote.close()


def test_an_evaluator_ends_with_its_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model_repository, "LAST_SECONDS", 0.0)
    over = {"role": TRAINER, "state": "stopped", "step": 10, "done": "10 steps"}
    Heartbeat(run.workers / f"{TRAINER}.json").beat(over)
    batches: dict[str, Any] = {"max_batch": 8, "wait_seconds": 0.0, "threads": 1, "stop": threading.Event()}
    run_evaluator(run, host="127.0.0.1", port=0, **batches)
    model_repository.keep_repository(run, tmp_path / "repository", **batches)
    beats = [beat for name, beat in read_heartbeats(run.workers).items() if name.startswith("evaluator.")]
    assert [beat.state for beat in beats] == ["stopped"] * 2
