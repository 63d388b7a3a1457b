"""A step of the learner on a GPU, with torch's device "meta" in its place, from which nothing can be read."""

import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from plyzero.games.connect_four import ConnectFour
from plyzero.settings import NetworkSettings, TrainerSettings
from plyzero.trainer.learner import Averaged, Learner
from plyzero.trainer.loop import Trainer
from plyzero.trainer.loss import loss
from plyzero.trainer.network import make_network
from plyzero.trainer.window import Batch, BatchTensors, Sampler
from tests.helpers.runs import small_run
from tests.helpers.samples import made_up

META = torch.device("meta")


def some_batch(rows: int, *, first: int = 0) -> Batch:
    game, policy = ConnectFour(), np.full((rows, 7), 1 / 7, np.float32)
    planes = np.full((rows, *game.observation_shape), first, np.float32)
    wdl, score = np.full((rows, 3), 1 / 3, np.float32), np.full(rows, np.nan, np.float32)
    return Batch(planes, np.ones((rows, 7), np.bool_), policy, wdl, score, np.zeros((rows, 0, 6, 7), np.float32))


def test_a_step_reads_nothing_back_from_the_device(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.trainer.learner.cpu_flags", set)  # with bfloat16, "meta" would be asked to autocast
    network = make_network(NetworkSettings(blocks=1, channels=8), ConnectFour())
    learner = Learner(network, loss, TrainerSettings(), META)
    for step in range(1, 4):
        losses = learner.learn(some_batch(8))
        assert (learner.step, losses.device, losses.shape) == (step, META, (2,))
    with pytest.raises(RuntimeError, match="meta"):  # what any reading would have raised
        losses[0].item()


@pytest.mark.parametrize("decay", [0.9, 0.999])
def test_the_moving_average_is_that_of_torch_to_the_last_bit(decay: float):
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2).double())  # a buffer of it counts
    multi_avg_fn = get_ema_multi_avg_fn(decay)
    theirs, ours = AveragedModel(network, multi_avg_fn=multi_avg_fn, use_buffers=True), Averaged(network, decay=decay)
    for step in range(8):
        with torch.no_grad():
            for each in network.parameters():
                each.add_(torch.randn_like(each))
            network[1].running_mean.add_(step)
            network[1].num_batches_tracked.add_(3)
        theirs.update_parameters(network)
        ours.update(network)
        if step == 4:  # a state continues in both directions
            state = ours.state_dict()
            ours.load_state_dict(theirs.state_dict())
            theirs.load_state_dict(state)
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=0, atol=0)
        assert list(ours.state_dict()) == list(theirs.state_dict())


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows of the tensors that were put into page-locked memory."""
    rows: list[int] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: rows.append(len(self)) or self)
    return rows


def test_batches_are_sampled_ahead_in_their_order(pinned: list[int]):
    numbers, busy, free = iter(range(100)), threading.Event(), threading.Event()

    def sample() -> Batch:
        if (number := next(numbers)) == 3:
            busy.set()
            assert free.wait(60)
        return some_batch(2, first=number)

    sampler = Sampler(sample, ahead=True)
    found = [sampler.take() for _ in range(3)]
    assert [float(each.observations[0, 0, 0, 0]) for each in found] == [0, 1, 2]
    assert all(isinstance(each, BatchTensors) for each in found)
    assert busy.wait(60)  # with the fourth, which nobody has asked for yet
    threading.Timer(0.2, free.set).start()
    sampler.pause()
    assert free.is_set()
    assert next(numbers) == 4  # nothing is sampled now
    assert float(sampler.take().observations[0, 0, 0, 0]) == 3
    sampler.pause()
    assert set(pinned) == {2}


def test_a_trainer_that_samples_ahead_trains_on_the_same_batches(tmp_path: Path, pinned: list[int]):
    run, rng, weights = small_run(tmp_path / "run", "tic-tac-toe"), np.random.default_rng(100), []
    wdl, policy = rng.dirichlet(np.ones(3), 100), rng.dirichlet(np.ones(9), 100)
    samples = made_up(rng.random((100, 2, 3, 3)) < 0.3, wdl, policy)
    for ahead in (False, True):
        with closing(Trainer(run, device="cpu")) as trainer:
            trainer.intake.sampler._ahead = ahead
            trainer.intake.window.add("games", samples, size=1000)
            for _ in range(3):
                trainer.train_step()
            trainer.intake.sampler.pause()
            weights.append([each.detach().clone() for each in trainer.learner.network.parameters()])
    assert set(pinned) == {trainer.settings.batch_size}
    assert all(torch.equal(*each) for each in zip(*weights, strict=True))
