"""Backgammon: known answers to the rules that are easily got wrong. The rules run as plain Python here."""

import numpy as np
import pytest

from plyzero.games.backgammon import BAR, CHECKERS, OFF, PASS, Backgammon
from plyzero.rules.board_svg import render_svg
from plyzero.rules.chance import is_chance
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Outcome
from plyzero.rules.random_game import random_game
from tests.helpers import toys
from tests.helpers.toys import legal

START = Backgammon().as_plain_python()


def position(own: dict[int, int], other: dict[int, int], roll: str = "", to_play: int = 0) -> CompiledGame:
    """Return the position before or after a roll.

    own, other: number of checkers by place, as their player numbers them; those that are missing are borne off.
    """
    made = START.with_state(START.state)
    made.record["is_opening"], made.record["to_play"], made.record["checkers"] = 0, to_play, 0
    for player, checkers in ((to_play, own), (1 - to_play, other)):
        for place, count in {**checkers, OFF: CHECKERS - sum(checkers.values())}.items():
            made.record["checkers"][player, place] = count
    return toys.after(made, roll)


def held(*points: int) -> dict[int, int]:
    """Return two checkers of the other player on each of `points`, which are numbered as the player to move does."""
    return {25 - point: 2 for point in points}


def test_the_opening_roll_is_no_double_and_the_later_ones_are_of_two_dice():
    names = [START.roll_name(roll) for roll in range(21)]
    chances = dict(zip(names, START.chances(), strict=True))
    assert {name for name, chance in chances.items() if chance == 0} == {"1-1", "2-2", "3-3", "4-4", "5-5", "6-6"}
    assert sorted(set(chances.values())) == [0, pytest.approx(1 / 15)]
    chances = dict(zip(names, toys.after(START, "3-1 8/5 6/5").chances(), strict=True))
    assert (chances["6-6"], chances["6-5"]) == (pytest.approx(1 / 36), pytest.approx(1 / 18))
    assert sum(chances.values()) == pytest.approx(1)


def test_a_turn_is_two_dice_in_any_order_or_four_of_a_double():
    first, second = (toys.after(START, moves) for moves in ("3-1 8/5 6/5", "3-1 6/5 8/5"))
    assert first.key() == second.key()
    assert (first.to_play, is_chance(first)) == (1, True)
    third = toys.after(first, "6-6 24/18 24/18 13/7")
    assert (third.to_play, is_chance(third)) == (1, False)
    assert toys.after(third, "13/7").to_play == 0


@pytest.mark.parametrize("player", [0, 1])
def test_both_dice_are_played_if_they_can_be(player):
    # After 20/14 no five is possible; after 13/7 one is.
    start = position({20: 1, 13: 1}, held(15, 9, 8), "6-5", player)
    assert legal(start) == {"13/7"}
    assert legal(toys.after(start, "13/7")) == {"7/2"}


def test_if_only_one_die_can_be_played_it_is_the_larger_one():
    start = position({20: 1}, held(9), "6-5")
    assert legal(start) == {"20/14"}
    assert legal(toys.after(start, "20/14")) == {"pass"}
    assert toys.after(start, "20/14 pass").to_play == 1


def test_the_smaller_die_is_played_where_the_larger_one_cannot_be():
    assert legal(position({20: 1}, held(14, 9), "6-5")) == {"20/15"}


def test_checkers_on_the_bar_enter_first():
    start = position({BAR: 2, 13: 5}, held(19), "6-5")
    assert legal(start) == {"bar/20"}
    assert legal(toys.after(start, "bar/20")) == {"pass"}
    assert legal(position({BAR: 1, 13: 5}, held(19, 20), "6-5")) == {"pass"}
    assert legal(toys.after(position({BAR: 1, 13: 5}, held(19), "6-5"), "bar/20")) == {"20/14", "13/7"}


def test_a_single_checker_is_hit_and_two_are_not():
    start = position({13: 2}, {25 - 8: 1, **held(7)}, "6-5")
    assert legal(start) == {"13/8"}
    hit = toys.after(start, "13/8")
    assert hit.record["checkers"][1, [BAR, 17]].tolist() == [1, 0]
    assert legal(toys.after(hit, "8/2 4-3")) == {"bar/22", "bar/21"}


