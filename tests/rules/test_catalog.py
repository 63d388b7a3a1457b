"""Games by name: other packages bring sources of games and public names, and names that old runs recorded are read."""

import json
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.rules import catalog
from plyzero.rules.catalog import GameSource, load_game
from tests.helpers.surroundings import python
from tests.helpers.toys import Counted

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
