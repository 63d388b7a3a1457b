"""The laws that two forms of the rules agree: compiled and as plain Python, and for `check --against` two games.

Traces of compiled games run as plain Python, so that an error shows its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import numpy as np

from plyzero.check.laws import (
    Answers,
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
from plyzero.check.wording import name_of
from plyzero.rules.chance import chances_of, move_name, possible_moves
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome

MAX_INTERPRETED: Final = 8
"""Largest number of legal actions that a law plays at one position in plain Python, which is slow."""

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

    Moves are the same if their names are, ignoring case. The players to move, the names of the legal moves, the chances
    and the results must agree; and where both games have as many actions and observations of one shape, the numbers of
    the actions and the observations as well.
    """

    def agrees(trace: GameTrace) -> None:
        other = followed(trace, make)
        in_detail = form(trace.position) == form(other)
        one, two = (answers(each, in_detail=in_detail) for each in (trace.position, other))
        if not (trace.position.max_score and other.max_score):  # one of them counts no points
            for each in (one, two):
                outcome = cast(Outcome | None, each["outcome()"])
                each["outcome()"] = outcome and Outcome(outcome.winner)
        expect_equal(one, two, "this game (first) and the other one (second) disagree")

    return Law("agrees_with_the_other", "Both games agree move for move.", agrees)


def followed(trace: GameTrace, make: Callable[[], Game]) -> Game:
    """Return the position that the other game reaches with moves of the same names."""
    positions = trace.replicas["against"]
    if not positions:
        positions.append(make())
    for position, move in list(zip(trace.positions, trace.moves, strict=False))[len(positions) - 1 :]:
        name, other = move_name(position, move).lower(), positions[-1]
        same = [each for each in possible_moves(other) if move_name(other, each).lower() == name]
        if len(same) != 1:
            raise LawBrokenError(f"the other game has {len(same)} moves called {name!r}")
        positions.append(other.play_unchecked(same[0]))
    return positions[-1]


def form(position: Game) -> tuple[int, tuple[int, ...]]:
    """Return the number of actions and the shape of the observations."""
    return position.num_actions, tuple(position.observation_shape)


def answers(position: Game, *, in_detail: bool) -> Answers:
    """Return what two implementations must agree on, by name; not their keys and what people see, which may differ."""
    found = {name: answer for name, answer in rule_answers(position).items() if name not in ("key()", "final_board()")}
    names = {move: move_name(position, move).lower() for move in possible_moves(position)}
    if in_detail:
        return found | {"names": tuple(names.values())}
    chances = chances_of(position)
    numbered = ("legal_actions()", "observe()", "chances()")
    return {name: answer for name, answer in found.items() if name not in numbered} | {
        "names": tuple(sorted(names.values())),
        "chances": {names[move]: float(chances[move]) for move in names} if len(chances) else {},
    }
