"""Evaluations remembered: what a network said of an observation is not asked again until another network comes."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from plyzero.search.counter_rng import WORD, murmur_finalizer
from plyzero.search.numba_arrays import copy_to

ABSENT: Final = -1


class Cache(NamedTuple):
    """M evaluations, M a power of two or 0. Where one lies follows from its key; a newer one takes its place.

    hashes: `[M]` int64, of the keys; ABSENT where there is none.
    keys:   `[M, K]` uint32, the bits of the whole observation: only equal ones share an evaluation.
    logits: `[M, A]` float32. wdl: `[M, 3]` float32.
    counts: `[2]` int64, how often an evaluation was looked for, and found.
    """

    hashes: NDArray[np.int64]
    keys: NDArray[np.uint32]
    logits: NDArray[np.float32]
    wdl: NDArray[np.float32]
    counts: NDArray[np.int64]


def make_cache(num_bytes: int, *, observation_size: int, num_actions: int) -> Cache:
    """Return an empty cache that takes at most `num_bytes`."""
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
    """Empty the cache, all but its counts."""
    cache.hashes[:] = ABSENT


@numba.njit(cache=True)
def find(cache: Any, observation: NDArray[np.float32]) -> int:
    """Return where the evaluation of `observation`, `[C, H, W]`, lies, or ABSENT."""
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


@numba.njit(cache=True)
def remember(
    cache: Any, observation: NDArray[np.float32], logits: NDArray[np.float32], wdl: NDArray[np.float32]
) -> None:
    """Keep the evaluation of `observation`."""
    if len(cache.hashes) == 0:
        return
    key = observation.reshape(-1).view(np.uint32)
    hashed = hash_of(key)
    place = hashed & (len(cache.hashes) - 1)
    cache.hashes[place] = hashed
    copy_to(cache.keys[place], key)
    copy_to(cache.logits[place], logits)
    copy_to(cache.wdl[place], wdl)


@numba.njit(cache=True)
def hash_of(key: NDArray[np.uint32]) -> int:
    """Return 32 bits: mixes of each word with its place, added up; zeros, which most planes are, add nothing."""
    total = 0
    for k in range(len(key)):
        if key[k]:
            total += murmur_finalizer((int(key[k]) + (k + 1) * 0x9E37_79B9) & WORD)
    return murmur_finalizer(total & WORD)
