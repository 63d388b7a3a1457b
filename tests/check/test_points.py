"""Laws of points and of the final board: games that have them keep the laws, and each fault gets one clear sentence."""

import math

import numpy as np
import pytest

from examples.dots_and_boxes import DotsAndBoxes
from plyzero.check.violations import Violation, find_violation, laws_of
from plyzero.games.backgammon import Backgammon
from plyzero.games.go import Go
from plyzero.games.othello import Othello
from plyzero.rules.compiled_game import no_score
from plyzero.rules.game import Game, Outcome, find_score_fault
from tests.helpers.toys import CompiledHarvest, Harvest, variant

GAMES = [Harvest, CompiledHarvest, lambda: Othello(6), lambda: Go(9), DotsAndBoxes, Backgammon]


@pytest.fixture(autouse=True)
def no_shorter_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here looks at the moves that show a fault, and to find fewer takes seconds."""
    monkeypatch.setattr("plyzero.check.violations.SHORTENING_POSITIONS", 0)


@pytest.mark.parametrize("game", GAMES)
def test_games_with_points_keep_the_laws(game):
    assert find_violation(game, games=4) is None


def found(game, law: str, games: int | None = None) -> Violation:
    """Return the violation of a game that breaks this law."""
    broken = find_violation(game, games=games)
    assert broken is not None
    assert broken.law.name == law
    return broken


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda game, end: Outcome(end.winner, -end.score), "the points by which the winner leads, at least 0, and 0"),
        (lambda game, end: Outcome(None, 1.0), "the score is 1, expected the points by which the winner leads"),
        (lambda game, end: Outcome(end.winner, math.inf), "the score is inf, expected a finite number"),
        (lambda game, end: Outcome(end.winner, "7"), "the score is '7', expected a finite number"),
        (lambda game, end: Outcome(0, end.score + 7), "larger than max_score = 6"),
        (
            lambda game, end: end if game.taken[0] > 2 else Outcome(end.winner),
            "the outcome has no score, but max_score is 6: give a score at every end, or at none",
        ),
    ],
)
def test_a_wrong_score_is_one_sentence_with_the_moves(change, what: str):
    changed = variant(Harvest, outcome=lambda self: (end := Harvest.outcome(self)) and change(self, end))
    broken = found(changed, "scores_as_declared")
    assert what in broken.what
    assert "\n" not in broken.what
    assert len(broken.moves) == 6


def test_a_score_without_max_score_is_refused():
    class Undeclared(Harvest):
        def __init__(self):
            super().__init__()
            self.max_score = self.final_planes = 0

    assert "the game declares no max_score" in find_violation(Undeclared).what


def test_a_score_that_is_not_a_function_of_the_observation_breaks_the_law_of_futures():
    class Unseen(Harvest):
        first = 0

        def outcome(self):
            found = super().outcome()
            return found and Outcome(found.winner, min(found.score, 1) + (self.first if found.winner == 0 else 0))

        def play(self, action):
            after = super().play(action)
            after.first = action if self.plies == 0 else self.first
            return after

    assert "points" in found(Unseen, "equal_observations_equal_futures").what


def test_a_score_must_be_equal_under_symmetries():
    class Lopsided(DotsAndBoxes):
        def outcome(self):
            found = super().outcome()
            owner = self.board[self.width + 1] - 1  # of the box in one corner, which counts twice for the winner
            return found and Outcome(found.winner, found.score / 2 + (owner == found.winner))

    assert "outcome()" in found(Lopsided, "symmetries_agree_with_the_rules", games=20).what


@pytest.mark.parametrize(
    ("board", "what"),
    [
        (lambda self: np.ones((1, 1, 2)), "final_board() has shape (1, 1, 2), expected (1, 1, 1)"),
        (lambda self: np.full((1, 1, 1), 1.5), "final_board() has numbers that are not from -1 to 1"),
        (lambda self: np.full((1, 1, 1), np.nan), "final_board() has numbers that are not from -1 to 1"),
        (lambda self: np.ones((1, 1, 1)), "if to_play is the other player, final_board() should have"),
    ],
)
@pytest.mark.parametrize("base", [Harvest, CompiledHarvest])
def test_a_wrong_final_board_is_one_sentence(base: type[Game], board, what: str):
    assert found(variant(base, final_board=board), "final_boards_in_form").what.startswith(what)


def test_a_final_board_turns_with_the_symmetries():
    # without the first column of boxes
    fixed = variant(DotsAndBoxes, final_board=lambda self: DotsAndBoxes.final_board(self) * (np.arange(self.width) > 1))
    assert "final_board() there is not the image of that here" in find_violation(fixed, games=4).what


def test_only_games_with_a_final_board_have_its_law():
    assert "final_boards_in_form" in {law.name for law in laws_of(Harvest())}
    assert "final_boards_in_form" not in {law.name for law in laws_of(Backgammon())}


def test_an_outcome_tells_who_leads_by_how_much():
    assert (Outcome(1, 3).lead(0), Outcome(1, 3).lead(1), Outcome(None, 0).lead(0), Outcome(0).lead(0)) == (-3, 3, 0, 0)
    assert (repr(Outcome(0)), repr(Outcome(0, 2.5))) == ("Outcome(winner=0)", "Outcome(winner=0, score=2.5)")
    assert find_score_fault(Outcome(0, 2.5), 3) == find_score_fault(Outcome(None), 0) == ""


def test_a_compiled_game_has_both_a_rule_and_a_largest_score():
    class Undeclared(CompiledHarvest):
        def __init__(self):
            self.max_plies, self.max_score = 6, 0
            super(CompiledHarvest, self).__init__()

    with pytest.raises(TypeError, match="has both a rule score and a max_score"):
        Undeclared()

    with pytest.raises(TypeError, match="has both a rule score and a max_score"):
        variant(Othello, rule_functions=Othello.rule_functions | {"score": no_score})()
