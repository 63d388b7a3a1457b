"""Untrusted segments: reading one gives the games that were written, or SegmentError."""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs.zstd import Zstd

from plyzero.rules.catalog import GameSpec
from plyzero.run.journals import read_journal
from plyzero.run.records import Games, find_valid
from plyzero.run.segments import SegmentError, list_segments, read_segment
from tests.helpers.fuzz import damaged
from tests.helpers.hostile import NOT_JSON, at_most, journal, with_value
from tests.helpers.segments import CONNECT_FOUR, RELAY, rewritten, same, some_games, write


def segment(directory: Path, game: GameSpec = CONNECT_FOUR) -> tuple[Path, Games]:
    games = some_games(game)
    return write(directory, games, game), games


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def never_other_games(path: Path, games: Games, game: GameSpec = CONNECT_FOUR) -> None:
    with suppress(SegmentError):
        assert same(read_segment(path, game), games)


def edited(path: Path, member: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Write a segment anew with the JSON of one member edited."""

    def change(name: str, content: bytes) -> bytes:
        if name != member:
            return content
        metadata = json.loads(content)
        edit(metadata)
        return json.dumps(metadata).encode()

    rewritten(path, change)


CHUNK = "game/positions/c/0"


@pytest.mark.parametrize(
    ("member", "honest"), [("zarr.json", True), (CHUNK, True), ("zarr.json", False), (CHUNK, False)]
)
def test_a_zip_bomb_is_refused_before_it_inflates(tmp_path: Path, member: str, honest: bool):
    path, _ = segment(tmp_path)
    claimed, blank = len(members(path)[member]), b" " * (1 << 20)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members(path).items():
            with archive.open(name, "w") as entry:
                entry.write(content)
                for _ in range(64 if name == member else 0):
                    entry.write(blank)
        if not honest:
            archive.getinfo(member).file_size = claimed
            archive.getinfo(member).CRC = zlib.crc32(members(path)[member])
    path.write_bytes(file.getvalue())
    assert path.stat().st_size < 1 << 19
    with at_most(megabytes=32):
        never_other_games(path, some_games(CONNECT_FOUR))


def test_a_hundred_thousand_members_are_refused_in_little_memory(tmp_path: Path):
    path, _ = segment(tmp_path)
    entries = (b"PK\1\2" + bytes(42)) * 100_000
    path.write_bytes(entries + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(entries), 0, 0))
    with at_most(megabytes=24), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["zarr.json", "unknown"])
def test_two_members_of_one_name_are_refused(tmp_path: Path, name: str):
    path, _ = segment(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"one")
        if name == "unknown":
            archive.writestr(name, b"two")
    with pytest.raises(SegmentError, match="two members have the same name"):
        read_segment(path, CONNECT_FOUR)


def plain(frame: bytes) -> bytes:
    return bytes(Zstd().decode(frame))


def claiming(frame: bytes, size: int) -> bytes:
    """The frame with another content size in its header, 8 bytes wide."""
    descriptor = frame[4]
    begin = 5 + (0 if descriptor >> 5 & 1 else 1)
    width = {0: 1, 1: 2, 2: 4, 3: 8}[descriptor >> 6]
    return frame[:4] + bytes([descriptor | 0xE0]) + struct.pack("<Q", size) + frame[begin + width :]


FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "an unknown size": lambda frame: struct.pack("<IBB", 0xFD2FB528, 0x04, 0x58) + frame[6:],
    "a size of 2^40": lambda frame: claiming(frame, 1 << 40),
    "a size of 2^63": lambda frame: claiming(frame, 1 << 63),
    "a size that is right and content that is not": lambda frame: claiming(
        Zstd(level=1, checksum=True).encode(plain(frame)[:-1]), len(plain(frame))
    ),
    "no checksum": lambda frame: Zstd(level=1).encode(plain(frame)),
    "a frame of it behind": lambda frame: frame + frame,
    "more numbers": lambda frame: Zstd(level=1, checksum=True).encode(plain(frame) * 2),
    "fewer numbers": lambda frame: Zstd(level=1, checksum=True).encode(plain(frame)[:-8]),
    "a gigabyte": lambda frame: claiming(Zstd(level=1, checksum=True).encode(bytes(1 << 26)), 1 << 30),
    "a dictionary": lambda frame: frame[:4] + bytes([frame[4] | 1]) + frame[5:],
    "nothing": lambda frame: b"",
    "no frame": lambda frame: plain(frame),
}


@pytest.mark.parametrize("what", FRAMES)
def test_a_chunk_that_is_another_frame_than_a_writer_makes_is_refused(tmp_path: Path, what: str):
    for chunk in ("game/seed/c/0", "position/observation_bits/c/0/0"):
        path, games = segment(tmp_path / chunk.replace("/", "-"))
        changed = FRAMES[what](members(path)[chunk])
        rewritten(path, lambda name, content: changed if name == chunk else content)  # noqa: B023
        with at_most(megabytes=48):
            if what.endswith("behind"):
                never_other_games(path, games)
            else:
                with pytest.raises(SegmentError):
                    read_segment(path, CONNECT_FOUR)


def codecs(*wanted: str) -> list[dict[str, Any]]:
    return [{"name": name, "configuration": {}} for name in wanted]


SHARDING = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": codecs("bytes")}}

BIG_ENDIAN = {"name": "bytes", "configuration": {"endian": "big"}}

LIES: dict[str, dict[str, Any]] = {
    "blosc": {"codecs": codecs("bytes", "blosc")},
    "sharding": {"codecs": [SHARDING]},
    "big-endian numbers": {"codecs": [BIG_ENDIAN, {"name": "zstd", "configuration": {"level": 1, "checksum": True}}]},
    "transpose": {"codecs": codecs("transpose", "bytes", "zstd")},
    "a pickle": {"codecs": codecs("pickle", "bytes", "zstd")},
    "a shape of 10^12": {"shape": [10**12]},
    "a negative shape": {"shape": [-2]},
    "a nested shape": {"shape": [[2]]},
    "a shape of more axes": {"shape": [2, 1]},
    "smaller chunks": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}},
    "chunks of 10^12": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**12]}}},
    "a grid of another kind": {"chunk_grid": {"name": "rectilinear", "configuration": {"chunk_shape": [2]}}},
    "numbers of other width": {"data_type": "uint64"},
    "objects": {"data_type": "object"},
    "a type with a size": {"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s"}}},
    "format 2": {"zarr_format": 2},
}


@pytest.mark.parametrize("what", LIES)
def test_metadata_that_a_writer_does_not_write_is_refused(tmp_path: Path, what: str):
    path, _ = segment(tmp_path)
    edited(path, "game/positions/zarr.json", lambda metadata: metadata.update(LIES[what]))
    with at_most(), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


NO_METADATA = (
    *NOT_JSON,
    *(b" " * ((1 << 20) + 1) + b"{}", b'{"attributes": []}', b'{"attributes": {"sequence": ' + b"9" * 4000 + b"}}"),
)


@pytest.mark.parametrize("content", NO_METADATA, ids=lambda content: f"{content[:10]!r}-{len(content)}")
def test_metadata_that_is_not_what_json_should_be_is_refused(tmp_path: Path, content: bytes):
    for member in ("zarr.json", "move/q/zarr.json"):
        path, _ = segment(tmp_path / member.replace("/", "-"))
        rewritten(path, lambda name, whole: content if name == member else whole)  # noqa: B023
        with at_most(), pytest.raises(SegmentError):
            read_segment(path, CONNECT_FOUR)


@pytest.mark.parametrize(
    ("part", "lie"),
    [
        ("-g2-", "-g3-"),
        ("-g2-", "-g0-"),
        ("-p8-", "-p9-"),
        ("-p8-", "-p0-"),
        ("-g2-", f"-g{'9' * 40}-"),
        ("-p8-", f"-p{1 << 61}-"),
        (r"-f\d+-", "-f0-"),
        ("-00000000-", "-00000001-"),
        ("0123abcd", "01234567"),
        ("w0", "w1"),
        ("w0", "..w0"),
        (r"-m\d+_\d+", "-m0_0"),
        (r"-m\d+_\d+", "-m7_5"),
    ],
)
def test_a_name_that_says_other_than_the_segment_is_refused(tmp_path: Path, part: str, lie: str):
    path, _ = segment(tmp_path / "replay")
    renamed = path.rename(path.with_name(re.sub(part, lie, path.name, count=1)))
    assert renamed.name != path.name
    with at_most(), pytest.raises(SegmentError):
        read_segment(renamed, CONNECT_FOUR)


@pytest.mark.parametrize(("part", "odd"), [("-g2-", "-g02-"), ("-00000000-", "-0000000٠-"), ("-p8-", "-p٨-")])
def test_every_name_that_is_listed_is_the_name_of_a_file(tmp_path: Path, part: str, odd: str):
    path, _ = segment(tmp_path)
    path.rename(path.with_name(path.name.replace(part, odd)))
    assert [name for name in list_segments(tmp_path) if not (tmp_path / str(name)).exists()] == []


def test_a_small_file_of_very_many_positions_that_are_alike_is_refused(tmp_path: Path):
    size = 1_500_000
    one = some_games(CONNECT_FOUR, lengths=(1,))
    one.positions["num_legal"], one.games["positions"] = 1, size
    observations = np.zeros((size, *CONNECT_FOUR.start.observation_shape), np.bool_)
    games = Games(one.games, np.repeat(one.positions, size), np.repeat(one.moves[:1], size), observations)
    games.moves["action"] = games.positions["action"]
    path = write(tmp_path, games, CONNECT_FOUR)
    assert path.stat().st_size < 1 << 16
    del games
    with at_most(megabytes=128), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


Change = Callable[[Games], Games]


def with_number(group: str, field: str, value: Any, at: int = 0) -> Change:
    return lambda games: with_value(games, group, field, value, at)


def without_a_legal_move(at: int) -> Change:
    def change(games: Games) -> Games:
        legal = games.positions["num_legal"].astype(int)
        first = legal[:at].sum()
        games.positions["num_legal"][at] = 0
        return replace(games, moves=np.delete(games.moves, slice(first, first + legal[at])))

    return change


def with_moves(change: Callable[[np.ndarray, np.ndarray], None]) -> Change:
    """Change the moves of a position with three legal ones or more, and its record."""

    def changed(games: Games) -> Games:
        at = int(np.argmax(games.positions["num_legal"] >= 3))
        first = int(games.positions["num_legal"][:at].sum())
        change(games.moves[first : first + int(games.positions["num_legal"][at])], games.positions[at : at + 1])
        return games

    return changed


def with_actions(first: int | None = None, last: int | None = None, played: int | None = None) -> Change:
    """Give the first or the last legal move of a position another action, or its record another played one."""

    def change(moves: np.ndarray, position: np.ndarray) -> None:
        position["action"] = moves["action"][0]
        if first is not None:
            moves["action"][:2] = moves["action"][1], moves["action"][first]
            position["action"] = moves["action"][0]
        if last is not None:
            moves["action"][-1] = last
        if played is not None:
            position["action"] = played

    return with_moves(change)


def an_empty_game(games: Games) -> Games:
    games.games["positions"] = 0, 8
    games.games["opening_plies"] = 0
    return games


def not_searched(games: Games) -> Games:
    games.positions["search"][0], games.positions["full"][0] = 0, 1
    return games


RULES: list[Any] = [
    ("game/positions", an_empty_game),
    *[("game/winner", with_number("games", "winner", value)) for value in (2, -3, 127)],
    ("game/end", with_number("games", "end", 3)),
    ("game/opening_plies", with_number("games", "opening_plies", 9)),
    ("position/num_legal", without_a_legal_move(0)),
    ("position/num_legal", without_a_legal_move(4)),
    ("position/num_legal", without_a_legal_move(7)),
    ("position/to_play", with_number("positions", "to_play", 2)),
    ("position/search", with_number("positions", "search", 3)),
    ("position/full", not_searched),
    ("position/full", with_number("positions", "full", 2)),
    *[("position/proven", with_number("positions", "proven", value)) for value in (-2, 3)],
    *[
        (f"position/{field}", with_number("positions", field, value, at=3))
        for field, least in (("root_value", -1), ("network_value", -1), ("root_draw", 0), ("network_draw", 0))
        for value in (1.01, least - 0.01, math.nan, math.inf, -math.inf)
    ],
    ("move/action", with_actions(first=0)),  # not ascending
    ("move/action", with_actions(first=1)),  # one twice
    *[("move/action", with_actions(last=value)) for value in (7, 2**32 - 1)],
    ("position/action, which is not one of the legal moves,", with_actions(played=2**32 - 1)),
    *[("move/prior", with_number("moves", "prior", value, at=1)) for value in (1.01, -0.01, math.nan)],
    *[("move/q", with_number("moves", "q", value, at=1)) for value in (1.01, -1.01, math.inf)],
    ("the games have 9 positions", with_number("games", "positions", 4)),
]


@pytest.mark.parametrize(("message", "change"), RULES)
def test_records_that_no_worker_makes_are_refused_by_field(message: str, change: Change):
    assert find_valid(some_games(CONNECT_FOUR), 7)[1] is None
    try:
        _, fault = find_valid(change(some_games(CONNECT_FOUR)), 7)
    except ValueError as error:
        fault = str(error)
    assert fault is not None
    assert fault.startswith(message)


def not_finite(games: Games) -> Games:
    games.observations[3, 0, 0, 0] = math.nan
    return games


@pytest.mark.parametrize(
    ("game", "field", "change"),
    [
        (CONNECT_FOUR, "position/to_play", with_number("positions", "to_play", 2, at=3)),
        (CONNECT_FOUR, "move/prior", with_number("moves", "prior", math.nan, at=0)),
        (CONNECT_FOUR, "position/num_legal", without_a_legal_move(4)),
        (RELAY, "position/observation", not_finite),
    ],
)
def test_one_invalid_game_costs_itself_alone(
    game: GameSpec, field: str, change: Change, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    batches = [some_games(game, seed, (4,)) for seed in range(5)]
    batches[2] = change(some_games(game, 2, (8,)))
    sound = Games.concatenate([*batches[:2], *batches[3:]])
    path = write(tmp_path, Games.concatenate(batches), game)
    assert same(read_segment(path, game), sound)
    (warning,) = caplog.messages
    assert warning.startswith(f"{path.name}: 1 of 5 games are left out: {field} has an impossible value at index")
    faults = []
    found = read_journal(journal(tmp_path, game, batches), game, on_fault=faults.append)
    assert same(Games.concatenate(found), sound)
    (fault,) = faults
    assert f"1 of 1 games are left out: {field} has an impossible value at index" in fault


def test_a_segment_without_a_sound_game_is_refused(tmp_path: Path):
    with pytest.raises(SegmentError, match="position/observation has an impossible value at index 3"):
        read_segment(write(tmp_path, not_finite(some_games(RELAY, lengths=(4,))), RELAY), RELAY)


@pytest.mark.parametrize("game", [CONNECT_FOUR, RELAY], ids=["bits", "floats"])
def test_hundreds_of_damaged_segments_never_give_other_games(tmp_path: Path, game: GameSpec):
    rng = np.random.default_rng(1)
    path, games = segment(tmp_path, game)
    other = write(tmp_path / "other", some_games(game, seed=1), game).read_bytes()
    whole, refused = path.read_bytes(), 0
    for _ in range(500):
        path.write_bytes(damaged(rng, whole, other))
        try:
            assert same(read_segment(path, game), games)
        except SegmentError:
            refused += 1
    assert refused > 350
