"""The evaluator: answers of a real server are those of the network, and nobody depends on it, or on another client."""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.inference import wire
from plyzero.inference.batcher import Batcher
from plyzero.inference.evaluation_server import serving
from plyzero.inference.remote_network import RemoteNetwork
from plyzero.play.model_loader import ModelWatch, load_newest
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run
from plyzero.run.models import publish_model
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch
from plyzero.search.onnx_network import reachable_observations
from selfplay.evaluated_games import LocalGames, RemoteGames
from tests.helpers.runs import small_run
from trainer.export import untrained


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = small_run(tmp_path / "r")
    publish_model(made.models, untrained(made), fence=1, step=10)
    return made


@contextmanager
def server(run: Run, *, max_batch: int = 64, wait_seconds: float = 0.0, port: int = 0) -> Iterator[tuple[str, Batcher]]:
    """A server in threads, ready if the run has a model; its address."""
    with ExitStack() as stack:
        watch = stack.enter_context(ModelWatch(run.models, run.game, poll_seconds=0.05, threads=1))
        batcher = stack.enter_context(Batcher(watch, max_batch=max_batch, wait_seconds=wait_seconds))
        while any(run.models.iterdir()) and not batcher.label:
            time.sleep(0.01)
        yield f"127.0.0.1:{stack.enter_context(serving(run, batcher, port=port))}", batcher


def batch_of(run: Run, size: int = 8) -> EvaluationBatch:
    return EvaluationBatch(reachable_observations(run.game)[:size], list)


def ask(address: str, method: str, **fields: Any) -> Any:
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.unary_unary(
            f"/{wire.SERVICE}/{method}",
            request_serializer=wire.MESSAGES[f"{method}Request"].SerializeToString,
            response_deserializer=wire.MESSAGES[f"{method}Response"].FromString,
        )
        return call(wire.MESSAGES[f"{method}Request"](**fields), timeout=60)


