"""Games by name: installed ones, a person's own, those of other packages, and names that old runs have recorded."""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from plyzero.check.template.tic_tac_toe import TicTacToe as PlainTicTacToe
from plyzero.errors import UserError
from plyzero.rules import catalog
from plyzero.rules.catalog import GameSource, installed_games, load_game
from tests.helpers import toys
from tests.helpers.surroundings import python
from tests.helpers.toys import Counted

TEMPLATE = PlainTicTacToe.__module__

SOURCE = """
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.errors import UserError
from plyzero.rules.catalog import GameSource

class NamedTicTacToe(TicTacToe):
    def __init__(self, label: str = "none"):
        super().__init__()
        self.label = label

def game_class(name):
    if name not in ("ttt", "ttt:Small"):
        raise UserError(f"toolbox has no game {name!r}; it has ttt")
    return NamedTicTacToe

toolbox = GameSource("Toolbox", "ttt(label=hard)", game_class, lambda: {"ttt": {"label": "none"}})
"""

ENTRY_POINTS = """
[plyzero.game_sources]
broken = no_such_package:source [openspiel]
toolbox = toolbox_games:toolbox
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder with a package of somebody else that brings a source of games."""
    (tmp_path / "toolbox_games.py").write_text(SOURCE)
    about = tmp_path / "toolbox_games-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toolbox-games\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def loaded(folder: Path, *names: str) -> list[str]:
    """Return, from a process that finds the packages in `folder`, the identity of each game, or why there is none."""
    code = f"""
import json
from plyzero.errors import UserError
from plyzero.rules.catalog import load_game

def identity(name):
    try:
        return load_game(name).identity
    except UserError as error:
        return str(error)

print(json.dumps([identity(name) for name in {[*names]!r}]))
"""
    return json.loads(python("-c", code, cwd=folder, PYTHONPATH=str(folder)).stdout)


def test_a_source_of_another_package_is_found_by_the_prefix_of_a_name(installed: Path):
    named, inner, refused, broken, unknown = loaded(
        installed, "toolbox:ttt(label=hard)", "toolbox:ttt:Small", "toolbox:chess", "broken:hex", "other:ttt:Small"
    )
    assert named == "toolbox:ttt(label='hard') v1"
    assert inner == "toolbox:ttt:Small v1"
    assert refused == "toolbox has no game 'chess'; it has ttt"
    assert broken.startswith("a game broken:NAME needs no_such_package, which cannot be found here: pip install")
    assert unknown.startswith("expected a game such as connect-four, othello(size=6) or my_module:MyGame, got 'other:")


def test_the_games_of_every_source_are_listed(installed: Path):
    listed = python("-m", "plyzero", "games", cwd=installed, PYTHONPATH=str(installed)).stdout
    assert "game of Toolbox" in listed
    assert "toolbox:ttt" in listed
    assert "label='none'" in listed
    assert "azg:" not in listed
    assert "Games such as broken:NAME: a game broken:NAME needs no_such_package, which cannot be found here" in listed


def test_a_name_that_was_recorded_before_the_included_games_moved_is_read_and_stays(tmp_path: Path):
    (recorded,) = loaded(tmp_path, "games.pig:Pig(goal=50)")
    assert recorded == "games.pig:Pig(goal=50) v1"


def test_a_persons_own_module_games_wins_over_that(tmp_path: Path):
    (tmp_path / "games.py").write_text("from plyzero.games.pig import Pig\n\nclass Mine(Pig, version=7): ...\n")
    mine, other = loaded(tmp_path, "games:Mine", "games.pig:Pig")
    assert mine == "games:Mine v7"
    assert other.startswith("cannot import games.pig: ModuleNotFoundError")


