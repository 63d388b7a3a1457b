"""`plyzero new --compiled`: the compiled form of a plain game is begun, and its rules are compared one by one."""

import copy
import os
import re
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from plyzero.check.compiled_skeleton import Skeleton
from plyzero.check.state_fields import UnfitError, encoded
from plyzero.errors import UserError
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game, Outcome
from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.surroundings import python

EXAMPLES = Path(__file__).parents[2] / "examples"

RACE = {
    "play": """
        me = s["to_play"]
        if action == 1 and not s["is_throwing"]:
            s["is_throwing"] = 1
            return
        steps = 1
        if s["is_throwing"]:
            steps = 0 if action == 5 else action + 1
        s["squares"][me] = min(20, s["squares"][me] + steps)
        s["is_throwing"] = 0
        s["to_play"] = 1 - me
    """,
    "outcome": """
        other = 1 - s["to_play"]
        return other if s["squares"][other] == 20 else ONGOING
    """,
    "legal": "mask[:] = True",
    "observe": """
        me = s["to_play"]
        planes[0, s["squares"][me], 0] = 1
        planes[1, s["squares"][1 - me], 0] = 1
    """,
    "chances": """
        if s["is_throwing"]:
            weights[:] = 1 / 6
    """,
}
"""The rules of examples/race.py, as a person writes them into the skeleton."""

WRONG = {
    "play": (
        RACE["play"].replace("action == 5", "action == 4"),
        "wrong after walk throw 5: the field squares is [1 0], expected [1 5]",
    ),
    "outcome": ("return ONGOING if s['to_play'] < 2 else DRAW", "it returns ONGOING, expected 1"),
    "legal": ("mask[0] = True", "wrong after no move: it does not set [1 (throw)]"),
    "observe": ("planes[0, s['squares'][0], 1] = 1", "wrong after no move: IndexError: index 1 is out of bounds"),
    "chances": ("weights[0] = 1", "wrong after no move: the weights are [1. 0. 0. 0. 0. 0.], expected [0. 0. 0."),
}
"""The same with mistakes, and the beginning of the report on each."""

CHECK = ("check", "fast.fast:Fast", "--against", "race:Race", "--games", "12")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "race.py").write_text((EXAMPLES / "race.py").read_text())
    shown("new", "fast", "--from", "race:Race", "--compiled", cwd=tmp_path)
    return tmp_path


def write(project: Path, rules: dict[str, str]) -> None:
    """Write `rules` in place of their stubs."""
    path = project / "fast" / "fast.py"
    text = path.read_text()
    for rule, body in rules.items():
        stub = rf"(def {rule}\(s[^\n]*\n(?: +#[^\n]*\n)+ +)raise NotImplementedError\([^\n]*\)\n"
        text, count = re.subn(stub, lambda found, body=body: f"{found[1]}{body.strip()}\n", text)
        assert count == 1
    path.write_text(text)


def reported(output: str) -> dict[str, str]:
    """Return what a report says of each rule."""
    return dict(re.findall(r"^  (\w+) +(.+)$", output.partition("rule by rule")[2], re.MULTILINE))


def test_a_skeleton_has_the_state_the_names_and_the_plain_rules(project: Path):
    text = (project / "fast" / "fast.py").read_text()
    assert '("squares", "i1", (2,)),  # 0 to 20 in random games' in text
    assert "    num_chances = 6\n" in text
    assert '    def squares(self):\n        return tuple(self.record["squares"].tolist())\n' in text
    assert '        #     return [1 / 6] * 6 if self.is_throwing else ()\n        raise NotImplementedError("' in text
    done = plyzero(*CHECK, cwd=project, code=1)
    assert reported(done.stdout) == {"start": "right"} | dict.fromkeys(RACE, "not written yet")
    assert "does not pass: not written yet: play, outcome, legal, observe, chances" in done.stderr
    assert "Fast: the rules play, outcome, legal, observe, chances raise NotImplementedError: write them" in refused(
        "check", "fast.fast:Fast", cwd=project
    )


