"""Symmetries of a game: permutations of the observation and of the actions that leave the rules unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Symmetry(NamedTuple):
    """A symmetry of the rules, such as a rotation or a reflection of the board.

    planes:  `[C*H*W]` int, the source of each number of the image: `image.flat = observation.flat[planes]`.
    actions: `[A]` int, the image of each action: action `a` of the position is action `actions[a]` of its image.
    """

    planes: NDArray[np.intp]
    actions: NDArray[np.intp]


def turns_and_mirrors(observation_shape: tuple[int, int, int], *, non_board_actions: int = 0) -> tuple[Symmetry, ...]:
    """Return the seven rotations and reflections of a square board besides the identity.

    Action `row * size + column` must be the square in that row and column. Actions that are not squares, such as a
    pass, follow the squares; there are `non_board_actions` of them, and every symmetry maps them to themselves.
    Raises ValueError if the board is not square.
    """
    planes, size, columns = observation_shape
    if size != columns:
        raise ValueError(f"expected a square board, got observation_shape {observation_shape}")
    numbered = np.arange(planes * size * size).reshape(observation_shape)
    squares = np.arange(size * size).reshape(1, size, size)
    not_squares = np.arange(size * size, size * size + non_board_actions)

    def images(board: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        return [np.rot90(each, turns, axes=(1, 2)).ravel() for each in (board, board[:, :, ::-1]) for turns in range(4)]

    # The image of `squares` has at i the square that moves to square i; an action needs the inverse.
    found = [
        Symmetry(image, np.concatenate([np.argsort(moved), not_squares]))
        for image, moved in zip(images(numbered), images(squares), strict=True)
    ]
    return tuple(found[1:])


def mirror_columns(observation_shape: tuple[int, int, int], actions: Sequence[int]) -> Symmetry:
    """Return the left-right reflection of the board, which maps action `a` to action `actions[a]`."""
    numbered = np.arange(np.prod(observation_shape)).reshape(observation_shape)
    return Symmetry(planes=np.flip(numbered, axis=2).ravel(), actions=np.asarray(actions, dtype=np.intp))
