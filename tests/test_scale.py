"""The measurement of a run with many workers counts what it should, and no look grows faster than the work."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale.__main__ import check_handles
from benchmarks.scale.ledger import ENTRY, Log, Recount, delays, read_logs, recount


def test_games_that_are_there_once_and_read_once_are_neither_lost_nor_twice():
    found = recount([1, 2, 3], [3, 1, 2], read=3)
    assert found == Recount(acknowledged=3, sealed=3, lost=0, twice=0, unread=0)
    assert found.holds


@pytest.mark.parametrize(
    ("acknowledged", "sealed", "read", "journaled", "expected"),
    [
        ([1, 2, 3], [1, 3], 2, [], {"lost": 1, "twice": 0, "unread": 0}),
        ([1, 2, 3], [1, 3], 2, [2], {"lost": 0, "twice": 0, "unread": 0}),
        ([1, 2], [1, 2, 2], 3, [], {"lost": 0, "twice": 1, "unread": 0}),
        ([1, 2], [1, 2], 1, [], {"lost": 0, "twice": 0, "unread": 1}),
        ([1, 2], [1, 2], 3, [], {"lost": 0, "twice": 0, "unread": -1}),
        ([1], [1, 2], 2, [], {"lost": 0, "twice": 0, "unread": 0}),  # written, and its worker killed before it knew
    ],
)
def test_what_is_lost_twice_or_unread_is_counted(acknowledged, sealed, read, journaled, expected):
    found = recount(acknowledged, sealed, read=read, journaled=journaled)
    assert {key: vars(found)[key] for key in expected} == expected
    assert found.holds == (not any(expected.values()))


@given(st.sets(st.integers(0, 2**64 - 1)), st.data())
def test_every_game_that_is_taken_away_is_lost_and_every_one_that_is_added_again_is_twice(games, data):
    away = data.draw(st.sets(st.sampled_from(sorted(games)))) if games else set()
    kept = sorted(games - away)
    again = data.draw(st.sets(st.sampled_from(kept))) if kept else set()
    found = recount(games, [*kept, *again], read=len(kept))
    assert (found.lost, found.twice, found.unread) == (len(away), len(again), len(again))


def test_a_log_that_was_cut_off_has_its_whole_entries(tmp_path: Path):
    log = Log(tmp_path / "log")
    log.add([7, 2**64 - 1], [1.5, 2.5])
    log.add([9], [3.5])
    (tmp_path / "log").write_bytes((tmp_path / "log").read_bytes()[:-1])
    assert read_logs([tmp_path / "log"]).tolist() == [(7, 1.5), (2**64 - 1, 2.5)]
    assert len(read_logs([])) == 0


def test_a_delay_ends_with_the_first_use_and_a_game_that_is_not_used_has_waited_until_now():
    ended = np.array([(1, 10.0), (2, 11.0), (3, 12.0), (4, 99.0)], ENTRY)
    used = np.array([(1, 15.0), (1, 14.0), (2, 31.0)], ENTRY)
    assert delays(ended, used, since=10.0, until=20.0).tolist() == [4.0, 9.0, 8.0]


def test_more_workers_than_file_handles_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 4096))
    check_handles(48)
    says = "^a process of 49 pretended workers opens up to 260 files, and 256 are permitted: call ulimit -n 260 first$"
    with pytest.raises(SystemExit, match=says):
        check_handles(49)
    with pytest.raises(SystemExit, match="a process of 50 pretended workers opens up to 264 files"):
        check_handles(100_000)


@pytest.mark.slow
def test_a_look_costs_two_calls_for_each_worker_and_those_of_a_worker_do_not_depend_on_others():
    command = [sys.executable, "-m", "benchmarks.scale.looks", "--json", "--segments", "5", "--workers"]
    few, many = 3, 23
    done = subprocess.run([*command, str(few), str(many)], capture_output=True, text=True, check=True)
    of_few, of_many = map(json.loads, done.stdout.splitlines())
    more = {name: found["calls"] - of_few[name]["calls"] for name, found in of_many.items()}
    assert more.pop("worker: seals") == more.pop("worker: looks") == more.pop("trainer: looks for games") == 0
    assert of_few["worker: looks"]["bytes"] == of_many["worker: looks"]["bytes"]
    # The curves of the dashboard are those of eight workers, which `few` are not.
    assert more.pop("dashboard") <= 2 * (many - few) + 16
    assert set(more.values()) == {2 * (many - few)}
    assert {*more} == {"trainer: maintains", "status --watch"}
