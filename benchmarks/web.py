"""How fast the web page's server answers, and what many visitors at once cost: python -m benchmarks.web connect-four

A server of its own process is asked: for the page and the first position, for the first event of an analysis, for a
review of 40 positions with 256 simulations; then by many visitors at once, each of whom asks for a position and for a
search of 16 simulations in turn.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from plyzero.commands.common import find_game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import random_game


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    command = [sys.executable, "-m", "plyzero", "serve", given.game, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address = re.search(r"http://\S+", server.stdout.readline())[0].rstrip("/")
            began = time.monotonic()
            while not ask(address, "/api/about")["ready"]:
                time.sleep(0.2)
            print(f"ready {time.monotonic() - began:.1f} s after the start")
            measure(address, moves_of_a_game(given.game, 40))
            visit(address, server.pid, visitors=given.visitors, seconds=given.seconds)
        finally:
            server.terminate()


def measure(address: str, moves: str) -> None:
    """Print how long single answers take."""
    for name, path in (("page", "/"), ("position", f"/api/position?{urlencode({'moves': moves})}")):
        times = sorted(timed(lambda path=path: read(address, path)) for _ in range(20))
        print(f"{name}: median {1000 * statistics.median(times):.0f} ms, at most {1000 * times[-1]:.0f} ms")
    firsts = sorted(first_event(address, "") for _ in range(5))
    print(f"first event of an analysis: median {1000 * firsts[2]:.0f} ms, at most {1000 * firsts[-1]:.0f} ms")
    path = f"/api/review?{urlencode({'moves': moves, 'simulations': 256})}"
    reviews = sorted(timed(lambda: read(address, path)) for _ in range(3))
    print(
        f"review of {len(moves.split()) + 1} positions with 256 simulations: {', '.join(f'{t:.1f}' for t in reviews)} s"
    )


def visit(address: str, pid: int, *, visitors: int, seconds: float) -> None:
    """Let many visitors ask at once, and print how many answers there were, how slow, and the server's memory."""
    times: list[float] = []
    errors: list[str] = []
    memory = [resident_mb(pid)]
    deadline = time.monotonic() + seconds

    def come() -> None:
        while time.monotonic() < deadline:
            try:
                times.append(timed(lambda: read(address, "/api/position?moves=")))
                last = json.loads(read(address, "/api/think?simulations=16").decode().split("data: ")[-1])
                if "error" in last:
                    errors.append(last["error"])
            except OSError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=come) for _ in range(visitors)]
    for thread in threads:
        thread.start()
    while time.monotonic() < deadline:
        time.sleep(seconds / 6)
        memory.append(resident_mb(pid))
    for thread in threads:
        thread.join()
    slow = statistics.quantiles(times, n=20)[-1]
    print(f"{visitors} visitors: {len(times)} positions and searches, {len(errors)} errors {errors[:1]}")
    print(f"position: median {statistics.median(times):.2f} s, 95 % within {slow:.2f} s")
    print(f"memory: {', '.join(f'{each:.0f}' for each in memory)} MB")


def moves_of_a_game(name: str, count: int) -> str:
    import numpy as np

    start = find_game(name).start
    games = (random_game(start, np.random.default_rng(seed)) for seed in range(1000))
    moves = max((game.moves for game in games), key=len)[: count - 1]
    return " ".join(action_names(start, tuple(moves)))


def first_event(address: str, moves: str) -> float:
    began = time.monotonic()
    path = f"/api/think?{urlencode({'moves': moves, 'simulations': 4096})}"
    with urllib.request.urlopen(address + path, timeout=60) as answer:
        answer.readline()
        return time.monotonic() - began


def ask(address: str, path: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(read(address, path))
    return found


def read(address: str, path: str) -> bytes:
    with urllib.request.urlopen(address + path, timeout=120) as answer:
        content: bytes = answer.read()
    return content


def timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


if __name__ == "__main__":
    main()
