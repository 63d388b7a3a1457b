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

from plyzero.rules import machine_code
from plyzero.rules.compiled_game import kernel
from plyzero.rules.machine_code import UnknownContentError, describe, keep_rule
from tests.helpers.compiling import COUNT_COMPILED

ROOT = Path(__file__).resolve().parent.parent.parent

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
FILES = {"piles.py": GAME, "helpers.py": HELPERS, "tables.py": TABLES}
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


def write_files(directory: Path) -> None:
    for name, text in FILES.items():
        (directory / name).write_text(text)


@pytest.mark.slow
def test_rules_are_compiled_once_and_again_when_a_table_has_changed(tmp_path: Path):
    write_files(tmp_path)
    assert processes(tmp_path)[0].endswith(" 18 None 18.0")
    (tmp_path / "tables.py").write_text(TABLES.replace("[1.0,", "[3.0,"))
    assert processes(tmp_path)[0].endswith(" 18 None 54.0")
    write_files(tmp_path)
    assert processes(tmp_path) == ["0 18 None 18.0"]  # the code of these rules is still there


@pytest.mark.slow
def test_rules_are_compiled_once_by_two_processes_and_again_when_anything_has_changed(tmp_path: Path):
    write_files(tmp_path)
    both = [each.split() for each in processes(tmp_path, 2)]
    assert [each[1:] for each in both] == [["18", "None", "18.0"]] * 2
    assert processes(tmp_path) == ["0 18 None 18.0"]
    shutil.rmtree(tmp_path / "cache")
    assert processes(tmp_path) == [f"{sum(int(each[0]) for each in both)} 18 None 18.0"]
    (tmp_path / "helpers.py").write_text(HELPERS.replace("action + 1", "action + 2"))
    assert processes(tmp_path)[0].split()[1] == "17"
    (tmp_path / "tables.py").write_text(TABLES.replace("LAST = 0", "LAST = 17"))
    assert processes(tmp_path)[0].split()[1:3] == ["17", "Outcome(winner=0)"]
    (tmp_path / "tables.py").write_text(TABLES.replace("[1.0,", "[3.0,"))
    assert processes(tmp_path)[0].endswith(" 51.0")
    write_files(tmp_path)
    assert processes(tmp_path) == ["0 18 None 18.0"]


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


PAIRS: dict[str, tuple[Any, Any]] = {
    "a constant in the code": (function_of("def f(): return 1"), function_of("def f(): return 2")),
    "the type of a constant": (function_of("def f(): return 1"), function_of("def f(): return 1.0")),
    "an operator": (function_of("def f(a): return a + a"), function_of("def f(a): return a * a")),
    "a default": (function_of("def f(a=1): return a"), function_of("def f(a=2): return a")),
    "a number": (function_of("def f(): return x", x=1), function_of("def f(): return x", x=2)),
    "a number inside a comprehension": tuple(function_of("def f(): return [x for _ in range(3)]", x=x) for x in (1, 2)),
    "an entry of an array": tuple(function_of("def f(): return x", x=np.arange(3) * i) for i in (1, 2)),
    "the type of an array": tuple(function_of("def f(): return x", x=np.zeros(1, t)) for t in ("i4", "f4")),
    "the shape of an array": tuple(function_of("def f(): return x", x=np.zeros(s)) for s in ((2, 3), (3, 2))),
    "an entry of a tuple": tuple(function_of("def f(): return x", x=(1, (2, i))) for i in (1, 2)),
    "a module's table": tuple(function_of("def f(): return m.x", m=module_of(x=i)) for i in (1, 2)),
    "a function in a module": tuple(
        function_of("def f(): return m.g()", m=module_of(g=function_of(f"def f(): return {i}"))) for i in (1, 2)
    ),
    "a kernel of a kernel": tuple(
        function_of(
            "def f(): return g()",
            g=kernel(function_of("def f(): return h()", h=kernel(function_of(f"def f(): return {i}")))),
        )
        for i in (1, 2)
    ),
    "an option of a kernel": (
        function_of("def f(): return g()", g=kernel(function_of("def f(): return 1"))),
        function_of("def f(): return g()", g=kernel(fastmath=True)(function_of("def f(): return 1"))),
    ),
    "a closure": tuple(function_of("def outer(x):\n def f(): return x\n return f\nf = outer(y)", y=i) for i in (1, 2)),
    "the member of an enum": tuple(function_of("def f(): return x", x=x) for x in (Colour.RED, 1)),
    "a named tuple": tuple(function_of("def f(): return x", x=x) for x in (Pair(1, 2), (1, 2))),
    "a dtype": tuple(function_of("def f(): return x", x=np.dtype(x)) for x in ("i1", "i2")),
}


