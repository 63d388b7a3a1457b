"""The law of `Game.final_board`: its shape, numbers from -1 to 1, and a sign that turns with the player.

It is checked at every finished position of a game that declares it.
"""

from __future__ import annotations

import copy
from typing import Final

import numpy as np

from plyzero.check.laws import GameTrace, Law, expect, register
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

FINAL_BOARD_LAWS: Final[list[Law]] = []
"""The laws of a game with `final_planes`."""


@register(FINAL_BOARD_LAWS)
def final_boards_in_form(trace: GameTrace) -> None:
    """final_board() has final_planes planes of numbers from -1 to 1, and seen by the other player all are negated."""
    position = trace.position
    if position.outcome() is None:
        return
    board = np.asarray(position.final_board(), np.float32)
    shape = (position.final_planes, *position.observation_shape[1:])
    expect(board.shape == shape, f"final_board() has shape {board.shape}, expected {shape}")
    expect(bool((np.abs(board) <= 1).all()), "final_board() has numbers that are not from -1 to 1")
    other = seen_by_other(position)
    if other is not None:
        message = "if to_play is the other player, final_board() should have all signs turned, and nothing else changed"
        expect(np.array_equal(np.asarray(other.final_board(), np.float32), -board), message)


def seen_by_other(position: Game) -> Game | None:
    """Return `position` with the other player to move; None if a game does not keep that in an attribute."""
    mover = 1 - position.to_play
    if isinstance(position, CompiledGame):
        turned = position.with_state(position.state)
        turned.record["to_play"] = mover
        return turned
    other = copy.copy(position)
    try:
        other.to_play = mover  # type: ignore[misc]
    except AttributeError:
        return None
    return other
