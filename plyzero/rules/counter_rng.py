"""Random numbers computed from a seed and a counter: the same again at every call, in any order.

All arithmetic is in 64-bit integers that never overflow, so that compiled and interpreted code agree. These functions
are plain Python, which needs no Numba; plyzero.search.numba_kernel lets compiled code call them too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

WORD: Final = 0xFFFF_FFFF
"""Mask of the 32 bits of a word."""


def murmur_finalizer(word: int) -> int:
    """Return 32 bits that each depend on all 32 bits of `word` (the finalizer of MurmurHash3; Appleby, 2011)."""
    word = ((word ^ (word >> 16)) * 0x85EB_CA6B) & WORD
    word = ((word ^ (word >> 13)) * 0xC2B2_AE35) & WORD
    return word ^ (word >> 16)


def random_bits(seed: np.uint64, n: int) -> int:
    """Return 32 random bits, the n-th of the stream that belongs to the 64 bits of `seed`."""
    low, high = int(seed & np.uint64(WORD)), int(seed >> np.uint64(32))
    return murmur_finalizer(murmur_finalizer(murmur_finalizer(low) ^ high) ^ murmur_finalizer(n * 0x9E37_79B9 & WORD))


def seed_with_bits(bits: int, n: int, low: int) -> int:
    """Return the seed whose lower 32 bits are `low`, and for which `random_bits(seed, n)` returns `bits`."""
    inner = _inverse_finalizer(_inverse_finalizer(bits) ^ murmur_finalizer(n * 0x9E37_79B9 & WORD))
    return (inner ^ murmur_finalizer(low)) << 32 | low


def _inverse_finalizer(word: int) -> int:
    """Return the argument for which murmur_finalizer returns `word`: each of its steps can be undone."""
    word ^= word >> 16
    word = word * pow(0xC2B2_AE35, -1, 1 << 32) & WORD
    word ^= word >> 13 ^ word >> 26
    word = word * pow(0x85EB_CA6B, -1, 1 << 32) & WORD
    return word ^ word >> 16
