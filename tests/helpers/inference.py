"""Evaluators in threads, and servers of the same protocol that are not plyzero's, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest

from plyzero.inference import wire
from plyzero.inference.batcher import Batcher
from plyzero.inference.evaluation_server import serving
from plyzero.network.model_loader import ModelWatch
from plyzero.network.onnx_network import reachable_observations
from plyzero.run.directory import Run
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch
from selfplay.evaluated_games import EvaluatedGames
from tests.helpers.surroundings import wait_until


@contextmanager
def server(run: Run, *, max_batch: int = 64, wait_seconds: float = 0.0, port: int = 0) -> Iterator[tuple[str, Batcher]]:
    """A server in threads, ready if the run has a model; its address."""
    with ExitStack() as stack:
        watch = stack.enter_context(ModelWatch(run.models, run.game, poll_seconds=0.05, threads=1))
        batcher = stack.enter_context(Batcher(watch, max_batch=max_batch, wait_seconds=wait_seconds))
        wait_until(lambda: batcher.label or not any(run.models.iterdir()))
        yield f"127.0.0.1:{stack.enter_context(serving(run, batcher, port=port))}", batcher


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


def records(games: dict[int, Games]) -> dict[int, list[bytes]]:
    """All bytes of the records of games, by seed."""
    parts = ("games", "positions", "moves", "observations")
    return {seed: [getattr(each, part).tobytes() for part in parts] for seed, each in games.items()}
