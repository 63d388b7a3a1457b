"""What random games of a game look like, what its rules cost, and what that suggests for training."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from plyzero.check.laws import kept_by_the_start
from plyzero.check.sample_laws import FEW_GAMES, winner
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game
from plyzero.rules.random_game import PlayedGame, random_game

SAME_VIEW: Final = 0.34
FEW_NUMBERS: Final = 8
"""Of share_that_changes: a smaller share is suspicious, of observations that show at least so many numbers."""

SLOW_RULES: Final = 20.0
"""Microseconds of rules per simulation, from which on compiled rules are worth a thought."""


@dataclass(frozen=True)
class Survey:
    """Figures of random games.

    games:       how many were played.
    branching:   legal actions of a position: mean and most.
    plies:       shortest, mean and longest game, and the max_plies that the game declares.
    shares:      of games that the first player won, that were drawn, that the second player won.
    microseconds: per call of a rule, by its name, in this process.
    again:       share of moves after which the same player moves again.
    symmetries:  declared, and those that could be tried by playing because the initial position keeps them.
    suspicions:  sentences: what no law forbids but hardly anybody means.
    advice:      sentences: what a person may want to change.
    """

    games: int
    branching: tuple[float, int]
    plies: tuple[int, float, int, int]
    shares: tuple[float, float, float]
    microseconds: dict[str, float]
    again: float
    symmetries: tuple[int, int]
    suspicions: tuple[str, ...]
    advice: tuple[str, ...]


def survey(start: Game, *, games: int, seed: int = 0) -> Survey:
    """Play `games` random games and return what they look like."""
    played = [random_game(start, np.random.default_rng([seed, number])) for number in range(games)]
    unfinished = [position for game in played for position in game.positions if position.outcome() is None]
    legal = [len(position.legal_actions()) for position in unfinished]
    plies = [len(game.moves) for game in played]
    won = Counter(winner(game.positions[-1]) for game in played)
    microseconds = costs(played)
    turns = [
        one.to_play == other.to_play
        for game in played
        for one, other in itertools.pairwise(game.positions)
        if other.outcome() is None
    ]
    symmetries = (len(start.symmetries()), len(kept_by_the_start(start)))
    return Survey(
        games=games,
        branching=(float(np.mean(legal)), max(legal)),
        plies=(min(plies), float(np.mean(plies)), max(plies), start.max_plies),
        shares=(won[0] / games, won[None] / games, won[1] / games),
        microseconds=microseconds,
        again=float(np.mean(turns)) if turns else 0.0,
        symmetries=symmetries,
        suspicions=tuple(suspicions(played, won)),
        advice=tuple(advice(start, unfinished, sum(microseconds.values()), symmetries)),
    )


def suspicions(played: Sequence[PlayedGame], won: Counter[int | None]) -> Iterator[str]:
    """Yield what no law forbids, but hardly anybody means; `won` counts the winners of the games `played`."""
    movers = {position.to_play for game in played for position in game.positions[:-1]}
    if len(movers) == 1:
        yield f"player {1 - movers.pop()} never moved in {len(played)} random games: is to_play right?"
    if len(won) == 1 and len(played) >= FEW_GAMES:
        (winner_of_all,) = won
        what = "drawn" if winner_of_all is None else f"won by player {winner_of_all}"
        yield f"all of {len(played)} random games were {what}: is outcome() right?"
    if (changed := share_that_changes(played)) is not None and changed < SAME_VIEW:
        yield (
            "observe() hardly changes when the turn passes: is it seen by the player to move, own pieces first? Right "
            "only where both players own the same pieces"
        )


def share_that_changes(played: Sequence[PlayedGame]) -> float | None:
    """Return how much of an observation changes with a move that passes the turn: of what it shows, a high share.

    That is the 90th percentile over positions that show at least FEW_NUMBERS, None if there are none. Where planes are
    those of own and other pieces, most of them move; where they are player 0's and player 1's, only the move is seen.
    """
    shares = []
    for game in played:
        for one, other in itertools.pairwise(game.positions[:-1]):
            if one.to_play != other.to_play:
                before, after = (np.asarray(position.observe(), np.float32) for position in (one, other))
                if (shown := np.count_nonzero(before)) >= FEW_NUMBERS:
                    shares.append(np.count_nonzero(before != after) / shown)
    return float(np.percentile(shares, 90)) if shares else None


def costs(played: Sequence[PlayedGame]) -> dict[str, float]:
    """Return microseconds per call of each rule from Python, over the positions of `played`."""
    steps = [(at, move) for game in played for at, move in zip(game.positions, game.moves, strict=False)][:2000]
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
    """Return what a person may want to change, one sentence each."""
    found = []
    binary = all(np.isin(position.observe(), (0, 1)).all() for position in positions[:500])
    if binary and np.dtype(start.observation_dtype) != np.bool_:
        found.append("observations hold only 0 and 1: with observation_dtype = bool they take 32 times less room")
    if type(start).__str__ is Game.__str__:
        found.append("write __str__ so that people see the board")
    if not symmetries[0]:
        found.append("no symmetries are declared: with them the network learns from each game several times")
    elif symmetries[1] < symmetries[0]:
        found.append(
            f"{symmetries[0] - symmetries[1]} of {symmetries[0]} symmetries change the initial position, so playing "
            "could not try them: make sure that they move actions and planes alike"
        )
    if rules_cost > SLOW_RULES and not isinstance(start, CompiledGame):
        found.append(
            f"a simulation spends {rules_cost:.0f} µs in these rules; compiled rules take about 1 µs "
            "(docs/writing-a-game.md)"
        )
    return found
