"""docs/kits.md: its tables are those of plyzero, and its package brings a command, a player and games."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.pages import blocks

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "kits.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    _, _, after = PAGE.read_text().partition(f"| {heading} |")
    table = after.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_table_of_kits_has_all_with_their_commands_extras_and_pages():
    kits = {row[0].strip("` "): row for row in rows("kit")}
    assert kits.keys() == {path.parent.name for path in (ROOT / "plyzero" / "kits").glob("*/__init__.py")}
    installed: dict[str, set[str]] = {name: set() for name in kits}
    for command, target in PROJECT["entry-points"]["plyzero.commands"].items():
        installed[target.split(".")[2]].add(command)
    assert {name: set(re.findall(r"`(\w+)`", row[3])) for name, row in kits.items()} == installed
    named = {extra for row in kits.values() for extra in re.findall(r"`(\w+)`", row[2])}
    assert named <= PROJECT["optional-dependencies"].keys()


def test_the_table_of_entry_points_has_those_of_the_package_on_the_page():
    groups = {row[0].strip("` ") for row in rows("entry-point group")}
    (written,) = blocks(PAGE, "toml")
    assert tomllib.loads(written)["project"]["entry-points"].keys() <= groups


def write_package(folder: Path) -> None:
    """Write the files of the page's package, each of which begins with its name."""
    (game,) = blocks(ROOT / "README.md", "python")
    for block in (game, *blocks(PAGE, "toml"), *blocks(PAGE, "python")):
        first, _, _ = block.partition("\n")
        (folder / first.removeprefix("# ")).write_text(block)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the page's package is installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    write_package(source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True)
    return target


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected", "code"),
    [
        ("hello tic-tac-toe", " 3 . . .", 0),
        ("check nim", "nim v1: 20 laws hold", 0),
        ("check heap:12", "heap:12 v1: 20 laws hold", 0),
        ("check heap:x", "expected heap:NUMBER, one of 12, 15, 18, got heap:x", 2),
        ("match hello:1 random --game tic-tac-toe --games 2", "hello:1 (A) against random (B)", 0),
        ("match hello:x random --game tic-tac-toe", "expected hello:NUMBER, such as hello:1, got hello:x", 2),
        ("games", "heaps of matches", 0),
    ],
)
def test_the_package_of_the_page_brings_a_command_a_player_and_games(
    arguments: str, expected: str, code: int, installed: Path, tmp_path: Path
):
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "plyzero", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert expected in done.stdout + done.stderr


@pytest.mark.slow
def test_a_command_of_another_package_has_a_panel_of_the_help(installed: Path, tmp_path: Path):
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-m", "plyzero", "--help"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    panel = done.stdout.partition("Inspect")[2]
    assert "Print the first position of a game." in panel
