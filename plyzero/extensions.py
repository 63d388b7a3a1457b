"""Entry points: how the core finds what kits and other packages bring, without importing any of them by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from plyzero.errors import UserError, install_command


def find_extensions(group: str) -> dict[str, EntryPoint]:
    """Return what is installed under an entry-point group, such as `plyzero.players`: name -> entry point."""
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}


def load_extension(entry: EntryPoint, what: str) -> Any:
    """Return the object that an entry point names.

    what: it in a message, such as "plyzero serve".
    Raises UserError if its module cannot be imported, with the command that installs what is missing if that is known.
    """
    try:
        return entry.load()
    except Exception as error:  # the module may be one of a package that is not ours to mend
        if isinstance(error, ModuleNotFoundError) and entry.extras:
            brought = install_command(",".join(entry.extras))
            raise UserError(f"{what} needs {error.name}, which cannot be found here: {brought}") from error
        raise UserError(f"{what} cannot be used: importing {entry.module} failed with {error!r}") from error
