"""One array copied to another, which compiled code does without making an object of either."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plyzero.search.numba_kernel import cached_njit


@cached_njit
def copy_to(target: NDArray[np.generic], source: NDArray[np.generic]) -> None:
    """Assign `target[...] = source`, two contiguous arrays of the same size.

    NumPy's assignment also broadcasts, which is slower here and takes four seconds longer to compile.
    """
    flat_target, flat_source = target.reshape(-1), source.reshape(-1)
    for i in range(len(flat_target)):
        flat_target[i] = flat_source[i]
