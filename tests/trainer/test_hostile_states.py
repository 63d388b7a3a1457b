"""Untrusted trainer states: none runs code, and damaged ones are refused."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from plyzero.errors import UserError
from plyzero.trainer.state import load_state, save_state
from tests.helpers.hostile import Harm, at_most

STATE = "state-000001-000000001.pt"


def saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


@pytest.mark.parametrize("zipped", [True, False])
def test_a_state_that_would_run_code_is_refused_and_does_not(tmp_path: Path, zipped: bool):
    harmful = {"format": 2, "step": Harm(tmp_path / "harm")}
    (tmp_path / STATE).write_bytes(saved(harmful, _use_new_zipfile_serialization=zipped))
    with pytest.raises(UserError, match="cannot be read"):
        load_state(tmp_path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "value",
    [{}, {"format": 1}, {"format": torch.zeros(3)}, *([2], None, torch.zeros(3))],
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


@pytest.mark.parametrize("size", [0, 100, 1000])
def test_a_training_goes_on_from_the_state_before_one_that_was_not_written_as_a_whole(
    tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
):
    for step in (1, 2):
        save_state(tmp_path, {"step": step}, fence=1, step=step)
    newest = tmp_path / "state-000001-000000002.pt"
    newest.write_bytes(newest.read_bytes()[:size])
    assert (load_state(tmp_path) or {})["step"] == 1
    why = "it is damaged" if size else "it is empty"
    says = f"{newest} cannot be read: {why}; the training goes on from state-000001-000000001.pt"
    assert [record.message for record in caplog.records] == [says]
    assert (load_state(tmp_path, set_aside=[]) or {})["step"] == 1
    save_state(tmp_path, {"step": 3}, fence=2, step=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "state-000001-000000001.pt",
        "state-000001-000000002.damaged",
        "state-000002-000000003.pt",
    ]


def test_a_state_of_a_newer_version_is_refused_though_an_older_one_is_there(tmp_path: Path):
    save_state(tmp_path, {"step": 0}, fence=1, step=0)
    (tmp_path / STATE).write_bytes(saved({"format": 3}))
    with pytest.raises(UserError, match="has format 3"):
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
