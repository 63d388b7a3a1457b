"""A recorded game as one HTML file, in a real browser and without one."""

import json
import re

import pytest

from tests.helpers.cli import plyzero

MOVES = ["4", "4", "3", "3", "5", "5", "2"]
VALUES = [0.1, -0.2, 0.4, -0.5, 0.6, -0.9, 1.0]
RECORD = {"version": 1, "id": "00000000000000aa", "moves": MOVES, "winner": "first", "end": "rule", "opening_plies": 1}


@pytest.fixture(scope="module")
def game_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "games.jsonl").write_text(json.dumps({**RECORD, "values": VALUES}) + "\n")
    done = plyzero("render", "connect-four", str(folder / "games.jsonl"), "-o", str(folder / "game.html"))
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "game.html"


def test_the_page_holds_every_position_and_the_recorded_scores_of_the_first_player(game_page):
    text = game_page.read_text()
    (found,) = re.findall(r"<script>\nwindow\.PLYZERO_REPORT = (.*);\n</script>", text)
    data = json.loads(found)
    assert data["result"] == "The first player won."
    assert [frame["move"] for frame in data["frames"]] == ["", *MOVES]
    assert [frame["score"] for frame in data["frames"]] == [None, 0.6, 0.7, 0.75, 0.8, 0.95, 1.0, 1.0]
    sizes = [len(frame["parts"]) for frame in data["frames"]]
    assert sizes[1:] == [1] + [2] * 6  # the new stone, and the one that is not the last any more
    assert sizes[0] == data["frames"][0]["size"] > 42


def test_the_page_loads_nothing(game_page):
    text = game_page.read_text()
    outside = re.sub(r"<script.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
    assert "default-src 'none'" in outside
    assert re.findall(r'(?:src|href)="(?!data:)', outside) == []
    assert '"/static/' not in text


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_game_is_walked_through_by_keys_and_clicks(scheme, game_page, open_page):
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(game_page.as_uri(), color_scheme=scheme)
    stones = page.locator("svg.board .stone")

    def shows(count):
        page.wait_for_function("(n) => document.querySelectorAll('svg.board .stone').length === n", arg=count)

    shows(7)
    assert "The first player won." in page.locator("p[role=status]").inner_text()
    page.keyboard.press("Home")
    shows(0)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shows(2)
    assert page.locator("p[role=status]").inner_text() == "Move 2 by the second player: 4."
    page.get_by_role("button", name="Move 5, 5").click()
    shows(5)
    page.get_by_role("button", name="One move back").click()
    shows(4)
    page.locator("svg.graph").click(position={"x": 1, "y": 20})
    shows(0)
    assert stones.count() == 0
    found = axe_playwright.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
