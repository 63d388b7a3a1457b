"""The command: `plyzero`, and `python -m plyzero`."""

import os
import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is still imported ends the process with one sentence as well."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:  # an exception could be lost, or become another one, in what is imported
        signal.signal(signal.SIGINT, _end)
    from plyzero.commands.cli import main as run

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(*_: object) -> None:
    print("\nplyzero: interrupted", file=sys.stderr, flush=True)
    os._exit(130)


if __name__ == "__main__":
    main()
