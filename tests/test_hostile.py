"""Files on the volume that nobody should trust: a reader gives what was written, or refuses in its own words.

tests/hostile holds files that once broke a reader, and some of their kind; benchmarks/fuzz.py looks for more.
"""

import ctypes
import io
import json
import math
import os
import pickle
import re
import signal
import struct
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numcodecs.zstd import Zstd
from onnx import TensorProto, helper, numpy_helper

from benchmarks.fuzz import TRAINER, WORKER, damaged, look
from plyzero.errors import ModelRefusedError, UserError
from plyzero.files import UnreadableError, read_file
from plyzero.ops.status import snapshot
from plyzero.play.model_loader import load_model
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import Run, open_run
from plyzero.run.journals import FRAME, MAGIC, Journal, read_journal
from plyzero.run.liveness import LivenessMonitor
from plyzero.run.metrics import read_heartbeat, read_lines
from plyzero.run.models import ModelName, best_model, list_models, publish_model
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, list_segments, read_segment
from plyzero.search.onnx_network import ENCODING, Network
from plyzero.settings import Settings
from tests.helpers.runs import small_run
from tests.helpers.segments import CONNECT_FOUR, RELAY, rewritten, same, some_games, write
from trainer.export import untrained
from trainer.state import load_state, save_state

HOSTILE = Path(__file__).parent / "hostile"
TIC_TAC_TOE = load_game("tic-tac-toe")
KINDS = pytest.mark.parametrize("game", [CONNECT_FOUR, RELAY], ids=["bits", "floats"])
ODD = (None, True, -1, 10**400, math.nan, math.inf, "x", "[/]", "[red]", "\x1b[2J", "\ud800", [], {}, [[1]], {"a": 1})


class TooSlow(BaseException):
    """Not an Exception: no reader may take it for damage."""


@contextmanager
def at_most(*, seconds: int = 10, megabytes: int = 64) -> Iterator[None]:
    """Fail what takes more time, or more memory than there was before."""

    def stop(*_: object) -> None:
        raise TooSlow

    def memory(key: str) -> int:
        return int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) >> 10

    ctypes.CDLL(None).malloc_trim(0)  # what is free may not hide what is taken
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, handler = memory("VmRSS"), signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    assert memory("VmHWM") - before <= megabytes


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


