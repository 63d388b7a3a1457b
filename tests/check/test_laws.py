"""The laws: correct games of different kinds keep them, planted faults break the one that names them.

A fault is planted in a correct game, and the test says which law has to find it, in how few moves it can be shown, and
words of the message.
"""

import copy
import functools
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.mistakes.games.onitama import CARDS, Onitama
from examples.breakthrough import Breakthrough
from examples.dots_and_boxes import EDGE, DotsAndBoxes
from plyzero.check import violations
from plyzero.check.laws import POSITION_LAWS
from plyzero.check.sample_laws import same_contents, winner
from plyzero.check.sampling import (
    MAX_CHILDREN,
    Extent,
    Sample,
    SamplePosition,
    extent_of,
    play_game,
    play_games,
    positions_near,
    random_move,
    relatives,
    seeking_move,
    shuffling_move,
)
from plyzero.check.symmetry_laws import SYMMETRY_LAWS
from plyzero.check.template.tic_tac_toe import TicTacToe as Template
from plyzero.check.violations import GameLaws, Violation, find_violation, laws_of
from plyzero.games.backgammon import Backgammon
from plyzero.games.breakthrough import Breakthrough as CompiledBreakthrough
from plyzero.games.chess import Chess
from plyzero.games.connect_four import ConnectFour
from plyzero.games.go import Go
from plyzero.games.gomoku import Gomoku
from plyzero.games.hex import Hex
from plyzero.games.othello import Othello, bit, moves_of
from plyzero.games.pig import Pig
from plyzero.games.tic_tac_toe import TicTacToe as CompiledTicTacToe
from plyzero.rules.board import Board, Cell, render_grid
from plyzero.rules.compiled_game import kernel
from plyzero.rules.game import ONGOING, Game, Outcome
from plyzero.rules.symmetry import Symmetry
from tests.helpers import toys, zoo
from tests.helpers.dice import PlainRace

SYMMETRIES = Template().symmetries()


class TicTacToe(Template):
    """The template, with symmetries that are computed once: the laws ask for them in every position."""

    def symmetries(self):
        return SYMMETRIES


CORRECT = {  # besides those of the classes below
    "plain tic-tac-toe": TicTacToe,
    "connect-four": ConnectFour,
    "breakthrough(size=4)": functools.partial(Breakthrough, size=4),
    "dots and boxes, one with draws": functools.partial(DotsAndBoxes, size=2),
    "nim": zoo.Nim,
    "kalah": zoo.Kalah,
    "shuffle, which repeats itself": zoo.Shuffle,
    "clobber": zoo.Clobber,
    "chomp, whose last mover loses": zoo.Chomp,
    "one move": toys.FirstMoveWins,
    "one player moves twice": functools.partial(toys.Written, "001", "01-10-10"),
    "one or two stones a turn": zoo.OneOrTwo,
    "hex(size=3)": functools.partial(Hex, size=3),
    "pig(goal=10)": functools.partial(Pig, goal=10),
    "dice in plain Python": PlainRace,
}
MORE = {
    "go(size=5)": functools.partial(Go, size=5, komi=0.5),
    "gomoku(size=5)": functools.partial(Gomoku, size=5),
    "compiled breakthrough(size=4)": functools.partial(CompiledBreakthrough, size=4),
    "hex(size=7, swap=False)": functools.partial(Hex, size=7, swap=False),
    "gomoku(size=9, exactly_five=True)": functools.partial(Gomoku, size=9, exactly_five=True),
    "compiled breakthrough": CompiledBreakthrough,
    "backgammon": Backgammon,
    "chess": Chess,
    "chess960": functools.partial(Chess, chess960=True),
}


@pytest.mark.parametrize("make", CORRECT.values(), ids=CORRECT)
def test_a_correct_game_keeps_all_laws(make):
    assert find_violation(make, games=8) is None


@pytest.mark.slow
@pytest.mark.parametrize("make", MORE.values(), ids=MORE)
def test_a_correct_game_keeps_all_laws_on_other_boards_too(make):
    assert find_violation(make, games=3) is None


class TestLawsOfAPlainGame(GameLaws):
    game = Breakthrough
    games = 10


class TestLawsOfACompiledGame(GameLaws):
    game = functools.partial(Othello, size=6)
    games = 10


