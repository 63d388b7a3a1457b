"""The dashboard and a recorded game as one file: everything is inside, and no text can break out of its place."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from plyzero import Bot
from plyzero.kits.engines.game_record import frames_of, from_moves
from plyzero.kits.review.reviewing import review
from plyzero.kits.review.scale import Scale
from plyzero.kits.review.tables import ReviewedGame
from plyzero.kits.review.values import Valuer
from plyzero.kits.web.pages import PAGE, inlined, make_page, make_report
from plyzero.play.session import SIDES
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run
from plyzero.run.metrics import append_line
from tests.helpers.cli import refused, shown
from tests.helpers.runs import play_segment, small_run
from tests.helpers.web import violations

BREAKS_OUT = "</script><script>document.title='broken'</script><!--<script>"

MOVES = ["4", "4", "3", "3", "5", "5", "2"]
VALUES = [0.1, -0.2, 0.4, -0.5, 0.6, -0.9, 1.0]
RECORD = {"version": 1, "id": "00000000000000aa", "moves": MOVES, "winner": "first", "end": "rule", "opening_plies": 1}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = small_run(tmp_path / "r")
    play_segment(run, full=20)
    model = "000001-000000010-0123abcd.onnx"
    line = {"step": 10, "games": 5, "policy_loss": 0.5, "warning": BREAKS_OUT, "model": model}
    append_line(run.metrics / "trainer-000001.jsonl", line)
    append_line(run.metrics / "rating.jsonl", {"model": model, "scores": {BREAKS_OUT: [1, 2, 3], "\u2028": [1, 0, 0]}})
    return run


@pytest.fixture(scope="module")
def game_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "games.jsonl").write_text(json.dumps({**RECORD, "values": VALUES}) + "\n")
    shown("render", "connect-four", str(folder / "games.jsonl"), "-o", str(folder / "game.html"))
    return folder / "game.html"


def data_of(page: str) -> dict:
    (found,) = re.findall(r"<script>\nwindow\.PLYZERO_REPORT = (.*);\n</script>", page)
    return json.loads(found)


def test_a_report_holds_the_state_the_curves_and_the_games(run: Run):
    data = data_of(make_report(run))
    assert data["state"]["game"] == "tic-tac-toe v1"
    assert data["series"]["learning"]["step"] == [10]
    assert len(data["games"]["games"]) > 3
    assert data["made"] > 1e9


def test_a_page_loads_nothing(run: Run, game_page: Path):
    for page, start in (make_report(run), "run.js"), (game_page.read_text(), "game.js"):
        outside = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
        assert re.findall(r'(?:src|href)="(?!data:)', outside) == []
        assert "default-src 'none'" in outside
        assert '"/static/' not in page
        assert not re.search(r'\bfrom ?"', page)
        assert page.count("<script") == page.count("</script>")
        imported = re.findall(r'^import .* from "./(.*?)";$', (PAGE / start).read_text(), re.MULTILINE)
        assert {*re.findall(r'^modules\["(.*?)"\] = ', page, re.MULTILINE)} >= {start, *imported} > {start}


def test_a_page_runs_only_the_scripts_that_it_was_written_with(run: Run, game_page: Path):
    for page in make_report(run), game_page.read_text():
        (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="(.*?)">', page)
        allowed = dict(each.split(" ", 1) for each in policy.split("; "))
        assert "unsafe" not in policy
        for tag in ("script", "style"):
            texts = re.findall(rf"<{tag}(?: .*?)?>(.*?)</{tag}>", page, re.DOTALL)
            digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
            assert allowed[f"{tag}-src"].split() == [f"'sha256-{digest}'" for digest in digests]


def test_text_of_a_run_stays_in_its_script(run: Run):
    page = make_report(run)
    assert BREAKS_OUT not in page
    assert "<!--" not in page
    assert BREAKS_OUT in data_of(page)["series"]["ratings"]
    assert page.count("</script>") == inlined("run.html", {}).count("</script>")


def test_the_command_writes_the_file_and_replaces_it(run: Run, tmp_path: Path):
    out = tmp_path / "run.html"
    for _ in range(2):
        assert re.fullmatch(rf"{out}: \d+ kB\n", shown("report", "--run", str(run.root), "-o", str(out)))
    assert data_of(out.read_text())["state"]["run"] == str(run.root)


@pytest.mark.parametrize(
    ("run_name", "out", "sentence"),
    [
        ("none", "x.html", "is not a run directory: it has no run.toml"),
        ("r", ".", "expected -o FILE in a directory that exists, such as report.html, got "),
        ("r", "r/run.toml/x.html", "expected -o FILE in a directory that exists"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(run: Run, tmp_path: Path, run_name: str, out: str, sentence: str):
    assert sentence in refused("report", "--run", str(tmp_path / run_name), "-o", str(tmp_path / out))


def test_a_game_holds_every_position_and_the_first_players_scores(game_page):
    data = data_of(game_page.read_text())
    assert data["result"] == "Red won."
    assert [frame["move"] for frame in data["frames"]] == ["", *MOVES]
    assert [frame["score"] for frame in data["frames"]] == [None, 0.6, 0.7, 0.75, 0.8, 0.95, 1.0, 1.0]
    sizes = [len(frame["parts"]) for frame in data["frames"]]
    assert sizes[1:] == [1] + [2] * 6  # the new stone, and the one that is not the last any more
    assert sizes[0] == data["frames"][0]["size"] > 42


def reviewed_page(folder: Path) -> Path:
    """Write a page of a game with dice and its review by a judge whose scale is known."""
    record = from_moves(load_game("tests.helpers.dice:Race"), "one throw four step throw three")
    valuer = Valuer(Bot.pure_mcts(load_game("tests.helpers.dice:Race"), np.random.default_rng(0), simulations=64))
    scale = Scale("score", spread=0.5, margins={64: 0.05}, random=60.0, bot=90.0)
    found = ReviewedGame(1, SIDES, record, review(valuer, scale, record, 64)).describe("The judge: a test.")
    page = make_page(frames_of(record), "race", "the first player won", review=found)
    (folder / "game.html").write_text(page)
    return folder / "game.html"


@pytest.mark.browser
def test_a_page_of_a_game_shows_its_review_and_what_each_roll_gave(tmp_path, open_page):
    page = open_page(reviewed_page(tmp_path).as_uri(), viewport={"width": 400, "height": 800})
    page.wait_for_selector("text=Accuracy: the first player")
    game = page.get_by_role("region", name="Game").inner_text()
    assert "random play has 60 %, the bot 90 % in this game." in game
    assert "The judge: a test." in game
    assert re.search(r"The first player: luck \+\d+, play (0|-\d+) percentage points\.", game)
    assert [each[0] for each in page.locator("li.rolled small").all_inner_texts()][-1] == "+"
    page.get_by_role("button", name="Move 1, throw").click()
    page.get_by_text("Move 1 by the first player: throw. Rolled: four.").wait_for()
    assert page.get_by_role("button", name="Retry").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


@pytest.mark.browser
def test_on_a_phone_the_board_of_a_page_stays_in_view_to_its_last_line(game_page, open_page):
    page = open_page(game_page.as_uri(), viewport={"width": 390, "height": 500})
    last = page.locator("[aria-label=Game] > *").last
    last.scroll_into_view_if_needed()
    board, line = page.locator("svg.board").first.bounding_box(), last.bounding_box()
    assert board["y"] >= 0
    assert board["y"] + board["height"] <= 500 / 2
    assert line["y"] >= board["y"] + board["height"]
    assert page.evaluate("scrollY") > 60  # where the board was
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_game_is_walked_through_by_keys_and_clicks(scheme, game_page, open_page):
    page = open_page(game_page.as_uri(), color_scheme=scheme)

    def shows(count):
        page.wait_for_function("(n) => document.querySelectorAll('svg.board .stone').length === n", arg=count)

    shows(7)
    assert "Red won." in page.locator("p[role=status]").inner_text()
    page.keyboard.press("Home")
    shows(0)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shows(2)
    assert page.locator("p[role=status]").inner_text() == "Move 2 by Yellow: 4."
    page.get_by_role("button", name="Move 5, 5").click()
    shows(5)
    page.get_by_role("button", name="One move back").click()
    shows(4)
    page.locator("svg.graph").click(position={"x": 1, "y": 20})
    shows(0)
    assert violations(page) == []
