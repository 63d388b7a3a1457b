"""AdamW without torch.optim's imports: the steps and the states are those of torch."""

import pytest
import torch
from torch import nn

from plyzero.settings import TrainerSettings
from plyzero.trainer.learner import AdamW, adamw
from plyzero.trainer.state import pack_state, read_state
from tests.helpers.surroundings import python

SETTINGS = TrainerSettings(learning_rate=0.01, weight_decay=0.1)


def small() -> nn.Sequential:
    """A convolution in the memory format of the trainer, a linear layer, and one that gets no gradient."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4, 5))
    network[2].unused = nn.Linear(2, 2)
    return network.to(memory_format=torch.channels_last)


def learn(network: nn.Module, optimiser: torch.optim.Optimizer, *, steps: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        inputs = torch.randn(8, 3, 3, 3, generator=generator)
        optimiser.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimiser.zero_grad(set_to_none=True)
        network(inputs.contiguous(memory_format=torch.channels_last)).square().sum().backward()
        optimiser.step()
    return [each.detach().clone() for each in network.parameters()]


def own(network: nn.Module) -> AdamW:
    optimiser = adamw(network.parameters(), SETTINGS)
    assert type(optimiser) is AdamW
    return optimiser


def of_torch(network: nn.Module, **options: bool) -> torch.optim.Optimizer:
    return torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1, **options)


def test_the_weights_are_those_of_torch_after_every_step():
    network, fused, default = small(), small(), small()
    found = learn(network, own(network), steps=20)
    assert all(map(torch.equal, found, learn(fused, of_torch(fused, fused=True), steps=20)))
    torch.testing.assert_close(found, learn(default, of_torch(default), steps=20), rtol=1e-5, atol=1e-6)
    assert not torch.equal(found[0], small()[0].weight)
    assert torch.equal(found[-1], small()[2].unused.bias)


@pytest.mark.parametrize("is_from_torch", [True, False])
def test_a_state_continues_in_both_directions(tmp_path, is_from_torch: bool):
    first, network, expected = small(), small(), small()
    before, after = (of_torch, own) if is_from_torch else (own, of_torch)
    before, after = before(first), after(network)
    learn(first, before, steps=5)
    (tmp_path / "state.pt").write_bytes(pack_state({"optimiser": before.state_dict()}))
    network.load_state_dict(first.state_dict())
    after.load_state_dict(read_state(tmp_path / "state.pt", "")["optimiser"])
    reference = of_torch(expected)
    learn(expected, reference, steps=5)
    found = learn(network, after, steps=5, seed=1)
    torch.testing.assert_close(found, learn(expected, reference, steps=5, seed=1), rtol=1e-5, atol=1e-6)
    state, wanted = after.state_dict(), reference.state_dict()
    assert (state.keys(), state["state"].keys()) == (wanted.keys(), wanted["state"].keys())
    assert state["param_groups"][0].keys() >= wanted["param_groups"][0].keys()


def test_a_state_of_other_parameters_or_of_another_optimiser_is_refused():
    network = small()
    sgd = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.5)
    learn(network, sgd, steps=1)
    for state in (of_torch(nn.Linear(2, 2)).state_dict(), sgd.state_dict()):
        with pytest.raises(ValueError, match="of other parameters, or of another optimiser"):
            own(network).load_state_dict(state)


def test_parameters_of_several_types_are_left_to_torch():
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64))
    assert type(adamw(network.parameters(), SETTINGS)) is torch.optim.AdamW


@pytest.mark.slow
def test_a_learner_makes_steps_and_a_state_without_the_imports_of_other_optimisers():
    code = """
import sys, torch
from plyzero.settings import TrainerSettings
from plyzero.trainer.learner import adamw
layer = torch.nn.Linear(2, 2)
optimiser = adamw(layer.parameters(), TrainerSettings())
layer(torch.ones(1, 2)).sum().backward()
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
optimiser.zero_grad()
assert "torch._dynamo" not in sys.modules
"""
    python("-c", code)
