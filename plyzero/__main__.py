"""The command: `plyzero`, and `python -m plyzero`."""

import os
import signal
import sys

from plyzero.pulse import answer


def main() -> None:
    """Run the command line. Ctrl-C while it is still imported ends the process with one sentence as well.

    The health check of a container is answered before it is imported.
    """
    if sys.argv[1:2] == ["health"] and (code := answer(sys.argv[2:])) is not None:
        sys.exit(code)
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:  # an imported module could swallow KeyboardInterrupt, or turn it into another exception
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
