"""The trainer's state: one atomic file with all that it needs to go on as if nothing had happened."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from plyzero.errors import UserError
from plyzero.files import write_file

FORMAT = 1
KEPT = 2
NAME = re.compile(r"state-(\d{6})-(\d{9})\.pt")


def save_state(directory: Path, state: Mapping[str, Any], *, fence: int, step: int) -> None:
    """Write `state` beside the older ones, then remove all but the newest two."""
    file = io.BytesIO()
    torch.save({"format": FORMAT, **state}, file)
    write_file(directory / f"state-{fence:06d}-{step:09d}.pt", file.getvalue(), replace=True)
    for path in _list(directory)[KEPT:]:
        path.unlink()


def load_state(directory: Path) -> dict[str, Any] | None:
    """Return the newest state, None if there is none yet; nothing in it can run code. UserError for another format."""
    states = _list(directory)
    if not states:
        return None
    try:
        state: dict[str, Any] = torch.load(states[0], map_location="cpu", weights_only=True)
    except Exception as error:  # torch has many words for damage
        raise UserError(f"{states[0]} cannot be read; move it away to go on from the state before it") from error
    if state.get("format") != FORMAT:
        raise UserError(f"{states[0]} has format {state.get('format')!r}; this version of plyzero reads {FORMAT}")
    return state


def next_fence(directory: Path, about: Mapping[str, Any]) -> int:
    """Claim the next fence number of the run: 1, 2, 3, ... for every start of a trainer; no two get the same."""
    while True:
        taken = [int(path.stem.removeprefix("fence-")) for path in directory.glob("fence-*.json")]
        fence = max(taken, default=0) + 1
        try:
            write_file(directory / f"fence-{fence:06d}.json", (json.dumps(dict(about)) + "\n").encode())
        except FileExistsError:
            continue
        return fence


def _list(directory: Path) -> list[Path]:
    return sorted((path for path in directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)
