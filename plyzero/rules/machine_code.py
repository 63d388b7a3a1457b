"""Machine code on disk: what has been compiled once on a machine is loaded by every later process.

Numba's own cache recompiles a function when its file changes, and nothing else: not when a constant, an array or a
function of another file does. A game's rules may use all of them, so the code of rules is kept under a digest of
everything that they reach. Where that cannot be told, nothing is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import IO, Any, Final

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

WAIT_SECONDS: Final = 60.0
"""Longest time that a process waits for another one that compiles, in seconds; then it compiles, too."""

POLL_SECONDS: Final = 0.05
"""Time between two looks whether it has, in seconds."""

MOST_RULES: Final = 500
"""So many rules are kept on disk, those compiled last."""

LARGEST_CONSTANT: Final = 10**6
"""Numba does not keep code that uses an array of more bytes."""

LIBRARIES: Final = frozenset({"builtins", "cmath", "math", "numba", "numpy", "operator"})
"""Modules whose content follows from the versions of Python, Numba and NumPy."""


def keep_rule(dispatcher: Any, rule: Any, *more: object) -> Any:
    """Return `dispatcher`, which compiles `rule`, with its machine code kept on disk if that is possible.

    more: what the code depends on besides the rule.
    """
    with suppress(UnknownContentError, RuntimeError, OSError):  # the latter two where no directory can be written
        content = repr((np.__version__, describe(rule), more)).encode()
        dispatcher.py_func.__qualname__ = f"rule.{hashlib.blake2b(content, digest_size=16).hexdigest()}"
        dispatcher._cache = _RuleCache(dispatcher.py_func)  # type: ignore[no-untyped-call]
        return compile_once(dispatcher)
    return dispatcher


def compile_once(dispatcher: Any) -> Any:
    """Return `dispatcher`, which from now on waits while another process compiles what it may need, too."""
    dispatcher.compile = partial(_compile_alone, dispatcher.compile, Path(dispatcher._cache.cache_path))
    return dispatcher


class UnknownContentError(Exception):
    """A function uses something of which cannot be told when it changes."""


def describe(value: Any) -> object:
    """Return nested tuples of plain values that change whenever compiled code that uses `value` would."""
    return _Description()(value, ())


class _Description:
    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}
        self._open: set[int] = set()  # functions that are being described

    def __call__(self, value: Any, names: tuple[str, ...]) -> object:
        """names: what a function that uses `value` names; of a module, only these attributes matter."""
        if isinstance(value, Dispatcher):
            return ("compiled", repr(sorted(value.targetoptions.items())), self(value.py_func, names))
        if id(value) in self._open:
            raise UnknownContentError(f"{value!r} calls itself: what Numba loads of that from a file crashes")
        if isinstance(value, FunctionType | ModuleType):
            if id(value) in self._seen:
                return ("again", list(self._seen).index(id(value)))
            self._seen[id(value)] = value
        match value:
            case None | bool() | int() | float() | complex() | str() | bytes() if not isinstance(value, Enum):
                return (type(value).__name__, repr(value))
            case Enum():
                return ("enum", type(value).__qualname__, value.name, self(value.value, names))
            case np.dtype():
                return ("dtype", repr(value.descr), value.itemsize)
            case np.generic() | np.ndarray() if not value.dtype.hasobject and value.nbytes <= LARGEST_CONSTANT:
                return ("array", self(value.dtype, names), value.shape, value.tobytes())
            case tuple() | list():
                return (type(value).__name__, getattr(value, "_fields", ()), *(self(each, names) for each in value))
            case frozenset() | set():
                return ("set", *sorted(repr(self(each, names)) for each in value))
            case dict():
                return ("dict", *((self(key, names), self(each, names)) for key, each in value.items()))
            case CodeType():
                return self._code(value)
            case FunctionType():
                return self._function(value)
            case ModuleType():
                return self._module(value, names)
            case np.ufunc():
                return ("ufunc", value.__name__)
            case BuiltinFunctionType():
                return ("builtin", value.__module__, value.__qualname__)
            case numba.types.Type():
                return ("type", repr(value))
            case type():
                return self._class(value, names)
        raise UnknownContentError(f"{value!r}")

    def _function(self, function: FunctionType) -> object:
        self._open.add(id(function))
        names = tuple(sorted(_names(function.__code__)))
        reached = {name: function.__globals__[name] for name in names if name in function.__globals__}
        with suppress(OSError):  # an implementation that Numba selects by type is reached by no name
            reached[""] = Path(function.__code__.co_filename).read_bytes()
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells, reached)
        described = "function", *(self(each, names) for each in parts)
        self._open.remove(id(function))
        return described

    def _code(self, code: CodeType) -> object:
        counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        return ("code", code.co_code, counts, names, self(code.co_consts, ()))

    def _module(self, module: ModuleType, names: tuple[str, ...]) -> object:
        if module.__name__.partition(".")[0] in LIBRARIES:
            return ("library", module.__name__)
        found = {name: getattr(module, name) for name in names if hasattr(module, name)}
        return ("module", module.__name__, self(found, names))

    def _class(self, value: type, names: tuple[str, ...]) -> object:
        if value.__module__.partition(".")[0] in LIBRARIES:
            return ("class", value.__module__, value.__qualname__)
        if issubclass(value, Enum):
            return ("enums", value.__qualname__, *(self(each, names) for each in value))
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            return ("fields", value.__qualname__, value._fields)
        raise UnknownContentError(f"{value!r}")


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*map(_names, inner))


class _RuleCache(FunctionCache):
    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()  # the file's name has the digest of the rest

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk: it is compiled again
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
            kept = sorted(Path(self.cache_path).glob("*rule.*.nbi"), key=lambda path: path.stat().st_mtime)
            for index in kept[:-MOST_RULES]:
                for path in index.parent.glob(f"{index.stem}.*"):
                    path.unlink(missing_ok=True)


_lock = threading.RLock()
_holds_file = False


def _compile_alone(compile_: Callable[[Any], Any], directory: Path, signature: Any) -> Any:
    with _lock, _alone_on_machine(directory):
        return compile_(signature)


@contextmanager
def _alone_on_machine(directory: Path) -> Iterator[None]:
    """Hold a lock in `directory` during the outermost block; between threads, there is _lock."""
    global _holds_file
    if _holds_file:
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):  # a directory without files or locks
            _wait_for_lock(stack.enter_context((directory / "plyzero.lock").open("w")))
        _holds_file = True
        try:
            yield
        finally:
            _holds_file = False


def _wait_for_lock(file: IO[str]) -> None:
    """Return with the lock of `file`, which ends when it is closed, or without it after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
        else:
            return
