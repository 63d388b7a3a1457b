"""Machine code on disk: what has been compiled once on a machine is loaded by every later process.

Numba's own cache is not enough. It compiles a function again when its file changes, but not when a constant, an array
or a function of another file does. It may also call another process's function of the same name: Numba names a compiled
function by its qualified name, its types and a number that counts within the process, and if two files from disk define
the same name, the first one loaded is used for both. Here

* a file is named by a digest of everything that its code follows from, and begins with a checksum;
* the numbers of this process begin at random, so that no other process gives the same name;
* the texts of errors, whose names have no such number, are private to the function that raises them;
* every error has the line that raises it, so that one in a rule can be found;
* a function is kept only if every name that it defines has such a number (`shares_no_name`).
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import itertools
import logging
import os
import pickle
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import IO, Any, Final

import llvmlite
import numba
import numpy as np
from llvmlite.binding import Linkage, ModuleRef
from numba.core import config
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, NullCache, _Cache
from numba.core.callconv import CPUCallConv
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Lower
from numba.core.serialize import dumps
from numba.core.typing.templates import Signature

WAIT_SECONDS: Final = 300.0  # until this process stops waiting for another one that compiles the same function
POLL_SECONDS: Final = 0.05  # between two attempts to take its lock
MOST_FILES: Final = 2000  # files kept in a directory, the most recently used ones

LIBRARIES: Final = frozenset({"builtins", "cmath", "math", "numba", "numpy", "operator"})
"""Modules whose content follows from the versions of Python, Numba and NumPy."""

VERSIONS: Final = (3, sys.version, numba.__version__, llvmlite.__version__, np.__version__)
"""The version of the files' format, and those of all that decides what a function is compiled to."""

SUFFIX: Final = ".machinecode"
CHECKSUM_BYTES: Final = 16

log = logging.getLogger(__name__)

Function = Callable[..., Any]
"""A function that Numba compiles, or has compiled: nothing knows its signature but Numba."""

Internal = Any
"""A part of Numba's compiler; Numba's types do not tell its attributes."""


def keep(dispatcher: Internal, name: str, content: object, *, one_content: bool = False) -> Function:
    """Return `dispatcher` with its machine code kept on disk, or as it is where no directory can be written.

    name:        what the files' names begin with.
    content:     what the code follows from, besides the signature, the processor and VERSIONS; plain values.
    one_content: remove files of the same name with other content from beside the sources.
    """
    try:
        dispatcher._cache = _KeptCode(dispatcher.py_func, name, digest_of(content), one_content)
    except (RuntimeError, OSError):
        _warn_of_no_directory()
        return dispatcher
    dispatcher.compile = functools.partial(_compile_alone, dispatcher.compile, dispatcher._cache)
    return dispatcher


def keep_rule(dispatcher: Internal, rule: Function, *more: object) -> Internal:
    """Return `dispatcher`, which compiles `rule`, with its machine code kept on disk if that is possible.

    more: what the code depends on besides the rule.
    """
    _forget_other_caches(rule, set())
    with suppress(UnknownContentError):
        return keep(dispatcher, "rule", (describe(rule), more, "errors and divisions with lines"))
    return dispatcher


def is_kept(function: Function, name: str, content: object) -> bool:
    """Return whether the machine code of `function`, kept under this name and content, is on disk."""
    with suppress(RuntimeError, OSError):
        directory = _directory_of(function)
        return any(directory.glob(f"{name}-{digest_of(content)}-*{SUFFIX}"))
    return False


def digest_of(content: object) -> str:
    """Return 32 hexadecimal digits that follow from `content`, plain values."""
    return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()


