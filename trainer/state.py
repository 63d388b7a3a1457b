"""The trainer's state: one file, written atomically, from which a trainer resumes exactly where it was."""

from __future__ import annotations

import io
import logging
import re
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import torch

from plyzero.errors import UserError, shown
from plyzero.files import UnreadableError, read_file, remove, write_file

FORMAT: Final = 2
"""Format version of a state; docs/formats.md lists the fields."""

NUM_STATES: Final = 2
"""Number of the newest states that are kept."""

MAX_BYTES: Final = 1 << 33
"""Largest size of a state that is read, in bytes."""

MAX_MEMBERS: Final = 100_000
"""Largest number of members in the zip archive of a state."""

PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""Seconds before each new try after an error of the volume."""

NAME: Final = re.compile(r"state-(\d{6})-(\d{9})\.pt")
"""Pattern of the file name of a state: fence and step."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class RequiredSegments(NamedTuple):
    """The segments that a trainer needs if it resumes from a saved state.

    cursor: incarnation -> sequence number from which on it needs all segments.
    window: names of the segments in its window.
    """

    cursor: dict[str, int]
    window: frozenset[str]


def save_state(directory: Path, state: Mapping[str, Any], *, fence: int, step: int) -> None:
    """Write `state`, replacing one of the same fence and step, then remove all but the newest NUM_STATES."""
    file = io.BytesIO()
    torch.save({"format": FORMAT, **state}, file)
    write_file(directory / f"state-{fence:06d}-{step:09d}.pt", file.getvalue(), replace=True)
    for path in _list_old_states(directory):
        try:
            remove(path)
        except OSError as error:
            log.warning("an old state is not removed: %s", error)


def load_state(directory: Path) -> dict[str, Any] | None:
    """Return the newest state, None if there is none yet. Nothing in the file can run code.

    Raises UserError if it cannot be read, is damaged, or has another format.
    """
    path = directory
    try:
        states = patiently(lambda: _list_states(directory))
        if not states:
            return None
        path = states[0]
        content = patiently(lambda: read_file(path, max_bytes=MAX_BYTES))
        _check_uncompressed(content)
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        found = state["format"] if isinstance(state, dict) else None
    except Exception as error:  # torch raises errors of many types for damage
        if isinstance(error, OSError) and not isinstance(error, UnreadableError):
            raise UserError(f"{path} cannot be read: {error.strerror}; make it readable and start again") from error
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        message = f"{path} cannot be read: {reason}; to continue from the previous state, move it away"
        raise UserError(message) from error
    if type(found) is not int or found != FORMAT:
        raise UserError(f"{path} has format {shown(found)}; this version of plyzero reads format {FORMAT}")
    return state


def patiently(call: Callable[[], T]) -> T:
    """Return `call()`. An error of the volume may pass, so after an OSError it is called again, after PAUSES."""
    for pause in PAUSES:
        try:
            return call()
        except UnreadableError:
            raise
        except OSError as error:
            log.warning("%s; trying again in %g s", error, pause)
            time.sleep(pause)
    return call()


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


def _list_old_states(directory: Path) -> list[Path]:
    """Return the files of all but the newest NUM_STATES states; [] if the directory cannot be listed now."""
    try:
        return _list_states(directory)[NUM_STATES:]
    except OSError as error:  # the state is saved, and old ones are removed after the next save
        log.warning("old states are not removed: %s", error)
        return []


def _list_states(directory: Path) -> list[Path]:
    """Return the files of all states, newest first."""
    return sorted((path for path in directory.iterdir() if NAME.fullmatch(path.name)), reverse=True)
