"""A pytest plugin: a test fails that leaves a block of memory damaged.

`make test-memory` builds guard.c, and loads it with LD_PRELOAD into the processes that run the tests.
"""

import ctypes
import os
from collections.abc import Iterator

import pytest

guard = ctypes.CDLL(os.environ["LD_PRELOAD"])
seen = 0


@pytest.fixture(autouse=True)
def _no_block_is_damaged() -> Iterator[None]:
    global seen
    yield
    before, seen = seen, guard.guard_damaged()
    assert seen == before, "memory was written past the end of a block: see what guard has printed"
