"""The client with servers that are not plyzero's: one that is made here, and real ones, NVIDIA Triton and MLServer."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.kits.cluster import wire
from plyzero.kits.cluster.remote_network import RemoteNetwork
from plyzero.network.model_loader import load_newest
from plyzero.network.onnx_network import Network
from plyzero.run.directory import Run
from plyzero.run.models import list_models
from plyzero.search.evaluators import EvaluationBatch
from tests.helpers.inference import batch_of, other_server, ready_run, same_games
from tests.helpers.learning import add_model
from tests.helpers.ports import free_ports

ROOT = Path(__file__).parents[3]
HELPERS = ROOT / "tests" / "helpers"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return ready_run(tmp_path / "r", "connect-four")


class Plain:
    """A server of the network itself: numbers in, numbers out in an order of its own, and no name but a version."""

    def __init__(self, run: Run, version: str = "10"):
        self.network: Network = load_newest(run.models, run.game)
        self.version, self.requests, start, tensor = version, [], run.game.start, wire.MESSAGES["TensorMetadata"]
        self.inputs = [tensor(name="observations", datatype="FP32", shape=[-1, *start.observation_shape])]
        sizes = {"wdl": 3, "logits": start.num_actions}
        self.outputs = [tensor(name=name, datatype="FP32", shape=[-1, size]) for name, size in sizes.items()]

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

    @contextmanager
    def client(self, run: Run) -> Iterator[RemoteNetwork]:
        methods = {"ModelMetadata": self.ModelMetadata, "ModelInfer": self.ModelInfer}
        with other_server(**methods) as address, closing(RemoteNetwork(address, run)) as remote:
            yield remote


def test_a_server_without_bits_gets_numbers_and_its_version_is_a_step(run: Run):
    plain = Plain(run)
    with plain.client(run) as remote:
        found = remote(batch_of(run))
        expected = plain.network(batch_of(run))
        assert np.array_equal(found.logits, expected.logits)
        assert np.array_equal(found.wdl, expected.wdl)
        newest = list_models(run.models)[0]
        assert (remote.fence, remote.step, remote.label) == (1, 10, str(newest))
        assert plain.requests[0].model_name == f"connect-four_v1_{run.id.text}"
        assert not plain.requests[0].parameters  # none that only plyzero knows
        for fence in (2, 3):
            add_model(run, 15, fence=fence)
        plain.version = "15"
        remote(batch_of(run))
        assert (remote.fence, remote.step) == (3, 15)  # the newest of that step


@pytest.mark.parametrize("version", ["1", "", "010x", "1" * 5000, "-10", "000001-000000010-01234567.onnx"])
def test_an_answer_that_names_no_model_of_the_run_is_not_used(run: Run, version: str, caplog):
    with Plain(run, version=version).client(run) as remote:
        assert remote.send(batch_of(run)).answer() is None
        assert "which is no model of the run; evaluating here" in caplog.text


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("inputs", "datatype", "INT64"),
        ("inputs", "name", "input"),
        ("inputs", "shape", [-1, 3, 7, 6]),
        ("outputs", "shape", [-1, 2]),
        ("outputs", "datatype", "BF16"),
        ("outputs", "name", "value"),
    ],
)
def test_a_server_whose_model_has_another_face_is_not_used(run: Run, part: str, field: str, value: Any, caplog):
    plain = Plain(run)
    tensor = getattr(plain, part)[0]
    tensor.ClearField(field)
    tensor.MergeFrom(wire.MESSAGES["TensorMetadata"](**{field: value}))
    with plain.client(run) as remote:
        assert not remote.is_ready
        assert "its model has other inputs or outputs than this version of the game" in caplog.text


# --- real servers, made by `make servers` ---


def environment(name: str) -> Path:
    """The environment of a server; the test is skipped where there is none."""
    if not (ROOT / "build" / name / ".ready").exists():
        pytest.skip(f"build/{name} is not there; `make servers` installs it")
    return ROOT / "build" / name


@contextmanager
def process(*command: object, log: Path, cwd: Path, **environment: object) -> Iterator[None]:
    """Run a program; it ends with this process, at the latest."""
    until_end_of_input = ["sh", "-c", '"$@" & cat; kill $!; wait', "sh", *map(str, command)]
    variables = os.environ | {name: str(value) for name, value in environment.items()}
    with log.open("wb") as file:
        made = subprocess.Popen(
            until_end_of_input, cwd=cwd, env=variables, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        made.stdin.close()
        made.wait(60)


def wait_for(condition: Callable[[], object], log: Path) -> None:
    """Wait until a condition holds. If it never does, the test fails with the end of a log."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(0.1)


def connected(address: str, run: Run, log: Path) -> RemoteNetwork:
    """A client of a server that is starting."""
    remote = RemoteNetwork(address, run, retry_seconds=0.5)
    wait_for(lambda: remote.refresh() or remote.is_ready, log)
    return remote