@pytest.mark.parametrize("what", PAIRS)
def test_whatever_compiled_code_depends_on_is_described(what: str):
    one, other = PAIRS[what]
    assert describe(one) == describe(one)
    assert describe(one) != describe(other)


def test_a_function_that_is_reached_twice_is_described_once():
    names: dict[str, Any] = {}
    exec("def f(n): return g(n) + h(n)\ndef g(n): return h(n)\ndef h(n): return n", names)
    assert "again" in repr(describe(names["f"]))


def test_of_functions_that_call_one_another_nothing_is_kept():
    names: dict[str, Any] = {}
    exec("def f(n): return n and g(n - 1)\ndef g(n): return n and f(n - 1)", names)
    with pytest.raises(UnknownContentError):
        describe(names["f"])


@pytest.mark.slow
def test_rules_with_a_kernel_that_calls_itself_are_played_by_every_process(tmp_path: Path):
    recursive = HELPERS.replace("return action + 1", "return 1 if action == 0 else 1 + taken(below(action))")
    below = "@kernel\ndef below(number):\n    return number - 1\n"
    rules = GAME.replace("> tables.LAST", "+ taken(3) > 4 + tables.LAST")  # from two rules
    for name, text in {**FILES, "helpers.py": recursive + below, "piles.py": rules}.items():
        (tmp_path / name).write_text(text)
    for _ in range(2):  # the second would load what the first has kept, and be aborted
        assert processes(tmp_path)[0].split()[1:] == ["18", "None", "18.0"]


@pytest.mark.slow
def test_a_rule_whose_error_tells_values_is_kept_and_raises_the_same_error(tmp_path: Path):
    longer = GAME.replace(
        '        s["to_play"] =', '        np.zeros(3)[:action] = np.zeros(3)[: s["left"]]\n        s["to_play"] ='
    )
    for name, text in {**FILES, "piles.py": longer}.items():
        (tmp_path / name).write_text(text)
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


def test_the_functions_compiled_last_are_kept_and_older_files_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine_code, "MOST_FILES", 2)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    directory = Path(keep_rule(numba.njit(returning(9)), returning(9))._cache.cache_path)
    for old in ("compiled_game.rule.1-58.py311.nbi", "compiled_game.rule.1-58.py311.1.nbc"):
        (directory / old).write_text("a version before 0.3")
    for number in range(4):
        rule = returning(number)
        keep_rule(numba.njit(rule), rule).compile(())
    assert len(list(directory.iterdir())) == 2 + 1  # and the lock


def test_a_directory_that_cannot_be_written_costs_time_and_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    machine_code._warn_of_no_directory.cache_clear()
    for number in (7, 8):
        rule = returning(number)
        dispatcher = keep_rule(numba.njit(rule), rule)
        dispatcher.compile(())
        assert dispatcher() == number
    assert [record.getMessage() for record in caplog.records if "NUMBA_CACHE_DIR" in record.getMessage()] == [
        "no directory for machine code can be written, so every process compiles for up to a minute: set "
        "NUMBA_CACHE_DIR to a directory that can"
    ]


