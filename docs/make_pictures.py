"""Make the pictures of the documentation: python -m docs.make_pictures --minutes 5

Boards are drawn. Then Connect Four is trained while pictures of the dashboard, of the page and of the terminal are
taken, light and dark. It needs the extras `train`, `web` and `browser`, and Chromium, which CHROMIUM may name.
"""

import argparse
import html
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.web import browser, serving
from plyzero.rules.board_svg import render_svg
from plyzero.rules.catalog import load_game
from plyzero.rules.game import board_of
from plyzero.rules.random_game import random_game

PICTURES = Path(__file__).with_name("pictures")

BOARDS = {
    "squares": ("othello(size=6)", 14),
    "checks": ("breakthrough(size=6)", 9),
    "holes": ("connect-four", 12),
    "points": ("go(size=9)", 24),
    "hexes": ("hex(size=5)", 9),
    "dots": ("dots_and_boxes:DotsAndBoxes", 8),
}
"""Style of a board -> a game that has it, and the ply of a random game that is shown."""

GAME, RUN = "connect-four", "runs/c4"
MOVES = "4 4 4 4 3 2 5"
TERMINAL = """<!doctype html><style>
:root { color-scheme: light dark; background: light-dark(#fbfbfa, #16181d); color: light-dark(#1d2127, #dfe3e8); }
pre { display: inline-block; margin: 0; padding: 16px; font: 14px/1.35 "DejaVu Sans Mono", monospace; }
</style><pre>{}</pre>"""


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="time for which Connect Four is trained")
    minutes = parser.parse_args().minutes
    PICTURES.mkdir(exist_ok=True)
    _draw_boards()
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        command = ["train", GAME, "--run", RUN, "--minutes", f"{minutes:g}"]
        train = subprocess.Popen(
            [sys.executable, "-m", "plyzero", *command], stdout=subprocess.PIPE, text=True, cwd=folder
        )
        with serving(GAME, "--run", RUN, cwd=Path(folder)) as (address, _):
            time.sleep(max(0, 60 * minutes - 30))  # the last half minute, in which all processes still work
            take(chromium, "dashboard", lambda page: _show_dashboard(page, address), size=(1100, 900))
            take(chromium, "page", lambda page: _show_page(page, address), size=(1000, 760))
        assert train.stdout
        lines = [f"$ plyzero {' '.join(command)}", *train.stdout.read().splitlines()]
        text = TERMINAL.replace("{}", html.escape("\n".join([*lines[:14], "   ...", *lines[-7:]])))
        take(chromium, "terminal", lambda page: page.set_content(text), size=(900, 300))


def _draw_boards() -> None:
    sys.path.insert(0, str(PICTURES.parents[1] / "examples"))
    for style, (name, ply) in BOARDS.items():
        position = random_game(load_game(name).start, np.random.default_rng(0)).positions[ply]
        board = board_of(position)
        assert board is not None
        assert board.style == style
        (PICTURES / f"{style}.svg").write_text(render_svg(board, title=f"a position of {name}") + "\n")


def _show_dashboard(page: Any, address: str) -> None:
    page.goto(f"{address}/run")
    page.wait_for_selector("section.chart canvas")
    page.wait_for_selector("ul.games li", timeout=120_000)
    page.wait_for_timeout(6000)  # rates are measured over a few seconds


def _show_page(page: Any, address: str) -> None:
    page.goto(f"{address}/#first=you&second=you&moves={MOVES.replace(' ', '+')}")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(".overlay circle.heat", timeout=120_000)
    page.wait_for_timeout(6000)  # the search is complete
    page.evaluate("scrollTo(0, 0)")


def take(chromium: Any, name: str, show: Callable[[Any], None], *, size: tuple[int, int]) -> None:
    """Write what a page shows as pictures NAME-light.png and NAME-dark.png."""
    for scheme in "light", "dark":
        page = chromium.new_page(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
        show(page)
        shown = page.locator("pre").first if name == "terminal" else page
        shown.screenshot(path=PICTURES / f"{name}-{scheme}.png")
        page.close()


if __name__ == "__main__":
    main()
