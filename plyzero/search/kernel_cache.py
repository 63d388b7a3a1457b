"""Compile the kernel's functions, and keep their machine code on disk until any of the kernel's sources changes.

Numba's own cache watches the file of the compiled function alone. The search is spread over several files, so after an
edit or an upgrade of one file Numba would go on to run machine code made from the old one. Here the names of the cache
files contain a digest of all kernel sources: another version of the kernel never finds them.
"""

from __future__ import annotations

import functools
import glob
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import register_jitable

from plyzero.errors import UserError
from plyzero.files import remove
from plyzero.rules.counter_rng import murmur_finalizer, random_bits
from plyzero.rules.machine_code import compile_once

SUPPORTED_NUMBA: Final = ((0, 61), (0, 69))
"""The first version that works, and the first that was not tried: internals of Numba are used."""

PACKAGE: Final = Path(__file__).parent.parent


def cached_njit(function: Callable[..., Any] | None = None, *, inline: Literal["never", "always"] = "never") -> Any:
    """Compile a kernel function, as `numba.njit` does, with a cache on disk keyed by the kernel's sources.

    inline: "always" inserts the function's body where it is called. What takes Trees is inlined: to copy and count so
    many arrays at every call takes longer than the search itself.
    """
    if function is None:
        return functools.partial(cached_njit, inline=inline)
    jit: Any = numba.njit  # its types do not know the option that leaves out the wrapper for callers in C
    dispatcher = jit(inline=inline, no_cfunc_wrapper=True)(function)
    if hasattr(dispatcher, "py_func"):  # with NUMBA_DISABLE_JIT=1 it is the function itself
        dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
        compile_once(dispatcher)
    return dispatcher


for _function in (murmur_finalizer, random_bits):
    register_jitable(_function)  # plain Python, which compiled code may call


def check_numba(version: str) -> None:
    """Raise UserError if this version of Numba is not supported."""
    first, end = SUPPORTED_NUMBA
    found = tuple(int(part) for part in version.split(".")[:2])
    if not first <= found < end:
        needed = f">={first[0]}.{first[1]},<{end[0]}.{end[1]}"
        raise UserError(
            f"expected Numba {needed}, whose internals plyzero uses, found {version}: pip install 'numba{needed}'"
        )


def is_compiled() -> bool:
    """Return whether a process that imports the search now will find its machine code on disk."""
    names = ("mcts.advance_all", "mcts.principal_variation", "policy.policy_target")  # the first and the last of a move
    try:
        directory = Path(_KernelCache(cached_njit).cache_path)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):  # no directory can be written, so nothing is kept
        return False
    digest = kernel_digest(PACKAGE / "search" / "mcts.py")
    return all(any(directory.glob(f"{name}-*.{digest}.nbi")) for name in names)


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


class _KernelCacheImpl(CompileResultCacheImpl):
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        base = super().get_filename_base(fullname, abiflags)  # type: ignore[no-untyped-call]
        return f"{base}.{kernel_digest(Path(self.locator._py_file))}"


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save machine code, and remove what other versions of the kernel have left of the same function."""
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        function, _, own = self._impl.filename_base.partition("-")
        for path in Path(self.cache_path).glob(f"{glob.escape(function)}-*.nb[ic]"):
            if own.rpartition(".")[2] not in path.name:
                remove(path)


check_numba(numba.__version__)
