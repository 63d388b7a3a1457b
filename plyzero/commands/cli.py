"""The command line: which commands there are, and how one ends."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable

import typer

from plyzero.commands import bench, doctor, games, inspect, play, train
from plyzero.commands.common import FailedError
from plyzero.errors import UserError

VOLUME_ERRORS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
}
"""What a person can mend: shown as a sentence."""

app = typer.Typer(
    help="Learn a two-player game from its rules alone, and play it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
replay_app = typer.Typer(help="Look into the replay store.", no_args_is_help=True)
replay_app.command("ls")(inspect.replay_ls)
replay_app.command("verify")(inspect.replay_verify)
replay_app.command("export")(inspect.replay_export)

PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Train": {"train": train.train, "init": train.init, "selfplay": train.selfplay, "trainer": train.trainer},
    "Play": {"play": play.play, "analyze": play.analyze, "match": play.match},
    "Make": {"new": games.new, "check": games.check},
    "Look": {
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
app.add_typer(replay_app, name="replay", rich_help_panel="Look")


def main() -> None:
    """Run a command. Exit codes: 0 = done, 1 = it failed on the way, 2 = bad input."""
    try:
        app()
    except UserError as error:
        _exit(error, 2)
    except FailedError as error:
        _exit(error, 1)
    except OSError as error:
        if error.errno not in VOLUME_ERRORS:
            raise
        _exit(f"cannot use {error.filename or 'the volume'}: {error.strerror}", 2)
    except KeyboardInterrupt:
        sys.exit(130)


def _exit(message: object, code: int) -> None:
    print(f"plyzero: {message}", file=sys.stderr)
    sys.exit(code)
