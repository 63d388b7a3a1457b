"""Consistency of recorded games: positions that look the same to the network must follow the same rules.

The observation has to decide which moves are legal, what a move leads to, and the value of the position, and an image
under a symmetry must behave like the position itself. Positions that are recorded more than once show if it is so. With
dice a move leads to many positions, so that only legal moves and values are compared.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import random_setup
from plyzero.rules.game import DRAW, Game
from plyzero.run.records import BY_RULE, Games
from plyzero.search.tree import UNPROVEN

NEWEST_POSITIONS: Final = 32_768  # number of newest positions that are compared
SEGMENT_POSITIONS: Final = 4096  # largest number from one segment, so that many workers cost no more than a few

Hashes = NDArray[np.uint64]


class Agreement(NamedTuple):
    """Number of keys that were recorded more than once, and of those whose records differ.

    compared:  number of keys with more than one record.
    different: number of those whose records are not all the same.
    """

    compared: int = 0
    different: int = 0

    def __str__(self) -> str:
        return f"{self.different} of {self.compared} compared"


class Consistency(NamedTuple):
    """The rules as recorded games show them; each field counts positions, not records.

    positions: number of different observations.
    repeats:   the same set-up and moves from the start lead to the same observation and the same legal moves.
    legal:     the same observation has the same legal moves.
    effects:   the same move at the same observation leads to the same observation, or to the same result.
    values:    the same observation has the same proven value.
    images:    the image of a position under a symmetry has the image of its legal moves, and the image of a move leads
               to the image of what the move leads to.
    """

    positions: int = 0
    repeats: Agreement = Agreement()
    legal: Agreement = Agreement()
    effects: Agreement = Agreement()
    values: Agreement = Agreement()
    images: Agreement = Agreement()


class _Rows(NamedTuple):
    """N positions, hashed; a column for each image, of which the first is the position itself.

    path:         `[N]`, the set-up and the moves that led to the position.
    observation:  `[N, 1 + S]`.
    legal:        `[N, 1 + S]`, the legal moves.
    move:         `[N, 1 + S]`, the observation and the move that was played.
    effect:       `[N, 1 + S]`, what the move led to: the next observation and its legal moves, or the result.
    has_effect:   `[N]` bool, False where the game was truncated after the move, and in games with dice.
    proven:       `[N]` int8.
    """

    path: Hashes
    observation: Hashes
    legal: Hashes
    move: Hashes
    effect: Hashes
    has_effect: NDArray[np.bool_]
    proven: NDArray[np.int8]


class ConsistencyCheck:
    """Keeps the newest positions as hashes and compares them."""

    def __init__(self, game: Game) -> None:
        rng = np.random.default_rng(0)
        cells, actions = int(np.prod(game.observation_shape)), game.num_actions
        of_cell = rng.integers(1, 2**63, cells, dtype=np.uint64) | np.uint64(1)
        of_action = rng.integers(1, 2**63, actions, dtype=np.uint64) | np.uint64(1)
        # The hash of an image is the hash of the position with the factors in another order.
        self._of_cell = [of_cell, *(of_cell[np.argsort(each.planes)] for each in game.symmetries())]
        self._of_action = np.stack([of_action, *(of_action[each.actions] for each in game.symmetries())], axis=1)
        self._has_dice = game.num_chances > 0
        self._setups = game.setups if game.awaits_setup else 0
        self._newest: deque[_Rows] = deque()

    def add(self, games: Games) -> None:
        """Add the first games of a segment, up to SEGMENT_POSITIONS positions."""
        plies = np.cumsum(games.games["positions"])
        rows = self._hash(games.select(plies <= max(SEGMENT_POSITIONS, int(plies[0]))))
        self._newest.append(rows)
        while sum(len(each.path) for each in self._newest) - len(self._newest[0].path) >= NEWEST_POSITIONS:
            self._newest.popleft()

    def compare(self) -> Consistency:
        """Compare the newest positions with each other."""
        if not self._newest:
            return Consistency()
        rows = _Rows(*(np.concatenate(parts) for parts in zip(*self._newest, strict=True)))
        seen = rows.observation[:, 0]
        proven = rows.proven != UNPROVEN
        looks = _mix(rows.observation) + rows.legal
        legal = _agreement(rows.observation, rows.legal)
        effects = _agreement(rows.move[rows.has_effect], rows.effect[rows.has_effect])
        return Consistency(
            positions=len(np.unique(seen)),
            repeats=Agreement() if self._has_dice else _agreement(rows.path[:, np.newaxis], looks[:, :1]).of_positions,
            legal=legal.of_positions,
            effects=effects.of_positions,
            values=_agreement(seen[proven, np.newaxis], rows.proven[proven, np.newaxis]).of_positions,
            images=Agreement(
                legal.of_images.compared + effects.of_images.compared,
                legal.of_images.different + effects.of_images.different,
            ),
        )

    def _hash(self, games: Games) -> _Rows:
        position = games.positions
        count = len(position)
        last = np.cumsum(games.games["positions"]) - 1
        is_last = np.zeros(count, np.bool_)
        is_last[last] = True
        bits = _bits(games.observations.reshape(count, -1))
        observation = np.stack([_mix(bits @ factors) for factors in self._of_cell], axis=1)
        first_move = np.cumsum(position["num_legal"], dtype=np.int64) - position["num_legal"]
        legal = np.add.reduceat(self._of_action[games.moves["action"]], first_move, axis=0)
        played = self._of_action[position["action"]]

        ends_by_rule = np.repeat(games.games["end"], games.games["positions"]) == BY_RULE
        winner = np.repeat(games.games["winner"], games.games["positions"])
        result = np.where(winner == DRAW, 1, np.where(winner == position["to_play"], 2, 3)).astype(np.uint64)
        follows, following = np.arange(count - 1), np.arange(1, count)
        effect = np.repeat(result[:, np.newaxis], observation.shape[1], axis=1)
        again = (position["to_play"][follows] == position["to_play"][following]).astype(np.uint64)
        ahead = _mix(observation[following]) + legal[following] + again[:, np.newaxis]
        effect[:-1] = np.where(is_last[:-1, np.newaxis], effect[:-1], ahead)
        return _Rows(
            path=_paths(played[:, 0], games.games["positions"], self._begun(games)),
            observation=observation,
            legal=legal,
            move=_mix(observation) + played,
            effect=effect,
            has_effect=np.zeros(count, np.bool_) if self._has_dice else ~is_last | ends_by_rule,
            proven=np.where(position["search"] > 0, position["proven"], UNPROVEN).astype(np.int8),
        )

    def _begun(self, games: Games) -> Hashes:
        """Return `[G]`, a hash of the set-up of each game; 0 without set-ups."""
        if not self._setups:
            return np.zeros(len(games.games), np.uint64)
        return _mix(np.array([1 + random_setup(seed, self._setups) for seed in games.games["seed"]], np.uint64))


class _Agreements(NamedTuple):
    of_positions: Agreement
    of_images: Agreement


def _agreement(keys: Hashes, values: NDArray[np.integer]) -> _Agreements:
    """Compare the values of equal keys, `[N, 1 + S]`, and of their images with those of equal positions."""
    key, first, group, count = np.unique(keys[:, 0], return_index=True, return_inverse=True, return_counts=True)
    is_different = np.bincount(group, values[:, 0] != values[first[group], 0]) > 0
    of_images = Agreement()
    for column in range(1, keys.shape[1]):  # one record of each position is enough
        image = keys[first, column]
        found = np.zeros(len(key), np.int64)
        if len(key):
            found = np.minimum(np.searchsorted(key, image), len(key) - 1)
        equal = key[found] == image
        different = values[first, column] != values[first[found], 0]
        of_images = Agreement(
            of_images.compared + int(equal.sum()), of_images.different + int((equal & different).sum())
        )
    repeated = count > 1
    return _Agreements(Agreement(int(repeated.sum()), int((repeated & is_different).sum())), of_images)


def _paths(played: Hashes, lengths: NDArray[np.integer], begun: Hashes) -> Hashes:
    """Return `[N]`, a hash of what a game has begun with, `[G]`, and of the moves before each position, in order."""
    paths = np.zeros(len(played), np.uint64)
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    paths[starts] = begun
    for ply in range(1, int(lengths.max())):
        at = starts[lengths > ply] + ply
        paths[at] = _mix(paths[at - 1] + played[at - 1])
    return paths


def _bits(observations: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return numbers that are equal where the observations are, up to differences between processors in rounding."""
    if observations.dtype.kind == "b":
        return observations.astype(np.uint64)
    bits = (observations.astype(np.float32) + np.float32(0)).view(np.uint32)  # + 0 turns -0 into 0
    return (bits.astype(np.uint64) + np.uint64(4)) >> np.uint64(3)


def _mix(hashes: Hashes) -> Hashes:
    """Return `hashes` with their bits mixed, so that sums of them do not cancel (SplitMix64; Steele et al., 2014)."""
    mixed = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed)
