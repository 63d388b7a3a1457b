"""Compile the kernel's functions, and keep their machine code on disk until any of the kernel's sources changes.

The search is spread over several files, so what a function is compiled to follows from all of them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import numba
from numba.extending import register_jitable

from plyzero.errors import UserError
from plyzero.rules.counter_rng import murmur_finalizer, random_bits
from plyzero.rules.machine_code import is_kept, keep

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
        keep(dispatcher, _name_of(function), kernel_digest(Path(function.__code__.co_filename)), one_content=True)
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
    digest = kernel_digest(PACKAGE / "search" / "mcts.py")
    names = ("mcts.advance_all", "mcts.principal_variation", "policy.policy_target")  # the first and the last of a move
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


def _name_of(function: Callable[..., Any]) -> str:
    return f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}"


check_numba(numba.__version__)
