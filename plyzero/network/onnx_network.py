"""A published network as an evaluator: ONNX Runtime, and the checks that a model fits its game."""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from plyzero.errors import ModelRefusedError, plain, shown
from plyzero.network.onnx_graph import MAX_BATCH, GraphError, Model, check_graph, declare_shapes, declared_shapes, parse
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import first_decision
from plyzero.rules.random_game import random_game
from plyzero.search.evaluators import Evaluation, EvaluationBatch, find_fault, is_evaluable
from plyzero.settings import Precision, SearchSettings, parse_stored_settings
from plyzero.threads import repeating

INPUT: Final = "observations"
LOGITS: Final = "logits"
WDL: Final = "wdl"
"""Names in the graph: `[B, C, H, W]` float32 -> `[B, A]` float32 logits, `[B, 3]` float32 win, draw, loss."""

SCORE: Final = "score"
BOARD: Final = "board"
EXTRA: Final = {2: SCORE, 4: BOARD}
"""Further outputs that a network may have, by their number of dimensions. `[B, 2]` float32: the mean of the score for
the player to move, as a share of max_score, and the log of its standard deviation. `[B, P, H, W]` float32: the final
board for that player."""

ENCODING: Final = "plyzero.model/1"
"""The meaning of the graph's inputs and outputs; every model's metadata names it."""

CPU: Final = "CPUExecutionProvider"
GPU: Final = "CUDAExecutionProvider"
"""Execution providers of ONNX Runtime. Only onnxruntime-gpu has the second, which needs a GPU."""

GPU_OPTIONS: Final[tuple[dict[str, str], ...]] = (
    {"cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"},
    {"cudnn_conv_algo_search": "HEURISTIC"},
)
"""Options of the GPU's provider; the first ones that ONNX Runtime takes are used. By default cuDNN times all its
algorithms for every new shape of every session. Tensor cores compute with the channels last."""

SMALLEST_BATCH: Final = 64
"""Batches on a GPU are padded to this number of positions or the next power of 2, since every new shape costs time."""

BATCH_BYTES: Final = 1 << 28
"""Memory for the tensors of one call of ONNX Runtime, in bytes; a larger batch is evaluated in parts."""

INT8: Final = "int8"
"""Metadata of a model that has an 8-bit form: the digest in the name of its file."""

PRECISION: Final = "precision"
"""Metadata of an 8-bit form: int8. It computes with 8 bits inside; its inputs and outputs are those of its model."""

NUM_TESTS: Final = 64
NUM_GAMES: Final = 4
NUM_FIRST: Final = 4
MAX_SECONDS: Final = 5.0
"""A model evaluates NUM_TESTS positions of NUM_GAMES random games before it is used, the first NUM_FIRST of them within
MAX_SECONDS per thread. A slow model evaluates fewer of the others. The time is that of the processor, so it does not
run while the process is suspended."""