class _KeptCode(_Cache):
    """The machine code of one function, a file for each signature and processor."""

    def __init__(self, function: Function, name: str, digest: str, one_content: bool) -> None:
        self.directory = _directory_of(function)
        self.function_name = f"{name}-{digest}"
        self._name, self._one_content = name, one_content

    @property
    def cache_path(self) -> str:
        return str(self.directory)

    def load_overload(self, sig: Signature, target_context: Internal) -> CompileResult | None:
        """Return what is kept, or None where that is nothing, is damaged, or is of another processor."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        try:
            kept = path.read_bytes()
        except OSError:
            return None
        checksum, data = kept[:CHECKSUM_BYTES], kept[CHECKSUM_BYTES:]
        if checksum != _checksum(data):
            return None
        with suppress(OSError):
            os.utime(path)
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Signature, data: Internal) -> None:
        """Keep what has been compiled, if no other process can take it for its own; a full disk only costs time."""
        if not shares_no_name(data.library):
            return
        content = dumps(data._reduce())
        path = self._path(sig, data.codegen)
        beside = path.with_suffix(f".{os.getpid()}")
        try:
            beside.write_bytes(_checksum(content) + content)
            beside.replace(path)
            _remove_oldest(self.directory)
            if self._one_content and not config.CACHE_DIR:  # type: ignore[attr-defined]
                self._remove_other_contents()
        except OSError:
            beside.unlink(missing_ok=True)

    def _path(self, signature: Signature, codegen: Internal) -> Path:
        options = config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT  # type: ignore[attr-defined]
        compiled_for = digest_of((VERSIONS, options, str(signature), codegen.magic_tuple()))
        return self.directory / f"{self.function_name}-{compiled_for}{SUFFIX}"

    def _remove_other_contents(self) -> None:
        for path in self.directory.glob(f"{self._name}-*{SUFFIX}"):
            if not path.name.startswith(f"{self.function_name}-"):
                path.unlink(missing_ok=True)

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...


def shares_no_name(library: Internal) -> bool:
    """Return whether no other process defines a name that the compiled code in `library` defines for others to see.

    Such a name has a number of this process, or of the process that compiled this part. Code that was compiled before
    this module was imported has no such number. Numba's runtime (NRT) is the same in every process.
    """
    return not library.has_dynamic_globals and all(
        _RANDOM_NUMBER.search(name) or name.startswith("NRT_") for name in visible_names(library._final_module)
    )


def visible_names(module: ModuleRef) -> list[str]:
    """Return the names that a module of LLVM defines for other modules."""
    defined = [each for each in (*module.functions, *module.global_variables) if not each.is_declaration]
    return [each.name for each in defined if each.linkage not in (Linkage.internal, Linkage.private)]


_RANDOM_NUMBER: Final = re.compile(r"B\d\dv\d{30,}")  # the number of a function in the name that Numba gives it


def _number_from_a_random_start() -> None:
    FunctionIdentity._unique_ids = itertools.count((1 << 127) + (secrets.randbits(95) << 32))


_number_from_a_random_start()
os.register_at_fork(after_in_child=_number_from_a_random_start)


def _private_error_texts(emit: Function) -> Function:
    """Return `emit`, of Numba's calling convention, with its functions private to the code that they are part of.

    They make the text of an error from values, as of arrays of different lengths in an assignment. Their names follow
    from types alone, but they use the environment of one function.
    """

    @functools.wraps(emit)
    def private(convention: Internal, module: Internal, struct: Internal, types: Internal) -> Internal:
        function = emit(convention, module, struct, types)
        function.linkage = "internal"
        return function

    return private


CPUCallConv.emit_unwrap_dynamic_exception_fn = _private_error_texts(  # type: ignore[method-assign]
    CPUCallConv.emit_unwrap_dynamic_exception_fn
)


def _noting_line(lower: Function) -> Function:
    """Return `lower`, of Numba's compiler, which also notes the line that it compiles."""

    @functools.wraps(lower)
    def noting(lowering: Internal, instruction: Internal) -> None:
        of_division = lowering.context.error_model.call_conv.context  # another one: this was copied from it
        for context in (lowering.context, of_division):
            context.line = instruction.loc, lowering.func_ir.func_id.func_name
        lower(lowering, instruction)

    return noting


def _with_line(set_error: Function) -> Function:
    """Return `set_error`, of Numba's calling convention, whose errors have the line that raises them.

    Numba gives one to `raise` alone, not to an index out of range or a division by zero.
    """

    @functools.wraps(set_error)
    def with_line(
        convention: Internal,
        builder: Internal,
        error: Internal,
        exc_args: Internal = None,
        loc: Internal = None,
        func_name: str | None = None,
    ) -> None:
        if loc is None:
            loc, func_name = getattr(convention.context, "line", (None, func_name))
        set_error(convention, builder, error, exc_args, loc, func_name)

    return with_line


Lower.lower_inst = _noting_line(Lower.lower_inst)  # type: ignore[method-assign]
CPUCallConv.set_static_user_exc = _with_line(CPUCallConv.set_static_user_exc)  # type: ignore[method-assign]


