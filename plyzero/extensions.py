"""Entry points, by which the core finds the extensions of kits and other packages without importing them by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from plyzero.errors import UserError, install_command


def find_extensions(group: str) -> dict[str, EntryPoint]:
    """Return name -> entry point, for all that are installed in a group, such as `plyzero.players`."""
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}


def load_extension(entry: EntryPoint, what: str) -> Any:
    """Return the object that an entry point names.

    what: the extension in messages, such as "plyzero serve".

    Raises UserError if its module cannot be imported, with the command that installs a missing extra.
    """
    try:
        return entry.load()
    except Exception as error:  # the module may belong to another package
        if isinstance(error, ModuleNotFoundError) and entry.extras:
            brought = install_command(",".join(entry.extras))
            raise UserError(f"{what} needs {error.name}, which cannot be found here: {brought}") from error
        raise UserError(f"{what} cannot be used: importing {entry.module} failed with {error!r}") from error
