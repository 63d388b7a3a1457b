"""Two forms of a game are compared in everything, and the first difference is named with the moves that lead to it."""

import functools
import re
from collections.abc import Callable

import numpy as np
import pytest

from plyzero.check.agreement import agreement_with, encoding_agreement_with, not_compared
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.check.violations import ALL_LAWS, Violation, find_violation
from plyzero.games.othello import Othello
from plyzero.games.tic_tac_toe import TicTacToe as CompiledTicTacToe
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry
from tests.helpers.dice import PlainRace
from tests.helpers.toys import Harvest, variant, with_winner

RULES, ENCODING = "agrees_with_the_other", "encoded_as_the_other"


def compare(game: Callable[[], Game], other: Callable[[], Game], *, games: int = 30) -> Violation | None:
    """Return the first difference of two forms."""
    laws = [agreement_with(other), encoding_agreement_with(other)]
    return find_violation(game, games=games, skip=[law.name for law in ALL_LAWS], extra_laws=laws)


def adapted(base: type[Game], **parts: object) -> type[Game]:
    """Return a form of another toolkit."""
    return variant(base, is_adapted=True, **parts)


class OneMoveLess(TicTacToe):
    """One move is missing after b2."""

    def legal_actions(self):
        return [action for action in super().legal_actions() if action != 3 or self.board[4] != 1]


class Backwards(TicTacToe):
    """The squares are numbered from the other end, and names are in capitals."""

    def legal_actions(self):
        return sorted(8 - action for action in super().legal_actions())

    def play(self, action):
        return TicTacToe.play_unchecked(self, 8 - action)

    def action_name(self, action):
        return super().action_name(8 - action).upper()


class Foreign(Backwards):
    """A form of another toolkit, with a plane that says who is to move."""

    is_adapted = True
    observation_shape = (3, 3, 3)

    def observe(self):
        planes = super().observe()
        return np.concatenate([planes, np.full((1, 3, 3), self.to_play, planes.dtype)])

    def symmetries(self):
        return ()


def other_player(self: TicTacToe) -> int:
    return TicTacToe.to_play.fget(self) ^ (self.board[4] == 1)


def one_more_point(self: Harvest) -> Outcome | None:
    found = Harvest.outcome(self)
    return Outcome(found.winner, found.score + 1) if found and found.winner == 1 else found


def one_number_more(self: TicTacToe) -> np.ndarray:
    planes = TicTacToe.observe(self)
    planes[1, 2, 0] |= self.board[4] == 1
    return planes


def without_half_turn(self: TicTacToe) -> list[Symmetry]:
    return [each for each in TicTacToe.symmetries(self) if each.actions[0] != 8]


def play_and_turn_the_end(self: Harvest, action: int) -> Harvest:
    after = Harvest.play_unchecked(self, action)
    after.to_play = 1 if after.plies == after.max_plies else after.to_play
    return after


def loaded(self: PlainRace) -> tuple[float, ...]:
    return (1 / 4, 1 / 2, 1 / 8, 1 / 8) if self.thrown else PlainRace.chances(self)


def one_roll_less(self: PlainRace) -> tuple[float, ...]:
    return (3 / 4, 1 / 8, 1 / 8, 0) if self.thrown else PlainRace.chances(self)


RULE_DIFFERENCES = [
    (
        TicTacToe,
        OneMoveLess,
        "b2",
        "legal in this game alone: a2; in the other",
    ),
    (
        TicTacToe,
        {"action_name": lambda self, action: "x" if action == 6 else TicTacToe.action_name(self, action)},
        "",
        "the move 6 is called a3 in this game and x in the other one",
    ),
    (
        TicTacToe,
        {"to_play": property(other_player)},
        "b2",
        "in this game player 1 is to move, in the other one player",
    ),
    (
        TicTacToe,
        {"outcome": with_winner(TicTacToe, lambda winner: 1 - winner).outcome},
        None,
        "in this game the game is won by player 0, in the other one the game is won by player 1",
    ),
    (
        TicTacToe,
        {"outcome": lambda self: Outcome(None) if self.board[4] == 1 else TicTacToe.outcome(self)},
        "b2",
        "in this game player 1 is to move, in the other one the game is drawn",
    ),
    (
        Harvest,
        {"outcome": one_more_point},
        None,
        "won by player 1 with 2 points, in the other one the game is won by player 1 with 3 points",
    ),
    (PlainRace, {"chances": loaded}, "three throw", "the roll one has the probability 0.5 in this game and 0.25 in"),
    (
        PlainRace,
        {"chances": one_roll_less},
        "three throw",
        "possible in this game alone: again; in the other one",
    ),
    (
        PlainRace,
        {"chances": lambda self: () if self.thrown else PlainRace.chances(self)},
        "three throw",
        "in this game chance moves, in the other one player 0 is to move",
    ),
    (
        PlainRace,
        {"roll_name": lambda self, roll: ("one", "three", "four", "more")[roll]},
        "three throw",
        "the move 3 is called again in this game and more in the other one",
    ),
]
"""A form, the other one or what is changed in it, the moves to the first difference, and this difference."""