class Network:
    """An ONNX model; call it with an EvaluationBatch. Positions are evaluated independently of one another.

    label:       its name in messages.
    fence, step: those in its file name in a run; 0 for any other file.
    game:        the game it plays; without one the model's metadata names it.
    metadata:    the metadata of its ONNX file.
    has_board:   whether it estimates the final board.
    precision:   the type of its numbers: fp32; int8 inside an 8-bit form; fp16 on a GPU.
    """

    def __init__(
        self,
        content: bytes,
        game: GameSpec | None,
        *,
        label: str,
        fence: int = 0,
        step: int = 0,
        threads: int = 1,
        largest: int = SMALLEST_BATCH,
        observations: NDArray[np.float32] | None = None,
    ) -> None:
        """Load an ONNX file from its `content`, check its graph, and evaluate positions with it.

        A model of another size of the board is used with that of `game`, if its value head is pooled.

        largest:      number of positions in the largest batch that is expected: a GPU is tried with batches up to it,
                      so that no later one is the first of its shape.
        observations: `[n, C, H, W]`, the positions to evaluate; by default some that random games reach.
        Raises ModelRefusedError if it cannot be used for the game.
        """
        self.label, self.fence, self.step = label, fence, step
        try:
            model = parse(content)
            if game and resize(model, game):
                content = model.SerializeToString()
            self.metadata = {each.key: each.value for each in model.metadata_props}
            if "encoding" not in self.metadata:
                raise ModelRefusedError(
                    f"{label} is an ONNX file that plyzero has not written: its metadata names no encoding; give it "
                    "the metadata in docs/formats.md, or call it in an evaluator of your own, MODULE:FUNCTION"
                )
            name = self.metadata.get("game", "").rpartition(" v")[0]
            self.game = game.named_as(name) if game else load_game(name)
            self._check_face(declared_shapes(model), self.game)
            position_bytes = check_graph(model)
        except GraphError as error:
            raise ModelRefusedError(f"{label} is refused: {error}") from error
        self._outputs = outputs_of(model)
        self.has_board = BOARD in declared_shapes(model)
        del model  # frees its memory before ONNX Runtime makes its own copies of the weights
        self._batch = max(1, min(MAX_BATCH, BATCH_BYTES // max(1, position_bytes)))
        try:
            self._session = open_session(
                content, threads, halve=PRECISION not in self.metadata, plan_memory=self._batch >= NUM_TESTS
            )
        except Exception as error:  # ONNX Runtime has a class of its own for every kind of damage
            reason = plain(str(error), 300)
            raise ModelRefusedError(f"{label} is not a model that ONNX Runtime can read: {reason}") from error
        self._is_on_gpu = self._session.get_providers()[0] == GPU
        if self._is_on_gpu:
            self._batch = 1 << (self._batch.bit_length() - 1)  # no part of a batch is padded beyond it
        self.precision = "fp16" if self._is_on_gpu else self.metadata.get(PRECISION, "fp32")
        self._options = onnxruntime.RunOptions()
        self._test(reachable_observations(self.game) if observations is None else observations, threads, largest)
        _return_free_memory()

    def _check_face(self, declared: dict[str, list[int | str]], game: GameSpec) -> None:
        """Raise ModelRefusedError if the model names another game, or has other inputs or outputs."""
        expected = {"encoding": ENCODING, "game": game.identity}
        for key, value in expected.items():
            if self.metadata.get(key) != value:
                found = shown(self.metadata.get(key))
                raise ModelRefusedError(f"{self.label} does not fit: its {key} is {found}, expected {value!r}")
        shapes = {name: shape[1:] for name, shape in declared.items()}
        wanted = {INPUT: list(game.start.observation_shape), LOGITS: [game.start.num_actions], WDL: [3]}
        if SCORE in shapes and game.start.max_score:
            wanted[SCORE] = [2]
        if BOARD in shapes and game.start.final_planes:
            wanted[BOARD] = [game.start.final_planes, *game.start.observation_shape[1:]]
        if shapes != wanted:
            found = plain(str(shapes), 300)
            raise ModelRefusedError(f"{self.label} does not fit {game.name}: its shapes are {found}, expected {wanted}")
        if any(not shape or isinstance(shape[0], int) for shape in declared.values()):
            raise ModelRefusedError(f"{self.label} does not evaluate batches of any size")

    def _test(self, observations: NDArray[np.float32], threads: int, largest: int) -> None:
        """Evaluate positions, on a GPU in batches of all sizes up to that of `largest`.

        Raises ModelRefusedError if this fails, takes too long, or gives impossible answers.
        """
        first, rest = observations[:NUM_FIRST], observations[NUM_FIRST:]
        began = time.process_time()
        with _terminated_after(MAX_SECONDS * threads, self._options):
            self._evaluate_part(first)
        times_per_second = threads / max(1e-9, time.process_time() - began)
        enough = rest[: int(len(first) * times_per_second)]
        if len(enough):
            self(EvaluationBatch(enough, list))
        size = 2 * SMALLEST_BATCH
        while self._is_on_gpu and size <= self._padded(largest):
            self._evaluate_part(np.resize(observations, (size, *observations.shape[1:])))
            size *= 2

    def test_again(self) -> None:
        """Evaluate positions of other random games than when it was loaded. Raises ModelRefusedError if this fails."""
        self(EvaluationBatch(reachable_observations(self.game, first_game=NUM_GAMES), list))

    @property
    def search_settings(self) -> SearchSettings:
        """The search settings that the model was trained with; the defaults if its metadata does not have them."""
        try:
            return parse_stored_settings(self.metadata.get("settings", "{}")).search
        except ValueError:  # another version of plyzero has written settings that are not known here
            return SearchSettings()

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        """Return the evaluation of `batch`. Raises ModelRefusedError if it has impossible values, such as NaN."""
        observations = np.ascontiguousarray(batch.observations)
        if len(observations) <= self._batch:
            return self._evaluate_part(observations)
        parts = [
            self._evaluate_part(observations[at : at + self._batch]) for at in range(0, len(observations), self._batch)
        ]
        return Evaluation(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _evaluate_part(self, observations: NDArray[np.float32]) -> Evaluation:
        try:
            evaluation = _as_evaluation(self._run(self._outputs, observations))
        except Exception as error:  # ONNX Runtime has a class of its own for every kind of failure
            raise ModelRefusedError(f"{self.label} cannot evaluate a position: {plain(str(error), 300)}") from error
        if fault := find_fault(evaluation, len(observations), self.game.start.num_actions):
            raise ModelRefusedError(f"{self.label}: {fault}")
        return evaluation

    def final_board(self, observation: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return the final board that is expected, `[P, H, W]` from -1 to 1 for the player to move; see `has_board`."""
        planes = np.asarray(observation, np.float32)[np.newaxis]
        (found,) = self._run((BOARD,), planes)
        return np.clip(np.nan_to_num(np.asarray(found[0], np.float32)), -1, 1)

    def _padded(self, positions: int) -> int:
        """Return the size to which a GPU pads a batch of so many positions."""
        return min(self._batch, max(SMALLEST_BATCH, 1 << (positions - 1).bit_length()))

    def _run(self, outputs: Sequence[str], observations: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Return `outputs` of the graph for `[n, C, H, W]`, n rows of each. Several threads may do so at once."""
        positions = len(observations)
        if self._is_on_gpu and (missing := self._padded(positions) - positions):
            observations = np.concatenate([observations, np.zeros((missing, *observations.shape[1:]), np.float32)])
        return [each[:positions] for each in self._session.run(outputs, {INPUT: observations}, self._options)]


def outputs_of(model: Model) -> tuple[str, ...]:
    """Return the names of the outputs that make up an evaluation."""
    return (LOGITS, WDL, SCORE) if SCORE in declared_shapes(model) else (LOGITS, WDL)


def _as_evaluation(outputs: Sequence[NDArray[np.float32]]) -> Evaluation:
    """Return the values of `outputs_of` as an evaluation; it keeps the mean of the score, and not its deviation."""
    if len(outputs) == 2:
        logits, wdl = outputs
        return Evaluation(logits, wdl)
    logits, wdl, score = outputs
    return Evaluation(logits, np.concatenate([wdl, score[:, :1]], axis=1))


def resize(model: Model, game: GameSpec) -> bool:
    """Let a model of another size of `game` declare the size of `game`, and return whether it is one.

    With a pooled value head no weight depends on the size; the maximum over the board is a MaxPool with its size, which
    is replaced. That the whole graph fits is checked as for any other model.
    """
    metadata = {each.key: each for each in model.metadata_props}
    try:
        is_pooled = parse_stored_settings(metadata["settings"].value).network.value_head == "pooled"
        is_same_game = game.is_size_of(metadata["game"].value)
    except (KeyError, ValueError):  # the check of its metadata says what is wrong
        return False
    declared, board = declared_shapes(model), game.start.observation_shape[1:]
    is_other_size = declared.keys() >= {INPUT, LOGITS, WDL} and declared[INPUT][2:] != [*board]
    if not (is_same_game and is_other_size and is_pooled):
        return False
    shapes = {name: [*declared[name][:2], *board] for name in declared.keys() & {INPUT, BOARD}}
    declare_shapes(model, shapes | {LOGITS: [*declared[LOGITS][:1], game.start.num_actions]})
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "MaxPool" and attribute.name == "kernel_shape" and attribute.ints == declared[INPUT][2:]:
                attribute.ints[:] = board
    metadata["game"].value = game.identity
    return True


_OBSERVATIONS: Final[dict[tuple[object, ...], NDArray[np.float32]]] = {}


def reachable_observations(game: GameSpec, *, first_game: int = 0) -> NDArray[np.float32]:
    """Return the observations of up to NUM_TESTS positions of random games at which a player moves, the first first.

    They are always the same for a game and the number of the first random game, and are computed once. If rules raise
    an error, only the initial position is left, and observations that no network can take are left out. Both are
    reported where the game is played next.
    """
    key = (game.identity, first_game, *game.start.observation_shape)
    if key not in _OBSERVATIONS:
        observed = [np.asarray(first_decision(game.start).observe(), np.float32)]
        positions = []
        with suppress(Exception):
            for number in range(first_game, first_game + NUM_GAMES):
                random = random_game(game.start, np.random.default_rng(number))
                played = [random.positions[i] for i in random.decisions[: random.plies]]
                positions += played[:: max(1, len(played) * NUM_GAMES // NUM_TESTS)]
            observed += [np.asarray(position.observe(), np.float32) for position in positions[: NUM_TESTS - 1]]
        _OBSERVATIONS[key] = np.stack([each for each in observed if is_evaluable(each)] or observed[:1])
    return _OBSERVATIONS[key]


@contextmanager
def _terminated_after(seconds: float, options: onnxruntime.RunOptions) -> Iterator[None]:
    """Terminate a run of ONNX Runtime once this process has used `seconds` of processor time."""
    began = time.process_time()

    def look() -> None:
        options.terminate = options.terminate or time.process_time() - began > seconds

    with repeating(look, 0.05, name="deadline"):
        yield


def takes_int8(precision: Precision) -> bool:
    """Return whether networks should be evaluated in their 8-bit form here.

    "auto" is true where a processor multiplies and adds 8-bit numbers in one instruction (VNNI). Others are slower with
    them, and lose accuracy, as their sums overflow. On a GPU it is false.
    """
    if precision != "auto":
        return precision == "int8"
    has_vnni = not cpu_flags().isdisjoint({"avx512_vnni", "avx_vnni"})
    return has_vnni and not has_gpu()


def has_gpu() -> bool:
    """Return whether networks are evaluated on a GPU here; onnxruntime-gpu is also used where there is none."""
    return GPU in onnxruntime.get_available_providers() and _runs_on(GPU)


@cache
def _runs_on(provider: str) -> bool:
    """Return whether an execution provider works, tried with a graph that copies a number."""
    import onnx

    if provider == GPU and hasattr(onnxruntime, "preload_dlls"):  # version 1.21 or newer
        with redirect_stdout(sys.stderr):
            onnxruntime.preload_dlls()  # finds CUDA and cuDNN where pip installs them
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "copy", [x], [y])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 13)])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # a machine without a GPU is no error
    try:
        content = model.SerializeToString()
        session = onnxruntime.InferenceSession(content, options, providers=[provider], enable_fallback=0)
    except Exception:  # ONNX Runtime has a class of its own for every kind of failure
        return False
    return bool(session.get_providers()[0] == provider)


@cache
def cpu_flags() -> frozenset[str]:
    """Return the features of this CPU by their names in Linux, such as avx512_vnni; nothing on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(flags[1].split()) if flags else frozenset()


def open_session(content: bytes, threads: int, *, halve: bool, plan_memory: bool) -> onnxruntime.InferenceSession:
    """Return a session: in half precision on a GPU if ONNX Runtime finds one, otherwise unchanged on the CPU.

    halve:       whether the model can be used in half precision, as one of 32 bits can.
    plan_memory: whether the second batch of a size takes its memory in one block, beside what the first one has left.
                 This saves time but costs memory: a few positions of a wasteful model take hundreds of MB.
    """
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = plan_memory
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    if threads > 1:  # waiting threads would keep their cores busy
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if halve and has_gpu():
        halved = half_precision(content)
        for chosen in GPU_OPTIONS:
            providers = [(GPU, chosen), CPU]
            with suppress(Exception):  # ONNX Runtime does not know an option, or the GPU has no room
                session = onnxruntime.InferenceSession(halved, options, providers=providers, enable_fallback=0)
                if session.get_providers()[0] == GPU:
                    return session
    return onnxruntime.InferenceSession(content, options, providers=[CPU], enable_fallback=0)


def run_on_cpu(content: bytes, observations: NDArray[np.float32]) -> Evaluation:
    """Return the evaluation of `[n, C, H, W]` in the precision of the file; on a GPU `Network` computes in 16 bits."""
    session = onnxruntime.InferenceSession(content, providers=[CPU])
    return _as_evaluation(session.run(outputs_of(parse(content)), {INPUT: observations}))


def _return_free_memory() -> None:
    """Return freed memory from the C library to the system: a model takes twice its size while it is loaded."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # only glibc has it
        trim(0)


def half_precision(content: bytes) -> bytes:
    """Return the model with 16-bit weights and arithmetic; its inputs and outputs stay float32."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load_model_from_string(content)
    halved: bytes = convert_float_to_float16(model, keep_io_types=True).SerializeToString()
    return halved
