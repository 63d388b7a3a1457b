"""Untrusted journals: reading one gives the games before the first wrong frame, or an error, in little memory."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.run.journals import FRAME, MAGIC, read_journal
from plyzero.run.records import Games
from tests.helpers.hostile import at_most, journal
from tests.helpers.segments import CONNECT_FOUR, RELAY, same, some_games


def frame(body: bytes) -> bytes:
    return FRAME.pack(MAGIC, len(body), zlib.crc32(body)) + body


def frames(path: Path) -> list[bytes]:
    """The bodies of all frames."""
    content, bodies = path.read_bytes(), []
    while content:
        size = FRAME.unpack_from(content)[1]
        bodies.append(content[FRAME.size : FRAME.size + size])
        content = content[FRAME.size + size :]
    return bodies


def is_prefix(found: list[Games], batches: list[Games]) -> bool:
    return len(found) <= len(batches) and all(same(*pair) for pair in zip(found, batches, strict=False))


@pytest.mark.parametrize(
    "edit",
    [
        {"schema": "plyzero.journal/2"},
        {"game": "connect-four v2"},
        {"observation_shape": [10**12, 1, 1]},
        {"num_actions": 10**12},
        {"more": 1},
    ],
    ids=str,
)
def test_a_journal_of_another_schema_or_game_is_refused_with_the_reason(tmp_path: Path, edit: dict[str, Any]):
    path = journal(tmp_path, CONNECT_FOUR, [some_games(CONNECT_FOUR)])
    header, *bodies = frames(path)
    changed = json.dumps({**json.loads(header), **edit}).encode()
    path.write_bytes(b"".join(map(frame, [changed, *bodies])))
    with pytest.raises(ValueError, match=r"has the header .* expected"):
        read_journal(path, CONNECT_FOUR)


@pytest.mark.parametrize(
    "header", [b"", b"null", b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b"1" * 5000, b"NaN", b"[]", b'"x"']
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: bytes):
    path = journal(tmp_path, CONNECT_FOUR, [some_games(CONNECT_FOUR)])
    path.write_bytes(b"".join(map(frame, [header, *frames(path)[1:]])))
    with at_most(), pytest.raises((ValueError, RecursionError)):
        read_journal(path, CONNECT_FOUR)


def counts(games: int, positions: int, num_legal: int, size: int) -> bytes:
    """A body that says it holds so many games of so many positions of so many moves, and has `size` bytes."""
    game, position = some_games(CONNECT_FOUR).games[:1].copy(), some_games(CONNECT_FOUR).positions[:1].copy()
    game["positions"], position["num_legal"] = positions, num_legal
    return (struct.pack("<I", games) + game.tobytes() + position.tobytes()).ljust(size, b"\xff")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xff\xff",
        b"\xff" * 4,
        b"\xff" * 100_000,
        counts(2**32 - 1, 1, 1, 1000),
        counts(1, 2**32 - 1, 1, 1000),
        counts(1, 1, 2**32 - 1, 1000),
        counts(1, 1, 2**28, 1000),
        counts(4000, 2**32 - 1, 2**32 - 1, 200_000),
        counts(1, 0, 0, 28),
        counts(1, 1, 1, 4 + 24 + 40 + 16),
        counts(1, 1, 1, 4 + 24 + 40 + 16 + 10),
        counts(1, 1, 1, 4 + 24 + 40 + 16 + 12),
    ],
    ids=lambda body: f"{body[:4].hex()}-{len(body)}",
)
def test_a_frame_whose_counts_do_not_fit_its_size_is_refused_in_little_memory(tmp_path: Path, body: bytes):
    path = journal(tmp_path, CONNECT_FOUR, [some_games(CONNECT_FOUR)])
    path.write_bytes(path.read_bytes() + frame(body))
    with at_most(megabytes=16), pytest.raises((ValueError, struct.error)):
        read_journal(path, CONNECT_FOUR)


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b"x",
        MAGIC,
        MAGIC + b"\xff" * 100_000,
        FRAME.pack(MAGIC, 2**32 - 1, 0) + bytes(1000),
        FRAME.pack(MAGIC, 10, zlib.crc32(b"")) + bytes(10),
        bytes(100_000),
        np.random.default_rng(0).bytes(5000),
    ],
    ids=lambda tail: f"{tail[:6].hex()}-{len(tail)}",
)
def test_whatever_stands_behind_the_last_right_frame_was_never_acknowledged(tmp_path: Path, tail: bytes):
    batches = [some_games(RELAY, seed, (2,)) for seed in range(3)]
    path = journal(tmp_path, RELAY, batches)
    path.write_bytes(path.read_bytes() + tail)
    with at_most(megabytes=16):
        found = read_journal(path, RELAY)
    assert len(found) == 3
    assert is_prefix(found, batches)


def test_a_right_frame_behind_a_wrong_one_is_not_read(tmp_path: Path):
    batches = [some_games(RELAY, seed, (2,)) for seed in range(3)]
    path = journal(tmp_path, RELAY, batches)
    bodies = [frame(body) for body in frames(path)]
    for wrong in (b"x", bodies[2][:-1], bodies[2][:-1] + b"\0", b"PZJ2" + bodies[2][4:]):
        path.write_bytes(bodies[0] + bodies[1] + wrong + bodies[3])
        found = read_journal(path, RELAY)
        assert (len(found), is_prefix(found, batches)) == (1, True)


def test_an_empty_file_is_no_journal_and_one_with_a_header_alone_has_no_games(tmp_path: Path):
    path = journal(tmp_path, CONNECT_FOUR, [])
    assert read_journal(path, CONNECT_FOUR) == []
    for content in (b"", path.read_bytes()[:-1], b"\0" * 5000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="has the header None"):
            read_journal(path, CONNECT_FOUR)
