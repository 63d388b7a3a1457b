"""The laws that two forms of a game agree: compiled rules and the same as plain Python, and two games of `--against`.

Of two games there are two laws, which move for move compare

    rules     whose turn it is, the moves and their chances by name, how the game has ended and with which points
    encoding  the numbers of the moves, the observation, the final board, the symmetries, what the class declares

The rules of another toolkit (`Game.is_adapted`) may be encoded in a way of their own: then `not_compared` says what
differs. Traces of compiled games run as plain Python, so that an error shows its line.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.check.laws import (
    GameTrace,
    Law,
    LawBrokenError,
    evenly_spaced,
    expect,
    expect_equal,
    play_legal,
    register,
    rule_answers,
)
from plyzero.check.sample_laws import answer
from plyzero.check.symmetry_laws import described
from plyzero.check.wording import first_difference, name_of, some_of
from plyzero.errors import UserError
from plyzero.rules.chance import chances_of, first_decision, is_chance, move_name, possible_moves
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry

MAX_INTERPRETED: Final = 8
"""Largest number of legal actions that a law plays at one position in plain Python, which is slow."""

ENCODED: Final = "encoded_as_the_other"
"""The name of the law about what a network sees."""

THIS: Final = "this game"
OTHER: Final = "the other one"

NAMES: Final = "names of the moves"
NUMBERS: Final = "numbers of the actions"
OBSERVATIONS: Final = "observations"
FINAL_BOARDS: Final = "final boards"
SYMMETRIES: Final = "symmetries"
POINTS: Final = "points"
"""The parts that two games may not have in common, for `not_compared`."""

DECLARED: Final = (
    *("num_actions", "observation_shape", "observation_dtype", "policy_planes"),
    *("max_plies", "max_score", "num_chances", "setups", "final_planes"),
)
"""The attributes of a game that its other form has to declare too."""

PART_OF: Final = {
    "num_actions": NUMBERS,
    "observation_shape": OBSERVATIONS,
    "final_planes": FINAL_BOARDS,
    "max_score": POINTS,
}
"""The part that is not compared if two games declare different values of an attribute."""

COMPILED_LAWS: Final[list[Law]] = []
"""The laws of a compiled game, checked at every position: `state_has_all` if it is a ForeignGame, else all others."""


@register(COMPILED_LAWS)
def numbers_fit_their_fields(trace: GameTrace) -> None:
    """A number that play() stores in a field of the state is in the range of the field's type."""
    position = trace.position
    assert isinstance(position, CompiledGame)
    wide = position.with_wide_fields()
    for action in evenly_spaced(possible_moves(position), max_count=MAX_INTERPRETED):
        try:
            after = wide.play_unchecked(action)
        except Exception:  # compiled_as_written reports a rule that raises
            continue
        for name in position.State.names or ():
            stored = np.asarray(after.record[name])
            declared = position.State[name].base
            if stored.dtype != declared and declared.kind in "iu":
                low, high = np.iinfo(declared).min, np.iinfo(declared).max
                beyond = stored[(stored < low) | (stored > high)]
                expect(
                    not beyond.size,
                    f"play({action}), {name_of(position, action)}, stores {beyond[:1].sum()} in the field {name!r} of "
                    f"State, whose type {declared} holds {low} to {high} only: give the field a larger type",
                )


@register(COMPILED_LAWS)
def compiled_as_written(trace: GameTrace) -> None:
    """Compiled rules return the same as the rules run as plain Python, and no array index is out of bounds."""
    start, plain = trace.positions[0], trace.position
    assert isinstance(start, CompiledGame)
    assert isinstance(plain, CompiledGame)
    compiled = trace.replica("compiled", start.with_bounds_checked)
    expect_equal(
        trace.answers[-1], rule_answers(compiled), "the rules differ between plain Python (first) and compiled (second)"
    )
    for action in evenly_spaced(possible_moves(plain), max_count=MAX_INTERPRETED):
        states = [play_legal(each, action).record for each in (plain, compiled)]  # type: ignore[attr-defined]
        for name in plain.State.names or ():
            one, other = (state[name] for state in states)
            expect(
                np.array_equal(one, other),
                f"play({action}), {name_of(plain, action)}, stores {one} in the field {name!r} in plain Python and "
                f"{other} when compiled",
            )


