"""The law of `check --against`: two implementations of a game agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plyzero.check.laws import GameTrace, Law, LawBrokenError, expect_equal, rule_answers
from plyzero.rules.chance import chances_of, move_name, possible_moves
from plyzero.rules.game import Game


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


def answers(position: Game, *, in_detail: bool) -> dict[str, Any]:
    """Return what two implementations must agree on, by name; not their keys and what people see, which may differ."""
    omitted = ("render()", "str()", "key()")
    found = {name: answer for name, answer in rule_answers(position).items() if name not in omitted}
    names = {move: move_name(position, move).lower() for move in possible_moves(position)}
    if in_detail:
        return found | {"names": tuple(names.values())}
    chances = chances_of(position)
    numbered = ("legal_actions()", "observe()", "chances()")
    return {name: answer for name, answer in found.items() if name not in numbered} | {
        "names": tuple(sorted(names.values())),
        "chances": {names[move]: float(chances[move]) for move in names} if len(chances) else {},
    }