def test_a_source_gets_the_name_without_prefix_and_parameters(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def game_class(name: str) -> type[Counted]:
        asked.append(name)
        raise UserError("enough")

    monkeypatch.setattr(catalog, "find_source", lambda prefix: GameSource("T", "t", game_class, dict))
    with pytest.raises(UserError, match="enough"):
        load_game("toolbox:a.b:C(n=1)")
    assert asked == ["a.b:C"]


# --- installed games, and games of a person ---


def test_every_game_that_the_project_installs_can_be_loaded():
    project = tomllib.loads((toys.ROOT / "pyproject.toml").read_text())
    assert installed_games().keys() >= project["project"]["entry-points"]["plyzero.games"].keys()
    for name, target in project["project"]["entry-points"]["plyzero.games"].items():
        assert name.replace("-", "_") == type(load_game(target).start).__module__.removeprefix("plyzero.games.")


def test_the_shipped_games_are_installed_with_a_line_about_each():
    games = installed_games()
    assert all(games.values())
    assert games["tic-tac-toe"] == "Three in a row on a 3x3 board."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("connect-four", "connect-four"),
        (" othello ", "othello"),
        ("othello()", "othello"),
        ("othello(size=8)", "othello"),
        ("othello( size = 6 )", "othello(size=6)"),
        (f"{TEMPLATE}:TicTacToe", f"{TEMPLATE}:TicTacToe"),
    ],
)
def test_a_game_has_one_canonical_name(text, name):
    found = load_game(text)
    assert found.name == name
    assert found.identity == f"{name} v1"
    assert load_game(found.name).start.key() == found.start.key()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conect4", "'conect4' is not an installed game; the closest names: connect-four"),
        ("otello", "'otello' is not an installed game; the closest names: othello"),
        ("xyzzy", "the closest names: .*connect-four.*othello.*tic-tac-toe"),
        ("othello(size=7)", r"cannot create othello\(size=7\): expected size 6 or 8, got 7"),
        ("othello(rows=6)", "othello has no parameter 'rows'; it has: size"),
        ("tic-tac-toe(size=6)", "tic-tac-toe has no parameter 'size'; it has: none"),
        ("othello(6)", r"expected parameters as in othello\(size=6\), got 'othello\(6\)'"),
        ("othello(size=", "expected a game such as"),
        ("othello(size=x)", "expected parameters as in"),
        ("", "expected a game such as connect-four"),
        ("no_such_module:Game", "there is no module 'no_such_module' in this directory; the form is MODULE:CLASS"),
        (f"{TEMPLATE}:Tictactoe", f"module '{TEMPLATE}' has no class 'Tictactoe'; its games: TicTacToe"),
        (f"{TEMPLATE}:square_names", f"{TEMPLATE}:square_names is not a subclass of plyzero.Game"),
        ("plyzero.rules.game:Game", "plyzero.rules.game:Game does not define legal_actions, observe, outcome, play"),
    ],
)
def test_a_game_that_cannot_be_found_is_refused_with_what_to_do(text, message):
    with pytest.raises(UserError, match=message):
        load_game(text)


MY_GAME = """
from tests.helpers.toys import Relay

class MyGame(Relay, version=3):
    def __init__(self, n: int = 5):
        super().__init__(n)
"""


def test_a_persons_own_game_is_found_in_the_directory_they_stand_in(tmp_path, monkeypatch):
    (tmp_path / "my_own_module.py").write_text(MY_GAME)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "my_own_module", raising=False)
    found = load_game("my_own_module:MyGame(n=7)")
    assert found.identity == "my_own_module:MyGame(n=7) v3"
    assert found.start.max_plies == 7
    assert load_game("my_own_module:MyGame(n=5)").name == "my_own_module:MyGame"


Nobody = toys.variant(toys.Plain, to_play=property())
Misshapen = toys.variant(PlainTicTacToe, observe=lambda self: np.zeros((2, 3, 4)))
Lopsided = toys.variant(PlainTicTacToe, num_actions=12)
Endless = toys.variant(PlainTicTacToe, max_plies=property())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nobody", "does not define to_play"),
        ("Misshapen", r"observe\(\) returns shape \(2, 3, 4\), but observation_shape is \(2, 3, 3\)"),
        ("Lopsided", "permutes 18 numbers of the observation and 9 actions, but the game has 18 and 12"),
        ("Endless", "does not define max_plies"),
    ],
)
def test_a_game_that_contradicts_itself_is_refused_when_it_is_loaded(name: str, message: str):
    with pytest.raises(UserError, match=message):
        load_game(f"{__name__}:{name}")
