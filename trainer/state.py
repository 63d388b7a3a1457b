"""The trainer's state: one atomic file with all that it needs to go on as if nothing had happened."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from plyzero.errors import UserError
from plyzero.files import read_file, remove, write_file

FORMAT = 2
KEPT = 2
MOST_BYTES = 1 << 33
NAME = re.compile(r"state-(\d{6})-(\d{9})\.pt")


def save_state(directory: Path, state: Mapping[str, Any], *, fence: int, step: int) -> None:
    """Write `state` beside the older ones, then remove all but the newest two."""
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
        content = io.BytesIO(read_file(states[0], most=MOST_BYTES))
        state: dict[str, Any] = torch.load(content, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has many words for damage
        raise UserError(f"{states[0]} cannot be read; move it away to go on from the state before it") from error
    if state.get("format") != FORMAT:
        raise UserError(f"{states[0]} has format {state.get('format')!r}; this version of plyzero reads {FORMAT}")
    return state


def _list(directory: Path) -> list[Path]:
    return sorted((path for path in directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)
