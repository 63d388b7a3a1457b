"""A real browser. A page fails its test if it logs an error, or asks for anything from elsewhere."""

from urllib.parse import urlsplit

import pytest

from benchmarks.web import find_chromium

SECONDS = 60
"""Time that a page may take for one step, on a loaded machine."""


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install -e '.[browser]'")
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium; install Debian's chromium, or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address in a new page; at the end no page may have gone wrong.

    refusals: the server may refuse what is asked, which browsers log as an error.
    """
    problems: list[str] = []
    contexts = []

    def open_at(address: str, *, refusals: bool = False, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)

        def hear(message):
            refused = refusals and "the server responded with a status of 400" in message.text
            if message.type == "error" and not refused:
                problems.append(message.text)

        page.on("console", hear)
        page.on("pageerror", lambda error: problems.append(str(error)))
        host = urlsplit(address).netloc

        def check(route):
            if urlsplit(route.request.url).netloc not in (host, ""):
                problems.append(f"asks for {route.request.url}")
            route.continue_()

        page.route("**/*", check)
        page.goto(address)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert problems == []
