"""Losses of turns of backgammon by the network of GNU Backgammon, without a search: pip install gnubg-nn."""

from __future__ import annotations

import gnubg_nn

from benchmarks.backgammon import Board, board_of, turns
from plyzero.kits.review.turns import Turn
from plyzero.rules.compiled_game import CompiledGame


def equity_lost(turn: Turn) -> float:
    """Return the points by which the end of a turn is worse than the best one."""
    start, after = turn.positions[0], turn.after
    assert isinstance(start, CompiledGame)
    assert isinstance(after, CompiledGame)
    ends = {board: equity(board) for board in turns(start)}
    return max(ends.values()) - ends[board_of(after, turn.by)]


def equity(board: Board) -> float:
    """Return the expected points of the player whose turn is over, without the cube."""
    other, own = board
    if not any(own):
        return 1.0 if sum(other) < 15 else 3.0 if any(other[18:]) else 2.0
    win, gammon, backgammon, lost_gammon, lost_backgammon = gnubg_nn.probabilities([list(own), list(other)], 0)
    return -(2 * win - 1 + gammon + backgammon - lost_gammon - lost_backgammon)
