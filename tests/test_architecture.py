"""Layers, sizes and names: imports go down, heavy packages stay where they belong, every folder lists its modules."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers.surroundings import python

ROOT = Path(__file__).parent.parent
LINKED = ("games", "selfplay", "trainer")  # at the top of the repository, and linked into plyzero
TEMPLATE = ROOT / "plyzero" / "check" / "template"
MAX_LEVELS = 14
MAX_MODULES = 16  # in a folder

LAYERS = (
    {"plyzero"},  # errors, extensions, files, lines, machine, settings, threads, volumes ...
    {"plyzero.rules"},
    {"plyzero.run", "plyzero.search", "plyzero.games"},
    {"plyzero.network"},
    {"plyzero.play"},
    {"plyzero.check", "plyzero.ops"},
    {"plyzero.selfplay", "plyzero.trainer"},
    {"plyzero.commands", "plyzero.testing"},
)
"""Folders of the core. Each imports from the layers before its own and never from another folder of its own layer."""

KITS = {
    "adapters": set(),
    "browser": {"web"},
    "engines": set(),
    "cluster": set(),
    "imitation": {"engines"},
    "arena": set(),
    "review": {"engines"},
    "web": {"arena", "engines", "review"},
    "experiments": {"arena", "engines"},
}
"""Kits, and the other kits that each of them imports. All import the core, and the core imports none."""

PARTS = {
    "plyzero.trainer.diagnosis": "plyzero.trainer",
    "plyzero.kits.experiments.tasks": "plyzero.kits.experiments",
    "plyzero.kits.engines.programs": "plyzero.kits.engines",
}
"""Folders within a folder, which follow its rule."""


UNPICKLE = ("plyzero.rules.machine_code", "plyzero.rules.user_modules", "plyzero.ops.training")
"""Modules that read pickles, from files that are not on the volume."""


@dataclass(frozen=True)
class Import:
    """One import statement's module: `"plyzero.rules.game"`, also where a name or a submodule is taken out of it."""

    module: str
    at_import: bool  # outside of functions
    for_types: bool  # below `if TYPE_CHECKING:`


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = ("plyzero",) if parts[0] in LINKED else ()
    return ".".join([*package, *(parts[:-1] if parts[-1] == "__init__" else parts)])


