"""Chance: the rolls that are possible in a position, sampled by a generator or by the seed of a recorded game.

A *roll* is an outcome of chance, a number from 0 to num_chances - 1: of dice, of a coin, of a shuffled card. In a game
with set-ups the first roll is the number of a set-up, from 0 to setups - 1: the start of the game awaits it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.counter_rng import random_bits, seed_with_bits

MAX_ROLLS: Final = 1024
"""Largest number of rolls between two moves."""

ENDLESS_ROLLS: Final = f"after {MAX_ROLLS} rolls no player is to move: does play() end the roll?"
"""Message about rules with more than MAX_ROLLS rolls."""

MAX_SETUPS: Final = 1 << 32
"""Largest number of set-ups of a game."""

_NO_CHANCES: Final = np.zeros(0, np.float32)


class Position(Protocol):
    """The part of a plyzero.rules.game.Game that rolls and the names of moves need."""

    num_chances: int
    setups: int
    awaits_setup: bool

    @property
    def to_play(self) -> int: ...
    def legal_actions(self) -> Sequence[int]: ...
    def chances(self) -> Sequence[float]: ...
    def set_up(self, number: int) -> Self: ...
    def outcome(self) -> object | None: ...
    def play(self, action: int) -> Self: ...
    def play_unchecked(self, action: int) -> Self: ...
    def action_name(self, action: int) -> str: ...
    def roll_name(self, roll: int) -> str: ...
    def parse_action(self, text: str) -> int: ...


P = TypeVar("P", bound=Position)


def awaiting_setup(start: P) -> P:
    """Return a copy of the initial position that awaits a set-up; `start` itself in a game without set-ups."""
    if not start.setups:
        return start
    awaiting = copy.copy(start)
    vars(awaiting)["awaits_setup"] = True
    return awaiting


def without_setup(position: P) -> P:
    """Return a copy of a position that awaits a set-up as one in which a player moves; another position itself."""
    if not position.awaits_setup:
        return position
    usual = copy.copy(position)
    vars(usual).pop("awaits_setup", None)
    return usual


def chances_of(position: Position) -> NDArray[np.float32]:
    """Return the probability of each roll, `[K]` float32; `[0]` where a player moves or the game is over.

    Raises ValueError where a set-up is awaited: there are too many to list.
    """
    if position.awaits_setup:
        raise ValueError("a set-up is due: play its number first, or a random one with plyzero.rolled(start, rng)")
    if not position.num_chances or position.outcome() is not None:
        return _NO_CHANCES
    chances = np.asarray(position.chances(), np.float32)
    return chances if chances.any() else _NO_CHANCES


def is_chance(position: Position) -> bool:
    """Return whether chance moves next, by a set-up or by a roll: not a player, and the game is not over."""
    return position.awaits_setup or len(chances_of(position)) > 0


def rolls_endlessly(positions: Sequence[Position]) -> bool:
    """Return whether chance moves at each of the last MAX_ROLLS + 1 of `positions`, which follow each other."""
    return len(positions) > MAX_ROLLS and all(map(is_chance, positions[: -MAX_ROLLS - 2 : -1]))


def possible_moves(position: Position) -> Sequence[int]:
    """Return what can be played next: the legal actions, or what `possible_rolls` returns if chance moves."""
    return possible_rolls(position) or [int(each) for each in position.legal_actions()]


def possible_rolls(position: Position) -> Sequence[int]:
    """Return the rolls that are possible in `position`; none where a player moves or the game is over.

    Where a set-up is awaited, they are a range, which may be too long for a list.
    """
    if position.awaits_setup:
        return range(position.setups)
    rolls: list[int] = np.flatnonzero(chances_of(position)).tolist()
    return rolls


def move_name(position: Position, move: int) -> str:
    """Return the name of an action; of a roll if chance moves in `position`; the number of a set-up."""
    if position.awaits_setup:
        return str(move)
    return position.roll_name(move) if is_chance(position) else position.action_name(move)


def parse_move(position: Position, text: str) -> int:
    """Return the legal action, the possible roll or the set-up whose name is `text`, ignoring case.

    Raises ValueError with what is expected if there is none.
    """
    if not is_chance(position):
        return position.parse_action(text)
    wanted = text.strip().lower()
    if position.awaits_setup:
        if wanted.isdecimal() and wanted.isascii() and len(wanted) < 12 and int(wanted) < position.setups:
            return int(wanted)
    else:
        names = {position.roll_name(roll).lower(): roll for roll in possible_rolls(position)}
        if wanted in names:
            return names[wanted]
    raise ValueError(f"expected {expected_rolls(position)}, got {text.strip()!r}")


def expected_rolls(position: Position) -> str:
    """Return in words what can be rolled in `position`, where chance moves."""
    if position.awaits_setup:
        return f"the number of a set-up, from 0 to {position.setups - 1}"
    return f"a roll, one of {' '.join(map(position.roll_name, possible_rolls(position)))}"


def setup_name(positions: Sequence[Position], moves: Sequence[int]) -> str:
    """Return the set-up that a game began with, in words such as "set-up 518"; "" if it began with none.

    positions, moves: those of the game; the first of `moves` was played in the first of `positions`.
    """
    return f"set-up {moves[0]}" if len(moves) and positions[0].awaits_setup else ""


def setup_at(setups: int, random: float) -> int:
    """Return the set-up, of so many, at `random`, from [0, 1), of which 32 bits are used."""
    return int(random * 2**32) * int(setups) >> 32


def roll_at(chances: NDArray[np.float32], random: float) -> int:
    """Return the roll at `random`, from [0, 1), of the probabilities `chances`, `[K]`; never one of probability 0."""
    total = 0.0
    for roll in range(len(chances)):
        total += float(chances[roll])
    rolled = 0
    left = random * total
    for roll in range(len(chances)):
        if chances[roll] > 0:
            rolled = roll
            left -= float(chances[roll])
            if left < 0:
                break
    return rolled


def roll_random(seed: np.uint64, opening_plies: int, ply: int, number: int) -> float:
    """Return the random number, from [0, 1), of a roll in self-play.

    seed, opening_plies: those in the record of the game.
    ply:                 the ply of the move that follows the roll, 0 for the first move of the game.
    number:              0 for the first roll before this move, 1 for the second one, ...

    Rolls after an opening move differ from those after a searched one: an opening that ends the game is taken back and
    searched, and what was rolled then must not be rolled again.
    """
    first = 1 << 30 if ply <= opening_plies else 2 << 30  # far beyond the numbers that self-play uses for moves
    return random_bits(seed, first + MAX_ROLLS * ply + number) / 2**32


def random_setup(seed: np.uint64, setups: int) -> int:
    """Return the set-up, of so many, of a game of self-play: it is the first roll before the first move."""
    return setup_at(setups, roll_random(seed, 0, 0, 0))


def seed_of_setup(number: int, setups: int, like: int) -> int:
    """Return the seed of a game in which `random_setup` is `number`; `like`, 32 bits, makes such seeds different."""
    counter = 1 << 30  # that of the first roll, in roll_random
    return seed_with_bits(-(-(number << 32) // int(setups)), counter, like)


def rolled(position: P, rng: np.random.Generator) -> P:
    """Return the next position at which a player moves or the game is over, after all rolls on the way.

    The rolls are sampled by `rng`. Where chance does not move, it returns `position` itself and leaves `rng` alone.
    """
    return roll_dice(position, rng)[0]


def played(position: P, action: int, rng: np.random.Generator) -> P:
    """Return one position: the one after `action`, which must be legal, and the rolls, which `rng` samples."""
    return rolled(position.play(action), rng)


def roll_dice(position: P, rng: np.random.Generator) -> tuple[P, list[int]]:
    """Return what `rolled` returns, and the rolls."""
    return roll_on(position, lambda number: rng.random())


def roll_on(position: P, random: Callable[[int], float]) -> tuple[P, list[int]]:
    """Return the first position from `position` on at which chance does not move, and the rolls that lead there.

    random: returns the random number of the roll with a number, 0, 1, 2, ...
    Raises ValueError after MAX_ROLLS rolls.
    """
    rolls: list[int] = []
    if position.awaits_setup:
        rolls.append(setup_at(position.setups, random(0)))
        position = position.set_up(rolls[0])
    while len(chances := chances_of(position)):
        if len(rolls) == MAX_ROLLS:
            raise ValueError(ENDLESS_ROLLS)
        rolls.append(roll_at(chances, random(len(rolls))))
        position = position.play_unchecked(rolls[-1])
    return position, rolls


def first_decision(start: P) -> P:
    """Return a first position of a game at which a player moves. It is always the same one, also if dice are rolled."""
    return rolled(start, np.random.default_rng(0))


def replay_game(start: P, game: np.void, actions: Iterable[int]) -> Iterator[tuple[P, list[int]]]:
    """Yield the positions of a recorded game at which a player moved, and its final one, each with the rolls before it.

    start:   the initial position.
    game:    the GAME record of plyzero.run.records.
    actions: its moves, in order, which must be legal.
    """
    position = start
    for ply, action in enumerate((None, *actions)):
        if action is not None:
            position = position.play_unchecked(action)
        random = partial(roll_random, game["seed"], int(game["opening_plies"]), ply)
        position, rolls = roll_on(position, random)
        yield position, rolls