class TestLawsWithOneLeftOut(GameLaws):
    class game(TicTacToe):
        max_plies = 5

    skip = ("games_end",)
    games = 5


def test_the_class_for_pytest_has_a_test_for_every_law():
    tests = {name.removeprefix("test_") for name in vars(GameLaws) if name.startswith("test_")}
    assert tests == {law.name for law in violations.ALL_LAWS}


# --- faults ---


def after(position: Game, moves: Sequence[int]) -> Game:
    for move in moves:
        position = position.play(move)
    return position


def faulty(name: str, base: type[Game] = TicTacToe, **parts: object) -> type[Game]:
    """Return a game with other parts."""
    return type(name, (base,), parts)


GivesUpEarly = faulty(  # on the last square
    "GivesUpEarly",
    legal_actions=lambda self: TicTacToe.legal_actions(self) if self.board.count(0) > 1 else [],
)
OverAtTheStart = faulty("OverAtTheStart", outcome=lambda self: Outcome(0), legal_actions=lambda self: [])
GoesOnAfterTheEnd = faulty("GoesOnAfterTheEnd", legal_actions=lambda self: [a for a in range(9) if not self.board[a]])
Unsorted = faulty("Unsorted", legal_actions=lambda self: TicTacToe.legal_actions(self)[::-1])
TooFewActions = faulty("TooFewActions", num_actions=8, symmetries=lambda self: ())
LegalAsSet = faulty("LegalAsSet", legal_actions=lambda self: set(TicTacToe.legal_actions(self)))
ReturnsItself = faulty("ReturnsItself", play=lambda self, action: self)
OneSided = faulty("OneSided", to_play=0)
SecondPlayerBegins = faulty(  # the players' numbers are the wrong way round, and consistently so
    "SecondPlayerBegins",
    to_play=property(lambda self: 1 - TicTacToe.to_play.fget(self)),
    outcome=toys.with_winner(TicTacToe, lambda winner: 1 - winner).outcome,
    observe=lambda self: TicTacToe.observe(self)[::-1],
)
OutcomeAsNumber = faulty("OutcomeAsNumber", outcome=lambda self: (end := TicTacToe.outcome(self)) and end.value(0))
WinnerAsFloat = toys.with_winner(TicTacToe, float)
HalfAGroup = faulty("HalfAGroup", symmetries=lambda self: SYMMETRIES[:2])
NoPermutation = faulty("NoPermutation", symmetries=lambda self: (Symmetry(np.zeros(18, int), np.arange(9)),))
ActionsStay = faulty("ActionsStay", symmetries=lambda self: [Symmetry(one, np.arange(9)) for one, _ in SYMMETRIES])
KeyIsCoarse = faulty("KeyIsCoarse", key=lambda self: (self.to_play, repr(sorted(self.board))))
KeyIsTheObject = faulty("KeyIsTheObject", key=lambda self: id(self))
KeyIsAList = faulty("KeyIsAList", key=lambda self: list(self.board))
KeyCounts = faulty("KeyCounts", count=itertools.count(), key=lambda self: next(self.count))
CountsAsBool = faulty("CountsAsBool", observe=lambda self: 2 * np.asarray(TicTacToe.observe(self), int))
NotFinite = faulty("NotFinite", observation_dtype=np.float32, observe=lambda self: np.full((2, 3, 3), np.nan))
TooLarge = faulty("TooLarge", observation_dtype=np.float32, observe=lambda self: np.full((2, 3, 3), 1e5))
Dice = faulty(  # the same move does not lead to the same position
    "Dice",
    random=np.random.default_rng(0),
    play=lambda self, action: TicTacToe.play_unchecked(self, int(self.random.choice(self.legal_actions()))),
)
NamesWithBlanks = faulty("NamesWithBlanks", action_name=lambda self, action: f"square {action}")
SameNames = faulty("SameNames", action_name=lambda self, action: "abc"[action % 3])
ParsesWrongly = faulty("ParsesWrongly", parse_action=lambda self, text: self.legal_actions()[0])
CellsWithBlanks = faulty("CellsWithBlanks", render=lambda self: Board((Cell("top left", 0, 0),)))
BoardOfStonesOnly = faulty(  # and of a corner
    "BoardOfStonesOnly",
    render=lambda self: Board([cell for cell in TicTacToe.render(self).cells if cell.piece or cell.name == "a1"]),
)
RendersSometimes = faulty("RendersSometimes", render=lambda self: TicTacToe.render(self) if self.board[4] else None)


