"""The rules of a compiled game as one WebAssembly module, which a browser runs without Python.

Numba writes the rules as LLVM code for this machine, before any optimisation: only then are places in memory named by
fields and not by bytes, which differ where pointers have 4 bytes. LLVM then optimises the code for WebAssembly, and its
linker makes the module. `docs/formats.md` lists what the module exports.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Final

from plyzero.errors import FailedError, UserError, install_command, plain
from plyzero.files import read_file, write_file
from plyzero.kits.browser.memory import RUNTIME, entry_of
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.chance import without_setup
from plyzero.rules.compile_errors import compile_error
from plyzero.rules.compiled_game import COMPILED_RULES, CompiledGame, kernel, redecorate

TRIPLE: Final = "wasm32-unknown-unknown"

FEATURES: Final = "+bulk-memory,+bulk-memory-opt,+mutable-globals,+nontrapping-fptoint,+sign-ext"
"""Parts of WebAssembly that every browser has had since 2021."""

MAX_BYTES: Final = 64 << 20
"""Largest module that is read back."""


def compile_rules(game: GameSpec) -> bytes:
    """Return the WebAssembly module of the rules of a game.

    Raises UserError if the game is not a CompiledGame in Python, a rule cannot be compiled, or there is no linker;
    FailedError if the linker fails.
    """
    expect_compiled(game)
    linker = find_linker()
    with TemporaryDirectory(prefix="plyzero-") as folder:
        object_file, module = Path(folder, "rules.o"), Path(folder, "rules.wasm")
        _compile_in_new_process(game, object_file)
        exports = [f"--export={name}" for name in (*rules_of(game), "__heap_base")]
        options = ["--no-entry", "--allow-undefined", "--export-memory", "--strip-all", "--gc-sections"]
        command = [*linker, *options, *exports, "-o", str(module), str(object_file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FailedError(f"{game.name}: the linker {linker[-1]} failed: {plain(done.stderr, 300)}")
        return read_file(module, max_bytes=MAX_BYTES)


def expect_compiled(game: GameSpec) -> None:
    """Raise UserError if the rules of a game cannot become WebAssembly."""
    start = game.start
    if isinstance(start, CompiledGame) and not start.is_foreign:
        return
    needed = f"{game.name} cannot be shared: a browser runs compiled rules only, a CompiledGame"
    if isinstance(start, CompiledGame):
        raise UserError(f"{needed} in Python, and these are machine code of another compiler")
    if start.is_adapted:
        raise UserError(f"{needed}, and these are of another toolkit: docs/compiled-games.md shows how to write them")
    raise UserError(f"{needed}; plyzero new NAME --from {quote(game.name)} --compiled begins it")


def rules_of(game: GameSpec) -> tuple[str, ...]:
    """Return the names of the rules that the module of a game exports."""
    has = {"chances": game.start.num_chances, "score": game.start.max_score}
    return tuple(rule for rule in COMPILED_RULES if has.get(rule, True))


def find_linker() -> list[str]:
    """Return the command of a linker for WebAssembly. Raises UserError if there is none."""
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "wasm-ld"]
    if path := which("wasm-ld"):
        return [path]
    if path := which("lld"):
        return [path, "-flavor", "wasm"]
    raise UserError(f"this needs a linker, ziglang or wasm-ld, and neither is here: {install_command('share')}")


def _compile_in_new_process(game: GameSpec, object_file: Path) -> None:
    """Write the rules as an object file.

    It takes a new process, because this one has compiled parts of Numba's library already, and with optimisations.
    """
    variables = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    variables |= {"NUMBA_OPT": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "plyzero.kits.browser.wasm", game.name, str(object_file)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise FailedError(f"{game.name}: the rules cannot be compiled for WebAssembly: {plain(lines[-1], 500)}")


def write_object(name: str, object_file: Path) -> None:
    """Write the rules of the game `name` as an object file for WebAssembly.

    Call it in a process with NUMBA_OPT=0 that has compiled nothing yet.
    """
    import llvmlite.binding as llvm

    game = load_game(name)
    start = without_setup(game.start)
    assert isinstance(start, CompiledGame)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(features=FEATURES, opt=3, reloc="static", codemodel="default")
    whole = llvm.parse_assembly(_retargeted(RUNTIME, machine))
    for rule, function in _functions_over_pointers(start, rules_of(game)).items():
        (compiled,) = function.overloads.values()
        part = compiled.library.get_llvm_str() + entry_of(rule, compiled.fndesc.llvm_func_name)
        whole.link_in(llvm.parse_assembly(_retargeted(part, machine)))
    for function in whole.functions:
        if not function.is_declaration and function.name not in COMPILED_RULES:
            function.linkage = "internal"
    whole.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False  # WebAssembly of 2021 has no vectors everywhere
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(whole, passes)
    write_file(object_file, machine.emit_object(whole), durable=False)


def _functions_over_pointers(start: CompiledGame, rules: Sequence[str]) -> dict[str, Any]:
    """Return the rules, compiled, as functions over the address of a state and, for most, of an array."""
    import numba
    from numba import types

    record, size = start.State, start.State.itemsize
    shapes = {"legal": start.num_actions, "observe": start.observation_shape, "chances": start.num_chances}
    kinds = {"legal": types.boolean, "observe": types.float32, "chances": types.float32}
    results = {"outcome": types.int64, "score": types.float64}
    carray: Any = vars(numba)["carray"]
    jit = partial(kernel, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # nothing calls them here
    address = types.CPointer(types.uint8)
    done: dict[Any, Any] = {}

    def over_state(rule: Any) -> Callable[..., object]:
        def function(state: Any) -> object:
            return rule(carray(state, size).view(record)[0])

        return function

    def over_action(rule: Any) -> Callable[..., object]:
        def function(state: Any, action: int) -> None:
            rule(carray(state, size).view(record)[0], action)

        return function

    def over_array(rule: Any, shape: Any) -> Callable[..., object]:
        def function(state: Any, array: Any) -> None:
            rule(carray(state, size).view(record)[0], carray(array, shape))

        return function

    found = {}
    for name in rules:
        rule = redecorate(start.rule_functions[name], jit, done)
        if name == "play":
            function, signature = over_action(rule), types.void(address, types.int64)
        elif name in shapes:
            function, signature = over_array(rule, shapes[name]), types.void(address, types.CPointer(kinds[name]))
        else:
            function, signature = over_state(rule), results[name](address)
        try:
            found[name] = jit(signature)(function)
        except Exception as error:  # Numba raises errors of many types, Python's own among them
            where = f"{type(start).__name__}.{name}"
            raise UserError(compile_error(where, start.rule_functions[name], error)) from error
    return found


def _retargeted(text: str, machine: Any) -> str:
    """Return LLVM code of another machine as code for WebAssembly."""
    text = re.sub(r'target triple = ".*"', f'target triple = "{TRIPLE}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', text)
    text = re.sub(r'"target-(cpu|features)"="[^"]*"', "", text)
    return re.sub(r"= common (unnamed_addr )?(local_unnamed_addr )?global", "= internal global", text)


if __name__ == "__main__":
    try:
        write_object(sys.argv[1], Path(sys.argv[2]))
    except UserError as error:
        sys.exit(" ".join(str(error).split()))
