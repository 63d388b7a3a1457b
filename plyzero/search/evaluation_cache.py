"""A cache of evaluations: a network evaluates an observation once, until another network replaces it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.counter_rng import WORD, murmur_finalizer
from plyzero.search.kernel_cache import cached_njit
from plyzero.search.numba_arrays import copy_to

ABSENT: Final = -1
"""What `find` returns when an evaluation is not stored."""


class Cache(NamedTuple):
    """Room for M evaluations, M a power of two or 0. The key's hash says where one is stored; a newer one replaces it.

    hashes: `[M]` int64, hash of each key; ABSENT where nothing is stored.
    keys:   `[M, K]` uint32, the bits of the whole observation: only equal observations share an evaluation.
    logits: `[M, A]` float32. wdl: `[M, 3]` float32.
    counts: `[2]` int64, number of look-ups, and of hits.
    """

    hashes: NDArray[np.int64]
    keys: NDArray[np.uint32]
    logits: NDArray[np.float32]
    wdl: NDArray[np.float32]
    counts: NDArray[np.int64]


def make_cache(num_bytes: int, *, observation_size: int, num_actions: int) -> Cache:
    """Return an empty cache of at most `num_bytes`."""
    places = num_bytes // (8 + 4 * (observation_size + num_actions + 3))
    m = 1 << (places.bit_length() - 1) if places else 0
    return Cache(
        np.full(m, ABSENT, np.int64),
        np.zeros((m, observation_size), np.uint32),
        np.zeros((m, num_actions), np.float32),
        np.zeros((m, 3), np.float32),
        np.zeros(2, np.int64),
    )


def forget(cache: Cache) -> None:
    """Empty the cache; its counts go on."""
    cache.hashes[:] = ABSENT


@cached_njit
def find(cache: Any, observation: NDArray[np.float32]) -> int:
    """Return the place of the evaluation of `observation`, `[C, H, W]`, or ABSENT."""
    if len(cache.hashes) == 0:
        return ABSENT
    cache.counts[0] += 1
    key = observation.reshape(-1).view(np.uint32)
    hashed = hash_of(key)
    place = hashed & (len(cache.hashes) - 1)
    if cache.hashes[place] != hashed:
        return ABSENT
    for k in range(len(key)):
        if cache.keys[place, k] != key[k]:
            return ABSENT
    cache.counts[1] += 1
    return place


@cached_njit
def remember(
    cache: Any, observation: NDArray[np.float32], logits: NDArray[np.float32], wdl: NDArray[np.float32]
) -> None:
    """Store the evaluation of `observation`: `logits` `[A]` and `wdl` `[3]`."""
    if len(cache.hashes) == 0:
        return
    key = observation.reshape(-1).view(np.uint32)
    hashed = hash_of(key)
    place = hashed & (len(cache.hashes) - 1)
    cache.hashes[place] = hashed
    copy_to(cache.keys[place], key)
    copy_to(cache.logits[place], logits)
    copy_to(cache.wdl[place], wdl)


@cached_njit
def hash_of(key: NDArray[np.uint32]) -> int:
    """Return 32 bits: the sum of the hashes of all words with their places. Zeros, most of any plane, add nothing."""
    total = 0
    for k in range(len(key)):
        if key[k]:
            total += murmur_finalizer((int(key[k]) + (k + 1) * 0x9E37_79B9) & WORD)
    return murmur_finalizer(total & WORD)
