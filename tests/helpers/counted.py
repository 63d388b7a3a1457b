"""plyzero as in a pod, except that a worker also notes the games that it has acknowledged, in the directory COUNTED."""

import os
import socket
import sys
from pathlib import Path

from plyzero.commands.cli import main

if __name__ == "__main__":
    if sys.argv[1:2] == ["selfplay"]:
        from tests.helpers.victims import log_acknowledged

        log_acknowledged(Path(os.environ["COUNTED"]) / f"acknowledged-{socket.gethostname()}")
    main()
