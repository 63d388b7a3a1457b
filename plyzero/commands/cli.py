"""The command line: the commands by panel, and the exit codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

import typer

from plyzero.commands import bench, doctor, games, inspect, play, train
from plyzero.commands.common import FailedError
from plyzero.errors import UserError, plain
from plyzero.files import explain

VOLUME_ERRORS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
}
"""File-system errors that the user can fix. They are shown as one sentence, without a traceback."""

app = typer.Typer(
    help="AlphaZero for two-player games: train from the rules alone, and play.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
replay_app = typer.Typer(help="Inspect the replay store.", no_args_is_help=True)
replay_app.command("ls")(inspect.replay_ls)
replay_app.command("verify")(inspect.replay_verify)
replay_app.command("export")(inspect.replay_export)
replay_app.command("restore")(inspect.replay_restore)

PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Train": {"train": train.train, "init": train.init, "selfplay": train.selfplay, "trainer": train.trainer},
    "Play": {"play": play.play, "analyze": play.analyze, "match": play.match},
    "Your own game": {"new": games.new, "check": games.check},
    "Inspect": {
        "games": inspect.list_games,
        "status": inspect.status,
        "health": inspect.health,
        "doctor": doctor.doctor,
        "bench": bench.bench,
    },
}

for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(replay_app, name="replay", rich_help_panel="Inspect")


def main() -> None:
    """Run the command line. Exit codes: 0 = success, 1 = failure, 2 = invalid input, 130 = interrupted."""
    try:
        app()
    except UserError as error:
        _exit(error, 2)
    except FailedError as error:
        _exit(error, 1)
    except OSError as error:
        if error.errno not in VOLUME_ERRORS:
            raise
        _exit(f"cannot use {error.filename or 'the volume'}: {explain(error)}", 2)
    except KeyboardInterrupt:
        sys.exit(130)


def _exit(message: object, code: int) -> None:
    print(f"plyzero: {plain(str(message))}", file=sys.stderr)
    sys.exit(code)
