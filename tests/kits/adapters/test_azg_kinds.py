"""A game of alpha-zero-general of each kind loads, and keeps the laws, or is refused in one sentence that says why."""

import re
from pathlib import Path

import numpy as np
import pytest

from plyzero.check.violations import find_violation
from plyzero.errors import UserError
from plyzero.kits.adapters import alpha_zero_general, azg_calls
from plyzero.kits.adapters.alpha_zero_general import AzgGame
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import is_chance
from tests.helpers import azg_kinds
from tests.helpers.cli import plyzero

KINDS = "azg:tests.helpers.azg_kinds:"
OBJECTS = "Objects(planes=tests.helpers.azg_kinds:planes_of)"
PLANES = r"write a function that makes an array of planes of a board, .* \(planes=module:function\)"

LOADS = {
    "Line": 1,
    "Flat": 1,
    "Lists": 1,
    "Tuples": 1,
    "Letters": 1,
    "Rows": 1,
    "Text": 1,
    "Squares": 0,
    "Parts": 1,
    "Pairs": 1,
    "Planes": 1,
    "Halves": 1,
    "TwoDigits": 1,
    "Kings": 1,
    "Pieces": 1,
    OBJECTS: 0,
    "GameMakesArrays": 0,
    "BoardMakesArrays": 0,
    "CanonicalArrays": 0,
    "Sized(n=4)": 1,
    "Named(name=short, size=3)": 1,
    "Counting": 0,
    "Rare": 1,
    "Large": 7,
    "FailingSymmetries": 0,
    "Shuffled": 0,
    "ShuffledByNumba": 0,
    "OnlyLegal": 1,
    "OldNumPy": 1,
}
"""The games that load, and the number of their symmetries."""

REFUSED = {
    "BarePieces": rf"getInitBoard returns an array of BarePiece objects, .* a method __str__\(\), or {PLANES}",
    "Objects": rf"getCanonicalForm returns a Sheet, which is no array: {PLANES}; or give Sheet a method as_array\(\)",
    "Objects(planes=tests.helpers.azg_kinds:fails)": r"fails\(\) of the board that getCanonicalForm returns raises At",
    "Objects(planes=3)": "expected the function that makes planes of a board, planes=module:function, got 3",
    "Line(max_plies=-1)": "expected a number of plies, max_plies=400, got -1",
    "Bitboards": rf"getCanonicalForm returns a board with the number \S+, expected .* below 16777216: {PLANES}",
    "Histories": "getCanonicalForm returns a board whose parts have the shapes .* at the start",
    "Sized": r"expected a value for n, such as azg:tests.helpers.azg_kinds:Sized\(n=3\)",
    "Named(size=5)": r"expected a value for name, such as azg:tests.helpers.azg_kinds:Named\(size=5, name='...'\)",
    "NoBoard": r"getNextState returns None, expected \(board, next player\) \(after the moves \d\)",
    "NoTurn": r"getNextState returns the next player None, expected 1 or -1 \(after the moves \d\)",
    "NoResult": "getGameEnded returns None, expected 0 while the game goes on, 1 if",
    "FewMoves": r"getValidMoves returns an array of shape \(4,\), expected a number, 0 or 1, for each of the 5 actions",
    "NoActions": "getActionSize returns None, expected the number of actions, a positive integer",
    "OverAtStart": "getGameEnded is not 0 for the board of getInitBoard: the game is over before the first move",
    "Raises": r"getNextState raises ValueError: the third .* \(azg_kinds.py, line \d+, .*\) after the moves \d \d \d",
    "NoArguments": r"getGameEnded raises TypeError: NoArguments.getGameEnded\(\) takes 2 positional arguments",
    "ShuffledElsewhere": "getInitBoard returns different boards .*: draw with random or np.random there",
    "EndlessMoves": "getValidMoves has not returned after 0.2 seconds in the initial position: does it loop for ever",
}
"""The games that are refused, and the sentence."""


@pytest.fixture
def short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azg_calls, "CALL_SECONDS", 0.2)


@pytest.mark.parametrize("name", LOADS)
def test_a_game_of_each_kind_keeps_the_laws(name: str):
    start = load_game(KINDS + name).start
    assert len(start.symmetries()) == LOADS[name]
    assert find_violation(lambda: load_game(KINDS + name).start, games=4) is None


@pytest.mark.usefixtures("short_calls")
@pytest.mark.parametrize("name", REFUSED)
def test_a_game_that_cannot_be_played_is_refused_in_a_sentence_that_names_the_method(name: str):
    with pytest.raises(UserError, match=f"cannot create azg:.*: {REFUSED[name]}") as refused:
        load_game(KINDS + name)
    assert not re.search(r"(alpha_zero_general|azg_(calls|boards|trial|symmetries)|catalog)\.py", str(refused.value))
    assert "\n" not in str(refused.value)


def test_boards_of_parts_are_joined_plane_by_plane():
    start = load_game(KINDS + "Pairs").start
    planes = start.play(2).observe()
    assert planes.shape == start.observation_shape
    assert planes[1].tolist() == [[0, 0, 1, 0, 0]]  # the opponent's stone
    assert [plane[0].tolist() for plane in planes if plane.all()] == [[1 / 16] * 5, [1] * 5]  # one ply; a 7


