"""The network: a residual tower with a policy head and a value head (He et al., 2016; Silver et al., 2018)."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn

from plyzero.errors import UserError
from plyzero.rules.catalog import load_object
from plyzero.rules.game import Game
from plyzero.settings import NetworkSettings


def make_network(settings: NetworkSettings, start: Game) -> nn.Module:
    """Return a new network of the class `settings.module` for the game with the position `start`.

    Raises UserError if there is no such class of networks. An error that the class itself raises is not caught.
    """
    cls = load_object(settings.module)
    if not (inspect.isclass(cls) and issubclass(cls, nn.Module)):
        raise UserError(f"network.module: {settings.module} is not a subclass of torch.nn.Module")
    return cls(start.observation_shape, start.num_actions, blocks=settings.blocks, channels=settings.channels)


class ResidualNetwork(nn.Module):
    """Maps observations `[B, C, H, W]` float32 to policy logits `[B, A]` and win, draw, loss logits `[B, 3]`.

    Its layers depend only on the shapes of the game and on the numbers of blocks and channels.
    """

    def __init__(
        self, observation_shape: tuple[int, int, int], num_actions: int, *, blocks: int, channels: int
    ) -> None:
        super().__init__()
        planes, rows, columns = observation_shape
        self.stem = nn.Sequential(_convolution(planes, channels, 3), nn.ReLU())
        self.tower = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        self.policy = nn.Sequential(
            _convolution(channels, channels // 4, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(channels // 4 * rows * columns, num_actions),
        )
        self.value = nn.Sequential(
            _convolution(channels, channels // 8 or 1, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear((channels // 8 or 1) * rows * columns, 2 * channels),
            nn.ReLU(),
            nn.Linear(2 * channels, 3),
        )

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        features = self.tower(self.stem(observations))
        return self.policy(features), self.value(features)


class ResidualBlock(nn.Module):
    """Computes relu(x + f(x)), where f is two convolutions with batch normalisation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(_convolution(channels, channels, 3), nn.ReLU(), _convolution(channels, channels, 3))

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(features + self.layers(features))


def _convolution(inputs: int, outputs: int, size: int) -> nn.Sequential:
    # On export the batch normalisation is folded into the convolution, so it costs nothing at inference.
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False), nn.BatchNorm2d(outputs))


def choose_device(name: str) -> torch.device:
    """Return the device called cpu or cuda, or for auto the best one. Raises UserError if there is no such device."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch finds no CUDA device here; use --device auto or cpu")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
