"""Many positions of a game together, and the laws that only such a sample can break."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.check.laws import Law, LawBrokenError, differences, law, observed
from plyzero.rules.game import Game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import PlayedGame, random_game

NEAR: Final = 500
"""Positions next to the start, by breadth, in a sample."""

FEW_GAMES: Final = 20
"""Decided games from which on it is no accident that the player who moved last never won."""


def sample(start: Game, *, games: int, seed: int = 0) -> Sample:
    """Return NEAR positions next to `start` and those of so many random games; each game ends within max_plies."""
    played = [random_game(start, np.random.default_rng([seed, number])) for number in range(games)]
    far = [
        Sampled(tuple(game.moves[:ply]), position)
        for game in played
        for ply, position in enumerate(game.positions)
        if position.outcome() is None
    ]
    return Sample([*near(start), *far], played)


def near(start: Game) -> list[Sampled]:
    """Return the unfinished positions next to `start`, by breadth; one that is reached twice is there twice."""
    found = [Sampled((), start)]
    for moves, position in found:
        for action in position.legal_actions():
            after = position.play_unchecked(action)
            if after.outcome() is None:
                found.append(Sampled((*moves, action), after))
        if len(found) >= NEAR:
            break
    return found


class Sampled(NamedTuple):
    """A position and the line that leads to it."""

    moves: tuple[int, ...]
    position: Game


@dataclass(frozen=True)
class Sample:
    """Unfinished positions, those of short lines first, and whole random games."""

    positions: Sequence[Sampled]
    games: Sequence[PlayedGame]


SAMPLE_LAWS: list[Law] = []


@law(SAMPLE_LAWS)
def equal_observations_equal_futures(sample: Sample) -> None:
    """The network can tell apart what differs: where observations are the same, so is what follows."""
    text = "look the same to the network, but differ: observe() leaves something out, or outcome() is wrong"
    for one, other in alike(sample.positions, observed):
        expect_same_of(sample, one, other, future_as_seen(one.position), future_as_seen(other.position), text)


@law(SAMPLE_LAWS)
def equal_keys_equal_futures(sample: Sample) -> None:
    """Positions with the same key() have the same player to move and the same future."""
    for one, other in alike(sample.positions, lambda position: position.key()):
        expect_same_of(
            sample, one, other, future(one.position), future(other.position), "have the same key(), but differ"
        )


@law(SAMPLE_LAWS)
def last_mover_wins_some(sample: Sample) -> None:
    """Of the games that somebody wins, some are won by the player who moved last."""
    decided = [game for game in sample.games if winner(game.positions[-1]) is not None]
    lost = [game for game in decided if winner(game.positions[-1]) != game.positions[-2].to_play]
    if len(decided) >= FEW_GAMES and len(lost) == len(decided):
        raise LawBrokenError(
            f"in all of {len(decided)} random games that somebody won, the player who made the last move lost: does "
            "outcome() name the right winner, and play() hand board and turn to the right player? If by the rules the "
            "last mover never wins, skip this law",
            moves=min(lost, key=lambda game: len(game.moves)).moves,
        )


def alike(positions: Iterable[Sampled], look: Callable[[Game], Hashable]) -> Iterable[tuple[Sampled, Sampled]]:
    """Yield pairs of positions that `look` the same: the first such, with each later one."""
    first: dict[Hashable, Sampled] = {}
    for each in positions:
        before = first.setdefault(look(each.position), each)
        if before is not each:
            yield before, each


def future(position: Game) -> dict[str, Any]:
    """Return what the next ply can bring."""
    after = {action: position.play_unchecked(action) for action in position.legal_actions()}
    return {
        "to_play": position.to_play,
        "legal_actions()": tuple(after),
        "outcomes of the moves": [each.outcome() for each in after.values()],
        "key() after the moves": [each.key() if each.outcome() is None else None for each in after.values()],
    }


def future_as_seen(position: Game) -> dict[str, Any]:
    """Return what the next ply can bring, as the player to move sees it."""
    after = {action: position.play_unchecked(action) for action in position.legal_actions()}
    mover, outcomes = position.to_play, [each.outcome() for each in after.values()]
    going_on = [each for each, outcome in zip(after.values(), outcomes, strict=True) if outcome is None]
    return {
        "legal_actions()": tuple(after),
        "outcomes of the moves (+1 = for the player to move)": [
            outcome and outcome.value(mover) for outcome in outcomes
        ],
        "who moves next": [each.to_play == mover for each in going_on],
        "observe() after the moves": [observed(each) for each in going_on],
    }


def expect_same_of(
    sample: Sample, one: Sampled, other: Sampled, of_one: dict[str, Any], of_other: dict[str, Any], message: str
) -> None:
    """Raise LawBrokenError, with both lines, where two positions are not the same."""
    if found := differences(of_one, of_other):
        start = sample.positions[0].position
        lines = [" ".join(action_names(start, each.moves)) or "no move" for each in (one, other)]
        message = f"the positions after\n  {lines[0]}\nand after\n  {lines[1]}\n{message}\n{found}"
        raise LawBrokenError(message, other.moves)


def winner(position: Game) -> int | None:
    """Return who won, None for a draw or a game that goes on."""
    outcome = position.outcome()
    return outcome.winner if outcome else None