@register(COMPILED_LAWS)
def state_has_all(trace: GameTrace) -> None:
    """The functions of a library keep all in the bytes of the state: nothing in variables, or behind pointers."""
    position = trace.position
    other = trace.replica("in turns", trace.make)  # a second game, played in turns with this one
    advice = "keep all in the state, without pointers, static variables and random numbers, and read only what is in it"
    expect(position.key() == other.key(), f"two games with the same moves have different states: {advice}")
    again = "after moves of another game, the same state answers differently"
    expect_equal(trace.answers[-1], rule_answers(position), f"{again}: {advice}")


def agreement_with(make: Callable[[], Game]) -> Law:
    """Return the law that a game agrees, move for move, with the game whose initial position `make` returns.

    Moves are the same if their names are, ignoring case. The players to move, the legal moves, the chances and the
    results must be the same.
    """
    unlike = parts_not_compared(make)

    def agrees(trace: GameTrace) -> None:
        with _noting_whose():
            by_number = NAMES in unlike(trace.make)
            other = followed(trace, make, by_number=by_number)
            found = next(rule_differences(trace.position, other, plies=trace.plies, by_number=by_number), "")
        compared = "; moves are compared by their numbers, since they have other names" if by_number else ""
        expect(not found, f"{found}{compared}")

    return Law("agrees_with_the_other", "Both games have the same rules, move for move.", agrees)


def encoding_agreement_with(make: Callable[[], Game]) -> Law:
    """Return the law that a network sees the same of a game as of the one whose initial position `make` returns.

    The numbers of the actions, the observations, the final boards, the symmetries and what the games declare must be
    the same, so that models and recorded games of one suit the other. Where one is of another toolkit, the parts that
    `not_compared` names may differ.
    """
    unlike = parts_not_compared(make)

    def agrees(trace: GameTrace) -> None:
        with _noting_whose():
            parts = unlike(trace.make)
            other = followed(trace, make, by_number=NAMES in parts)
            declared = () if trace.moves else declared_differences(trace.position, other)
            found = next(itertools.chain(declared, encoding_differences(trace.position, other, parts)), "")
        expect(not found, f"{found}; if it differs on purpose, use --skip {ENCODED}")

    return Law(ENCODED, "Both games are encoded alike: what one is trained on suits the other.", agrees)


def parts_not_compared(make: Callable[[], Game]) -> Callable[[Callable[[], Game]], dict[str, str]]:
    """Return `not_compared` as a function of what makes the first game; `make` makes the other one."""
    return functools.lru_cache(maxsize=1)(lambda make_this: not_compared(make_this(), make()))


def followed(trace: GameTrace, make: Callable[[], Game], *, by_number: bool) -> Game:
    """Return the position that the other game reaches with the same moves, by their names or their numbers."""
    positions = trace.replicas["against"]
    if not positions:
        positions.append(make())
    for position, move in list(zip(trace.positions, trace.moves, strict=False))[len(positions) - 1 :]:
        label, other = label_of(position, move, by_number=by_number), positions[-1]
        if position.awaits_setup and other.awaits_setup and move < other.setups:
            positions.append(other.play_unchecked(move))
            continue
        same = [each for each in possible_moves(other) if label_of(other, each, by_number=by_number) == label]
        if len(same) != 1:
            raise LawBrokenError(f"the other game has {len(same)} moves called {label!r}")
        positions.append(other.play_unchecked(same[0]))
    return positions[-1]


@contextmanager
def _noting_whose() -> Iterator[None]:
    """Add a note to an error of the rules: those of the first game have answered without one."""
    try:
        yield
    except (LawBrokenError, UserError):
        raise
    except (Exception, SystemExit) as error:
        error.add_note("the rules of the other game raise this")
        raise


