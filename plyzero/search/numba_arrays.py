"""Numba arrays without their costs: passed without reference counting, copied without broadcasting."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import get_null_value
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from plyzero.search.kernel_cache import cached_njit


def borrowed(value: Any) -> Any:
    """Return `value`, an array or a tuple of arrays, without reference counts; the caller keeps the original alive.

    Numba counts the references to an array atomically, also those of every slice that is passed to a function. In the
    search, which slices at every step, that took half of the time.
    """
    return value


@cached_njit
def copy_to(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Assign `target[...] = source`, two contiguous arrays of the same size.

    NumPy's assignment also broadcasts, which is slower here and takes four seconds longer to compile.
    """
    flat_target, flat_source = target.reshape(-1), source.reshape(-1)
    for i in range(len(flat_target)):
        flat_target[i] = flat_source[i]


@overload(borrowed, strict=False)
def _borrowed_compiled(value: Any) -> Any:
    return lambda value: _without_count(value)  # type: ignore[call-arg]


@intrinsic
def _without_count(_: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _strip(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return LLVM code for `value`, of Numba's type `kind`, without the reference counts of its arrays."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = get_null_value(array.meminfo.type)  # type: ignore[no-untyped-call]
        array.parent = get_null_value(array.parent.type)  # type: ignore[no-untyped-call]
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        parts = [_strip(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kinds)]
        return context.make_tuple(builder, kind, parts)
    return value
