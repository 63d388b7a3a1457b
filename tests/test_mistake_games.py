"""The games in which mistakes are planted are correct: no law is broken, and positions worked out by hand hold."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.mistakes.games.dice_points import DicePoints
from benchmarks.mistakes.games.onitama import Onitama
from benchmarks.mistakes.games.two_moves import TwoMoves
from benchmarks.mistakes.games.walls import Walls
from plyzero import Game, Outcome
from plyzero.check.violations import find_violation


@pytest.mark.parametrize("make", [Onitama, Walls, TwoMoves, DicePoints])
def test_no_law_is_broken(make: Callable[[], Game]):
    assert find_violation(make, games=20) is None


def after(position: Game, moves: str) -> Game:
    for name in moves.split():
        position = position.play(position.parse_action(name))
    return position


def test_onitama_cards_change_their_owner_and_the_tiger_takes_the_master():
    position = after(Onitama(), "c1c3:tiger")
    assert str(position).endswith("lower case: dragon crab, middle: tiger, capitals: frog rabbit")
    assert position.legal_names().split() == [
        *("d5e4:frog", "c5d4:frog", "b5c4:frog", "a5b4:frog"),
        *("e5d4:rabbit", "d5c4:rabbit", "c5b4:rabbit", "b5a4:rabbit"),
    ]
    position = after(position, "d5c4:rabbit a1a2:crab a5a3:tiger e1c2:dragon b5b4:crab")
    assert str(position).endswith("lower case: tiger rabbit, middle: crab, capitals: dragon frog")
    assert position.outcome() is None
    assert after(position, "c3c5:tiger").outcome() == Outcome(winner=0)


def test_onitama_is_won_by_the_master_on_the_square_of_the_other():
    position = after(Onitama(), "c1c3:tiger c5d4:frog a1a2:crab a5a3:tiger e1c2:dragon b5a4:rabbit")
    assert position.outcome() is None
    assert after(position, "c3c5:tiger").outcome() == Outcome(winner=0)  # an empty square


def test_onitama_is_drawn_after_16_plies_without_a_capture():
    quiet = "d1d3:tiger a5b4:frog a1c2:dragon b5b3:tiger e1e2:crab b4a5:dragon e2e4:tiger a5a4:crab"
    quiet += " c1e2:dragon c5c3:tiger b1d1:crab a4b5:dragon c2c1:tiger e5c5:crab d3b4:dragon"
    position = after(Onitama(), quiet)
    assert position.outcome() is None
    assert after(position, "c3c4:tiger").outcome() == Outcome(winner=None)
    assert after(position, "c5b4:rabbit").outcome() is None  # a capture


def steps(position: Game) -> list[str]:
    return [name for name in position.legal_names().split() if len(name) == 2]


def test_walls_stop_steps_but_leave_a_way():
    assert steps(after(Walls(), "c2 c4 c3")) == ["c2", "b4", "d4", "c5"]  # o jumps to c2
    position = after(Walls(), "c2 c4 c3 a3- b3| c4-")
    assert steps(position) == ["c2", "d3", "d4"]  # b3, b4 and c5 are behind walls
    position = after(Walls(), "a3- c3-")
    walls = position.legal_names().split()
    assert not {"a3-", "b3-", "d3-", "a3|", "c3|"} & {*walls}  # they would overlap or cross
    assert "d3|" in walls
    assert "d4|" not in walls  # o would have no way to row 1


def test_walls_are_won_on_the_far_row():
    position = after(Walls(), "c2 b5 c3 a5 c4 a4")
    assert position.outcome() is None
    assert after(position, "c5").outcome() == Outcome(winner=0)


def test_two_stones_a_turn_and_four_in_a_row():
    position, movers, last_of_turn = TwoMoves(), [], []
    for name in ["a1", "b1", "b2", "a2", "a3", "c1", "c2", "a4"]:
        movers.append(position.to_play)
        last_of_turn.append(position.observe()[2].all())
        assert position.outcome() is None
        position = after(position, name)
    assert movers == [0, 1, 1, 0, 0, 1, 1, 0]
    assert last_of_turn == [True, False, True, False, True, False, True, False]
    assert position.outcome() == Outcome(winner=0)
    assert TwoMoves().from_text(str(position)).key() == position.key()
    with pytest.raises(ValueError, match="too many stones"):
        TwoMoves().from_text(str(position).replace("o", "."))


def test_dice_points():
    position = DicePoints()
    for turn in ["a1", "b1", "b2", "a2", "c1", "c2", "c3", "c4"]:
        position = after(position.play("abcdef".index(turn[0])), turn)
    for _ in range(12):  # column c is full
        assert position.outcome() is None
        position = after(position.play(2), "pass")
    expected = np.zeros((4, 6))
    expected[:2, :3] = [[-1, 1, -1], [-1, -1, 1]]
    expected[2:, 2] = -1
    assert (position.final_board()[0] == expected).all()
    assert position.outcome() == Outcome(winner=1, score=4)
