"""The client with servers that are not plyzero's: those of NVIDIA Triton's kind, which name a step, and real ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.inference import wire
from plyzero.inference.remote_network import RemoteNetwork
from plyzero.play.model_loader import load_newest
from plyzero.run.directory import Run
from plyzero.run.models import list_models, publish_model
from plyzero.search.evaluators import EvaluationBatch
from plyzero.search.onnx_network import Network
from tests.helpers.inference import batch_of, other_server
from tests.helpers.runs import small_run
from trainer.export import untrained


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = small_run(tmp_path / "r", "connect-four")
    publish_model(made.models, untrained(made), fence=1, step=10)
    return made


class Plain:
    """A server of the network itself: numbers in, numbers out in an order of its own, and no name but a version."""

    def __init__(self, run: Run, version: str = "10"):
        self.network: Network = load_newest(run.models, run.game)
        self.start, self.version, self.requests = run.game.start, version, []
        tensor = wire.MESSAGES["TensorMetadata"]
        self.inputs = [tensor(name="observations", datatype="FP32", shape=[-1, *run.game.start.observation_shape])]
        self.outputs = [
            tensor(name="wdl", datatype="FP32", shape=[-1, 3]),
            tensor(name="logits", datatype="FP32", shape=[-1, run.game.start.num_actions]),
        ]

    def ModelMetadata(self, request: Any) -> Any:
        return wire.MESSAGES["ModelMetadataResponse"](
            name=request.name, versions=[], platform="another", inputs=self.inputs, outputs=self.outputs
        )

    def ModelInfer(self, request: Any) -> Any:
        self.requests.append(request)
        response = wire.MESSAGES["ModelInferResponse"](model_name=request.model_name, model_version=self.version)
        shape = list(request.inputs[0].shape)
        observations = np.frombuffer(request.raw_input_contents[0], "<f4").reshape(shape)
        logits, wdl = self.network(EvaluationBatch(observations, list))
        for name, values in (("wdl", wdl), ("logits", logits)):
            response.outputs.add(name=name, datatype="FP32", shape=values.shape)
            response.raw_output_contents.append(values.tobytes())
        return response

    def start_serving(self) -> Any:
        return other_server(ModelMetadata=self.ModelMetadata, ModelInfer=self.ModelInfer)


def test_a_server_without_bits_gets_numbers_and_its_version_is_the_step_of_a_model_of_the_run(run: Run):
    plain = Plain(run)
    with plain.start_serving() as address:
        remote = RemoteNetwork(address, run.game, models=run.models)
        found = remote(batch_of(run))
        expected = plain.network(batch_of(run))
        assert np.array_equal(found.logits, expected.logits)
        assert np.array_equal(found.wdl, expected.wdl)
        newest = list_models(run.models)[0]
        assert (remote.fence, remote.step, remote.label) == (1, 10, str(newest))
        assert plain.requests[0].model_name == "connect-four_v1"
        assert not plain.requests[0].parameters  # none that only plyzero knows
        publish_model(run.models, untrained(run), fence=2, step=15)
        plain.version = "15"
        remote(batch_of(run))
        assert (remote.fence, remote.step) == (2, 15)
        remote.close()


@pytest.mark.parametrize("version", ["1", "", "010x", "1" * 5000, "-10"])
def test_an_answer_that_names_no_model_of_the_run_is_not_used(run: Run, version: str, caplog):
    plain = Plain(run, version=version)
    with plain.start_serving() as address:
        remote = RemoteNetwork(address, run.game, models=run.models)
        assert remote.send(batch_of(run)).answer() is None
        assert "which is no model of the run; evaluating here" in caplog.text
        remote.close()


def test_a_server_whose_model_has_another_face_is_not_used(run: Run, caplog):
    for part, change in (
        ("inputs", {"datatype": "INT64"}),
        ("inputs", {"name": "input"}),
        ("inputs", {"shape": [-1, 3, 7, 6]}),
        ("outputs", {"shape": [-1, 2]}),
        ("outputs", {"datatype": "BF16"}),
        ("outputs", {"name": "value"}),
    ):
        plain = Plain(run)
        tensor = getattr(plain, part)[0]
        for field, value in change.items():
            tensor.ClearField(field)
            tensor.MergeFrom(wire.MESSAGES["TensorMetadata"](**{field: value}))
        with plain.start_serving() as address:
            caplog.clear()
            remote = RemoteNetwork(address, run.game, models=run.models)
            assert not remote.is_ready, change
            assert "its model has other inputs or outputs than this version of the game" in caplog.text
            remote.close()
