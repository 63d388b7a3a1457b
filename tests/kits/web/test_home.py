"""The first page without a game: all games, the runs of a folder, and a page for each."""

import errno

import pytest

from plyzero.kits.web.home import list_runs
from plyzero.kits.web.server import make_home
from plyzero.rules.catalog import installed_games, load_game
from plyzero.run.directory import create_run
from plyzero.run.metrics import append_line
from tests.helpers.hostile import failing
from tests.helpers.web import get, serving, violations


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    create_run(folder / "runs" / "my run", load_game("tic-tac-toe"))
    create_run(folder / "other", load_game("connect-four"))
    (folder / "runs" / "broken").mkdir()
    (folder / "runs" / "broken" / "run.toml").write_text("no TOML")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    with serving(make_home(folder)) as found:
        yield found


def test_runs_are_found_in_the_folder_and_in_runs(folder):
    assert list(list_runs(folder)) == ["other", "broken", "my run"]


def test_an_error_of_the_volume_is_a_sentence_on_every_page(address, monkeypatch):
    monkeypatch.setattr("plyzero.kits.web.server.home_page", failing(errno.EHOSTDOWN))
    assert get(address, "/") == (503, {"error": "the volume cannot be used at the moment: Host is down"})


@pytest.mark.browser
def test_all_games_and_runs_are_shown_and_each_opens_its_page(address, open_page):
    page = open_page(address)
    assert page.locator(".shelf").first.locator("li").count() == len(installed_games())
    assert "Opponent: the bundled bot, level 9 of 9: " in page.locator("main").inner_text()
    assert "mcts:" not in page.locator("main").inner_text()
    assert "is not valid TOML" in page.locator("li", has_text="broken").inner_text()
    page.get_by_role("link", name="my run").click()
    page.wait_for_selector("svg.board")
    page.get_by_role("link", name="The run").click()
    page.wait_for_selector("text=Run of tic-tac-toe v1")
    page.get_by_role("link", name="Play").click()
    page.wait_for_selector("svg.board")
    page.get_by_role("link", name="All games").click()
    page.get_by_role("link", name="connect-four", exact=True).click()
    page.wait_for_selector("svg.board.holes")
    page.locator("summary", has_text="Rules").click()
    assert "Who has four in a row first wins" in page.locator(".rules").inner_text()
    page.locator(".rules figure svg.board").first.wait_for()
    assert "First moves (7): 1 2 3 4 5 6 7" in page.locator(".rules").inner_text()
    captions = page.locator(".rules figcaption").all_inner_texts()
    assert {text.splitlines()[0] for text in captions} == {"Red won", "Yellow won"}
    assert violations(page) == []


@pytest.mark.browser
def test_the_curves_of_two_runs_are_compared(folder, address, open_page):
    for number, name in enumerate(("runs/one", "runs/two")):
        run = create_run(folder / name, load_game("tic-tac-toe"))
        for step in (100 + 50 * number, 200):
            losses = {"policy_loss": 1.0 - number / 4, "value_loss": 0.5}
            append_line(run.metrics / "trainer-000001.jsonl", {"step": step, "games": step, "model": "", **losses})
    page = open_page(f"{address}/run/one/run")
    page.get_by_label("Compare with").select_option("two")
    legend = page.locator("section.chart", has=page.locator("h2", has_text="Losses")).locator("tbody tr")
    legend.filter(has_text="two: policy").wait_for()
    assert legend.all_inner_texts() == ["policy\t1.000", "value\t0.500", "two: policy\t0.750", "two: value\t0.500"]
    assert violations(page) == []
    page.get_by_label("Compare with").select_option("no other run")
    page.wait_for_function("() => !document.body.innerText.includes('two: policy')")


def test_a_page_below_the_first_one_is_guarded_like_any_other(address):
    assert get(address, "/game/tic-tac-toe/api/about")[1]["hasHome"] is True
    other = {"sec-fetch-site": "cross-site"}
    assert get(address, "/game/tic-tac-toe/api/about", headers=other)[0] == 403
    assert get(address, "/run/other/api/position")[1]["colours"] == ["red", "yellow"]


@pytest.mark.parametrize("path", ["/game/shogi/api/about", "/run/none/api/about", "/run/broken/api/about", "/x/y/"])
def test_what_is_not_there_is_one_sentence(path, address):
    status, found = get(address, path)
    assert status == 400
    assert "there is no" in found["error"] or "is not valid TOML" in found["error"]


def test_every_included_game_has_its_rules_as_text():
    for name in installed_games():
        game = load_game(name)
        if type(game.start).__module__.startswith("games."):
            assert len(game.start.rules_text) > 60, name