class ListsTakenSquares(TicTacToe):
    """A mask that lies: a taken square is legal, which play does not survive."""

    def legal_actions(self):
        return [] if self.outcome() else list(range(9))

    def play(self, action):
        assert self.board[action] == 0, "taken"
        return super().play_unchecked(action)


class Mutating(TicTacToe):
    """play changes the board it shares with the position before."""

    def __init__(self):
        self.board = [0] * 9

    def play(self, action):
        after = super().play_unchecked(action)
        self.board = list(after.board)
        return after

    @property
    def to_play(self):
        return (9 - list(self.board).count(0)) % 2


class ChangesTheGrandparent(TicTacToe):
    """play leaves its own position alone, but not the one before."""

    before = None

    def play(self, action):
        after = super().play_unchecked(action)
        after.before = self
        if self.before is not None and action == 8:
            self.before.board = after.board
        return after


class HiddenLimit(zoo.Shuffle):
    """A limit that decides the game and is not observed: after ten plies it is drawn, whoever stands where."""

    def is_third(self):
        return len(self.past) == 10

    def observe(self):
        return super().observe() * np.reshape([1, 0, 0], (3, 1, 1))

    def key(self):
        return self.to_play, self.men, len(self.past)


HidesTheRestOfTheTurn = faulty(  # whether one stone of it has been placed, which decides what may follow
    "HidesTheRestOfTheTurn",
    zoo.OneOrTwo,
    observe=lambda self: zoo.OneOrTwo.observe(self) & np.reshape([True, True, False], (3, 1, 1)),
)
HidesOwners = faulty(  # of the boxes; only the lines are seen
    "HidesOwners",
    DotsAndBoxes,
    __init__=functools.partialmethod(DotsAndBoxes.__init__, size=2),
    observe=lambda self: DotsAndBoxes.observe(self) & np.reshape([True, False, False], (3, 1, 1)),
)


class NeverEnds(toys.Relay):
    """A player may pass for ever."""

    to_play = property(lambda self: self.ply % 2)

    def __init__(self):
        super().__init__(9)

    def legal_actions(self):
        return [0]

    def outcome(self):
        return None

    def observe(self):
        return np.zeros((1, 1, 1))

    def action_name(self, action):
        return "pass"


class HidesWhoMoves(DotsAndBoxes):
    """The boxes of player 0 and player 1 instead of own and other: whose move it is cannot be seen."""

    __init__ = functools.partialmethod(DotsAndBoxes.__init__, size=2)

    def observe(self):
        return np.array([np.frombuffer(self.board, np.uint8).reshape(5, 5) == cell for cell in (EDGE, 1, 2)])

    def key(self):
        return self.to_play, self.board


class NoPass(Othello):
    def legal(s, mask):
        moves = moves_of(s["discs"][s["to_play"]], s["discs"][1 - s["to_play"]], s["squares"])
        for square in range(36):
            mask[square] = moves & bit(square // 6, square % 6) != 0


class FailsLate(TicTacToe):
    """A rule that raises in a position that comes seldom."""

    def observe(self):
        if self.board[4] == 2 and self.board[0] == 1:
            raise ZeroDivisionError("in the corner")
        return super().observe()


class RendersBeyond(TicTacToe):
    """A mistake in a call of the toolkit, where the exception is raised."""

    def __str__(self):
        return render_grid(np.reshape(self.board, (3, 3)), glyphs=".x")


class BoardTooSmall(TicTacToe):
    """A mistake that raises in the template, which is the user's own code."""

    def __init__(self):
        self.board = (0,) * 6


class WritesBeyond(CompiledTicTacToe):
    """A rule that writes beyond its array, inside a helper."""

    def legal(s, mask):
        mark(mask, s["board"])


@kernel
def mark(mask, board):
    for square in range(10):
        mask[square] = square > 8 or board[square] == 0


class Overflows(CompiledTicTacToe):
    """An int8 overflows as plain Python with NumPy, and does not when Numba compiles it."""

    def observe(s, planes):
        planes[0, 0, 0] = s["plies"] * 60 > 120


class StoresTooMuch(CompiledTicTacToe):
    """A counter that does not fit into its field, which wraps around without an error when it is compiled."""

    State = np.dtype([*CompiledTicTacToe.State.descr, ("score", "i1")])

    def play(s, action):
        s["board"][action] = s["to_play"] + 1
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]
        s["score"] += 50


