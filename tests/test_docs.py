"""The documentation: its code runs, its tables are those of the code, its commands exist."""

import ast
import inspect
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.make_settings import PAGE, page
from plyzero.check.laws import POSITION_LAWS, GameTrace
from plyzero.check.template import tic_tac_toe as template
from plyzero.check.violations import play_and_check
from plyzero.rules.catalog import load_game
from plyzero.run.directory import create_run
from plyzero.run.models import publish_model
from plyzero.trainer.export import untrained
from tests.helpers import toys
from tests.helpers.cli import parsed, shown
from tests.helpers.pages import blocks
from tests.helpers.surroundings import python

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted(DOCS.glob("*.md"))]
PAGES += [ROOT / "plyzero" / "check" / "template" / "README.md", ROOT / "tests" / "promises.md"]
GAMES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["plyzero.games"]
"""The included games: name -> MODULE:CLASS."""


def slow_by_name() -> dict[str, bool]:
    return {
        each.name: any("slow" in ast.unparse(mark) for mark in each.decorator_list)
        for path in (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "plyzero" / "testing").glob("*_contract.py"))
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef)
    }


def test_every_promise_has_tests_and_their_slow_ones_are_marked():
    text, table = (DOCS / "guarantees.md").read_text(), (ROOT / "tests" / "promises.md").read_text()
    promises = re.findall(r"^\* \*\*(\w+)\*\* ", text, re.MULTILINE)
    rows = re.findall(r"^\| (\w+) \| .*`(?:test_|tests/)", table, re.MULTILINE)
    assert len(promises) > 50
    assert rows == promises
    slow, named = slow_by_name(), re.findall(r"`(test_\w+)`(†?)", text + table)
    assert [(name, slow.get(name)) for name, mark in named if slow.get(name) != bool(mark)] == []
    assert all((ROOT / path).exists() for path in re.findall(r"`(tests/[\w./]+)`", table))


def test_no_file_installs_plyzero_from_a_package_registry():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = {name: (ROOT / name).read_bytes().decode("utf-8", "replace") for name in files if (ROOT / name).is_file()}
    extras = {name for name, text in texts.items() if re.search(r"\bplyzero\[[a-z]", text)}
    assert extras <= {"CHANGELOG.md", "pyproject.toml"}
    assert [name for name, text in texts.items() if re.search(r"pip3? install(?: -\S+)* ['\"]?plyzero\b", text)] == []


