"""The learner: a network, the moving average of its weights, and the optimiser that makes a step on each batch."""

from __future__ import annotations

import copy
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn

from plyzero.errors import UserError
from plyzero.network.onnx_network import cpu_flags
from plyzero.rules.user_modules import load_object
from plyzero.run.directory import KEY, Run
from plyzero.settings import TrainerSettings
from plyzero.trainer.loss import Loss, Losses, board_loss, score_loss
from plyzero.trainer.state import LearnerState, State
from plyzero.trainer.window import Batch, BatchTensors, to_device

MOMENTS: Final = ("exp_avg", "exp_avg_sq")  # torch's names for the means of the gradients and of their squares


def adamw(parameters: Iterator[nn.Parameter], settings: TrainerSettings) -> torch.optim.Optimizer:
    """Return AdamW (Loshchilov and Hutter, 2019). Any function with this signature can be `trainer.optimizer`."""
    chosen = [*parameters]
    if len({(each.device, each.dtype) for each in chosen}) == 1:
        return AdamW(chosen, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(chosen, lr=settings.learning_rate, weight_decay=settings.weight_decay)


class AdamW(torch.optim.Optimizer):
    """torch.optim.AdamW with fused=True, for parameters of one type on one device; their states are interchangeable.

    Every other optimiser imports torch._dynamo and 800 more modules when it is made, which takes a second. So
    Optimizer.__init__ is not called, and hooks are not supported.
    """

    def __init__(self, parameters: list[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        self.defaults = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": weight_decay, "fused": True}
        self.defaults |= dict.fromkeys(("amsgrad", "maximize", "capturable", "differentiable"), False)
        self.defaults |= {"foreach": None, "decoupled_weight_decay": True}
        self.param_groups = [{"params": parameters, **self.defaults}]
        self.state = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # without a closure
        group = self.param_groups[0]
        learned = [each for each in group["params"] if each.grad is not None]
        for each in learned:
            if each not in self.state:
                zeros = {name: torch.zeros_like(each, requires_grad=False) for name in MOMENTS}
                self.state[each] = {"step": torch.zeros((), device=each.device), **zeros}
        gradients = [each.grad for each in learned]
        steps = [self.state[each]["step"] for each in learned]
        means, squares = ([self.state[each][name] for each in learned] for name in MOMENTS)
        beta1, beta2 = group["betas"]
        options = {name: group[name] for name in ("lr", "weight_decay", "eps", "amsgrad", "maximize")}
        with torch.no_grad():
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(learned, gradients, means, squares, [], steps, beta1=beta1, beta2=beta2, **options)

    def state_dict(self) -> dict[str, Any]:
        group = self.param_groups[0]
        numbers = {each: number for number, each in enumerate(group["params"])}
        state = {numbers[each]: values for each, values in self.state.items()}
        return {"state": state, "param_groups": [{**group, "params": [*numbers.values()]}]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state of AdamW. Raises ValueError if it is of other parameters or of another optimiser."""
        parameters = self.param_groups[0]["params"]
        (saved,) = state_dict["param_groups"]
        is_adamw = all(each.keys() >= {"step", *MOMENTS} for each in state_dict["state"].values())
        if len(saved["params"]) != len(parameters) or not is_adamw:
            raise ValueError("the state of the optimiser is of other parameters, or of another optimiser than AdamW")
        self.param_groups = [{**self.param_groups[0], **saved, "params": parameters}]
        self.state.clear()
        for number, values in state_dict["state"].items():
            own = parameters[number]
            moments = {name: torch.empty_like(own, requires_grad=False).copy_(values[name]) for name in MOMENTS}
            self.state[own] = {"step": values["step"].to(own.device, copy=True), **moments}


class Averaged(nn.Module):
    """The exponential moving average of the weights and buffers of a network, which is `module`.

    Its state is that of torch's AveragedModel, whose updates wait until a GPU has done all its work: the counter is
    copied there or back. It stays on the CPU if only `module` is moved.
    """

    n_averaged: Tensor

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        super().__init__()
        self.module = copy.deepcopy(network)
        self._decay = decay
        self.register_buffer("n_averaged", torch.tensor(0))

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Let the average follow `network`; the first time it becomes equal to it."""
        own = [*self.module.parameters(), *self.module.buffers()]
        new = [*network.parameters(), *network.buffers()]
        decay = self._decay if self.n_averaged else 0.0
        if decay:
            self._follow(own, new, decay)
        else:
            for ours, theirs in zip(own, new, strict=True):
                ours.copy_(theirs)
        self.n_averaged += 1

    def _follow(self, own: list[Tensor], new: list[Tensor], decay: float) -> None:
        """Replace each of `own` by decay · own + (1 - decay) · new; floating-point tensors all at once."""
        floats = [at for at, each in enumerate(own) if each.is_floating_point()]
        torch._foreach_lerp_([own[at] for at in floats], [new[at] for at in floats], 1 - decay)
        for ours, theirs in zip(own, new, strict=True):
            if not ours.is_floating_point():
                ours.copy_(ours * decay + theirs * (1 - decay))


def warm_up(step: int, settings: TrainerSettings) -> float:
    """Return the learning rate of a step, from 0 on. Any function with this signature can be `trainer.schedule`."""
    return settings.learning_rate * min(1.0, (step + 1) / settings.warmup_steps)


class Learner:
    """Learns from batches, wherever their positions come from.

    step:      number of optimiser steps.
    network:   the network that is trained.
    averaged:  the exponential moving average of its weights; `averaged.module` is a network too.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        settings: TrainerSettings,
        device: torch.device,
        *,
        halves_on_cpu: bool = True,
    ) -> None:
        """halves_on_cpu: make the forward pass in bfloat16 on a CPU that has it: 1.4 times as fast, less exact."""
        self.step = 0
        self.settings = settings
        self.device = device
        self.network = network.to(device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster on both devices
        self.averaged = Averaged(self.network, decay=settings.ema_decay)
        self._schedule: Callable[[int, TrainerSettings], float] = load_object(settings.schedule)
        self._optimiser: torch.optim.Optimizer = load_object(settings.optimizer)(self.network.parameters(), settings)
        self._losses_of: nn.Module = LossesOfNetwork(self.network, loss, settings, halves_on_cpu=halves_on_cpu)

    def share(self, wrap: Callable[[nn.Module], nn.Module]) -> None:
        """Let `wrap` replace the module that computes the losses, so that several processes make each step together."""
        self._losses_of = wrap(self._losses_of)

    def learn(self, batch: Batch | BatchTensors) -> Tensor:
        """Make one optimiser step, its forward pass in bfloat16 if the device can.

        Return the policy and the value loss, `[2]` float64, on the device; a GPU may still be computing them.
        """
        tensors = to_device(batch, self.device)
        self.network.train()
        for group in self._optimiser.param_groups:
            group["lr"] = self._schedule(self.step, self.settings)
        losses: Losses = self._losses_of(tensors)
        self._optimiser.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_grad_norm)
        self._optimiser.step()
        self.averaged.update(self.network)
        self.step += 1
        return torch.stack([losses.policy, losses.value]).double()

    def check_finite(
        self, what: str, is_finite: bool, *, advice: str = "the last saved state is kept: continue with"
    ) -> None:
        """Raise UserError, with what to do, unless `what` is finite."""
        if not is_finite:
            raise UserError(
                f"the {what} is not finite at step {self.step}; {advice} a lower learning rate, "
                f"-o trainer.learning_rate={self.settings.learning_rate / 4:g}"
            )

    def state_dict(self) -> LearnerState:
        """Return what `load_state_dict` needs to continue from here; the tensors are those in use, not copies."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimiser": self._optimiser.state_dict(),
        }

    def load_state_dict(self, state: LearnerState) -> None:
        """Continue from `state`. Raises RuntimeError if it is of another network."""
        self.network.load_state_dict(state["network"])
        self.averaged.load_state_dict(state["averaged"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]


class Devices(Protocol):
    """Further devices, which make each step of a learner together with its own."""

    def learn(self, batch: Batch | BatchTensors) -> Tensor:
        """Make one step of the learner, as `Learner.learn` does, and return the same."""
        ...

    def check(self) -> None:
        """Raise an error, with a message for the user, if no further step is possible."""
        ...

    def close(self) -> None:
        """End what runs on these devices."""
        ...


def load_weights(learner: Learner, state: State, run: Run) -> None:
    """Continue `learner` from a state of `run`. Raises UserError if it is of another run or of another network."""
    if run.id and (foreign := run.id.find_fault(state.get(KEY))):
        raise UserError(f"the newest state in {run.trainer} is refused: {foreign}; move it away")
    try:
        learner.load_state_dict(state)
    except (RuntimeError, ValueError) as error:  # raised by torch for the weights and for the optimiser
        size, start, name = run.settings.network, run.game.start, run.game.name
        raise UserError(
            f"{run.root} has trained another network than {size.module} with {size.blocks} blocks of {size.channels} "
            f"channels for observations {start.observation_shape} and {start.num_actions} actions; restore the "
            "previous values of network.*, or, if plyzero or the game has changed since, begin a new run with its "
            f"games: plyzero init {shlex.quote(name)} --run NEW --from {shlex.quote(str(run.root))}"
        ) from error


class LossesOfNetwork(nn.Module):
    """A network and its loss as one module, whose output has a gradient in `total` only.

    To the loss are added those of the score and the final board, with their weights, if the network estimates them.
    """

    def __init__(
        self, network: nn.Module, loss: Loss, settings: TrainerSettings, *, halves_on_cpu: bool = False
    ) -> None:
        super().__init__()
        self.network = network
        self._loss = loss
        self._settings = settings
        self._halves_on_cpu = halves_on_cpu and "avx512_bf16" in cpu_flags()

    def forward(self, batch: BatchTensors) -> Losses:
        halves = batch.legal.is_cuda or self._halves_on_cpu
        with torch.autocast(batch.legal.device.type, torch.bfloat16) if halves else nullcontext():
            outputs = self.network(batch.observations.contiguous(memory_format=torch.channels_last))
        policy_logits, wdl_logits, *others = (each.float() for each in outputs)
        losses = self._loss(policy_logits, wdl_logits, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        total = losses.total
        for each in others:
            if each.ndim == 2:
                total = total + self._settings.score_weight * score_loss(each, batch.score)
            else:
                total = total + self._settings.final_board_weight * board_loss(each, batch.board)
        return Losses(total=total, policy=losses.policy.detach(), value=losses.value.detach())
