"""Actions and their names: a line of play as text, and back."""

from __future__ import annotations

from collections.abc import Sequence

from plyzero.rules.game import Game


def action_names(position: Game, actions: tuple[int, ...]) -> list[str]:
    """Return the names of `actions`, played one after the other from `position`."""
    names = []
    for action in actions:
        names.append(position.action_name(action))
        position = position.play_unchecked(action)
    return names


def play_named(position: Game, moves: Sequence[str]) -> tuple[list[Game], list[int]]:
    """Return `position` with the position after each of `moves`, names of actions, and the actions.

    Raises ValueError for a move that is not legal where it stands; says which.
    """
    positions, actions = [position], []
    for number, name in enumerate(moves, 1):
        if positions[-1].outcome() is not None:
            raise ValueError(f"move {number}, {name!r}: the game is over by then")
        try:
            actions.append(positions[-1].parse_action(name))
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from error
        positions.append(positions[-1].play_unchecked(actions[-1]))
    return positions, actions
