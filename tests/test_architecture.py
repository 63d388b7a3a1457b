"""The rules of the house: imports flow one way, and heavy ones only where they are needed."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("plyzero", "games", "selfplay", "trainer")
COMMANDS = ROOT / "plyzero" / "commands"
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield (module, at import time) for every import in a file; those for type checkers alone do not count."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and isinstance(test.test, ast.Name) and test.test.id == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    later = {
        id(node) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            yield name, id(node) not in later


def imported_packages(path: Path, *, at_import: bool = False) -> set[str]:
    return {name.partition(".")[0] for name, early in imports(path) if early or not at_import}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_imports_flow_one_way(path: Path):
    package = path.relative_to(ROOT).parts[0]
    siblings = set(PACKAGES) - {package}
    if package != "plyzero":
        siblings -= {"plyzero"}
    at_import = path.parent == COMMANDS  # they may import upward, inside command bodies
    assert not imported_packages(path, at_import=at_import) & siblings


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_heavy_packages_stay_where_they_belong(path: Path):
    found = imported_packages(path)
    assert "pickle" not in found
    if path.parent.name != "trainer":
        assert "torch" not in found
        assert "onnx" not in imported_packages(path, at_import=True)
    if path.parent != COMMANDS and path.name != "cli.py":
        assert not found & {"typer", "rich"}


def test_games_know_only_the_game_interface():
    allowed = {
        "plyzero.rules.game",
        "plyzero.rules.compiled_game",
        "plyzero.rules.symmetry",
        "plyzero.rules.text_board",
        "numpy",
    }
    for path in (ROOT / "games").glob("*.py"):
        assert {name for name, _ in imports(path)} <= allowed


def changes_files(node: ast.AST) -> bool:
    """Whether this is something with which files can be written, removed, renamed or locked."""
    methods = {"write_bytes", "write_text", "rename", "unlink", "touch", "link_to", "hardlink_to", "symlink_to"}
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner == "files":
            return False
        if owner in ("os", "shutil", "fcntl", "tempfile"):
            return node.attr in {
                *methods,
                *["open", "write", "pwrite", "replace", "remove", "link", "truncate", "ftruncate", "fsync"],
            }
        return node.attr in methods
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        modes = [
            each.value
            for each in (*node.args, *(word.value for word in node.keywords))
            if isinstance(each, ast.Constant)
        ]
        return name == "open" and any(isinstance(mode, str) and set("wax+") & set(mode) for mode in modes)
    return False


def test_only_one_module_writes_files_that_others_read():
    elsewhere = {
        path.relative_to(ROOT).as_posix(): [
            node.lineno for node in ast.walk(ast.parse(path.read_text())) if changes_files(node)
        ]
        for path in MODULES
    }
    assert [path for path, lines in elsewhere.items() if lines] == ["plyzero/ops/doctor.py", "plyzero/files.py"]


def test_a_module_is_one_idea_of_at_most_400_lines():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 400, path
        assert ast.get_docstring(ast.parse(path.read_text())) or path.stat().st_size == 0


def test_the_packages_that_are_installed_are_those_that_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    there = {
        ".".join(path.relative_to(ROOT).parts[:-1])
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert sorted(project["tool"]["setuptools"]["packages"]) == sorted(there)
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"} == set(PACKAGES)


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (["--help"], {"torch", "numba", "zarr", "onnxruntime", "onnx"}),
        (["train", "--help"], {"torch", "numba", "zarr", "onnxruntime", "onnx"}),
        (["play", "tic-tac-toe"], {"torch", "onnx", "zarr"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command: list[str], absent: set[str]):
    code = (
        "import sys, atexit; "
        "atexit.register(lambda: print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))); "
        f"sys.argv = ['plyzero', *{command}]; from plyzero.commands.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, input="quit\n", check=False)
    loaded = done.stdout.rpartition("LOADED")[2].split()
    assert "typer" in loaded
    assert not absent & set(loaded)
