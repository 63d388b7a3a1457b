"""The laws of a game that take many positions to test, and the sample of positions on which they are checked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.check.laws import Law, LawBrokenError, differences, observation_bytes, register
from plyzero.rules.game import Game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import PlayedGame, random_game

NEAR_POSITIONS: Final = 500
"""How many positions next to the initial position a sample has, in breadth-first order."""

MIN_DECIDED_GAMES: Final = 20
"""Smallest number of decided games in which it is no coincidence that the last mover never won."""


def sample(start: Game, *, games: int, seed: int = 0) -> Sample:
    """Return the NEAR_POSITIONS next to `start` and the positions of `games` random games.

    Every game must end within max_plies.
    """
    played = [random_game(start, np.random.default_rng([seed, number])) for number in range(games)]
    far = [
        SamplePosition(tuple(game.moves[:ply]), position)
        for game in played
        for ply, position in enumerate(game.positions)
        if position.outcome() is None
    ]
    return Sample([*positions_near(start), *far], played)


def positions_near(start: Game) -> list[SamplePosition]:
    """Return the unfinished positions next to `start` in breadth-first order; transpositions are listed repeatedly."""
    found = [SamplePosition((), start)]
    for moves, position in found:
        for action in position.legal_actions():
            after = position.play_unchecked(action)
            if after.outcome() is None:
                found.append(SamplePosition((*moves, action), after))
        if len(found) >= NEAR_POSITIONS:
            break
    return found


class SamplePosition(NamedTuple):
    """A position and the actions that lead to it from the initial position."""

    moves: tuple[int, ...]
    position: Game


@dataclass(frozen=True)
class Sample:
    """Positions of a game, for the laws that compare positions.

    positions: unfinished positions, those next to the initial position first.
    games:     whole random games.
    """

    positions: Sequence[SamplePosition]
    games: Sequence[PlayedGame]


SAMPLE_LAWS: list[Law] = []
"""The laws that are checked on a Sample."""


@register(SAMPLE_LAWS)
def equal_observations_equal_futures(sample: Sample) -> None:
    """Positions with equal observations have the same future, so the network can tell different positions apart."""
    text = "have equal observations, but differ: observe() omits something, or outcome() is wrong"
    for one, other in equal_pairs(sample.positions, observation_bytes):
        expect_equal_futures(sample, one, other, observed_future, text)


@register(SAMPLE_LAWS)
def equal_keys_equal_futures(sample: Sample) -> None:
    """Positions with equal key() have the same player to move and the same future."""
    for one, other in equal_pairs(sample.positions, lambda position: position.key()):
        expect_equal_futures(sample, one, other, future, "have the same key(), but differ")


@register(SAMPLE_LAWS)
def last_mover_wins_some(sample: Sample) -> None:
    """Of the games with a winner, some are won by the player who moved last."""
    decided = [game for game in sample.games if winner(game.positions[-1]) is not None]
    lost = [game for game in decided if winner(game.positions[-1]) != game.positions[-2].to_play]
    if len(decided) >= MIN_DECIDED_GAMES and len(lost) == len(decided):
        raise LawBrokenError(
            f"in all {len(decided)} random games with a winner, the player who made the last move lost: does outcome() "
            "name the right winner, and does play() pass board and turn to the right player?\n"
            "If your rules say that the last mover loses, this is correct: use `--skip last_mover_wins_some`, and in "
            'tests `skip = ("last_mover_wins_some",)`',
            moves=min(lost, key=lambda game: len(game.moves)).moves,
        )


def equal_pairs(
    positions: Iterable[SamplePosition], feature: Callable[[Game], Hashable]
) -> Iterable[tuple[SamplePosition, SamplePosition]]:
    """Yield the pairs of positions with an equal `feature`: the first such position with each later one."""
    first: dict[Hashable, SamplePosition] = {}
    for each in positions:
        before = first.setdefault(feature(each.position), each)
        if before is not each:
            yield before, each


def future(position: Game) -> dict[str, Any]:
    """Return what the next ply can lead to, by the names to show in a message."""
    after = {action: position.play_unchecked(action) for action in position.legal_actions()}
    return {
        "to_play": position.to_play,
        "legal_actions()": tuple(after),
        "outcomes of the moves": [each.outcome() for each in after.values()],
        "key() after the moves": [each.key() if each.outcome() is None else None for each in after.values()],
    }


def observed_future(position: Game) -> dict[str, Any]:
    """Return what the next ply can lead to, from the point of view of the player to move, by the names to show."""
    after = {action: position.play_unchecked(action) for action in position.legal_actions()}
    mover, outcomes = position.to_play, [each.outcome() for each in after.values()]
    unfinished = [each for each, outcome in zip(after.values(), outcomes, strict=True) if outcome is None]
    return {
        "legal_actions()": tuple(after),
        "outcomes of the moves (+1 = for the player to move)": [
            outcome and outcome.value(mover) for outcome in outcomes
        ],
        "who moves next": [each.to_play == mover for each in unfinished],
        "observe() after the moves": [observation_bytes(each) for each in unfinished],
    }


def expect_equal_futures(
    sample: Sample,
    one: SamplePosition,
    other: SamplePosition,
    future_of: Callable[[Game], dict[str, Any]],
    message: str,
) -> None:
    """Raise LawBrokenError with `message` and the moves to both positions if their futures differ."""
    if found := differences(future_of(one.position), future_of(other.position)):
        start = sample.positions[0].position
        names = [" ".join(action_names(start, each.moves)) or "no move" for each in (one, other)]
        message = f"the positions after\n  {names[0]}\nand after\n  {names[1]}\n{message}\n{found}"
        raise LawBrokenError(message, other.moves)


def winner(position: Game) -> int | None:
    """Return the player who has won; None for a drawn or unfinished game."""
    outcome = position.outcome()
    return outcome.winner if outcome else None
