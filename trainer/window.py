"""The window: the newest positions, in memory, from which batches are sampled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plyzero.rules.game import Game
from plyzero.rules.symmetry import Symmetry
from plyzero.trainer.targets import Samples

CHUNK_POSITIONS: Final = 8192  # a chunk with this many is full


class Batch(NamedTuple):
    """A training batch of B positions.

    observations: `[B, C, H, W]` float32.
    legal:        `[B, A]` bool.
    policy:       `[B, A]` float32, the target policy, 0 for illegal actions.
    wdl:          `[B, 3]` float32, target probabilities of win, draw and loss for the player to move.
    score:        `[B]` float32, target score for the player to move, as a share of max_score; NaN where unknown.
    board:        `[B, P, H, W]` float32, target of the final board for the player to move; NaN where unknown, and P = 0
                  if the network does not estimate it.
    """

    observations: NDArray[np.float32]
    legal: NDArray[np.bool_]
    policy: NDArray[np.float32]
    wdl: NDArray[np.float32]
    score: NDArray[np.float32]
    board: NDArray[np.float32]


class BatchTensors(NamedTuple):
    """A `Batch` as tensors on one device, with the same fields."""

    observations: Tensor
    legal: Tensor
    policy: Tensor
    wdl: Tensor
    score: Tensor
    board: Tensor


def to_device(batch: Batch | BatchTensors, device: torch.device) -> BatchTensors:
    """Return `batch` as tensors on `device`, without waiting if it lies in page-locked memory."""
    tensors: Iterable[Tensor] = batch if isinstance(batch, BatchTensors) else map(torch.from_numpy, batch)
    return BatchTensors(*(each.to(device, non_blocking=True) for each in tensors))


class Window:
    """The samples of the newest segments, oldest first: as many segments as the requested number of positions needs.

    They lie in chunks of many segments, so that sampling touches few arrays and a removed segment copies nothing.
    """

    def __init__(self, game: Game) -> None:
        self._shape = game.observation_shape
        self._num_actions = game.num_actions
        self._bits = np.dtype(game.observation_dtype).kind == "b"
        identity = Symmetry(np.arange(np.prod(self._shape)), np.arange(game.num_actions))
        symmetries = [identity, *game.symmetries()]
        self._planes = np.stack([symmetry.planes for symmetry in symmetries])
        self._actions = np.stack([symmetry.actions for symmetry in symmetries])
        size = self._shape[1] * self._shape[2]
        self._squares = self._planes[:, :size] % size
        self._segments: deque[tuple[str, int]] = deque()  # name and number of positions
        self._size = 0
        self._chunks: deque[_Chunk] = deque()
        self._removed = 0  # positions of the first chunk whose segments have been removed
        self._ends: NDArray[np.int64] | None = None  # of the chunks; None = not known since the last change

    def __len__(self) -> int:
        return self._size

    @property
    def names(self) -> list[str]:
        """The names of the segments in the window, oldest first."""
        return [name for name, _ in self._segments]

    def add(self, name: str, samples: Samples, *, size: int) -> None:
        """Add a segment, then remove the oldest ones while at least `size` positions remain without them."""
        self._ends = None
        chunk = _Chunk.of(samples, self._num_actions, (0, *self._shape[1:]))
        self._segments.append((name, len(chunk.wdl)))
        self._size += len(chunk.wdl)
        if self._chunks and len(self._chunks[-1].wdl) < CHUNK_POSITIONS:
            chunk = _Chunk.concatenate([self._chunks.pop(), chunk])
        self._chunks.append(chunk)
        while self._size - self._segments[0][1] >= size:
            _, count = self._segments.popleft()
            self._size -= count
            self._removed += count
        while len(self._chunks) > 1 and self._removed >= len(self._chunks[0].wdl):
            self._removed -= len(self._chunks.popleft().wdl)

    def sample(self, size: int, rng: np.random.Generator, *, symmetries: bool = True) -> Batch:
        """Return `size` positions, sampled uniformly with replacement from a window that is not empty.

        symmetries: apply a random symmetry of the game, or the identity, to each position.
        """
        rows = np.sort(rng.integers(self._size, size=size))
        image = rng.integers(len(self._planes), size=size) if symmetries else np.zeros(size, np.int64)
        return self._batch(rows, image)

    def read(self, first: int, last: int) -> Batch:
        """Return the positions from number `first` up to `last`, exclusive, oldest first and as they are."""
        rows = np.arange(first, min(last, self._size))
        return self._batch(rows, np.zeros(len(rows), np.int64))

    def _chunk_ends(self) -> NDArray[np.int64]:
        """Return how many rows there are up to the end of each chunk."""
        if self._ends is None:
            self._ends = np.cumsum([len(chunk.wdl) for chunk in self._chunks])
        return self._ends

    def _batch(self, rows: NDArray[np.int64], image: NDArray[np.int64]) -> Batch:
        """Return the positions in these rows, ascending, each under the symmetry of this number."""
        size = len(rows)
        rows = rows + self._removed
        ends = self._chunk_ends()
        chunk_of = np.searchsorted(ends, rows, side="right")
        parts = []
        for number in np.unique(chunk_of) if size else [0]:  # a large window has many chunks, a batch is in a few
            chunk = self._chunks[number]
            first = ends[number] - len(chunk.wdl)
            parts.append(chunk.take(rows[chunk_of == number] - first))
        taken = _Chunk.concatenate(parts)
        observations = taken.observations
        if self._bits:
            observations = np.unpackbits(observations.view(np.uint8), axis=1, count=self._planes.shape[1])
        images = np.empty((size, self._planes.shape[1]), np.float32)
        board = taken.board.reshape(*taken.board.shape[:2], self._squares.shape[1]).astype(np.float32)
        for number, planes in enumerate(self._planes):  # several times faster than take_along_axis for all at once
            same = image == number
            images[same] = observations[same].take(planes, axis=1)
            if board.size:
                board[same] = board[same].take(self._squares[number], axis=2)

        is_legal = np.unpackbits(taken.legal, axis=1, count=self._num_actions).view(np.bool_)
        row, action = np.nonzero(is_legal)
        action = self._actions[image[row], action]
        legal = np.zeros((size, self._num_actions), np.bool_)
        policy = np.zeros((size, self._num_actions), np.float32)
        legal[row, action] = True
        policy[row, action] = taken.probabilities
        sums = policy.sum(axis=1, keepdims=True)
        np.divide(policy, sums, out=policy, where=sums > 0)  # half precision has rounded them
        return Batch(
            observations=images.reshape(size, *self._shape),
            legal=legal,
            policy=policy,
            wdl=taken.wdl,
            score=taken.score,
            board=board.reshape(taken.board.shape),
        )


class Sampler:
    """Samples the batches of a trainer."""

    def __init__(self, sample: Callable[[], Batch], *, ahead: bool) -> None:
        """ahead: sample in a thread, into page-locked memory: the next batch, while a GPU makes a step with this one.

        The state of the random numbers is then that after the next batch, which a trainer that resumes does not see.
        """
        self._sample = sample
        self._ahead = ahead
        self._thread = ThreadPoolExecutor(1, "sampling")
        self._next: Future[BatchTensors] | None = None

    def take(self) -> Batch | BatchTensors:
        """Return the next batch."""
        if not self._ahead:
            return self._sample()
        taken = self._next.result() if self._next else self._make()
        self._next = self._thread.submit(self._make)
        return taken

    def pause(self) -> None:
        """Wait until nothing is sampled: before the window changes. Nothing is again until the next `take`."""
        if self._next:
            wait([self._next])

    def _make(self) -> BatchTensors:
        return BatchTensors(*(torch.from_numpy(each).pin_memory() for each in self._sample()))


class _Chunk(NamedTuple):
    """Samples in the form in which they are kept: n positions with L legal actions in all.

    observations:  `[n, K]`, as in Samples.
    wdl:           `[n, 3]` float32, as in Samples.
    score:         `[n]` float32, NaN where unknown.
    board:         `[n, P, H, W]` float16, NaN where unknown.
    legal:         `[n, A / 8]` uint8, packed bits: which actions are legal.
    num_legal:     `[n]` int64, number of legal actions of each position.
    first:         `[n]` int64, where the probabilities of each position begin.
    probabilities: `[L]` float16, the target policy of the legal actions, in ascending order of the actions.
    """

    observations: NDArray[np.generic]
    wdl: NDArray[np.float32]
    score: NDArray[np.float32]
    board: NDArray[np.float16]
    legal: NDArray[np.uint8]
    num_legal: NDArray[np.int64]
    first: NDArray[np.int64]
    probabilities: NDArray[np.float16]

    @classmethod
    def of(cls, samples: Samples, num_actions: int, no_board: tuple[int, ...]) -> Self:
        count = len(samples.wdl)
        legal = np.zeros((count, num_actions), np.bool_)
        legal[np.repeat(np.arange(len(legal)), samples.num_legal), samples.actions] = True
        with np.errstate(under="ignore"):  # smaller probabilities than half precision has are 0
            probabilities = samples.probabilities.astype(np.float16)
        return cls(
            observations=samples.observations,
            wdl=samples.wdl,
            score=np.full(count, np.nan, np.float32) if samples.score is None else samples.score,
            board=np.zeros((count, *no_board), np.float16) if samples.board is None else samples.board,
            legal=np.packbits(legal, axis=1),
            num_legal=samples.num_legal,
            first=np.cumsum(samples.num_legal) - samples.num_legal,
            probabilities=probabilities,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        joined = cls(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
        return joined._replace(first=np.cumsum(joined.num_legal) - joined.num_legal)

    def take(self, rows: NDArray[np.int64]) -> Self:
        num_legal = self.num_legal[rows]
        first = np.cumsum(num_legal) - num_legal
        source = np.repeat(self.first[rows] - first, num_legal) + np.arange(num_legal.sum())
        return self._replace(
            observations=self.observations[rows],
            wdl=self.wdl[rows],
            score=self.score[rows],
            board=self.board[rows],
            legal=self.legal[rows],
            num_legal=num_legal,
            first=first,
            probabilities=self.probabilities[source],
        )


def window_size(generated: int, *, smallest: int, growth: float, exponent: float) -> int:
    """Return the size of the window, in positions, after `generated` positions.

    It is `smallest` = c up to c positions, then c · (1 + β · ((N / c)^α - 1) / α) for N positions, with α = `exponent`
    and β = `growth` (Wu, 2019, section 3.2).
    """
    if generated <= smallest:
        return smallest
    return int(smallest * (1 + growth * ((generated / smallest) ** exponent - 1) / exponent))
