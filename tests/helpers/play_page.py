"""The page on which a game is played, as tests use it in a browser."""

import itertools
from urllib.parse import parse_qs, urlsplit

import numpy as np

from plyzero.rules.catalog import load_game
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import random_game

WINDOW = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def wait_for_status(page, words):
    page.wait_for_function(
        "(words) => RegExp(words).test(document.querySelector('p[role=status]')?.textContent ?? '')", arg=words
    )


def status_of(page):
    return page.locator("p[role=status]").inner_text().strip()


def of_all(page, selector, function):
    """Return `function` of all elements, found and asked in one step: the page may replace them at any time."""
    return page.evaluate(f"(selector) => ({function})([...document.querySelectorAll(selector)])", selector)


def saved(page, path, *, button="Save"):
    """Press a button that saves the game, and return what is in the file."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    download.value.save_as(path)
    return path.read_text()


def wait_for_moves(page, count, *, shown=True):
    """Wait until the address has so many moves and, if they are to be `shown`, the board those too."""
    page.wait_for_function(
        """([count, shown]) =>
          (new URLSearchParams(location.hash.slice(1)).get("moves").match(/[^ ]+/g) ?? []).length === count
          && (!shown || document.querySelector("[aria-label=Board]")?.ariaBusy === "false")""",
        arg=[count, shown],
    )


def by_mouse(page, cell):
    page.locator(f'[data-cell="{cell}" i]').last.click(force=True)


def by_touch(page, cell):
    page.locator(f'[data-cell="{cell}" i]').last.tap(force=True)


def resign(page):
    """Resign: the second click confirms it."""
    page.get_by_role("button", name="Resign", exact=True).click()
    page.get_by_role("button", name="Yes, resign").click()


def hash_fields(page):
    return parse_qs(urlsplit(page.url).fragment)


def by_keyboard(page, cell):
    """Walk to a cell with the arrow keys and press Enter."""
    page.evaluate("document.querySelector('svg.board [tabindex=\"0\"]').focus()")
    for _ in range(80):
        where = page.evaluate(
            """(cell) => {
              const centre = (each) => { const b = each.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2]; };
              const here = document.activeElement;
              if (here.dataset.cell.toLowerCase() === cell.toLowerCase()) return "there";
              const all = [...document.querySelectorAll(`svg.board [data-cell]`)];
              const goals = all.filter((each) => each.dataset.cell.toLowerCase() === cell.toLowerCase()).map(centre);
              const [x, y] = centre(here);
              const far = ([a, b]) => Math.abs(a - x) + Math.abs(b - y);
              const [gx, gy] = goals.sort((a, b) => far(a) - far(b))[0];
              return [gx - x, gy - y];
            }""",
            cell,
        )
        if where == "there":
            return page.keyboard.press("Enter")
        dx, dy = where
        horizontal = abs(dx) > abs(dy)
        page.keyboard.press(
            ("ArrowRight" if dx > 0 else "ArrowLeft") if horizontal else ("ArrowDown" if dy > 0 else "ArrowUp")
        )
    raise AssertionError(f"{cell} cannot be reached with the arrow keys")


def moves_before_a_pass():
    """Return the moves of a random game up to where passing is the only move."""
    start = load_game("othello(size=6)").start
    games = (random_game(start, np.random.default_rng(seed)) for seed in itertools.count())
    found = (action_names(start, tuple(game.moves)) for game in games)
    names = next(names for names in found if "pass" in names)
    return names[: names.index("pass")]
