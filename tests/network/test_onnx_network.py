"""The network on a GPU, by the very code that runs there, with ONNX Runtime's CPU in the GPU's place."""

import json
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from plyzero.errors import ModelRefusedError
from plyzero.network import onnx_network
from plyzero.network.model_loader import load_network
from plyzero.network.onnx_network import CPU, GPU, Network, half_precision, takes_int8
from plyzero.play.bundled_bots import Card, list_cards
from plyzero.rules.catalog import load_game
from plyzero.search.evaluators import EvaluationBatch
from plyzero.settings import SearchSettings, TrainerSettings, parse_stored_settings
from plyzero.testing import EvaluatorContract
from plyzero.trainer.export import untrained, with_metadata
from tests.helpers.runs import small_run

GAME = load_game("connect-four")


def loaded(content: bytes, **options: Any) -> Network:
    return Network(content, GAME, label="x", **options)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return untrained(small_run(tmp_path_factory.mktemp("run") / "r", "connect-four"))


def some_leaves(n: int) -> EvaluationBatch:
    planes = np.random.default_rng(n).random((n, *GAME.start.observation_shape)) < 0.3
    return EvaluationBatch(planes.astype(np.float32), list)


def test_half_precision_keeps_the_models_face_and_halves_its_weights(content: bytes):
    before, after = (onnx.load_model_from_string(each) for each in (content, half_precision(content)))
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)
    assert list(before.metadata_props) == list(after.metadata_props)
    kinds = Counter(tensor.data_type for tensor in after.graph.initializer if np.prod(tensor.dims) > 1)
    assert kinds[onnx.TensorProto.FLOAT] == 0 < kinds[onnx.TensorProto.FLOAT16]


@pytest.fixture
def plain(content: bytes) -> Network:
    return loaded(content)


