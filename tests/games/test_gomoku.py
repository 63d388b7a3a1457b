"""Gomoku: known answers. The rules run as plain Python here, so that nothing is compiled."""

from itertools import zip_longest

import numpy as np
import pytest

from plyzero.games.gomoku import Gomoku
from plyzero.rules.game import Game, Outcome
from plyzero.rules.random_game import random_game
from tests.helpers import toys


def gomoku(size: int = 9, exactly_five: bool = False) -> Game:
    return Gomoku(size=size, exactly_five=exactly_five).as_plain_python()


def after_own(stones: str, start: Game, others: str = "a9 c9 e9 g9 i9 b8 f8") -> Game:
    """Return the position after the first player has played `stones`; the other one plays where it does not matter."""
    moves = zip_longest(stones.split(), others.split()[: len(stones.split()) - 1], fillvalue="")
    return toys.after(start, " ".join(name for turn in moves for name in turn))


@pytest.mark.parametrize("stones", ["a1 b1 c1 e1 f1 d1", "a1 b2 c3 e5 f6 d4", "a1 a2 a3 a5 a6 a7 a4"])
def test_six_or_more_in_a_row_win_unless_it_has_to_be_exactly_five(stones):
    assert after_own(stones, gomoku()).outcome() == Outcome(0)
    over = after_own(stones, gomoku(exactly_five=True))
    assert over.outcome() is None
    assert over.legal_actions()


def test_five_count_beside_a_longer_row_through_the_same_stone():
    stones = "a1 b1 c1 e1 f1 d2 d3 d4 d5 d1"  # d1 makes six along the first row and five upwards
    after = after_own(stones, gomoku(exactly_five=True), others="a9 c9 e9 g9 i9 a7 c7 e7 g7")
    assert after.outcome() == Outcome(0)


def rows_of(board: np.ndarray) -> list[str]:
    """Return all rows, columns and diagonals as strings of 0, 1 and 2."""
    size = len(board)
    diagonals = [np.diagonal(each, shift) for each in (board, board[::-1]) for shift in range(1 - size, size)]
    return ["".join(map(str, line)) for line in (*board, *board.T, *diagonals)]


@pytest.mark.parametrize("exactly_five", [False, True])
def test_a_game_ends_when_and_only_when_somebody_has_five_or_the_board_is_full(exactly_five):
    results = set()
    for seed in range(8):
        for position in random_game(gomoku(6, exactly_five), np.random.default_rng(seed)).positions:
            rows = rows_of(position.record["board"])
            winners = {
                player
                for player in (0, 1)
                for row in rows
                for run in row.replace(str(2 - player), "0").split("0")
                if len(run) == 5 or (len(run) > 5 and not exactly_five)
            }
            full = (position.record["board"] != 0).all()
            expected = Outcome(winners.pop()) if winners else Outcome(None) if full else None
            assert position.outcome() == expected
            results.add(expected)
    assert len(results) == 4  # won by either player, drawn, and not over
