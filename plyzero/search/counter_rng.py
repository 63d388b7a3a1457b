"""Numbers that look random and follow from others: for draws that must be the same again, and for places in a table.

All in 64-bit integers that never overflow, so that compiled and interpreted code agree.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

WORD: Final = 0xFFFF_FFFF


@numba.njit(cache=True)
def murmur_finalizer(word: int) -> int:
    """Return 32 bits all of which depend on all of `word`'s 32 (the finalizer of MurmurHash3; Appleby, 2011)."""
    word = ((word ^ (word >> 16)) * 0x85EB_CA6B) & WORD
    word = ((word ^ (word >> 13)) * 0xC2B2_AE35) & WORD
    return word ^ (word >> 16)


@numba.njit(cache=True)
def random_bits(seed: np.uint64, n: int) -> int:
    """Return 32 bits, the n-th draw of the stream that belongs to the 64 bits of `seed`."""
    low, high = int(seed & np.uint64(WORD)), int(seed >> np.uint64(32))
    return murmur_finalizer(murmur_finalizer(murmur_finalizer(low) ^ high) ^ murmur_finalizer(n * 0x9E37_79B9 & WORD))
