"""Speed of the web page and its server, alone and under many visitors: python -m benchmarks.web connect-four

A server of its own process is asked: for the page and the first position, for the first event of an analysis, for a
review of 40 positions with 256 simulations; then by many visitors at once, each of whom asks for a position and for a
search of 16 simulations in turn. Before that, Chromium opens the page, and the dashboard of a run whose trainer has
written 20,000 lines; it needs the extra `browser`. At last, servers with an empty cache of machine code are started,
and a person moves as soon as the page shows the first position: `--empty-cache` measures only this.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from plyzero.commands.common import find_game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import random_game
from plyzero.run.directory import create_run
from plyzero.run.metrics import append_line

LINES: Final = 20_000
"""Lines of the trainer's metrics in the run whose dashboard is opened."""

STARTS: Final = 5
"""Number of servers that are started with an empty cache of machine code."""

DRAW: Final = """async (count) => {
  const x = Array.from({ length: count }, (_, i) => i), y = x.map((i) => Math.sin(i / 99) + Math.random());
  const options = { width: 800, height: 220, series: [{}, { stroke: "#444" }], scales: { x: { time: false } } };
  const holder = document.body.appendChild(document.createElement("div"));
  const began = performance.now();
  await new Promise((ready) => new uPlot({ ...options, hooks: { ready: [ready] } }, [x, y], holder));
  await new Promise(requestAnimationFrame);
  const took = performance.now() - began;
  holder.remove();
  return took;
}"""
"""Draws a chart of `count` points; returns the time to the next frame in ms."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--empty-cache", action="store_true")
    given = parser.parse_args()
    with browser() as chromium:
        page = chromium.new_page()
        if not given.empty_cache:
            measure_all(page, given.game)
        move_on_empty_cache(page, given.game)


def measure_all(page: Any, game: str) -> None:
    with serving(game) as (address, pid):
        began = time.monotonic()
        while not ask(address, "/api/about")["ready"]:
            time.sleep(0.2)
        print(f"ready {time.monotonic() - began:.1f} s after the start")
        open_page(page, address)
        measure(address, moves_of_a_game(game, 40))
        visit(address, pid, visitors=50, seconds=60)
    with tempfile.TemporaryDirectory() as folder:
        run = run_with_lines(Path(folder) / "run", game)
        with serving(game, "--run", str(run)) as (address, _):
            open_dashboard(page, address)


@contextmanager
def serving(*arguments: str, cwd: Path | None = None, cache: str | None = None) -> Iterator[tuple[str, int]]:
    """Start a server in the directory `cwd`, with machine code in `cache`; yield its address and its process."""
    command = [sys.executable, "-m", "plyzero", "serve", *arguments, "--port", "0"]
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd, env=environment) as server:
        try:
            assert server.stdout
            yield re.search(r"http://\S+", server.stdout.readline())[0].rstrip("/"), server.pid
        finally:
            server.terminate()


@contextmanager
def browser() -> Iterator[Any]:
    """Yield Chromium, which CHROMIUM may name."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield chromium
        chromium.close()


def find_chromium() -> str | None:
    """Return the program that CHROMIUM names, or else Debian's; None if there is neither."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def open_page(page: Any, address: str) -> None:
    """Print the time until the buttons and the board appear, each time in a page without a cache."""
    usable, board = zip(*(wait_for(page, f"{address}/", "button", "svg.board") for _ in range(10)), strict=True)
    for name, times in (("page usable", usable), ("first board", board)):
        print(f"{name} in the browser: median {statistics.median(times):.2f} s, at most {max(times):.2f} s")


def wait_for(page: Any, address: str, *selectors: str) -> list[float]:
    """Open an address and return the seconds until each of the parts appeared, in this order."""
    page.goto("about:blank")
    began, times = time.monotonic(), []
    page.goto(address, wait_until="commit")
    for selector in selectors:
        page.wait_for_selector(selector)
        times.append(time.monotonic() - began)
    return times


def move_on_empty_cache(page: Any, game: str) -> None:
    """Print the time until the first position appears, and from a person's move to the bot's, for new servers."""
    positions, moves = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as cache, serving(game, cache=cache) as (address, _):
            begun = position_of(address, "")
            while begun["toPlay"] != 0:  # by dice the bot begins
                begun = position_of(address, "")
            fields = urlencode({"moves": " ".join(begun["moves"])})
            positions += wait_for(page, f"{address}/#{fields}", "#move:enabled")
            moves.append(wait_for_bot(page, address))
            page.goto("about:blank")
    for name, times in (("first position", positions), ("first move of the bot", moves)):
        print(
            f"{name} on an empty cache of machine code: median {statistics.median(times):.2f} s, "
            f"{min(times):.2f} to {max(times):.2f} s"
        )


def wait_for_bot(page: Any, address: str) -> float:
    """Play one turn on the page as the first player; return the seconds from its last move to the bot's move."""
    while (shown := shown_position(page, address))["toPlay"] == 0:
        page.locator("#move").fill(shown["legal"][0]["name"])
        began = time.monotonic()
        page.keyboard.press("Enter")
        while len(shown_position(page, address)["movers"]) <= len(shown["movers"]):
            time.sleep(0.01)
    while 1 not in shown_position(page, address)["movers"]:
        time.sleep(0.02)
    return time.monotonic() - began