def refusal(address: str, method: str, **fields: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        ask(address, method, **fields)
    return caught.value.code().name, caught.value.details()


@pytest.mark.parametrize("game", ["tic-tac-toe", "tests.helpers.toys:Written"])  # one sends bits, one numbers
def test_answers_are_those_of_the_network_and_name_the_model(tmp_path: Path, game: str):
    run = small_run(tmp_path / "r", game)
    publish_model(run.models, untrained(run), fence=1, step=10)
    expected = load_newest(run.models, run.game)(batch_of(run))
    with server(run) as (address, _):
        for precision, tolerance in (("FP32", 1e-5), ("FP16", 2e-3)):
            remote = RemoteNetwork(address, run.game, precision=precision)
            found = remote(batch_of(run))
            assert found.logits == pytest.approx(expected.logits, abs=tolerance)
            assert found.wdl == pytest.approx(expected.wdl, abs=tolerance)
            assert (remote.fence, remote.step) == (1, 10)
            remote.close()


def test_both_kinds_of_observations_are_tested():
    assert [wire.sends_bits(load_game(name).start) for name in ("tic-tac-toe", "tests.helpers.toys:Written")] == [
        True,
        False,
    ]


def test_a_newer_model_is_used_between_two_batches_and_named_in_the_answer(run: Run):
    with server(run) as (address, _):
        remote = RemoteNetwork(address, run.game)
        remote(batch_of(run))
        publish_model(run.models, untrained(run), fence=2, step=20)
        while remote.step == 10:
            remote(batch_of(run))
        assert (remote.fence, remote.step) == (2, 20)
        remote.close()


def test_positions_of_two_clients_are_evaluated_in_one_batch(run: Run):
    with server(run, max_batch=16, wait_seconds=60) as (address, batcher), ThreadPoolExecutor() as pool:
        clients = [RemoteNetwork(address, run.game) for _ in range(2)]
        answers = list(pool.map(lambda client: client(batch_of(run)), clients))
        assert batcher.batches == 1
        assert batcher.evaluations == 16
        assert np.array_equal(answers[0].logits, answers[1].logits)
        for client in clients:
            client.close()


def test_a_batch_leaves_when_its_time_is_over_although_nobody_else_has_asked(run: Run):
    with server(run, max_batch=1000, wait_seconds=0.2) as (address, batcher):
        remote = RemoteNetwork(address, run.game)
        remote(batch_of(run))
        assert batcher.batches == 1
        remote.close()


def test_a_client_that_goes_while_it_waits_is_dropped_and_does_not_stall_the_other(run: Run):
    with server(run, max_batch=8, wait_seconds=60) as (address, batcher):
        gone, other = (RemoteNetwork(address, run.game) for _ in range(2))
        call = gone.send(batch_of(run, 5))
        while not batcher._requests:
            time.sleep(0.01)
        waiting = batcher._requests[0].future
        gone.close()
        assert call.answer() is None
        while not waiting.cancelled():
            time.sleep(0.01)
        assert len(other(batch_of(run)).wdl) == 8
        assert batcher.evaluations == 8
        other.close()


def test_no_model_yet_is_one_sentence_and_the_first_model_ends_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run = small_run(tmp_path / "r")
    with server(run) as (address, _):
        assert not ask(address, "ServerReady").ready
        assert ask(address, "ServerLive").live
        assert not ask(address, "ModelReady", name=run.game.identity).ready
        remote = RemoteNetwork(address, run.game, retry_seconds=0.1)
        assert not remote.is_ready
        assert "it has no model yet; evaluating here" in caplog.text
        assert remote.send(batch_of(run)).answer() is None
        publish_model(run.models, untrained(run), fence=1, step=10)
        while not remote.is_ready:
            remote.refresh()
            time.sleep(0.01)
        remote(batch_of(run))
        assert ask(address, "ModelReady", name=run.game.identity).ready
        remote.close()


def test_wrong_requests_are_refused_with_one_sentence(run: Run):
    with server(run) as (address, _):
        code, sentence = refusal(address, "ModelInfer", model_name="connect-four v1")
        assert (code, sentence) == (
            "INVALID_ARGUMENT",
            f"this evaluator is for {run.game.identity}, got a request for 'connect-four v1'",
        )
        content = wire.pack_observations(batch_of(run).observations, run.game.start)
        tensor = {"name": "observations", "datatype": "UINT8", "shape": [8, *wire.input_shape(run.game.start)]}
        right = {"model_name": run.game.identity, "inputs": [tensor], "raw_input_contents": [content]}
        assert ask(address, "ModelInfer", **right).outputs[0].datatype == "FP16"
        for wrong, part in (
            ({"inputs": [tensor | {"shape": [8, 99]}]}, "shape [8, 99]"),
            ({"inputs": [tensor | {"datatype": "FP32"}]}, "of type 'FP32'"),
            ({"raw_input_contents": [content[:-1]]}, "bytes for shape"),
            ({"raw_input_contents": []}, "0 contents"),
            ({"model_version": "7"}, "only the newest model is served"),
            ({"parameters": {"precision": {"string_param": "INT4"}}}, "expected precision FP16 or FP32, got 'INT4'"),
            ({"parameters": {"observation_shape": {"string_param": "1x2x3"}}}, "got '1x2x3'"),
        ):
            parameters = {
                name: wire.MESSAGES["InferParameter"](**value) for name, value in wrong.get("parameters", {}).items()
            }
            code, sentence = refusal(address, "ModelInfer", **(right | wrong | {"parameters": parameters}))
            assert code == "INVALID_ARGUMENT"
            assert part in sentence


def test_another_game_and_a_refused_port_are_one_warning_each_and_no_error(run: Run, caplog: pytest.LogCaptureFixture):
    with server(run) as (address, _):
        other = RemoteNetwork(address, load_game("connect-four"))
        assert not other.is_ready
        assert f"this evaluator is for {run.game.identity}" in caplog.text
    other.close()
    caplog.clear()
    refused = RemoteNetwork(address, run.game, retry_seconds=0.05)  # the server has gone
    for _ in range(20):
        refused.refresh()
        time.sleep(0.02)
    assert not refused.is_ready
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "UNAVAILABLE" in caplog.text
    refused.close()
    with pytest.raises(UserError, match="HOST:PORT, got 'localhost'"):
        RemoteNetwork("localhost", run.game)


def test_impossible_answers_are_not_used(run: Run):
    with server(run) as (address, _):
        remote = RemoteNetwork(address, run.game, precision="FP32")
        call = remote.send(batch_of(run))
        response = call._future.result()
        assert not isinstance(remote.find_answer(response, 8), str)
        assert "outputs are" in remote.find_answer(response, 9)
        response.raw_output_contents[1] = np.full(24, np.nan, np.float32).tobytes()
        assert "wdl are not finite" in remote.find_answer(response, 8)
        response.model_version = "mine"
        assert "does not name the model" in remote.find_answer(response, 8)
        remote.close()


def finished(games: LocalGames | RemoteGames, most: int) -> dict[int, Games]:
    """The games with the first `most` seeds, by seed."""
    found: dict[int, Games] = {}
    while not found.keys() >= set(range(most)):
        games.refresh()
        found |= {int(each.games["seed"][0]): each for each in games.run()}
    return {seed: found[seed] for seed in range(most)}


def test_games_are_the_same_as_with_the_network_in_this_process(run: Run):
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        expected = finished(LocalGames(run, itertools.count(), watch), 30)
    with (
        server(run) as (address, _),
        ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch,
    ):
        remote = RemoteNetwork(address, run.game, precision="FP32")
        games = RemoteGames(run, itertools.count(), watch, remote)
        found = finished(games, 30)
        assert games._network is None  # no model was loaded here
        assert games.label == remote.label
        remote.close()
    for seed, one in found.items():
        for part in ("games", "positions", "moves", "observations"):
            assert getattr(one, part).tobytes() == getattr(expected[seed], part).tobytes()


def test_a_server_that_goes_is_replaced_by_this_process_until_it_comes_back(run: Run, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    remote: RemoteNetwork | None = None
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        with server(run) as (address, _):
            remote = RemoteNetwork(address, run.game, retry_seconds=0.1)
            games = RemoteGames(run, itertools.count(), watch, remote)
            finished(games, 5)
        stamps: set[int] = set()
        while games._network is None or 10 not in stamps:
            games.refresh()
            stamps |= {int(step) for each in games.run() for step in each.positions["model_step"]}
        assert stamps <= {0, 10}  # 0: random opening moves
        publish_model(run.models, untrained(run), fence=1, step=30)
        with server(run, port=int(address.rpartition(":")[2])) as (_, batcher):
            while not batcher.evaluations or not batcher.label or remote.step != 30:
                games.refresh()
                games.run()
        remote.close()
    words = [record.message for record in caplog.records if "the evaluator 127" in record.message]
    assert ["answers, model" in each for each in words[:3]] == [True, False, True]
    assert "evaluating here" in words[1]


def test_a_worker_stops_while_the_server_does_not_answer(run: Run):
    from selfplay.worker import run_worker

    stop = threading.Event()
    remote = RemoteNetwork("127.0.0.1:9", run.game)
    worker = threading.Thread(target=run_worker, args=(run,), kwargs={"name": "w", "stop": stop, "evaluator": remote})
    worker.start()
    while not any(run.segments.iterdir()):
        assert worker.is_alive()
        time.sleep(0.05)
    stop.set()
    worker.join(60)
    assert not worker.is_alive()
    remote.close()
