"""Several processes train together: on the CPU, with gloo. NCCL needs several GPUs."""

import copy
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from plyzero.errors import UserError
from plyzero.kits.cluster.data_parallel import RankError, check_devices, share_of
from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run, open_run
from plyzero.run.models import list_models, publish_model
from plyzero.run.segments import list_segments
from plyzero.settings import TrainerSettings
from plyzero.trainer.export import untrained
from plyzero.trainer.learner import LossesOfNetwork
from plyzero.trainer.loss import loss
from plyzero.trainer.state import load_state
from plyzero.trainer.window import Batch, to_device
from tests.helpers.beats import fields_of
from tests.helpers.cli import refused
from tests.helpers.learning import trainer_on, training
from tests.helpers.own_parts import policy_alone
from tests.helpers.ranks import observe_ranks, snapshot
from tests.helpers.runs import play_segment, small_run
from tests.helpers.surroundings import is_running, wait_until
from tests.helpers.victims import visible

CPU = torch.device("cpu")


def test_every_row_of_a_batch_belongs_to_one_process():
    rows = np.arange(12)
    batch = Batch(rows[:, None, None, None], *[rows[:, None]] * 3, rows, rows)
    parts = [share_of(batch, rank, 3) for rank in range(3)]
    assert [part.wdl[:, 0].tolist() for part in parts] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert all(field.shape[0] == 4 for part in parts for field in part)


@pytest.mark.parametrize(
    ("devices", "found", "asked", "chosen", "sentence"),
    [
        (2, 0, "auto", "cpu", "--devices 2: torch finds no CUDA device here; for tests, add --device cpu, "),
        (4, 2, "auto", "cuda", "--devices 4: torch finds 2 CUDA devices here; use at most --devices 2"),
        (3, 8, "cuda", "cuda", "--devices 3 must divide trainer.batch_size = 32; .* -o trainer.batch_size=30"),
        (3, 0, "cpu", "cpu", "--devices 3 must divide trainer.batch_size = 32"),
        (64, 0, "cpu", "cpu", "--devices 64 must divide trainer.batch_size = 32; .* -o trainer.batch_size=64"),
    ],
)
def test_devices_that_cannot_train_together_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, devices: int, found: int, asked: str, chosen: str, sentence: str
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    with pytest.raises(UserError, match=sentence):
        check_devices(devices, torch.device(chosen), asked=asked, batch_size=32)
    check_devices(1, torch.device(chosen), asked=asked, batch_size=33)
    check_devices(2, torch.device("cpu"), asked="cpu", batch_size=32)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are GPUs")
def test_devices_that_are_not_there_are_refused_before_a_lease_is_taken(tmp_path: Path):
    run = small_run(tmp_path / "r")
    said = refused("trainer", "--run", str(run.root), "--devices", "2")
    assert said.startswith("plyzero: --devices 2: torch finds no CUDA device here;")
    assert list(run.trainer.glob("fence-*")) == []


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with games enough for many steps, whose gradients are not clipped."""
    run = small_run(tmp_path / "r", "tic-tac-toe", "trainer.max_grad_norm=1e9")
    play_segment(run, full=300)
    return run


def gradients(network: torch.nn.Module, batch: Batch, loss_function: Callable = loss) -> dict[str, torch.Tensor]:
    """The gradients of one process on `batch`, computed on a copy of the network."""
    network = copy.deepcopy(network).train()
    LossesOfNetwork(network, loss_function, TrainerSettings())(to_device(batch, CPU)).total.backward()
    return {name: each.grad for name, each in network.named_parameters() if each.grad is not None}


def difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The largest difference of any element, relative to the largest element."""
    assert one.keys() == other.keys()
    scale = max(float(each.abs().max()) for each in one.values())
    return max(float((one[name] - other[name]).abs().max()) for name in one) / scale


def read_step(folder: Path, step: int) -> dict[str, dict[str, torch.Tensor]]:
    wait_until((folder / f"{step}.pt").exists, 60)
    return torch.load(folder / f"{step}.pt")


@pytest.mark.slow
def test_gradients_are_the_mean_and_weights_are_equal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    observe_ranks(monkeypatch, tmp_path)
    with training(run, steps=0, devices=2) as trainer:
        for step in range(1, 6):
            batch = trainer.intake.window.sample(32, np.random.default_rng(step))
            halves = [gradients(trainer.learner.network, share_of(batch, rank, 2)) for rank in range(2)]
            mean = {name: (halves[0][name] + halves[1][name]) / 2 for name in halves[0]}
            losses = trainer.devices.learn(batch)
            here = snapshot(trainer.learner)
            assert difference(here["gradients"], mean) < 1e-5
            assert difference(halves[0], halves[1]) > 0.1
            torch.testing.assert_close(here, read_step(tmp_path, step), rtol=0, atol=0)
            assert losses.isfinite().all()


@pytest.mark.slow
def test_without_batch_normalisation_two_processes_make_the_step_of_one(run: Run):
    parts = "tests.helpers.own_parts"
    run = open_run(run.root, options=[f"network.module={parts}:Plain", f"trainer.loss={parts}:policy_alone"])
    with training(run, steps=0, devices=2) as trainer:
        for step in range(3):
            batch = trainer.intake.window.sample(32, np.random.default_rng(step))
            alone = gradients(trainer.learner.network, batch, policy_alone)
            whole = policy_alone(
                *trainer.learner.network(torch.from_numpy(batch.observations)),
                **{name: torch.from_numpy(getattr(batch, name)) for name in ("legal", "policy", "wdl")},
            )
            losses = trainer.devices.learn(batch)
            assert difference(snapshot(trainer.learner)["gradients"], alone) < 1e-5
            assert losses.tolist() == pytest.approx([whole.policy.item(), whole.value.item()], rel=1e-5)
        assert "value.weight" not in alone


