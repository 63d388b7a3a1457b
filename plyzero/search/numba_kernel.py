"""Numba for the kernel: machine code kept on disk, and arrays without reference counting.

A function's machine code depends on all the files of the search, so it is kept until any of them changes.
"""

from __future__ import annotations

import functools
import hashlib
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import numba
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core.cgutils import get_null_value
from numba.core.cpu import CPUContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload, register_jitable

from plyzero.errors import UserError
from plyzero.rules.counter_rng import murmur_finalizer, random_bits
from plyzero.rules.machine_code import Function, is_kept, keep


def check_numba(version: str) -> None:
    """Raise UserError if this version of Numba is not supported."""
    first, end = (0, 61), (0, 69)  # the first that works, and the first that was not tried
    found = tuple(int(part) for part in version.split(".")[:2])
    if not first <= found < end:
        needed = f">={first[0]}.{first[1]},<{end[0]}.{end[1]}"
        raise UserError(
            f"expected Numba {needed}, whose internals plyzero uses, found {version}: pip install 'numba{needed}'"
        )


check_numba(numba.__version__)

PACKAGE: Final = Path(__file__).parent.parent

F = TypeVar("F", bound=Function)
T = TypeVar("T")

Implementation = tuple[Signature, Callable[[CPUContext, IRBuilder, Signature, Sequence[Value]], Value]]
"""The type that `intrinsic` expects: a signature, and the function that writes the LLVM code for it."""


@typing.overload
def cached_njit(function: F) -> F: ...
@typing.overload
def cached_njit(*, inline: Literal["always"]) -> Callable[[F], F]: ...
@typing.overload
def cached_njit(*, nogil: Literal[True]) -> Callable[[F], F]: ...
def cached_njit(
    function: Function | None = None, *, inline: Literal["never", "always"] = "never", nogil: bool = False
) -> Any:
    """Compile a kernel function, as `numba.njit` does, with a cache on disk keyed by the kernel's sources.

    inline: "always" inserts the function's body where it is called. Functions of Trees are inlined: to copy and count
            so many arrays at every call would take longer than the search itself.
    nogil:  whether other threads go on while it runs, for functions that call the rules of a game, which may hang.
    """
    if function is None:
        return functools.partial(cached_njit, inline=inline, nogil=nogil)
    jit: Any = numba.njit  # its types do not know the option that leaves out the wrapper for callers in C
    dispatcher = jit(inline=inline, nogil=nogil, no_cfunc_wrapper=True)(function)
    if hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT=1 returns the function itself
        source = Path(function.__code__.co_filename)
        keep(dispatcher, f"{source.stem}.{function.__qualname__}", kernel_digest(source), one_content=True)
    return dispatcher


for _function in (murmur_finalizer, random_bits):
    register_jitable(_function)  # plain Python, which compiled code may call


def is_plain_python() -> bool:
    """Return whether the search runs as plain Python in this process: no kernel is compiled or read from disk."""
    return bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def is_compiled() -> bool:
    """Return whether a process that imports the search now will find its machine code on disk."""
    digest = kernel_digest(PACKAGE / "search" / "mcts.py")
    names = ("batches.advance_all", "policy.principal_variation", "policy.policy_target")  # first and last of a move
    return all(is_kept(cached_njit, name, digest) for name in names)


@functools.cache
def kernel_digest(file: Path) -> str:
    """Return 16 hex digits that change with the content of any kernel source; `file` holds the function compiled."""
    rules = PACKAGE / "rules"
    of_rules = {rules / f"{name}.py" for name in ("game", "compiled_game", "chance", "counter_rng")}
    sources = {*(PACKAGE / "search").glob("*.py"), *of_rules, file}
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def borrowed(value: T) -> T:
    """Return `value`, an array or a tuple of arrays, without reference counts; the caller keeps the original alive.

    Numba counts references to arrays atomically, and to every slice that is passed to a function. The search slices at
    every step, and spent half of its time on this.
    """
    return value


@overload(borrowed, strict=False)
def _borrowed_compiled(value: types.Type) -> Function:
    return lambda value: _without_count(value)  # type: ignore[call-arg]


@intrinsic
def _without_count(_: object, value: types.Type) -> Implementation:
    def generate(context: CPUContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]) -> Value:
        return _strip(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip(context: CPUContext, builder: IRBuilder, kind: types.Type, value: Value) -> Value:
    """Return LLVM code for `value`, of Numba's type `kind`, without the reference counts of its arrays."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = get_null_value(array.meminfo.type)
        array.parent = get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        assert isinstance(kind, Iterable)
        parts = [_strip(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
        return context.make_tuple(builder, kind, parts)
    return value
