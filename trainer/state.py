"""The trainer's state: one file, written atomically, from which a trainer resumes exactly where it was."""

from __future__ import annotations

import io
import logging
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypedDict

import torch
from torch import Tensor

from plyzero.errors import UserError, shown
from plyzero.files import list_files, read_file, remove, rename, write_file
from plyzero.volume_errors import UnreadableError

FORMAT: Final = 2  # docs/formats.md lists the fields
NUM_STATES: Final = 2  # number of newest states that are kept
MAX_BYTES: Final = 1 << 33  # largest size of a state that is read
MAX_MEMBERS: Final = 100_000  # largest number of members of its zip archive
NAME: Final = re.compile(r"state-(\d{6})-(\d{9})\.pt")  # fence and step

log = logging.getLogger(__name__)


class StateDamagedError(UserError):
    """A state that was not written as a whole, as after a power failure. The message says which one."""


class LearnerState(TypedDict):
    """Weights in the form in which they are trained, and the optimiser: enough to continue without a break."""

    step: int
    network: dict[str, Tensor]
    averaged: dict[str, Tensor]
    optimiser: dict[str, Any]


class State(LearnerState, total=False):
    """A trainer's state, or with `model`, a digest, that of a bot; docs/formats.md describes the fields."""

    format: int
    model: str
    run: str
    games: int
    positions: int
    torch_rng: Tensor
    rng: str
    ledger: dict[str, Any]
    cursor: dict[str, int]
    holes: int
    skipped: dict[str, list[tuple[int, int, bool]]]
    invalid_games: int
    window: list[str]
    minutes: float


def save_state(directory: Path, state: State, *, fence: int, step: int) -> None:
    """Write `state`, replacing one of the same fence and step, then remove all but the newest NUM_STATES."""
    write_file(directory / f"state-{fence:06d}-{step:09d}.pt", pack_state(state), replace=True)
    try:
        for path in _list_states(directory)[NUM_STATES:]:
            remove(path)
    except OSError as error:  # the state is saved, and old ones are removed after the next save
        log.warning("an old state is not removed: %s", error)


def load_state(directory: Path, *, set_aside: list[str] | None = None) -> State | None:
    """Return the newest state that is whole, None if there is none yet. Nothing in the file can run code.

    set_aside: newer states that are damaged are renamed, for otherwise they would take the place of whole ones, and a
               sentence about each is added to this list; None = they stay as they are.

    Raises UserError if all are damaged, or if the newest has another format, and OSError if it cannot be read.
    """
    damaged: list[tuple[Path, StateDamagedError]] = []
    for path in _list_states(directory):
        try:
            state = read_state(path, "move it away to begin without a state")
        except StateDamagedError as error:
            damaged.append((path, error))
            continue
        for newer, found in damaged:
            text = f"{str(found).partition(';')[0]}; the training goes on from {path.name}"
            log.warning("%s", text)
            if set_aside is not None:
                set_aside.append(text)
                with suppress(OSError):  # if it stays, it is found again
                    rename(newer, newer.with_suffix(".damaged"))
        return state
    if damaged:
        raise damaged[0][1]
    return None


def pack_state(state: Mapping[str, object]) -> bytes:
    """Return the content of a file with `state`, which `read_state` reads."""
    file = io.BytesIO()
    torch.save({"format": FORMAT, **state}, file)
    return file.getvalue()


def read_state(path: Path, advice: str) -> State:
    """Return the state in a file.

    Raises StateDamagedError, whose message ends with `advice`, UserError if it has another format, and OSError if it
    cannot be read.
    """

    def damaged(reason: object) -> StateDamagedError:
        return StateDamagedError(f"{path} cannot be read: {reason}; {advice}")

    try:
        content = read_file(path, max_bytes=MAX_BYTES)
    except UnreadableError as error:
        raise damaged(error.strerror) from error
    if not content:
        raise damaged("it is empty")
    try:
        _check_uncompressed(content)
        state: State = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        found = state["format"] if isinstance(state, dict) else None
    except Exception as error:  # torch raises errors of many types for damage
        if isinstance(error, OSError):
            raise
        raise damaged("it is damaged") from error
    if type(found) is not int or found != FORMAT:
        raise UserError(f"{path} has format {shown(found)}; this version of plyzero reads format {FORMAT}")
    return state


def _check_uncompressed(content: bytes) -> None:
    """Raise ValueError if the archive would decompress to more than its own size; torch never compresses."""
    if content.count(b"PK\1\2") > MAX_MEMBERS:
        raise ValueError("too many members")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("a member is compressed")
    if sum(member.file_size for member in members) > len(content):
        raise ValueError("the members are larger than the file")


def _list_states(directory: Path) -> list[Path]:
    """Return the files of all states, newest first. A directory, pipe or link of such a name is not a state."""
    return [directory / name for name in sorted(list_files(directory), reverse=True) if NAME.fullmatch(name)]
