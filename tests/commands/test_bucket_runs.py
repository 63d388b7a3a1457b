"""Commands on a run in a bucket: those that read it, and what is said where a bucket, a key or a server is missing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from plyzero import Bot
from plyzero.kits.cluster.bucket import BucketPath
from plyzero.run.adoption import seal_games
from plyzero.run.directory import Run, open_run
from plyzero.run.events import read_heartbeats
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import list_models
from plyzero.run.records import JournalName
from plyzero.run.replay import read_games
from plyzero.run.segments import list_segments
from tests.helpers.buckets import connected, new_prefix, s3_server
from tests.helpers.cli import plyzero, refused, shown
from tests.helpers.journals import leave
from tests.helpers.learning import add_model
from tests.helpers.runs import play_segment, small_run
from tests.helpers.segments import some_games

UNREACHABLE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def root(endpoint: str) -> Iterator[BucketPath]:
    with connected(endpoint):
        yield new_prefix()


@pytest.fixture
def run(root: BucketPath) -> Run:
    """A run with a segment, a model, and a damaged segment in quarantine."""
    run = small_run(root)
    segment = play_segment(run)
    (run.quarantine / segment.name).create(b"damaged")
    add_model(run)
    return run


def test_a_run_is_created_once(root: BucketPath):
    assert "created s3://runs/" in shown("init", "tic-tac-toe", "--run", str(root))
    again = refused("init", "tic-tac-toe", "--run", str(root))
    assert again == f"plyzero: {root} is a run directory already; it was not changed\n"


def test_a_run_in_a_directory_or_a_bucket_goes_on_from_one_in_a_bucket(run: Run, tmp_path: Path):
    for root in (tmp_path / "new", new_prefix()):
        assert "; its last model, step 12, is the one to pass" in shown("init", str(root), "--from", str(run.root))
        new = open_run(root)
        assert sum(name.games for name in list_segments(new.segments)) == len(read_games(run.root).games)
        assert Bot.of_model(root / "before", new.game).name.startswith(str(list_models(run.models)[0]))


def test_commands_that_read_a_run_read_one_in_a_bucket(run: Run, tmp_path: Path):
    root = str(run.root)
    status = shown("status", "--run", root)
    assert "in 1 segments" in status
    assert "1 damaged files are in quarantine/" in status
    assert len(json.loads(shown("replay", "export", "--run", root).splitlines()[0])["moves"]) > 4
    verified = plyzero("replay", "verify", "--run", root)
    assert (verified.returncode, "2 files ok" in verified.stdout) == (1, True)  # the one in quarantine is a fault
    shown("report", "--run", root, "--output", str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "you move first" in shown("play", "tic-tac-toe", "--run", root, text="quit\n")
    match = shown("match", root, "random", "--game", "tic-tac-toe", "--games", "2", "--simulations", "2")
    assert "onnx with 2 simulations (A)" in match


def test_a_sound_journal_is_sealed_when_it_is_brought_back_from_quarantine(run: Run, tmp_path: Path):
    local, games, name = replace(run, scratch=tmp_path), some_games(run.game), JournalName("w1", "00000002", 0)
    path = leave(local.journals, run, games, owner="w1.00000002")
    (run.quarantine / path.name).create(path.read_bytes())
    plyzero("replay", "restore", "--run", str(run.root), path.name)
    assert not (run.quarantine / path.name).exists()
    assert seal_games(run, name, [games]) == 0, "it is there already"


def test_health_asks_no_store(endpoint: str, tmp_path: Path):
    fields = {"role": "selfplay", "state": "playing"}
    with connected(endpoint):
        root = new_prefix()
        local = replace(small_run(root), scratch=tmp_path)
        run = ("--run", str(root), "--scratch", str(tmp_path))
        assert "no process of this run is running in this container" in plyzero("health", *run).stderr
        Heartbeat(*local.heartbeats("w0.00000001")).beat(fields)
    with connected(UNREACHABLE):
        assert shown("health", *run) == "ok\n"
    with connected(endpoint):
        assert read_heartbeats(local.workers) == read_heartbeats(local.local / "workers") != {}


@pytest.mark.parametrize(
    ("command", "server", "message"),
    [
        ("init tic-tac-toe --run s3://nobody/a", None, "there is no bucket nobody; create it first"),
        ("status --run s3://runs/nothing", None, "s3://runs/nothing is not a run directory: it has no run.toml"),
        ("selfplay --run s3://runs/a", None, "s3://runs/a is in a bucket: give --scratch DIR"),
        ("health --run s3://runs/a", None, "s3://runs/a is in a bucket: give --scratch DIR"),
        ("selfplay --run here --scratch x", None, "--scratch is for a run in a bucket, and here is a"),
        ("status --run s3://", None, "expected s3://BUCKET/PREFIX, got 's3://'"),
        ("status --run s3://runs/a", "host", "expected AWS_ENDPOINT_URL=http://HOST:PORT"),
        ("init tic-tac-toe --run s3://runs/a", UNREACHABLE, f"no proper answer from {UNREACHABLE}: error sending"),
    ],
)
def test_bad_input_is_one_sentence(endpoint: str, command: str, server: str | None, message: str):
    with connected(server or endpoint):
        assert message in refused(*command.split())
