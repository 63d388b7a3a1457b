"""Go: known answers on small boards. The rules run as plain Python here, so that nothing is compiled."""

from itertools import zip_longest

import numpy as np
import pytest

from plyzero.games.go import Go
from plyzero.rules.game import Game, Outcome
from tests.helpers import toys
from tests.helpers.toys import drawn, legal


def go(size: int = 5, komi: float = 0.5) -> Game:
    return Go(size=size, komi=komi).as_plain_python()


def placed(black: str, white: str, **parameters: float) -> Game:
    """Return the position after the stones were placed by turns."""
    turns = zip_longest(black.split(), white.split(), fillvalue="pass")
    return toys.after(go(**parameters), " ".join(name for turn in turns for name in turn))


# --- capture and suicide ---


@pytest.mark.parametrize(
    ("moves", "left"),
    [
        ("a2 a1 b1", "...../...../...../x..../.x..."),
        ("a2 a1 b2 b1 c1", "...../...../...../xx.../..x.."),
        ("b2 b1 a3 a2 d1 c1 c2 e5 a1", "....o/...../x..../.xx../x..x."),
        ("a2 a3 b1 b2 e5 c1 e4 a1", "....x/....x/o..../.o.../o.o.."),
    ],
    ids=["one stone", "connected ones", "the chains a2 and b1-c1 by one move", "by one without liberties"],
)
def test_stones_without_liberties_are_captured(moves: str, left: str):
    assert drawn(toys.after(go(), moves)) == left


def test_connected_stones_share_their_liberties():
    position = toys.after(go(), "b1 a2 b2 e5 e4")  # the only liberty of a white stone on a1 would be a3
    assert "a1" in legal(position)
    assert "a1" not in legal(toys.after(position, "d1 a3"))


def test_suicide_of_one_stone_and_of_several_is_forbidden():
    one = placed("a2 b1", "e5 e4")
    assert "a1" in legal(one)
    assert "a1" not in legal(toys.after(one, "c3"))
    assert "a1" not in legal(toys.after(placed("a3 b2 c1", "a2 b1 e5"), "e4"))


# --- ko and superko ---

KO = ("b3 c2 c4 a1", "e3 d2 d4 c3")


def test_a_ko_may_be_retaken_only_after_another_move():
    taken = toys.after(placed(*KO), "d3")
    assert "c3" not in legal(taken)
    assert "d3" not in legal(toys.after(taken, "a5 b5 c3"))


def test_the_point_of_a_ko_is_shown_as_forbidden():
    position = toys.after(placed(*KO), "d3")
    assert position.observe()[2].tolist() == (np.arange(25) == 12).reshape(5, 5).tolist()


@pytest.mark.parametrize(
    ("moves", "forbidden", "would_repeat"),
    [
        ("a2 c2 b1 b2 c1 a1", "b1", "a2 c2 b1 b2"),  # it takes one stone where two were taken: no ko
        ("a3 b1 b3 c3 c2 a1 b2 a2 c1 pass c3 pass a1 pass a2 b1", "a3", "a3 b1"),  # it captures nothing
    ],
)
def test_no_board_may_be_repeated(moves, forbidden, would_repeat):
    position = toys.after(go(3), moves)
    assert forbidden not in legal(position)
    repeated = position.play_unchecked(list(position.action_names).index(forbidden))
    assert drawn(repeated) == drawn(toys.after(go(3), would_repeat))


# --- the end and the score ---

# c1 and c2 are liberties of a white chain in the corner and of a black one beside it.
SEKI = ("a3 b3 c3 a4 c4 a5 b5 c5 b6 c6 d1 e1 f1 d2 e2 f2", "d3 e3 f3 d4 f4 d5 e5 f5 d6 e6 a1 b1 a2 b2")


@pytest.mark.parametrize(("komi", "winner"), [(1.5, 0), (2, None), (2.5, 1)])
def test_shared_liberties_of_a_seki_count_for_nobody(komi, winner):
    position = placed(*SEKI, size=6, komi=komi)
    assert drawn(position) == ".xxoo./xxxooo/x.xo.o/xxxooo/oo.xxx/oo.xxx"
    assert {"c1", "c2"} <= legal(position)
    # White has passed before; 18 points against 16.
    assert toys.after(position, "pass").outcome() == Outcome(winner, abs(2 - komi))


@pytest.mark.parametrize(("komi", "winner"), [(24.5, 0), (25, None), (25.5, 1)])
def test_empty_points_that_reach_one_colour_are_its_area(komi, winner):
    assert toys.after(go(5, komi), "c3 pass pass").outcome() == Outcome(winner, abs(25 - komi))


@pytest.mark.parametrize(("komi", "winner"), [(0.5, 1), (0, None), (-0.5, 0), (7.5, 1)])
def test_the_komi_decides_an_empty_board(komi, winner):
    assert toys.after(go(5, komi), "pass pass").outcome() == Outcome(winner, abs(komi))
    assert go(5, komi).max_score == 25 + abs(komi)


def test_a_single_pass_ends_nothing_and_is_observed():
    position = toys.after(go(), "a1 pass")
    assert position.outcome() is None
    assert position.observe()[4].all()
    assert not toys.after(position, "b1").observe()[4].any()
    assert toys.after(position, "b1 pass").outcome() is None


def test_a_game_is_scored_after_max_plies():
    position = toys.after(go(2), "a1 pass b1 pass a2 b2")
    assert drawn(position) == ".o/.."
    assert toys.after(position, "a1").outcome() is None
    assert toys.after(position, "a1 pass").outcome().winner == 1


def test_the_final_board_is_the_area_of_the_player_to_move():
    end = toys.after(go(5, 7.5), "c1 d1 c2 d2 c3 d3 c4 d4 c5 d5 pass pass")
    row = np.array([1, 1, 1, -1, -1]) * (1 if end.to_play == 0 else -1)
    assert np.array_equal(end.final_board(), np.tile(row, (1, 5, 1)))
    assert end.outcome().lead(0) == 5 - 7.5


# --- the form ---


def test_names_leave_out_the_letter_i():
    names = Go(size=19).action_names
    assert (names[0], names[8], names[18], names[19], names[360], names[361]) == ("a1", "j1", "t1", "a2", "t19", "pass")


def test_the_player_with_the_komi_sees_it():
    assert not go().observe()[3].any()
    assert toys.after(go(), "a1").observe()[3].all()


@pytest.mark.parametrize(
    ("moves", "board"),
    [
        ("", ("0 captured", "0 captured, komi 0.5")),
        ("a2 a1 b1", ("1 captured", "0 captured, komi 0.5")),
        ("pass a1 a2 pass b1", ("1 captured", "0 captured, komi 0.5")),
        ("a1 b1 pass a2", ("0 captured", "1 captured, komi 0.5")),
    ],
)
def test_the_stones_that_each_player_has_captured_are_counted(moves: str, board: tuple[str, str]):
    assert toys.after(go(), moves).scoreboard() == board
