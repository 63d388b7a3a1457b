"""`plyzero evaluator`: a gRPC server of the Open Inference Protocol that evaluates with the newest model of a run."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from grpc import ServicerContext

from plyzero.errors import ModelRefusedError, UserError, plain, shown
from plyzero.kits.cluster import wire
from plyzero.kits.cluster.batcher import Batcher, NoModelError
from plyzero.kits.cluster.mailboxes import serving_mailboxes
from plyzero.network.model_loader import ModelWatch
from plyzero.run.budget import EndOfRun
from plyzero.run.directory import Run
from plyzero.run.metrics import Heartbeat

CODES: Final[dict[type[Exception], grpc.StatusCode]] = {
    NoModelError: grpc.StatusCode.UNAVAILABLE,
    ModelRefusedError: grpc.StatusCode.INTERNAL,
    UserError: grpc.StatusCode.INVALID_ARGUMENT,
    CancelledError: grpc.StatusCode.CANCELLED,
}
"""Error of a call -> its status."""

log = logging.getLogger(__name__)


def run_evaluator(
    run: Run, *, host: str, port: int, max_batch: int, wait_seconds: float, threads: int, stop: threading.Event
) -> None:
    """Serve until `stop` is set or the run is over. Raises UserError if the address cannot be used.

    max_batch:    number of positions of a full batch, which leaves at once.
    wait_seconds: time after which a batch leaves with fewer.
    threads:      number of threads for inference on the CPU.
    """
    name = f"evaluator.{uuid.uuid4().hex[:8]}"
    heartbeat = Heartbeat(*run.heartbeats(name))
    watch = ModelWatch.of(run, threads=threads, precision=run.settings.selfplay.precision, largest=max_batch)
    began = time.monotonic()
    with watch, Batcher(watch, max_batch=max_batch, wait_seconds=wait_seconds) as batcher:

        def describe(state: str) -> dict[str, object]:
            return {
                "role": "evaluator",
                "state": state,
                "model": batcher.label,
                "evaluations": batcher.evaluations,
                "batches": batcher.batches,
                "read_error": watch.read_error,
                "seconds": round(time.monotonic() - began, 1),
            }

        with serving(run, batcher, host=host, port=port, name=name) as bound:
            log.info("evaluates %s on %s:%d, at most %d positions at once", run.game.name, host, bound, max_batch)
            end = EndOfRun(run)
            while not (stop.wait(0.5) or end.reached()):
                heartbeat.beat(describe("serving" if batcher.label else "waiting for the first model"))
        heartbeat.beat(describe("stopped"), force=True)
    if done := end.reached():
        log.info("END, %s reached", done)


@contextmanager
def serving(
    run: Run, batcher: Batcher, *, host: str = "127.0.0.1", port: int = 0, name: str = "evaluator.00000000"
) -> Iterator[int]:
    """Start a server in threads; yield its port. Raises UserError if the address cannot be used.

    port: 0 = any that is free.
    name: the name of its heartbeat, which no other process has.
    """
    largest = wire.largest_call(run, batcher.max_batch)
    options = [
        ("grpc.so_reuseport", 0),  # a second server on the same port is an error
        ("grpc.max_concurrent_streams", 64),  # per connection; a worker needs two
        ("grpc.max_receive_message_length", wire.largest_request(run.game.start, largest)),
        ("grpc.max_send_message_length", wire.MAX_MESSAGE_BYTES),
    ]
    # A worker has one call in the server at a time; further calls wait in gRPC.
    server = grpc.server(ThreadPoolExecutor(2048, thread_name_prefix="call"), options=options)
    server.add_generic_rpc_handlers((_handlers(EvaluationService(run, batcher, largest)),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise UserError(f"cannot listen on {address}; expected a free port and an address of this machine") from error
    with serving_mailboxes(run, batcher, name=name, port=bound, positions=largest):
        server.start()
        try:
            yield bound
        finally:
            server.stop(2.0).wait()  # 2 s to answer the current calls


def _handlers(service: EvaluationService) -> grpc.GenericRpcHandler:
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            _with_status(getattr(service, name)),
            request_deserializer=wire.MESSAGES[f"{name}Request"].FromString,
            response_serializer=wire.MESSAGES[f"{name}Response"].SerializeToString,
        )
        for name in wire.METHODS
    }
    return grpc.method_handlers_generic_handler(wire.SERVICE, methods)


def _with_status(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the errors of a method into gRPC's status codes, each with one sentence."""

    def call(request: Message, context: ServicerContext) -> Message:
        try:
            return method(request, context)
        except tuple(CODES) as error:
            code = next(CODES[each] for each in CODES if isinstance(error, each))
            context.abort(code, plain(str(error), 500) or "the call was cancelled, or the evaluator stops")
            raise AssertionError from error  # abort has raised

    return call


