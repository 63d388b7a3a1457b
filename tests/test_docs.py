"""The documentation: its code runs, its tables are those of the code, its commands exist."""

import ast
import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer.main

from docs.make_settings import PAGE, page
from plyzero.check.laws import POSITION_LAWS, GameTrace
from plyzero.check.template import tic_tac_toe as template
from plyzero.check.violations import ALL_LAWS, play_and_check
from plyzero.commands.cli import app
from plyzero.rules.catalog import load_game
from plyzero.run.directory import create_run
from plyzero.run.models import publish_model
from tests.helpers import toys
from tests.helpers.cli import shown
from trainer.export import untrained

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "plyzero" / "check" / "template" / "README.md",
]


def slow_by_name() -> dict[str, bool]:
    return {
        each.name: any("slow" in ast.unparse(mark) for mark in each.decorator_list)
        for path in (ROOT / "tests").rglob("test_*.py")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef)
    }


def test_every_promise_has_tests_that_exist_and_are_marked_slow_where_they_are():
    text, _, table = (ROOT / "docs" / "guarantees.md").read_text().partition("## The tests\n")
    promises = re.findall(r"^\* \*\*(\w+)\*\* ", text, re.MULTILINE)
    rows = re.findall(r"^\| (\w+) \| .*`(?:test_|tests/)", table, re.MULTILINE)
    assert len(promises) > 50
    assert rows == promises
    slow, named = slow_by_name(), re.findall(r"`(test_\w+)`(†?)", text + table)
    assert [(name, slow.get(name)) for name, mark in named if slow.get(name) != bool(mark)] == []
    assert all((ROOT / path).exists() for path in re.findall(r"`(tests/[\w./]+)`", table))


def test_readme_and_architecture_name_the_same_ten_files_that_are_alphazero():
    named = [
        re.findall(r"\(([\w./]+\.py)\)", (ROOT / path).read_text().partition("## The lines that are AlphaZero\n")[2])[
            :10
        ]
        for path in ("README.md", "docs/architecture.md")
    ]
    assert [f"../{path}" for path in named[0]] == named[1]
    assert 2000 < sum(len((ROOT / path).read_text().splitlines()) for path in named[0]) < 2600  # "about 2,300 lines"


def blocks(path: Path, language: str) -> list[str]:
    fences = re.split(r"^```(.*)\n", path.read_text(), flags=re.MULTILINE)  # text, language, block, "", text, ...
    return [block for found, block in zip(fences[1::4], fences[2::4], strict=True) if found == language]


def run(*command: str, cwd: Path) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(cwd), *filter(None, sys.path)]), "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that docs/writing-a-game.md tells to write."""
    folder = tmp_path_factory.mktemp("written")
    for block in blocks(ROOT / "docs" / "writing-a-game.md", "python"):
        (folder / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    return folder


def test_the_game_of_the_readme_is_that_of_the_guide_and_has_20_lines():
    (game,) = blocks(ROOT / "README.md", "python")
    assert game in blocks(ROOT / "docs" / "writing-a-game.md", "python")
    assert len([line for line in game.splitlines()[1:] if line.strip()]) == 20


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nim:Nim"], "nim:Nim v1: 17 laws hold"),
        (["fast_nim:FastNim", "--against", "nim:Nim"], "fast_nim:FastNim v1: 20 laws hold"),
        (["race:Race"], "race:Race v1: 19 laws hold"),
        (["fast_race:FastRace", "--against", "race:Race"], "fast_race:FastRace v1: 22 laws hold"),
    ],
)
def test_the_games_of_the_guide_keep_the_laws_and_agree(arguments: list[str], expected: str, written: Path):
    assert expected in shown("check", *arguments, "--games", "10", cwd=written)


def test_the_dice_of_the_guide_are_rolled(written: Path):
    code = (
        "import numpy as np, plyzero, race; rng, position = np.random.default_rng(0), race.Race();"
        "position = plyzero.played(plyzero.rolled(position, rng), 1, rng); print(position.to_play, position.chances())"
    )
    assert run("-c", code, cwd=written) == "1 ()\n"


def test_the_symmetries_of_the_guide_are_permutations(written: Path):
    code = "import moved; print([sorted(s.actions) == list(range(48)) for s in moved.symmetries()])"
    assert run("-c", code, cwd=written) == f"{[True] * 7}\n"


def test_the_tests_of_the_guide_pass(written: Path):
    assert "22 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nim.py", cwd=written)


