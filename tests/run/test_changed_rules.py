"""Rules that were changed without a new version: commands that continue the run or use its models report it."""

import errno
import re
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING, Game, Outcome
from plyzero.run.directory import Run
from plyzero.run.replay import CHECK_SECONDS, check_rules, find_disagreement
from plyzero.run.segments import read_segment
from tests.helpers.cli import plyzero, refused
from tests.helpers.hostile import failing
from tests.helpers.learning import add_model
from tests.helpers.runs import play_segment, small_run
from tests.helpers.toys import ROOT, Chain, watched

PLAIN = (ROOT / "plyzero/check/template/tic_tac_toe.py").read_text()
COMPILED = (ROOT / "games/tic_tac_toe.py").read_text()
PLAIN_CHANGES = {
    "winner": ("winner=self.board[a] - 1", "winner=2 - self.board[a]", "the winner: recorded player "),
    "legal": ("return [square for", "return [8 - square for", "the legal actions: only recorded ["),
    "observe": ("[board == self.to_play + 1", "[board != 0", "the observation is not the one recorded"),
    "table": ("(0, 4, 8), ", "(0, 4, 7), ", " by the rules "),
    "turn": ("(EMPTY)) % 2", "(EMPTY)) // 2 % 2", "the player to move: recorded 1, by "),
    "error": ("for a, b, c in", "for a, b in", "the rules raise ValueError: too many values"),
    "type": ("observation_dtype = bool", "", "observation_dtype: recorded bool, by the rules float32"),
}
COMPILED_CHANGES = {
    "legal": ("[square] == 0", "[square] == 0 and square != 4", "the legal actions: only recorded [4]"),
    "planes": ("(2, 3, 3)", "(3, 3, 3)", "observation_shape: recorded (2, 3, 3), by the rules (3, 3, 3)"),
}
CASES = [
    pytest.param(text, *change, id=f"{kind}, {name}")
    for kind, text, changes in (("plain", PLAIN, PLAIN_CHANGES), ("compiled", COMPILED, COMPILED_CHANGES))
    for name, change in changes.items()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("plyzero.run.replay.CHECK_SECONDS", 60.0)  # a slow machine compares as much
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # whose files tell texts of one second and length not apart
    return tmp_path


def write(folder: Path, text: str, before: str = "", after: str = "") -> None:
    """Write rules as own.py, whose winning lines are in another file, with a change of either."""
    first = text.index("WINNING_LINES = ")
    table, rest = text[first:].split("\n", 1)
    assert before in text
    rules = f"{text[:first]}from own_lines import WINNING_LINES\n{rest}"
    for name, content in (("own_lines", f"import numpy as np\n\n{table}\n"), ("own", rules)):
        (folder / f"{name}.py").write_text(content.replace(before, after) if before else content)
        sys.modules.pop(name, None)


def begin(folder: Path, text: str) -> Run:
    """Make a run of `text` with games and a model."""
    write(folder, text)
    run = small_run(folder / "r", "own:TicTacToe")
    play_segment(run, full=20)
    add_model(run)
    return run


@pytest.mark.parametrize(("text", "before", "after", "found"), CASES)
def test_changed_rules_are_refused_with_the_move_that_disagrees(
    text: str, before: str, after: str, found: str, folder: Path
):
    begin(folder, text)
    write(folder, text, before, after)
    match = ("match", "r", "random", "--game", "own:TicTacToe", "--games", "2")
    said = refused(*match, cwd=folder)
    assert "the rules of own:TicTacToe are not those that made the games in " in said
    assert found in said
    assert found.startswith("observation_") or re.search(r": game [0-9a-f]{16}, move \d+: ", said)
    assert "raise its `version` and begin a new run, or undo the change" in said
    write(folder, text)
    plyzero(*match, cwd=folder, code=0)


@pytest.mark.parametrize(
    "command",
    [
        "train own:TicTacToe --minutes 1",
        "selfplay",
        "trainer",
        "evaluator --port 0",
        "play own:TicTacToe",
        "analyze own:TicTacToe",
        "ladder own:TicTacToe --games 2",
    ],
)
def test_every_command_that_trains_or_plays_refuses_them(command: str, folder: Path):
    begin(folder, PLAIN)
    write(folder, PLAIN, *PLAIN_CHANGES["winner"][:2])
    before = sorted(folder.rglob("*"))
    said = refused(*command.split(), "--run", "r", cwd=folder)
    assert "the rules of own:TicTacToe are not those that made the games in " in said
    assert sorted(folder.rglob("*")) == before


def test_an_export_by_changed_rules_says_so_and_goes_on(folder: Path):
    begin(folder, PLAIN)
    write(folder, PLAIN, *PLAIN_CHANGES["winner"][:2])
    done = plyzero("replay", "export", "--run", "r", cwd=folder, code=0)
    assert "warning: the rules of own:TicTacToe are not those that made the games in " in done.stderr
    assert done.stdout.count("\n") > 2


def test_a_run_without_games_and_one_whose_volume_fails_are_not_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    write(folder, PLAIN)
    run = small_run(folder / "r", "own:TicTacToe")
    check_rules(run)
    path = play_segment(run, full=20)
    path.write_bytes(path.read_bytes()[:-100])
    check_rules(run)
    monkeypatch.setattr("plyzero.run.replay.list_segments", failing(errno.EIO))
    check_rules(run)


ASKED: Counter[str] = Counter()
"""The number of calls of each method of the rules."""


def count_question(_: Game, question: str, *action: int) -> None:
    ASKED[question] += 1


Asked = watched(Chain, count_question)


class Reversed(Asked):
    """Forced moves with the other winner."""

    def outcome(self) -> Outcome | None:
        found = super().outcome()
        return found and Outcome(1 - found.winner)


def test_winners_are_compared_first_and_the_rest_while_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    movers = "01" * 30
    run = small_run(tmp_path / "r", f"{__name__}:Asked(movers={movers!r})")
    games = read_segment(play_segment(run, full=60), run.game)
    clock = count(step=1 / 64)
    monkeypatch.setattr("plyzero.run.replay.thread_time", lambda: next(clock))
    ASKED.clear()
    assert find_disagreement(games, run.game.start, seconds=1.0) is None
    assert (ASKED["observe"], 60 < ASKED["play"] <= 64) == (16, True)
    assert "the winner: recorded player 0, by" in (find_disagreement(games, Reversed(movers), seconds=1.0) or "")
    clock = count(step=CHECK_SECONDS / 10)
    ASKED.clear()
    check_rules(run)
    assert 5 <= ASKED["play"] <= 10


class Unusual(Game):
    """Rules that are right and unusual: a list of NumPy integers in no order, and numbers that bytes cut off."""

    num_actions, observation_shape, observation_dtype, max_plies = 3, (2, 1, 1), np.uint8, 4

    def __init__(self, sum_: int = 0, ply: int = 0) -> None:
        self.sum, self.ply = sum_, ply

    @property
    def to_play(self) -> np.int8:
        return np.int8(self.ply % 2)

    def legal_actions(self) -> list[np.int64]:
        return [*np.array([2, 0, 1])] if self.ply < 4 else []

    def play(self, action: int) -> "Unusual":
        return Unusual(self.sum + action, self.ply + 1)

    def outcome(self) -> Outcome | None:
        return Outcome(None if self.sum % 3 == 2 else self.sum % 3) if self.ply == 4 else None

    def observe(self) -> list[list[list[float]]]:
        return [[[self.sum + 0.5]], [[self.ply / 3]]]


class Wraps(CompiledGame):
    """Rules whose numbers are wider in machine code than in plain Python, so that the two disagree on who has won."""

    State = np.dtype([("sum", "i1"), ("plies", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 3, (1, 1, 1), 3

    def legal(s, mask):
        mask[:] = True

    def play(s, action):
        s["sum"] += action
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return ONGOING if s["plies"] < 3 else (s["sum"] * 100) % 3 - 1

    def observe(s, planes):
        planes[0, 0, 0] = s["sum"]


UNUSUAL = [f"{__name__}:Unusual", f"{__name__}:Wraps", "tests.helpers.dice:Race", "tests.helpers.dice:PlainRace"]
USUAL = ["hex(size=3)", "pig(goal=10)", "openspiel:tic_tac_toe"]


@pytest.mark.parametrize("game", [*UNUSUAL, *USUAL])
def test_rules_that_have_not_changed_are_not_refused(game: str, tmp_path: Path):
    if game.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    run = small_run(tmp_path / "r", game)
    games = read_segment(play_segment(run, full=60), run.game)
    check_rules(run)
    assert find_disagreement(games, run.game.start) is None
    if isinstance(run.game.start, CompiledGame):
        found = find_disagreement(games, run.game.start.as_plain_python())
        assert "the winner: recorded" in (found or "") if game == UNUSUAL[1] else found is None
