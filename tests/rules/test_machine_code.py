"""Machine code on disk: a second process compiles nothing, and none ever runs code of rules that have changed since."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCPUCodegen

from plyzero.rules import machine_code
from plyzero.rules.compiled_game import kernel
from plyzero.rules.machine_code import UnknownContentError, describe, keep_rule
from tests.helpers.compiling import COUNT_COMPILED

GAME = """
import numpy as np
from plyzero import CompiledGame, ONGOING
import tables
from helpers import taken

class Piles(CompiledGame, version=1):
    State = np.dtype([("left", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 3, (1, 1, 1), 30

    def start(s):
        s["left"] = 20

    def legal(s, mask):
        mask[: min(s["left"], 3)] = True

    def play(s, action):
        s["left"] -= taken(action)
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return ONGOING if s["left"] > tables.LAST else 1 - s["to_play"]

    def observe(s, planes):
        planes[0, 0, 0] = s["left"] * tables.WEIGHTS[0]
"""
HELPERS = "from plyzero import kernel\n@kernel\ndef taken(action):\n    return action + 1\n"
TABLES = "import numpy as np\nLAST = 0\nWEIGHTS = np.array([1.0, 2.0], np.float32)\n"
PLAYED = f"""{COUNT_COMPILED}from piles import Piles
after = Piles().play(1)
print(len(compiled), after.record["left"], after.outcome(), after.observe()[0, 0, 0] // 1)
"""


def processes(directory: Path, count: int = 1, program: str = PLAYED) -> list[str]:
    """Return the output of `count` processes that play the game in `directory` at the same time."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(directory / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", program], cwd=directory, env=environment, stdout=-1, text=True)
        for _ in range(count)
    ]
    return [each.communicate()[0].strip() for each in started]


def write_files(directory: Path, piles: str = GAME, helpers: str = HELPERS, tables: str = TABLES) -> None:
    for name, text in (("piles", piles), ("helpers", helpers), ("tables", tables)):
        (directory / f"{name}.py").write_text(text)


@pytest.mark.slow
def test_rules_are_compiled_once_by_two_processes_and_again_when_anything_has_changed(tmp_path: Path):
    write_files(tmp_path)
    both = [each.split() for each in processes(tmp_path, 2)]
    assert [each[1:] for each in both] == [["18", "None", "18.0"]] * 2
    assert processes(tmp_path) == ["0 18 None 18.0"]
    shutil.rmtree(tmp_path / "cache")
    assert processes(tmp_path) == [f"{sum(int(each[0]) for each in both)} 18 None 18.0"]
    write_files(tmp_path, helpers=HELPERS.replace("action + 1", "action + 2"))
    assert processes(tmp_path)[0].split()[1] == "17"
    write_files(tmp_path, tables=TABLES.replace("LAST = 0", "LAST = 18"))
    assert processes(tmp_path)[0].split()[1:3] == ["18", "Outcome(winner=0)"]
    write_files(tmp_path, tables=TABLES.replace("[1.0,", "[3.0,"))
    assert processes(tmp_path)[0].endswith(" 54.0")
    write_files(tmp_path)
    assert processes(tmp_path) == ["0 18 None 18.0"]  # the code of these rules is still there


class Colour(IntEnum):
    RED = 1


class Pair(NamedTuple):
    one: int
    two: int


def function_of(text: str, **names: Any) -> FunctionType:
    exec(text, names)
    return names["f"]


def module_of(**names: Any) -> ModuleType:
    module = ModuleType("tables")
    module.__dict__.update(names)
    return module


def functions_of(*texts: str) -> list[FunctionType]:
    return [function_of(text) for text in texts]


def functions_with(*values: Any, text: str = "def f(): return x") -> list[FunctionType]:
    """Return functions of one text in which x is each of `values`."""
    return [function_of(text, x=value) for value in values]


ONE, TWO = functions_of("def f(): return 1", "def f(): return 2")
PAIRS = {
    "a constant in the code": (ONE, TWO),
    "the type of a constant": functions_of("def f(): return 1", "def f(): return 1.0"),
    "an operator": functions_of("def f(a): return a + a", "def f(a): return a * a"),
    "the module, which may have moved": [function_of("def f(): return 1", __name__=name) for name in ("a", "b.a")],
    "a default": functions_of("def f(a=1): return a", "def f(a=2): return a"),
    "a number": functions_with(1, 2),
    "a number inside a comprehension": functions_with(1, 2, text="def f(): return [x for _ in range(3)]"),
    "an entry of an array": functions_with(np.arange(3), 2 * np.arange(3)),
    "the type of an array": functions_with(np.zeros(1, "i4"), np.zeros(1, "f4")),
    "the shape of an array": functions_with(np.zeros((2, 3)), np.zeros((3, 2))),
    "an entry of a tuple": functions_with((1, (2, 1)), (1, (2, 2))),
    "a module's table": functions_with(module_of(y=1), module_of(y=2), text="def f(): return x.y"),
    "a function in a module": functions_with(module_of(g=ONE), module_of(g=TWO), text="def f(): return x.g()"),
    "a kernel of a kernel": functions_with(
        *map(kernel, functions_with(kernel(ONE), kernel(TWO), text="def f(): return x()")), text="def f(): return x()"
    ),
    "an option of a kernel": functions_with(kernel(ONE), kernel(fastmath=True)(ONE), text="def f(): return x()"),
    "a closure": functions_with(1, 2, text="def outer(y):\n def f(): return y\n return f\nf = outer(x)"),
    "the member of an enum": functions_with(Colour.RED, 1),
    "a named tuple": functions_with(Pair(1, 2), (1, 2)),
    "a dtype": functions_with(np.dtype("i1"), np.dtype("i2")),
}


@pytest.mark.parametrize("what", PAIRS)
def test_whatever_compiled_code_depends_on_is_described(what: str):
    one, other = PAIRS[what]
    assert describe(one) == describe(one)
    assert describe(one) != describe(other)


def test_a_function_that_is_reached_twice_is_described_once():
    assert "again" in repr(describe(function_of("def f(): return g() + h()\ndef g(): return h()\ndef h(): return 1")))


def test_of_functions_that_call_one_another_nothing_is_kept():
    with pytest.raises(UnknownContentError):
        describe(function_of("def f(n): return n and g(n - 1)\ndef g(n): return n and f(n - 1)"))


@pytest.mark.slow
def test_rules_with_a_kernel_that_calls_itself_are_played_by_every_process(tmp_path: Path):
    recursive = HELPERS.replace("return action + 1", "return 1 if action == 0 else 1 + taken(below(action))")
    below = "@kernel\ndef below(number):\n    return number - 1\n"
    rules = GAME.replace("> tables.LAST", "+ taken(3) > 4 + tables.LAST")  # from two rules
    write_files(tmp_path, piles=rules, helpers=recursive + below)
    for _ in range(2):  # the second would load what the first has kept, and be aborted
        assert processes(tmp_path)[0].split()[1:] == ["18", "None", "18.0"]


@pytest.mark.slow
def test_a_rule_whose_error_tells_values_is_kept_and_raises_the_same_error(tmp_path: Path):
    turn = '        s["to_play"] ='
    write_files(tmp_path, piles=GAME.replace(turn, f'        np.zeros(3)[:action] = np.zeros(3)[: s["left"]]\n{turn}'))
    played = PLAYED.replace(
        "after = Piles().play(1)",
        "try: Piles().play(1)\nexcept ValueError as error: print(len(compiled), error)\nraise SystemExit",
    )
    first, second = (processes(tmp_path, program=played)[0] for _ in range(2))
    assert first.endswith("cannot assign slice of shape (1,) from input of shape (3,)")
    assert second == "0" + first[first.index(" ") :]


@pytest.mark.parametrize("unknown", [object(), type("Thing", (), {}), np.zeros(10**6), np.array([{}])])
def test_code_that_uses_something_whose_changes_are_not_seen_is_not_kept(unknown: object):
    with pytest.raises(UnknownContentError):
        describe(function_of("def f(): return x", x=unknown))


def kept(number: int) -> Any:
    """Return a rule that returns `number`, whose code was loaded from disk or compiled."""

    def rule() -> int:
        return number

    dispatcher = keep_rule(numba.njit(rule), rule)
    dispatcher.compile(())
    assert dispatcher() == number
    return dispatcher


def is_loaded(number: int) -> bool:
    return sum(kept(number).stats.cache_hits.values()) == 1


def test_the_functions_compiled_last_are_kept_and_older_files_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine_code, "MOST_FILES", 2)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    directory = Path(kept(9)._cache.cache_path)
    for old in ("compiled_game.rule.1-58.py311.nbi", "compiled_game.rule.1-58.py311.1.nbc"):
        (directory / old).write_text("a version before 0.3")
    for number in range(4):
        kept(number)
    assert len(list(directory.iterdir())) == 2 + 1  # and the lock
    assert is_loaded(3)


