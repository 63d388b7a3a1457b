"""The page reads tables of bytes, of bits and of numbers of the state."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.node_search import run_node

DRIVER = Path(__file__).parents[2] / "helpers" / "node_text.mjs"


@pytest.mark.parametrize(
    ("node", "states", "texts"),
    [
        ([1, 0, 2, 0, 3, 9, 1], [[7, 0], [7, 2], [7, 9], [7, 10]], ["low", "low", "high", None]),
        ([2 + 8 * 1 + 7, 0, 0, 0, 1, 1, 1], [[255, 127], [0, 128]], ["low", "high"]),
    ],
)
@pytest.mark.usefixtures("node")
def test_a_node_asks_for_a_byte_or_a_bit(node: list[int], states: list[list[int]], texts: list[str | None]):
    table = {"words": [], "texts": ["low", "high"], "nodes": [node], "items": [-1]}
    assert run_node(DRIVER, {"table": table, "states": states}) == texts


@pytest.mark.usefixtures("node")
def test_a_number_of_the_state_is_shown_with_its_sign_factor_and_rest():
    table: dict[str, Any] = {"words": ["has ", [0, 2, True, -1, 3]], "texts": [[0, 1]], "nodes": [], "items": [0]}
    assert run_node(DRIVER, {"table": table, "states": [[1, 1], [254, 255]]}) == ["has -254", "has 5"]
