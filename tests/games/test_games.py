"""The shipped games against known answers; the plain one; compiled rules with mistakes.

Perft counts the sequences of moves of a given length. Othello's and Connect Four's are published numbers.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.dots_and_boxes import DotsAndBoxes
from plyzero.check.template.tic_tac_toe import TicTacToe as PlainTicTacToe
from plyzero.errors import UserError
from plyzero.games.breakthrough import Breakthrough
from plyzero.games.connect_four import ConnectFour
from plyzero.games.go import Go
from plyzero.games.gomoku import Gomoku
from plyzero.games.hex import Hex
from plyzero.games.othello import Othello
from plyzero.games.pig import Pig
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import DRAW, ONGOING, Game, IllegalActionError, Outcome
from plyzero.rules.random_game import random_game
from tests.helpers import toys

TEMPLATE = PlainTicTacToe.__module__
STARTS = {
    "tic-tac-toe": TicTacToe(),
    "plain tic-tac-toe": PlainTicTacToe(),
    "connect-four": ConnectFour(),
    "othello": Othello(),
    "othello(size=6)": Othello(size=6),
}
every_game = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
# Lists as long as not, so that late positions are reached too.
choices = st.integers(0, 60).flatmap(lambda n: st.lists(st.integers(0, 59), min_size=n, max_size=n))


def perft(position: Game, depth: int) -> int:
    legal = position.legal_actions()
    return len(legal) if depth == 1 else sum(perft(position.play_unchecked(action), depth - 1) for action in legal)


def random_positions(start: Game, seed: int) -> list[Game]:
    return random_game(start, np.random.default_rng(seed)).positions


# --- known answers ---


@pytest.mark.parametrize(
    ("start", "numbers"),
    [(Othello(), [4, 12, 56, 244, 1396, 8200, 55092]), (ConnectFour(), [7, 49, 343, 2401, 16807, 117649])],
    ids=["othello", "connect-four"],
)
def test_a_game_has_the_known_numbers_of_move_sequences(start, numbers):
    assert [perft(start, depth + 1) for depth in range(len(numbers))] == numbers


@pytest.mark.parametrize("start", [TicTacToe(), PlainTicTacToe()], ids=["compiled", "plain"])
def test_tic_tac_toe_has_255168_games_of_which_each_side_wins_the_known_number(start):
    memo = {}

    def games(position: Game) -> Counter:
        key = position.key()
        if key not in memo:
            outcome = position.outcome()
            moves = [games(position.play_unchecked(action)) for action in position.legal_actions()]
            memo[key] = Counter([outcome.winner]) if outcome else sum(moves, Counter())
        return memo[key]

    assert games(start) == {0: 131184, 1: 77904, None: 46080}
    assert len(memo) == 5478


def test_a_full_connect_four_board_without_four_in_a_row_is_a_draw():
    position = toys.after(ConnectFour(), " ".join("441365675334466335442232661515577771217122"))
    assert position.outcome() == Outcome(None)


def test_a_full_column_takes_no_more_discs():
    assert toys.after(ConnectFour(), "4 4 4 4 4 4").legal_actions() == (0, 1, 2, 4, 5, 6)


def test_an_othello_player_who_cannot_move_must_pass_and_the_other_one_goes_on():
    position = toys.after(Othello(size=6), "e4 e5 c2 b4 e6 f6 a4 d6")
    assert (position.legal_names(), position.to_play) == ("pass", 0)
    passed = toys.after(position, "pass")
    assert (passed.to_play, passed.outcome()) == (1, None)
    assert (passed.record["discs"] == position.record["discs"]).all()
    assert "pass" not in passed.legal_names().split()
    assert toys.after(passed, "e3").to_play == 0


def test_othello_ends_by_two_passes_before_the_board_is_full():
    once = toys.after(Othello(size=6), "b3 b2 b1 b4 d5 c5 b5 e5 f6 pass")
    assert (once.outcome(), once.legal_names()) == (None, "pass")
    assert toys.after(once, "pass").outcome().winner == 0


def test_othello_goes_on_after_passes_that_do_not_follow_each_other():
    apart = 0
    for seed in range(200):
        game = random_positions(Othello(size=6), seed)
        passed = [(a.record["discs"] == b.record["discs"]).all() for a, b in itertools.pairwise(game)]
        together = [first and second for first, second in itertools.pairwise(passed)]
        assert not any(together[:-1])
        assert together[-1] or str(game[-1]).count(".") == 0
        apart += sum(passed) >= 2 and not together[-1]
    assert apart


def test_the_shortest_othello_game_wipes_white_out_in_nine_plies():
    position = toys.after(Othello(), "f5 d6 c5 f4 e7 f6 g5 e6 e3")  # black turns every white disc
    assert (str(position).count("x"), str(position).count("o")) == (13, 0)
    assert toys.after(position, "pass pass").outcome() == Outcome(0, 13)


def test_othello_is_drawn_when_and_only_when_both_have_equally_many_discs():
    ends = [random_positions(Othello(size=6), seed)[-1] for seed in range(300)]
    drawn = [str(end).count("x") == str(end).count("o") for end in ends]
    assert drawn == [end.outcome().winner is None for end in ends]
    assert any(drawn)


@pytest.mark.parametrize("start", [Othello(6), DotsAndBoxes(2)])
def test_points_are_the_difference_of_the_final_board(start):
    for seed in range(20):
        end = random_positions(start, seed)[-1]
        assert end.outcome().lead(end.to_play) == end.final_board().sum()
        assert end.final_board().shape == (1, *start.observation_shape[1:])


# --- what the laws do not say (the others are in test_laws.py) ---


@every_game
@given(choices=choices)
def test_the_observation_shows_own_discs_in_the_first_plane(start, choices):
    position, _ = toys.walk(start, choices)
    own, other = np.asarray(position.observe(), int)
    by_player = (own, other) if position.to_play == 0 else (other, own)
    rows = [line.split()[1:] for line in str(position).splitlines()[:-1]]
    if "connect" in type(position).__module__:
        rows.reverse()  # drawn with row 0 at the bottom
    assert [[".xo"[a + 2 * b] for a, b in zip(*row, strict=True)] for row in zip(*by_player, strict=True)] == rows


@pytest.mark.parametrize(("winner", "values"), [(0, (1, -1)), (1, (-1, 1)), (None, (0, 0))])
def test_an_outcome_is_worth_to_one_player_what_it_costs_the_other(winner, values):
    assert (Outcome(winner).value(0), Outcome(winner).value(1)) == values


@every_game
@given(choices=choices, wrong=st.integers(-3, 80))
def test_an_illegal_action_names_itself_the_position_and_the_legal_ones(start, choices, wrong):
    position, _ = toys.walk(start, choices)
    legal = position.legal_actions()
    if wrong in legal:
        position.play(wrong)
        return
    with pytest.raises(IllegalActionError) as caught:
        position.play(wrong)
    known = 0 <= wrong < start.num_actions
    name = position.action_name(wrong) if known else "not an action of this game"
    names = " ".join(position.action_name(action) for action in legal)
    assert str(caught.value) == f"illegal action {wrong} ({name}) in\n{position}\nlegal: {names}"


@every_game
def test_no_action_is_legal_when_the_game_is_over(start):
    position = random_positions(start, seed=1)[-1]
    assert not position.legal_actions()
    for action in range(start.num_actions):
        with pytest.raises(IllegalActionError, match="legal: none, the game is over"):
            position.play(action)


def test_a_name_that_is_no_legal_action_is_refused_with_the_legal_names():
    position = toys.after(TicTacToe(), "a1 b1 c1 a2 b2 a3 c2")
    with pytest.raises(ValueError, match="expected one of b3 c3, got 'a1'"):
        position.parse_action("a1")
    assert position.parse_action(" B3 ") == 7


# --- symmetries ---


@every_game
def test_a_board_of_columns_has_one_mirror_and_a_square_board_seven_symmetries(start):
    assert len(start.symmetries()) == (1 if isinstance(start, ConnectFour) else 7)


# --- writing a game ---


def test_a_compiled_game_that_lacks_a_rule_is_refused_by_name():
    with pytest.raises(TypeError, match="Half: a compiled game needs the rules legal, observe"):
        type("Half", (CompiledGame,), {"play": lambda s, action: None, "outcome": lambda s: DRAW})


TO_PLAY = ("to_play", "i1")
NO_BOOL = "Mine.State: Numba does not support arrays of bool in a record; give lines the type i1"


@pytest.mark.parametrize(
    ("state", "rules", "error", "words"),
    [
        ([("stones", "i1")], {}, TypeError, r"Mine.State needs a field to_play, it has \('stones',\)"),
        ([("lines", "?", (3, 3)), ("over", "?"), TO_PLAY], {}, TypeError, NO_BOOL),
        ([TO_PLAY], {"play": lambda self, s, action: None}, TypeError, "Mine.play: a rule takes s, action, and no s"),
        ([TO_PLAY], {"observe": lambda s, planes: helper(s)}, UserError, "Mine.observe .*decorate helper with @k"),
        ([TO_PLAY], {"legal": lambda s, mask: TABLE[s["to_play"]][0]}, UserError, "Mine.legal cannot .* array or a"),
    ],
    ids=["no to_play", "bool", "self", "no kernel", "list"],
)
def test_a_compiled_game_with_a_mistake_is_refused_with_what_to_do(state, rules, error, words):
    with pytest.raises(error, match=words):
        whole_game("Mine", state, **rules)().legal_actions()


TABLE = [[0], [1]]
SET = frozenset({1})


def helper(s):
    return 1


def test_to_play_may_be_an_attribute_that_init_sets():
    class Mine(PlainTicTacToe):
        to_play = None

        def __init__(self):
            super().__init__()
            self.to_play = 0

    assert Mine().to_play == 0


def test_a_rule_that_numba_cannot_compile_is_refused_with_the_way_out():
    def play(s, action):
        open("moves.txt")  # noqa: SIM115

    def legal(s, mask):
        mask[0] = s["stones"] > 0

    with pytest.raises(UserError) as refused:
        whole_game("Writer", [("to_play", "i1")], play=play, legal=legal)().legal_actions()
    writer_play, writer_legal = str(refused.value).splitlines()
    assert re.match(r"Writer.play cannot be compiled: test_games.py, line \d+, `open\(\"moves.txt\"\)", writer_play)
    assert writer_play.endswith("; write this with numbers, arrays and loops, or subclass Game instead of CompiledGame")
    assert re.match(r"Writer.legal cannot be compiled: test_games.py, line \d+, `mask\[0\] = s\[\"stones", writer_legal)
    assert "Field 'stones' was not found" in writer_legal
    assert writer_legal.endswith("; use a field that State has, or add stones to State")


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        (
            lambda s: any(s["field"][i] for i in range(2)),
            "write a loop in place of any(... for ...) or sum(... for ...)",
        ),
        (lambda s: len(list(enumerate((s["to_play"], 1 - s["to_play"])))), "count with range: a field and a number in"),
        (lambda s: 1 in SET, "make the table an array or a tuple"),
    ],
)
def test_python_that_compiled_rules_lack_is_refused_with_what_to_do(rule: Callable[[Any], int], advice: str):
    with pytest.raises(UserError) as refused:
        whole_game("Lacks", [("to_play", "i1"), ("field", "i1", (2,))], outcome=rule)().outcome()
    assert f"; {advice}" in str(refused.value)


def test_an_assignment_inside_of_an_expression_is_refused_with_what_to_do():
    def observe(s, planes):
        for row in range(3):
            if stone := s["board"][row]:
                planes[0, row, 0] = stone

    with pytest.raises(UserError, match=r"^Walrus.observe cannot .*: test_games.py, line \d+, `def obs.*") as refused:
        whole_game("Walrus", [("board", "i1", (3,)), TO_PLAY], observe=observe)().legal_actions()
    assert str(refused.value).endswith("; assign in a line of its own where there is a :=")


def whole_game(name: str, state: list, **rules) -> type[CompiledGame]:
    def nothing(s, argument):
        pass

    sizes = {"num_actions": 1, "observation_shape": (1, 1, 1), "max_plies": 1}
    others = {"play": nothing, "legal": nothing, "outcome": lambda s: ONGOING, "observe": nothing}
    return type(name, (CompiledGame,), {"State": np.dtype(state), **sizes, **others, **rules})


def test_a_class_that_overrides_play_may_call_the_play_it_inherits():
    class Counting(PlainTicTacToe):
        plies = 0

        def play(self, action):
            after = super().play(action)
            after.plies = self.plies + 1
            return after

    assert Counting().play(4).play(0).plies == 2


def test_the_version_of_a_game_is_an_argument_of_its_class():
    class Revised(PlainTicTacToe, version=2):
        pass

    assert (PlainTicTacToe.version, Revised.version) == (1, 2)


# --- parameters ---


@pytest.mark.parametrize(
    ("game", "parameter", "values", "message"),
    [
        (Breakthrough, "size", (3, 11), "expected a size from 4 to 10"),
        (Go, "size", (1, 20), "expected a size from 2 to 19"),
        (Go, "komi", (0.3, 400, float("nan")), "expected a komi in steps of 0.5 from -361 to 361"),
        (Gomoku, "size", (4, 20), "expected a size from 5 to 19"),
        (Gomoku, "exactly_five", (6,), "expected True or False for exactly_five"),
        (Hex, "size", (2, 20), "expected a size from 3 to 19"),
        (Hex, "swap", ("yes",), "expected True or False for swap"),
        (Pig, "goal", (1, 1001), "expected a goal from 2 to 1000"),
    ],
)
def test_parameters_out_of_range_are_refused(game, parameter, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"^{message}, got {value!r}$"):
            game(**{parameter: value})
