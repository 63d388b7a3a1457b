"""Mistakes planted in two new games: check names each in one sentence, and has no warning for the games themselves."""

import copy
import itertools
import re

import numpy as np
import pytest

from plyzero import DRAW, ONGOING, Outcome, Symmetry
from plyzero.check.survey import survey
from plyzero.check.violations import Violation, find_violation
from plyzero.errors import UserError
from tests.helpers.new_games import (
    CELLS,
    JUMPS,
    PASS,
    ROTAGO_SYMMETRIES,
    SIDE,
    TURNS,
    Ataxx,
    Rotago,
    flip,
    mark,
)


def reported(make) -> str:
    """Return the report of check on a game: the broken law, the error of Numba, or else the warnings."""
    try:
        broken = find_violation(make, games=6)
    except UserError as error:
        return str(error)
    return str(broken) if broken else "\n".join(survey(make(), games=100).warnings)


# --- in the plain game ---


class LoserIsNamed(Rotago):
    def outcome(self):
        outcome = super().outcome()
        return Outcome(1 - outcome.winner) if outcome and outcome.winner is not None else outcome


class TurnStays(Rotago):
    def play(self, action):
        after = super().play_unchecked(action)
        after.to_play = self.to_play
        return after


class StonesOfBothPlayers(Rotago):
    def observe(self):
        board = np.reshape(self.board, (4, 4))
        return np.array([board == 1, board == 2])


class SharedBoard(Rotago):
    def play(self, action):
        after = copy.copy(self)
        after.board[TURNS[action][0]] = self.to_play + 1
        after.to_play = 1 - self.to_play
        return after


class QuartersStay(Rotago):
    def symmetries(self):
        def stays(image, action):
            return TURNS.index((TURNS[image][0], *TURNS[action][1:]))

        return [
            Symmetry(each.planes, np.array([stays(image, action) for action, image in enumerate(each.actions)]))
            for each in ROTAGO_SYMMETRIES
        ]


class FullBoardGoesOn(Rotago):
    def outcome(self):
        outcome = super().outcome()
        return outcome if outcome and outcome.winner is not None else None


class LastSquareIsLeftOut(Rotago):
    def legal_actions(self):
        return [action for action in super().legal_actions() if TURNS[action][0] < 15]


class TooFewPlies(Rotago):
    max_plies = 12


class SameNames(Rotago):
    def action_name(self, action):
        return super().action_name(action)[:-1]


