"""Pig against its exact solution by value iteration, and against the published one."""

import pytest

from plyzero.check.survey import survey
from plyzero.games.pig import HOLD, ROLL, Pig
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import is_chance
from plyzero.rules.game import IllegalActionError, Outcome
from tests.helpers.dice import points_of, solve_pig
from tests.helpers.toys import all_positions


def test_the_first_player_of_pig_to_100_wins_the_published_share():
    assert solve_pig(100)[0, 0, 0] == pytest.approx(0.5306, abs=5e-5)


def test_the_rules_are_those_of_the_solution():
    # The equation holds with what the rules of the game say about moves, rolls and the end.
    goal = 20
    p = solve_pig(goal)

    def win(position, player):
        if position.outcome():
            return float(position.outcome() == Outcome(player))
        if is_chance(position):
            after = [position.play(roll) for roll in range(6)]
            return sum(chance * win(each, player) for chance, each in zip(position.chances(), after, strict=True))
        own, other, turn = points_of(position)
        return p[own, other, turn] if position.to_play == player else 1 - p[own, other, turn]

    checked = 0
    for position in all_positions(Pig(goal=goal)):
        if position.outcome() is None and not is_chance(position):
            own, other, turn = points_of(position)
            values = [win(position.play(action), position.to_play) for action in position.legal_actions()]
            assert max(values) == pytest.approx(p[own, other, turn], abs=1e-6)
            checked += 1
    assert checked > 4000


def test_a_one_loses_the_turn_and_holding_keeps_it():
    start = Pig(goal=30)
    assert start.legal_actions() == (ROLL,)
    thrown = start.play(ROLL)
    assert thrown.legal_actions() == ()
    assert thrown.chances() == pytest.approx([1 / 6] * 6)
    assert [thrown.roll_name(roll) for roll in range(6)] == list("123456")
    one, six = thrown.play(0), thrown.play(5)
    assert (one.to_play, points_of(one)) == (1, (0, 0, 0))
    assert (six.to_play, points_of(six)) == (0, (0, 0, 6))
    held = six.play(HOLD)
    assert (held.to_play, points_of(held)) == (1, (0, 6, 0))
    assert str(held) == "6 : 0, player 1 has 0 in this turn"
    for impossible in (-1, 6):
        with pytest.raises(IllegalActionError, match="impossible roll"):
            thrown.play(impossible)


def test_whoever_reaches_the_goal_wins_without_holding():
    position = Pig(goal=10)
    for _ in range(2):
        assert position.outcome() is None
        position = position.play(ROLL).play(4)
    assert position.outcome() == Outcome(0)


def test_pig_is_found_with_its_goal():
    assert load_game("plyzero.games.pig:Pig(goal=50)").start.observation_shape == (150, 1, 1)


def test_random_games_of_pig_end_long_before_max_plies():
    found = survey(Pig(), games=30)
    shortest, mean, longest, limit = found.plies
    assert (shortest > 10, mean > 50, longest < limit / 2) == (True, True, True)
    assert found.branching == (pytest.approx(1.6, abs=0.25), 2)
    assert "max_plies" not in " ".join(found.warnings)


def test_the_board_shows_the_scores_and_the_sum_of_the_turn_and_has_a_card_for_each_move():
    position = Pig().as_plain_python()
    for move in (ROLL, 4, HOLD, ROLL, 5):  # rolls 4 and 5 are a five and a six
        position = position.play(move)
    board = position.render()
    assert {cell.name: cell.piece for cell in board.cells if cell.piece} == {
        "1-0": "0:5",
        "2-0": "1:0+6",
        "roll": "roll",
        "hold": "hold",
    }
    assert position.scoreboard() == ("5 of 100", "0 of 100, 6 in this turn")
    for move in (ROLL, 5):
        position = position.play(move)
    assert {cell.name: cell.piece for cell in position.render().cells if cell.name in ("2-0", "2-1")} == {
        "2-0": "1:0",
        "2-1": "1:+12",
    }
    assert [board.path(position.action_name(action)) for action in (HOLD, ROLL)] == [("hold",), ("roll",)]
