"""The window: the newest positions, in memory, from which batches are sampled."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry
from trainer.targets import Samples


class Batch(NamedTuple):
    """A training batch of B positions.

    observations: `[B, C, H, W]` float32.
    legal:        `[B, A]` bool.
    policy:       `[B, A]` float32, the target policy, 0 for illegal actions.
    wdl:          `[B, 3]` float32, target probabilities of win, draw and loss for the player to move.
    """

    observations: NDArray[np.float32]
    legal: NDArray[np.bool_]
    policy: NDArray[np.float32]
    wdl: NDArray[np.float32]


class Window:
    """The samples of the newest segments, oldest first: as many segments as the requested number of positions needs."""

    def __init__(self, game: Game) -> None:
        self._shape, self._num_actions = game.observation_shape, game.num_actions
        self._bits = np.dtype(game.observation_dtype).kind == "b"
        identity = Symmetry(np.arange(np.prod(self._shape)), np.arange(game.num_actions))
        symmetries = [identity, *game.symmetries()]
        self._planes = np.stack([symmetry.planes for symmetry in symmetries])
        self._actions = np.stack([symmetry.actions for symmetry in symmetries])
        self._segments: deque[tuple[str, Samples]] = deque()
        self._all: Samples | None = None
        self._first_legal = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return sum(len(samples.wdl) for _, samples in self._segments)

    @property
    def names(self) -> list[str]:
        """The names of the segments in the window, oldest first."""
        return [name for name, _ in self._segments]

    def add(self, name: str, samples: Samples, *, size: int) -> None:
        """Add a segment, then remove the oldest ones while at least `size` positions remain without them."""
        self._segments.append((name, samples))
        while len(self) - len(self._segments[0][1].wdl) >= size:
            self._segments.popleft()
        self._all = None

    def sample(self, size: int, rng: np.random.Generator, *, symmetries: bool = True) -> Batch:
        """Return `size` positions, sampled uniformly with replacement from a window that is not empty.

        symmetries: apply a random symmetry of the game, or the identity, to each position.
        """
        samples = self._all_samples()
        rows = rng.integers(len(samples.wdl), size=size)
        image = rng.integers(len(self._planes), size=size) if symmetries else np.zeros(size, np.int64)
        observations = samples.observations[rows]
        if self._bits:
            observations = np.unpackbits(observations.view(np.uint8), axis=1, count=self._planes.shape[1])
        images = np.take_along_axis(observations, self._planes[image], axis=1).astype(np.float32)

        lengths = samples.num_legal[rows]
        batch_row = np.repeat(np.arange(size), lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        source = np.repeat(self._first_legal[rows], lengths) + within
        action = self._actions[image[batch_row], samples.actions[source]]
        legal = np.zeros((size, self._num_actions), np.bool_)
        policy = np.zeros((size, self._num_actions), np.float32)
        legal[batch_row, action] = True
        policy[batch_row, action] = samples.probabilities[source]
        return Batch(observations=images.reshape(size, *self._shape), legal=legal, policy=policy, wdl=samples.wdl[rows])

    def _all_samples(self) -> Samples:
        """Return the samples of all segments, concatenated when the window has changed."""
        if self._all is None:
            self._all = Samples.concatenate([samples for _, samples in self._segments])
            self._first_legal = np.cumsum(self._all.num_legal) - self._all.num_legal
        return self._all


def window_size(generated: int, *, smallest: int, growth: float, exponent: float) -> int:
    """Return the size of the window, in positions, after `generated` positions.

    It is `smallest` = c up to c positions, then c · (1 + β · ((N / c)^α - 1) / α) for N positions, with α = `exponent`
    and β = `growth` (Wu, 2019, section 3.2).
    """
    if generated <= smallest:
        return smallest
    return int(smallest * (1 + growth * ((generated / smallest) ** exponent - 1) / exponent))