def test_no_checker_is_borne_off_while_another_is_outside():
    assert legal(position({8: 1, 3: 2}, held(24), "3-1")) == {"8/5", "8/7", "3/2"}
    assert legal(toys.after(position({7: 1, 3: 2}, held(24), "4-3"), "7/3")) == {"3/off"}


def test_a_larger_number_bears_off_only_from_the_highest_point():
    assert legal(position({4: 2, 2: 2}, held(24), "6-5")) == {"4/off(6)", "4/off(5)"}
    assert legal(position({6: 1, 4: 1, 3: 1}, held(24), "5-3")) == {"6/1", "6/3", "4/1", "3/off"}
    assert legal(position({4: 1, 2: 2}, held(24), "2-1")) == {"4/2", "4/3", "2/off", "2/1"}


@pytest.mark.parametrize("player", [0, 1])
def test_who_bears_off_the_last_checker_wins_however_many_the_other_has(player):
    start = position({1: 1}, {1: 15}, "6-5", player)
    assert (start.outcome(), legal(start)) == (None, {"1/off(6)"})
    assert toys.after(start, "1/off(6)").outcome() == Outcome(player, 2)  # a gammon


@pytest.mark.parametrize(
    ("places", "points"),
    [({6: 14}, 1), ({6: 15}, 2), ({18: 15}, 2), ({19: 1, 6: 14}, 3), ({24: 15}, 3), ({BAR: 1, 6: 14}, 3)],
)
@pytest.mark.parametrize("winner", [0, 1])
def test_points_are_those_of_gammon_and_backgammon(places: dict[int, int], points: int, winner: int):
    assert position({}, places, to_play=winner).outcome() == Outcome(winner, points)


def test_both_players_see_their_own_places():
    one, two = (position({24: 4, 6: 1}, {BAR: 2, 3: 9}, "4-1", player) for player in (0, 1))
    assert np.array_equal(one.observe(), two.observe())
    assert legal(one) == legal(two) == {"24/20", "24/23", "6/2", "6/5"}


def test_every_number_of_checkers_and_of_dice_looks_different():
    seen = {position({4: count}, held(24), "6-5").observe().tobytes() for count in range(1, 16)}
    assert len(seen) == 15
    double = toys.after(START, "2-1 13/11 6/5 6-6")
    for left in (4, 3, 2):
        assert double.observe().ravel()[-4:].tolist() == [1] * left + [0] * (4 - left)
        double = toys.after(double, "24/18" if left > 2 else "13/7")


def test_random_games_end_long_before_max_plies_and_pass_now_and_then():
    games = [random_game(START, np.random.default_rng(seed)) for seed in range(5)]
    assert max(game.plies for game in games) < START.max_plies / 2
    assert any(move == PASS for game in games for move in game.moves)


def test_the_board_shows_checkers_on_the_bar_and_off_and_the_pips_of_each_player():
    here = position({BAR: 2, 6: 7}, {24: 3}, roll="3-3")
    board = here.render()
    pieces = {name: [cell.piece for cell in board.cells if cell.name == name] for name in board.names}
    assert pieces["bar"] == ["0", "0", "", "", ""]
    assert pieces["other-bar"] == ["", "", "", "", ""]
    assert pieces["6"] == ["0", "0", "0", "0", "0:7"]
    assert (pieces["off"], pieces["other-off"]) == (["0:6"], ["1:12"])
    assert [label.text for label in board.labels if "⚂" in label.text] == ["⚂ ⚂ ⚂ ⚂"]
    assert here.scoreboard() == ("92 pips, 2 on the bar, 6 off", "72 pips, 12 off")
    picture = render_svg(board)
    assert picture.count('class="lying stone p0"') == 6
    assert picture.count('class="lying stone p1"') == 12


def test_the_bar_and_the_tray_that_are_clicked_are_those_of_the_player_to_move():
    places = {}
    for player in (0, 1):
        board = position({BAR: 1, 5: 14}, {BAR: 1, 5: 14}, roll="6-5", to_play=player).render()
        bar, off = board.clicked("bar/20")[0], board.clicked("5/off")[-1]
        assert bar.piece == str(player)
        places[player] = bar.y, off.y
    assert places[0][0] < places[1][0]  # each enters in the other's half
    assert places[0][1] > places[1][1]  # and bears off beside its own home
