"""The laws of a game that take many positions to test."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from plyzero.check.laws import Law, LawBrokenError, evenly_spaced, observation_bytes, register, state_of
from plyzero.check.sampling import RulesFailedError, Sample, SamplePosition
from plyzero.check.wording import advice_against_long_games, name_of, shown_moves
from plyzero.rules.chance import chances_of, possible_moves
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import action_names

MAX_PAIRS: Final = 1000
"""Number of pairs of positions whose next ply is compared."""

MAX_TRIED: Final = 32
"""Number of actions of a position that are played for that."""

MAX_TWINS: Final = 200
"""Number of pairs of positions that are played to the end by the same random moves."""

TWIN_POSITIONS: Final = 1000
"""Number of positions that these moves may reach, of all pairs together."""

CHANCE_SAMPLE_LAWS: list[Law] = []
"""The laws that are checked on the random games of a Sample of a game with dice."""

TURN_LAWS: list[Law] = []
"""The laws that are checked on the random games of a Sample."""

SAMPLE_LAWS: list[Law] = []
"""The laws that are checked on all positions of a Sample."""


@register(CHANCE_SAMPLE_LAWS)
def games_with_dice_end(sample: Sample) -> None:
    """No random game with dice is longer than max_plies; with bad luck a game may be."""
    for game in sample.games:
        if game.positions[-1].outcome() is None:
            message = f"a random game is not over after max_plies = {game.plies} plies"
            advice = advice_against_long_games(game.positions[0], "games_with_dice_end", repeats=False)
            raise LawBrokenError(f"{message}: {advice}", game.moves)


@register(TURN_LAWS)
def both_players_move(sample: Sample) -> None:
    """In games of more than one move, each of the players is to move somewhere."""
    turns = [game.positions[ply].to_play for game in sample.games for ply in game.decisions]
    movers = set(turns)
    longest = max(sample.games, key=lambda game: game.plies)
    if len(movers) == 1 and longest.plies > 1:
        raise LawBrokenError(
            f"player {1 - movers.pop()} is not to move at any of {len(turns)} positions, although games "
            f"have up to {longest.plies} moves: does play() pass the turn?",
            longest.moves,
        )


@register(SAMPLE_LAWS)
def equal_observations_equal_futures(sample: Sample) -> None:
    """Positions with equal observations have the same future, so the network can tell different positions apart."""
    what = "the board that the network sees" if sample.start.is_adapted else "observe()"
    message = f"have equal observations, but different futures, so {what} omits something or a rule is wrong"
    expect_equal_futures(sample, observation_bytes, relative=True, message=message)


@register(SAMPLE_LAWS)
def equal_keys_equal_futures(sample: Sample) -> None:
    """Positions with equal key() have the same player to move and the same future."""
    message = "have the same key(), but different futures, so key() omits something or a rule is wrong"
    expect_equal_futures(sample, lambda position: position.key(), relative=False, message=message)


@register(SAMPLE_LAWS)
def observations_show_the_limit(sample: Sample) -> None:
    """Positions with equal observations have the same future also where max_plies ends the game after the next move."""
    message = (
        "have equal observations, but max_plies ends the game sooner after one of them: show the plies that are left"
    )
    near = [each for each in sample.positions if plies_left(sample, each) == 1]
    if not near:
        return
    alike = {observation_bytes(each.position) for each in near}
    others = [each for each in sample.positions if observation_bytes(each.position) in alike]
    for one, other in equal_pairs([*near, *others], observation_bytes):
        if plies_left(sample, one) != plies_left(sample, other):
            here, there = (future(each.position, observation_bytes, relative=True) for each in (one, other))
            if found := contrast(here, there, other.position):
                raise LawBrokenError(_difference(sample, one, other, message, found), other.moves)


def plies_left(sample: Sample, each: SamplePosition) -> float:
    """Return the number of plies until max_plies ends a game without dice; infinity for a game with dice."""
    if sample.start.num_chances:
        return math.inf
    plies = len(each.moves) - 1 if sample.start.awaits_setup else len(each.moves)
    return sample.start.max_plies - plies


def plies_before_limit(sample: Sample, one: SamplePosition, other: SamplePosition) -> float:
    """Return the number of plies that can be played from both before max_plies ends one of them sooner."""
    left = [plies_left(sample, each) for each in (one, other)]
    return math.inf if left[0] == left[1] else min(left) - 1


def expect_equal_futures(sample: Sample, feature: Callable[[Game], Hashable], *, relative: bool, message: str) -> None:
    """Raise LawBrokenError if two positions of the sample with an equal `feature` have different futures.

    The next ply is compared for MAX_PAIRS pairs, and a random continuation to the end for some of these. What max_plies
    ends is left to `observations_show_the_limit`.

    relative: compare from the point of view of the player to move, so that the players may be swapped.
    message:  what the two positions have in common, and what is wrong if they differ.
    """
    equal = [
        pair
        for pair in equal_pairs(sample.positions, feature)
        if plies_before_limit(sample, *pair) > 0 and not same_contents(*pair)
    ]
    pairs = evenly_spaced(equal, max_count=MAX_PAIRS)
    futures: dict[tuple[int, ...], Future] = {}
    for one, other in pairs:
        if one.moves not in futures:
            futures[one.moves] = future(one.position, feature, relative=relative)
        found = contrast(futures[one.moves], future(other.position, feature, relative=relative), other.position)
        if found:
            raise LawBrokenError(_difference(sample, one, other, message, found), other.moves)
    rng = np.random.default_rng(0)
    played = 0
    for one, other in evenly_spaced(pairs, max_count=MAX_TWINS):
        if played > TWIN_POSITIONS:
            break
        plies = plies_before_limit(sample, one, other)
        moves, found = play_twins(one, other, feature, rng, plies, relative=relative)
        played += len(moves)
        if found:
            raise LawBrokenError(_difference(sample, one, other, message, found, moves), (*other.moves, *moves))


def equal_pairs(
    positions: Iterable[SamplePosition], feature: Callable[[Game], Hashable]
) -> Iterator[tuple[SamplePosition, SamplePosition]]:
    """Yield the pairs of positions with an equal `feature`: the first such position with each later one.

    Equal states of a compiled game are one position. Raises RulesFailedError if a rule raises.
    """
    first: dict[Hashable, SamplePosition] = {}
    for each in positions:
        try:
            before = first.setdefault(feature(each.position), each)
        except (Exception, SystemExit) as error:
            raise RulesFailedError(error, each.moves) from error
        state = state_of(each.position)
        if before.moves != each.moves and not (state and state == state_of(before.position)):
            yield before, each


def same_contents(one: SamplePosition, other: SamplePosition) -> bool:
    """Return whether two positions hold the same in their attributes, so that they are one position.

    False also if their attributes cannot be compared.
    """
    here, there = (each.position.__getstate__() for each in (one, other))
    if not isinstance(here, dict) or not isinstance(there, dict) or here.keys() != there.keys():
        return False
    try:
        return all(np.array_equal(here[name], there[name]) for name in here)
    except Exception:
        return False


class Answer(NamedTuple):
    """The answer of a position, in words to show.

    state:   who is to move, or how the game has ended.
    feature: the feature that is compared; None if the game is over.
    """

    state: str
    feature: Hashable


class Future(NamedTuple):
    """A position and the answers after the next ply.

    legal: the legal actions.
    here:  the position's answer.
    after: the answers after each of the legal actions, or after MAX_TRIED of them.
    """

    legal: tuple[int, ...]
    here: Answer
    after: tuple[Answer, ...] = ()


def future(position: Game, feature: Callable[[Game], Hashable], *, relative: bool) -> Future:
    """Return the answers of an unfinished position and of those after its legal actions, MAX_TRIED at most."""
    player = position.to_play if relative else None
    legal = tuple(possible_moves(position))
    tried = evenly_spaced(legal, max_count=MAX_TRIED)
    after = tuple(answer(position.play_unchecked(action), player, feature) for action in tried)
    return Future(legal, answer(position, player, feature), after)


def answer(position: Game, player: int | None, feature: Callable[[Game], Hashable]) -> Answer:
    """Return the answer of `position` from the point of view of `player`; None names the players by their numbers."""
    outcome = position.outcome()
    if outcome is not None:
        return Answer(f"the game is {_result(outcome, player)}", None)
    chances = chances_of(position)
    if len(chances):
        return Answer("chance moves", tuple(chances.tolist()))
    names = [f"player {number}" for number in range(2)]
    if player is not None:
        names[player], names[1 - player] = "the same player as at first", "the other player"
    return Answer(f"{names[position.to_play]} is to move", feature(position))


def contrast(one: Future, other: Future, position: Game) -> str:
    """Return in words where two futures differ, "" if they do not; `position`, the second one, names the actions."""
    if one.here != other.here:
        return f"here {_contrast(one.here, other.here)}"
    if one.legal != other.legal:
        legal = ((one.legal, other.legal), (other.legal, one.legal))
        only = [" ".join(name_of(position, a) for a in sorted({*here} - {*there})) or "none" for here, there in legal]
        return f"only the first has the legal actions {only[0]}, only the second {only[1]}"
    tried = evenly_spaced(one.legal, max_count=MAX_TRIED)
    for action, *answers in zip(tried, one.after, other.after, strict=False):
        if answers[0] != answers[1]:
            return f"after the move {name_of(position, action)} {_contrast(*answers)}"
    return ""


def play_twins(
    one: SamplePosition,
    other: SamplePosition,
    feature: Callable[[Game], Hashable],
    rng: np.random.Generator,
    plies: float,
    *,
    relative: bool,
) -> tuple[list[int], str]:
    """Play the same random moves, `plies` at most, from two positions; return those to the first difference, and this.

    Raises RulesFailedError if a rule raises.
    """
    twins = [one.position, other.position]
    players = [each.to_play if relative else None for each in twins]
    moves: list[int] = []
    try:
        while twins[0].outcome() is None and len(moves) < min(plies, twins[0].max_plies):
            moves.append(int(rng.choice(possible_moves(twins[0]))))
            twins = [each.play_unchecked(moves[-1]) for each in twins]
            futures = [
                Future(tuple(possible_moves(each)), answer(each, player, feature))
                for each, player in zip(twins, players, strict=True)
            ]
            if found := contrast(futures[0], futures[1], twins[1]):
                return moves, found
    except (Exception, SystemExit) as error:
        raise RulesFailedError(error, (*other.moves, *moves)) from error
    return moves, ""


def _result(outcome: Outcome, player: int | None) -> str:
    points = "" if outcome.score is None else f" with {outcome.score:g} points"
    if outcome.winner is None:
        return "drawn"
    if player is None:
        return f"won by player {outcome.winner}{points}"
    return f"{'won' if outcome.winner == player else 'lost'} by the player to move{points}"


def _contrast(one: Answer, other: Answer) -> str:
    if one.state != other.state:
        return f"{one.state} in the first case, {other.state} in the second"
    return "they are no longer equal"


def _difference(
    sample: Sample, one: SamplePosition, other: SamplePosition, message: str, found: str, moves: Sequence[int] = ()
) -> str:
    names = [shown_moves(action_names(sample.start, each.moves), "no move") for each in (one, other)]
    further = shown_moves(action_names(other.position, tuple(moves)), "none")
    then = f"after the further moves {further} " if moves else ""
    return f"the positions after\n  {names[0]}\nand after\n  {names[1]}\n{message}; {then}{found}"


def winner(position: Game) -> int | None:
    """Return the player who has won; None for a drawn or unfinished game."""
    outcome = position.outcome()
    return outcome.winner if outcome else None
