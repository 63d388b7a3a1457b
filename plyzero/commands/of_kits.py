"""Commands of kits, which are found by entry points: those of plyzero and those of other packages alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer

from plyzero.commands import common
from plyzero.errors import UserError
from plyzero.extensions import find_extensions, load_extension

GROUP: Final = "plyzero.commands"
"""The entry-point group of commands: name -> a function that typer makes a command of, or a typer.Typer."""

OTHERS: Final = "Other packages"
"""The panel of commands that name none."""

TAKES_ANYTHING: Final[dict[str, Any]] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": [],
}
"""Settings of a command whose arguments are not known."""


def add_commands_of_kits(app: typer.Typer) -> None:
    """Add each installed command to the command line. One that cannot be imported reports it when it is called."""
    for name, entry in find_extensions(GROUP).items():
        try:
            command = load_extension(entry, f"plyzero {name}")
        except UserError as error:
            app.command(name, hidden=True, context_settings=TAKES_ANYTHING)(_refusing(error))
            continue
        panel = getattr(command, common.PANEL, OTHERS)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(command)


def _refusing(error: UserError) -> Callable[[], None]:
    """Return a command that raises an error."""

    def command() -> None:
        raise error

    return command