def test_readme_and_architecture_name_the_same_ten_files():
    def named(page: Path) -> list[Path]:
        _, _, section = page.read_text().partition("## The lines that are AlphaZero\n")
        return [(page.parent / path).resolve() for path in re.findall(r"\(([\w./]+\.py)\)", section)[:10]]

    found = named(ROOT / "README.md")
    assert found == named(DOCS / "architecture.md")
    lines = sum(len(path.read_text().splitlines()) for path in found)
    assert f"about {round(lines, -2):,} lines" in (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the guides ask for."""
    folder = tmp_path_factory.mktemp("written")
    for path in (ROOT / "README.md", DOCS / "writing-a-game.md", DOCS / "compiled-games.md", DOCS / "playing.md"):
        for block in blocks(path, "python"):
            if block.startswith("# "):
                (folder / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    for name in ("race.py", "corners.py"):
        shutil.copy(ROOT / "examples" / name, folder)
    return folder


def test_the_game_of_the_readme_has_20_lines():
    (game,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in game.splitlines()[1:] if line.strip()]) == 20


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("check nim:Nim", "nim:Nim v1: 20 laws hold"),
        ("check fast_nim:FastNim --against nim:Nim", "fast_nim:FastNim v1: 24 laws hold"),
        ("check race:Race", "race:Race v1: 21 laws hold"),
        ("match pairs:Pairs greedy --game tic-tac-toe", "4 different games"),
        ("match corners:Corners(depth=2) alphabeta:2 --game othello(size=6)", "4 different games"),
    ],
)
def test_the_games_of_the_guide_keep_the_laws_and_its_players_play(arguments: str, expected: str, written: Path):
    printed = shown(*arguments.split(), "--games", "4", cwd=written)
    assert expected in printed
    assert "forfeit" not in printed


DICE = (
    "import numpy as np, plyzero, race; rng, position = np.random.default_rng(0), race.Race();"
    "position = plyzero.played(plyzero.rolled(position, rng), 1, rng); print(position.to_play, position.chances())"
)
PERMUTATIONS = "import moved; print([sorted(s.actions) == list(range(48)) for s in moved.symmetries()])"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["-c", DICE], "1 ()\n"),
        (["-c", PERMUTATIONS], f"{[True] * 7}\n"),
        (["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nim.py"], "32 passed"),
    ],
)
def test_the_other_code_of_the_guide_runs(command: list[str], expected: str, written: Path):
    paths = os.pathsep.join([str(written), *filter(None, sys.path)])
    done = python(*command, cwd=written, PYTHONPATH=paths, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # which saves a second
    assert expected in done.stdout


def test_the_broken_law_of_the_guide_is_what_check_says():
    class TicTacToe(template.TicTacToe):
        def legal_actions(self):
            return [square for square in range(9) if self.board[square] == 0]

    (example,) = (block for block in blocks(DOCS / "writing-a-game.md", "") if block.startswith("broken law"))
    trace, position = GameTrace(TicTacToe), TicTacToe()
    found, _ = play_and_check(trace, POSITION_LAWS, None)
    for name in re.search(r"^moves: (.*)$", example, re.MULTILINE)[1].split():
        assert found is None
        action = position.parse_action(name)
        found, _ = play_and_check(trace, POSITION_LAWS, action)
        position = position.play(action)
    assert f"{found}\n" == example


def test_the_page_of_settings_is_made_from_the_settings(update_golden: bool):
    if update_golden:
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "run python docs/make_settings.py"


def test_the_python_api_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    made = create_run(tmp_path / "runs" / "c4", load_game("connect-four"), options=["network.channels=8"])
    publish_model(made.models, untrained(made), fence=1, step=1096)
    (code,) = (block for block in blocks(DOCS / "playing.md", "python") if "Bot.load" in block)
    (tmp_path / "script.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("script.py")
    assert re.match(r"-?0\.\d+ \{0: \d+, 1: \d+,", capsys.readouterr().out)


def test_the_page_of_games_has_all_of_them_with_their_sizes():
    text = (DOCS / "games.md").read_text()
    row = r"^\| \[`([\w-]+)`\]\(#([\w-]+)\) \|(.*)\| (\d+) \| ([\d x]+) \| (\d+) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert {name for name, *_ in rows} == GAMES.keys()
    for name, heading, parameters, actions, shape, plies in rows:
        start = load_game(GAMES[name]).start
        defaults = [f"`{each.name}={each.default!r}`" for each in inspect.signature(type(start)).parameters.values()]
        assert (parameters.strip(), f"## {heading}\n" in text) == (", ".join(defaults), True)
        assert (int(actions), int(plies)) == (start.num_actions, start.max_plies)
        assert shape == " x ".join(map(str, start.observation_shape))


@pytest.mark.parametrize("picture", blocks(DOCS / "games.md", ""))
def test_the_pictures_of_the_page_of_games_are_what_the_games_draw(picture: str):
    line, _, drawn = picture.partition("\n\n")
    name, parameters, moves = re.fullmatch(r"([\w-]+)(\(.*\))?: (.*)", line).groups()
    position = load_game(GAMES[name] + (parameters or "")).start.as_plain_python()
    assert f"{toys.after(position, moves)}\n" == drawn


def commands() -> list[tuple[str, str]]:
    """Return the plyzero commands of all pages, without variables before them: name of the page, command."""
    scripts = [(path.name, block.replace("\\\n", " ")) for path in PAGES for block in blocks(path, "sh")]
    lines = [(name, line) for name, script in scripts for line in script.splitlines()]
    parts = [(name, part) for name, line in lines for part in re.split(r"&&|\||>(?!=)", line.partition("#")[0])]
    found = [(name, re.sub(r"^(\w+=\S+ )+", "", part.strip().removesuffix("&").strip())) for name, part in parts]
    return [(name, words) for name, words in found if words.startswith("plyzero ")]


@pytest.mark.parametrize(("path", "words"), commands())
def test_every_command_in_the_documentation_can_be_parsed(path: str, words: str):
    parsed(shlex.split(words)[1:])


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_page_and_heading_that_is_linked_is_there(path: Path):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", path.read_text()):
        linked = path.parent / target if target else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def test_every_page_that_a_file_of_the_project_names_is_there():
    folders = ("plyzero", "games", "selfplay", "trainer", "experiments", "deploy", "benchmarks", "examples", "tests")
    paths = [*ROOT.glob("*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    kinds = {".py", ".md", ".toml", ".yaml", ".env", ".example", ".sbatch", ""}
    text = "".join(path.read_text(errors="ignore") for path in paths if path.is_file() and path.suffix in kinds)
    named = re.findall(r"docs/[a-z-]+\.md", text)
    assert len(named) > 50
    assert [path for path in sorted(set(named)) if not (ROOT / path).exists()] == []
