"""The wrapper of rules in WebAssembly: bytes go in and come out where they belong, and errors are sentences."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.node_search import run_node

DRIVER = Path(__file__).parents[2] / "helpers" / "node_rules.mjs"
HEAP_BASE = 65530
GAME: dict[str, Any] = {
    "stateBytes": 3,
    "toPlay": 2,
    "start": [0, 0, 0],
    "actions": 5,
    "observation": [2, 100, 100],  # more than the page of memory that the module has
    "numChances": 0,
    "maxScore": 0,
}

pytestmark = pytest.mark.usefixtures("node")


def answer(*calls: list[Any], module: bytes | None = None, **changes: Any) -> Any:
    rules = base64.b64encode(module or made_module()).decode()
    return run_node(DRIVER, {"game": GAME | changes, "rules": rules, "calls": calls})


def made_module(*, exports: tuple[str, ...] = ("play", "outcome", "legal", "observe")) -> bytes:
    """Return a module whose `play` calls the import PyErr_SetString for action 4, and else stores the action in byte 0.

    `outcome` returns byte 1 less 2, `legal` allows action 3, and `observe` writes 1.5 as the second number.
    """
    i32, i64 = 0x7F, 0x7E
    types = [signature([], []), signature([i32, i64], []), signature([i32], [i64]), signature([i32, i32], [])]
    local = [b"\x20" + bytes([n]) for n in range(2)]
    calls_python = local[1] + b"\x42\x04\x51\x04\x40\x10\x00\x0b"  # if action == 4 { PyErr_SetString() }
    play = calls_python + local[0] + local[1] + b"\x3c\x00\x00"  # i64.store8
    outcome = local[0] + b"\x31\x00\x01" + b"\x42\x02\x7d"  # i64.load8_u offset 1, minus 2
    legal = local[1] + b"\x41\x01" + b"\x3a\x00\x03"  # i32.store8 offset 3
    observe = local[1] + b"\x43\x00\x00\xc0\x3f" + b"\x38\x02\x04"  # f32.store offset 4
    bodies = [sized(b"\x00" + code + b"\x0b") for code in (play, outcome, legal, observe)]
    numbers = {"play": 1, "outcome": 2, "legal": 3, "observe": 4}
    exported = [text(name) + b"\x00" + bytes([numbers[name]]) for name in exports]
    exported += [text("memory") + b"\x02\x00", text("__heap_base") + b"\x03\x00"]
    return b"\0asm\1\0\0\0" + b"".join(
        bytes([number]) + sized(leb(len(items)) + b"".join(items))
        for number, items in (
            (1, types),
            (2, [text("env") + text("PyErr_SetString") + b"\x00\x00"]),
            (3, [b"\x01", b"\x02", b"\x03", b"\x03"]),
            (5, [b"\x00\x01"]),
            (6, [bytes([i32, 0, 0x41]) + leb(HEAP_BASE) + b"\x0b"]),
            (7, exported),
            (10, bodies),
        )
    )


def signature(parameters: list[int], results: list[int]) -> bytes:
    return b"\x60" + bytes([len(parameters), *parameters, len(results), *results])


def leb(number: int) -> bytes:
    """Return the LEB128 code of a number whose highest group of 7 bits begins with a 0."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def sized(content: bytes) -> bytes:
    return leb(len(content)) + content


def text(name: str) -> bytes:
    return sized(name.encode())


def test_a_position_is_copied_and_the_answers_are_read():
    state = [7, 0, 1]
    plays = [["play", state, 2], ["play", state, 3]]
    found = answer(*plays, ["outcome", state], ["outcome", [0, 2, 0]], ["toPlay", state])
    assert found == {"values": [[2, 0, 1], [3, 0, 1], -2, 0, 1]}


def test_memory_grows_to_what_the_game_needs_and_masks_and_planes_are_cleared_before():
    calls = [[name, [0, 0, 0]] for name in ("legal", "legal", "observe", "chances")]
    legal, again, planes, chances = answer(*calls)["values"]
    assert legal == again == [3]
    assert len(planes) == 20_000
    assert planes[:3] == [0, 1.5, 0]
    assert not any(planes[2:])
    assert chances is None


def test_a_rule_that_calls_python_raises_an_error_that_names_the_function():
    found = answer(["play", [0, 0, 0], 4])
    assert found == {"error": "The rules called PyErr_SetString, which exists only in Python: do they raise an error?"}


@pytest.mark.parametrize(
    ("changes", "missing"), [({}, "outcome"), ({"numChances": 6, "maxScore": 3}, "outcome, chances, score")]
)
def test_a_module_without_a_rule_is_refused(changes: dict[str, int], missing: str):
    found = answer(module=made_module(exports=("play", "legal", "observe")), **changes)
    assert found == {"error": f"Expected a module of rules that exports {missing}; compile the game again."}
