"""A trial of a game by random games: whether its observations are binary, and which symmetries it has."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.chance import chances_of
from plyzero.rules.game import ONGOING, Game, outcome_code
from plyzero.rules.random_game import PlayedGame, random_game
from plyzero.rules.symmetry import Symmetry


class Seen(NamedTuple):
    """The answers of a position.

    legal:       `[A]`, which actions are legal; none where chance moves.
    outcome:     the code of the outcome.
    to_play:     the player to move; 0 where no player moves.
    observation: empty where no player moves, and nothing asks for it.
    chances:     the probability of each roll where chance moves, [1.0] where a set-up is due; empty elsewhere.
    """

    legal: NDArray[np.bool_]
    outcome: int
    to_play: int
    observation: NDArray[np.float32]
    chances: NDArray[np.float32]


def look(position: Game) -> Seen:
    """Return the answers of `position`."""
    legal = np.zeros(position.num_actions, np.bool_)
    if position.awaits_setup:
        return Seen(legal, ONGOING, 0, np.zeros(0, np.float32), np.ones(1, np.float32))
    outcome, chances = position.outcome(), chances_of(position)
    if outcome is not None or len(chances):
        return Seen(legal, outcome_code(outcome), 0, np.zeros(0, np.float32), chances)
    legal[list(position.legal_actions())] = True
    return Seen(legal, ONGOING, position.to_play, np.asarray(position.observe(), np.float32), chances)


class Trial(NamedTuple):
    """Random games and the answers of their positions."""

    games: Sequence[PlayedGame]
    seen: Sequence[Sequence[Seen]]

    def has_binary_observations(self) -> bool:
        """Return whether every observation consists of 0 and 1."""
        return all((each.observation**2 == each.observation).all() for seen in self.seen for each in seen)

    def checksum(self) -> int:
        """Return a number of five digits that changes if rules, numbers of actions or observations change."""
        found = 0
        for each in (each for seen in self.seen for each in seen):
            found = zlib.crc32(np.packbits(each.legal).tobytes() + bytes([each.outcome + 2, each.to_play]), found)
            found = zlib.crc32(np.rint(256 * each.observation).astype("<i4").tobytes(), found)
            found = zlib.crc32(each.chances.astype("<f4").tobytes(), found)
        return found % 100_000  # short enough to be read as a version

    def proven(self, proposed: Iterable[Symmetry]) -> tuple[Symmetry, ...]:
        """Return the group, without the identity, of the `proposed` symmetries that every position agrees with.

        The images of all moves are played, and must lead to the image of every position: its legal actions, its
        observation, its player to move, its outcome and its rolls, which stay as they are. Nothing is proven if no
        game has ended.
        """
        generators: list[Symmetry] = []
        group: dict[bytes, Symmetry] = {}
        if any(seen[-1].outcome != ONGOING for seen in self.seen):
            for each in proposed:
                if _key(each) not in group and all(map(_agrees, itertools.repeat(each), self.games, self.seen)):
                    generators.append(each)
                    group = _products(generators)
        return tuple(each for each in group.values() if any((part != np.arange(len(part))).any() for part in each))


def play_trial(start: Game, *, plies: int) -> Trial:
    """Play random games from `start`, always the same, until they have `plies` plies together."""
    rng = np.random.default_rng(0)
    games: list[PlayedGame] = []
    while sum(len(game.moves) for game in games) < plies:
        games.append(random_game(start, rng))
    return Trial(games, [[look(position) for position in game.positions] for game in games])


def _products(generators: Sequence[Symmetry]) -> dict[bytes, Symmetry]:
    """Return all products of `generators`, by their keys: the group that these generate."""
    found: dict[bytes, Symmetry] = {}
    waiting = list(generators)
    for one in waiting:
        if _key(one) not in found:
            found[_key(one)] = one
            waiting += [Symmetry(one.planes[other.planes], other.actions[one.actions]) for other in generators]
    return found


def _key(symmetry: Symmetry) -> bytes:
    return symmetry.planes.tobytes() + symmetry.actions.tobytes()


def _agrees(symmetry: Symmetry, game: PlayedGame, seen: Sequence[Seen]) -> bool:
    sources = np.argsort(symmetry.actions)
    image = game.positions[0]
    for here, move in zip(seen, [*game.moves, None], strict=True):
        there = look(image)
        seen_here = here.observation.ravel()[symmetry.planes] if len(here.observation) else there.observation
        if not (
            (here.outcome, here.to_play) == (there.outcome, there.to_play)
            and np.array_equal(here.legal[sources], there.legal)
            and np.array_equal(here.chances, there.chances)  # a symmetry leaves the rolls as they are
            and np.array_equal(seen_here, there.observation.ravel())
        ):
            return False
        if move is not None:
            image = image.play_unchecked(move if len(here.chances) else int(symmetry.actions[move]))
    return True
