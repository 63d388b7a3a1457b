"""Arrays that compiled code looks at without owning: their owners are counted elsewhere.

Numba counts an array's owners atomically, also those of every slice that is handed to a function. In the search, which
slices at every step, that took half of the time.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import get_null_value
from numba.extending import intrinsic, overload


def borrowed(value: Any) -> Any:
    """Return the array, or the tuple of arrays and others, without an owner; what is lent must outlive the use of it."""
    return value


@overload(borrowed, strict=False)
def _borrowed_in_compiled_code(value: Any) -> Any:
    return lambda value: _without_owner(value)


@intrinsic
def _without_owner(_: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _strip(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return LLVM code for `value`, of Numba's type `kind`, with no array's owner in it."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = get_null_value(array.meminfo.type), get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = [builder.extract_value(value, i) for i in range(len(kind))]
        return context.make_tuple(
            builder, kind, [_strip(context, builder, *each) for each in zip(kind, parts, strict=True)]
        )
    return value
