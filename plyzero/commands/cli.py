"""The command line: the commands by panel, and the exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer

from plyzero.commands import common, games, inspect, machine, match, play, roles, train
from plyzero.commands.of_kits import add_commands_of_kits
from plyzero.errors import FailedError, UserError, plain
from plyzero.ops.processes import note_signal
from plyzero.threads import start_thread
from plyzero.volume_errors import explain

USAGE_ERROR: Final[Any] = typer.BadParameter.__base__
"""The error of a wrong command line; which module defines it depends on the version of typer."""

app = typer.Typer(
    help="AlphaZero for two-player games: train from the rules alone, and play.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from plyzero import __version__

        print(f"plyzero {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # the callback prints it and ends the command
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


replay_app = typer.Typer(help="Inspect the replay store.", no_args_is_help=True)
replay_app.command("ls")(inspect.replay_ls)
replay_app.command("verify")(inspect.replay_verify)
replay_app.command("export")(inspect.replay_export)
replay_app.command("restore")(inspect.replay_restore)

PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Train": {
        "train": train.train,
        "init": train.init,
        "selfplay": roles.selfplay,
        "trainer": roles.trainer,
        "rate": roles.rate,
    },
    "Play": {
        "play": play.play,
        "match": match.match,
    },
    "Your own game": {"new": games.new, "check": games.check},
    "Inspect": {
        "games": inspect.list_games,
        "status": inspect.status,
        "wait": inspect.wait,
        "health": inspect.health,
        "doctor": machine.doctor,
        "bench": machine.bench,
    },
}

for panel, commands in PANELS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(replay_app, name="replay", rich_help_panel="Inspect")
add_commands_of_kits(app)


def main() -> None:
    """Run the command line. Exit codes: 0 = success, 1 = failure, 2 = invalid input, 130 = interrupted."""
    if sys.stdin is None:  # closed by the parent process
        sys.stdin = io.StringIO()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":  # Python does so for standard error
        sys.stdout.reconfigure(errors="backslashreplace")
    interrupts: list[int] = []
    try:
        with acknowledged_interrupts(interrupts):
            try:
                code = app(prog_name="plyzero", standalone_mode=False) or 0
            except Exception:
                if not interrupts:
                    raise
                raise KeyboardInterrupt from None  # it has become another error, as it does in an import
            if sys.stdout:
                sys.stdout.flush()  # so that an error of the last write is reported before the interpreter ends
    except USAGE_ERROR as error:
        _exit(_usage(error), 2)
    except UserError as error:
        _exit(error, 2)
    except ImportError as error:
        package = common.missing_package(error)
        if package is None:
            raise
        _exit(common.describe_missing([package]), 2)
    except FailedError as error:
        _exit(error, 1)
    except MemoryError as error:
        _exit(f"not enough memory; use fewer games, simulations or channels ({error or 'nothing is left'})", 1)
    except OSError as error:
        if error.errno is None:  # not the error of a system call
            raise
        _discard_output()
        if error.errno == errno.EPIPE and not error.filename:  # the reader of the output has ended
            sys.exit(1)
        _exit(f"cannot use {error.filename or 'the output or the volume'}: {explain(error)}", 2)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:
        from plyzero.rules.user_errors import own_frames, with_location

        if not own_frames(error):
            raise
        _exit(f"the code of a game or player has ended the process: {with_location(error)}", 1)
    _exit("interrupted" if code == 130 and not interrupts else "", code)


@contextmanager
def acknowledged_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Answer Ctrl-C at once, in a thread, while Python may still be busy in compiled code; a second one ends at once.

    Python raises KeyboardInterrupt only between two of its own instructions. If it is lost, in a callback while Numba
    compiles or in a destructor, it is raised again. Each signal that Python has handled is appended to `interrupts`.
    """
    lost: list[bool] = []
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def interrupt(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def raise_again() -> None:
        time.sleep(0.1)  # until the hook has returned; in it, the interrupt would be lost again
        if signal.getsignal(signal.SIGINT) is interrupt:  # the command has not ended meanwhile
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def note_lost(error: sys.UnraisableHookArgs) -> None:
        if error.exc_type is not KeyboardInterrupt or not interrupts:
            hook(error)
            return
        lost.append(True)
        start_thread(raise_again, name="lost interrupt")

    hook, sys.unraisablehook = sys.unraisablehook, note_lost
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)

    def answer() -> None:
        count = 0  # `interrupts` may have fewer: while compiled code runs, Python calls no handler
        while received := os.read(reader, 1):
            if received[0] != signal.SIGINT or signal.getsignal(signal.SIGINT) is not interrupt:
                note_signal()  # a command that handles signals itself
                continue
            if lost:  # this signal is from `raise_again`
                lost.pop()
                continue
            count += 1
            if count > 1:
                os._exit(130)
            print("\nplyzero: interrupted; press Ctrl-C again to end at once\n", end="", file=sys.stderr, flush=True)

    thread = start_thread(answer, name="interrupts")
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _usage(error: Any) -> str:
    """Return a mistake on the command line as one sentence; "" if the help has been printed instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    command = error.ctx.command_path if error.ctx else "plyzero"
    message = " ".join(error.format_message().split()).replace(": Value error, ", ": ").rstrip(".")
    return f"{message}; see {command} --help"


def _discard_output() -> None:
    """Drop output that cannot be written, so that the end of the interpreter does not fail too."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.pipe()[1], sys.stdout.fileno())


def _exit(message: object, code: int) -> None:
    if message:
        print(f"plyzero: {plain(str(message))}", file=sys.stderr)
    sys.exit(code)
