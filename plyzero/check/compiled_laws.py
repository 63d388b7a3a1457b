"""The laws of compiled games. Their traces run as plain Python, so that an error shows its line."""

from __future__ import annotations

from typing import Final

import numpy as np

from plyzero.check.laws import (
    GameTrace,
    Law,
    evenly_spaced,
    expect,
    expect_equal,
    name_of,
    play_legal,
    register,
    rule_answers,
)
from plyzero.rules.chance import possible_moves
from plyzero.rules.compiled_game import CompiledGame

MAX_WIDE_ACTIONS: Final = 8
"""Largest number of legal actions that `numbers_fit_their_fields` plays at one position."""

COMPILED_LAWS: Final[list[Law]] = []
"""The laws that are checked at every position of a compiled game."""


@register(COMPILED_LAWS)
def numbers_fit_their_fields(trace: GameTrace) -> None:
    """A number that play() stores in a field of the state is in the range of the field's type."""
    position = trace.position
    assert isinstance(position, CompiledGame)
    wide = position.with_wide_fields()
    for action in evenly_spaced(possible_moves(position), max_count=MAX_WIDE_ACTIONS):
        try:
            after = wide.play_unchecked(action)
        except Exception:  # compiled_as_written reports a rule that raises
            continue
        for name in position.State.names or ():
            stored, declared = np.asarray(after.record[name]), position.State[name].base
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
    for action in evenly_spaced(possible_moves(plain)):
        states = [play_legal(each, action).record for each in (plain, compiled)]  # type: ignore[attr-defined]
        for name in plain.State.names or ():
            one, other = (state[name] for state in states)
            expect(
                np.array_equal(one, other),
                f"play({action}), {name_of(plain, action)}, stores {one} in the field {name!r} in plain Python and "
                f"{other} when compiled",
            )
