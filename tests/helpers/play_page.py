"""The page on which a game is played, as tests use it in a browser."""

from urllib.parse import parse_qs, urlsplit

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def wait_for_status(page, words):
    page.wait_for_function(
        "(words) => RegExp(words).test(document.querySelector('p[role=status]')?.textContent ?? '')", arg=words
    )


def status_of(page):
    return page.locator("p[role=status]").inner_text().strip()


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
          && !(shown && document.querySelector("[aria-label=Board]").ariaBusy === "true")""",
        arg=[count, shown],
    )


def by_mouse(page, cell):
    page.locator(f'[data-cell="{cell}" i]').last.click(force=True)


def by_touch(page, cell):
    page.locator(f'[data-cell="{cell}" i]').last.tap(force=True)


def hash_fields(page):
    return parse_qs(urlsplit(page.url).fragment)
