"""The trainer's state: one atomic file with all that it needs to go on as if nothing had happened."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from plyzero.errors import UserError, shown
from plyzero.files import read_file, remove, write_file

FORMAT = 2
KEPT = 2
MAX_BYTES = 1 << 33
MAX_MEMBERS = 100_000
NAME = re.compile(r"state-(\d{6})-(\d{9})\.pt")


def save_state(directory: Path, state: Mapping[str, Any], *, fence: int, step: int) -> None:
    """Write `state` beside the older ones, or over that of this step, then remove all but the newest two."""
    file = io.BytesIO()
    torch.save({"format": FORMAT, **state}, file)
    write_file(directory / f"state-{fence:06d}-{step:09d}.pt", file.getvalue(), replace=True)
    for path in _list(directory)[KEPT:]:
        remove(path)


def load_state(directory: Path) -> dict[str, Any] | None:
    """Return the newest state, None if there is none yet; nothing in it can run code. UserError for another format."""
    states = _list(directory)
    if not states:
        return None
    try:
        content = read_file(states[0], max_bytes=MAX_BYTES)
        _check_stored(content)
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        found = state["format"] if isinstance(state, dict) else None
    except Exception as error:  # torch has many words for damage
        raise UserError(f"{states[0]} cannot be read; move it away to go on from the state before it") from error
    if type(found) is not int or found != FORMAT:
        raise UserError(f"{states[0]} has format {shown(found)}; this version of plyzero reads {FORMAT}")
    return state


def _check_stored(content: bytes) -> None:
    """Raise ValueError for an archive that would unpack to more than it is; torch only ever stores."""
    if content.count(b"PK\1\2") > MAX_MEMBERS:
        raise ValueError("too many members")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("a compressed member")
    if sum(member.file_size for member in members) > len(content):
        raise ValueError("members larger than the file")


def _list(directory: Path) -> list[Path]:
    return sorted((path for path in directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)