def compiled(number: int) -> tuple[int, int]:
    """Return the value of a newly made rule, which is `number`, and how often it was loaded from disk."""
    rule = returning(number)
    dispatcher = keep_rule(numba.njit(rule), rule)
    dispatcher.compile(())
    return dispatcher(), sum(dispatcher.stats.cache_hits.values())


@pytest.mark.parametrize(
    "what", ["cut", "empty", "a changed byte", "another version", "another processor", "a directory"]
)
def test_a_file_that_is_not_what_this_process_would_write_is_compiled_again(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert [compiled(3), compiled(3)] == [(3, 0), (3, 1)]
    (path,) = tmp_path.rglob("*.machinecode")
    content = path.read_bytes()
    match what:
        case "cut":
            path.write_bytes(content[:-1])
        case "empty":
            path.write_bytes(b"")
        case "a changed byte":
            path.write_bytes(content[:999] + bytes([content[999] ^ 1]) + content[1000:])
        case "a directory":
            path.unlink()
            path.mkdir()
        case "another version":
            monkeypatch.setattr(machine_code, "VERSIONS", (machine_code.VERSIONS[0], "another Python"))
        case "another processor":
            monkeypatch.setattr("numba.core.codegen.JITCPUCodegen.magic_tuple", lambda _: ("x86_64", "another", ""))
    assert compiled(3) == (3, 0)
    assert compiled(3)[0] == 3


@pytest.mark.slow
def test_a_kernel_cached_by_numba_is_compiled_when_a_table_changes(tmp_path: Path):
    cached = HELPERS.replace("@kernel", "import tables\n@kernel(cache=True)").replace("+ 1", "+ 1 + tables.LAST")
    for name, text in {**FILES, "helpers.py": cached}.items():
        (tmp_path / name).write_text(text)
    assert processes(tmp_path)[0].split()[1] == "18"
    (tmp_path / "tables.py").write_text(TABLES.replace("LAST = 0", "LAST = 1"))
    assert processes(tmp_path)[0].split()[1] == "17"


@pytest.mark.slow
def test_what_was_compiled_before_plyzero_was_imported_is_not_kept(tmp_path: Path):
    before = "import numba\n@numba.njit\ndef f(x):\n    return x + 1\nf(1)\n"
    after = (
        "from plyzero.rules.machine_code import keep_rule\ndef rule(x):\n    return f(x)\n"
        "kept = keep_rule(numba.njit(rule), rule)\nkept.compile((numba.int64,))"
    )
    (tmp_path / "program.py").write_text(before + after)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.machinecode"))
    (tmp_path / "program.py").write_text(before.replace("f(1)\n", "") + after)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, check=True)
    assert len(list(tmp_path.rglob("*.machinecode"))) == 1


def test_a_function_is_compiled_by_one_process_while_others_compile_other_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(machine_code, "WAIT_SECONDS", 0.1)
    with machine_code._alone_on_machine(tmp_path, "one"), machine_code._alone_on_machine(tmp_path, "one"):
        if not (child := os.fork()):
            locked = [
                machine_code._wait_for_lock(machine_code._lock_file(tmp_path), byte) for byte in bytes_of("one", "two")
            ]
            os._exit(locked != [False, True])
        assert os.waitpid(child, 0)[1] == 0
    if not (child := os.fork()):
        os._exit(not machine_code._wait_for_lock(machine_code._lock_file(tmp_path), *bytes_of("one")))
    assert os.waitpid(child, 0)[1] == 0


def bytes_of(*functions: str) -> list[int]:
    return [machine_code._byte_of(each) for each in functions]


def test_a_forked_process_gives_other_numbers():
    read, write = os.pipe()
    if not (child := os.fork()):
        os.write(write, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert abs(int(os.read(read, 99)) - next(FunctionIdentity._unique_ids)) > 2**32


def returning(number: int) -> Callable[[], int]:
    def rule() -> int:
        return number

    return rule
