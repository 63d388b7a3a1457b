"""Segments: what goes in comes out, plain zarr reads it, and damage never passes for data."""

import json
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from plyzero.rules.catalog import GameSpec
from plyzero.run.records import FORMAT_1, Games
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment
from tests.helpers.segments import CONNECT_FOUR, RELAY, rewritten, same, some_games, write


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4))
@pytest.mark.parametrize("game", [CONNECT_FOUR, RELAY], ids=["bits", "floats"])
def test_what_is_written_is_read_back_exactly(game: GameSpec, seed: int, lengths: list[int], tmp_path_factory):
    games = some_games(game, seed, tuple(lengths))
    assert same(read_segment(write(tmp_path_factory.mktemp("s"), games, game), game), games)


def test_a_segment_holds_what_zarr_itself_would_write(tmp_path: Path):
    games = some_games(CONNECT_FOUR)
    with zipfile.ZipFile(write(tmp_path, games, CONNECT_FOUR)) as archive:
        written = {name: archive.read(name) for name in archive.namelist()}
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # equal games, equal bytes
    opened = zarr.open_group(zarr.storage.ZipStore(next(tmp_path.iterdir()), mode="r"), mode="r")
    assert (opened.attrs["schema"], opened.attrs["game"]) == ("plyzero.replay/1", "connect-four v1")
    for name, records in (("game", games.games), ("position", games.positions), ("move", games.moves)):
        for field in (FORMAT_1 if name == "game" else records.dtype).names or ():
            assert np.array_equal(opened[f"{name}/{field}"][:], records[field], equal_nan=field == "q")
    members: dict = {}
    store = zarr.storage.MemoryStore(members)
    copy = zarr.create_group(store, zarr_format=3, attributes=opened.attrs.asdict())
    for name, array in opened.members(max_depth=None):
        if isinstance(array, zarr.Array):
            compressors = zarr.codecs.ZstdCodec(level=1, checksum=True)
            options = {"compressors": compressors, "config": {"write_empty_chunks": True}}
            copy.create_array(name, data=array[...], chunks=array.shape, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(store)
    assert written.keys() == members.keys()
    for name, content in members.items():
        if name.endswith("zarr.json"):
            expected = json.loads(content.to_bytes())
            for node in expected.get("consolidated_metadata", {}).get("metadata", {}).values():
                node.pop("consolidated_metadata", None)  # an empty one, of groups in groups
            assert json.loads(written[name]) == expected
        else:
            assert written[name] == content.to_bytes()


@pytest.mark.parametrize(
    ("search", "model_steps", "first", "last"),
    [
        (1, range(10, 18), 10, 17),
        ([0, 1, 1, 0, 1, 1, 1, 1], [0, 20, 20, 999, 30, 30, 30, 30], 20, 30),  # random opening moves do not count
        (1, 0, 0, 0),
    ],
)
def test_a_name_has_the_numbers_of_games_positions_and_steps(
    tmp_path: Path, search: int | list[int], model_steps: Any, first: int, last: int
):
    games = some_games(CONNECT_FOUR)
    games.positions["search"][:] = search
    games.positions["model_step"][:] = model_steps
    path = write(tmp_path, games, CONNECT_FOUR, sequence=7)
    (name,) = list_segments(tmp_path)
    assert name == SegmentName("w0", "0123abcd", 7, 2, 8, games.num_full, first, last)
    assert (str(name), name.bootstrap) == (path.name, last == 0)


def test_names_that_are_not_segments_are_passed_over(tmp_path: Path):
    for name in (".tmp-12", "w0.0123abcd-1-g1-p1-f1-m0_0.zarr.zip", "notes.txt", "x.zarr.zip"):
        (tmp_path / name).touch()
    assert list(list_segments(tmp_path)) == []


def test_a_segment_cut_short_is_refused_wherever_it_is_cut(tmp_path: Path):
    path = write(tmp_path, some_games(CONNECT_FOUR), CONNECT_FOUR)
    whole = path.read_bytes()
    for size in range(0, len(whole), 211):
        path.write_bytes(whole[:size])
        with pytest.raises(SegmentError):
            read_segment(path, CONNECT_FOUR)


def test_a_reader_passes_over_arrays_that_it_does_not_know(tmp_path: Path):
    games = some_games(CONNECT_FOUR)
    path = write(tmp_path, games, CONNECT_FOUR)
    directory = tmp_path / "unpacked"
    zipfile.ZipFile(path).extractall(directory)
    zarr.open_group(directory, mode="a", use_consolidated=False).create_array("game/new", data=np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(str(directory))
    with zipfile.ZipFile(path, "w") as archive:
        for file in directory.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(directory))
    assert same(read_segment(path, CONNECT_FOUR), games)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"plyzero.replay/1", b"plyzero.replay/2", "schema is 'plyzero.replay/2', not 'plyzero.replay/1'"),
        (b'"game": "connect-four v1"', b'"game": "connect-four v2"', "game is 'connect-four v2'"),
        (b'"num_actions": 7', b'"num_actions": 8', "num_actions is 8, not 7"),
    ],
)
def test_a_segment_of_another_schema_or_version_is_refused_with_the_reason(tmp_path: Path, old, new, message: str):
    path = write(tmp_path, some_games(CONNECT_FOUR), CONNECT_FOUR)
    rewritten(path, lambda name, content: content.replace(old, new) if name == "zarr.json" else content)
    with pytest.raises(SegmentError, match=message):
        read_segment(path, CONNECT_FOUR)


