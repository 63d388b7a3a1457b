"""The model repository for NVIDIA Triton: one version, whole at every moment, and what its configuration says."""

import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from plyzero import files
from plyzero.errors import UserError
from plyzero.kits.cluster.model_repository import keep_repository, publish_version, triton_config
from plyzero.kits.cluster.wire import model_name
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, plan_run
from plyzero.run.events import read_heartbeats
from plyzero.run.models import publish_model
from tests.helpers.buckets import new_prefix
from tests.helpers.learning import add_model
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until


def visible(model: Path) -> dict[str, bytes]:
    """Return the files that Triton sees: those in directories whose name is a number."""
    versions = [each for each in model.iterdir() if each.name.isdecimal()]
    found = [path for version in versions for path in version.rglob("*") if path.is_file()]
    return {str(path.relative_to(model)): path.read_bytes() for path in found}


class Killed(BaseException):
    """The process ends here."""


def test_a_version_is_whole_at_every_moment_and_the_only_one_at_the_end(tmp_path: Path, monkeypatch):
    model = tmp_path / "game_v1"
    publish_version(model, "config", b"old", version=10)
    seen: list[dict[str, bytes]] = []
    monkeypatch.setattr(files, "fault_point", lambda point, path: seen.append(visible(model)))
    publish_version(model, "config", b"new", version=20)
    assert len(seen) > 4
    old, new = {"10/model.onnx": b"old"}, {"20/model.onnx": b"new"}
    assert all(each in (old, old | new, new) for each in seen)
    assert visible(model) == new
    assert sorted(path.name for path in model.iterdir()) == ["20", "config.pbtxt"]


def test_a_kill_at_any_moment_leaves_whole_versions_and_the_next_one_cleans_up(tmp_path: Path, monkeypatch):
    for count in itertools.count():
        model = tmp_path / str(count) / "game_v1"
        publish_version(model, "config", b"old", version=10)
        with monkeypatch.context() as patched:
            ends = itertools.chain(itertools.repeat(None, count), itertools.repeat(Killed))
            patched.setattr(files, "fault_point", Mock(side_effect=ends))
            patched.setattr(files, "_unlink", lambda path: None)  # nor does a killed process remove anything
            with suppress(Killed):
                publish_version(model, "config", b"new", version=20)
                break
        assert visible(model).items() <= {"10/model.onnx": b"old", "20/model.onnx": b"new"}.items()
        assert visible(model)
        publish_version(model, "config", b"newer", version=30)
        assert visible(model) == {"30/model.onnx": b"newer"}
        assert sorted(path.name for path in model.iterdir()) == ["30", "config.pbtxt"]
    assert count > 4


def test_what_is_there_already_is_not_written_again(tmp_path: Path, monkeypatch):
    model = tmp_path / "game_v1"
    publish_version(model, "config", b"content", version=10)
    (model / "labels.txt").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in model.rglob("*")}
    with monkeypatch.context() as patched:
        patched.setattr(files, "fault_point", lambda point, path: pytest.fail(f"{point} of {path}"))
        publish_version(model, "config", b"content", version=10)
    assert {path: path.stat().st_mtime_ns for path in model.rglob("*")} == before
    publish_version(model, "config", b"other", version=10)  # the same step of another trainer
    assert visible(model) == {"10/model.onnx": b"other"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return small_run(tmp_path / "r", "connect-four")


@pytest.fixture
def kept(tmp_path: Path, run: Run) -> Iterator[Path]:
    """The directory of the model in a repository that is kept meanwhile."""
    stop = threading.Event()
    given = {"max_batch": 4, "wait_seconds": 0.002, "threads": 1, "stop": stop}
    thread = threading.Thread(target=keep_repository, args=(run, tmp_path / "repository"), kwargs=given)
    thread.start()
    yield tmp_path / "repository" / model_name(run)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def only_version(model: Path) -> str | None:
    """Return the name of the only directory in `model`, None while there is none or more."""
    names = [each.name for each in model.iterdir() if each.is_dir()] if model.is_dir() else []
    return names[0] if len(names) == 1 else None


def test_the_newest_model_of_a_run_is_the_version_with_its_step(run: Run, kept: Path):
    for step in (10, 20, 15):
        fence = 2 if step == 15 else 1  # a trainer that went back to an older state
        name = add_model(run, step, fence=fence)
        wait_until(lambda step=step: only_version(kept) == str(step))
        assert visible(kept) == {f"{step}/model.onnx": (run.models / str(name)).read_bytes()}
    publish_model(run.models, b"no model", fence=3, step=30)
    threading.Event().wait(1)
    assert visible(kept).keys() == {"15/model.onnx"}  # a model that cannot be used is not shown to Triton
    wait_until(lambda: heartbeat(run) == ("keeps a model repository", "000002-000000015"))


def heartbeat(run: Run) -> tuple[str, str]:
    [beat] = read_heartbeats(run.workers).values()
    assert beat.role == "evaluator"
    return beat.state, str(beat.model or "")[:16]  # at first there is none


def test_of_a_run_in_a_bucket_its_heartbeat_is_in_the_scratch_directory_too(tmp_path: Path):
    run, stop = replace(small_run(new_prefix("memory"), "connect-four"), scratch=tmp_path), threading.Event()
    stop.set()
    keep_repository(run, tmp_path / "repository", max_batch=4, wait_seconds=0, threads=1, stop=stop)
    beats = read_heartbeats(run.workers)
    assert [beat.state for beat in beats.values()] == ["stopped"]
    assert read_heartbeats(run.local / "workers") == beats


def test_the_configuration_is_that_of_the_game(run: Run):
    text = triton_config("connect-four_v1", run.game.start, max_batch=512, wait_seconds=0.002)
    assert text.splitlines() == [
        'name: "connect-four_v1"',
        'platform: "onnxruntime_onnx"',
        "max_batch_size: 512",
        'input [ { name: "observations" data_type: TYPE_FP32 dims: [ 2, 6, 7 ] } ]',
        "output [",
        '  { name: "logits" data_type: TYPE_FP32 dims: [ 7 ] },',
        '  { name: "wdl" data_type: TYPE_FP32 dims: [ 3 ] }',
        "]",
        "version_policy { latest { num_versions: 1 } }",
        "dynamic_batching { max_queue_delay_microseconds: 2000 }",
    ]


def test_a_repository_that_cannot_be_written_is_one_warning_and_is_tried_again(run: Run, kept: Path, caplog):
    wait_until(kept.parent.exists)
    kept.write_text("a file")
    add_model(run, 10)
    wait_until(lambda: "cannot be written, the model before stays in use" in caplog.text)
    kept.unlink()
    wait_until(lambda: only_version(kept) == "10")
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == 1


def test_a_repository_that_is_no_directory_is_refused_in_one_sentence(tmp_path: Path, run: Run):
    (tmp_path / "file").write_text("")
    for repository, reason in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "in", "Not a directory")):
        with pytest.raises(UserError, match=f"cannot use {repository} as a model repository: {reason}"):
            keep_repository(run, repository, max_batch=4, wait_seconds=0, threads=1, stop=threading.Event())


@pytest.mark.parametrize(
    "game", ["othello(size=6)", "plyzero.check.template.tic_tac_toe:TicTacToe", "openspiel:hex(board_size=3)"]
)
def test_the_name_of_a_model_is_safe_in_paths_and_urls_and_ends_with_the_run_id(tmp_path: Path, game: str):
    run = plan_run(tmp_path / "r", load_game(game))
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*_v\d+_" + run.id.text, model_name(run))