def test_letters_have_a_plane_each():
    assert load_game(KINDS + "Letters").start.play(2).observe()[:3].tolist() == [
        [[1, 1, 0, 1, 1]],
        [[0, 0, 1, 0, 0]],
        [[0, 0, 0, 0, 0]],
    ]


def test_a_number_that_grows_has_a_plane_of_its_own_also_where_no_random_game_came():
    position = load_game(KINDS + "Counting").start
    assert position.max_plies >= 200
    seen = set()
    for _ in range(200):
        seen.add(position.observe().tobytes())
        position = position.play(1)
    assert position.outcome()
    assert len(seen) == 200


def test_a_small_board_that_only_fills_bounds_the_length_and_the_name_sets_another():
    assert load_game(KINDS + "Line").start.max_plies == 10
    assert load_game(KINDS + "Line(max_plies=7)").start.max_plies == 7
    assert "games_end" in load_game(KINDS + "Counting").start.waived_laws


@pytest.mark.parametrize(("name", "piece", "shown"), [("Line", 3, (0, 1)), ("Letters", "q", (3,)), ("Kings", 3, (4,))])
def test_what_no_random_game_has_shown_is_seen_and_warned_of_once(
    name: str, piece: object, shown: tuple[int, ...], caplog: pytest.LogCaptureFixture
):
    alpha_zero_general._initial_position.cache_clear()
    for _ in range(2):
        start = load_game(KINDS + name).start
        position = start._at(start._board, 0, 0)
        position._canonical[0, 1] = piece
        planes = position.observe()
        assert [at for at, plane in enumerate(planes) if plane[0, 1]] == [*shown]
    assert caplog.text.count(f"{piece!r} stands on a board, which no random game had") == 1


@pytest.mark.parametrize(
    ("name", "figure"), [("Halves", "0.5"), ("TwoDigits", "12"), ("Letters", "x"), ("Pairs", "x"), ("Pieces", "x")]
)
def test_each_piece_is_drawn(name: str, figure: str):
    position = load_game(KINDS + name).start.play(1).play(3)
    rows = str(position).splitlines()
    assert rows[0].split()[:3] == ["1", ".", figure]
    board = position.render()
    assert [bool(cell.piece) for cell in sorted(board.cells, key=lambda cell: cell.x)] == [0, 1, 0, 1, 0]


@pytest.mark.usefixtures("short_calls")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("FailingSymmetries", r"getSymmetries raises KeyError: \d+ \(azg_kinds.py, line \d+\)"),
        ("EndlessSymmetries", "getSymmetries has not returned after 0.2 seconds"),
    ],
)
def test_symmetries_that_fail_are_told_once(name: str, says: str, caplog: pytest.LogCaptureFixture):
    alpha_zero_general._initial_position.cache_clear()
    for _ in range(2):
        assert not load_game(KINDS + name).start.symmetries()
    assert len(re.findall(f"training goes on without symmetries: {says}", caplog.text)) == 1


def test_an_initial_board_that_is_shuffled_is_a_set_up_by_its_seed():
    start = load_game(KINDS + "Shuffled").start
    assert is_chance(start)
    assert (start.setups, start.num_chances) == (1 << 31, 0)
    state = np.random.get_state()[1].tolist()
    begun = [start.play(number) for number in range(200)]
    assert np.random.get_state()[1].tolist() == state
    assert len({each.key() for each in begun}) == 30  # all orders of two stones on six squares
    assert {np.count_nonzero(each.observe()) for each in begun} == {2}
    assert start.play((1 << 31) - 1).key() == start.play((1 << 31) - 1).key()
    assert not any(map(is_chance, begun))


def test_a_law_that_the_adapter_breaks_is_not_the_users(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(AzgGame, "render", lambda self: None if self._ply else "a board")
    done = plyzero("check", KINDS + "Line", "--games", "2", code=1)
    assert "broken law boards_in_form" in done.stdout
    assert done.stderr.endswith("it is a mistake of plyzero, please report it\n")


def test_a_module_that_needs_an_old_numpy_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = (
        "import numpy as np\nfrom tests.helpers.azg_kinds import Line\nclass Old(Line):\n    kind = np.int, np.product"
    )
    (tmp_path / "old_numpy_game.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in azg_calls.OLD_NAMES:
        monkeypatch.delattr(np, name, raising=False)
    assert load_game("azg:old_numpy_game:Old").start.max_plies == 10


def test_code_that_numba_compiles_is_not_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(azg_calls, "CALL_SECONDS", 0.05)
    compiles = compile(
        "def work():\n    end = 0\n    while end < 3_000_000:\n        end += 1", f"{azg_calls.NUMBA}a.py", "exec"
    )
    names: dict[str, object] = {}
    exec(compiles, names)
    calls = azg_calls.Calls(azg_kinds.Line(), None)
    calls.game.getActionSize = lambda: names["work"]() or 5
    with calls.tried():
        assert calls.call("getActionSize") == 5