@pytest.mark.slow
def test_one_process_continues_the_state_of_two_and_two_again(run: Run, tmp_path: Path, monkeypatch):
    observe_ranks(monkeypatch, tmp_path)
    trained, weights = 0, None
    for devices, steps in ((2, 3), (1, 2), (2, 2)):
        with closing(trainer_on(run, devices)) as trainer:
            assert (trainer.learner.step, trainer.intake.ledger.trained) == (trained // 32, trained)
            if weights is not None:
                torch.testing.assert_close(trainer.learner.network.state_dict(), weights, rtol=0, atol=0)
            trainer.ingest()
            for _ in range(steps):
                trainer.train_step()
            trained += 32 * steps
            trainer.publisher.save()
            weights = copy.deepcopy(trainer.learner.network.state_dict())
            last = snapshot(trainer.learner)
    assert load_state(run.trainer)["ledger"]["trained"] == trained == 7 * 32
    there = read_step(tmp_path, 7)  # the optimiser has come along too, or these would differ
    torch.testing.assert_close(last["weights"], there["weights"], rtol=0, atol=0)


def others_of(pid: int) -> list[int]:
    """The children of a process that are processes of `--devices`."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            state, parent, *_ = (path / "stat").read_text().rpartition(")")[2].split()
            if int(parent) == pid and state != "Z" and b"run_rank" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process of Python that is killed at the end."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *command], **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def run_to_train(root: Path, full: int, *options: str) -> Run:
    """A run with a model, so that the trainer publishes while it trains, and positions that it has played."""
    run = small_run(root, "tic-tac-toe", *options)
    publish_model(run.models, untrained(run), fence=0, step=0)
    play_segment(run, full=200)
    play_segment(run, full=full, sequence=1, fence=1, step=1)
    return run


def wait_for_model(run: Run, fence: int) -> None:
    wait_until(lambda: list_models(run.models)[0].fence == fence)


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_the_ledger_is_exact(tmp_path: Path):
    options = ("trainer.publish_seconds=5", "trainer.window_positions=1000000", "trainer.replay_ratio=4")
    run = run_to_train(tmp_path / "r", 800, *options)
    command = ("-m", "plyzero", "trainer", "--run", str(run.root), "--device", "cpu", "--devices", "2")

    with running(*command) as trainer:
        wait_for_model(run, fence=1)
        (other,) = others_of(trainer.pid)
        os.kill(other, signal.SIGKILL)
        assert trainer.wait(300) == 1
        said = trainer.stderr.read()
    sentence = "plyzero: process 1 of --devices 2 has ended, killed by SIGKILL; the next start of the trainer continues"
    assert said == f"{sentence} from the last saved state\n"

    with running(*command) as trainer:
        wait_for_model(run, fence=2)
        (other,) = others_of(trainer.pid)
        trainer.kill()
        wait_until(lambda: not is_running(other), seconds=300)

    with running(*command) as trainer:

        def waits() -> bool:
            beat = fields_of(run.workers / "trainer.json") or {"pid": 0}
            return beat["pid"] == trainer.pid and beat["state"].startswith("waiting")

        wait_until(waits)
        (other,) = others_of(trainer.pid)
        trainer.send_signal(signal.SIGTERM)
        assert trainer.wait(100) == 0
        assert not is_running(other)
    state = load_state(run.trainer)
    assert state["games"] == visible(run).total()
    full = sum(name.full for name in list_segments(run.segments) if not name.bootstrap)
    ledger = state["ledger"]
    assert ledger["trained"] == 32 * state["step"]
    assert ledger["generated"] == full >= 800
    assert ledger["credit"] == pytest.approx(4 * 200 + 4 * full - ledger["trained"])
    assert 0 <= ledger["credit"] < 32
    assert [fault for _, fault in find_faults(run) if fault] == []


@pytest.mark.slow
def test_a_process_that_ends_or_cannot_start_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch):
    with closing(trainer_on(run, 2)) as trainer:
        trainer.devices._others[0].kill()
        with pytest.raises(RankError, match="process 1 of --devices 2 has ended, killed by SIGKILL"):
            wait_until(lambda: trainer.check_devices())
    monkeypatch.setattr("plyzero.kits.cluster.data_parallel.COMMAND", "raise SystemExit(3)")
    with pytest.raises(RankError, match="process 1 of --devices 2 has ended, with exit code 3"):
        trainer_on(run, 2)
    with closing(trainer_on(run, 1)):  # the lease is free
        pass


@pytest.mark.slow
def test_a_process_that_does_not_answer_ends_the_trainer(tmp_path: Path):
    run = run_to_train(tmp_path / "r", 1500, "trainer.replay_ratio=1000")
    program = (
        "import sys; from plyzero.kits.cluster import data_parallel; data_parallel.STEP_SECONDS = 5.0; "
        "from plyzero.commands.cli import main; "
        f"sys.argv = ['plyzero', 'trainer', '--run', {str(run.root)!r}, '--device', 'cpu', '--devices', '2']; main()"
    )
    with running("-c", program) as trainer:
        wait_for_model(run, fence=1)
        (other,) = others_of(trainer.pid)
        os.kill(other, signal.SIGSTOP)
        try:
            assert trainer.wait(60) == 1
        finally:
            os.kill(other, signal.SIGCONT)
        said = trainer.stderr.read()
    sentence = "plyzero: a process of --devices 2 does not answer; the next start of the trainer continues from the"
    assert said == f"{sentence} last saved state\n"
    wait_until(lambda: not is_running(other), seconds=30)
