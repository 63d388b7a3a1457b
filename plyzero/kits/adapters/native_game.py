"""Native games: rules in C, C++, Rust or any language that makes a shared library, as plyzero.h declares them.

The search calls each function through a line of compiled code, under a name that depends on the content of the library.
The linker finds its address, so code on disk has no addresses. All other calls are by ctypes, with guard bytes around
the arrays.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import faulthandler
import functools
import itertools
import mmap
import os
import platform
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self, cast

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numpy.typing import NDArray

from plyzero.errors import UserError, plain
from plyzero.rules.compiled_game import (
    COMPILED_RULES,
    RULE_NAMES,
    SIGNATURES,
    ForeignGame,
    Rules,
    kernel,
    no_chances,
    no_score,
)
from plyzero.rules.machine_code import Function, digest_of, keep_rule

Library = Any
"""A ctypes.CDLL, with the digest of its file."""

GUARD: Final = 1024
"""Number of bytes on either side of an array that show whether a function writes outside of it."""

NAME_BYTES: Final = 64
NUMBER_BYTES: Final = 8
CLEAN, NOT_CLEAN = 101, 102  # exit codes of the child process of `tried`
CALL_SECONDS: Final = 10.0
"""Seconds in which a function must return in `tried`."""

_call: Final = mmap.mmap(-1, 1 << 24)
"""The last checked call, for the parent of a child process: its number, 0 once it has returned, its name, its state."""

_calls: Final = itertools.count(1)
_LIBC: Final[Any] = ctypes.CDLL(None)
_guards: Final = itertools.cycle([bytes([byte]) * GUARD for byte in range(1, 252)])  # a new one for each call
_games: list[str] = []  # native games of this process; empty once it ends by itself
_loaded: dict[Path, Library] = {}
_tried: set[tuple[Library, int]] = set()


class NativeGame(ForeignGame):
    """A game whose rules are functions of a shared library, as in examples/native.

    `State` has the layout of the library's struct (`align=True` if that has gaps), with a field `to_play`.
    """

    library: str | Path
    """The path of the library, relative to the folder of the file that defines the class."""

    def __init_subclass__(cls, *, version: int | None = None, **kwargs: object) -> None:
        if own := [name for name in RULE_NAMES if name in vars(cls)]:
            raise TypeError(f"{cls.__name__}: a native game has its rules in the library, so remove {', '.join(own)}")
        super().__init_subclass__(version=version, **kwargs)

    def __init__(self) -> None:
        super().__init__()
        start = functools.partial(_checked, self.load(), "start", self.state)
        tried = (self.load(), len(self.state))
        if tried not in _tried:
            self.tried(lambda checked: bool(start()))
            _tried.add(tried)
            _report_ends(f"{type(self).__module__}:{type(self).__qualname__}")
        start()

    def load(self) -> Library:
        """Return the library. Raises UserError if it cannot be loaded, or lacks a function."""
        file = getattr(sys.modules.get(type(self).__module__), "__file__", None) or ""
        path = (Path(file).parent / self.library).absolute()
        try:
            status = path.stat()
            library = _load(path, (status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError as error:
            expected = f"expected {path} to be a shared library for this processor, {platform.machine()}"
            raise UserError(f"{expected}: {plain(str(error))}; compile it here with cc -shared -fPIC") from error
        optional = {"set_up": self.setups, "chances": self.num_chances, "score": self.max_score}
        names = [f"plyzero_{name}" for name in RULE_NAMES if optional.get(name, 1)]
        if missing := [name for name in names if not hasattr(library, name)]:
            how = 'in C++ in extern "C", in Rust as #[no_mangle] pub extern "C"'
            raise UserError(f"{path} has no function {', '.join(missing)}: define it as plyzero.h does, {how}")
        return library

    @functools.cached_property
    def rules(self) -> Rules:
        is_interpreted: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
        return self.as_plain_python().rules if is_interpreted else _compile_calls(self.load())

    def write_setup(self, number: int) -> None:
        _checked(self.load(), "set_up", self.state, number)

    def as_plain_python(self) -> Self:
        """Return the same position with rules that raise IndexError if a function writes outside of its arrays."""
        position = copy.copy(self)
        position.state = self.state.copy()
        checked = [functools.partial(_checked, self.load(), name) for name in COMPILED_RULES]
        position.rules = Rules(*checked)  # type: ignore[arg-type]
        return position

    with_bounds_checked = as_plain_python

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "rules"}  # rules belong to this process

    def tried(self, is_clean: Callable[[Any], bool]) -> bool:
        """Return the result of `is_clean` in a child process, for this position with checked rules; False if it raises.

        Raises UserError if a function has ended the process, or has not returned in CALL_SECONDS.
        """
        _call[:NUMBER_BYTES] = bytes(NUMBER_BYTES)
        ended, ends = os.pipe()
        if not (child := os.fork()):
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                faulthandler.disable()  # the parent reports the fault
                _games.clear()
                os._exit(CLEAN if is_clean(self.as_plain_python()) else NOT_CLEAN)
            finally:
                os._exit(NOT_CLEAN)
        os.close(ends)
        try:
            is_hanging = not _wait_for_end(ended)
        finally:
            os.close(ended)
            os.kill(child, signal.SIGKILL)  # if it has not ended
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if is_hanging:
            how = f"has not returned for {CALL_SECONDS:g} s"
        elif code < 0:
            how = f"ends the process with {signal.Signals(-code).name} ({signal.strsignal(-code)})"
        else:
            how = f"ends the process with exit code {code}"
        if is_hanging or code not in (CLEAN, NOT_CLEAN):
            call = _call[NUMBER_BYTES:][:NAME_BYTES].rstrip(b"\0").decode()
            state = np.frombuffer(_call, self.State, 1, NUMBER_BYTES + NAME_BYTES)[0]
            raise UserError(f"{call} of {self.library} {how} in the state {plain(str(state), 300)}")
        return code == CLEAN


def _report_ends(game: str) -> None:
    """Make faults in C report where they happened, and make exit() in C, which looks like a success, a failure."""
    if not faulthandler.is_enabled():
        with suppress(OSError, RuntimeError, AttributeError):  # there is no standard error
            faulthandler.enable(all_threads=False)
    if not _games:
        atexit.register(_forget_ends)
        _LIBC.__cxa_atexit(_end_by_exit, None, _end_by_exit)  # the third argument identifies it in `__cxa_finalize`
    _games.append(game)


def _forget_ends() -> None:
    """Undo `_report_ends` before the interpreter ends, since C could not call the Python function after that."""
    _games.clear()
    _LIBC.__cxa_finalize(_end_by_exit)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _end_by_exit(_: object) -> None:
    """End this process, which is about to be ended by exit() in C, with a sentence and exit code 1."""
    if _games:
        _LIBC.fflush(None)  # write the output that C has buffered
        what = "code in C has called exit(), which has ended the process"
        print(f"plyzero: {what}; plyzero check {_games[-1]} says which function does", file=sys.stderr, flush=True)
        os._exit(1)


def _wait_for_end(ended: int) -> bool:
    """Wait until a child process closes its end of the pipe `ended`; return False if it is stuck in a checked call.

    The looks at a call are counted, not its time: while this process is suspended, it makes no looks.
    """
    last = b""
    looks = 0
    while not select.select([ended], [], [], CALL_SECONDS / 20)[0]:
        number = _call[:NUMBER_BYTES]
        looks = looks + 1 if number == last else 1
        last = number
        if any(number) and looks > 20:
            return False
    return True


@functools.lru_cache
def _load(path: Path, status: tuple[int, ...]) -> Library:
    """Return the library at `path`; `status` changes when it is built again."""
    digest = digest_of(path.read_bytes())
    library: Library = _loaded.setdefault(path, ctypes.CDLL(str(path)))
    library.digest = getattr(library, "digest", digest)
    if library.digest != digest:  # the system still returns the old library
        raise UserError(f"{path} has been built again since this process loaded it: start the process again")
    return library


@functools.cache
def _compile_calls(library: Library) -> Rules:
    def compiled(name: str, signature: object) -> Any:
        symbol = f"plyzero_{library.digest}_{name}"
        rule = cast(Function, no_score if name == "score" else no_chances)
        if function := getattr(library, f"plyzero_{name}", None):
            binding.add_symbol(symbol, ctypes.cast(function, ctypes.c_void_p).value)
            pointer = types.voidptr
            result = {"outcome": types.int32, "score": types.float64}.get(name, types.void)
            arguments = {"outcome": (), "score": (), "play": (types.int32,)}.get(name, (pointer,))
            call = types.ExternalFunction(symbol, result(pointer, *arguments))
            rules: dict[str, Function] = {
                "outcome": lambda s: call(s.ctypes),
                "score": lambda s: call(s.ctypes),
                "play": lambda s, action: call(s.ctypes, action),
            }
            rule = rules.get(name, lambda s, array: call(s.ctypes, array.ctypes))
        dispatcher: Any = kernel(nogil=True, no_cfunc_wrapper=True)(rule)  # so that other threads go on if it hangs
        keep_rule(dispatcher, rule, symbol, "nogil").compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return Rules(*map(compiled, COMPILED_RULES, SIGNATURES))


def _checked(library: Library, name: str, state: NDArray[np.uint8], argument: Any = None) -> float | None:
    """Call a function on copies of its arrays between guard bytes, and return its result.

    The guards differ from call to call, so the results of a function that reads them differ between two calls. Raises
    IndexError if it writes there.
    """
    function = getattr(library, f"plyzero_{name}", None)
    if function is None:  # chances, without dice
        return None
    kinds = {"play": ctypes.c_int32, "set_up": ctypes.c_uint32}
    numbers = [kinds[name](int(argument))] if name in kinds else []
    function.restype = ctypes.c_double if name == "score" else ctypes.c_int
    call = f"plyzero_{name}({int(argument) if numbers else ''})"
    arrays = [state] if numbers or argument is None else [state, argument]
    before = [array.tobytes() for array in arrays]
    guard = next(_guards)
    number = next(_calls).to_bytes(NUMBER_BYTES, "little")
    noted = (number + call.encode().ljust(NAME_BYTES, b"\0") + before[0])[: len(_call)]
    _call[: len(noted)] = noted
    boxes = [bytearray(guard + each + guard) for each in before]
    pointers = [ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(box)) + GUARD) for box in boxes]
    result: float | None = function(*pointers, *numbers)
    _call[:NUMBER_BYTES] = bytes(NUMBER_BYTES)
    for i, box in enumerate(boxes):
        after = bytes(box[GUARD:-GUARD])
        if not box.startswith(guard) or not box.endswith(guard):
            what = {"legal": "mask", "observe": "planes"}.get(name, "weights") if i else "the state"
            expected = guard + after + guard
            at = next(at for at in range(len(box)) if box[at] != expected[at])
            raise IndexError(f"{call} writes to byte {at - GUARD} of {what}, which has bytes 0 to {len(after) - 1}")
        if after != before[i]:
            arrays[i].reshape(-1).view(np.uint8)[:] = np.frombuffer(after, np.uint8)
    return result
