"""The cache of evaluations: it saves the network work and changes nothing."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plyzero.games.connect_four import ConnectFour
from plyzero.games.tic_tac_toe import TicTacToe
from plyzero.rules.counter_rng import murmur_finalizer, random_bits
from plyzero.search.evaluation_cache import ABSENT, Cache, find, forget, hash_of, make_cache, recall, remember
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.search.slots import SearchSlots
from plyzero.search.tree import EDGE
from plyzero.selfplay.games_in_play import GamesInPlay
from plyzero.settings import SearchSettings, Settings
from tests.helpers.runs import records_by_seed
from tests.helpers.toys import CompiledHarvest, Constant, Hashed, Plain, Relay


class Counting(Hashed):
    """An evaluator that counts its positions."""

    asked = 0

    def __call__(self, leaves: EvaluationBatch) -> Evaluation:
        self.asked += len(leaves.observations)
        return super().__call__(leaves)


def planes(number: int) -> np.ndarray:
    """Return an observation of its own for every number below 2**8, most of it zeros."""
    return np.array([number >> bit & 1 for bit in range(8)], np.float32).reshape(2, 2, 2)


def row_of(number: int) -> np.ndarray:
    """Return the edges of a position with one to three of four legal actions, and logits of its own."""
    actions = [action for action in range(4) if (number % 7 + 1) >> action & 1]
    row = np.zeros(len(actions), EDGE)
    row["action"], row["logit"] = actions, np.array(actions) + number / 3
    return row


def cache_of(num_bytes: int = 1000, *, packs_bits: bool = False) -> Cache:
    return make_cache(num_bytes, observation_size=8, num_actions=4, packs_bits=packs_bits)


def fill(cache: Cache, number: int) -> None:
    remember(cache, planes(number), row_of(number), np.full(3, -number, np.float32))


def recalled(cache: Cache, number: int, row: np.ndarray | None = None) -> tuple[list[float], list[float]] | None:
    """Return the logits and the evaluation that are stored for a position, None if there are none."""
    row, wdl = row_of(number) if row is None else row, np.zeros(3, np.float32)
    found = find(cache, planes(number), row)
    if found == ABSENT:
        return None
    row["logit"] = np.nan
    recall(cache, found, row, wdl)
    return row["logit"].tolist(), wdl.tolist()


def expected(number: int) -> tuple[list[float], list[float]]:
    return row_of(number)["logit"].tolist(), [-number] * 3


SELFPLAY = {"parallel_games": 4, "simulations": 24, "fast_simulations": 8}


def played(start, cache_mb):
    """Return the records of twelve games, and the number of positions that were evaluated."""
    settings, evaluate = Settings(selfplay={**SELFPLAY, "cache_mb": cache_mb}), Counting(start.num_actions)
    return records_by_seed(start, settings, evaluate, count=12), evaluate.asked


@pytest.mark.parametrize("start", [TicTacToe(), ConnectFour(), Plain(TicTacToe())], ids=["ttt", "c4", "plain"])
def test_games_are_the_same_with_the_cache_with_one_that_forgets_and_without_it(start, monkeypatch):
    with_it, asked = played(start, 1)
    without_it, asked_without = played(start, 0)
    monkeypatch.setattr("plyzero.search.storage.make_cache", lambda _, **sizes: make_cache(1000, **sizes))
    assert with_it == without_it == played(start, 1)[0]
    assert asked < 0.8 * asked_without


def test_another_evaluator_is_asked_everything_anew():
    slots = SearchSlots(ConnectFour(), SearchSettings(), slots=1, simulations=30, cache_bytes=1 << 20)
    for value in (1, -1, -1):
        slots.begin(0, ConnectFour(), simulations=30)
        slots.run(Constant(7, value == 1, 0, value == -1))
        assert slots.result(0).network_value == value


@pytest.mark.parametrize("num_bytes", [0, 10, 1000, 123_456, 1 << 20])
def test_a_cache_takes_no_more_memory_than_it_may(num_bytes):
    cache = cache_of(num_bytes)
    arrays = cache.places.nbytes + cache.ring.nbytes
    assert arrays <= num_bytes
    assert num_bytes < 200 or arrays > num_bytes - 8


def test_a_cache_without_room_finds_nothing():
    cache = cache_of(0, packs_bits=True)
    fill(cache, 1)
    assert recalled(cache, 1) is None


@given(st.lists(st.integers(0, 255), max_size=60), st.integers(200, 20_000), st.booleans())
def test_what_is_found_is_what_was_remembered_of_that_very_position(numbers, num_bytes, packs_bits):
    cache = cache_of(num_bytes, packs_bits=packs_bits)
    for number in numbers:
        fill(cache, number)
        assert recalled(cache, number) == expected(number)
        for earlier in numbers:  # which others may have driven out
            assert recalled(cache, earlier) in (None, expected(earlier))
    for number in set(range(256)) - set(numbers):
        assert recalled(cache, number) is None
    forget(cache)
    assert all(recalled(cache, number) is None for number in numbers)


@pytest.mark.parametrize("packs_bits", [False, True])
def test_positions_that_only_share_a_hash_share_nothing(packs_bits):
    cache = cache_of(packs_bits=packs_bits)
    fill(cache, 5)
    place = hash_of(cache.key) & (len(cache.places) - 1)
    assert recalled(cache, 6) is None
    wanted = hash_of(cache.key)
    cache.places[wanted & (len(cache.places) - 1)] = wanted, cache.places[place]["begin"]
    assert recalled(cache, 6) is None


@pytest.mark.parametrize("packs_bits", [False, True])
def test_equal_observations_with_other_legal_actions_share_nothing(packs_bits):
    cache = cache_of(packs_bits=packs_bits)
    fill(cache, 5)
    assert recalled(cache, 5) == expected(5)
    assert recalled(cache, 5, row_of(6)) is None


def test_observations_of_bool_are_kept_as_bits_and_legal_logits_alone():
    sizes = {"observation_size": 17 * 361, "num_actions": 362}
    cache, row = make_cache(1 << 20, **sizes, packs_bits=True), np.zeros(35, EDGE)
    row["action"] = np.arange(35)
    bits = np.random.default_rng(0).integers(0, 2, (400, 17 * 361)).astype(np.float32)
    for each in bits:
        remember(cache, each, row, np.zeros(3, np.float32))
    assert sum(find(cache, each, row) != ABSENT for each in bits) > 300
    assert len(cache.key) == 192 + 12
    assert len(make_cache(1 << 20, **sizes, packs_bits=False).key) == 17 * 361 + 12


def test_numbers_that_are_no_bits_are_not_taken_for_bits():
    cache = cache_of(packs_bits=True)
    fill(cache, 3)
    for number in (0.5, -1.0, np.nan):
        observation, row = planes(3) * np.float32(number), row_of(3)
        remember(cache, observation, row, np.zeros(3, np.float32))
        assert find(cache, observation, row) == ABSENT
    assert recalled(cache, 3) == expected(3)


def test_random_bits_are_even_and_differ_by_seed_and_place():
    seeds = [np.uint64(seed) for seed in (0, 1, 2**32, 2**63 + 5)]
    compiled = numba.njit(random_bits)
    drawn = np.array([[compiled(seed, n) for n in range(4000)] for seed in seeds])
    assert len(np.unique(drawn)) > 0.999 * drawn.size
    for bit in range(32):
        assert (drawn >> bit & 1).mean() == pytest.approx(0.5, abs=0.02)
    assert np.abs(np.corrcoef(drawn) - np.eye(4)).max() < 0.06
    assert drawn[:, :20].tolist() == [[random_bits(seed, n) for n in range(20)] for seed in seeds]
    assert numba.njit(murmur_finalizer)(123_456_789) == murmur_finalizer(123_456_789)


def test_a_worker_with_a_full_cache_still_looks_up_after_each_game():
    for start, positions in ((CompiledHarvest(5), 55), (Relay(6), 6)):
        evaluate = Counting(start.num_actions)
        games = GamesInPlay(start, Settings(selfplay=SELFPLAY), seeds=itertools.count())
        finished = [games.run(evaluate) for _ in range(800)]
        assert evaluate.asked < 2 * positions + 24  # some share a place and drive each other out
        assert max(map(len, finished)) <= 4
        assert sum(map(len, finished[-100:])) > 250
