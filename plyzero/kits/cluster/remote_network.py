"""A network in another process: an evaluator that sends its batches to a server, and notices failures.

The server is `plyzero evaluator`, or another server of the Open Inference Protocol; its metadata of the model decides
how positions are sent. On the same machine they go through shared memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from plyzero.errors import UserError, plain, shown
from plyzero.kits.cluster import wire
from plyzero.kits.cluster.local_evaluator import SILENT_SECONDS, LocalEvaluator, Said
from plyzero.network.onnx_network import INPUT
from plyzero.run.directory import Run
from plyzero.run.models import ModelName, list_models
from plyzero.search.evaluators import Answer, Evaluation, EvaluationBatch, find_fault

PROBE_SECONDS: Final = 5.0
"""Seconds in which a server must answer that it is there."""

LATE: Final = "it has not answered a batch in time"
"""The reason for a missing answer after the deadline."""

log = logging.getLogger(__name__)


class RemoteNetwork:
    """The network of a server; call it with an EvaluationBatch, or `send` a batch and take its answer later.

    After a failure it is not ready; `refresh` then asks every few seconds whether the server answers again. One line
    in the log reports each change.

    fence, step, label: the model of the last answer; 0, 0 and None before the first one.
    is_ready:           whether the next batch should be sent.
    """

    def __init__(self, address: str, run: Run, *, deadline_seconds: float = 20.0, retry_seconds: float = 3.0) -> None:
        """Ask the server at `address`, HOST:PORT, whether it is there; this takes at most PROBE_SECONDS.

        An evaluator of the run with this port on this machine is asked first, and used through shared memory.

        deadline_seconds: longest time for a batch; a server may need some of it for the first batch of a model.
        retry_seconds:    time until a server that has failed is asked again.

        Raises UserError if the address has another form. A server that does not answer is no error.
        """
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UserError(f"expected the address of an evaluator as HOST:PORT, got {shown(address)}")
        self.fence = 0
        self.step = 0
        self.label: str | None = None
        self.is_ready = False
        assert run.id
        self._run = run
        self._id = run.id
        self._game = run.game
        self._models = run.models
        self._model = wire.model_name(run)
        self._input_type = wire.input_types(run.game.start)[0]
        self._address = address
        self._port = int(port)
        self._deadline_seconds = deadline_seconds
        self._retry_seconds = retry_seconds
        self._version = ""  # the version that the last answer names
        self._named: ModelName | None = None  # the model of this version
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
        self._infer = self._method("ModelInfer")
        self._metadata = self._method("ModelMetadata")
        self._next_probe = 0.0
        self._probe: grpc.Future | LocalEvaluator | None = None
        self._local: LocalEvaluator | None = None  # while it is used
        self._local_fault: str | None = None
        self.refresh()
        if isinstance(self._probe, LocalEvaluator) and self._probe.done(SILENT_SECONDS):
            self._read_probe(self._probe)
        if isinstance(self._probe, grpc.Future):
            self._read_probe(self._probe)

    def _method(self, name: str) -> Any:
        return self._channel.unary_unary(
            f"/{wire.SERVICE}/{name}",
            request_serializer=wire.MESSAGES[f"{name}Request"].SerializeToString,
            response_deserializer=wire.MESSAGES[f"{name}Response"].FromString,
        )

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        """Return the evaluation of `batch`. Raises UserError if the server does not give one."""
        answer = self.send(batch).answer()
        if answer is None:
            raise UserError(f"the evaluator {self._address} does not answer; the log says why")
        return answer.evaluation

    def send(self, batch: EvaluationBatch) -> Call:
        """Send a batch, and return at once. The observations may change as soon as this has returned."""
        observations = batch.observations
        datatype = self._input_type
        deadline = time.monotonic() + self._deadline_seconds
        if self._local and (mailbox := self._local.send(observations)) is not None:
            receive = partial(self._local.receive, mailbox, deadline)
            return Call(self, lambda: self.check_answer(receive(), len(observations)))
        tensor = wire.MESSAGES["TensorMetadata"](name=INPUT, datatype=datatype)
        tensor.shape.extend([len(observations), *wire.input_shape(self._game.start, datatype)])
        request = wire.MESSAGES["ModelInferRequest"](model_name=self._model, inputs=[tensor])
        if datatype == wire.BITS:
            request.parameters[wire.SHAPE].string_param = wire.shape_text(self._game.start)
        request.raw_input_contents.append(wire.pack_observations(observations, datatype))
        future = self._infer.future(request, timeout=self._deadline_seconds)
        return Call(self, partial(self._receive, future, len(observations), deadline))

    def _receive(self, future: grpc.Future, positions: int, deadline: float) -> Answer | str:
        try:
            return self.find_answer(future.result(max(0.0, deadline - time.monotonic())), positions)
        except grpc.RpcError as error:  # gRPC may be the first to notice the deadline
            return LATE if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else _sentence(error)
        except (TimeoutError, grpc.FutureTimeoutError):
            return LATE
        except grpc.FutureCancelledError:
            return "the connection was closed"

    def refresh(self) -> None:
        """Find out whether a server that has failed answers again. Call it before every batch; it never waits.

        While gRPC is used, this also looks for an evaluator on this machine, but less often.
        """
        now = time.monotonic()
        if self._probe is not None:
            if self._probe.done():
                self._read_probe(self._probe)
        elif self._local is None and now >= self._next_probe:
            self._next_probe = now + 10 * self._retry_seconds
            self._local_fault = None
            self._probe = LocalEvaluator.find(self._run, self._port)
            if self._probe is None:
                self._ask()

    def _ask(self) -> None:
        if not self.is_ready:  # by gRPC
            request = wire.MESSAGES["ModelMetadataRequest"](name=self._model)
            self._probe = self._metadata.future(request, timeout=PROBE_SECONDS)

    def _read_probe(self, probe: grpc.Future | LocalEvaluator) -> None:
        self._probe = None
        if isinstance(probe, LocalEvaluator):
            self._local_fault = probe.find_fault()
            if self._local_fault is None:
                self._local = probe
                self.is_ready = True
            else:
                probe.close()
                self._ask()
            return
        try:
            found = probe.result()
        except grpc.RpcError as error:
            self.fail(self._local_fault or _sentence(error))
            return
        datatype = wire.find_input_type(found, self._game.start)
        if datatype is None:
            self.fail("its model has other inputs or outputs than this version of the game")
        else:
            self._input_type = datatype
            self.is_ready = True  # `_failing` stays until the first answer

    def fail(self, reason: str) -> None:
        """Do not use the server for a while. `reason` is logged for the first failure after an answer."""
        self.is_ready = False
        self._next_probe = time.monotonic() + self._retry_seconds
        if self._local:
            self._local.close()
            self._local = None
        if not self._failing:
            self._failing = True
            log.warning("the evaluator %s is not used: %s; evaluating here", self._address, plain(reason, 300))

    def succeed(self, answer: Answer) -> None:
        """Record the model of an answer, and log that the server answers or that its model is another."""
        if self._failing or self.label is None:
            way = "in shared memory" if self._local else "by gRPC"
            log.info("the evaluator %s answers %s, model %s", self._address, way, answer.label)
        elif answer.label != self.label:
            log.info("model %s", answer.label)
        self._failing = False
        self.fence = answer.fence
        self.step = answer.step
        self.label = answer.label

    def find_answer(self, response: Message, positions: int) -> Answer | str:
        """Return the answer in a ModelInferResponse for this number of positions, or the reason why it is refused."""
        run = response.parameters.get(wire.RUN)
        if run is not None and (foreign := self._id.find_fault(run.string_param)):
            return f"its answer is refused: {foreign}"
        try:
            evaluation = wire.unpack_evaluation(response, self._game.start, positions)
        except UserError as error:
            return str(error)
        return self.check_answer((response.model_version, evaluation), positions)

    def check_answer(self, found: Said | str, positions: int) -> Answer | str:
        """Return an unchecked answer for this number of positions as an Answer, or the reason why it is refused.

        The model must be one of the run, and the numbers possible, by gRPC as in shared memory.
        """
        if isinstance(found, str):
            return found
        version, evaluation = found
        name = self._find_model(version)
        if name is None:
            return f"its answer names {shown(version)}, which is no model of the run"
        start = self._game.start
        fault = find_fault(evaluation, positions, start.num_actions, has_score=bool(start.max_score))
        if fault:
            return fault
        return Answer(evaluation, fence=name.fence, step=name.step, label=str(name))

    def _find_model(self, version: str) -> ModelName | None:
        """Return the model of the run that an answer names: by its file name, or by its step, then the newest of it.

        None if the run has no such model, or the volume cannot be read. The file is opened by its name, because over
        NFS a new file may be missing in the list of its directory.
        """
        if self._named is None or version != self._version:
            self._version = version
            self._named = None
            with suppress(OSError):
                name = ModelName.parse(version)
                if name is not None:
                    self._named = name if (self._models / str(name)).is_file() else None
                elif version.isdecimal() and len(version) <= 9:
                    found = (each for each in list_models(self._models) if each.step == int(version))
                    self._named = next(found, None)
        return self._named

    def close(self) -> None:
        """End the connection, and the calls on their way."""
        for each in (self._local, self._probe):
            if isinstance(each, LocalEvaluator):
                each.close()
        self._channel.close()


class Call:
    """A batch that is on its way to the server."""

    def __init__(self, network: RemoteNetwork, receive: Callable[[], Answer | str]) -> None:
        self._network, self._receive = network, receive

    def answer(self) -> Answer | None:
        """Wait for the answer and return it; None if the server has failed, and then `network` is not ready."""
        found = self._receive()
        if isinstance(found, str):
            self._network.fail(found)
            return None
        self._network.succeed(found)
        return found


def _sentence(error: grpc.RpcError) -> str:
    return f"{error.details() or 'no reason given'} ({error.code().name})"
