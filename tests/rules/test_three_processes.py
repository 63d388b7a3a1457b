"""Two processes each compile one form of a game; a third one that loads both from disk plays as they did.

What the first two print is the reference: their rules were compiled afresh.
"""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plyzero.rules.catalog import load_game

ROOT = Path(__file__).resolve().parent.parent.parent

INCLUDED = {
    "breakthrough": "breakthrough(size=5)",
    "chess": "chess(chess960=True)",
    "connect-four": "connect-four(rows=4, columns=5)",
    "go(size=5)": "go(size=4)",
    "go(size=5, komi=0.5)": "go(size=4, komi=0.5)",
    "gomoku(size=7)": "gomoku(size=6, exactly_five=True)",
    "hex(size=4)": "hex(size=5)",
    "hex(size=4, swap=False)": "hex(size=5, swap=False)",
    "othello": "othello(size=6)",
    "pig(goal=30)": "pig(goal=20)",
}
"""Two forms of each included game that has parameters, which two processes compile."""

MADE = """
import numpy as np
from plyzero import CompiledGame, ONGOING, kernel

def make(most, field, recursive):
    @kernel
    def below(left, count):
        return left - count

    if recursive:
        @kernel
        def below(left, count):
            return left if count == 0 else below(left - 1, count - 1)

    @kernel
    def end_of(mask, left):
        return min(len(mask), max(left, 1), most)

    @kernel
    def mixed(left):
        total = most
LOOPS
        return total

    class Piles(CompiledGame, version=1):
        State = np.dtype([("left", field), ("taken", field, (most + 1,)), ("to_play", "i1")])
        num_actions, observation_shape, max_plies = most + 1, (1, 1, most + 1), 60

        def start(s):
            s["left"] = 20 + most

        def legal(s, mask):
            mask[: end_of(mask, s["left"])] = True

        def play(s, action):
            s["left"] = below(s["left"], action + 1)
            s["taken"][action] += most
            s["to_play"] = 1 - s["to_play"]

        def outcome(s):
            return ONGOING if s["left"] > 0 else 1 - s["to_play"]

        def observe(s, planes):
            for i in range(most + 1):
                planes[0, 0, i] = s["taken"][i] / 64 + mixed(s["left"] + i)

    return Piles

Three, Five = make(3, "i1", False), make(5, "i1", False)
Wide, WideFive = make(5, "i4", False), make(3, "i4", False)
Recursive, RecursiveFive = make(3, "i1", True), make(5, "i1", True)
RecursiveWide, Least = make(5, "i4", True), make(2, "i1", False)
""".replace(
    "LOOPS", "\n".join(f"        for i in range(left):\n            total += i % {n}" for n in range(3, 14))
)  # never inlined
FORMS = {"Three": "Five", "Wide": "WideFive", "Recursive": "RecursiveFive", "RecursiveWide": "Least"}


def lines(cache: Path, *games: str) -> dict[str, str]:
    """The output, by game, of a process that loads these games and then plays them."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache / "cache"), "PYTHONPATH": f"{ROOT}:{cache}"}
    command = [sys.executable, "-m", "tests.helpers.random_games", *games]
    done = subprocess.run(command, env=environment, cwd=cache, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(games, done.stdout.splitlines(), strict=True))


def check_three_processes(cache: Path, first: list[str], second: list[str]) -> None:
    expected = lines(cache, *first) | lines(cache, *second)
    for order in (first + second, second + first):
        assert lines(cache, *order) == expected


@pytest.mark.soak
def test_two_forms_of_every_game_compiled_by_two_processes_are_right_in_a_third(tmp_path: Path):
    check_three_processes(tmp_path, list(INCLUDED), list(INCLUDED.values()))


def test_every_included_game_with_parameters_is_played_in_two_forms():
    names = {path.stem.replace("_", "-") for path in (ROOT / "games").glob("*.py")} - {"--init--"}
    with_parameters = {name for name in names if inspect.signature(type(load_game(name).start)).parameters}
    assert with_parameters == {each.partition("(")[0] for each in INCLUDED}


@pytest.mark.slow
def test_forms_that_one_function_makes_are_right_in_a_third_process(tmp_path: Path):
    (tmp_path / "piles.py").write_text(MADE)
    check_three_processes(tmp_path, *([f"piles:{each}" for each in some] for some in (FORMS, FORMS.values())))
