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
from plyzero.rules.board import Board, Cell, Label, grid
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

FIGURES = grid(
    [[5, 0, 4, 6], [3, 0, 0, 3], [1, 0, 1, 0], [4, 2, 0, 5]],
    pieces=("", "0:♟", "0:♜", "1:♟", "1:♞", "0:K", "1:12"),
    style="checks",
    rows_up=True,
)


def walls() -> Board:
    """Return a board with walls of both players and of nobody between its squares."""
    apart = 1.3  # squares that are 1 wide, with room for walls between them
    cells, labels = [], []
    pieces = {"b1": "0", "b3": "1", "a1h": "#", "b1h": "#", "a2v": "0", "b3v": "1"}
    for column, letter in enumerate("abc"):
        labels.append(Label(apart * column, apart * 2 + 0.8, letter))
        for row in range(3):
            x, y, name = apart * column, apart * (2 - row), f"{letter}{row + 1}"
            cells.append(Cell(name, x, y, pieces.get(name, "")))
            if row < 2:
                cells.append(Cell(f"{name}h", x, y - apart / 2, pieces.get(f"{name}h", ""), "bar-h"))
            if column < 2:
                cells.append(Cell(f"{name}v", x + apart / 2, y, pieces.get(f"{name}v", ""), "bar-v"))
    return Board(tuple(cells), labels=tuple(labels))


def cards() -> Board:
    """Return a board with a card of each player, a button, dice and a text beside the squares."""
    squares = grid([[0, 1, 0], [0, 0, 0], [0, 2, 0]], rows_up=True)
    beside = [
        Cell("crane", 4.2, -0.1, "1:crane", "card"),
        Cell("pass", 4.2, 1, "pass", "card"),
        Cell("tiger", 4.2, 2.1, "0:tiger", "card"),
    ]
    texts = Label(4.2, 3.1, "⚅ ⚂"), Label(1, 3.8, "round 4")
    return Board((*squares.cells, *beside), labels=(*squares.labels, *texts))


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
        _write(style, board, f"a position of {name}")
    _write("figures", FIGURES, "figures, letters and numbers of both players")
    _write("walls", walls(), "walls of both players and of nobody")
    _write("cards", cards(), "cards, a button, dice and a text")


def _write(name: str, board: Board, title: str) -> None:
    (PICTURES / f"{name}.svg").write_text(render_svg(board, title=title) + "\n")


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
