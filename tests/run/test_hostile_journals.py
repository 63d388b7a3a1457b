"""Untrusted journals: reading one gives the games in its valid frames, or an error, in little time and memory."""

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
        {"worker": "w1"},  # the copy of a journal under another name
        {"incarnation": "0123abce"},
        {"sequence": 1},
    ],
    ids=str,
)
def test_a_journal_of_another_schema_game_or_writer_is_refused(tmp_path: Path, edit: dict[str, Any]):
    path = journal(tmp_path, CONNECT_FOUR, [some_games(CONNECT_FOUR)])
    header, *bodies = frames(path)
    changed = json.dumps({**json.loads(header), **edit}).encode()
    path.write_bytes(b"".join(map(frame, [changed, *bodies])))
    with pytest.raises(ValueError, match=r"has the header .* expected"):
        read_journal(path, CONNECT_FOUR)


def counts(games: int, positions: int, num_legal: int, size: int) -> bytes:
    """A body of `size` bytes that claims to hold these numbers of games, positions and moves."""
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
def test_a_frame_whose_counts_do_not_fit_is_left_out_in_little_memory(tmp_path: Path, body: bytes):
    batches, faults = [some_games(CONNECT_FOUR, seed) for seed in range(2)], []
    path = journal(tmp_path, CONNECT_FOUR, batches)
    header, *bodies = map(frame, frames(path))
    path.write_bytes(header + bodies[0] + frame(body) + bodies[1])
    with at_most(megabytes=16):
        found = read_journal(path, CONNECT_FOUR, on_fault=faults.append)
    assert (len(found), is_prefix(found, batches)) == (2, True)
    (fault,) = faults
    assert fault.startswith(f"{path.name}: ")


@pytest.mark.parametrize(
    ("tail", "times"),
    [
        *((tail, 1) for tail in (b"", b"x", MAGIC, bytes(100_000), np.random.default_rng(0).bytes(5000))),
        (MAGIC + b"\xff" * 100_000, 1),
        (FRAME.pack(MAGIC, 2**32 - 1, 0) + bytes(1000), 1),
        (FRAME.pack(MAGIC, 10, zlib.crc32(b"")) + bytes(10), 1),
        *((FRAME.pack(MAGIC, size, 1), 2_000_000) for size in (0, 10_000, 2**24, 2**32 - 1)),
    ],
    ids=lambda value: f"{value[:8].hex()}-{len(value)}" if isinstance(value, bytes) else str(value),
)
def test_whatever_stands_behind_the_last_right_frame_is_not_read(tmp_path: Path, tail: bytes, times: int):
    batches = [some_games(RELAY, seed, (2,)) for seed in range(3)]
    path = journal(tmp_path, RELAY, batches)
    path.write_bytes(path.read_bytes() + tail * times)
    with at_most(megabytes=16 if times == 1 else 128):
        found = read_journal(path, RELAY)
    assert len(found) == 3
    assert is_prefix(found, batches)


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"x",
        lambda whole: whole[:-1],
        lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
        lambda whole: b"PZJ2" + whole[4:],
        lambda whole: whole[:4] + b"\xff" * 4 + whole[8:],
        lambda whole: MAGIC + whole[:-1],
        lambda whole: bytes(5000),
    ],
)
def test_games_behind_damage_in_a_journal_are_read_and_it_is_reported(tmp_path: Path, damage):
    batches, faults = [some_games(RELAY, seed, (2,)) for seed in range(4)], []
    path = journal(tmp_path, RELAY, batches)
    header, *bodies = map(frame, frames(path))
    path.write_bytes(header + bodies[0] + damage(bodies[1]) + bodies[2] + bodies[3])
    found = read_journal(path, RELAY, on_fault=faults.append)
    assert (len(found), is_prefix(found, [batches[0], *batches[2:]])) == (3, True)
    assert faults == [f"{path.name} is damaged at byte {len(header + bodies[0])}"]


def test_a_damaged_last_frame_is_reported_and_an_incomplete_one_is_not(tmp_path: Path):
    path = journal(tmp_path, RELAY, [some_games(RELAY, seed, (2,)) for seed in range(2)])
    whole, faults = path.read_bytes(), []
    start = len(whole) - len(frame(frames(path)[-1]))
    for size in range(start, len(whole)):
        path.write_bytes(whole[:size])
        assert len(read_journal(path, RELAY, on_fault=faults.append)) == 1
    path.write_bytes(whole[:start] + bytes(len(whole) - start))  # as a power failure leaves it
    assert len(read_journal(path, RELAY, on_fault=faults.append)) == 1
    assert faults == []
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert len(read_journal(path, RELAY, on_fault=faults.append)) == 1
    assert faults == [f"{path.name} is damaged at byte {start}"]


def test_a_journal_of_version_0_2_which_does_not_name_its_writer_is_read(tmp_path: Path):
    path = journal(tmp_path, RELAY, [some_games(RELAY)])
    header, *bodies = frames(path)
    old = {key: value for key, value in json.loads(header).items() if key not in ("worker", "incarnation", "sequence")}
    path.write_bytes(b"".join(map(frame, [json.dumps(old).encode(), *bodies])))
    assert len(read_journal(path, RELAY)) == 1
