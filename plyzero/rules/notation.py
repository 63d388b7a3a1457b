"""Notation: sequences of moves as names of actions and of rolls, and back."""

from __future__ import annotations

from collections.abc import Sequence

from plyzero.rules.chance import move_name, parse_move
from plyzero.rules.game import Game


def action_names(position: Game, actions: tuple[int, ...]) -> list[str]:
    """Return the names of `actions`, rolls among them, which are played one after the other from `position`."""
    names = []
    for action in actions:
        names.append(move_name(position, action))
        position = position.play_unchecked(action)
    return names


def play_named(position: Game, moves: Sequence[str]) -> tuple[list[Game], list[int]]:
    """Play `moves`, given as names of actions and of rolls, and return the positions and the actions.

    The positions are one more than the moves and begin with `position`. Raises ValueError with the number of the first
    move that is illegal or comes after the end of the game.
    """
    positions, actions = [position], []
    for number, name in enumerate(moves, 1):
        if positions[-1].outcome() is not None:
            raise ValueError(f"move {number}, {name!r}: the game is already over")
        try:
            actions.append(parse_move(positions[-1], name))
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from error
        positions.append(positions[-1].play_unchecked(actions[-1]))
    return positions, actions
