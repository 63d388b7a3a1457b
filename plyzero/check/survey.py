"""Statistics of random games: their length and results, the cost of the rules, and what that suggests."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plyzero.check.laws import symmetries_of_start
from plyzero.check.sample_laws import MIN_DECIDED_GAMES, winner
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game
from plyzero.rules.random_game import PlayedGame, random_game

MIN_CHANGED_SHARE: Final = 0.34
"""Smallest value of `changed_share` that is usual for an observation from the point of view of the player to move."""

MIN_NONZERO: Final = 8
"""Smallest number of nonzero values in an observation that `changed_share` takes into account."""

SLOW_RULES: Final = 20.0
"""Microseconds of rules per simulation above which compiled rules are advised."""


@dataclass(frozen=True)
class Survey:
    """Statistics of random games.

    games:        number of games.
    branching:    legal actions per position: mean and maximum.
    plies:        length of a game: minimum, mean, maximum, and the max_plies that the game declares.
    results:      shares of the games that the first player won, that were drawn, and that the second player won.
    microseconds: mean time of a call, by the name of the rule, measured in this process.
    same_mover:   share of the moves after which the same player moves again.
    symmetries:   how many are declared, and how many of them playing can test: those that keep the initial position.
    warnings:     sentences about what no law forbids but what is unusual.
    advice:       sentences about possible improvements.
    """

    games: int
    branching: tuple[float, int]
    plies: tuple[int, float, int, int]
    results: tuple[float, float, float]
    microseconds: dict[str, float]
    same_mover: float
    symmetries: tuple[int, int]
    warnings: tuple[str, ...]
    advice: tuple[str, ...]


def survey(start: Game, *, games: int, seed: int = 0) -> Survey:
    """Play `games` random games from `start` and return their statistics."""
    played = [random_game(start, np.random.default_rng([seed, number])) for number in range(games)]
    unfinished = [position for game in played for position in game.positions if position.outcome() is None]
    legal = [len(position.legal_actions()) for position in unfinished]
    plies = [len(game.moves) for game in played]
    winners = Counter(winner(game.positions[-1]) for game in played)
    microseconds = microseconds_per_call(played)
    same_mover = [
        one.to_play == other.to_play
        for game in played
        for one, other in itertools.pairwise(game.positions)
        if other.outcome() is None
    ]
    symmetries = (len(start.symmetries()), len(symmetries_of_start(start)))
    return Survey(
        games=games,
        branching=(float(np.mean(legal)), max(legal)),
        plies=(min(plies), float(np.mean(plies)), max(plies), start.max_plies),
        results=(winners[0] / games, winners[None] / games, winners[1] / games),
        microseconds=microseconds,
        same_mover=float(np.mean(same_mover)) if same_mover else 0.0,
        symmetries=symmetries,
        warnings=tuple(warnings(played, winners)),
        advice=tuple(advice(start, unfinished, sum(microseconds.values()), symmetries)),
    )


def warnings(played: Sequence[PlayedGame], winners: Counter[int | None]) -> Iterator[str]:
    """Yield a sentence for each unusual property of the games `played`; `winners` counts their winners."""
    movers = {position.to_play for game in played for position in game.positions[:-1]}
    if len(movers) == 1:
        yield f"player {1 - movers.pop()} never moved in {len(played)} random games: is to_play right?"
    if len(winners) == 1 and len(played) >= MIN_DECIDED_GAMES:
        (only_winner,) = winners
        result = "drawn" if only_winner is None else f"won by player {only_winner}"
        yield f"all {len(played)} random games were {result}: is outcome() right?"
    if (share := changed_share(played)) is not None and share < MIN_CHANGED_SHARE:
        yield (
            "observe() hardly changes when the turn passes. That is right if both players share the pieces; otherwise "
            "show the pieces of the player to move first"
        )


def changed_share(played: Sequence[PlayedGame]) -> float | None:
    """Return how much of an observation changes when the turn passes, relative to its nonzero values.

    This is the 90th percentile over the observations with at least MIN_NONZERO nonzero values, None if there are none.
    Planes of own and opponent's pieces swap, so most values change; planes of player 0's and player 1's pieces change
    only by the move.
    """
    shares = []
    for game in played:
        for one, other in itertools.pairwise(game.positions[:-1]):
            if one.to_play != other.to_play:
                before, after = (np.asarray(position.observe(), np.float32) for position in (one, other))
                if (nonzero := np.count_nonzero(before)) >= MIN_NONZERO:
                    shares.append(np.count_nonzero(before != after) / nonzero)
    return float(np.percentile(shares, 90)) if shares else None


def microseconds_per_call(played: Sequence[PlayedGame]) -> dict[str, float]:
    """Return the mean time of a call from Python, in microseconds, by the name of the rule."""
    steps = [(position, move) for game in played for position, move in zip(game.positions, game.moves, strict=False)][
        :2000
    ]
    found = {}
    rules: dict[str, Callable[[Game, int], Any]] = {
        "play": lambda position, move: position.play_unchecked(move),
        "outcome": lambda position, move: position.outcome(),
        "legal_actions": lambda position, move: position.legal_actions(),
        "observe": lambda position, move: position.observe(),
    }
    for name, rule in rules.items():
        began = time.perf_counter()
        for position, move in steps:
            rule(position, move)
        found[name] = 1e6 * (time.perf_counter() - began) / len(steps)
    return found


def advice(start: Game, positions: Sequence[Game], rules_cost: float, symmetries: tuple[int, int]) -> list[str]:
    """Return a sentence for each possible improvement of a game.

    positions:  unfinished positions of random games.
    rules_cost: microseconds of rules per simulation.
    symmetries: as in Survey.
    """
    found = []
    binary = all(np.isin(position.observe(), (0, 1)).all() for position in positions[:500])
    if binary and np.dtype(start.observation_dtype) != np.bool_:
        found.append("observations have only 0 and 1: observation_dtype = bool stores them in 1/32 of the space")
    if type(start).__str__ is Game.__str__:
        found.append("define __str__ to show the board to people")
    if not symmetries[0]:
        found.append("no symmetries are declared: with them the network learns from each game several times")
    elif symmetries[1] < symmetries[0]:
        found.append(
            f"{symmetries[0] - symmetries[1]} of {symmetries[0]} symmetries change the initial position, so playing "
            "could not test them: make sure that they move actions and planes in the same way"
        )
    if rules_cost > SLOW_RULES and not isinstance(start, CompiledGame):
        found.append(
            f"a simulation spends {rules_cost:.0f} µs in these rules; compiled rules take about 1 µs "
            "(docs/writing-a-game.md)"
        )
    return found
