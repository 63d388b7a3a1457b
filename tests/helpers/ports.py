"""Ports for the servers that tests start."""

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return so many ports on which nobody listens."""
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
