"""The sentence about a failure names the user's file if it is the cause, and only then."""

import copy
import traceback
from functools import partial

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.adapters.alpha_zero_general import AzgGame
from plyzero.ops.failures import describe_error, describe_log
from plyzero.play.players import Bot
from plyzero.rules.board import grid
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.compiled_game import CompiledGame, kernel
from plyzero.rules.game import ONGOING, Game
from plyzero.rules.user_errors import PACKAGE, with_location
from tests.helpers import toys

GAME = load_game("tests.helpers.toys:Written")
CHECK = "; to test the rules: plyzero check tests.helpers.toys:Written"


def log_of(file: str, error: str = "ValueError: no") -> str:
    """The end of a log whose last call was in `file`."""
    frames = [(f"{PACKAGE}/search/slots.py", 7, "run"), (file, 12, "play"), (copy.__file__, 9, "copy")]
    calls = "".join(f'  File "{name}", line {line}, in {where}\n    code\n    ^^^^\n' for name, line, where in frames)
    return f"12:00 INFO trainer: step 7\nTraceback (most recent call last):\n{calls}{error}\n"


@kernel
def weight(number):
    table = (1, 2, 3)
    return table[number]


@kernel
def share(number):
    return 6 // (3 - number)


class Weighs(CompiledGame):
    """A rule looks up what is not in a table, in a function that it calls."""

    State = np.dtype([("to_play", "i1"), ("number", "i1")])
    num_actions, observation_shape, max_plies = 9, (1, 1, 1), 30

    def legal(s, mask):
        mask[:] = True

    def play(s, action):
        s["number"] = weight(action)
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return ONGOING

    def observe(s, planes):
        planes[0, 0, 0] = s["number"]


class Shares(Weighs):
    """A rule divides by zero, in a function that it calls."""

    def play(s, action):
        s["number"] = share(action)
        s["to_play"] = 1 - s["to_play"]


def search_positions(game: str) -> None:
    bot = Bot.pure_mcts(load_game(f"tests.ops.test_failures:{game}"), np.random.default_rng(0), simulations=20)
    bot.search([bot.game.start])


@pytest.mark.parametrize("is_searched", [False, True])
@pytest.mark.parametrize(
    ("game", "function", "message"),
    [
        (Weighs, weight, "IndexError: tuple index out of range"),
        (Shares, share, "ZeroDivisionError: integer division by zero"),
    ],
)
def test_an_error_in_a_compiled_rule_names_file_line_and_function(game, function, message: str, *, is_searched: bool):
    name = function.py_func.__name__
    with pytest.raises((IndexError, ZeroDivisionError)) as caught:
        search_positions(game.__name__) if is_searched else game().play(3)
    code = function.py_func.__code__
    line = max(number for *_, number in code.co_lines() if number)
    assert traceback.extract_tb(caught.tb)[-1].name == name
    assert with_location(caught.value) == f"{message} (test_failures.py, line {line}, in {name})"
    found = describe_error(caught.value, load_game(f"tests.ops.test_failures:{game.__name__}"))
    assert f"line {line} ({name})" in found


@pytest.mark.parametrize("fails", [partial(grid, [[9]]), partial(load_game, "-:-")])
def test_no_message_names_a_line_of_plyzero(fails):
    with pytest.raises((IndexError, UserError)) as caught:
        fails()
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next  # without this file
    assert with_location(error) == f"{type(error).__name__}: {error}"
    sentence = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    assert describe_error(error, GAME).startswith(sentence)


def test_an_error_in_the_rules_names_file_and_line_and_how_to_test_them():
    said = describe_log(log_of(toys.__file__), 1, GAME)
    assert said == f"ValueError: no, in {toys.__file__}, line 12 (play){CHECK}"


@pytest.mark.parametrize(
    ("name", "start", "file"),
    [
        ("tests.helpers.toys:Written", GAME.start, "rules/compiled_game.py"),
        ("azg:my_module:MyGame", AzgGame._at(None, 0, 0), "kits/adapters/azg_calls.py"),
    ],
)
def test_what_refuses_an_answer_of_the_rules_says_how_to_test_them(name: str, start: Game, file: str):
    log = log_of(toys.__file__).rpartition("  File")[0].replace(toys.__file__, f"{PACKAGE}/{file}") + "TypeError: no\n"
    said = describe_log(log, 1, GameSpec(name, start))
    assert said == f"TypeError: no; to test the rules: plyzero check {name}"


@pytest.mark.parametrize(
    ("log", "code", "said"),
    [
        (log_of("/home/me/my_net.py"), 1, "ValueError: no, in /home/me/my_net.py, line 12 (play)"),
        (log_of(f"{PACKAGE}/trainer/loop.py"), 1, "ValueError: no"),
        (log_of("/opt/other/lib/python3.12/site-packages/typer/core.py"), 1, "ValueError: no"),
        (log_of(f"{PACKAGE}/files.py", "OSError: [Errno 5] Input/output error"), 1, "OSError: [Errno 5] Input/"),
        ("plyzero: the run already has a trainer\n", 2, "the run already has a trainer"),
        ("12:00 INFO step 7\n", -15, "it was killed by SIGTERM"),
        ("12:00 INFO step 7\n", -9, "it was killed by SIGKILL, most often because the machine ran out of memory"),
        ("", 1, "exit code 1, and nothing in its log"),
    ],
)
def test_the_rules_are_not_blamed_for_what_is_not_theirs(log: str, code: int, said: str):
    found = describe_log(log, code, GAME)
    assert found.startswith(said)
    assert "plyzero check" not in found
    assert "site-packages" not in found


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "it ended with exit code 0, which nobody had asked it to"),
        (-11, "it was killed by SIGSEGV (Segmentation fault)"),
        (-7, "it was killed by SIGBUS (Bus error)"),
    ],
)
def test_an_end_inside_the_rules_names_its_cause_and_how_to_find_it(code: int, said: str):
    hint = f"; if its rules did that, this says which function: {CHECK.rpartition(': ')[2]}"
    assert describe_log("12:00 INFO step 7\n", code, GAME) == said + hint
    assert describe_log("12:00 INFO step 7\n", code, load_game("tic-tac-toe")) == said


def test_rules_that_break_while_a_model_is_measured_are_named():
    with pytest.raises(ValueError, match="invalid literal") as caught:
        GAME.start.play_unchecked(5).outcome()
    line = traceback.extract_tb(caught.tb)[-1].lineno
    assert describe_error(caught.value, GAME).endswith(f"in {toys.__file__}, line {line} (outcome){CHECK}")


def test_a_log_is_shown_without_control_characters_and_not_without_end():
    said = describe_log(f"plyzero: \x1b[31m{'x' * 1000}\n", 2, GAME)
    assert said.startswith("?[31mxxx")
    assert len(said) == 400