class RandomQuarter(Rotago):
    quarters = itertools.cycle(range(7))

    def play(self, action):
        return super().play_unchecked(action // 8 * 8 + next(self.quarters))


class WinnerAsShare(Rotago):
    def outcome(self):
        outcome = super().outcome()
        return outcome and Outcome(0.5 if outcome.winner is None else float(outcome.winner))


class NumbersAsBool(Rotago):
    def observe(self):
        return np.reshape(self.board, (1, 4, 4)) * np.array([[[1]], [[0.5]]])


class KeyForgetsWhere(Rotago):
    def key(self):
        return self.to_play, sum(stone > 0 for stone in self.board)


# --- in the compiled game ---


class CounterIsHidden(Ataxx):
    """The counter is not observed, and bounded by a field that is narrow."""

    def observe(s, planes):
        for row in range(SIDE):
            for column in range(SIDE):
                if s["board"][row, column]:
                    planes[(s["board"][row, column] - 1) ^ s["to_play"], row, column] = 1
        planes[3] = s["passes"]


class BeyondTheEdge(Ataxx):
    def legal(s, mask):
        mark(s["board"], s["to_play"] + 1, mask)
        for square in range(CELLS):
            if s["board"][square // SIDE + 1, square % SIDE] == 3:
                mask[square] = False


class ScoreOverflows(Ataxx):
    State = np.dtype([*Ataxx.State.descr, ("score", "i1")])

    def play(s, action):
        if action != PASS:
            flip(s["board"], action if action < CELLS else JUMPS[action - CELLS, 1], s["to_play"] + 1)
            s["score"] += 30
        s["quiet"] += 1
        s["to_play"] = 1 - s["to_play"]

    def symmetries(self):
        return []


class NoPass(Ataxx):
    def legal(s, mask):
        mark(s["board"], s["to_play"] + 1, mask)


JUMP_LIST = [[int(at), int(to)] for at, to in JUMPS]


class TableIsAList(Ataxx):
    def play(s, action):
        s["board"][0, 0] = JUMP_LIST[action][0]


def not_a_kernel(board):
    return board.sum()


class HelperIsPlain(Ataxx):
    def outcome(s):
        return DRAW if not_a_kernel(s["board"]) > 40 else ONGOING


class FieldIsMisspelt(Ataxx):
    def legal(s, mask):
        mark(s["bord"], s["to_play"] + 1, mask)


MISTAKES = [
    (LoserIsNamed, r"in \d+% of the decided games the player who made the last move won; .* names the wrong player"),
    (TurnStays, r"player 1 is not to move at any of \d+ positions, .* does play\(\) pass the turn\?"),
    (StonesOfBothPlayers, "of player 0 and of player 1, .* plane 0 grows when player 0 moves, plane 1 when player 1"),
    (SharedBoard, r"play\(\) changed the position it was called on: give the new position a board of its own"),
    (QuartersStay, r"symmetries\(\)\[0\] \(a quarter turn, which maps a1-nw\+ to a4-nw\+\) maps the moves below to"),
    (FullBoardGoesOn, r"legal_actions\(\) is empty, but outcome\(\) is None"),
    (LastSquareIsLeftOut, r"a quarter turn.*\n?.*legal moves that are not legal there|legal_actions\(\) is empty"),
    (TooFewPlies, "the game is not over after 12 plies, but max_plies is 12"),
    (SameNames, "actions 0 and 1 are both called 'a1-nw'"),
    (RandomQuarter, "called twice|replayed from the start, the same moves lead elsewhere"),
    (WinnerAsShare, r"the winner in outcome\(\) is \d.\d, expected 0 or 1, as an integer, or None for a draw"),
    (NumbersAsBool, "observation_dtype bool cannot represent what observe"),
    (KeyForgetsWhere, r"have the same key\(\), but different futures"),
    (CounterIsHidden, r"have equal observations, .*so observe\(\) omits something"),
    (BeyondTheEdge, r"IndexError in legal\(\) \(test_planted_mistakes.py, line \d+, `if s\[\"board\"\]"),
    (ScoreOverflows, "stores 150 in the field 'score' of State, whose type int8 holds -128 to 127 only"),
    (NoPass, r"legal_actions\(\) is empty, but outcome\(\) is None"),
    (TableIsAList, r"line \d+, `s\[\"board\"\].*; make the table an array or a tuple"),
    (HelperIsPlain, r"line \d+, `return DRAW if .*; decorate not_a_kernel with @kernel"),
    (FieldIsMisspelt, r"ValueError in legal\(\) \(.*, line \d+, `mark\(s\[\"bord\"\].*: no field of name bord"),
]


SLOW = (LoserIsNamed, StonesOfBothPlayers, WinnerAsShare, KeyForgetsWhere, CounterIsHidden, ScoreOverflows)
"""All laws hold, or the moves are shortened, which takes seconds."""


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    ("mistake", "words"),
    [pytest.param(*each, id=each[0].__name__, marks=[pytest.mark.slow] * (each[0] in SLOW)) for each in MISTAKES],
)
def test_a_mistake_in_a_new_game_is_named_in_one_sentence(mistake, words):
    assert re.search(words, reported(mistake))


def test_an_example_is_shortened_also_where_no_move_can_be_left_out():
    found: list[Violation] = []
    broken = find_violation(NoPass, games=6, on_violation=found.append)
    assert broken is not None
    assert len(broken.moves) < len(found[0].moves) / 2


class TurnsTheOtherWay(Rotago):
    """Clockwise and counter-clockwise are swapped: another game, which is as consistent."""

    def play(self, action):
        return super().play_unchecked(action ^ 1)


class OpponentFirst(Rotago):
    """The opponent's pieces come first, in every position: the network learns from it as well."""

    def observe(self):
        return super().observe()[::-1]


class PassKeepsTheTurn(Ataxx):
    """The player who passed moves again: the statistics show it, and no law does."""

    def play(s, action):
        own = s["to_play"] + 1
        if action == PASS:
            s["passes"] += 1
        else:
            to = action if action < CELLS else JUMPS[action - CELLS, 1]
            if action >= CELLS:
                s["board"][JUMPS[action - CELLS, 0] // SIDE, JUMPS[action - CELLS, 0] % SIDE] = 0
            flip(s["board"], to, own)
            s["quiet"] = 0 if action < CELLS else s["quiet"] + 1
            s["to_play"] = 1 - s["to_play"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [Rotago, Ataxx, TurnsTheOtherWay, OpponentFirst, PassKeepsTheTurn], ids=lambda make: make.__name__
)
def test_check_has_no_report_on_right_games_and_on_mistakes_that_it_cannot_see(make):
    assert reported(make) == ""
