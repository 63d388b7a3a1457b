"""Untrusted trainer states: none runs code, and damaged ones are refused."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from plyzero.errors import UserError
from tests.helpers.hostile import Harm, at_most
from trainer.state import load_state, save_state

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