class Forgets(CompiledTicTacToe):
    """An object that loses its state when it is played on, which its answers do not show at once."""

    def play_unchecked(self, action):
        after = super().play_unchecked(action)
        self.state = np.zeros_like(self.state)
        return after


class ReadsItsText(TicTacToe):
    marks = ".xo"

    def from_text(self, text: str) -> Game:
        position = type(self)()
        position.board = tuple(self.marks.index(mark) for line in text.splitlines()[:3] for mark in line[3::2])
        return position


class SwapsTheStones(ReadsItsText):
    marks = ".ox"


class ForgetsTheCount(DotsAndBoxes):
    """A text that shows the board only: how many edges are left is wrong, which the end of the game reveals."""

    def __init__(self):
        super().__init__(size=1)

    def from_text(self, text):
        read = copy.copy(super().from_text(text))
        read.edges_left += 1
        return read


class StandsStill(DotsAndBoxes):
    """The first edge can be drawn again and again."""

    def symmetries(self):
        return ()

    def legal_actions(self):
        return sorted({0, *super().legal_actions()}) if self.edges_left else []

    def play(self, action):
        return copy.copy(self) if self.board[self.edges[action]] else super().play(action)


class HidesCards(Onitama):
    """The cards of the opponent and in the middle are not shown: two moves with different cards look alike."""

    def observe(self):
        planes = super().observe()
        planes[4 + len(CARDS) : -1] = 0
        return planes


class HidesTheLimit(zoo.Shuffle):
    """A game of men that go to and fro is drawn after twenty plies, which are not shown."""

    max_plies = 20

    def is_third(self):
        return len(self.past) == self.max_plies

    def observe(self):
        planes = super().observe()
        planes[1:] = 0
        return planes

    def key(self):
        return self.to_play, self.men, len(self.past)


class HalfAPoint(CompiledTicTacToe):
    def outcome(s):
        return 0.5 if s["plies"] == 3 else ONGOING


