"""The only way a file gets onto the volume: written beside, synced, renamed; readers see all of it or nothing."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_file(path: Path, content: bytes, *, replace: bool = False) -> None:
    """Make `path` appear with `content`, durably. FileExistsError if it is there already, unless `replace`.

    A process killed on the way leaves at most a `.tmp-` file, which no reader looks at.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".tmp-{uuid.uuid4().hex}"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)  # unlike a rename it fails when the name is taken
            temporary.unlink()
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(path)  # the name a person knows
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
