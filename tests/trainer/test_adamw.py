"""AdamW without torch.optim's imports: the steps and the states are those of torch."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from plyzero.settings import TrainerSettings
from trainer.learner import AdamW, adamw
from trainer.state import pack_state, read_state

SETTINGS = TrainerSettings(learning_rate=0.01, weight_decay=0.1)


class Small(nn.Module):
    """A convolution in the memory format of the trainer, a linear layer, and one that gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 5))
        self.unused = nn.Linear(2, 2)
        self.to(memory_format=torch.channels_last)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(inputs)


def batches(seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(8, 3, 3, 3, generator=generator)


def learn(network: nn.Module, optimiser: torch.optim.Optimizer, *, steps: int, seed: int = 0) -> list[torch.Tensor]:
    for step, inputs in zip(range(steps), batches(seed), strict=False):
        optimiser.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimiser.zero_grad(set_to_none=True)
        network(inputs.contiguous(memory_format=torch.channels_last)).square().sum().backward()
        optimiser.step()
    return [each.detach().clone() for each in network.parameters()]


def of_torch(network: nn.Module, **options: bool) -> torch.optim.Optimizer:
    return torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1, **options)


def test_the_weights_are_those_of_torch_after_every_step():
    own, fused, default = Small(), Small(), Small()
    optimiser = adamw(own.parameters(), SETTINGS)
    assert type(optimiser) is AdamW
    found = learn(own, optimiser, steps=20)
    assert all(map(torch.equal, found, learn(fused, of_torch(fused, fused=True), steps=20)))
    torch.testing.assert_close(found, learn(default, of_torch(default), steps=20), rtol=1e-5, atol=1e-6)
    assert not torch.equal(found[0], Small().layers[0].weight)
    assert torch.equal(found[-1], Small().unused.bias)


@pytest.mark.parametrize("is_from_torch", [True, False])
def test_a_state_continues_in_both_directions(tmp_path, is_from_torch: bool):
    first, network, expected = Small(), Small(), Small()
    made = [of_torch(first), adamw(network.parameters(), SETTINGS)]
    before, after = made if is_from_torch else (adamw(first.parameters(), SETTINGS), of_torch(network))
    learn(first, before, steps=5)
    (tmp_path / "state.pt").write_bytes(pack_state({"optimiser": before.state_dict()}))
    network.load_state_dict(first.state_dict())
    after.load_state_dict(read_state(tmp_path / "state.pt", "")["optimiser"])
    reference = of_torch(expected)
    learn(expected, reference, steps=5)
    found = learn(network, after, steps=5, seed=1)
    torch.testing.assert_close(found, learn(expected, reference, steps=5, seed=1), rtol=1e-5, atol=1e-6)
    assert after.state_dict().keys() == reference.state_dict().keys()
    assert after.state_dict()["state"].keys() == reference.state_dict()["state"].keys()
    assert after.state_dict()["param_groups"][0].keys() >= reference.state_dict()["param_groups"][0].keys()


def test_a_state_of_other_parameters_or_of_another_optimiser_is_refused():
    network = Small()
    sgd = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.5)
    learn(network, sgd, steps=1)
    for state in (of_torch(nn.Linear(2, 2)).state_dict(), sgd.state_dict()):
        with pytest.raises(ValueError, match="of other parameters, or of another optimiser"):
            adamw(network.parameters(), SETTINGS).load_state_dict(state)


def test_parameters_of_several_types_are_left_to_torch():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64))
    assert type(adamw(network.parameters(), SETTINGS)) is torch.optim.AdamW


@pytest.mark.slow
def test_a_learner_makes_steps_and_a_state_without_the_imports_of_other_optimisers():
    code = """
import sys, torch
from plyzero.settings import TrainerSettings
from trainer.learner import adamw
layer = torch.nn.Linear(2, 2)
optimiser = adamw(layer.parameters(), TrainerSettings())
layer(torch.ones(1, 2)).sum().backward()
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
optimiser.zero_grad()
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
