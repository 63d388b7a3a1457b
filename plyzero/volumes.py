"""Volumes that are not directories: paths that begin with a scheme, such as s3://, each brought by an entry point."""

from __future__ import annotations

import re
import uuid
from pathlib import Path, PosixPath
from typing import Final

from plyzero.extensions import find_extensions, load_extension

GROUP: Final = "plyzero.volumes"
"""The entry-point group of volumes: a scheme, such as `s3` -> a function that returns the RemotePath that a text names,
or raises UserError if it names none or cannot be used."""


class RemotePath(PosixPath):
    """The name of an object in a store, or of all objects below it. `plyzero.files` uses it like a file.

    It is a Path, so that a run in a store is handled like one in a directory. An object appears completely or not at
    all, and is listed as soon as the store has confirmed it. There are no directories, no locks, and nothing can be
    appended. Subclasses also define what their store has of Path: stat, exists, is_file, is_dir, iterdir, glob. All
    raise the errors of the store as OSErrors.
    """

    def create(self, content: bytes) -> None:
        """Create the object. Raises FileExistsError if it exists; of several creators one succeeds."""
        raise NotImplementedError

    def put(self, content: bytes) -> None:
        """Create the object or replace it."""
        raise NotImplementedError

    def read(self, *, max_bytes: int) -> bytes | None:
        """Return the content, None if it has more than `max_bytes`. Raises FileNotFoundError if there is none."""
        raise NotImplementedError

    def read_part(self, offset: int, *, max_bytes: int) -> bytes:
        """Return the content of the object from `offset` on, at most `max_bytes`."""
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """Return name -> size of the objects directly below this name, in the order of their names."""
        raise NotImplementedError

    def remove(self) -> None:
        """Remove the object; it is not an error if there is none."""
        raise NotImplementedError


def to_path(text: str) -> Path:
    """Return the path that `text` names: a RemotePath if it begins with the scheme of a volume, as s3://bucket/prefix.

    Raises UserError if the volume's package is not installed, or refuses the name.
    """
    scheme = re.match(r"(\w+)://", text)
    entry = find_extensions(GROUP).get(scheme[1]) if scheme else None
    if entry is None:
        return Path(text)
    found: Path = load_extension(entry, f"a run in {entry.name}://")(text)
    return found


def keeps_first(directory: RemotePath) -> bool:
    """Return whether the store refuses to create an object that exists. Without this, games would be lost."""
    probe = directory / f".tmp-{uuid.uuid4().hex}"
    try:
        probe.create(b"first")
        probe.create(b"second")
    except FileExistsError:
        return True
    finally:
        probe.remove()
    return False