class EvaluationService:
    """The methods of the protocol. A wrong request raises UserError, a request that lacks a model NoModelError."""

    def __init__(self, run: Run, batcher: Batcher, largest: int) -> None:
        """`largest`: largest number of positions of a request."""
        assert run.id
        self._game = run.game
        self._name = wire.model_name(run)
        self._run_id = run.id
        self._batcher = batcher
        self._largest = largest

    def ServerLive(self, request: Message, context: ServicerContext) -> Message:
        """Return True: this process is alive."""
        return wire.MESSAGES["ServerLiveResponse"](live=True)

    def ServerReady(self, request: Message, context: ServicerContext) -> Message:
        """Return whether there is a model."""
        return wire.MESSAGES["ServerReadyResponse"](ready=self._batcher.label is not None)

    def ModelReady(self, request: Message, context: ServicerContext) -> Message:
        """Return whether there is a model for the game that the request names."""
        self._check_game(request.name, request.version)
        return wire.MESSAGES["ModelReadyResponse"](ready=self._batcher.label is not None)

    def ModelMetadata(self, request: Message, context: ServicerContext) -> Message:
        """Return inputs and outputs; the only version is the file name of the model."""
        self._check_game(request.name, request.version)
        inputs, outputs = wire.describe(self._game.start)
        label = self._batcher.label
        if label is None:
            raise NoModelError
        return wire.MESSAGES["ModelMetadataResponse"](
            name=self._name, versions=[label], platform="plyzero_onnx", inputs=inputs, outputs=outputs
        )

    def ModelInfer(self, request: Message, context: ServicerContext) -> Message:
        """Return the evaluation of the positions in the request, all by the model that the answer names."""
        self._check_game(request.model_name, request.model_version)
        parameters = {name: value.string_param for name, value in request.parameters.items()}
        shape = wire.shape_text(self._game.start)
        if parameters.get(wire.SHAPE, shape) != shape:
            raise UserError(f"expected observations of shape {shape}, got {shown(parameters[wire.SHAPE])}")
        observations = wire.unpack_observations(request, self._game.start)
        if len(observations) > self._largest:
            raise UserError(
                f"expected at most {self._largest} positions in a call, got {len(observations)}; send them in parts, "
                f"or start the evaluator with --max-batch {len(observations)}"
            )
        future = self._batcher.submit(observations)
        if not context.add_callback(future.cancel):  # the call has ended already
            future.cancel()
        answer = future.result()
        response = wire.MESSAGES["ModelInferResponse"](
            model_name=request.model_name, model_version=answer.label, id=request.id
        )
        response.parameters[wire.FENCE].int64_param = answer.fence
        response.parameters[wire.STEP].int64_param = answer.step
        response.parameters[wire.RUN].string_param = self._run_id.text
        wire.pack_evaluation(response, answer.evaluation)
        return response

    def _check_game(self, name: str, version: str) -> None:
        if name != self._name:
            raise UserError(
                f"this evaluator is for {self._name}, got a request for {shown(name)}; give both the same --run"
            )
        if version:
            raise UserError(f"expected no model version, for only the newest model is served, got {shown(version)}")