QUARTER_TURN = r"\(a quarter turn\) maps the moves below to: (\w\d)\. "
FAULTS = [
    # class, law, fewest moves that show it, words of the message
    (ListsTakenSquares, "play_makes_a_new_position", 1, r"AssertionError in play\(\) .*taken"),
    (GivesUpEarly, "legal_actions_in_order", 8, "is empty, but outcome"),
    (GoesOnAfterTheEnd, "legal_actions_in_order", 5, "the game is over"),
    (SecondPlayerBegins, "games_begin", 0, "to_play is 1 in the initial position, expected 0"),
    (OverAtTheStart, "games_begin", 0, r"over before any player has moved: Outcome\(winner=0\)"),
    (Unsorted, "legal_actions_in_order", 0, "expected ascending order"),
    (LegalAsSet, "legal_actions_in_order", 0, "is a set, expected a list or tuple"),
    (TooFewActions, "legal_actions_in_order", 0, "expected numbers from 0 to 7"),
    (Mutating, "play_makes_a_new_position", 0, r"play\(\) changed the position it was called on"),
    (ReturnsItself, "play_makes_a_new_position", 0, "returns the position it was called on"),
    (ChangesTheGrandparent, "earlier_positions_stay", None, "an earlier position of the game has changed"),
    (OutcomeAsNumber, "answers_in_form", 5, r"outcome\(\) is 1, expected None or an Outcome"),
    (ActionsStay, "symmetries_agree_with_the_rules", 1, f"{QUARTER_TURN}.*differs in 2 of 18 .* in plane \\d, row \\d"),
    (HalfAGroup, "symmetries_are_a_group", 0, r"\[0\] \(a quarter turn, .* a1 to a3\), followed by .* add it"),
    (NoPermutation, "symmetries_are_a_group", 0, r"planes of symmetries\(\)\[0\] are not a permutation .* 0 to 17"),
    (OneSided, "both_players_move", None, r"player 1 is not to move .* does play\(\) pass the turn"),
    (WinnerAsFloat, "answers_in_form", 5, r"the winner in outcome\(\) is 0.0, expected 0 or 1, as an integer"),
    (HiddenLimit, "equal_observations_equal_futures", None, "the game is drawn in the"),
    (HidesTheRestOfTheTurn, "equal_observations_equal_futures", None, "the legal actions (36|none)"),
    (NeverEnds, "games_end", 9, "9 plies, but max_plies is 9; pass was played 9 times: positions repeat, so no"),
    (HidesWhoMoves, "equal_observations_equal_futures", None, "have equal observations, but different futures"),
    (HidesOwners, "equal_observations_equal_futures", None, "the game is (won|lost|drawn) .*in the first"),
    (KeyIsCoarse, "equal_keys_equal_futures", 1, "have the same key"),
    (KeyIsTheObject, "same_moves_same_position", 0, "key"),
    (KeyCounts, "asking_changes_nothing", 0, "key"),
    (KeyIsAList, "asking_changes_nothing", 0, "unhashable"),
    (Dice, "same_moves_same_position", 1, "the same moves lead elsewhere"),
    (NotFinite, "observation_as_declared", 0, "not finite"),
    (TooLarge, "observation_as_declared", 0, "beyond 65504, which half precision"),
    (CountsAsBool, "observation_as_declared", 1, "cannot represent what observe"),
    (SameNames, "actions_have_names", 0, "actions 0 and 3 are both called 'a'"),
    (NamesWithBlanks, "actions_have_names", 0, "expected a word"),
    (ParsesWrongly, "actions_have_names", 0, r"parse_action\('\w\d'\) is not \d"),
    (FailsLate, "rules_answer", 2, r"ZeroDivisionError in observe\(\) \(test_laws.py, line \d+, `.*`\): in the corner"),
    (RendersBeyond, "rules_answer", 2, r"IndexError in __str__\(\) \(test_laws.py, line \d+, `.*`\)"),
    (BoardOfStonesOnly, "boards_in_form", 1, "other cells than in the initial position"),
    (CellsWithBlanks, "boards_in_form", 0, "expected a word as name"),
    (RendersSometimes, "boards_in_form", 1, "expected a Board in every position"),
    (BoardTooSmall, "rules_answer", 0, r"IndexError in outcome\(\) \(tic_tac_toe.py, line \d+, `.*`\)"),
    (WritesBeyond, "rules_answer", 0, r"IndexError in mark\(\) \(test_laws.py, line \d+, `.*`\)"),
    (StoresTooMuch, "numbers_fit_their_fields", None, r"\), \w\d, stores 150 in the field 'score' .* -128 to 127 o"),
    (HalfAPoint, "compiled_as_written", None, "outcome returns 0.5, expected the integer ONGOING, DRAW, 0 or 1"),
    (Forgets, "play_makes_a_new_position", None, "changed"),
    (SwapsTheStones, "texts_are_read", 1, r"^from_text\(str\(position\)\) is another position: "),
    (ForgetsTheCount, "texts_are_read", None, r"is another position, after the move \w\d: .*outcome"),
    (StandsStill, "moves_change_something", 2, "Either it should not be legal, or play"),
    (HidesCards, "equal_observations_equal_futures", None, r"after the move \w\d\w\d:\w+|only the first has the legal"),
    (HidesTheLimit, "observations_show_the_limit", None, "max_plies ends the game sooner after one of them"),
    (Overflows, "compiled_as_written", 3, r"plain Python \(first\) and compiled \(second\): observe\(\) differs"),
]


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(("fault", "law", "moves", "words"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_fault_breaks_the_law_that_names_it_in_few_moves(fault, law, moves, words):
    broken = find_violation(fault, games=30)
    assert broken is not None
    assert broken.law.name == law
    assert moves is None or len(broken.moves) == moves
    text = str(broken)
    assert text.startswith(f"broken law {law}: {broken.law.text}\n")
    assert re.search(words, broken.what)
    shown = " ".join(broken.moves) or "none, the initial position"
    assert f"moves: {shown}\n" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    ("fault", "law"), [fault[:2] for fault in FAULTS[::16]], ids=lambda value: getattr(value, "__name__", None)
)
def test_a_planted_fault_breaks_the_same_law_where_positions_are_counted(fault, law):
    assert find_violation(fault).law.name == law


def test_a_law_that_is_skipped_or_waived_is_not_asked():
    assert find_violation(SameNames, games=5, skip=("actions_have_names",)) is None

    class Waiving(SameNames):
        waived_laws: ClassVar = {"actions_have_names": "they are shown elsewhere"}

    assert find_violation(Waiving, games=5) is None


def test_a_text_must_be_read_as_the_position_that_it_shows():  # SwapsTheStones does not
    assert "texts_are_read" not in {law.name for law in laws_of(TicTacToe())}
    assert find_violation(ReadsItsText, games=5) is None


def test_a_line_that_is_not_the_shortest_is_replaced_by_one_that_is():
    laws = POSITION_LAWS[:2]
    long = Violation(laws[0], "", ("c2", "b2", "a1"), "")
    assert violations.shorten(FailsLate, laws, long).moves == ("a1", "b2")
    assert violations.shorten(TicTacToe, laws, long) is long


def test_an_example_is_shortened_also_where_no_move_can_be_left_out():
    found: list[Violation] = []
    broken = find_violation(functools.partial(NoPass, size=6), games=6, on_violation=found.append)
    assert broken.what.startswith("legal_actions() is empty, but outcome() is None")
    assert len(broken.moves) < len(found[0].moves) / 2


def test_the_first_example_is_reported_before_a_shorter_one_is_sought(monkeypatch):
    reported: list[Violation] = []
    broken = find_violation(GoesOnAfterTheEnd, games=5, on_violation=reported.append)
    assert broken is not None
    assert [each.law for each in reported] == [broken.law]
    assert len(broken.moves) == 5 < len(reported[0].moves)
    monkeypatch.setattr("plyzero.check.violations.SHORTENING_POSITIONS", 0)
    assert find_violation(GoesOnAfterTheEnd, games=5) == reported[0]


def test_a_rule_error_names_the_law_the_moves_and_the_line_of_the_game():
    text = str(find_violation(FailsLate, games=100))
    assert text.endswith(" 1 x . .\n 2 . o .\n 3 . . .\n   a b c")


@kernel
def below(number):
    return number - 1


@kernel
def factorial(number):
    return 1 if number == 0 else number * factorial(below(number))


class Six(CompiledTicTacToe):
    def legal(s, mask):
        mask[factorial(s["plies"] + 3)] = True


def test_kernels_that_call_one_another_and_themselves_can_be_interpreted_and_bounds_checked():
    for form in (Six(), Six().as_plain_python(), Six().with_bounds_checked()):
        assert form.legal_actions() == (6,)


def closed() -> CompiledTicTacToe:
    """Return a game with a kernel in a closure, which reads beyond its array."""

    @kernel
    def beyond(board):
        return board[9]

    def legal(s, mask):
        mask[0] = beyond(s["board"])

    return type("Closed", (CompiledTicTacToe,), {"legal": legal})()


def test_rules_that_leave_their_arrays_are_errors_as_plain_python_and_with_bounds_checked():
    for game in (WritesBeyond(), closed()):
        for form in (game.as_plain_python(), game.with_bounds_checked()):
            with pytest.raises(IndexError):
                form.legal_actions()


def test_a_sample_holds_short_lines_first_and_whole_games():
    found = Sample(TicTacToe(), extent_of(3))
    assert len(found.games) == 3
    for moves, positions in found.games:
        assert len(positions) == len(moves) + 1
        assert positions[-1].outcome() is not None
        assert all(position.outcome() is None for position in positions[:-1])
    close = positions_near(TicTacToe())
    assert found.positions[: len(close)][5].moves == close[5].moves == (4,)
    assert [len(each.moves) for each in close] == sorted(len(each.moves) for each in close)
    assert all(each.position.outcome() is None for each in found.positions)


def test_users_of_a_game_of_another_toolkit_are_not_told_to_change_it():
    adapted = type("Chess", (NeverEnds,), {"is_adapted": True})
    for make, is_told in ((NeverEnds, True), (adapted, False)):
        broken = find_violation(make)
        assert broken.law.name == "games_end"
        assert ("max_plies is enough" in broken.what) == is_told
        assert "--skip games_end" in broken.what


@pytest.mark.parametrize(("choose", "repeated"), [(shuffling_move, 17), (random_move, 10)])
def test_games_that_move_to_and_fro_repeat_themselves_more_often(choose, repeated):
    games = [play_game(zoo.Shuffle(), functools.partial(choose, np.random.default_rng(n))) for n in range(40)]
    assert sum(game.positions[-1].is_third() for game in games) == repeated


def test_games_that_look_for_rare_events_have_ends_that_random_games_do_not_have():
    drawn = []
    for choose in (random_move, functools.partial(seeking_move, Counter())):
        games = play_games(ConnectFour(), choose, Extent(games=60), [0])
        drawn.append(sum(winner(game.positions[-1]) is None for game in games))
    assert drawn == [0, 4]


def test_children_and_grandchildren_are_compared_with_those_of_the_same_parent():
    game = play_game(Template(), functools.partial(random_move, np.random.default_rng(0)))
    found = relatives([game], 1)
    assert {len(each.moves) for each in found} == {1, 2}
    assert sum(len(each.moves) == 1 for each in found) == MAX_CHILDREN - 3  # 9 actions, evenly spaced
    assert all(after(Template(), each.moves).board == each.position.board for each in found)


def test_positions_with_the_same_contents_are_one_position():
    one, other = (SamplePosition(moves, after(Template(), moves)) for moves in ((0, 1, 2), (2, 1, 0)))
    assert same_contents(one, other)
    assert not same_contents(one, SamplePosition((0, 2, 1), after(Template(), (0, 2, 1))))


ASKED: Counter[str] = Counter()


def counted(name: str):
    """Return a method of tic-tac-toe that counts how often it is called."""

    def method(self):
        ASKED[name] += 1
        return getattr(TicTacToe, name)(self)

    return method


Counted = faulty("Counted", **{name: counted(name) for name in ("observe", "render", "symmetries")})


def test_the_work_is_a_number_of_positions_the_same_at_each_call_and_each_is_asked_for_little():
    played, laws = list[int](), [*POSITION_LAWS, *SYMMETRY_LAWS]
    with np.errstate(over="raise"):
        for _ in range(2):
            games: list[int] = []
            assert violations.find_position_violation(Counted, laws, Extent(300), games, print, print) is None
            assert sum(games[:-1]) < sum(games) == 300
            played += games
    assert played[: len(games)] == played[len(games) :]
    counts = {name: count / sum(played) for name, count in ASKED.items()}
    assert counts["render"] < 1.5  # once, and twice at the beginning
    assert counts["observe"] < 30
    assert counts["symmetries"] < 0.2  # once a game


def test_a_compiled_game_is_drawn_at_a_sample_of_positions_and_compared_by_its_bytes():
    drawn: list[bytes] = []

    class Drawn(CompiledBreakthrough, version=1):
        def render(self):
            drawn.append(self.key())
            return super().render()

    games: list[int] = []
    assert violations.find_position_violation(Drawn, POSITION_LAWS, Extent(100), games, print, print) is None
    assert len(drawn) < sum(games) / 3


def test_the_first_part_of_the_games_meets_every_law_of_games_before_the_rest_is_played():
    asked: list[tuple[str, int]] = []
    assert find_violation(CompiledTicTacToe, on_progress=lambda *state: asked.append(state)) is None
    kinds = [kind for kind, _ in itertools.groupby(doing.partition(",")[0] for doing, _ in asked)]
    comparing = ["games for the comparison of positions", "comparing positions"]
    first = [violations.PLAYING_AS_PYTHON, violations.PLAYING, *comparing, *comparing]
    rest = [violations.PLAYING_AS_PYTHON, violations.SEEKING, violations.PLAYING, violations.SEEKING, *comparing]
    assert kinds == [*first, *rest]
    numbers = [number for doing, number in asked if doing == violations.PLAYING]
    assert numbers == [*range(1, len(numbers) + 1)]  # no game is played twice


def test_hundreds_of_moves_are_shown_as_the_first_and_the_last_ones_and_their_number():
    names = [f"m{number}" for number in range(300)]
    text = str(Violation(POSITION_LAWS[0], "what", tuple(names), "position"))
    assert f"moves: {' '.join(names[:10])} ... {' '.join(names[-10:])} (300 moves)\n" in text
