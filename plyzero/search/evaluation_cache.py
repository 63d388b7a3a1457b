"""A cache of evaluations: a network evaluates an observation once, until another network replaces it.

An entry holds the observation, as bits if it has only 0 and 1, the legal actions as bits, and the logits of the legal
actions alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.counter_rng import WORD, murmur_finalizer
from plyzero.search.copying import copy_to
from plyzero.search.numba_kernel import cached_njit

ABSENT: Final = -1
"""The result of `find` for an evaluation that is not stored."""

STATE: Final = np.dtype(
    [
        ("look_ups", "i8"),
        ("hits", "i8"),
        ("written", "i8"),  # words written so far
        ("packs_bits", "i8"),  # 1 = observations have only 0 and 1
    ],
    align=True,
)

PLACE: Final = np.dtype(
    [
        ("hash", "i8"),  # hash of an entry's key, or ABSENT
        ("begin", "i8"),  # number of words written before the entry
    ]
)
"""The place of an entry. Both numbers are in one cache line, because each look-up is likely to miss the cache."""


class Cache(NamedTuple):
    """Evaluations one after another in a ring of W words, where the newest overwrite the oldest.

    An entry is a key of K words, win, draw, loss and perhaps the score (float32), and the logits (float32) of the legal
    actions in ascending order. The key is the whole observation and the set of legal actions: only positions that are
    equal in both share an evaluation.

    places: `[M]` PLACE, M a power of two or 0; the hash of a key selects its place.
    ring:   `[W]` uint32.
    key:    `[K]` uint32, room for a key.
    state:  `[1]` STATE.
    """

    places: NDArray[np.void]
    ring: NDArray[np.uint32]
    key: NDArray[np.uint32]
    state: NDArray[np.void]


def make_cache(num_bytes: int, *, observation_size: int, num_actions: int, packs_bits: bool) -> Cache:
    """Return an empty cache of at most `num_bytes`, besides room for one key.

    packs_bits: keep observations as bits; one that has other numbers than 0 and 1 is then not remembered.
    """
    words = _words_of_bits(observation_size) if packs_bits else observation_size
    words += _words_of_bits(num_actions)
    places = num_bytes // (16 + 4 * (words + 3 + min(num_actions, 32)))  # room for 32 legal actions; there may be more
    m = 1 << (places.bit_length() - 1) if places else 0
    state = np.zeros(1, STATE)
    state["packs_bits"] = packs_bits
    return Cache(
        np.full(m, np.array((ABSENT, 0), PLACE)),
        np.zeros((num_bytes - 16 * m) // 4 if m else 0, np.uint32),
        np.zeros(words, np.uint32),
        state,
    )


def _words_of_bits(count: int) -> int:
    return -(-count // 32)


def forget(cache: Cache) -> None:
    """Empty the cache; its counts go on."""
    cache.places["hash"] = ABSENT


@cached_njit
def find(cache: Cache, observation: NDArray[np.float32], row: NDArray[np.void]) -> int:
    """Return where the evaluation of `observation`, `[C, H, W]`, with legal actions `row` begins, after its key.

    row: `[n]` EDGE of plyzero.search.tree. Returns ABSENT if it is not stored, else a place in the ring.
    """
    if len(cache.places) == 0:
        return ABSENT
    state, key = cache.state[0], cache.key
    state["look_ups"] += 1
    if not write_key(key, observation, row, state["packs_bits"]):
        return ABSENT
    hashed = hash_of(key)
    place = cache.places[hashed & (len(cache.places) - 1)]
    if place["hash"] != hashed or state["written"] - place["begin"] > len(cache.ring):
        return ABSENT
    begin = place["begin"] % len(cache.ring)
    for k in range(len(key)):
        if cache.ring[begin + k] != key[k]:
            return ABSENT
    state["hits"] += 1
    return int(begin + len(key))


@cached_njit
def recall(cache: Cache, found: int, row: NDArray[np.void], wdl: NDArray[np.float32]) -> None:
    """Write the evaluation at `found`, which `find` has returned, into the logits of `row` and into `wdl`."""
    numbers = cache.ring.view(np.float32)
    copy_to(wdl, numbers[found : found + len(wdl)])
    for e in range(len(row)):
        row[e]["logit"] = numbers[found + len(wdl) + e]


@cached_njit
def remember(cache: Cache, observation: NDArray[np.float32], row: NDArray[np.void], wdl: NDArray[np.float32]) -> None:
    """Store the evaluation of `observation`: the network's logits, in the edges `row`, and `wdl`, always as long."""
    key, state = cache.key, cache.state[0]
    size = len(key) + len(wdl) + len(row)
    if len(cache.ring) < size or not write_key(key, observation, row, state["packs_bits"]):
        return
    begin = state["written"] % len(cache.ring)
    if begin + size > len(cache.ring):  # an entry is not split
        state["written"] += len(cache.ring) - begin
        begin = 0
    hashed = hash_of(key)
    place = cache.places[hashed & (len(cache.places) - 1)]
    place["hash"], place["begin"] = hashed, state["written"]
    state["written"] += size
    copy_to(cache.ring[begin : begin + len(key)], key)
    numbers = cache.ring.view(np.float32)[begin + len(key) : begin + size]
    copy_to(numbers[: len(wdl)], wdl)
    for e in range(len(row)):
        numbers[len(wdl) + e] = row[e]["logit"]


@cached_njit
def write_key(
    key: NDArray[np.uint32], observation: NDArray[np.float32], row: NDArray[np.void], packs_bits: int
) -> bool:
    """Write the key of `observation` with legal actions `row`; return False if it has numbers that are no bits."""
    flat, is_binary = observation.reshape(-1), True
    if packs_bits:
        actions = (len(flat) + 31) >> 5 << 5  # the bit of action 0
        key[actions >> 5 :] = 0
        for k in range(actions >> 5):
            bits, word = flat[32 * k : 32 * k + 32], np.uint32(0)
            for i in range(len(bits)):  # no branch, so that the compiler can vectorise it
                word |= np.uint32(bits[i] != 0) << np.uint32(i)
                is_binary &= (bits[i] == 0) | (bits[i] == 1)
            key[k] = word
    else:
        actions = len(flat) << 5
        copy_to(key[: len(flat)], flat.view(np.uint32))
        key[len(flat) :] = 0
    for e in range(len(row)):
        bit = actions + row[e]["action"]
        key[bit >> 5] |= np.uint32(1 << (bit & 31))
    return is_binary


@cached_njit
def hash_of(key: NDArray[np.uint32]) -> int:
    """Return 32 bits: the sum of the hashes of all words with their places. Zeros, most of any plane, add nothing."""
    total = 0
    for k in range(len(key)):
        if key[k]:
            total += murmur_finalizer((int(key[k]) + (k + 1) * 0x9E37_79B9) & WORD)
    return murmur_finalizer(total & WORD)