def test_a_directory_that_cannot_be_written_costs_time_and_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    machine_code._warn_of_no_directory.cache_clear()
    for number in (7, 8):
        kept(number)
    assert [record.getMessage() for record in caplog.records if "NUMBA_CACHE_DIR" in record.getMessage()] == [
        "no directory for machine code can be written, so every process compiles for up to a minute: set "
        "NUMBA_CACHE_DIR to a directory that can"
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda path, patch: path.write_bytes(path.read_bytes()[:-1]),
        lambda path, patch: path.write_bytes(b""),
        lambda path, patch: path.write_bytes(bytes(byte ^ (at == 999) for at, byte in enumerate(path.read_bytes()))),
        lambda path, patch: path.unlink() or path.mkdir(),
        lambda path, patch: patch.setattr(machine_code, "VERSIONS", (machine_code.VERSIONS[0], "another Python")),
        lambda path, patch: patch.setattr(JITCPUCodegen, "magic_tuple", lambda self: ("x86_64", "another", "")),
    ],
    ids=["cut", "empty", "a changed byte", "a directory", "another version", "another processor"],
)
def test_a_file_that_is_not_what_this_process_would_write_is_compiled_again(change, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert [is_loaded(3), is_loaded(3)] == [False, True]
    (path,) = tmp_path.rglob("*.machinecode")
    change(path, monkeypatch)
    assert not is_loaded(3)
    kept(3)


@pytest.mark.slow
def test_a_kernel_cached_by_numba_is_compiled_when_a_table_changes(tmp_path: Path):
    cached = HELPERS.replace("@kernel", "import tables\n@kernel(cache=True)").replace("+ 1", "+ 1 + tables.LAST")
    write_files(tmp_path, helpers=cached)
    assert processes(tmp_path)[0].split()[1] == "18"
    write_files(tmp_path, helpers=cached, tables=TABLES.replace("LAST = 0", "LAST = 1"))
    assert processes(tmp_path)[0].split()[1] == "17"


@pytest.mark.slow
def test_what_was_compiled_before_plyzero_was_imported_is_not_kept(tmp_path: Path):
    before = "import numba\n@numba.njit\ndef f(x):\n    return x + 1\n"
    after = (
        "from plyzero.rules.machine_code import keep_rule\ndef rule(x):\n    return f(x)\n"
        "keep_rule(numba.njit(rule), rule).compile((numba.int64,))\nprint('compiled')"
    )
    for between, kept_files in (("f(1)\n", 0), ("", 1)):
        (tmp_path / "program.py").write_text(before + between + after)
        assert processes(tmp_path, program="import program") == ["compiled"]
        assert len(list(tmp_path.rglob("*.machinecode"))) == kept_files


def in_child(question: Callable[[], object]) -> str:
    """Return the answer of a forked process."""
    read, write = os.pipe()
    if not (child := os.fork()):
        os.write(write, repr(question()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(read, 99).decode()


def test_a_function_is_compiled_by_one_process_while_others_compile_other_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(machine_code, "WAIT_SECONDS", 0.1)

    def locked() -> list[bool]:
        bytes_ = [machine_code._byte_of(each) for each in ("one", "two")]
        return [machine_code._wait_for_lock(machine_code._lock_file(tmp_path), byte) for byte in bytes_]

    with machine_code._alone_on_machine(tmp_path, "one"), machine_code._alone_on_machine(tmp_path, "one"):
        assert in_child(locked) == "[False, True]"
    assert in_child(locked) == "[True, True]"


def test_a_forked_process_gives_other_numbers():
    number = int(in_child(lambda: next(FunctionIdentity._unique_ids)))
    assert abs(number - next(FunctionIdentity._unique_ids)) > 2**32