def shown_position(page: Any, address: str) -> Any:
    """Return the position that the address of a page names."""
    return position_of(address, parse_qs(page.evaluate("location.hash.slice(1)")).get("moves", [""])[0])


def position_of(address: str, moves: str) -> Any:
    return ask(address, f"/api/position?{urlencode({'moves': moves})}")


def open_dashboard(page: Any, address: str) -> None:
    """Print the time for the curves of a long run, and for a chart of LINES points."""
    waits = [wait_for(page, f"{address}/run", "section.chart canvas")[0] for _ in range(5)]
    print(
        f"curves of {LINES} lines: first {waits[0]:.2f} s, then at most {max(waits[1:]):.2f} s after the page is opened"
    )
    draws = [page.evaluate(DRAW, LINES) for _ in range(10)]
    print(f"chart of {LINES} points: median {statistics.median(draws):.0f} ms, at most {max(draws):.0f} ms")


def run_with_lines(root: Path, game: str) -> Path:
    """Create a run with the metrics of a trainer that has written LINES lines."""
    run = create_run(root, find_game(game))
    path = run.metrics / "trainer-000001.jsonl"
    for step in range(LINES):
        fields = {"policy_loss": 1 + math.sin(step / 99), "value_loss": 0.5, "replay_ratio": 0.7, "seconds": step}
        append_line(path, {"step": step, "games": 9 * step, **fields})
    return root


def measure(address: str, moves: str) -> None:
    for name, path in (("page", "/"), ("position", f"/api/position?{urlencode({'moves': moves})}")):
        times = sorted(timed(lambda path=path: read(address, path)) for _ in range(20))
        print(f"{name}: median {1000 * statistics.median(times):.0f} ms, at most {1000 * times[-1]:.0f} ms")
    firsts = sorted(first_event(address) for _ in range(5))
    print(f"first event of an analysis: median {1000 * firsts[2]:.0f} ms, at most {1000 * firsts[-1]:.0f} ms")
    path = f"/api/review?{urlencode({'moves': moves, 'simulations': 256})}"
    reviews = sorted(timed(lambda: read(address, path)) for _ in range(3))
    print(
        f"review of {len(moves.split()) + 1} positions with 256 simulations: {', '.join(f'{t:.1f}' for t in reviews)} s"
    )


def visit(address: str, pid: int, *, visitors: int, seconds: float) -> None:
    """Let many visitors ask at once; print the number of answers, their time, and the server's memory."""
    times: list[float] = []
    errors: list[str] = []
    memory = [resident_mb(pid)]
    deadline = time.monotonic() + seconds

    def come(number: int) -> None:
        source = f"127.0.0.{2 + number}"  # the server bounds the searches that wait for one address
        while time.monotonic() < deadline:
            try:
                times.append(timed(lambda: read(address, "/api/position?moves=", source)))
                last = json.loads(read(address, "/api/think?simulations=16", source).decode().split("data: ")[-1])
                if "error" in last:
                    errors.append(last["error"])
            except OSError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=come, args=(number,)) for number in range(visitors)]
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


def first_event(address: str) -> float:
    began = time.monotonic()
    path = f"/api/think?{urlencode({'moves': '', 'simulations': 4096})}"
    with urllib.request.urlopen(address + path, timeout=60) as answer:
        answer.readline()
        return time.monotonic() - began


def ask(address: str, path: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(read(address, path))
    return found


def read(address: str, path: str, source: str = "") -> bytes:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=120, source_address=(source, 0))
    with closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise OSError(f"{path}: {answer.status}")
        return answer.read()


def timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


if __name__ == "__main__":
    main()
