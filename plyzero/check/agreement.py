"""The laws that two forms of the rules agree: compiled and as plain Python, and for `check --against` two games.

Traces of compiled games run as plain Python, so that an error shows its line.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

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
from plyzero.check.two_forms import (
    NAMES,
    declared_differences,
    encoding_differences,
    label_of,
    not_compared,
    rule_differences,
)
from plyzero.check.wording import name_of
from plyzero.errors import UserError
from plyzero.rules.chance import possible_moves
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

MAX_INTERPRETED: Final = 8
"""Largest number of legal actions that a law plays at one position in plain Python, which is slow."""

ENCODED: Final = "encoded_as_the_other"
"""The name of the law about what a network sees."""

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
    plyzero.check.two_forms.not_compared names may differ.
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