def test_each_rule_is_compared_by_itself(project: Path):
    write(project, {"outcome": RACE["outcome"], "observe": RACE["observe"], "chances": WRONG["chances"][0]})
    found = reported(plyzero(*CHECK, cwd=project, code=1).stdout)
    assert found.pop("chances").startswith(WRONG["chances"][1])
    unwritten = dict.fromkeys(("play", "legal"), "not written yet")
    assert found == dict.fromkeys(("start", "outcome", "observe"), "right") | unwritten


def test_a_rule_that_is_right_in_plain_python_alone_is_wrong(project: Path):
    eight_bits = "mask[:] = (s['squares'][0] << 4) < 200"  # where a number has 64, it is larger from square 13 on
    write(project, {"legal": eight_bits})
    found = reported(plyzero(*CHECK, cwd=project, code=1).stdout)
    assert re.match(r"wrong after .*: it does not set \[0 \(walk\), 1 \(throw\)\]", found["legal"])


def test_a_game_that_is_filled_in_keeps_the_laws_and_agrees(project: Path):
    write(project, RACE)
    assert "fast.fast:Fast v1: 25 laws hold" in shown(*CHECK, cwd=project)


def test_its_tests_compare_each_rule_too(project: Path):
    write(project, RACE | {"legal": WRONG["legal"][0]})
    paths = os.pathsep.join(filter(None, sys.path))
    pytest_of_rules = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "fast",
        "-k",
        "agrees_with_the_original or known_game",
    ]
    done = python(*pytest_of_rules, code=1, cwd=project, PYTHONPATH=paths, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "3 failed, 5 passed" in done.stdout
    assert done.stdout.count("FAILED fast/test_fast.py::test_a_known_game_ends_as_the_original_does") == 2
    assert "test_a_rule_agrees_with_the_original[legal]" in done.stdout


def test_a_field_that_the_original_lacks_has_what_play_stores(project: Path):
    path = project / "fast" / "fast.py"
    path.write_text(path.read_text().replace('("to_play", "i1")', '("to_play", "i1"), ("leader", "i1")'))
    stored = """
        s["leader"] = s["squares"].max()
    """
    outcome = RACE["outcome"].replace('s["squares"][other]', 's["leader"]')
    write(
        project, RACE | {"play": f"{RACE['play'].rstrip()}{stored}", "outcome": outcome, "chances": WRONG["chances"][0]}
    )
    output = plyzero(*CHECK, cwd=project, code=1).stdout
    found = reported(output)
    assert found.pop("chances").startswith("wrong after")
    assert "  not compared, since the original has no attribute of the name: leader\n" in output
    assert {rule: text for rule, text in found.items() if rule in RACE} == dict.fromkeys([*RACE][:4], "right")


def test_mistakes_in_all_rules_are_found_at_once(project: Path):
    write(project, {rule: body for rule, (body, _) in WRONG.items()})
    found = reported(plyzero(*CHECK, cwd=project, code=1).stdout)
    assert found.pop("start") == "right"
    assert {rule: WRONG[rule][1] in text for rule, text in found.items()} == dict.fromkeys(WRONG, True), found


def test_a_rule_that_numba_cannot_compile_is_reported_beside_the_others(project: Path):
    write(project, RACE | {"legal": "mask[list({0: 0, 1: 'x'})] = True"})
    done = plyzero(*CHECK, cwd=project, code=2)
    found = reported(done.stdout)
    assert found.pop("legal").startswith("right in plain Python, but Fast.legal cannot be compiled: fast.py, line ")
    assert found == dict.fromkeys(found, "right")


class Plain(Game):
    """A game whose positions are what `values` has, in turn."""

    num_actions, observation_shape, max_plies = 1, (1, 1, 1), 5
    to_play = 0
    ply = 0
    values: ClassVar[list[object]] = []

    def __init__(self):
        self.held = self.values[0]

    def legal_actions(self):
        return [] if self.outcome() else [0]

    def play(self, action):
        after = copy.copy(self)
        after.ply = self.ply + 1
        after.held = self.values[after.ply]
        return after

    def outcome(self):
        return Outcome(winner=0) if self.ply == len(self.values) - 1 else None

    def observe(self):
        return np.full((1, 1, 1), self.ply)


def skeleton_of(*values: object) -> Skeleton:
    game = type("Holds", (Plain,), {"values": list(values), "__module__": __name__})
    return Skeleton(GameSpec("plain:Holds", game()), "Fast")


PLACES = frozenset({(0, 1), (2, 0)})


@pytest.mark.parametrize(
    ("values", "dtype", "numbers"),
    [
        ((3, 60), "i1", 60),
        ((3, 100), "i2", 100),
        ((0, 1 << 40), "u8", 1 << 40),
        ((False, True), "i1", 1),
        ((None, 4), "i1", 4),
        ((4, None), "i1", -1),
        ((0.5, 0.25), "f8", 0.25),
        (((1, 2), (3, 4)), ("i1", (2,)), [3, 4]),
        ((b"\0\1", b"\0\2"), ("i1", (2,)), [0, 2]),
        (((None, 2), (1, None)), ("i1", (2,)), [1, -1]),
        (((), (5,), (5, 6, 7), (5, 6)), ("i1", (3,)), [5, 6, -1]),
        ((((1,), (2,)), ((3,), ())), ("i1", (2, 1)), [[3], [-1]]),
        ((frozenset(), frozenset({0, 3})), ("i1", (4,)), [1, 0, 0, 1]),
        ((frozenset(), PLACES), ("i1", (3, 2)), [[0, 1], [0, 0], [1, 0]]),
        ((np.zeros((2, 2), bool), np.eye(2, dtype=bool)), ("i1", (2, 2)), [[1, 0], [0, 1]]),
        (((frozenset(), frozenset({1})), (frozenset({0}), frozenset())), ("i1", (2, 2)), [[1, 0], [0, 0]]),
    ],
)
def test_a_field_holds_what_an_attribute_has_held_and_gives_it_back(
    values: tuple[object, ...], dtype: object, numbers: object
):
    field = next(each for each in skeleton_of(*values).fields if each.name == "held")
    assert field.dtype == np.dtype(dtype)
    assert encoded(values[-1], field.dtype).tolist() == numbers
    for value in values:
        back = eval(field.form.given_back("held"), {"np": np, "held": encoded(value, field.dtype)})
        assert np.array_equal(back, value) if isinstance(value, np.ndarray) else back == value


def test_a_set_of_numbers_may_become_bits_and_a_row_a_board():
    assert encoded(frozenset({0, 3}), np.dtype("u8")) == 9
    assert encoded(b"\1\2\3\4", np.dtype(("i1", (2, 2)))).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(("value", "dtype"), [(300, "i1"), ((1, 2, 3), ("i1", (2,))), (frozenset({4}), ("i1", (4,)))])
def test_a_value_that_a_field_cannot_hold_is_refused(value: object, dtype: object):
    with pytest.raises(UnfitError, match="does not fit in a field of type"):
        encoded(value, np.dtype(dtype))


def test_the_moves_of_the_example_in_several_turns_are_taken_over():
    made = Skeleton(load_game("examples.dots_and_boxes:DotsAndBoxes(size=2)"), "Fast")
    assert made.rules == ["play", "outcome", "legal", "observe", "score"]
    assert made.notes == [
        "IS: its elements are no numbers, and a rule reads tables of numbers only",
        "self.boxes: a rule has no dict: make it an array with a place for each number",
    ]


OUTSIDE = """
import copy, itertools, math
from plyzero import Game, Outcome

TABLE, NAMES = {0: 1}, ["a", "b"]
BIG = 1 << 70
CORNERS = (1, 2)
MOVES = []
for row in range(2):
    MOVES.append(row)

def double(number): return 2 * number

class Mine(Game):
    num_actions, observation_shape, max_plies = 2, (1, 1, 1), 2
    ply = to_play = 0
    def legal_actions(self): return [MOVES[0], CORNERS[0]] if self.ply < 2 else []
    def play(self, action):
        after = copy.copy(self)
        after.ply, after.to_play = self.ply + TABLE[0], 1 - self.to_play
        return after
    def outcome(self): return Outcome(0) if self.ply == 2 and BIG > 1 else None
    def observe(self): return [[[double(math.pi)]]]
    def action_name(self, action): return NAMES[action]
    def from_text(self, text): return self
"""


def test_what_a_plain_game_uses_from_outside_of_the_class_is_copied_with_what_to_decide(tmp_path: Path):
    (tmp_path / "mine.py").write_text(OUTSIDE)
    said = shown("new", "fast", "--from", "mine:Mine", "--compiled", cwd=tmp_path)
    assert re.findall(r"^decide: (.*)$", said, re.MULTILINE) == [
        "from_text() is not copied: it makes positions, and needs with_state() instead",
        "TABLE: a rule has no dict: make it an array with a place for each number",
        "BIG: it has more than 64 bits: split it, or use an array",
        "MOVES: a rule reads arrays and tuples, not lists: np.array(...)",
        "double: a rule can call it once it has @kernel above it and only numbers, arrays and tuples in it",
    ]
    text = (tmp_path / "fast" / "fast.py").read_text()
    assert "MOVES = []\nfor row in range(2):\n    MOVES.append(row)\n" in text
    assert "# Decide: TABLE: a rule has no dict: make it an array with a place for each number.\nTABLE, NAMES" in text
    assert "itertools" not in text


class WithProperty(Plain):
    values: ClassVar[list[object]] = [0, 1]
    record = 5


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (("x", "o"), "plain:Holds.held holds 'x', a str, and a State holds numbers only: use a number for each text"),
        (({1: 2}, {1: 3}), "held holds {1: 2}, a dict, and a State holds numbers only: use a tuple or an array with"),
        ((Outcome(0), Outcome(1)), "a Outcome, and a State holds numbers only: use numbers, tuples of numbers, sets"),
        (((1, "x"), (2, "y")), "an element of plain:Holds.held holds 'x', a str"),
        ((3, (3,)), "held is int or tuple, and a field of a State has one form: use one of these in all positions"),
        ((1 << 64, 0), "is a number from 0 to 18446744073709551616, and a field has 64 bits: keep several numbers"),
        ((None, -1), "holds -1, and -1 stands for None and unused places: use numbers from 0 on"),
        ((None, frozenset({1})), "is None or a frozenset of any size: use an empty one in place of None"),
        ((frozenset({"x"}), frozenset()), "is a set with 'x' in it, and a State has a cell for each possible member"),
        ((frozenset({5000}), frozenset()), "is a set with 5000 in it, and a State has a cell for each possible member"),
        ((np.zeros(2), np.zeros(3)), "whose shape is (2,) in the initial position, and a State has arrays of numbers"),
    ],
)
def test_what_no_state_can_hold_is_refused_with_what_to_decide(values: tuple[object, ...], sentence: str):
    with pytest.raises(UserError) as refusal:
        skeleton_of(*values)
    assert sentence in str(refusal.value)


