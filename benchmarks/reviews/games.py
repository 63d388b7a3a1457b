"""Games to be judged: two players, of which one may make a share of its turns at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from plyzero.kits.engines.game_record import GameRecord
from plyzero.play.bundled_bots import find_card
from plyzero.play.player import Player, RandomPlayer
from plyzero.play.players import Bot, find_player
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import roll_dice
from plyzero.rules.game import Game

RANDOM_SHARE: Final = 0.15, 1.0
"""A distracted player makes this share of its turns at random, from and to."""

QUICK: Final = 100
"""Levels of bots with at most so many simulations play the games."""

Choice = Callable[[Game], int]


class Side(NamedTuple):
    """A player, and the share of its turns that it makes at random."""

    player: Player
    random_share: float = 0.0


def play(
    start: Game, sides: Sequence[Side], rng: np.random.Generator, *, is_over: Callable[[int, int], bool]
) -> GameRecord:
    """Return a game. `is_over`: whether it is broken off, by the number of moves that each side has made."""
    random_player = RandomPlayer(rng)
    positions, moves, made = [start], list[int](), [0, 0]
    mover, is_random = -1, False
    while True:
        position, rolls = roll_dice(positions[-1], rng)
        for roll in rolls:
            moves.append(roll)
            positions.append(positions[-1].play_unchecked(roll))
        if position.outcome() is not None or is_over(*made):
            return GameRecord(positions, moves)
        if rolls or position.to_play != mover:
            mover = int(position.to_play)
            is_random = bool(rng.random() < sides[mover].random_share)
        player = random_player if is_random else sides[mover].player
        moves.append(player.choose_all([position])[0])
        positions.append(position.play_unchecked(moves[-1]))
        made[mover] += 1


def to_the_end(first: int, second: int) -> bool:
    """Return that a game is not broken off."""
    return False


def levels_of(game: GameSpec, rng: np.random.Generator) -> list[Bot]:
    """Return the bundled bot at all its levels that move quickly."""
    card = find_card(game)
    assert card
    quick = [level.number for level in card.levels if level.simulations <= QUICK]
    return [Bot.at_level(game, number).with_rng(rng.spawn(1)[0]) for number in quick]


def mixed_game(game: GameSpec, seed: Sequence[int]) -> GameRecord:
    """Return a game of two levels of the bundled bot, of which one makes a share of its moves at random."""
    rng = np.random.default_rng(seed)
    levels = levels_of(game, rng)
    first, second = (Side(levels[int(rng.integers(len(levels)))]) for _ in range(2))
    distracted = first._replace(random_share=float(rng.uniform(*RANDOM_SHARE)))
    sides = (distracted, second) if rng.random() < 0.5 else (second, distracted)
    return play(game.start, sides, rng, is_over=to_the_end)


def game_of(game: GameSpec, names: Sequence[str], seed: Sequence[int]) -> GameRecord:
    """Return a game of two players, named as in `plyzero match`."""
    rng = np.random.default_rng(seed)
    sides = [Side(find_player(name, game, rng)) for name in names]
    return play(game.start, sides, rng, is_over=to_the_end)


def random_moves(game: GameSpec, opponent: str, count: int, seed: Sequence[int]) -> GameRecord:
    """Return a game in which player 0 makes at most `count` moves, all at random."""
    rng = np.random.default_rng(seed)
    sides = [Side(RandomPlayer(rng)), Side(find_player(opponent, game, rng))]
    return play(game.start, sides, rng, is_over=lambda first, second: first >= count)
