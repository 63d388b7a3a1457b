"""Recorded games as arrays: of a run, and of one segment."""

from pathlib import Path

import numpy as np
import pytest

from plyzero import read_games
from plyzero.errors import UserError
from plyzero.run.records import Games
from plyzero.run.segments import read_segment
from tests.helpers.runs import play_segment, small_run


def test_the_games_of_a_run_are_those_of_its_segments_in_order(tmp_path: Path):
    run = small_run(tmp_path / "r")
    paths = [play_segment(run, full=20, sequence=number) for number in range(3)]
    parts = [read_segment(path, run.game) for path in paths]
    expected, found = Games.concatenate(parts), read_games(run.root)
    for name in ("games", "positions", "moves", "observations"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
    assert np.array_equal(read_games(str(paths[1])).games, parts[1].games)


def test_a_damaged_segment_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run = small_run(tmp_path / "r")
    sound, damaged = (play_segment(run, full=20, sequence=number) for number in range(2))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    assert len(read_games(run.root).games) == len(read_segment(sound, run.game).games)
    assert f"left out: {damaged.name} cannot be read" in caplog.text
    with pytest.raises(UserError, match=r"cannot read the games in .*: .* cannot be read"):
        read_games(damaged)


def test_where_there_are_no_games_one_sentence_says_so(tmp_path: Path):
    with pytest.raises(UserError, match=r"is not a run directory: it has no run.toml; make one with plyzero init"):
        read_games(tmp_path)
    run = small_run(tmp_path / "r")
    with pytest.raises(UserError, match="r has no sealed games yet"):
        read_games(run.root)
    with pytest.raises(UserError, match="cannot read the games in"):
        read_games(run.segments / "none.zarr.zip")
