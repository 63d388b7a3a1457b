"""Sizes, known before anything starts: the weights of a network, and the memory of a worker and of the trainer."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from plyzero.errors import UserError
from plyzero.machine import usable_memory
from plyzero.rules.chance import first_decision
from plyzero.rules.game import Game
from plyzero.search.tree import EDGE, NODE
from plyzero.setting_types import parse_until
from plyzero.settings import MAX_MODEL_BYTES, NetworkSettings, Settings

HEAD_PLANES: Final = 16
"""Smallest number of planes to which a head of the built-in network reduces the channels, unless there are fewer."""

EDGE_PLANES: Final = 3
"""Planes that the built-in network adds to an observation with a pooled value head."""

TRAINER_WEIGHT: Final = 40
"""Measured bytes for each weight while the trainer saves or exports: gradient, optimiser, average and copies."""


class Sizes(NamedTuple):
    """The weights and memory of a run.

    weights:        of the network; 0 if it is not the built-in one, and so not known.
    policy_weights: those of the layer that has an output for each action.
    worker:         least memory of a worker, in bytes.
    trainer:        least memory of the trainer, in bytes.
    """

    weights: int
    policy_weights: int
    worker: int
    trainer: int


def network_weights(start: Game, network: NetworkSettings) -> tuple[int, int]:
    """Return the weights of the built-in network and of its policy's last layer; 0, 0 for another network."""
    if network.module != NetworkSettings().module:
        return 0, 0
    (planes, rows, columns), actions, channels = start.observation_shape, start.num_actions, network.channels
    squares, few = rows * columns, min(HEAD_PLANES, channels)
    has_board = squares > 1
    kernel = 9 if has_board else 1
    is_pooled = network.value_head == "pooled"
    planes += EDGE_PLANES * is_pooled
    tower = (planes + 2 * network.blocks * channels) * channels * kernel + (1 + 2 * network.blocks) * channels
    tower += has_board * (2 * channels + 1) * channels
    if start.policy_planes:
        last = (channels + 1) * (start.policy_planes + actions - start.policy_planes * squares)
        reduction = (channels + 1) * channels
    else:
        reduced = max(few, channels // 4)
        last, reduction = (reduced * squares + 1) * actions, (channels + 1) * reduced
    reduced = channels if is_pooled else max(few, channels // 8)
    numbers = 2 * channels if is_pooled else reduced * squares
    outputs = 3 + 2 * (network.points and start.max_score > 0)  # win, draw, loss, and mean and spread of the score
    value = (channels + 1) * reduced + (numbers + 1) * 2 * channels + outputs * (2 * channels + 1)
    board = (channels + 1) * start.final_planes if network.points else 0
    return tower + reduction + last + value + board, last


def sizes_of(start: Game, settings: Settings) -> Sizes:
    """Return the sizes of a run of the game with the position `start`."""
    weights, policy_weights = network_weights(start, settings.network)
    (planes, rows, columns), actions = start.observation_shape, start.num_actions
    size, selfplay, trainer, network = planes * rows * columns, settings.selfplay, settings.trainer, settings.network
    nodes = max(selfplay.simulations, selfplay.fast_simulations) + 1
    try:
        legal = len(first_decision(start).legal_actions())
    except Exception:  # of a person's rules: it is reported where the game is played next
        legal = 0
    # Measured bytes: 12 for each weight while a worker loads a model; in the trainer, for each position of a batch, 26
    # for each action, and 10 for each channel of each square and block, with half precision.
    worker = 12 * weights + (selfplay.cache_mb << 20)
    worker += selfplay.parallel_games * (nodes * (NODE.itemsize + legal * EDGE.itemsize) + 16 * (actions + size))
    activations = rows * columns * network.channels * network.blocks * 10
    batch = trainer.batch_size * (actions * 26 + activations + 8 * size)
    item = size * np.dtype(start.observation_dtype).itemsize
    kept = math.ceil(size / 8) if np.dtype(start.observation_dtype).kind == "b" else item
    board = 2 * start.final_planes * rows * columns if network.points else 0
    window = trainer.window_positions * (kept + math.ceil(actions / 8) + board)
    return Sizes(weights, policy_weights, worker, TRAINER_WEIGHT * weights + batch + window)


def check_sizes(start: Game, settings: Settings, *, workers: int = 0, trainer: bool = False) -> None:
    """Raise UserError if no file can hold the network, or if this machine lacks the memory of these processes."""
    if settings.network.value_head == "pooled" and not start.policy_planes:
        raise UserError("network.value_head: expected dense, since the game declares no policy_planes, got pooled")
    if settings.budget.until and parse_until(settings.budget.until)[0] == "points" and not start.max_score:
        raise UserError("budget.until: expected a score, since the game declares no max_score, got points")
    sizes = sizes_of(start, settings)
    if 4 * sizes.weights > MAX_MODEL_BYTES:
        raise UserError(
            f"the network has {sizes.weights:,} weights, {_gigabytes(4 * sizes.weights)}, but an ONNX file has at most "
            f"{_gigabytes(MAX_MODEL_BYTES)}; {_advice(start, settings, sizes)}"
        )
    needed, memory = workers * sizes.worker + trainer * sizes.trainer, usable_memory()
    if needed > memory:
        parts = [f"{workers} workers need {_gigabytes(sizes.worker)} each"] * (workers > 0)
        parts += [f"the trainer needs {_gigabytes(sizes.trainer)}"] * trainer
        found, advice = _gigabytes(memory), _advice(start, settings, sizes)
        raise UserError(f"{' and '.join(parts)} of memory, but this machine has {found}; {advice}")


def describe_sizes(start: Game, settings: Settings, *, workers: int) -> str:
    """Return a sentence about the weights and the memory that a training here needs, "" where they are small."""
    try:
        check_sizes(start, settings, workers=workers, trainer=True)
    except UserError as error:
        return f"warning: with the default settings {error}"
    sizes = sizes_of(start, settings)
    if max(sizes.worker, sizes.trainer) < 1 << 30:
        return ""
    trainer, worker, advice = _gigabytes(sizes.trainer), _gigabytes(sizes.worker), _advice(start, settings, sizes)
    return (
        f"The network has {sizes.weights:,} weights; the trainer needs about {trainer} of memory, a worker {worker}. "
        f"To need less: {advice}."
    )


def _advice(start: Game, settings: Settings, sizes: Sizes) -> str:
    network = settings.network
    if 2 * sizes.policy_weights > sizes.weights > 0 and not start.policy_planes:
        fewer = network.channels if network.channels > 4 * HEAD_PLANES else min(HEAD_PLANES, network.channels)
        share = f"{sizes.policy_weights / sizes.weights:.0%}"
        return (
            f"{share} of the weights are of the policy's num_actions = {start.num_actions:,}; declare policy_planes "
            f"(docs/writing-a-game.md), or set network.channels below {fewer}"
        )
    smaller = f"set a smaller network.channels ({network.channels}) or network.blocks ({network.blocks})"
    if 2 * TRAINER_WEIGHT * sizes.weights > sizes.trainer:
        return smaller
    return f"{smaller}, trainer.batch_size, trainer.window_positions or selfplay.parallel_games, or use fewer workers"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