MODULES = {
    module_name(path): path
    for package in ("plyzero", *LINKED)
    for path in sorted((ROOT / package).rglob("*.py"))
    if TEMPLATE not in path.parents
}
"""Our modules by name, without the template, which is a project of its own."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    return tuple(find_imports(tree_of(path)))


def find_imports(node: ast.AST, *, at_import: bool = True, for_types: bool = False) -> Iterator[Import]:
    """Yield the imports in `node`, of which it is known whether it is in a function and below TYPE_CHECKING."""
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, at_import, for_types) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: a relative import"
        base = node.module or ""
        for name in (f"{base}.{alias.name}" for alias in node.names if not alias.name.startswith("__")):
            public = base == "plyzero"  # `from plyzero import Bot` stands for a module of some folder
            yield Import(name if name in MODULES or public else base, at_import, for_types)
    elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for each in (*node.body, *node.orelse):
            yield from find_imports(each, at_import=at_import, for_types=for_types or each in node.body)
    elif not isinstance(node, ast.expr):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for each in ast.iter_child_nodes(node):
            yield from find_imports(each, at_import=at_import and not is_function, for_types=for_types)


def ours(module: str) -> bool:
    return module.partition(".")[0] in ("plyzero", *LINKED)


def folder_of(module: str) -> str:
    """Return `"plyzero.rules"` for `"plyzero.rules.game"`, `"plyzero"` for `"plyzero.errors"`."""
    path = MODULES.get(module)
    folder = module if path is None or path.name == "__init__.py" else module.rpartition(".")[0]
    return PARTS.get(folder, folder)


def layer_of(folder: str) -> int:
    """The layer of a folder of the core."""
    return next(number for number, folders in enumerate(LAYERS) if folder in folders)


def kit_of(folder: str) -> str:
    """Return the kit to which a folder belongs; "" for one of the core."""
    return folder.removeprefix("plyzero.kits.") if folder.startswith("plyzero.kits.") else ""


def may_import(folder: str, found: Import) -> bool:
    """Return whether a module of `folder` may import what it imports."""
    other = folder_of(found.module)
    if other == folder or not ours(found.module) or found.module in ("plyzero.errors", "plyzero.extensions"):
        return True
    if kit_of(other):
        return kit_of(other) in KITS.get(kit_of(folder), ())
    if kit_of(folder):
        return other != "plyzero.games"
    if folder == "plyzero.games":
        return other == "plyzero.rules"
    if folder == "plyzero.rules":
        return False
    if other in ("plyzero.selfplay", "plyzero.trainer") and folder == "plyzero.commands":
        return found.for_types or not found.at_import  # a command starts the roles, and imports them inside its body
    return other != "plyzero.games" and layer_of(other) < layer_of(folder)


def test_imports_go_down_the_core_imports_no_kit_and_roles_never_import_each_other():
    wrong = [
        f"{name} imports {found.module}"
        for name, path in MODULES.items()
        if name not in ("plyzero", "plyzero.__main__")  # the public names and the command, which stand above all
        for found in imports_of(path)
        if not may_import(folder_of(name), found)
    ]
    assert wrong == []


def imported_by(module: str, *, at_import: bool) -> set[str]:
    """Our modules that a module imports: all, in functions and for types too, or those that it loads at once."""
    found = (each for each in imports_of(MODULES[module]) if not at_import or (each.at_import and not each.for_types))
    return {each.module for each in found if each.module in MODULES} - {module, "plyzero"}


def test_imports_have_no_circle_be_they_in_functions_or_for_types():
    graph = {module: imported_by(module, at_import=False) for module in MODULES if module != "plyzero"}
    TopologicalSorter(graph).prepare()


def test_imports_have_few_levels():
    levels: dict[str, int] = {}
    graph = {module: imported_by(module, at_import=True) for module in MODULES}
    for module in TopologicalSorter(graph).static_order():
        levels[module] = 1 + max((levels[each] for each in graph[module]), default=0)
    highest = max(levels, key=lambda module: levels[module])
    assert levels[highest] <= MAX_LEVELS, f"{highest} stands on level {levels[highest]}"


COMMANDS_OF_KITS = (
    *(f"plyzero.kits.{kit}.commands" for kit in KITS),
    "plyzero.kits.web.drawing",
    "plyzero.kits.web.review_files",
)


def test_heavy_packages_stay_where_they_belong():
    for name, path in MODULES.items():
        packages = {each.module.partition(".")[0] for each in imports_of(path)}
        loaded = {each.module.partition(".")[0] for each in imports_of(path) if each.at_import and not each.for_types}
        folder = folder_of(name)
        unpickled = packages & {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
        assert not unpickled or name in UNPICKLE, name
        trains = folder in ("plyzero.trainer", "plyzero.kits.imitation") or name == "plyzero.kits.cluster.data_parallel"
        assert trains or not packages & {"torch"}, name
        assert trains or name == "plyzero.network.onnx_graph" or not loaded & {"onnx"}, name
        is_command = folder == "plyzero.commands" or name in COMMANDS_OF_KITS
        assert is_command or not packages & {"typer", "rich"}, name
        assert folder == "plyzero.testing" or not packages & {"pytest"}, name
        assert folder == "plyzero.kits.cluster" or not packages & {"grpc"}, name
        assert name == "plyzero.kits.cluster.bucket" or not packages & {"obstore"}, name
        assert not loaded & {"obstore"}, name
        assert name == "plyzero.kits.adapters.openspiel" or not packages & {"pyspiel", "open_spiel"}, name
        at_import = {each.module for each in imports_of(path) if each.at_import}
        assert "plyzero.kits.adapters.openspiel" not in at_import, name


def test_a_run_of_a_plain_python_game_is_opened_without_numba(tmp_path: Path):
    """Nor is the search imported."""
    code = f"""
import sys
from pathlib import Path
from plyzero.rules.catalog import load_game
from plyzero.run.directory import create_run, open_run

