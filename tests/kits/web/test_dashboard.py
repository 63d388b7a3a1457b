"""The dashboard of a run that trains, and its report, in a real browser."""

import re
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.pages import make_report
from plyzero.kits.web.server import make_app
from plyzero.rules.catalog import load_game
from plyzero.run.directory import open_run
from tests.helpers.runs import small_run
from tests.helpers.web import serving, violations

pytestmark = pytest.mark.browser

CHARTS = (
    "Losses",
    "What the network has learned",
    "Replay ratio",
    "Score against fixed opponents",
    "Positions per second",
    "Time in the network",
)
"""The titles of all charts; the last two have a point once a worker has written a line, which it does when it stops."""

MINUTES = 3 * 60_000


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """Return the directory of a run that does not exist yet, and the address of its dashboard."""
    root, game = tmp_path_factory.mktemp("dashboard") / "run", load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game, run=root), run=root)) as address:
        yield root, f"{address}/run"


@pytest.fixture
def start():
    """Return a function that starts a command on a run; what still runs at the end is killed."""
    with ExitStack() as started:

        def command(root, *arguments):
            command = [sys.executable, "-m", "plyzero", *arguments, "--run", str(root)]
            process = started.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            started.callback(process.kill)
            return process

        yield command


def wait_for_row(page, process, words):
    """Wait until the table of the processes says `words` of a process."""
    row = page.locator("tr", has=page.locator("td:first-child", has_text=process)).filter(has_text=words)
    row.first.wait_for(timeout=MINUTES, state="attached")  # the ended ones are folded


def wait_for_chart(page, title):
    chart = page.locator("section.chart", has=page.locator("h2", has_text=title))
    chart.locator(".plot canvas").wait_for(timeout=MINUTES)


def number_in(page, tile):
    text = page.locator("dl.tiles div", has_text=tile).first.locator("dd").inner_text()
    return int(text.replace(",", ""))


def test_a_page_waits_for_its_run_shows_how_it_learns_and_that_a_worker_died(dashboard, start, open_page):
    root, address = dashboard
    page = open_page(address)
    page.wait_for_selector("text=is not a run directory")
    small_run(root)
    page.wait_for_selector("text=nothing is running")
    train, worker = start(root, "train", "tic-tac-toe", "--workers", "1"), start(root, "selfplay", "--name", "second")
    for title in CHARTS[:-2]:
        wait_for_chart(page, title)
    wait_for_row(page, "second", "playing")
    worker.kill()
    wait_for_row(page, "second", "gone")
    games = number_in(page, "Games")
    page.wait_for_function(
        "(games) => +document.querySelectorAll('dl.tiles dd')[1].textContent.replace(',', '') > games",
        arg=games,
        timeout=MINUTES,
    )
    train.send_signal(signal.SIGINT)
    wait_for_row(page, "trainer", "stopped")
    for title in CHARTS:
        wait_for_chart(page, title)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_charts_change_their_axis_and_nothing_stands_in_the_way(scheme, dashboard, open_page):
    page = open_page(dashboard[1], color_scheme=scheme)
    for name in ("time", "games", "step"):
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_selector(f".plot[aria-label^='Losses by {name}.'] canvas")
    page.wait_for_selector("ul.games li")
    assert violations(page) == []


def test_one_of_the_newest_games_is_replayed(dashboard, open_page):
    page = open_page(dashboard[1])
    page.locator("ul.games li a").first.click(timeout=MINUTES)
    page.wait_for_selector("svg.board .stone")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_opens_by_itself(scheme, dashboard, open_page, tmp_path):
    report = tmp_path / "report.html"
    report.write_text(make_report(open_run(dashboard[0])))
    page = open_page(report.as_uri(), color_scheme=scheme)
    for title in CHARTS:
        wait_for_chart(page, title)
    page.locator("ul.games summary").first.click()
    assert re.match("([abc][123] ?)+$", page.locator("ul.games .moves").first.inner_text())
    assert violations(page) == []