def names(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*")}


class Harm:
    """Makes a directory when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_harm_does_harm_where_it_is_let_in(tmp_path: Path):
    pickle.loads(pickle.dumps(Harm(tmp_path / "harm")))
    assert (tmp_path / "harm").exists()


# Segments: the zip.


ROOT_METADATA, METADATA, CHUNK = "zarr.json", "game/positions/zarr.json", "game/positions/c/0"


@pytest.mark.parametrize(
    ("member", "honest"),
    [
        (ROOT_METADATA, True),
        (METADATA, True),
        (CHUNK, True),
        *[(member, False) for member in (ROOT_METADATA, METADATA, CHUNK)],
    ],
)
def test_a_zip_bomb_is_refused_before_it_inflates(tmp_path: Path, member: str, honest: bool):
    path, _ = segment(tmp_path)
    claimed, blank = len(members(path)[member]), b" " * (1 << 20)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members(path).items():
            with archive.open(name, "w") as entry:
                entry.write(content)
                for _ in range(100 if name == member else 0):
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


def test_a_thousand_and_more_members_are_refused(tmp_path: Path):
    path, _ = segment(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(1000):
            archive.writestr(f"x{number}", b"")
    with pytest.raises(SegmentError, match="members"):
        read_segment(path, CONNECT_FOUR)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["zarr.json", "game/id/c/0", "unknown"])
def test_two_members_of_one_name_are_refused(tmp_path: Path, name: str):
    path, _ = segment(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"one")
        if name == "unknown":
            archive.writestr(name, b"two")
    with pytest.raises(SegmentError, match="two members have the same name"):
        read_segment(path, CONNECT_FOUR)


@pytest.mark.parametrize("name", ["../harm", "/tmp/plyzero-harm", "a/../../harm", "C:\\harm", "harm/", "nul\0harm"])
def test_members_with_the_names_of_other_places_write_nothing_anywhere(tmp_path: Path, name: str):
    directory = tmp_path / "run" / "replay"
    path, games = segment(directory)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"harm")
    before = names(tmp_path)
    never_other_games(path, games)
    assert names(tmp_path) == before
    assert not Path("/tmp/plyzero-harm").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_of_a_member_are_refused(tmp_path: Path, method: int):
    path, _ = segment(tmp_path)
    whole = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in whole.items():
            archive.writestr(name, content, method if name == "game/id/c/0" else None)
    with pytest.raises(SegmentError, match="compression"):
        read_segment(path, CONNECT_FOUR)


def test_an_encrypted_member_is_refused(tmp_path: Path):
    path, _ = segment(tmp_path)
    content = bytearray(path.read_bytes())
    for found in re.finditer(rb"PK\x01\x02", bytes(content)):
        content[found.start() + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


def test_a_comment_and_bytes_before_the_archive_change_nothing(tmp_path: Path):
    path, games = segment(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK\5\6" * 1000
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    never_other_games(path, games)


# Segments: zstd.


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
    "a size that is one too large": lambda frame: claiming(frame, len(plain(frame)) + 1),
    "a size that is right and content that is not": lambda frame: claiming(
        Zstd(level=1, checksum=True).encode(plain(frame)[:-1]), len(plain(frame))
    ),
    "no checksum": lambda frame: Zstd(level=1).encode(plain(frame)),
    "a frame of it behind": lambda frame: frame + frame,
    "an empty frame behind": lambda frame: frame + Zstd(level=1, checksum=True).encode(b""),
    "a frame to be skipped before": lambda frame: struct.pack("<II", 0x184D2A50, 4) + b"skip" + frame,
    "a frame to be skipped behind": lambda frame: frame + struct.pack("<II", 0x184D2A50, 4) + b"skip",
    "rubbish behind": lambda frame: frame + b"rubbish",
    "more numbers": lambda frame: Zstd(level=1, checksum=True).encode(plain(frame) * 2),
    "fewer numbers": lambda frame: Zstd(level=1, checksum=True).encode(plain(frame)[:-8]),
    "a gigabyte": lambda frame: claiming(Zstd(level=1, checksum=True).encode(bytes(1 << 26)), 1 << 30),
    "a dictionary": lambda frame: frame[:4] + bytes([frame[4] | 1]) + frame[5:],
    "nothing": lambda frame: b"",
    "four bytes": lambda frame: frame[:4],
    "no frame": lambda frame: plain(frame),
}


@pytest.mark.parametrize("what", FRAMES)
@pytest.mark.parametrize("chunk", ["game/seed/c/0", "position/observation_bits/c/0/0"])
def test_a_chunk_that_is_another_frame_than_a_writer_makes_is_refused(tmp_path: Path, chunk: str, what: str):
    path, games = segment(tmp_path)
    changed = FRAMES[what](members(path)[chunk])
    rewritten(path, lambda name, content: changed if name == chunk else content)
    with at_most(megabytes=48):
        if what.endswith("behind"):
            never_other_games(path, games)
        else:
            with pytest.raises(SegmentError):
                read_segment(path, CONNECT_FOUR)


# Segments: metadata.


def codecs(*wanted: str) -> list[dict[str, Any]]:
    return [{"name": name, "configuration": {}} for name in wanted]


SHARDING = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": codecs("bytes")}}
LIES: dict[str, dict[str, Any]] = {
    "blosc": {"codecs": codecs("bytes", "blosc")},
    "gzip": {"codecs": codecs("bytes", "gzip")},
    "crc32c": {"codecs": codecs("bytes", "zstd", "crc32c")},
    "sharding": {"codecs": [SHARDING]},
    "transpose": {"codecs": codecs("transpose", "bytes", "zstd")},
    "a pickle": {"codecs": codecs("pickle", "bytes", "zstd")},
    "codecs that are names": {"codecs": ["bytes", "zstd"]},
    "codecs that are a number": {"codecs": 2},
    "no codecs": {"codecs": []},
    "a shape of 10^12": {"shape": [10**12]},
    "a negative shape": {"shape": [-2]},
    "a broken shape": {"shape": [2.5]},
    "a nested shape": {"shape": [[2]]},
    "a flat shape": {"shape": 2},
    "a shape of more axes": {"shape": [2, 1]},
    "no shape": {"shape": None},
    "smaller chunks": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}},
    "chunks of 10^12": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**12]}}},
    "a grid of another kind": {"chunk_grid": {"name": "rectilinear", "configuration": {"chunk_shape": [2]}}},
    "numbers of other width": {"data_type": "uint64"},
    "numbers of another kind": {"data_type": "int32"},
    "objects": {"data_type": "object"},
    "a type with a size": {"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s"}}},
    "format 2": {"zarr_format": 2},
    "a group": {"node_type": "group"},
    "a transformer": {"storage_transformers": [{"name": "x"}]},
}


@pytest.mark.parametrize("what", LIES)
def test_metadata_that_a_writer_does_not_write_is_refused(tmp_path: Path, what: str):
    path, _ = segment(tmp_path)
    edited(path, "game/positions/zarr.json", lambda metadata: metadata.update(LIES[what]))
    with at_most(), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


def test_numbers_that_are_said_to_be_big_endian_are_refused(tmp_path: Path):
    path, _ = segment(tmp_path)

    def big(metadata: dict[str, Any]) -> None:
        metadata["codecs"][0]["configuration"]["endian"] = "big"

    edited(path, "game/positions/zarr.json", big)
    with pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


@pytest.mark.parametrize("member", ["zarr.json", "move/q/zarr.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"attributes":' * 50_000,
        b"NaN",
        b"-Infinity",
        b"null",
        b"[]",
        b'{"shape": ' + b"1" * 10_000 + b"}",
        b'{"attributes": {"sequence": ' + b"9" * 4000 + b"}}",
        b"\xff\xfe\x00",
        b"\x80" * 1000,
        b"",
        b"\0" * 1000,
        b'{"attributes": []}',
        b'{"attributes": {"schema": NaN}}',
        b" " * ((1 << 20) + 1) + b"{}",
    ],
    ids=lambda content: repr(content[:12])[2:-1],
)
def test_metadata_that_is_not_what_json_should_be_is_refused(tmp_path: Path, member: str, content: bytes):
    path, _ = segment(tmp_path)
    rewritten(path, lambda name, whole: content if name == member else whole)
    with at_most(), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


def test_metadata_of_the_whole_that_contradicts_a_members_own_does_not_count(tmp_path: Path):
    path, games = segment(tmp_path)

    def lie(metadata: dict[str, Any]) -> None:
        of_member = metadata["consolidated_metadata"]["metadata"]["game/positions"]
        of_member.update(shape=[10**12], data_type="float64", codecs=codecs("bytes", "blosc"))

    edited(path, "zarr.json", lie)
    assert same(read_segment(path, CONNECT_FOUR), games)


@pytest.mark.parametrize("beside", [False, True], ids=["instead", "beside"])
@pytest.mark.parametrize("where", [{"filters": [{"id": "pickle"}]}, {"compressor": {"id": "pickle"}}], ids=str)
def test_an_array_of_pickles_is_never_unpickled(tmp_path: Path, where: dict[str, Any], beside: bool):
    path, games = segment(tmp_path / "replay")
    array = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "order": "C", "fill_value": None}
    array = {**array, "filters": None, "compressor": None, **where}
    whole = members(path)
    if not beside:
        whole = {name: content for name, content in whole.items() if not name.startswith("game/positions/")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in whole.items():
            archive.writestr(name, content)
        archive.writestr(".zgroup", json.dumps({"zarr_format": 2}))
        archive.writestr(".zattrs", whole["zarr.json"])
        archive.writestr("game/positions/.zarray", json.dumps(array))
        archive.writestr("game/positions/.zattrs", "{}")
        archive.writestr("game/positions/0", pickle.dumps(Harm(tmp_path / "harm")))
    if beside:
        assert same(read_segment(path, CONNECT_FOUR), games)
    else:
        with pytest.raises(SegmentError):
            read_segment(path, CONNECT_FOUR)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "json2", "vlen-utf8", "msgpack2"])
def test_a_chunk_that_holds_a_pickle_is_never_unpickled(tmp_path: Path, codec: str):
    path, _ = segment(tmp_path / "replay")
    edited(path, "game/positions/zarr.json", lambda metadata: metadata.update(codecs=codecs(codec), data_type="object"))
    harm = pickle.dumps(Harm(tmp_path / "harm"))
    rewritten(path, lambda name, content: harm if name == "game/positions/c/0" else content)
    with pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)
    assert not (tmp_path / "harm").exists()


# Segments: names.


@pytest.mark.parametrize(
    ("part", "lie"),
    [
        ("-g2-", "-g3-"),
        ("-g2-", "-g1-"),
        ("-g2-", "-g0-"),
        ("-p8-", "-p9-"),
        ("-p8-", "-p7-"),
        ("-p8-", "-p0-"),
        ("-g2-", f"-g{'9' * 40}-"),
        ("-p8-", f"-p{'9' * 40}-"),
        ("-p8-", f"-p{1 << 61}-"),
        ("-p8-", f"-p{1 << 24}-"),
        (r"-f\d+-", "-f0-"),
        (r"-f\d+-", f"-f{'9' * 40}-"),
        ("-00000000-", "-00000001-"),
        ("0123abcd", "01234567"),
        ("w0", "w1"),
        ("w0", "../w0"),
        (r"-m\d+_\d+", "-m0_0"),
        (r"-m\d+_\d+", "-m7_5"),
        (r"-m\d+_\d+", f"-m1_{'9' * 40}"),
    ],
)
def test_a_name_that_says_other_than_the_segment_is_refused(tmp_path: Path, part: str, lie: str):
    path, _ = segment(tmp_path / "replay")
    renamed = path.rename(path.with_name(re.sub(part, lie.replace("../", ""), path.name, count=1)))
    assert renamed.name != path.name or lie == "../w0"
    if lie == "../w0":
        renamed = renamed.rename(renamed.with_name("..w0" + renamed.name[2:]))
    with at_most(), pytest.raises(SegmentError):
        read_segment(renamed, CONNECT_FOUR)


@pytest.mark.parametrize(("part", "odd"), [("-g2-", "-g02-"), ("-00000000-", "-0000000٠-"), ("-p8-", "-p٨-")])
def test_every_name_that_is_listed_is_the_name_of_a_file(tmp_path: Path, part: str, odd: str):
    path, _ = segment(tmp_path)
    path.rename(path.with_name(path.name.replace(part, odd)))
    assert [name for name in list_segments(tmp_path) if not (tmp_path / str(name)).exists()] == []


def test_every_model_that_is_listed_is_a_file(tmp_path: Path):
    (tmp_path / "00000١-000000001-01234567.onnx").touch()
    assert [name for name in list_models(tmp_path) if not (tmp_path / str(name)).exists()] == []


def test_a_small_file_of_very_many_positions_that_are_alike_is_refused(tmp_path: Path):
    size = 1_500_000
    one = some_games(CONNECT_FOUR, lengths=(1,))
    one.positions["num_legal"] = 1
    games = Games(
        np.repeat(one.games, 1),
        np.repeat(one.positions, size),
        np.repeat(one.moves[:1], size),
        np.zeros((size, *CONNECT_FOUR.start.observation_shape), np.bool_),
    )
    games.games["positions"] = size
    games.moves["action"] = games.positions["action"]
    path = write(tmp_path, games, CONNECT_FOUR)
    assert path.stat().st_size < 1 << 16
    del games
    with at_most(megabytes=128), pytest.raises(SegmentError):
        read_segment(path, CONNECT_FOUR)


# Records that no worker writes.


def with_value(group: str, field: str, value: Any, at: int = 0) -> Callable[[Games], Games]:
    def change(games: Games) -> Games:
        getattr(games, group)[field][at] = value
        return games

    return change


def without_a_legal_move(at: int) -> Callable[[Games], Games]:
    def change(games: Games) -> Games:
        legal = games.positions["num_legal"].astype(int)
        first = legal[:at].sum()
        games.positions["num_legal"][at] = 0
        return replace(games, moves=np.delete(games.moves, slice(first, first + legal[at])))

    return change


def with_moves(change: Callable[[np.ndarray, np.ndarray], None]) -> Callable[[Games], Games]:
    """Change the moves of a position with three legal ones or more, and its record."""

    def changed(games: Games) -> Games:
        at = int(np.argmax(games.positions["num_legal"] >= 3))
        first = int(games.positions["num_legal"][:at].sum())
        change(games.moves[first : first + int(games.positions["num_legal"][at])], games.positions[at : at + 1])
        return games

    return changed


def swap(moves: np.ndarray, _: np.ndarray) -> None:
    moves["action"][:2] = moves["action"][1::-1].copy()


def double(moves: np.ndarray, position: np.ndarray) -> None:
    moves["action"][1] = moves["action"][0]
    position["action"] = moves["action"][0]


def beyond(moves: np.ndarray, position: np.ndarray) -> None:
    position["action"] = moves["action"][0]
    moves["action"][-1] = 7


def far_beyond(moves: np.ndarray, position: np.ndarray) -> None:
    position["action"] = moves["action"][0]
    moves["action"][-1] = 2**32 - 1


def play_another(moves: np.ndarray, position: np.ndarray) -> None:
    position["action"] = 2**32 - 1


def an_empty_game(games: Games) -> Games:
    games.games["positions"] = 0, 8
    games.games["opening_plies"] = 0
    return games


def not_searched(games: Games) -> Games:
    games.positions["search"][0], games.positions["full"][0] = 0, 1
    return games


RULES: list[Any] = [
    ("game/positions", an_empty_game),
    *[("game/winner", with_value("games", "winner", value)) for value in (2, -3, 127)],
    ("game/end", with_value("games", "end", 2)),
    ("game/opening_plies", with_value("games", "opening_plies", 9)),
    ("position/num_legal", without_a_legal_move(0)),
    ("position/num_legal", without_a_legal_move(4)),
    ("position/num_legal", without_a_legal_move(7)),
    ("position/to_play", with_value("positions", "to_play", 2)),
    ("position/search", with_value("positions", "search", 3)),
    ("position/full", not_searched),
    ("position/full", with_value("positions", "full", 2)),
    *[("position/proven", with_value("positions", "proven", value)) for value in (-2, 3)],
    *[
        (f"position/{field}", with_value("positions", field, value, at=3))
        for field in ("root_value", "network_value")
        for value in (1.01, -1.01, math.nan, math.inf)
    ],
    *[
        (f"position/{field}", with_value("positions", field, value, at=3))
        for field in ("root_draw", "network_draw")
        for value in (1.01, -0.01, math.nan, -math.inf)
    ],
    ("move/action", with_moves(swap)),
    ("move/action", with_moves(double)),
    ("move/action", with_moves(beyond)),
    ("move/action", with_moves(far_beyond)),
    ("a move was played that is not one of", with_moves(play_another)),
    *[("move/prior", with_value("moves", "prior", value, at=1)) for value in (1.01, -0.01, math.nan)],
    *[("move/q", with_value("moves", "q", value, at=1)) for value in (1.01, -1.01, math.inf)],
    ("the games have 9 positions", with_value("games", "positions", 4)),
]


@pytest.mark.parametrize(("message", "change"), RULES)
def test_a_segment_with_records_that_no_worker_makes_is_refused_by_field(tmp_path: Path, message: str, change: Any):
    path = write(tmp_path, change(some_games(CONNECT_FOUR)), CONNECT_FOUR)
    with pytest.raises(SegmentError, match=message):
        read_segment(path, CONNECT_FOUR)


@pytest.mark.parametrize(("message", "change"), RULES)
def test_a_journal_with_records_that_no_worker_makes_is_refused_by_field(tmp_path: Path, message: str, change: Any):
    path = journal(tmp_path, CONNECT_FOUR, [some_games(CONNECT_FOUR), change(some_games(CONNECT_FOUR))])
    with pytest.raises(ValueError, match=r"buffer is smaller|has games of|" + message):
        read_journal(path, CONNECT_FOUR)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_observation_that_is_not_finite_is_refused(tmp_path: Path, value: float):
    games = some_games(RELAY)
    games.observations[3] = value
    with pytest.raises(SegmentError, match="an observation is not finite"):
        read_segment(write(tmp_path, games, RELAY), RELAY)
    with pytest.raises(ValueError, match="an observation is not finite"):
        read_journal(journal(tmp_path, RELAY, [games]), RELAY)


# Journals.


def journal(directory: Path, game: GameSpec, batches: list[Games]) -> Path:
    """A journal whose owner is dead."""
    made = Journal(directory, game, worker="w0", incarnation="0123abcd", sequence=0)
    for batch in batches:
        made.append(batch)
    os.close(made._descriptor)
    return directory / "w0.0123abcd-00000000.wal"


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
        {"observation_dtype": "object"},
        {"num_actions": 10**12},
        {"num_actions": None},
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
        MAGIC + b"\xff" * 8,
        MAGIC + b"\xff" * 100_000,
        FRAME.pack(MAGIC, 2**32 - 1, 0) + bytes(1000),
        FRAME.pack(MAGIC, 10, zlib.crc32(b"")) + bytes(10),
        bytes(100_000),
        b"\xff" * 100_000,
        os.urandom(0) + np.random.default_rng(0).bytes(5000),
    ],
    ids=lambda tail: f"{tail[:6].hex()}-{len(tail)}",
)
@KINDS
def test_whatever_stands_behind_the_last_right_frame_was_never_acknowledged(
    tmp_path: Path, game: GameSpec, tail: bytes
):
    batches = [some_games(game, seed, (2,)) for seed in range(3)]
    path = journal(tmp_path, game, batches)
    path.write_bytes(path.read_bytes() + tail)
    with at_most(megabytes=16):
        found = read_journal(path, game)
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


# Models.


PLANES, ACTIONS = TIC_TAC_TOE.start.observation_shape, TIC_TAC_TOE.start.num_actions
INPUTS = math.prod(PLANES)


def tensor(name: str, *shape: int, kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, kind), name)


def port(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def linear(**changes: Any) -> onnx.ModelProto:
    """The smallest model of tic-tac-toe, with parts of it changed."""
    parts: dict[str, Any] = {
        "nodes": [
            helper.make_node("Flatten", ["observations"], ["flat"]),
            helper.make_node("MatMul", ["flat", "policy"], ["logits"]),
            helper.make_node("MatMul", ["flat", "value"], ["wdl"]),
        ],
        "inputs": [port("observations", "n", *PLANES)],
        "outputs": [port("logits", "n", ACTIONS), port("wdl", "n", 3)],
        "tensors": [tensor("policy", INPUTS, ACTIONS), tensor("value", INPUTS, 3)],
        "metadata": {"encoding": ENCODING, "game": TIC_TAC_TOE.identity},
        **changes,
    }
    graph = helper.make_graph(parts["nodes"], "g", parts["inputs"], parts["outputs"], parts["tensors"])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    helper.set_model_props(model, parts["metadata"])
    return model


def refusal(model: onnx.ModelProto | bytes, directory: Path) -> str:
    """Why this model is refused, when it lies where a worker loads it."""
    content = model if isinstance(model, bytes) else model.SerializeToString()
    name = publish_model(directory, content, fence=1, step=1)
    with at_most(megabytes=256), pytest.raises(ModelRefusedError) as caught:
        load_model(directory, name, TIC_TAC_TOE)
    return str(caught.value)


def test_the_smallest_model_is_loaded(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    assert load_model(tmp_path, name, TIC_TAC_TOE).step == 1


def elsewhere(one: onnx.TensorProto, path: Path) -> onnx.TensorProto:
    """The tensor, with its numbers in another file."""
    path.write_bytes(one.raw_data)
    onnx.external_data_helper.set_external_data(one, location=path.name)
    one.ClearField("raw_data")
    one.data_location = TensorProto.EXTERNAL
    return one


def in_a_branch(inner: onnx.TensorProto) -> list[onnx.NodeProto]:
    then = helper.make_graph([], "then", [], [port("policy2", INPUTS, ACTIONS)], [inner])
    other = helper.make_graph([], "else", [], [port("policy2", INPUTS, ACTIONS)], [tensor("policy2", INPUTS, ACTIONS)])
    nodes = list(linear().graph.node)
    nodes[1].input[1] = "either"
    condition = helper.make_node(
        "Constant", [], ["condition"], value=numpy_helper.from_array(np.array(True), "condition")
    )
    return [
        condition,
        helper.make_node("If", ["condition"], ["either"], then_branch=then, else_branch=other),
        *nodes,
    ]


def in_an_attribute(inner: onnx.TensorProto) -> list[onnx.NodeProto]:
    nodes = list(linear().graph.node)
    nodes[1].input[1] = "constant"
    return [helper.make_node("Constant", [], ["constant"], value=inner), *nodes]


@pytest.mark.parametrize("where", ["tensor", "branch", "attribute"])
def test_a_model_whose_numbers_lie_in_another_file_is_refused(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    if where == "tensor":
        tensors = [elsewhere(tensor("policy", INPUTS, ACTIONS), tmp_path / "other"), tensor("value", INPUTS, 3)]
        model = linear(tensors=tensors)
    elif where == "branch":
        model = linear(nodes=in_a_branch(elsewhere(tensor("policy2", INPUTS, ACTIONS), tmp_path / "other")))
    else:
        model = linear(nodes=in_an_attribute(elsewhere(tensor("constant", INPUTS, ACTIONS), tmp_path / "other")))
    assert "stores weights in other files" in refusal(model, tmp_path)


@pytest.mark.parametrize("tag", [b"\x0a", b"\x8a\x00", b"\x8a\x80\x00", b"\x8a\x80\x80\x80\x00"])
@pytest.mark.parametrize("size", [b"\x08", b"\x88\x00", b"\x88\x80\x80\x80\x00"])
def test_a_key_in_numbers_that_are_longer_than_they_need_to_be_is_found(tmp_path: Path, tag: bytes, size: bytes):
    external = elsewhere(tensor("policy", INPUTS, ACTIONS), tmp_path / "other")
    entry = external.external_data[0].SerializeToString()
    assert entry.startswith(b"\x0a\x08location")
    longer = tag + size + entry[2:]
    external.ClearField("external_data")
    written = external.SerializeToString() + b"\x6a" + bytes([len(longer)]) + longer
    assert onnx.TensorProto.FromString(written).external_data[0].key == "location"
    model = linear(tensors=[tensor("value", INPUTS, 3)])
    graph = model.graph.SerializeToString() + b"\x2a" + varint(len(written)) + written
    model.ClearField("graph")
    content = model.SerializeToString() + b"\x3a" + varint(len(graph)) + graph
    assert len(onnx.ModelProto.FromString(content).graph.initializer) == 2
    assert "stores weights in other files" in refusal(content, tmp_path)


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


DOUBLE = {"kind": TensorProto.DOUBLE}
DOUBLES = [tensor("policy", INPUTS, ACTIONS, kind=np.float64), tensor("value", INPUTS, 3, kind=np.float64)]
CAST = [
    helper.make_node("Cast", ["observations"], ["wide"], to=TensorProto.DOUBLE),
    helper.make_node("Flatten", ["wide"], ["flat"]),
    *linear().graph.node[1:],
]
UNFIT: dict[str, dict[str, Any]] = {
    "other planes": {"inputs": [port("observations", "n", 5, 3, 3)]},
    "planes of any size": {"inputs": [port("observations", "n", "c", "h", "w")]},
    "a second input": {"inputs": [port("observations", "n", *PLANES), port("more", "n")]},
    "another input": {
        "inputs": [port("board", "n", *PLANES)],
        "nodes": [helper.make_node("Flatten", ["board"], ["flat"]), *linear().graph.node[1:]],
    },
    "more actions": {
        "outputs": [port("logits", "n", 10), port("wdl", "n", 3)],
        "tensors": [tensor("policy", INPUTS, 10), tensor("value", INPUTS, 3)],
    },
    "two values": {
        "outputs": [port("logits", "n", ACTIONS), port("wdl", "n", 2)],
        "tensors": [tensor("policy", INPUTS, ACTIONS), tensor("value", INPUTS, 2)],
    },
    "no values": {"outputs": [port("logits", "n", ACTIONS)]},
    "a sequence": {
        "nodes": [*linear().graph.node[:2], helper.make_node("SequenceConstruct", ["flat"], ["wdl"])],
        "outputs": [
            port("logits", "n", ACTIONS),
            helper.make_tensor_sequence_value_info("wdl", TensorProto.FLOAT, None),
        ],
    },
    "an unknown operation": {"nodes": [*linear().graph.node, helper.make_node("Harm", ["wdl"], ["x"])]},
    "an operation of another domain": {
        "nodes": [*linear().graph.node, helper.make_node("Harm", ["wdl"], ["x"], domain="os.system")]
    },
    "double precision": {
        "inputs": [port("observations", "n", *PLANES, **DOUBLE)],
        "outputs": [port("logits", "n", ACTIONS, **DOUBLE), port("wdl", "n", 3, **DOUBLE)],
        "tensors": DOUBLES,
    },
    "double precision behind": {
        "nodes": CAST,
        "outputs": [port("logits", "n", ACTIONS, **DOUBLE), port("wdl", "n", 3, **DOUBLE)],
        "tensors": DOUBLES,
    },
    "one position at a time": {
        "inputs": [port("observations", 1, *PLANES)],
        "outputs": [port("logits", 1, ACTIONS), port("wdl", 1, 3)],
    },
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_model_that_does_not_fit_its_game_is_refused(tmp_path: Path, what: str):
    refusal(linear(**UNFIT[what]), tmp_path)


@pytest.mark.parametrize(
    ("name", "odd"), [(b"observations", b"observation\xff"), (b"wdl", b"w\xffl"), (b"\x01n", b"\x01\xff")]
)
def test_a_model_with_names_that_are_no_text_is_refused(tmp_path: Path, name: bytes, odd: bytes):
    refusal(linear().SerializeToString().replace(name, odd), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0", b"\0" * 1000, b"\xff" * 1000, b"\x3a\xff\xff\xff\xff\x0f", b"PK\3\4"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes):
    refusal(content, tmp_path)


def test_a_graph_in_a_graph_in_a_graph_is_refused_or_loaded_but_ends_nothing(tmp_path: Path):
    inner = b""
    for _ in range(2000):  # a node with an attribute that is a graph
        attribute = b"\x32" + varint(len(inner)) + inner
        node = b"\x2a" + varint(len(attribute)) + attribute
        inner = b"\x0a" + varint(len(node)) + node
    refusal(b"\x3a" + varint(len(inner)) + inner, tmp_path)


def test_a_model_whose_content_is_not_that_of_its_name_is_refused(tmp_path: Path):
    name = publish_model(tmp_path, linear().SerializeToString(), fence=1, step=1)
    (tmp_path / str(name)).write_bytes(linear(metadata={}).SerializeToString())
    with pytest.raises(ModelRefusedError, match="digest"):
        load_model(tmp_path, name, TIC_TAC_TOE)


def test_a_model_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.models.MAX_BYTES", 100)
    assert "more than 100 bytes" in refusal(linear(), tmp_path)


def test_a_directory_with_the_name_of_a_model_is_refused(tmp_path: Path):
    name = ModelName(1, 1, "01234567")
    (tmp_path / str(name)).mkdir()
    with pytest.raises(ModelRefusedError):
        load_model(tmp_path, name, TIC_TAC_TOE)


@pytest.mark.parametrize("claimed", ["os:system", "../x", "", "x" * 100_000, "tic-tac-toe(size=9)", "harm:Harm", "\n"])
def test_a_model_in_a_run_never_imports_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: str):
    (tmp_path / "harm.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'harm')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = linear(metadata={"encoding": ENCODING, "game": f"{claimed} v1"})
    assert "does not fit: its game is" in refusal(model, tmp_path / "models")
    assert "harm" not in sys.modules
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "settings",
    [
        "",
        "[]",
        "null",
        "{" * 10_000,
        '{"a":' * 100_000,
        "1" * 5000,
        '{"search": {"kind": "os:system"}}',
        '{"search": []}',
        '{"trainer": {"window_positions": 1' + "0" * 400 + "}}",
    ],
    ids=lambda text: text[:24],
)
def test_settings_in_a_model_that_are_none_are_the_usual_ones(tmp_path: Path, settings: str):
    metadata = {"encoding": ENCODING, "game": TIC_TAC_TOE.identity, "settings": settings}
    network = Network(linear(metadata=metadata).SerializeToString(), TIC_TAC_TOE, label="x")
    assert network.search_settings == Settings().search


# Settings.


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("run") / "r"
    small_run(root)
    return (root / "run.toml").read_text()


def opened(root: Path, content: str | bytes) -> Run:
    (root / "run.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with at_most(seconds=4, megabytes=128):
        return open_run(root)


def set_to(toml: str, key: str, value: str) -> str:
    changed = re.sub(rf"(?m)^{key} = .*$", lambda _: f"{key} = {value}", toml)
    assert changed != toml
    return changed


@pytest.mark.parametrize("section", Settings.model_fields)
@pytest.mark.parametrize("value", ["3", '"x"', "true", "[]", "[1, 2]", "1979-05-27", "nan", "[[]]", '[{x = "y"}]'])
def test_a_section_that_is_none_is_refused(tmp_path: Path, toml: str, section: str, value: str):
    head, *rest = re.split(r"(?m)^\[", toml)
    others = "".join(f"[{each}" for each in rest if not each.startswith(f"{section}]"))
    with pytest.raises(UserError):
        opened(tmp_path, f"{head}\n{section} = {value}\n{others}")


@pytest.mark.parametrize("section", Settings.model_fields)
@pytest.mark.parametrize(
    "value", ["[]", "{}", '"[/]"', "{a = {b = 1}}", "1979-05-27", "nan", "-1", "[" * 90 + "]" * 90]
)
def test_a_setting_of_a_wrong_type_is_refused(tmp_path: Path, toml: str, section: str, value: str):
    for key in tomllib.loads(toml)[section]:
        if key == "opponents" and value == "[]":
            continue
        head, _, rest = toml.partition(f"[{section}]")
        old = re.search(rf"(?ms)^{key} = (\[.*?\]|[^\n]*)$", rest)[0]
        text = f"{head}[{section}]{rest.replace(old, f'{key} = {value}', 1)}"
        (tmp_path / "run.toml").write_text(text)
        with pytest.raises(UserError):
            open_run(tmp_path)


BAD_TOML: dict[str, tuple[str, str] | bytes] = {
    "two megabytes": b"# " + b"x" * (2 << 20),
    "two megabytes of zeros": bytes(2 << 20),
    "nothing": b"",
    "a NUL at the end": b"x = 1\0",
    "UTF-16": "format = 1".encode("utf-16"),
    "bytes that are no text": b"\xff\xfe\xfd",
    "lone surrogates": b'game = "\xed\xa0\x80"',
    "deep arrays": ("parallel_games", "[" * 100_000 + "]" * 100_000),
    "deep tables": ("parallel_games", "{a=" * 100_000),
    "two of one key": ("parallel_games", "8\nparallel_games = 8"),
    "two of one section": ("parallel_games", "8\n[search]\n[search]"),
    "a key that no alphabet has": ("parallel_games", "8\nparallel_gameſ = 8"),
    "a right-to-left key": ("parallel_games", '8\n"\u202e" = 8'),
    "a long key": ("parallel_games", f"8\n{'a' * 500_000} = 8"),
    "a long section": ("parallel_games", f"8\n[{'a' * 500_000}]"),
    "no format": ("format", "2"),
    "a format that is a list": ("format", "[1]"),
    "a seed that is text": ("seed", '"1"'),
    "a seed that is broken": ("seed", "0.5"),
    "an unknown preset": ("preset", '"x"'),
    "a preset that is a number": ("preset", "1"),
    "a game that is a number": ("game", "1"),
    "a game that is none": ("game", '"../x"'),
    "a game that is no game": ("game", '"os:system"'),
    "a game with deep parameters": ("game", f'"tic-tac-toe(size={"(" * 5000})"'),
    "a game with a long number": ("game", f'"othello(size={"1" * 5000})"'),
    "a game of huge size": ("game", '"othello(size=1000000)"'),
    "a game that calls": ("game", "\"othello(size=__import__('os').mkdir('harm'))\""),
    "a version that is text": ("game_version", '"1"'),
    "a number of 10^4 digits": ("parallel_games", "1" * 10_000),
    "a seed of 10^4 digits": ("seed", "1" * 10_000),
    "a format of 10^4 digits": ("format", "0x" + "1" * 10_000),
    "a version of 10^4 digits": ("game_version", "0x" + "1" * 10_000),
    "a factor of 10^4 digits": ("c_puct", "0x" + "f" * 10_000),
    "parallel games of 10^4 digits": ("parallel_games", "0x" + "f" * 10_000),
    "a negative seed": ("seed", "-1"),
    "a seed of 70 bits": ("seed", "0x3fffffffffffffffff"),
    "a seed that is a truth": ("seed", "true"),
    "a preset that is a list": ("preset", "[]"),
    "a preset that is a table": ("preset", "{}"),
    "a window of 10^400": ("window_positions", "1" + "0" * 400),
    "bootstrap positions of 10^400": ("bootstrap_positions", "1" + "0" * 400),
    "a key in a key in a key": ("parallel_games", "8\nthreads" + ".a" * 1500 + " = 8"),
    "a game with many signs": ("game", f'"tic-tac-toe(size={"-" * 5000}1)"'),
    "a key of very many parts": ("parallel_games", "8\nx" + ".a" * 60_000 + " = 8"),
}


@pytest.mark.parametrize("what", BAD_TOML)
def test_settings_that_nobody_can_mean_are_refused(tmp_path: Path, toml: str, what: str):
    bad = BAD_TOML[what]
    with pytest.raises(UserError):
        opened(tmp_path, bad if isinstance(bad, bytes) else set_to(toml, *bad))
    assert not Path("harm").exists()


def test_a_directory_in_the_place_of_the_settings_is_refused(tmp_path: Path):
    (tmp_path / "run.toml").mkdir()
    with pytest.raises(UserError):
        open_run(tmp_path)


# Heartbeats and metric lines.


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = small_run(tmp_path / "r")
    (run.workers / "w9.00000009.json").write_text(json.dumps(WORKER))
    return run


def put(directory: Path, name: str, content: Any) -> Path:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode() + b"\n")
    return path


@pytest.mark.parametrize(
    ("name", "beat", "key"),
    [
        pytest.param(
            name,
            beat,
            key,
            id=f"{name[:2]}-{key}",
        )
        for name, beat in (("w0.00000000.json", WORKER), ("trainer.json", TRAINER))
        for key in (*beat, "name", "life", "new")
    ],
)
def test_status_survives_a_heartbeat_with_a_field_of_any_kind(
    tmp_path: Path, run: Run, name: str, beat: dict[str, Any], key: str
):
    for value in ODD:
        look(run, put(tmp_path, name, {**beat, key: value}))
    look(run, put(tmp_path, name, {other: value for other, value in beat.items() if other != key}))


GARBAGE = (
    *(b"", b"\0" * 1000, b"\xff\xfe\x00", b"{", b"null", b"[]", b"3", b'"x"', b"\n" * 1000, b"[" * 60_000),
    *(b'{"a":' * 10_000, b"1" * 60_000, b'{"beats": ' + b"1" * 5000 + b"}", b"{" * 60_000, b"x" * 70_000),
    *(json.dumps(TRAINER).encode()[:-1], json.dumps({**TRAINER, "more": "x" * 70_000}).encode()),
    *(json.dumps({**TRAINER, "beats": "1"}).encode(), json.dumps({**TRAINER, "pid": 1.5}).encode()),
)


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: f"{content[:10]!r}-{len(content)}")
def test_a_heartbeat_that_is_none_is_passed_over(tmp_path: Path, run: Run, content: bytes):
    path = put(run.workers, "trainer.json", content)
    with at_most(megabytes=32):
        assert read_heartbeat(path) is None
        monitor = LivenessMonitor(run)
        monitor.refresh()
        assert [each["name"] for each in snapshot(run, monitor)["processes"]] == ["w9.00000009"]


def test_a_directory_in_the_place_of_a_heartbeat_is_passed_over(run: Run):
    (run.workers / "trainer.json").mkdir()
    assert read_heartbeat(run.workers / "trainer.json") is None


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: f"{content[:10]!r}-{len(content)}")
def test_a_line_that_is_none_is_passed_over(tmp_path: Path, content: bytes):
    good = b'{"a": 1}\n'
    with at_most(megabytes=32):
        lines = read_lines(put(tmp_path, "rating.jsonl", good + content.replace(b"\n", b" ") + b"\n" + good + content))
    objects = [line for line in lines if line != {"a": 1}]
    assert len(lines) - len(objects) == 2
    assert all(line.keys() >= TRAINER.keys() for line in objects)


def test_a_file_of_lines_that_is_too_large_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.metrics.MAX_LINES_BYTES", 100)
    assert read_lines(put(tmp_path, "rating.jsonl", b"{}\n" * 100)) == []


@pytest.mark.parametrize(
    "scores",
    [
        *(None, 1, "x", [], {"a": 1}, {"a": "abc"}, {"a": [1, 2]}, {"a": [[], [], []]}, {"a": [None, 0, 0]}),
        {"a": [10**400, 0, 0]},
    ],
    ids=lambda scores: str(scores)[:16],
)
def test_a_measurement_that_is_none_is_passed_over(run: Run, scores: Any):
    name = publish_model(run.models, b"x", fence=1, step=1)
    put(run.metrics, "rating.jsonl", {"model": str(name), "scores": scores})
    with pytest.raises(UserError, match="has been measured"):
        best_model(run.models, run.metrics)


# The trainer's state.


STATE = "state-000001-000000001.pt"


def saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


@pytest.mark.parametrize("zipped", [True, False])
def test_a_state_that_would_run_code_is_refused_and_does_not(tmp_path: Path, zipped: bool):
    directory = tmp_path / "trainer"
    directory.mkdir()
    harmful = {"format": 2, "step": Harm(tmp_path / "harm")}
    (directory / STATE).write_bytes(saved(harmful, _use_new_zipfile_serialization=zipped))
    with pytest.raises(UserError, match="cannot be read"):
        load_state(directory)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"format": 1},
        {"format": "2"},
        {"format": None},
        {"format": torch.zeros(3)},
        *([2], None, 2, "x", torch.zeros(3), ("format", 2)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_state_of_another_format_is_refused(tmp_path: Path, value: Any):
    (tmp_path / STATE).write_bytes(saved(value))
    with pytest.raises(UserError):
        load_state(tmp_path)


def test_a_state_cut_short_is_refused_wherever_it_is_cut(tmp_path: Path):
    save_state(tmp_path, {"step": 1, "network": {"weight": torch.arange(100.0)}}, fence=1, step=1)
    whole = (tmp_path / STATE).read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / STATE).write_bytes(whole[:size])
        with pytest.raises(UserError):
            load_state(tmp_path)


def test_a_state_that_is_a_zip_bomb_is_refused_in_little_memory(tmp_path: Path):
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved({"format": 2, "x": torch.zeros(10)}))) as archive,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in archive.namelist():
            with bomb.open(name, "w") as entry:
                entry.write(archive.read(name))
                for _ in range(200 if "/data/" in name else 0):
                    entry.write(bytes(1 << 20))
    (tmp_path / STATE).write_bytes(file.getvalue())
    with at_most(megabytes=128), pytest.raises(UserError):
        load_state(tmp_path)


# Files as such.


@given(content=st.binary(max_size=40), most=st.integers(0, 60))
def test_a_file_is_read_whole_or_not_at_all(tmp_path_factory: pytest.TempPathFactory, content: bytes, most: int):
    path = tmp_path_factory.getbasetemp() / "some"
    path.write_bytes(content)
    if len(content) <= most:
        assert read_file(path, max_bytes=most) == content
    else:
        with pytest.raises(UnreadableError):
            read_file(path, max_bytes=most)


def test_a_small_file_takes_little_memory_however_large_it_might_be(tmp_path: Path):
    (tmp_path / "some").write_bytes(b"some")
    assert read_file(tmp_path / "some", max_bytes=1 << 45) == b"some"


# Damage at random.


@KINDS
def test_a_thousand_damaged_segments_never_give_other_games(tmp_path: Path, game: GameSpec):
    rng = np.random.default_rng(1)
    path, games = segment(tmp_path, game)
    other = write(tmp_path / "other", some_games(game, seed=1), game).read_bytes()
    whole, refused = path.read_bytes(), 0
    for _ in range(1000):
        path.write_bytes(damaged(rng, whole, other))
        try:
            assert same(read_segment(path, game), games)
        except SegmentError:
            refused += 1
    assert refused > 700


@KINDS
def test_three_hundred_damaged_journals_never_give_other_games(tmp_path: Path, game: GameSpec):
    rng = np.random.default_rng(2)
    batches = [some_games(game, seed, (2, 1)) for seed in range(4)]
    path = journal(tmp_path, game, batches)
    other = journal(tmp_path / "other", game, batches).read_bytes()
    whole, lost = path.read_bytes(), 0
    for _ in range(300):
        path.write_bytes(damaged(rng, whole, other[:500]))
        try:
            found = read_journal(path, game)
        except Exception:
            lost += 1
        else:
            assert is_prefix(found, batches) or is_made_of(found, batches)
            lost += len(found) < 4
    assert lost > 200


def is_made_of(found: list[Games], batches: list[Games]) -> bool:
    """Whether whole frames were doubled, which nobody can see in the file."""
    return all(any(same(each, batch) for batch in batches) for each in found)


def test_two_hundred_damaged_models_are_refused(tmp_path: Path):
    rng = np.random.default_rng(3)
    whole = untrained(small_run(tmp_path / "r", "tic-tac-toe", "network.channels=4"))
    name = publish_model(tmp_path, whole, fence=1, step=1)
    for _ in range(200):
        content = damaged(rng, whole, whole)
        (tmp_path / str(name)).write_bytes(content)
        if content == whole:
            continue
        with pytest.raises(ModelRefusedError):
            load_model(tmp_path, name, TIC_TAC_TOE)


def test_three_hundred_damaged_settings_are_refused_or_make_sense(tmp_path: Path, toml: str):
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(300):
        (tmp_path / "run.toml").write_bytes(damaged(rng, toml.encode(), toml.encode()))
        try:
            assert isinstance(open_run(tmp_path), Run)
        except UserError:
            refused += 1
    assert refused > 200


# What once broke a reader.


def replayed(reader: str, path: Path, directory: Path) -> None:
    """Read a file of the corpus, which keeps its promise if nothing else is raised than what is caught here."""
    content, name = path.read_bytes(), path.name.rpartition("--")[2]
    copy = put(directory, name, content)
    with at_most(megabytes=512):
        match reader:
            case "segments":
                for game in (CONNECT_FOUR, RELAY):
                    with suppress(SegmentError):
                        read_segment(copy, game)
            case "journals":
                for game in (CONNECT_FOUR, RELAY):
                    with suppress(Exception):
                        read_journal(copy, game)
            case "models":
                with suppress(ModelRefusedError):
                    Network(content, TIC_TAC_TOE, label="x")
            case "settings":
                with suppress(UserError):
                    open_run(directory)
            case "heartbeats":
                run = small_run(directory / "r")
                put(run.workers, "trainer.json", TRAINER)
                put(run.workers, "w9.00000009.json", WORKER)
                put(run.models, "000001-000000001-2d711642.onnx", b"x")
                look(run, copy)
            case _:
                raise AssertionError(f"no reader is called {reader}")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in sorted(HOSTILE.glob("*/*"))],
)
def test_no_file_of_the_corpus_breaks_its_reader(tmp_path: Path, path: Path):
    replayed(path.parent.name, path, tmp_path)


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in HOSTILE.rglob("*") if path.is_file()) < 200_000
