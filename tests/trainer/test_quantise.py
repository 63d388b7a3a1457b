"""The 8-bit form of a model: what is 8 bits in it, how exact it is, and who uses it when."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from plyzero.network import onnx_network
from plyzero.network.model_loader import ModelWatch, load_newest
from plyzero.network.onnx_network import Network, reachable_observations, run_on_cpu
from plyzero.ops.verify import find_faults
from plyzero.play import bundled_bots
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run import models
from plyzero.run.directory import Run
from plyzero.run.events import read_lines
from plyzero.run.models import ModelName, list_models, publish_model
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.settings import NetworkSettings
from plyzero.trainer import export as module
from plyzero.trainer.export import Forms, compare, export, make_forms, quantise, untrained
from plyzero.trainer.network import make_network
from plyzero.trainer.retention import Retention
from tests.helpers.clock import Clock
from tests.helpers.learning import training
from tests.helpers.runs import play_segment, small_run
from tests.helpers.toys import Branching, variant

BOT = (Path(bundled_bots.__file__).parent / "bots" / "connect-four.onnx").read_bytes()
CONNECT_FOUR = load_game("connect-four")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "tic-tac-toe", "selfplay.precision=int8")


@pytest.fixture
def forms(run: Run) -> Forms:
    found = make_forms(run, untrained(run), reachable_observations(run.game))
    assert found.int8
    return found


def publish(run: Run, forms: Forms, step: int) -> ModelName:
    return publish_model(run.models, forms.content, fence=1, step=step, int8=forms.int8)


def forms_in(run: Run) -> list[ModelName]:
    return list_models(run.models, int8=True)


def models_of_forms(run: Run) -> set[tuple[int, int]]:
    return {(form.fence, form.step) for form in forms_in(run)}


def rounded_inputs(content: bytes) -> dict[str, list[bool]]:
    """For each node of a graph, by its name, which of its inputs are 8-bit numbers that are scaled."""
    graph = onnx.load_from_string(content).graph
    rounded = {name for node in graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    return {node.name: [name in rounded for name in node.input] for node in graph.node}


def quantised_convolutions(content: bytes) -> list[bool]:
    """For each convolution whether its input, its weights and its bias are 8-bit numbers that are scaled."""
    return [all(inputs) for name, inputs in rounded_inputs(content).items() if name.endswith("/Conv")]


def test_the_trunk_and_the_first_convolution_of_each_head_have_8_bits():
    int8 = quantise(BOT, reachable_observations(CONNECT_FOUR))
    assert quantised_convolutions(int8) == [True] * 11  # of 4 blocks and the stem, then of the heads
    graph = onnx.load_from_string(int8).graph
    value = {node.op_type for node in graph.node if node.name.startswith("/network/value.") and ".0/" not in node.name}
    assert value <= {"Relu", "Flatten", "Gemm", "Softmax"}  # in 32 bits


@pytest.mark.parametrize("rule", ["observe", "play"])
def test_where_rules_fail_later_only_the_initial_position_tests_a_model(rule: str):
    def fails(position: Branching, *action: int) -> object:
        if position.moves:
            raise ValueError("a rule fails")
        return getattr(Branching, f"{rule}_unchecked" if action else rule)(position, *action)

    game = GameSpec(f"fails_in_{rule}", variant(Branching, **{rule: fails})())
    assert np.array_equal(reachable_observations(game), np.zeros((1, 6, 3, 1)))


@pytest.mark.parametrize("value_head", ["dense", "pooled"])
def test_pooling_over_the_board_has_8_bits_and_a_convolution_that_ends_a_head_has_32(value_head: str):
    game = load_game("go(size=5)")
    network = make_network(NetworkSettings(blocks=2, channels=8, value_head=value_head, points=True), game.start)
    torch.nn.init.normal_(network.tower[1].bias.weight)  # without it pooling does nothing
    seen = reachable_observations(game)
    rounded = rounded_inputs(quantise(export(network.eval(), game, seen, metadata={}), seen))
    assert all(rounded[f"/network/tower/tower.1/pool/{each}"][0] for each in ("MaxPool", "GlobalAveragePool", "Concat"))
    weights = {name: inputs[1] for name, inputs in rounded.items() if name.endswith("/Conv")}
    exact = {name for name, is_rounded in weights.items() if not is_rounded}
    assert exact == {"/network/policy/planes/Conv", "/network/board/Conv"}
    assert len(weights) == 9


def test_shared_weights_are_quantised_wherever_they_are_used(run: Run):
    content = untrained(run)  # whose biases are all zero
    assert "Identity" in {node.op_type for node in onnx.load_from_string(content).graph.node}
    int8 = quantise(content, reachable_observations(run.game))
    assert quantised_convolutions(int8) == [True] * 5


def test_a_trained_network_changes_little_whatever_the_batch():
    seen = reachable_observations(CONNECT_FOUR)
    int8 = quantise(BOT, seen[::2])
    exact, rounded = (run_on_cpu(content, seen[1::2]) for content in (BOT, int8))
    divergence, difference = compare(exact, rounded)
    assert 0 < divergence < module.MAX_POLICY_KL
    assert 0 < difference < module.MAX_VALUE_ERROR
    network = Network(int8, CONNECT_FOUR, label="int8")
    assert network.precision == "int8"
    whole = network(EvaluationBatch(seen, list))
    for row in range(0, len(seen), 7):
        single = network(EvaluationBatch(seen[row : row + 1], list))
        assert np.array_equal(single.logits[0], whole.logits[row])
        assert np.array_equal(single.wdl[0], whole.wdl[row])


def test_divergence_and_difference_are_those_of_a_hand_calculation():
    def evaluation(p: float, win: float, loss: float) -> Evaluation:
        logits = np.array([[math.log(p), math.log(1 - p)]], np.float32) + 3
        return Evaluation(logits, np.array([[win, 1 - win - loss, loss]], np.float32))

    divergence, difference = compare(evaluation(0.5, 0.5, 0.2), evaluation(0.25, 0.3, 0.4))
    assert divergence == pytest.approx(0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75))
    assert difference == pytest.approx(0.4)


def test_for_self_play_with_32_bits_there_is_no_8_bit_form(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.precision=fp32")
    content = untrained(run)
    assert make_forms(run, content, reachable_observations(run.game)) == Forms(content)


def test_a_form_that_differs_much_or_cannot_be_made_is_not_published(run: Run, monkeypatch, caplog):
    caplog.set_level("INFO")
    content, seen = untrained(run), reachable_observations(run.game)
    monkeypatch.setattr(module, "MAX_VALUE_ERROR", -1.0)
    found = make_forms(run, content, seen)
    assert (found.content, found.int8) == (content, None)
    assert found.report.keys() == {"int8_policy_kl", "int8_value_error"}
    assert "no 8-bit form: it changes policies by" in caplog.text
    assert make_forms(run, b"no model", seen) == Forms(b"no model")
    assert "no 8-bit form: DecodeError" in caplog.text
    assert {record.name for record in caplog.records} == {"plyzero.trainer.export"}  # nothing of ONNX Runtime's


@pytest.fixture
def watch(run: Run) -> Iterator[ModelWatch]:
    with ModelWatch(run.models, run.game, poll_seconds=0, threads=1, precision="int8") as watch:
        yield watch


def test_self_play_uses_the_8_bit_form_and_everybody_else_the_model(run: Run, forms: Forms, watch: ModelWatch):
    name = publish(run, forms, 9)
    assert list_models(run.models) == [name]
    found = watch.newer()
    assert (found.precision, found.label, found.fence, found.step) == ("int8", str(name), 1, 9)
    assert load_newest(run.models, run.game).precision == "fp32"
    assert [fault for _, fault in find_faults(run)] == [None, None]


@pytest.mark.parametrize(("flags", "expected"), [({"avx512_vnni"}, "int8"), (set(), "fp32")], ids=["vnni", "slow"])
def test_auto_is_int8_on_fast_processors(run: Run, forms: Forms, monkeypatch, flags: set[str], expected: str):
    publish(run, forms, 9)
    monkeypatch.setattr(onnx_network, "cpu_flags", lambda: flags)
    with ModelWatch(run.models, run.game, poll_seconds=0, threads=1, precision="auto") as watch:
        assert watch.newer().precision == expected


def test_a_form_that_is_missing_or_damaged_is_replaced_by_the_model(run: Run, forms: Forms, watch: ModelWatch, caplog):
    for step, harm in ((1, Path.unlink), (2, lambda path: path.write_bytes(b"x" + forms.int8))):
        publish(run, forms, step)
        (file,) = (str(form) for form in forms_in(run) if (form.fence, form.step) == (1, step))
        harm(run.models / file)
        assert watch.newer().precision == "fp32"
        assert f"the 8-bit form of 000001-00000000{step}" in caplog.text
    assert [fault for _, fault in find_faults(run) if fault] == [
        f"{file}: its content has the digest {models.digest_of(b'x' + forms.int8)}, so it is damaged"
    ]


def test_nobody_sees_a_model_before_its_form(run: Run, forms: Forms, monkeypatch: pytest.MonkeyPatch):
    written, write = [], models.write_file

    def note(path: Path, content: bytes, **more: bool) -> None:
        written.append((path.name, list_models(run.models)))
        write(path, content, **more)

    monkeypatch.setattr(models, "write_file", note)
    name = publish(run, forms, 9)
    assert written == [(str(forms_in(run)[0]), []), (str(name), [])]


def test_forms_are_removed_after_their_models(tmp_path: Path, forms: Forms, clock: Clock):
    options = ("store.keep_models=1", "store.keep_model_minutes=0", "store.min_free_mb=0")
    run = small_run(tmp_path / "kept", "tic-tac-toe", *options)
    for step in (1, 2, 3):
        publish(run, forms, step)
    retention = Retention(run, clock=clock)
    for _ in range(3):
        retention.view.refresh()
        retention.prune(covered={}, window=[])
        assert {(1, name.step) for name in list_models(run.models)} <= models_of_forms(run)
        clock.now += 10**6
    assert models_of_forms(run) == {(1, 1), (1, 3)}


def test_the_trainer_publishes_both_forms_and_reports_how_much_they_differ(run: Run):
    play_segment(run)
    with training(run) as trainer:
        trainer.publish()
    (name,) = list_models(run.models)
    assert models_of_forms(run) == {(name.fence, name.step)}
    (line,) = read_lines(run.metrics / "trainer-000001.jsonl")
    assert 0 <= line["int8_policy_kl"] <= module.MAX_POLICY_KL
    assert 0 <= line["int8_value_error"] <= module.MAX_VALUE_ERROR
