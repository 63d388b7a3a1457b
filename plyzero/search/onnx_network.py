"""A published network as an evaluator: ONNX Runtime, and the checks that a model fits its game."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import onnxruntime

from plyzero.errors import ModelRefusedError
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.settings import SearchSettings, parse_stored_settings

INPUT: Final = "observations"
LOGITS: Final = "logits"
WDL: Final = "wdl"
"""Names in the graph: `[B, C, H, W]` float32 -> `[B, A]` float32 logits, `[B, 3]` float32 win, draw, loss."""

ENCODING: Final = "plyzero.model/1"
"""The meaning of the graph's inputs and outputs; every model's metadata names it."""

CPU: Final = "CPUExecutionProvider"
GPU: Final = "CUDAExecutionProvider"
"""Execution providers of ONNX Runtime. Only onnxruntime-gpu has the second, and it works only where there is a GPU."""

EXTERNAL_DATA: Final = re.compile(rb"(\x0a|\x8a\x80*\x00)(\x08|\x88\x80*\x00)location")
"""The key that marks a tensor stored in another file, as protobuf encodes it: field 1, 8 bytes."""


class Network:
    """An ONNX model; call it with an EvaluationBatch. Positions are evaluated independently of one another.

    label:       its name in messages.
    fence, step: of its file name in a run; 0 for any other file.
    game:        the game it plays; without one the model's metadata names it.
    metadata:    what its ONNX file says of itself.
    """

    def __init__(
        self, content: bytes, game: GameSpec | None, *, label: str, fence: int = 0, step: int = 0, threads: int = 1
    ) -> None:
        """Load an ONNX file from its `content`. Raises ModelRefusedError if it cannot be used for the game."""
        self.label, self.fence, self.step = label, fence, step
        if EXTERNAL_DATA.search(content):
            raise ModelRefusedError(f"{label} stores weights in other files, which is not supported")
        try:
            self._session = open_session(content, threads)
            self._bound = self._session.io_binding() if self._session.get_providers()[0] == GPU else None
            self.metadata = dict(self._session.get_modelmeta().custom_metadata_map)
            ends = (*self._session.get_inputs(), *self._session.get_outputs())
            self._shapes = {each.name: (each.type, each.shape) for each in ends}
        except Exception as error:  # ONNX Runtime has a class of its own for every kind of damage
            raise ModelRefusedError(f"{label} is not a model that ONNX Runtime can read: {error}") from error
        self.game = game or load_game(self.metadata.get("game", "").rpartition(" v")[0])
        self._check(self.game)

    def _check(self, game: GameSpec) -> None:
        expected = {"encoding": ENCODING, "game": game.identity}
        for key, value in expected.items():
            if self.metadata.get(key) != value:
                raise ModelRefusedError(
                    f"{self.label} does not fit: its {key} is {self.metadata.get(key)!r}, expected {value!r}"
                )
        shapes = {name: shape[1:] for name, (_, shape) in self._shapes.items()}
        wanted = {INPUT: list(game.start.observation_shape), LOGITS: [game.start.num_actions], WDL: [3]}
        if shapes != wanted:
            raise ModelRefusedError(
                f"{self.label} does not fit {game.name}: its shapes are {shapes}, expected {wanted}"
            )
        two = np.repeat(game.start.observe()[np.newaxis], 2, axis=0).astype(np.float32)
        try:
            evaluation = self(EvaluationBatch(two, list))
        except Exception as error:
            raise ModelRefusedError(f"{self.label} cannot evaluate a position: {error}") from error
        for name, each in evaluation._asdict().items():
            if each.dtype != np.float32 or each.shape != (2, *wanted[name]) or not np.isfinite(each).all():
                raise ModelRefusedError(f"{self.label}: its {name} are not finite numbers for every position")

    @property
    def search_settings(self) -> SearchSettings:
        """The search settings that the model was trained with; the defaults if its metadata does not have them."""
        try:
            return parse_stored_settings(self.metadata.get("settings", "{}")).search
        except ValueError:  # of a version of plyzero whose settings are not known here
            return SearchSettings()

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        observations = np.ascontiguousarray(batch.observations)
        if self._bound is None:
            logits, wdl = self._session.run((LOGITS, WDL), {INPUT: observations})
            return Evaluation(logits, wdl)
        self._bound.bind_cpu_input(INPUT, observations)
        for name in (LOGITS, WDL):
            self._bound.bind_output(name)
        self._session.run_with_iobinding(self._bound)
        logits, wdl = self._bound.copy_outputs_to_cpu()
        return Evaluation(logits, wdl)


def open_session(content: bytes, threads: int) -> onnxruntime.InferenceSession:
    """Return a session: in half precision on a GPU if ONNX Runtime finds one, otherwise unchanged on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if GPU in onnxruntime.get_available_providers():
        halved = onnxruntime.InferenceSession(half_precision(content), options, providers=[GPU, CPU])
        if halved.get_providers()[0] == GPU:
            return halved
    return onnxruntime.InferenceSession(content, options, providers=[CPU], enable_fallback=0)


def half_precision(content: bytes) -> bytes:
    """Return the model with 16-bit weights and arithmetic; its inputs and outputs stay float32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load_model_from_string(content)
    halved: bytes = convert_float_to_float16(model, keep_io_types=True).SerializeToString()
    return halved
