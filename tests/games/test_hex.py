"""Hex: swaps, and what is seen; moves and when a game ends are compared with OpenSpiel's.

The rules run as plain Python here, so that nothing is compiled.
"""

import numpy as np

from plyzero.games.hex import Hex
from plyzero.rules.game import Game, Outcome
from tests.helpers import toys
from tests.helpers.toys import drawn, legal


def hex_game(size: int = 3, swap: bool = False) -> Game:
    return Hex(size=size, swap=swap).as_plain_python()


def test_who_swaps_gets_the_first_stone_in_the_mirrored_place():
    position = toys.after(hex_game(swap=True), "b1")
    assert "swap" in legal(position)
    assert drawn(position) == ".x./.../..."
    swapped = toys.after(position, "swap")
    assert swapped.to_play == 0
    assert drawn(swapped) == ".../o../..."
    assert "swap" not in legal(swapped)
    assert toys.after(swapped, "c3 b1 c2").outcome() is None
    assert toys.after(swapped, "c3 b1 c2 c1").outcome() == Outcome(1)  # from a2, the stone that was swapped


def test_only_the_second_move_may_be_a_swap():
    position = hex_game(swap=True)
    for move in ("b2", "a1", "c3", "c1"):
        assert ("swap" in legal(position)) == (move == "a1")
        position = toys.after(position, move)
    assert hex_game().num_actions == 9


def test_the_player_to_move_sees_a_board_on_which_to_connect_top_and_bottom():
    position = toys.after(hex_game(), "b1")  # row 0, column 1
    assert np.argwhere(position.observe()).tolist() == [[1, 1, 0]]  # of the other's plane
    assert (position.action_name(3), position.action_name(1)) == ("b1", "a2")
    assert position.legal_actions() == (0, 1, 2, 4, 5, 6, 7, 8)


def test_a_plane_shows_that_a_swap_is_legal():
    shown = [toys.after(hex_game(swap=True), moves).observe()[2] for moves in ("", "b2", "b2 swap", "b2 a1")]
    assert [plane.tolist() for plane in shown] == [[[bit] * 3] * 3 for bit in (0, 1, 0, 0)]