def test_a_name_that_compiled_games_use_themselves_is_refused():
    with pytest.raises(UserError, match=r"plain:Own.record: a compiled game uses this name itself; rename it in the"):
        Skeleton(GameSpec("plain:Own", WithProperty()), "Fast")


class Lazy(Plain):
    """A game with what cannot be copied: a method that calls super(), and one that needs a random generator."""

    values: ClassVar[list[object]] = [0, 1]

    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def symmetries(self):
        return super().symmetries()

    def action_name(self, action):
        return f"{self.rng.integers(2)}"


def test_a_method_that_cannot_be_copied_is_named_with_the_reason():
    notes = Skeleton(GameSpec("plain:Lazy", Lazy()), "Fast").notes
    write = "write it with self.record, the state"
    assert notes == [
        f"action_name() is not copied, since self.rng is no number, text or table of these: {write}",
        f"symmetries() is not copied, since symmetries() calls super(): {write}",
    ]


class Late(Plain):
    values: ClassVar[list[object]] = [0, 1]

    def play(self, action):
        after = super().play_unchecked(action)
        after.late = 1
        return after


class Adapted(Plain):
    values: ClassVar[list[object]] = [0, 1]
    is_adapted = True


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        (Late, "Late.late exists in some positions only: give it a value in __init__()"),
        (
            Adapted,
            "is a game of another toolkit, whose rules are not methods of a Game: write it in plain Python first",
        ),
    ],
)
def test_a_game_that_cannot_be_begun_is_refused_with_what_to_do(game: type[Game], sentence: str):
    with pytest.raises(UserError) as refusal:
        Skeleton(GameSpec("plain:Game", game()), "Fast")
    assert sentence in str(refusal.value)