class Turn(NamedTuple):
    """The moves that can be played at a position, and whose turn it is.

    outcome: the result; None if the game is not over.
    to_play: the player to move; None if the game is over, or chance moves.
    moves:   the legal actions, or the rolls where chance moves, by their names in lower case.
    chances: the probability of each roll, `[num_chances]`; nothing where chance does not move.
    """

    outcome: Outcome | None
    to_play: int | None
    moves: dict[str, int]
    chances: NDArray[np.float32]


def label_of(position: Game, move: int, *, by_number: bool) -> str:
    """Return the name of a move in lower case, or its number: what two forms have in common."""
    return str(move) if by_number else move_name(position, move).lower()


def turn_at(position: Game, *, by_number: bool = False) -> Turn:
    """Return what can be played at `position`."""
    outcome, chances = position.outcome(), chances_of(position)
    to_play = None if outcome or len(chances) else position.to_play
    legal = np.flatnonzero(chances).tolist() if len(chances) else position.legal_actions()
    return Turn(outcome, to_play, {label_of(position, int(i), by_number=by_number): int(i) for i in legal}, chances)


def rule_differences(one: Game, two: Game, *, plies: int, by_number: bool) -> Iterator[str]:
    """Yield in words how the rules differ at a position that both games have reached by the same moves.

    plies:     the number of moves of players so far.
    by_number: moves are the same if their numbers are, not their names.
    """
    if one.awaits_setup or two.awaits_setup:
        if one.setups != two.setups:
            yield f"setups is {one.setups} in {THIS} and {two.setups} in {OTHER}"
        return
    here, there = (turn_at(each, by_number=by_number) for each in (one, two))
    with_points = bool(one.max_score and two.max_score)
    if not _same_turn(here, there, with_points=with_points):
        states = [answer(position, None, lambda position: None).state for position in (one, two)]
        yield f"in {THIS} {states[0]}, in {OTHER} {states[1]}"
        return
    if here.moves.keys() != there.moves.keys():
        yield _other_moves(here, there)
    if len(here.chances):
        yield from _other_chances(here, there)
    shortest = min(one.max_plies, two.max_plies)
    if one.max_plies != two.max_plies and plies >= shortest and here.to_play is not None:
        yield (
            f"the game is not over after {plies} plies, where max_plies cuts it off in one form: it is {one.max_plies} "
            f"in {THIS} and {two.max_plies} in {OTHER}"
        )


def _same_turn(here: Turn, there: Turn, *, with_points: bool) -> bool:
    if here.outcome is None or there.outcome is None:
        is_same = (here.to_play, len(here.chances) > 0) == (there.to_play, len(there.chances) > 0)
        return here.outcome is there.outcome and is_same
    leads = [float(each.outcome.score or 0) for each in (here, there) if each.outcome]
    return here.outcome.winner == there.outcome.winner and (not with_points or math.isclose(*leads, abs_tol=1e-9))


def _other_moves(here: Turn, there: Turn) -> str:
    only = [[name for name in each.moves if name not in other.moves] for each, other in ((here, there), (there, here))]
    if [*here.moves.values()] == [*there.moves.values()]:
        number = here.moves[only[0][0]]
        called = next(name for name, other in there.moves.items() if other == number)
        return f"the move {number} is called {only[0][0]} in {THIS} and {called} in {OTHER}"
    kind = "possible" if len(here.chances) else "legal"
    return f"{kind} in {THIS} alone: {some_of(only[0])}; in {OTHER} alone: {some_of(only[1])}"


def _other_chances(here: Turn, there: Turn) -> Iterator[str]:
    for name in here.moves:
        if name in there.moves:
            one, two = (float(each.chances[each.moves[name]]) for each in (here, there))
            if not math.isclose(one, two, abs_tol=1e-6):
                yield f"the roll {name} has the probability {one:g} in {THIS} and {two:g} in {OTHER}"


