"""verify and export: what is wrong with a store is found and named, and what is in it can be taken out."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plyzero.ops import verify
from plyzero.ops.accounts import find_gaps
from plyzero.ops.verify import find_faults
from plyzero.run.directory import Run, open_or_create_run, open_run
from plyzero.run.models import list_models
from plyzero.run.records import JournalName
from plyzero.run.segments import SegmentName, list_segments, read_segment
from tests.helpers.cli import plyzero, shown
from tests.helpers.hostile import failing, with_value
from tests.helpers.journals import adopt_journals, leave
from tests.helpers.learning import add_model
from tests.helpers.runs import games_of, playing, small_run
from tests.helpers.segments import seal, some_games


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with several segments, two journals of dead workers, and a model."""
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe", "selfplay.seal_positions=60")
    with playing(run, incarnation="0000000a") as until:
        until(lambda: len(list(list_segments(run.segments))) >= 3)
    for sequence in range(2):
        leave(run.journals, run, some_games(run.game, sequence, (3,)), sequence=sequence, owner="w1.0000000b")
    add_model(run)
    return run.root


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Run:
    return open_run(Path(shutil.copytree(sound, tmp_path / "copy")))


def files(run: Run) -> list[Path]:
    """The files that are verified."""
    places = (run.segments, run.journals, run.models)
    return [path for place in places for path in sorted(place.iterdir()) if not path.name.startswith(".")]


def faults(run: Run) -> list[tuple[str, str]]:
    return [(name, fault) for name, fault in find_faults(run) if fault]


def first_segment(run: Run) -> Path:
    return run.segments / str(min(list_segments(run.segments)))


def bit_flip(run: Run) -> tuple[Path, str]:
    path = first_segment(run)
    content = path.read_bytes()
    return path, flipped(path, content.index(b"game/id/c/0") + 40)


def damaged_journal(run: Run) -> tuple[Path, str]:
    path = run.journals / str(JournalName("w1", "0000000b", 1))
    return path, flipped(path, 20)


def flipped(path: Path, at: int) -> str:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    return f"{path.name} cannot be read"


def lying_journal(run: Run) -> tuple[Path, str]:
    path = leave(run.journals, run, with_value(some_games(run.game), "positions", "to_play", 3), owner="w2.0000000c")
    return path, f"{path.name}: of the batch at byte 233, 1 of 2 games are left out: position/to_play"


def lying_segment(run: Run) -> tuple[Path, str]:
    path = seal(run, with_value(some_games(run.game, 90), "positions", "to_play", 3), owner="w3.0000000e")
    return path, f"{path.name}: 1 of 2 games are invalid"


def damaged_model(run: Run) -> tuple[Path, str]:
    path = run.models / str(list_models(run.models)[0])
    path.write_bytes(path.read_bytes()[:-1])
    return path, f"{path.name}: its content has the digest"


def missing_segment(run: Run) -> tuple[Path, str]:
    path = run.segments / str(sorted(list_segments(run.segments))[1])
    path.unlink()
    return path, "segment 1 of w0.0000000a is missing, although 0 and 2 are there; retention would have removed older"


def one_number_twice(run: Run) -> tuple[None, str]:
    seal(run, some_games(run.game, 50, (4,)), 1, "w0.0000000a")
    return None, "2 segments are number 1 of incarnation 0000000a"


def one_game_twice(run: Run) -> tuple[None, str]:
    games = read_segment(first_segment(run), run.game)
    seal(run, games, owner="w0.0000000d")
    return None, f"{len(games.games)} games occur more than once, {games.games['id'][0]:016x} for example"


def a_sealed_game_in_a_journal(run: Run) -> tuple[None, str]:
    games = read_segment(first_segment(run), run.game)
    leave(run.journals, run, next(iter(games)), owner="w2.0000000c")
    return None, f"1 games occur more than once, {games.games['id'][0]:016x} for example"


def quarantine(run: Run) -> tuple[None, str]:
    path = run.journals / str(JournalName("w1", "0000000b", 0))
    path.write_bytes(b"")
    adopt_journals(run)
    return None, f"{path.name} is in quarantine, because it could not be read"


DAMAGE = (bit_flip, damaged_journal, lying_journal, lying_segment, damaged_model)
FAULTS = (*DAMAGE, missing_segment, one_number_twice, one_game_twice, a_sealed_game_in_a_journal, quarantine)


@pytest.mark.parametrize("spoil", FAULTS)
def test_every_kind_of_fault_is_found_and_the_rest_is_sound(spoil: Callable[[Run], tuple[Path | None, str]], run: Run):
    path, beginning = spoil(run)
    ((_, fault),) = faults(run)
    assert fault.startswith(beginning)
    good = [name for name, fault in find_faults(run) if fault is None]
    assert good == [each.name for each in files(run) if each != path]


