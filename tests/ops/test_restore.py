"""The way back from quarantine: what is sound goes back, and what is not stays with a reason."""

from pathlib import Path

import pytest

from plyzero.run.directory import Run
from plyzero.run.segments import list_segments
from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.journals import leave
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games, write


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with two segments and a journal in quarantine."""
    run = small_run(tmp_path / "r", "tic-tac-toe")
    run.quarantine.mkdir()
    for sequence in range(2):
        write(run.quarantine, some_games(run.game, sequence), run.game, sequence, run.id, "w0.0000000a")
    leave(run.quarantine, run, some_games(run.game, 5), sequence=5, owner="w1.0000000b")
    return run


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_sound_files_go_back_to_where_they_came_from(run: Run):
    before = names(run.quarantine)
    said = shown("replay", "restore", "--run", str(run.root))
    assert said.splitlines() == [f"{name}: restored" for name in before]
    assert (names(run.segments) + names(run.journals), names(run.quarantine)) == (before, [])


def test_a_file_is_restored_by_its_name_and_others_stay(run: Run):
    name = names(run.quarantine)[1]
    shown("replay", "restore", "--run", str(run.root), name)
    assert names(run.segments) == [name]
    assert len(names(run.quarantine)) == 2


def test_a_name_that_is_not_in_quarantine_is_wrong_input(run: Run):
    for name in ("x", "../run.toml", "/etc/passwd"):
        said = refused("replay", "restore", "--run", str(run.root), name)
        assert f"quarantine has no file {name!r}; it has w0.0000000a-00000000-" in said


def test_what_is_damaged_foreign_or_there_already_stays_with_the_reason(run: Run):
    first, _, journal = names(run.quarantine)
    (run.quarantine / first).write_bytes(b"damaged")
    seal(run, some_games(run.game, 9, (2,)), 1, "w0.0000000a")
    (run.quarantine / journal).rename(run.quarantine / journal.replace("-00000005", "-00000006"))
    (run.quarantine / "notes.txt").touch()
    done = plyzero("replay", "restore", "--run", str(run.root), code=1)
    reasons = [
        f"{first} cannot be read",
        "the segment with its number exists: w0.0000000a-00000001-g1",
        "it cannot be read: ValueError",
        "its name is neither",
    ]
    assert all(f"left, {reason}" in done.stdout for reason in reasons)
    assert done.stderr == f"plyzero: 4 files left in {run.root}/quarantine\n"
    assert len(names(run.quarantine)) == 4
    assert len(list(list_segments(run.segments))) == 1
