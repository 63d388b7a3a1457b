"""Networks with a pooled value head on boards of other sizes than that of their training."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from plyzero.errors import ModelRefusedError
from plyzero.games.othello import Othello
from plyzero.network.model_loader import load_network, load_newest
from plyzero.network.onnx_network import Network, reachable_observations
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import open_run
from plyzero.run.models import list_models
from plyzero.search.evaluators import EvaluationBatch
from plyzero.settings import NetworkSettings, Settings
from plyzero.trainer.export import describe_model, export, quantise
from plyzero.trainer.network import make_network
from tests.helpers.cli import refused, shown
from tests.helpers.learning import learn, training
from tests.helpers.runs import SMALL, small_run

POOLED = NetworkSettings(blocks=2, channels=8, value_head="pooled")
DENSE = POOLED.model_copy(update={"value_head": "dense"})


class Planes(Othello):
    """Othello with a convolutional policy head."""

    policy_planes = 1


PLANES = f"{__name__}:Planes"


def positions_of(game: GameSpec) -> EvaluationBatch:
    return EvaluationBatch(reachable_observations(game), list)


def network_of(game: str, settings: NetworkSettings = POOLED) -> tuple[torch.nn.Module, bytes]:
    """A network with random weights, also in its normalisation and its pooling, and its file."""
    spec, generator = load_game(game), torch.Generator().manual_seed(0)
    network = make_network(settings, spec.start).eval()
    for values in network.state_dict().values():
        if values.is_floating_point():
            values.copy_(torch.rand(values.shape, generator=generator) * 0.4 + (0.1 if values.dim() == 1 else -0.2))
    metadata = describe_model(Settings(network=settings), step=0, positions=0)
    return network, export(network, spec, reachable_observations(spec), metadata=metadata)


@pytest.mark.parametrize(
    ("game", "other"),
    [
        ("gomoku(size=5)", "gomoku(size=7)"),
        ("gomoku(size=7)", "gomoku(size=5)"),
        (f"{PLANES}(size=6)", PLANES),
        ("hex(size=4)", "hex(size=7)"),
        ("go(size=5)", "go(size=7)"),
    ],
)
def test_a_file_gives_on_another_size_what_its_layers_give_there(game: str, other: str):
    network, content = network_of(game)
    loaded, positions = Network(content, load_game(other), label="a model"), positions_of(load_game(other))
    found = loaded(positions)
    with torch.no_grad():
        logits, wdl = network(torch.from_numpy(positions.observations))
    assert found.logits == pytest.approx(logits.numpy(), abs=1e-5)
    assert found.wdl == pytest.approx(wdl.softmax(1).numpy(), abs=1e-5)
    assert np.ptp(found.logits[0]) > 1e-3
    assert (loaded.game.name, loaded.metadata["game"]) == (other, load_game(other).identity)


def test_points_and_the_final_board_have_no_size_either():
    large = load_game(PLANES)
    network, content = network_of(f"{PLANES}(size=6)", POOLED.model_copy(update={"points": True}))
    loaded, positions = Network(content, large, label="a model"), positions_of(large)
    with torch.no_grad():
        *_, score, board = network(torch.from_numpy(positions.observations))
    assert loaded(positions).wdl[:, 3] == pytest.approx(score[:, 0].numpy(), abs=1e-4)
    assert loaded.final_board(positions.observations[1]) == pytest.approx(torch.tanh(board[1]).numpy(), abs=1e-4)


def test_the_8_bit_form_has_no_size_either():
    _, content = network_of("gomoku(size=5)")
    rounded = quantise(content, reachable_observations(load_game("gomoku(size=5)")))
    other = load_game("gomoku(size=7)")
    exact, found = (Network(each, other, label="x")(positions_of(other)) for each in (content, rounded))
    assert found.wdl == pytest.approx(exact.wdl, abs=0.1)
    assert not np.array_equal(found.wdl, exact.wdl)


@pytest.mark.parametrize(
    ("made_for", "used_for", "settings", "says"),
    [
        ("gomoku(size=5)", "gomoku", DENSE, r"its game is 'gomoku\(size=5\) v1', expected 'gomoku v1'"),
        ("go(size=5)", "go(komi=2, size=5)", POOLED, r"its game is 'go\(size=5\) v1', expected .*komi=2"),
        ("hex(size=5)", "gomoku", POOLED, r"its game is 'hex\(size=5\) v1', expected 'gomoku v1'"),
        ("hex(size=5)", "hex(swap=False)", POOLED, r"does not fit .*: its shapes are .*3, 11, 11"),
    ],
)
def test_other_files_are_refused_as_before(made_for: str, used_for: str, settings: NetworkSettings, says: str):
    _, content = network_of(made_for, settings)
    with pytest.raises(ModelRefusedError, match=says):
        Network(content, load_game(used_for), label="a model")


def test_a_file_whose_graph_has_a_size_is_refused_whatever_it_says():
    _, content = network_of("gomoku(size=5)", DENSE)
    model = onnx.load_from_string(content)
    for each in model.metadata_props:
        each.value = each.value.replace('"value_head":"dense"', '"value_head":"pooled"')
    with pytest.raises(ModelRefusedError, match="the sizes of its tensors cannot be inferred"):
        Network(model.SerializeToString(), load_game("gomoku"), label="a model")


def test_a_run_begins_with_the_network_of_a_smaller_board(tmp_path: Path):
    options = (*SMALL, "selfplay.bootstrap_positions=20", "selfplay.simulations=4", "trainer.bootstrap_passes=2")
    given = [part for option in options for part in ("-o", option)]
    small_run(tmp_path / "small", "gomoku(size=5)", *options)
    begin = ("init", "gomoku(size=6)", "--run", "large", "--from", "small", *given)
    assert refused(*begin, cwd=tmp_path) == "plyzero: small has no model yet; train it first\n"
    learn(open_run(tmp_path / "small"), models=1, full=40)
    assert refused(*begin, "-o", "network.channels=4", cwd=tmp_path).endswith("give -o network.channels=8\n")
    assert shown(*begin, cwd=tmp_path).endswith("; its first model is the newest of small\n")
    small, begun = load_network(tmp_path / "small"), load_network(tmp_path / "large")
    large = open_run(tmp_path / "large")
    (model,) = list_models(large.models)
    used, positions = load_newest(tmp_path / "small" / "models", large.game), positions_of(large.game)
    assert np.array_equal(used(positions).logits, begun(positions).logits)
    assert (begun.game.name, model.step) == ("gomoku(size=6)", small.step)
    with training(large, steps=0) as trainer:
        assert trainer.learner.step == small.step
    assert large.settings.selfplay.bootstrap_positions == 20
    sizes = ("-o", "network.blocks=1", "-o", "network.channels=8")
    shown("init", "gomoku(size=6)", "--run", "sooner", "--from", "small", *sizes, cwd=tmp_path)
    assert open_run(tmp_path / "sooner").settings.selfplay.bootstrap_positions == 512