def test_a_segment_that_has_lost_any_of_its_arrays_or_chunks_is_refused(tmp_path: Path):
    path = write(tmp_path, some_games(CONNECT_FOUR), CONNECT_FOUR)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        chunks = [name for name in archive.namelist() if not name.endswith("zarr.json")]
    assert len(chunks) > 20
    for chunk in chunks:
        path.write_bytes(whole)
        rewritten(path, lambda name, content, lost=chunk: None if name == lost else content)
        with pytest.raises(SegmentError):
            read_segment(path, CONNECT_FOUR)


def with_luck(games: Games) -> Games:
    return replace(games, luck=np.linspace(-2, 2, len(games.positions)).astype(np.float32))


def test_luck_is_an_optional_array_that_is_read_back(tmp_path: Path):
    games = with_luck(some_games(CONNECT_FOUR))
    path = write(tmp_path, games, CONNECT_FOUR)
    assert same(read_segment(path, CONNECT_FOUR), games)
    with zipfile.ZipFile(path) as archive:
        written = set(archive.namelist())
    path.unlink()
    with zipfile.ZipFile(write(tmp_path, replace(games, luck=None), CONNECT_FOUR)) as archive:
        assert written - set(archive.namelist()) == {"position/luck/zarr.json", "position/luck/c/0"}
    opened = zarr.open_group(zarr.storage.ZipStore(next(tmp_path.iterdir()), mode="r"), mode="r")
    assert "luck" not in opened["position"]


def test_games_without_luck_join_others_as_games_of_no_luck():
    games = some_games(CONNECT_FOUR)
    joined = Games.concatenate([games, with_luck(games)])
    assert joined.luck is not None
    assert joined.luck.tolist() == [0] * 8 + with_luck(games).luck.tolist()
    assert Games.concatenate([games, games]).luck is None
    assert [len(each.luck) for each in joined] == [3, 5, 3, 5]
    assert joined.select(np.array([False, False, False, True])).luck.tolist() == joined.luck[-5:].tolist()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e6])
def test_a_game_with_impossible_luck_is_left_out(tmp_path: Path, wrong: float):
    games = with_luck(some_games(CONNECT_FOUR))
    games.luck[1] = wrong
    read = read_segment(write(tmp_path, games, CONNECT_FOUR), CONNECT_FOUR)
    assert same(read, games.select(np.array([False, True])))
