"""Runs with a model, evaluators in threads, their clients, and servers of the protocol that are not plyzero's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from plyzero.kits.cluster import wire
from plyzero.kits.cluster.batcher import Batcher
from plyzero.kits.cluster.evaluation_server import serving
from plyzero.kits.cluster.remote_network import RemoteNetwork
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import reachable_observations
from plyzero.run.directory import Run
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch
from plyzero.selfplay.evaluated_games import EvaluatedGames
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until


def ready_run(root: Path, game: str = "tic-tac-toe", *options: str) -> Run:
    """A run with the model of step 10."""
    run = small_run(root, game, *options)
    add_model(run, 10)
    return run


@contextmanager
def server(run: Run, *, max_batch: int = 64, wait_seconds: float = 0.0, port: int = 0) -> Iterator[tuple[str, Batcher]]:
    """A server in threads, ready if the run has a model; its address."""
    with ExitStack() as stack:
        watch = stack.enter_context(ModelWatch(run.models, run.game, poll_seconds=0.05, threads=1))
        batcher = stack.enter_context(Batcher(watch, max_batch=max_batch, wait_seconds=wait_seconds))
        wait_until(lambda: batcher.label or not any(run.models.iterdir()))
        yield f"127.0.0.1:{stack.enter_context(serving(run, batcher, port=port))}", batcher


@contextmanager
def connected(
    run: Run, *, deadline_seconds: float = 20.0, retry_seconds: float = 3.0, **options: Any
) -> Iterator[tuple[RemoteNetwork, str, Batcher]]:
    """A client of a server with these options, the server's address and its batcher."""
    with (
        server(run, **options) as (address, batcher),
        closing(RemoteNetwork(address, run, deadline_seconds=deadline_seconds, retry_seconds=retry_seconds)) as remote,
    ):
        yield remote, address, batcher


@contextmanager
def other_server(**methods: Callable[[Any], Any]) -> Iterator[str]:
    """A server of some methods of the protocol, each a function of its request; its address."""
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            lambda request, context, method=method: method(request),
            request_deserializer=wire.MESSAGES[f"{name}Request"].FromString,
            response_serializer=wire.MESSAGES[f"{name}Response"].SerializeToString,
        )
        for name, method in methods.items()
    }
    made = grpc.server(ThreadPoolExecutor(4))
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.SERVICE, handlers),))
    port = made.add_insecure_port("127.0.0.1:0")
    made.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        made.stop(None).wait()


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


def batch_of(run: Run, size: int = 8) -> EvaluationBatch:
    return EvaluationBatch(reachable_observations(run.game)[:size], list)


def finished(games: EvaluatedGames, most: int) -> dict[int, Games]:
    """The games with the first `most` seeds, by seed."""
    found: dict[int, Games] = {}
    while not found.keys() >= set(range(most)):
        games.refresh()
        found |= {int(each.games["seed"][0]): each for each in games.run()}
    return {seed: found[seed] for seed in range(most)}


def same_games(run: Run, remote: RemoteNetwork, count: int) -> dict[int, Games]:
    """Games with a client are the same as with the network in this process, which is not loaded for them."""
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        expected = finished(EvaluatedGames(run, itertools.count(), watch), count)
    with ModelWatch(run.models, run.game, poll_seconds=60, threads=1) as watch:
        games = EvaluatedGames(run, itertools.count(), watch, remote)
        found = finished(games, count)
    assert games._network is None
    assert games.label == remote.label
    assert records(found) == records(expected)
    return found


def records(games: dict[int, Games]) -> dict[int, list[bytes]]:
    """All bytes of the records of games, by seed."""
    parts = ("games", "positions", "moves", "observations")
    return {seed: [getattr(each, part).tobytes() for part in parts] for seed, each in games.items()}
