"""Arrays in compiled code: lent without an owner, and copied without broadcasting."""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core.cgutils import get_null_value
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def borrowed(value: Any) -> Any:
    """Return `value`, an array or a tuple of some, without owners; what is lent must outlive the use of it.

    Numba counts an array's owners atomically, also those of every slice that is handed to a function. In the search,
    which slices at every step, that took half of the time.
    """
    return value


@numba.njit(cache=True)
def copy_to(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Do `target[...] = source` for two arrays of the same size, each in one piece.

    NumPy's own would also broadcast: slower here, and four seconds longer to compile.
    """
    to, of = target.reshape(-1), source.reshape(-1)
    for i in range(len(to)):
        to[i] = of[i]


@overload(borrowed, strict=False)
def _borrowed_in_compiled_code(value: Any) -> Any:
    return lambda value: _without_owner(value)  # type: ignore[call-arg]


@intrinsic
def _without_owner(_: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _strip(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return LLVM code for `value`, of Numba's type `kind`, with no array's owner in it."""
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