run = Path({str(tmp_path / "r")!r})
create_run(run, load_game("tic_tac_toe:TicTacToe"))
assert open_run(run).game.start.max_plies == 9
print(*(name for name in sys.modules if name.partition(".")[0] == "numba" or name.startswith("plyzero.search")))
"""
    done = python("-B", "-c", code, cwd=TEMPLATE)
    assert (done.stdout, done.stderr) == ("\n", "")


def changes_files(node: ast.AST) -> bool:
    """Tell whether this node writes, removes, renames or locks files."""
    methods = {"write_bytes", "write_text", "rename", "unlink", "touch", "link_to", "hardlink_to", "symlink_to"}
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner == "files":
            return False
        if owner in ("os", "shutil", "fcntl", "tempfile"):
            calls = {"open", "write", "pwrite", "replace", "remove", "link", "truncate", "ftruncate", "fsync"}
            return node.attr in methods | calls
        return node.attr in methods
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        arguments = (*node.args, *(word.value for word in node.keywords))
        modes = [each.value for each in arguments if isinstance(each, ast.Constant)]
        return name == "open" and any(isinstance(mode, str) and set("wax+") & set(mode) for mode in modes)
    return False


def test_three_modules_write_files():
    writers = {name for name, path in MODULES.items() if any(map(changes_files, ast.walk(tree_of(path))))}
    assert writers == {"plyzero.files", "plyzero.ops.doctor", "plyzero.rules.machine_code"}


def test_a_module_has_a_docstring():
    for name, path in MODULES.items():
        assert ast.get_docstring(tree_of(path)), name


FOLDERS = [path.parent for path in MODULES.values() if path.name == "__init__.py"]


@pytest.mark.parametrize("folder", FOLDERS, ids=module_name)
def test_a_folder_lists_its_modules_one_line_each(folder: Path):
    text = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
    lines = [line.partition("  ") for line in text.splitlines() if "  " in line]
    listed = [name for names, _, _ in lines for name in names.split(", ")]
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert sorted(listed) == sorted(files | folders)
    assert len(files) <= MAX_MODULES
    assert all(about.strip() for _, _, about in lines)


def test_no_two_modules_share_a_name_except_a_command_and_what_it_calls():
    is_command = {name for name in MODULES if folder_of(name) == "plyzero.commands" or name in COMMANDS_OF_KITS}
    names = Counter(path.name for name, path in MODULES.items() if name not in is_command)
    assert [name for name, count in names.items() if count > 1 and name != "__init__.py"] == []
    assert [name for name, path in MODULES.items() if path.name == "game.py"] == ["plyzero.rules.game"]


def test_only_plyzero_is_installed_and_what_lies_beside_it_is_linked_into_it():
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"} == {"plyzero", *LINKED}
    for name in LINKED:
        assert (ROOT / "plyzero" / name).readlink() == Path("..", name)
    names = {each.module.partition(".")[0] for path in everything() for each in imports_of(path)}
    assert not names & {*LINKED, "experiments"}


def everything() -> Iterator[Path]:
    """Yield all Python files of the repository in which one of our modules may be imported."""
    yield from MODULES.values()
    for place in ("tests", "benchmarks", "examples", "docs", "container"):
        yield from (ROOT / place).rglob("*.py")


def test_a_kit_has_its_own_folder_of_tests_and_is_in_the_table():
    assert {path.parent.name for path in (ROOT / "plyzero" / "kits").glob("*/__init__.py")} == set(KITS)
    assert {path.parent.name for path in (ROOT / "tests" / "kits").glob("*/__init__.py")} == set(KITS)


def test_tests_lie_where_their_code_lies_and_nothing_imports_them():
    folders = {path.name for path in FOLDERS}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        *folder, name = path.relative_to(ROOT / "tests").parts
        if folder != ["helpers"]:
            assert name.startswith("test_") or name in ("__init__.py", "conftest.py"), path
            assert len(folder) <= (2 if folder[:1] == ["kits"] else 1), path
            assert {*folder} <= folders, path
    for path in everything():
        for found in imports_of(path):
            assert ".test_" not in f".{found.module}", f"{path} imports from {found.module}"


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (["--help"], {"torch", "numba", "zarr", "onnxruntime", "onnx", "pyspiel"}),
        (["play", "tic-tac-toe"], {"torch", "zarr", "pyspiel"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command: list[str], absent: set[str]):
    code = (
        "import sys, atexit; "
        "atexit.register(lambda: print('LOADED', *sorted({name.partition('.')[0] for name in [*sys.modules]}))); "
        f"sys.argv = ['plyzero', *{command}]; from plyzero.commands.cli import main; main()"
    )
    loaded = python("-c", code, text="b2\nquit\n").stdout.rpartition("LOADED")[2].split()
    assert "typer" in loaded
    assert not absent & set(loaded)


def test_every_thread_is_started_by_plyzero_threads():
    """`threading` is for locks and events everywhere, and for threads there alone: none ends without a report."""

    def starts_threads(path: Path) -> bool:
        calls = [node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        return any(ast.unparse(call) in ("threading.Thread", "threading.Timer") for call in calls)

    assert [name for name, path in MODULES.items() if starts_threads(path)] == []