@pytest.fixture
def pretended(plain: Network, content: bytes, monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setattr(onnx_network, "GPU", CPU)
    return loaded(content)


class TestNetwork(EvaluatorContract):
    game = GAME.name

    @pytest.fixture(autouse=True)
    def given(self, plain: Network) -> None:
        self.evaluator = lambda: plain


@pytest.mark.filterwarnings("ignore:Duplicate provider")
class TestNetworkOnAGpu(EvaluatorContract):
    game, tolerance = GAME.name, 0.01  # of half precision

    @pytest.fixture(autouse=True)
    def given(self, pretended: Network) -> None:
        self.evaluator = lambda: pretended


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_on_a_gpu_the_network_answers_the_same_but_for_half_precision(plain: Network, pretended: Network):
    assert pretended._is_on_gpu
    assert not plain._is_on_gpu
    for n in (1, 64, 7):
        ours, theirs = pretended(some_leaves(n)), plain(some_leaves(n))
        for half, full in zip(ours, theirs, strict=True):
            assert half.dtype == np.float32
            assert half.shape == full.shape
            assert 0 < np.abs(half - full).max() < 0.01


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_two_threads_may_use_one_network_on_a_gpu(plain: Network, pretended: Network, monkeypatch: pytest.MonkeyPatch):
    session, both, one = pretended._session, threading.Barrier(2, timeout=60), threading.Lock()

    class Session:
        def run(self, *arguments: Any) -> list[np.ndarray]:
            both.wait()  # until the other thread has padded its observations too
            with one:
                return session.run(*arguments)

    monkeypatch.setattr(pretended, "_session", Session())
    batches = [some_leaves(3), some_leaves(4)]
    with ThreadPoolExecutor() as threads:
        for batch, evaluation in zip(batches, threads.map(pretended, batches), strict=True):
            assert np.allclose(evaluation.logits, plain(batch).logits, atol=0.01)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The options of the first provider of every session, of which one may be refused, and the sizes of batches."""
    notes = SimpleNamespace(options=[], sizes=[], refused="")

    class Recorded(onnxruntime.InferenceSession):
        def __init__(self, content: bytes, *arguments: Any, providers: list, **others: Any) -> None:
            if isinstance(providers[0], tuple):
                notes.options.append(providers[0][1])
                if notes.refused in providers[0][1]:
                    raise RuntimeError(f"unknown option {notes.refused}")
            super().__init__(content, *arguments, providers=[CPU], **others)

        def run(self, outputs: Any, inputs: dict, options: Any = None) -> Any:
            notes.sizes.append(len(inputs["observations"]))
            return super().run(outputs, inputs, options)

    monkeypatch.setattr(onnx_network, "GPU", CPU)
    assert onnx_network.has_gpu()  # which is tried once, with a session of its own
    monkeypatch.setattr(onnx_network.onnxruntime, "InferenceSession", Recorded)
    return notes


def test_cudnn_does_not_time_its_algorithms_for_every_shape(content: bytes, recorded: SimpleNamespace):
    loaded(content)
    assert recorded.options == [{"cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"}]


@pytest.mark.parametrize(("refused", "precision"), [("prefer_nhwc", "half"), ("cudnn_conv_algo_search", "single")])
def test_an_option_that_is_not_known_is_left_out(plain: Network, content: bytes, recorded, refused, precision):
    recorded.refused = refused
    network = loaded(content)
    assert len(recorded.options) == 2
    is_exact = np.array_equal(network(some_leaves(64)).logits, plain(some_leaves(64)).logits)
    assert is_exact == (precision == "single")  # without any option that is taken, on the CPU


def test_a_gpu_sees_few_shapes_and_each_of_them_before_the_model_is_used(content: bytes, recorded: SimpleNamespace):
    network = loaded(content, largest=200)
    assert recorded.sizes == [64, 64, 128, 256]
    recorded.sizes.clear()
    for n in (1, 7, 64, 65, 200, 256, 257):
        assert network(some_leaves(n)).logits.shape == (n, 7)
    assert recorded.sizes == [64, 64, 64, 128, 256, 256, 512]


def test_a_batch_that_is_too_large_for_the_memory_is_cut_into_full_ones(content: bytes, recorded, monkeypatch):
    network = loaded(content)
    monkeypatch.setattr(network, "_batch", 128)
    recorded.sizes.clear()
    found, batch = network(some_leaves(300)), some_leaves(300)
    assert recorded.sizes == [128, 128, 64]
    for i in (0, 127, 128, 299):
        alone = network(EvaluationBatch(batch.observations[i : i + 1], list))
        assert np.allclose(found.logits[i], alone.logits[0], atol=1e-2)
        assert np.allclose(found.wdl[i], alone.wdl[0], atol=1e-2)


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_cpu_worker_in_an_image_for_gpus_takes_the_8_bit_form(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx_network, "cpu_flags", lambda: {"avx512_vnni"})
    monkeypatch.setattr(onnx_network.onnxruntime, "get_available_providers", lambda: [GPU, CPU])
    assert takes_int8("auto")  # there is no GPU here
    monkeypatch.setattr(onnx_network, "GPU", CPU)
    assert not takes_int8("auto")


def test_a_damaged_model_is_refused_on_a_gpu_too(content: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx_network, "GPU", CPU)
    with pytest.raises(ModelRefusedError, match="not a model that ONNX Runtime can read"):
        loaded(content[: len(content) // 2])


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_where_the_gpu_does_not_work_the_network_runs_on_the_cpu_as_it_is(plain: Network, content: bytes, monkeypatch):
    monkeypatch.setattr(onnx_network.onnxruntime, "get_available_providers", lambda: [GPU, CPU])
    found = loaded(content)
    assert not found._is_on_gpu
    assert np.array_equal(found(some_leaves(3)).logits, plain(some_leaves(3)).logits)


def test_without_a_gpu_nothing_of_its_code_is_imported(content: bytes):
    code = (
        "import sys; from plyzero.network.onnx_network import Network; "
        "Network(sys.stdin.buffer.read(), None, label='x'); "
        "assert not {'torch', 'onnxruntime.transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], input=content, check=True)


def with_settings(content: bytes, text: str) -> Network:
    """Return the model as a network, with `text` as the settings in its metadata."""
    return loaded(with_metadata(content, "settings", text))


def test_search_settings_of_version_0_1_are_read_by_their_old_names(content: bytes):
    old = {
        "search": {"kind": "puct", "c_puct": 2.5, "noise_alpha": 0.3, "noise_fraction": 0.1, "considered_actions": 8},
        "selfplay": {"slots": 3, "full_share": 0.5, "fast_kind": "gumbel"},
        "trainer": {"value_lambda": 0.8, "search_value_share": 0.4, "average_decay": 0.99, "gradient_norm": 1.0},
        "store": {"reserve_mb": 7},
    }
    assert with_settings(content, json.dumps(old)).search_settings == SearchSettings(
        algorithm="puct", c_puct=2.5, dirichlet_alpha=0.3, dirichlet_fraction=0.1, max_considered_actions=8
    )


@pytest.mark.parametrize("card", list_cards(), ids=lambda card: card.game)
def test_the_bundled_bots_search_with_the_settings_they_were_trained_with(card: Card):
    network = load_network(card.network, None)
    stored = parse_stored_settings(network.metadata["settings"])
    assert stored.trainer.publish_seconds != TrainerSettings().publish_seconds  # nothing but the file says so
    assert network.search_settings == SearchSettings(
        algorithm="gumbel", max_considered_actions=16, c_visit=50, c_scale=1, all_rolls=card.game == "pig v1"
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"search": 1}', '{"search": {"colour": 1}}', '{"search": {"c_puct": -1}}', "[" * 100_000]
)
def test_a_model_with_settings_that_are_not_known_is_searched_with_the_defaults(content: bytes, text: str):
    assert with_settings(content, text).search_settings == SearchSettings()
