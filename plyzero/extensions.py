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
    Raises UserError with the command that installs it if its kit is not there, and if its module cannot be imported.
    """
    try:
        return entry.load()
    except Exception as error:  # the module may be one of a package that is not ours to mend
        if is_absent(entry, error) and entry.extras:
            brought = install_command(",".join(entry.extras))
            raise UserError(f"{what} is not part of what is installed: {brought}") from error
        raise UserError(f"{what} cannot be used: importing {entry.module} failed with {error!r}") from error


def is_absent(entry: EntryPoint, error: Exception) -> bool:
    """Return whether the module of an entry point, or a package that holds it, is not there."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    return name != "" and f"{entry.module}.".startswith(f"{name}.")
