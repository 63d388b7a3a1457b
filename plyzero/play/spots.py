"""The places of moves on a rendered board: of one action, and of the moves of a principal variation."""

from __future__ import annotations

from collections.abc import Sequence

from plyzero.rules.board import Board
from plyzero.rules.board_svg import UNIT
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game, board_of


def spots_of(board: Board | None, name: str) -> list[tuple[float, float]]:
    """Return the places of the cells that are clicked to play an action, in units of the picture."""
    return [(UNIT * cell.x, UNIT * cell.y) for cell in board.clicked(name)] if board else []


def line_of(position: Game, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the first six of the moves `names` from `position` on, with their places; the first roll ends them."""
    line: list[dict[str, object]] = []
    for name in names[:6]:
        if is_chance(position):
            break
        line.append({"by": int(position.to_play), "name": name, "spots": spots_of(board_of(position), name)})
        position = position.play_unchecked(position.parse_action(name))
    return line