def test_the_guide_lists_every_law_in_its_own_words():
    text = (ROOT / "docs" / "writing-a-game.md").read_text()
    _, _, laws = text.partition("## The laws")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", laws.partition("\n## ")[0], re.MULTILINE)
    assert rows == [(law.name, law.text) for law in ALL_LAWS]


def test_the_broken_law_of_the_guide_is_what_check_says():
    class TicTacToe(template.TicTacToe):
        def legal_actions(self):
            return [square for square in range(9) if self.board[square] == 0]

    (example,) = (block for block in blocks(ROOT / "docs" / "writing-a-game.md", "") if block.startswith("broken law"))
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
    (code,) = (block for block in blocks(ROOT / "docs" / "playing.md", "python") if not block.startswith("# "))
    (tmp_path / "script.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("script.py")
    assert re.match(r"-?0\.\d+ \{0: \d+, 1: \d+,", capsys.readouterr().out)


def project_games() -> dict[str, str]:
    """Return the classes of the included games, MODULE:CLASS, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return project["project"]["entry-points"]["plyzero.games"]


def test_the_agents_of_the_guide_play(tmp_path: Path):
    for block in blocks(ROOT / "docs" / "playing.md", "python"):
        if block.startswith("# "):
            (tmp_path / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    for match in (
        ("pairs:Pairs", "greedy", "--game", "tic-tac-toe"),
        ("corners:Corners(depth=2)", "alphabeta:2", "--game", "othello(size=6)"),
    ):
        played = shown("match", *match, "--games", "4", cwd=tmp_path)
        assert "4 different games" in played
        assert "forfeit" not in played


def test_the_page_of_games_has_all_of_them_with_their_sizes():
    text = (ROOT / "docs" / "games.md").read_text()
    row = r"^\| \[`([\w-]+)`\]\(#([\w-]+)\) \|(.*)\| (\d+) \| ([\d x]+) \| (\d+) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert {name for name, *_ in rows} == project_games().keys()
    for name, heading, parameters, actions, shape, plies in rows:
        start = load_game(project_games()[name]).start
        defaults = [f"`{each.name}={each.default!r}`" for each in inspect.signature(type(start)).parameters.values()]
        assert (parameters.strip(), f"## {heading}\n" in text) == (", ".join(defaults), True)
        assert (int(actions), shape, int(plies)) == (
            start.num_actions,
            " x ".join(map(str, start.observation_shape)),
            start.max_plies,
        )


@pytest.mark.parametrize("picture", blocks(ROOT / "docs" / "games.md", ""))
def test_the_pictures_of_the_page_of_games_are_what_the_games_draw(picture: str):
    line, _, drawn = picture.partition("\n\n")
    name, parameters, moves = re.fullmatch(r"([\w-]+)(\(.*\))?: (.*)", line).groups()
    position = load_game(project_games()[name] + (parameters or "")).start.as_plain_python()
    assert f"{toys.after(position, moves)}\n" == drawn


def test_the_zarr_of_the_formats_page_is_python():
    for block in blocks(ROOT / "docs" / "formats.md", "python"):
        ast.parse(block)


def commands() -> list[tuple[str, str]]:
    found = []
    for path in PAGES:
        for block in blocks(path, "sh"):
            for line in block.splitlines():
                for part in re.split(r"&&|\||>", line.partition("#")[0]):
                    words = part.strip().removesuffix("&").strip()
                    words = re.sub(r"^(\w+=\S+ )+", "", words)
                    if words.startswith("plyzero "):
                        found.append((path.name, words))
    return found


@pytest.mark.parametrize(("path", "words"), commands())
def test_every_command_in_the_documentation_can_be_parsed(path: str, words: str):
    group = typer.main.get_command(app)
    arguments = shlex.split(words)[1:]
    name, command, rest = group.resolve_command(
        group.make_context("plyzero", list(arguments), resilient_parsing=True), arguments
    )
    if name == "replay":
        name, command, rest = command.resolve_command(command.make_context(name, rest, resilient_parsing=True), rest)
    command.make_context(name, rest)


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
    paths = [
        *ROOT.glob("*.*"),
        ROOT / "Dockerfile",
        *(path for folder in folders for path in (ROOT / folder).rglob("*.*")),
    ]
    kinds = {".py", ".md", ".toml", ".yaml", ".env", ".sbatch", ""}
    text = "".join(path.read_text() for path in paths if path.is_file() and path.suffix in kinds)
    named = re.findall(r"docs/[a-z-]+\.md", text)
    assert len(named) > 50
    assert [path for path in sorted(set(named)) if not (ROOT / path).exists()] == []
