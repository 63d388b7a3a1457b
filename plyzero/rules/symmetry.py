"""Symmetries of a game: permutations of the observation and of the actions that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Symmetry(NamedTuple):
    """One way to turn or mirror a position; the rules see no difference.

    planes:  `[C*H*W]` int, where each number of the image comes from: `image.flat = observation.flat[planes]`.
    actions: `[A]` int, what each action becomes: action `a` of the position is action `actions[a]` of its image.
    """

    planes: NDArray[np.intp]
    actions: NDArray[np.intp]


def mirror_columns(observation_shape: tuple[int, int, int], actions: Sequence[int]) -> Symmetry:
    """Return the reflection left to right, under which action `a` becomes `actions[a]`."""
    numbered = np.arange(np.prod(observation_shape)).reshape(observation_shape)
    return Symmetry(planes=np.flip(numbered, axis=2).ravel(), actions=np.asarray(actions, dtype=np.intp))


def turns_and_mirrors(observation_shape: tuple[int, int, int], *, other_actions: int = 0) -> tuple[Symmetry, ...]:
    """Return the seven symmetries of a square board besides the identity.

    Action `row * size + column` is the square; `other_actions` more (a pass, say) follow and stay what they are.
    """
    planes, size, columns = observation_shape
    if size != columns:
        raise ValueError(f"expected a square board, got observation_shape {observation_shape}")
    numbered = np.arange(planes * size * size).reshape(observation_shape)
    squares = np.arange(size * size).reshape(1, size, size)
    others = np.arange(size * size, size * size + other_actions)
    found = []
    for mirrored in (False, True):
        for quarter_turns in range(4):
            if not mirrored and not quarter_turns:
                continue

            def image(board: NDArray[np.intp], flip: bool = mirrored, turns: int = quarter_turns) -> NDArray[np.intp]:
                return np.rot90(board[:, :, ::-1] if flip else board, turns, axes=(1, 2)).ravel()

            # image(squares)[i] is the square that lands on square i; an action needs the inverse.
            found.append(Symmetry(image(numbered), np.concatenate([np.argsort(image(squares)), others])))
    return tuple(found)
