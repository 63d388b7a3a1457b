"""Commands of kits, which are found by entry points: those of plyzero and those of other packages alike."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer

from plyzero.commands.common import PANEL
from plyzero.errors import UserError, install_command

GROUP: Final = "plyzero.commands"
"""The entry-point group of commands: name -> a function that typer makes a command of, or a typer.Typer."""

OTHERS: Final = "Other packages"
"""The panel of commands that name none."""


def add_commands_of_kits(app: typer.Typer) -> None:
    """Add each installed command to the command line. One that cannot be imported says so when it is called."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            command = entry.load()
        except Exception as error:  # of a package that is not ours to mend
            app.command(entry.name, hidden=True, context_settings=TAKES_ANYTHING)(_stand_in(entry, error))
            continue
        panel = getattr(command, PANEL, OTHERS)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=entry.name, rich_help_panel=panel)
        else:
            app.command(entry.name, rich_help_panel=panel)(command)


TAKES_ANYTHING: Final[dict[str, Any]] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": [],
}
"""Settings of a command whose arguments are not known."""


def _stand_in(entry: EntryPoint, error: Exception) -> Any:
    """Return a command that reports why the real one cannot be imported, and which extra brings it."""

    def command(context: typer.Context) -> None:
        kit = ".".join(entry.module.split(".")[:3])
        if isinstance(error, ModuleNotFoundError) and entry.extras and str(error.name).startswith(kit):
            raise UserError(
                f"plyzero {entry.name} is not part of what is installed: {install_command(entry.extras[0])}"
            )
        raise UserError(f"plyzero {entry.name} cannot be used: importing {entry.module} failed with {error!r}")

    return command