def not_compared(one: Game, two: Game) -> dict[str, str]:
    """Return the parts that cannot be compared in two games, given by their initial positions, each with the reason."""
    pairs = {name: (_declared(one, name), _declared(two, name)) for name in DECLARED}
    differ = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    found = {
        PART_OF.get(name, name): f"{f'{name} is ' if name in PART_OF else ''}{pair[0]} and {pair[1]}"
        for name, pair in differ.items()
    }
    if one.max_score and two.max_score:
        found.pop(POINTS, None)
    if OBSERVATIONS in found and (one.final_planes or two.final_planes):
        found.setdefault(FINAL_BOARDS, "they have the size of the observations")
    is_adapted = one.is_adapted or two.is_adapted
    if is_adapted and NUMBERS not in found:
        decisions = first_decision(one), first_decision(two)
        here, there = (turn_at(each).moves for each in decisions)
        if here.keys() != there.keys() and [*here.values()] == [*there.values()]:
            found[NAMES] = f"move {next(iter(here.values()))} is {next(iter(here))} and {next(iter(there))}"
        elif any(_numbers_differ(*decisions)):
            found[NUMBERS] = "the same move has other numbers"
    declared = one.symmetries(), two.symmetries()
    if any(map(len, declared)):
        if OBSERVATIONS in found or NUMBERS in found:
            found[SYMMETRIES] = "they permute what is not compared"
        elif is_adapted and not all(map(len, declared)):
            found[SYMMETRIES] = "one of the games declares none"
    return found


def _declared(game: Game, name: str) -> object:
    value = getattr(game, name)
    if name == "observation_dtype":
        return str(np.dtype(value))
    return tuple(value) if name == "observation_shape" else value


def declared_differences(one: Game, two: Game) -> Iterator[str]:
    """Yield in words how the declarations and symmetries of two games differ, given by their initial positions."""
    unlike = not_compared(one, two)
    if not (one.is_adapted or two.is_adapted):
        for name in DECLARED:
            here, there = (_declared(each, name) for each in (one, two))
            if here != there:
                longest = f", which matters if a game is longer than {min(one.max_plies, two.max_plies)} plies"
                yield f"{name} is {here} in {THIS} and {there} in {OTHER}{longest if name == 'max_plies' else ''}"
    if SYMMETRIES not in unlike:
        keys = [{_key(symmetry) for symmetry in each.symmetries()} for each in (one, two)]
        for whose, game, others in ((THIS, one, keys[1]), (OTHER, two, keys[0])):
            for number, symmetry in enumerate(game.symmetries()):
                if _key(symmetry) not in others:
                    yield f"only {whose} has {described(game, number, symmetry)}"


def _key(symmetry: Symmetry) -> tuple[bytes, bytes]:
    planes, actions = (np.ravel(part).astype(np.int64).tobytes() for part in symmetry)
    return planes, actions


def encoding_differences(one: Game, two: Game, unlike: Collection[str]) -> Iterator[str]:
    """Yield in words how a position is encoded in two ways.

    unlike: the parts that are not compared.
    """
    if one.outcome() is not None:
        if two.outcome() is not None and one.final_planes and FINAL_BOARDS not in unlike:
            boards = [np.asarray(each.final_board(), np.float32) for each in (one, two)]
            if one.to_play != two.to_play:  # either is allowed in a finished game, and +1 is for this player
                boards[1] = -boards[1]
            yield from _array_difference("final_board()", boards)
        return
    if is_chance(one) or two.outcome() is not None:
        return
    if NUMBERS not in unlike:
        yield from _numbers_differ(one, two)
    if OBSERVATIONS not in unlike:
        yield from _array_difference("observe()", [np.asarray(each.observe(), np.float32) for each in (one, two)])


def _numbers_differ(one: Game, two: Game) -> Iterator[str]:
    here, there = turn_at(one).moves, turn_at(two).moves
    for name in here:
        if name in there and here[name] != there[name]:
            yield f"the move {name} has the number {here[name]} in {THIS} and {there[name]} in {OTHER}"


def _array_difference(name: str, arrays: Sequence[NDArray[np.float32]]) -> Iterator[str]:
    one, two = arrays
    if one.shape != two.shape:
        yield f"{name} has the shape {one.shape} in {THIS} and {two.shape} in {OTHER}"
    elif found := first_difference(one, two, (f"{THIS} has", f"{OTHER} has")):
        yield f"{name} {found}"