def test_a_player_who_is_worked_out_becomes_a_field_that_play_sets():
    made = Skeleton(load_game("plyzero.check.template.tic_tac_toe:TicTacToe"), "Fast")
    assert [field.name for field in made.fields] == ["board", "to_play"]
    assert "# def to_play(self) -> int:" in made.texts["STUBS"]


HEAPS = {
    "set_up": """
        for heap in range(3):
            s["heaps"][heap] = 1 + (number >> 2 * heap & 3)
    """,
    "play": """
        s["heaps"][action // 2] -= action % 2 + 1
        s["to_play"] = 1 - s["to_play"]
    """,
    "outcome": """
        other = 1 - s["to_play"]
        return other if s["heaps"].sum() == 0 else ONGOING
    """,
    "legal": """
        for heap in range(3):
            mask[2 * heap] = s["heaps"][heap] >= 1
            mask[2 * heap + 1] = s["heaps"][heap] >= 2
    """,
    "observe": """
        for heap in range(3):
            planes[heap, s["heaps"][heap], 0] = 1
    """,
}
"""The rules of tests/helpers/setups.py's Heaps, as a person writes them into the skeleton."""


def test_set_ups_are_a_rule_of_the_compiled_form(tmp_path: Path):
    source = Path(__file__).parents[1] / "helpers" / "setups.py"
    (tmp_path / "mine.py").write_text(source.read_text())
    shown("new", "fast", "--from", "mine:Heaps", "--compiled", cwd=tmp_path)
    text = (tmp_path / "fast" / "fast.py").read_text()
    assert "    setups = 4294967296\n" in text
    assert "    def set_up(s, number):\n        # def set_up(self, number):\n" in text
    assert "awaits_setup" not in text
    assert '        s["heaps"] = (1, 2, 3)\n' in text or '        s["heaps"] = [1, 2, 3]\n' in text
    check = ("check", "fast.fast:Fast", "--against", "mine:Heaps", "--games", "12")
    found = reported(plyzero(*check, cwd=tmp_path, code=1).stdout)
    assert found == {"start": "right"} | dict.fromkeys(HEAPS, "not written yet")
    write(tmp_path, HEAPS | {"set_up": HEAPS["set_up"].replace("2 * heap", "heap")})
    found = reported(plyzero(*check, cwd=tmp_path, code=1).stdout)
    assert found.pop("set_up").startswith("wrong after ")
    assert set(found.values()) == {"right"}
    path = tmp_path / "fast" / "fast.py"
    path.write_text(path.read_text().replace("number >> heap", "number >> 2 * heap"))
    assert "agrees with mine:Heaps" in shown(*check, cwd=tmp_path)
    paths = os.pathsep.join(filter(None, sys.path))
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "fast", cwd=tmp_path, PYTHONPATH=paths)