ENCODING_DIFFERENCES = [
    (TicTacToe, Backwards, "", "the move a1 has the number 0 in this game and 8 in the other one"),
    (
        TicTacToe,
        {"observe": one_number_more},
        "b2",
        "observe() differs in 1 of 18 numbers, first in plane 1, row 2, column 0: this game has 0, the other one has 1",
    ),
    (
        Harvest,
        {"final_board": lambda self: Harvest.final_board(self) / 2},
        None,
        "final_board() differs in 1 of 1 numbers, first in plane 0, row 0, column 0: this game has 0.333333, the",
    ),
    (
        TicTacToe,
        {"symmetries": without_half_turn},
        "",
        "only this game has symmetries()[1] (the half turn, which",
    ),
    (TicTacToe, {"num_actions": 10, "symmetries": lambda self: ()}, "", "num_actions is 9 in this game and 10 in the"),
    (
        TicTacToe,
        {"observation_shape": (2, 9, 1), "symmetries": lambda self: ()},
        "",
        "observation_shape is (2, 3, 3) in this game and (2, 9, 1)",
    ),
    (
        TicTacToe,
        {"observation_dtype": np.float32},
        "",
        "observation_dtype is bool in this game and float32 in",
    ),
    (TicTacToe, {"policy_planes": 1}, "", "policy_planes is 0 in this game and 1 in the other one"),
    (
        TicTacToe,
        {"max_plies": 12},
        "",
        "max_plies is 9 in this game and 12 in the other one, which matters if a game is longer than 9 plies",
    ),
    (TicTacToe, {"max_score": 3}, "", "max_score is 0 in this game and 3 in the other one"),
    (TicTacToe, {"num_chances": 2}, "", "num_chances is 0 in this game and 2 in the other one"),
    (Harvest, {"final_planes": 0}, "", "final_planes is 1 in this game and 0 in the other one"),
]


@pytest.mark.parametrize(
    ("law", "game", "changed", "moves", "difference"),
    [(RULES, *each) for each in RULE_DIFFERENCES] + [(ENCODING, *each) for each in ENCODING_DIFFERENCES],
)
def test_a_difference_is_named_with_the_moves(
    law: str, game: type[Game], changed: type[Game] | dict[str, object], moves: str | None, difference: str
):
    broken = compare(game, variant(game, **changed) if isinstance(changed, dict) else changed)
    assert broken is not None
    assert broken.law.name == law
    assert difference in broken.what
    assert moves is None or " ".join(broken.moves) == moves


def test_a_symmetry_that_only_the_other_form_has_is_named():
    broken = compare(variant(TicTacToe, symmetries=without_half_turn), TicTacToe)
    assert "only the other one has symmetries()[1] (the half turn, which maps a1 to c3)" in broken.what


@pytest.mark.parametrize(
    ("game", "other"),
    [
        (TicTacToe, CompiledTicTacToe),
        (TicTacToe, Foreign),
        (Harvest, variant(Harvest, play=play_and_turn_the_end)),
    ],
)
def test_two_forms_agree(game: type[Game], other: type[Game]):
    assert compare(game, other) is None


def test_what_is_not_compared_with_a_form_of_another_toolkit_is_said():
    assert not_compared(TicTacToe(), CompiledTicTacToe()) == {}
    assert not_compared(TicTacToe(), Foreign()) == {
        "observations": "observation_shape is (2, 3, 3) and (3, 3, 3)",
        "numbers of the actions": "the same move has other numbers",
        "symmetries": "they permute what is not compared",
    }
    other = adapted(TicTacToe, symmetries=lambda self: (), action_name=lambda self, action: f"p{action}")
    assert not_compared(TicTacToe(), other()) == {
        "names of the moves": "move 0 is a1 and p0",
        "symmetries": "one of the games declares none",
    }
    without_points = adapted(
        Harvest, max_score=property(lambda self: 0, lambda self, value: None), final_planes=0, num_chances=1
    )
    assert not_compared(Harvest(), without_points()) == {
        "points": "max_score is 6 and 0",
        "num_chances": "0 and 1",
        "final boards": "final_planes is 1 and 0",
    }


def test_moves_with_other_names_are_compared_by_their_numbers():
    other = adapted(OneMoveLess, action_name=lambda self, action: f"p{action}")
    broken = compare(TicTacToe, other)
    assert broken.moves == ("b2",)
    assert "legal in this game alone: 3; in the other one alone: none; moves are compared by" in broken.what


def test_a_form_of_another_toolkit_that_cuts_games_off_is_found():
    assert compare(TicTacToe, adapted(TicTacToe, max_plies=12)) is None
    broken = compare(TicTacToe, adapted(TicTacToe, max_plies=6))
    assert len(broken.moves) == 6
    assert "the game is not over after 6 plies, where max_plies cuts it off in one form: it is 9 in" in broken.what


def test_an_error_of_the_other_form_is_said_to_be_its_own():
    def fails(self):
        raise RuntimeError("no outcome")

    broken = compare(TicTacToe, variant(TicTacToe, outcome=lambda self: fails(self) if self.board[4] else None))
    assert broken.moves == ("b2",)
    assert re.match(r"RuntimeError in fails\(\) .*: no outcome\nthe rules of the other game raise this", broken.what)


def test_a_game_of_another_size_does_not_agree():
    small, large = (functools.partial(Othello, size=size) for size in (6, 8))
    assert compare(small, large, games=2).moves == ()
