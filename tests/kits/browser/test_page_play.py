"""The page of a shared game in a real browser: under a path of a plain file server, and without a network."""

import base64
import hashlib
import json
import posixpath
import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plyzero.kits.browser.page_files import page_files
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import parse_move
from tests.helpers.play_page import (
    PHONE,
    WINDOW,
    by_keyboard,
    by_mouse,
    by_touch,
    hash_fields,
    wait_for_moves,
    wait_for_status,
)
from tests.helpers.shared_page import MODEL, files_of_folder, serving_files, write_files
from tests.helpers.web import violations

DICE = "tests.helpers.shared_games:Gather"


def test_the_page_names_all_modules_that_it_imports_so_that_they_come_together():
    files = page_files()
    named = re.findall(rb'rel="modulepreload" href="(.*?)"', files["index.html"])
    assert sorted(each.decode() for each in named) == sorted(imported(files, "static/play.js"))


def test_every_file_of_the_page_is_there_that_is_named_in_it():
    files = page_files()
    made = {"board.css", "ort.wasm.min.mjs"}
    named = {each.decode() for each in re.findall(rb'(?:src|href)="(.*?)"', files["index.html"])}
    assert named | imported(files, "worker.js") <= set(files) | made


def imported(files: dict[str, bytes], name: str) -> set[str]:
    """Return the modules that a module imports, and those that these import."""
    found: set[str] = set()
    for file in re.findall(r'\bfrom ?"(\..*?)";', files.get(name, b"").decode()):
        each = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
        if each not in found:
            found |= {each} | imported(files, each)
    return found


def test_the_only_script_in_the_page_is_that_which_its_policy_names():
    text = page_files()["index.html"].decode()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}';" in policy[1]


@pytest.fixture(scope="session")
def folder(tmp_path_factory, compiled_for_node):
    """Return a function that returns the folder of a shared game, which is made once."""

    @cache
    def made(name: str) -> Path:
        path: Path = tmp_path_factory.mktemp("shared") / "some" / "path"
        write_files(path, files_of_folder(name))
        return path

    return made


@pytest.fixture
def shared(folder, open_page, tmp_path):
    """Return a function that opens the page of a game, served under a path; `fields` stand behind # in the address."""
    with serving_files(tmp_path) as address:

        def opened(name: str, fields: str, *, model: Mapping[str, Any] = MODEL, **options):
            place = tmp_path / "some" / "path"
            shutil.copytree(folder(name), place)
            (place / "model.json").write_text(json.dumps(model))
            return open_page(f"{address}/some/path/#{fields}", **options)

        yield opened


def play_on(page, name, click):
    """Play the first move that is legal, for both sides, until the game is over. Return the moves."""
    position = load_game(name).start
    moves: list[str] = []
    while position.outcome() is None:
        wait_for_moves(page, len(moves))
        action = int(position.legal_actions()[len(moves) % len(position.legal_actions())])
        moves.append(position.action_name(action))
        click(page, moves[-1])
        position = position.play(action)
    wait_for_moves(page, len(moves))
    return moves, position


BOTH = "moves=&first=you&second=you"


@pytest.mark.browser
@pytest.mark.parametrize("click", [by_mouse, by_keyboard])
def test_a_whole_game_is_played_by_clicks_or_by_keys(shared, click):
    page = shared("connect-four", BOTH, **WINDOW)
    moves, end = play_on(page, "connect-four", click)
    winner = ["Red has won", "Yellow has won"][end.outcome().winner]
    wait_for_status(page, winner)
    assert hash_fields(page)["moves"] == [" ".join(moves)]


@pytest.mark.browser
def test_the_bot_answers_and_a_hint_an_analysis_and_a_review_are_found(shared):
    page = shared("connect-four", "moves=&first=you&second=level:8", **WINDOW)
    by_mouse(page, "4")
    wait_for_moves(page, 2)
    wait_for_status(page, "The bundled bot plays")
    page.get_by_role("button", name="Hint").click()
    wait_for_status(page, "Hint: ")
    page.get_by_label("Simulations", exact=True).select_option("16")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("16 of 16 simulations").wait_for()
    assert "The search plays" in page.get_by_label("Analysis").inner_text()
    page.get_by_role("button", name="Undo").click()
    wait_for_moves(page, 0)
    page.goto(f"{page.url.partition('#')[0]}#moves=1+2+1+2+1+2+1&first=you&second=you")
    wait_for_status(page, "Red has won")
    page.get_by_role("button", name="Review the game").click()
    page.get_by_text("Accuracy:").wait_for()
    assert "Yellow has lost" in page.get_by_label("Game", exact=True).inner_text()


@pytest.mark.browser
def test_a_move_that_is_taken_back_leaves_nothing_picked(shared):
    page = shared("breakthrough", BOTH, **WINDOW)
    by_mouse(page, "b2")
    page.locator(".picked").wait_for()
    by_mouse(page, "b3")
    wait_for_moves(page, 1)
    page.get_by_role("button", name="Undo").click()
    wait_for_moves(page, 0)
    assert page.locator(".picked").count() == 0


@pytest.mark.browser
def test_dice_are_rolled_and_the_points_are_named(shared):
    page = shared(DICE, BOTH, **WINDOW)
    position = load_game(DICE).start
    for count in range(1, 18, 2):
        wait_for_moves(page, count)
        names = hash_fields(page)["moves"][0].split()
        position = position.play_unchecked(parse_move(position, names[-1]))
        cell = position.action_name(int(position.legal_actions()[0])).partition("=")[0]
        by_mouse(page, cell)
        wait_for_moves(page, min(18, count + 2))
        position = position.play(int(position.legal_actions()[0]))
    outcome = position.outcome()
    assert outcome
    wait_for_status(page, f"has won by {outcome.score:g} point" if outcome.winner is not None else "drawn")


@pytest.mark.browser
def test_the_page_works_on_a_phone_and_for_people_who_cannot_see(shared):
    page = shared("connect-four", "moves=&first=you&second=level:1", **PHONE)
    wait_for_status(page, "It is your move")
    by_touch(page, "4")
    wait_for_moves(page, 2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


@pytest.mark.browser
def test_after_the_first_visit_the_page_works_without_a_network(shared):
    page = shared("connect-four", "moves=4&first=you&second=level:8", **WINDOW)
    wait_for_status(page, "The bundled bot plays|It is your move")
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    page.context.set_offline(True)
    page.reload()
    wait_for_status(page, "It is your move")
    by_mouse(page, "4")
    wait_for_moves(page, 4)


@pytest.mark.browser
def test_the_page_says_which_step_of_training_plays(shared):
    page = shared("connect-four", "moves=&first=you&second=level:8&step=50", model={**MODEL, "step": 100}, **WINDOW)
    page.get_by_text("model of step 100").wait_for()
    page.wait_for_function("() => new URLSearchParams(location.hash.slice(1)).get('step') === '100'")


@pytest.mark.browser
def test_a_page_that_is_opened_as_a_file_says_what_to_do(folder, browser):
    page = browser.new_page()
    page.goto((folder("connect-four") / "index.html").as_uri())
    assert "opened as a file" in page.locator("#file").inner_text()
    assert "http.server" in page.locator("body").inner_text()
    page.close()