def test_faults_end_the_command_with_1_and_programs_get_them_as_one_object(run: Run):
    command = ("replay", "verify", "--run", str(run.root))
    assert json.loads(shown(*command, "--json")) == {"version": 1, "sound": len(files(run)), "faults": []}
    _, beginning = bit_flip(run)
    done = plyzero(*command, code=1)
    fault, last = done.stdout.splitlines()
    assert fault.startswith(beginning)
    assert last == f"{len(files(run)) - 1} files ok, 1 faults"
    assert done.stderr.endswith(f"plyzero: 1 faults in {run.root}\n")
    quarantine(run)
    found = json.loads(plyzero(*command, "--json", code=1).stdout)
    assert (found["sound"], len(found["faults"])) == (len(files(run)) - 1, 2)


def test_a_journal_that_is_sealed_and_not_yet_removed_counts_once(run: Run):
    seal(run, some_games(run.game, 0, (3,)), owner="w1.0000000b")
    assert faults(run) == []


def gaps_of(run: Run, segments: str) -> list[tuple[int, int]]:
    """Name empty segments of one worker by "sequence:first step-last step", and return the gaps between them."""
    for path in (*run.segments.iterdir(), *run.journals.iterdir()):
        path.unlink()
    for each in segments.split():
        sequence, _, steps = each.partition(":")
        low, _, high = steps.partition("-")
        name = SegmentName("w9", "00000009", int(sequence), 1, 1, 1, int(low), int(high))
        (run.segments / str(name)).touch()
    return [(gap.first, gap.last) for gap in find_gaps(run)]


@pytest.mark.parametrize(
    ("segments", "gaps"),
    [
        ("0:0-0 1:0-0 2:0-9", []),
        ("0:0-0 3:0-9", [(1, 2)]),
        ("0:0-9 1:5-12 3:20-30 4:30-40", [(2, 2)]),
        ("5:90-99 6:95-105", []),  # the older ones were removed
        ("5:100-110 7:104-114", []),  # 6 may have had a game that began before 5's
        ("5:100-110 20:500-510 22:520-530", [(21, 21)]),  # 5 and 20 would have gone first
    ],
)
def test_a_gap_is_missed_where_older_segments_would_have_gone_first(
    run: Run, segments: str, gaps: list[tuple[int, int]]
):
    assert gaps_of(run, segments) == gaps


@pytest.mark.parametrize("where", ["journals", "quarantine"])
def test_a_segment_that_is_not_sealed_yet_or_in_quarantine_is_not_missed(where: str, run: Run):
    path = run.segments / str(sorted(list_segments(run.segments))[1])
    directory: Path = getattr(run, where)
    directory.mkdir(exist_ok=True)
    path.rename(directory / (path.name if where == "quarantine" else str(JournalName("w0", "0000000a", 1))))
    assert find_gaps(run) == []


@pytest.mark.parametrize("place", ["segments", "journals", "models"])
def test_what_goes_while_it_is_verified_is_no_fault(place: str, run: Run):
    add_model(run, 13)
    kept = [path for path in files(run) if path.parent != getattr(run, place)]
    found, first = [], None
    for name, fault in find_faults(run):
        assert fault is None
        found.append(name)
        if first is None and (getattr(run, place) / name).exists():
            first = name
            for path in getattr(run, place).iterdir():
                if path.name != first:
                    path.unlink()
    assert sorted(found) == sorted([first, *(path.name for path in kept)])


def test_a_model_that_cannot_be_read_hides_nothing_that_comes_after_it(run: Run, monkeypatch: pytest.MonkeyPatch):
    newest = add_model(run, 13)
    monkeypatch.setattr(verify, "read_model", failing(errno.EIO, 1, then=verify.read_model))  # the newest is first
    run.quarantine.mkdir()
    (run.quarantine / "x").write_bytes(b"")
    assert faults(run) == [
        (str(newest), f"{newest} cannot be read: Input/output error"),
        ("x", "x is in quarantine, because it could not be read"),
    ]


def test_an_export_leaves_out_a_segment_that_cannot_be_read_and_names_it(run: Run):
    ids = [json.loads(line)["id"] for line in shown("replay", "export", "--run", str(run.root)).splitlines()]
    assert sorted(ids) == sorted(f"{number:016x}" for number in games_of(run).games["id"])
    path = first_segment(run)
    os.truncate(path, 100)
    done = plyzero("replay", "export", "--run", str(run.root), code=1)
    name = SegmentName.parse(path.name)
    assert len(done.stdout.splitlines()) == len(ids) - name.games
    left_out, *_, last = done.stderr.splitlines()
    assert left_out.startswith(f"plyzero: left out: {path.name} cannot be read")
    count = len(list(list_segments(run.segments)))
    assert last == f"plyzero: 1 of {count} segments cannot be read; the games of the others are exported"


@pytest.mark.parametrize("folder", ["replay", "journal", "models", "trainer", "workers", "metrics", "logs"])
def test_an_absent_folder_of_a_run_is_an_empty_one(sound: Path, tmp_path: Path, folder: str):
    """Git and some copies keep no empty folders."""
    root = Path(shutil.copytree(sound, tmp_path / "copy"))
    shutil.rmtree(root / folder)
    before = sorted(root.rglob("*"))
    for command in ("status", "replay verify", "replay ls", "replay export", f"report -o {tmp_path}/x.html"):
        shown(*command.split(), "--run", str(root))
    assert sorted(root.rglob("*")) == before
    open_or_create_run(root, None)  # whoever writes has them all again
    assert (root / folder).is_dir()
