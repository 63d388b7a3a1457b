"""The network: a residual tower with a policy head and a value head (He et al., 2016; Silver et al., 2018).

Before its last block, global pooling brings a summary of the whole board to every square (Wu, 2019, section 3.3).
"""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn
from torch.onnx import is_in_onnx_export

from plyzero.errors import UserError
from plyzero.ops.sizes import EDGE_PLANES, HEAD_PLANES, check_sizes
from plyzero.rules.game import Game
from plyzero.rules.user_modules import load_object
from plyzero.settings import NetworkSettings, Settings


def make_network(settings: NetworkSettings, start: Game) -> nn.Module:
    """Return a new network of the class `settings.module` for the game with the position `start`.

    Raises UserError if there is no such class of networks, or if no file can hold the network. An error that the class
    itself raises is not caught.
    """
    cls = load_object(settings.module)
    if not (inspect.isclass(cls) and issubclass(cls, nn.Module)):
        raise UserError(f"network.module: {settings.module} is not a subclass of torch.nn.Module")
    check_sizes(start, Settings(network=settings))
    sizes: dict[str, int] = {"blocks": settings.blocks, "channels": settings.channels}
    known = inspect.signature(cls).parameters
    is_pooled = settings.value_head == "pooled"
    if start.policy_planes and "policy_planes" in known:
        sizes["policy_planes"] = start.policy_planes
    if is_pooled and "pooled_value" in known:
        sizes["pooled_value"] = True
    if settings.points and start.max_score and "has_score" in known:
        sizes["has_score"] = True
    if settings.points and start.final_planes and "final_planes" in known:
        sizes["final_planes"] = start.final_planes
    return cls(start.observation_shape, start.num_actions, **sizes)


class ResidualNetwork(nn.Module):
    """Maps observations `[B, C, H, W]` float32 to policy logits `[B, A]` and win, draw, loss logits `[B, 3]`.

    With `has_score` a third output, `[B, 2]`, is the mean of the score for the player to move, as a share of max_score,
    and the log of its standard deviation; with `final_planes` the last output, `[B, P, H, W]`, is the final board for
    the player to move, whose tanh is expected.
    Its layers depend only on the shapes of the game and on the numbers of blocks and channels. Without a board (1x1)
    it is a multilayer perceptron. With `policy_planes` the policy head is convolutional (`Game.policy_planes`); with
    `pooled_value` too, no weight depends on the size of the board.
    """

    def __init__(
        self,
        observation_shape: tuple[int, int, int],
        num_actions: int,
        *,
        blocks: int,
        channels: int,
        policy_planes: int = 0,
        pooled_value: bool = False,
        has_score: bool = False,
        final_planes: int = 0,
    ) -> None:
        super().__init__()
        planes, rows, columns = observation_shape
        has_board = rows * columns > 1
        size = 3 if has_board else 1  # on one square, 8 of 9 weights of a 3x3 convolution meet zeros
        edges: list[nn.Module] = []
        if pooled_value:  # the heads have no weights for single squares, by which they would know the edges
            edges.append(Edges())
            planes += EDGE_PLANES
        self.stem = nn.Sequential(*edges, _convolution(planes, channels, size), nn.ReLU())
        layers: list[nn.Module] = [ResidualBlock(channels, size) for _ in range(blocks)]
        if has_board:
            layers.insert(-1, GlobalPooling(channels))
        self.tower = nn.Sequential(*layers)
        few = min(HEAD_PLANES, channels)
        self.policy: nn.Module
        if policy_planes:
            self.policy = PlanesPolicy(channels, policy_planes, num_actions - policy_planes * rows * columns)
        else:
            reduced = max(few, channels // 4)
            self.policy = nn.Sequential(*_reduce(channels, reduced), nn.Linear(reduced * rows * columns, num_actions))
        if not pooled_value:
            reduced = max(few, channels // 8)
            summary = _reduce(channels, reduced)
            numbers = reduced * rows * columns
        else:
            summary = (_convolution(channels, channels, 1), nn.ReLU(), MeansAndMaxima())
            numbers = 2 * channels
        self.value = nn.Sequential(*summary, nn.Linear(numbers, 2 * channels), nn.ReLU(), nn.Linear(2 * channels, 3))
        self.score = nn.Linear(2 * channels, 2) if has_score else None
        self.board = nn.Conv2d(channels, final_planes, 1) if final_planes else None

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        features = self.tower(self.stem(observations))
        hidden = self.value[:-1](features)
        outputs = [self.policy(features), self.value[-1](hidden)]
        if self.score is not None:
            outputs.append(self.score(hidden))
        if self.board is not None:
            outputs.append(self.board(features))
        return tuple(outputs)


class Edges(nn.Module):
    """Adds EDGE_PLANES planes that show how near the edges of the board are, the same for every position."""

    def forward(self, observations: Tensor) -> Tensor:
        ones = observations[:, :1] * 0 + 1
        rows = nn.functional.avg_pool2d(ones, (7, 1), stride=1, padding=(3, 0))  # the share of 7 squares on the board
        columns = nn.functional.avg_pool2d(ones, (1, 7), stride=1, padding=(0, 3))
        return torch.cat([observations, ones, rows, columns], dim=1)


class ResidualBlock(nn.Module):
    """Computes relu(x + f(x)), where f is two convolutions of `size` x `size` with batch normalisation."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _convolution(channels, channels, size), nn.ReLU(), _convolution(channels, channels, size)
        )

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(features + self.layers(features))


class GlobalPooling(nn.Module):
    """Computes relu(x + b), where b has one number for each channel, made from the means and maxima of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = MeansAndMaxima()
        self.bias = nn.Linear(2 * channels, channels)
        nn.init.zeros_(self.bias.weight)
        nn.init.zeros_(self.bias.bias)

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(features + self.bias(self.pool(features))[:, :, None, None])


class MeansAndMaxima(nn.Module):
    """Maps `[B, C, H, W]` to the means and maxima over the board, `[B, 2C]`."""

    def forward(self, features: Tensor) -> Tensor:
        if is_in_onnx_export():  # these operators, with the same result, exist in 8 bits in ONNX Runtime
            board = [int(size) for size in features.shape[2:]]  # plyzero.network.onnx_network.resize replaces it
            pooled = nn.functional.adaptive_avg_pool2d(features, 1), nn.functional.max_pool2d(features, board, stride=1)
            return torch.cat(pooled, dim=1).flatten(1)
        return torch.cat([features.mean((2, 3)), features.amax((2, 3))], dim=1)


class PlanesPolicy(nn.Module):
    """A policy head that has the same weights on every square: `planes` logits for each, and `others` for the board."""

    def __init__(self, channels: int, planes: int, others: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(_convolution(channels, channels, 1), nn.ReLU())
        self.planes = nn.Conv2d(channels, planes, 1)
        self.others = nn.Linear(channels, others) if others else None

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.hidden(features)
        logits = self.planes(hidden).flatten(1)
        if self.others is None:
            return logits
        return torch.cat([logits, self.others(hidden.mean((2, 3)))], dim=1)


def _reduce(channels: int, planes: int) -> tuple[nn.Module, ...]:
    """Return the layers with which a head begins: `planes` numbers for each square, in one vector for the board."""
    return _convolution(channels, planes, 1), nn.ReLU(), nn.Flatten()


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
