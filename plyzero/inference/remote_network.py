"""A network in another process: an evaluator that sends its batches to a server, and knows when it fails.

The server is `plyzero evaluator`, or any other one of the Open Inference Protocol: what it says of its model decides
how positions are sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from plyzero.errors import UserError, plain, shown
from plyzero.inference import wire
from plyzero.inference.batcher import Answer
from plyzero.network.onnx_network import INPUT
from plyzero.run.directory import Run
from plyzero.run.models import ModelName, list_models
from plyzero.search.evaluators import Evaluation, EvaluationBatch, find_fault
from plyzero.threads import start_thread

PROBE_SECONDS: Final = 5.0
"""Time in which a server must answer that it is there, in seconds."""

log = logging.getLogger(__name__)


class RemoteNetwork:
    """The network of a server; call it with an EvaluationBatch, or `send` a batch and take its answer later.

    After a failure it is not ready; `refresh` then asks every few seconds whether the server answers again. One line
    in the log reports each change.

    fence, step, label: of the model in the last answer; 0, 0 and None before the first one.
    is_ready:           whether the next batch should be sent.
    """

    def __init__(
        self,
        address: str,
        run: Run,
        *,
        precision: str = wire.DEFAULT_PRECISION,
        deadline_seconds: float = 20.0,
        retry_seconds: float = 3.0,
    ) -> None:
        """Ask the server at `address`, HOST:PORT, whether it is there, which takes at most PROBE_SECONDS.

        precision:        FP16 or FP32, of the answers, where the server has both.
        deadline_seconds: for a batch; a server may need some of it for the first batch of a model.
        Raises UserError if the address has another form. A server that does not answer is no error.
        """
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UserError(f"expected the address of an evaluator as HOST:PORT, got {shown(address)}")
        self.fence, self.step = 0, 0
        self.label: str | None = None
        self.is_ready = False
        assert run.id
        self._address, self._game, self._models, self._precision = address, run.game, run.models, precision
        self._run_id = run.id
        self._model, self._input_type = wire.model_name(run), wire.input_types(run.game.start)[0]
        self._version = ""
        self._named: ModelName | None = None  # of the last answer
        self._deadline_seconds, self._retry_seconds = deadline_seconds, retry_seconds
        self._failing = False
        retry_ms = max(100, int(1000 * retry_seconds))
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", wire.MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", wire.MAX_MESSAGE_BYTES),
            ("grpc.initial_reconnect_backoff_ms", min(1000, retry_ms)),
            ("grpc.max_reconnect_backoff_ms", retry_ms),
        ]
        self._channel = grpc.insecure_channel(address, options=options)
        unary, stream = self._channel.unary_unary, self._channel.stream_stream
        self._infer, self._metadata = (self._method(unary, name, name) for name in ("ModelInfer", "ModelMetadata"))
        self._open_stream = self._method(stream, wire.STREAM, "ModelInfer")
        self._stream: Stream | None = None  # of a server that has them
        self._next_probe = 0.0
        self._probe: grpc.Future | None = None
        self.refresh()
        self._read_probe(self._probe)

    @staticmethod
    def _method(kind: Any, name: str, messages: str) -> Any:
        return kind(
            f"/{wire.SERVICE}/{name}",
            request_serializer=wire.MESSAGES[f"{messages}Request"].SerializeToString,
            response_deserializer=wire.MESSAGES[f"{messages}Response"].FromString,
        )

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        """Return the evaluation of `batch`. Raises UserError if the server does not give one."""
        answer = self.send(batch).answer()
        if answer is None:
            raise UserError(f"the evaluator {self._address} does not answer; the log says why")
        return answer.evaluation

    def send(self, batch: EvaluationBatch) -> Call:
        """Send a batch on its way, and return at once. The observations may change as soon as this has returned."""
        observations, datatype = batch.observations, self._input_type
        tensor = wire.MESSAGES["TensorMetadata"](name=INPUT, datatype=datatype)
        tensor.shape.extend([len(observations), *wire.input_shape(self._game.start, datatype)])
        request = wire.MESSAGES["ModelInferRequest"](model_name=self._model, inputs=[tensor])
        if self._precision != wire.DEFAULT_PRECISION:
            request.parameters[wire.PRECISION].string_param = self._precision
        if datatype == wire.BITS:
            request.parameters[wire.SHAPE].string_param = wire.shape_text(self._game.start)
        request.raw_input_contents.append(wire.pack_observations(observations, datatype))
        if self._stream:
            future: grpc.Future = self._stream.send(request)
        else:
            future = self._infer.future(request, timeout=self._deadline_seconds)
        return Call(self, future, len(observations), time.monotonic() + self._deadline_seconds)

    def refresh(self) -> None:
        """Find out whether a server that has failed is there again. It never waits, so call it before every batch."""
        if self._probe is not None:
            if self._probe.done():
                self._read_probe(self._probe)
        elif not self.is_ready and time.monotonic() >= self._next_probe:
            request = wire.MESSAGES["ModelMetadataRequest"](name=self._model)
            self._probe = self._metadata.future(request, timeout=PROBE_SECONDS)

    def _read_probe(self, probe: grpc.Future) -> None:
        self._probe = None
        try:
            found = probe.result()
        except grpc.RpcError as error:
            self.fail(_sentence(error))
            return
        datatype = wire.find_input_type(found, self._game.start)
        if datatype is None:
            self.fail("its model has other inputs or outputs than this version of the game")
        else:
            self._input_type, self.is_ready = datatype, True  # "answers again" is only said of an answer
            self._stream = Stream(self._open_stream) if found.platform == wire.PLATFORM else None

    def fail(self, reason: str) -> None:
        """Do not ask the server for a while; `reason` is logged once, until it answers again."""
        self.is_ready, self._next_probe = False, time.monotonic() + self._retry_seconds
        if self._stream:
            self._stream.close()
        if not self._failing:
            self._failing = True
            log.warning("the evaluator %s is not used: %s; evaluating here", self._address, plain(reason, 300))

    def succeed(self, answer: Answer) -> None:
        """Note the model of an answer."""
        if self._failing or self.label is None:
            log.info("the evaluator %s answers, model %s", self._address, answer.label)
        elif answer.label != self.label:
            log.info("model %s", answer.label)
        self._failing = False
        self.fence, self.step, self.label = answer.fence, answer.step, answer.label

    def find_answer(self, response: Message, positions: int) -> Answer | str:
        """Return the answer in a ModelInferResponse to this number of positions, or the reason why it is impossible."""
        run = response.parameters.get(wire.RUN)
        if run is not None and (foreign := self._run_id.find_fault(run.string_param)):
            return f"its answer is refused: {foreign}"
        name = self._find_model(response.model_version)
        if name is None:
            return f"its answer names {shown(response.model_version)}, which is no model of the run"
        try:
            evaluation = wire.unpack_evaluation(response, self._game.start, positions)
        except UserError as error:
            return str(error)
        if fault := find_fault(evaluation, positions, self._game.start.num_actions):
            return fault
        return Answer(evaluation, fence=name.fence, step=name.step, label=str(name))

    def _find_model(self, version: str) -> ModelName | None:
        """Return the model of the run that an answer names: by its file name, or by its step (the newest is meant).

        None if the run has none, or the volume does not say. The file is looked for by its name, which is seen before
        a listing over NFS has it.
        """
        if self._named is None or version != self._version:
            self._version, self._named = version, None
            with suppress(OSError):
                name = ModelName.parse(version)
                if name is not None:
                    self._named = name if (self._models / str(name)).is_file() else None
                elif version.isdecimal() and len(version) <= 9:
                    found = (each for each in list_models(self._models) if each.step == int(version))
                    self._named = next(found, None)
        return self._named

    def close(self) -> None:
        """End the connection, and the calls that are on their way."""
        self._channel.close()


class Call:
    """A batch that is on its way to the server."""

    def __init__(self, network: RemoteNetwork, future: grpc.Future, positions: int, deadline: float) -> None:
        self._network, self._future, self._positions, self._deadline = network, future, positions, deadline

    def answer(self) -> Answer | None:
        """Wait for the answer and return it; None if the server has failed, which `network` then knows."""
        try:
            response = self._future.result(max(0.0, self._deadline - time.monotonic()))
            found = self._network.find_answer(response, self._positions)
        except grpc.RpcError as error:
            found = _sentence(error)
        except (TimeoutError, grpc.FutureTimeoutError):
            found = "it has not answered a batch in time"
        except grpc.FutureCancelledError:
            found = "the connection was closed"
        if isinstance(found, str):
            self._network.fail(found)
            return None
        self._network.succeed(found)
        return found


def _sentence(error: grpc.RpcError) -> str:
    return f"{error.details() or 'no reason given'} ({error.code().name})"


class Stream:
    """One long call on which batches go out and their answers come back in order: cheaper than a call for each.

    After an error of the server, or after `close`, it has ended: all answers that are still missing, and all that are
    asked for later, are that error.
    """

    def __init__(self, method: grpc.StreamStreamMultiCallable) -> None:
        """`method` takes an iterator of requests and returns a call, which is an iterator of answers."""
        self._requests: SimpleQueue[Message | None] = SimpleQueue()  # None ends them
        self._waiting: deque[Future[Message]] = deque()
        self._error: Exception | None = None
        self._lock = threading.Lock()  # of the two above
        self._call = method(iter(self._requests.get, None))
        start_thread(self._read, name="answers")

    def send(self, request: Message) -> Future[Message]:
        """Send a request, and return its future answer."""
        future: Future[Message] = Future()
        with self._lock:
            if self._error:
                future.set_exception(self._error)
            else:
                self._waiting.append(future)
                self._requests.put(request)
        return future

    def _read(self) -> None:
        error: Exception = self._call
        try:
            for answer in self._call:
                self._waiting.popleft().set_result(answer)
        except Exception as raised:  # of any kind: no caller may wait forever
            error = raised
        with self._lock:
            self._error = error
        for future in self._waiting:
            future.set_exception(error)
        self._requests.put(None)

    def close(self) -> None:
        """End the stream; an answer that is still missing is an error."""
        self._call.cancel()