@contextmanager
def triton(repository: Path, directory: Path) -> Iterator[tuple[str, Path]]:
    """NVIDIA Triton on a repository that it polls; its address and its log.

    Its server is in the package nvidia-pytriton, which has no backend for ONNX Runtime.
    """
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment("pytriton"))}))
    server, backends = packages / "pytriton" / "tritonserver", directory / "backends"
    shutil.copytree(server / "backends" / "python", backends / "python")
    stubs = server / "python_backend_stubs" / sysconfig.get_python_version()
    shutil.copy(stubs / "triton_python_backend_stub", backends / "python")
    ports, log = free_ports(3), directory / "triton.log"
    command = [server / "bin" / "tritonserver", f"--model-repository={repository}", f"--backend-directory={backends}"]
    command += [f"--{kind}-port={port}" for kind, port in zip(("grpc", "http", "metrics"), ports, strict=True)]
    command += ["--model-control-mode=poll", "--repository-poll-secs=1", "--exit-on-error=false"]
    libraries = f"{sysconfig.get_config_var('LIBDIR')}:{packages / 'nvidia_pytriton.libs'}"
    with process(*command, log=log, cwd=directory, LD_LIBRARY_PATH=libraries):
        yield f"127.0.0.1:{ports[0]}", log


def add_onnx_backend(backends: Path) -> None:
    """Let Triton run tests/helpers/triton_backend.py where it looks for its backend for ONNX Runtime."""
    packages = sysconfig.get_path("purelib", vars={"base": str(environment("pytriton"))})
    (backends / "onnxruntime").mkdir(parents=True)
    source = (HELPERS / "triton_backend.py").read_text()
    (backends / "onnxruntime" / "model.py").write_text(f"import sys\nsys.path.insert(0, {packages!r})\n{source}")


@contextmanager
def kept_repository(run: Run, repository: Path) -> Iterator[None]:
    """The command that keeps it, once there is a model."""
    command = [sys.executable, "-m", "plyzero", "evaluator", "--run", run.root, "--repository", repository]
    log = run.root.parent / "evaluator.log"
    with process(*command, log=log, cwd=ROOT):
        wait_for(lambda: list(repository.glob("*/*/model.onnx")), log)
        yield


@pytest.mark.slow
def test_nvidia_triton_answers_while_versions_come_and_go(tmp_path: Path, run: Run, caplog):
    repository = tmp_path / "repository"
    add_onnx_backend(tmp_path / "backends")
    with kept_repository(run, repository), triton(repository, tmp_path) as (address, log):
        remote = connected(address, run, log)
        same_games(run, remote, 10)
        caplog.clear()
        for fence, step in ((1, 20), (1, 30), (2, 25)):  # the last one of a trainer that went back
            name = add_model(run, step, fence=fence)
            network, deadline = load_newest(run.models, run.game), time.monotonic() + 60
            while remote.label != str(name):
                assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
                answer = remote.send(batch_of(run)).answer()
                assert answer is not None, caplog.text
            answer = remote.send(batch_of(run)).answer()
            assert (answer.fence, answer.step) == (fence, step)
            assert np.array_equal(answer.evaluation.logits, network(batch_of(run)).logits)
        remote.close()
    assert "is not used" not in caplog.text


@pytest.mark.slow
def test_mlserver_gives_the_same_games(tmp_path: Path, run: Run):
    program = environment("mlserver") / "bin" / "mlserver"
    ports, log = free_ports(3), tmp_path / "mlserver.log"
    names = ("grpc_port", "http_port", "metrics_port")
    settings = {"host": "127.0.0.1", **dict(zip(names, ports, strict=True)), "parallel_workers": 0}
    inputs, outputs = wire.describe(run.game.start)
    inputs[0].shape[1:] = run.game.start.observation_shape
    declared = {
        part: [{"name": each.name, "datatype": "FP32", "shape": list(each.shape)} for each in tensors]
        for part, tensors in (("inputs", inputs), ("outputs", outputs))
    }
    name = list_models(run.models)[0]
    model = {
        "name": wire.model_name(run),
        "implementation": "mlserver_runtime.OnnxRuntime",
        "parameters": {"uri": str(run.models / str(name)), "version": str(name.step)},
        **declared,
    }
    directory = tmp_path / "mlserver"
    directory.mkdir()
    shutil.copy(HELPERS / "mlserver_runtime.py", directory)
    for file, content in (("settings.json", settings), ("model-settings.json", model)):
        (directory / file).write_text(json.dumps(content))
    with process(program, "start", directory, log=log, cwd=directory, PYTHONPATH=directory):
        remote = connected(f"127.0.0.1:{ports[0]}", run, log)
        same_games(run, remote, 10)
        assert remote.label == str(name)
        remote.close()