def _directory_of(function: Function) -> Path:
    """Return a directory for the machine code of `function`; RuntimeError or OSError if none can be written.

    It is NUMBA_CACHE_DIR, which several checkouts can share, or lies beside the source.
    """
    if not config.CACHE_DIR:  # type: ignore[attr-defined]
        return Path(CompileResultCacheImpl(function).locator.get_cache_path())
    directory = Path(config.CACHE_DIR)  # type: ignore[attr-defined]
    directory.mkdir(parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise PermissionError(f"{directory} cannot be written")
    return directory


@functools.cache
def _warn_of_no_directory() -> None:
    log.warning(
        "no directory for machine code can be written, so every process compiles for up to a minute: set "
        "NUMBA_CACHE_DIR to a directory that can"
    )


def _remove_oldest(directory: Path) -> None:
    """Remove all but MOST_FILES files, and those of Numba's own cache, which versions before 0.3 used."""
    kept = sorted(directory.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
    for path in (*kept[:-MOST_FILES], *directory.glob("*.nb[ic]")):
        path.unlink(missing_ok=True)


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def _forget_other_caches(function: Function, seen: set[int]) -> None:
    """Have the kernels below `function` compiled, not loaded from a cache that their author has asked Numba for.

    Such a cache does not notice a change outside of the kernel's file.
    """
    plain = getattr(function, "py_func", function)
    values = (*plain.__globals__.values(), *(cell.cell_contents for cell in plain.__closure__ or ()))
    for kernel in (each for each in values if isinstance(each, Dispatcher) and id(each) not in seen):
        seen.add(id(kernel))
        if not isinstance(getattr(kernel, "_cache", None), _KeptCode):
            vars(kernel)["_cache"] = NullCache()
        _forget_other_caches(kernel, seen)


class UnknownContentError(Exception):
    """A function uses something whose changes cannot be noticed."""


def describe(value: object) -> object:
    """Return nested tuples of plain values that change whenever compiled code that uses `value` would."""
    return _Description()(value, ())


class _Description:
    def __init__(self) -> None:
        self._seen: dict[int, object] = {}
        self._open: set[int] = set()  # functions that are being described

    def __call__(self, value: object, names: tuple[str, ...]) -> object:
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
            # Numba does not keep code that uses a larger array.
            case np.generic() | np.ndarray() if not value.dtype.hasobject and value.nbytes <= 10**6:
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
        with suppress(OSError):  # no name leads to an implementation that Numba selects by type, so take the whole file
            reached[""] = Path(function.__code__.co_filename).read_bytes()
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells, reached)
        module = function.__module__  # kept code finds the function's environment by this name
        described = "function", module, *(self(each, names) for each in parts)
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


_lock = threading.RLock()
_locked: set[str] = set()  # functions that this process is compiling


def _compile_alone(compile_: Function, cache: _KeptCode, signature: Signature | tuple[numba.types.Type, ...]) -> object:
    """Compile for `signature`, but once for all constants: Numba would for each one that a caller passes."""
    if isinstance(signature, tuple):
        signature = tuple(numba.types.unliteral(each) for each in signature)
    with _lock, _alone_on_machine(cache.directory, cache.function_name):
        return compile_(signature)


@contextmanager
def _alone_on_machine(directory: Path, function: str) -> Iterator[None]:
    """Let no other process compile `function` during the outermost block; between threads, there is _lock.

    A process that compiles a function waits only for those that compile what it calls: never in a circle.
    """
    if function in _locked:
        yield
        return
    _locked.add(function)
    with ExitStack() as stack:
        stack.callback(_locked.remove, function)
        with suppress(OSError):  # a directory without files or locks
            file = _lock_file(directory)
            byte = _byte_of(function)
            if _wait_for_lock(file, byte):
                stack.callback(fcntl.lockf, file, fcntl.LOCK_UN, 1, byte)
        yield


@functools.cache
def _lock_file(directory: Path) -> IO[str]:
    """Return a file with one byte to lock for each function. It stays open: closing it would release all its locks."""
    return (directory / "plyzero.lock").open("w")


def _byte_of(function: str) -> int:
    return int(digest_of(function), 16) % (1 << 62)


def _wait_for_lock(file: IO[str], byte: int) -> bool:
    """Return whether this process has locked one byte of `file`, within WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
        else:
            return True
    return False
