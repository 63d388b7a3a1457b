"""Reviews for the page: what they report, what they remember, and that one judge answers everything."""

import pytest

from plyzero.kits.review import measuring
from plyzero.kits.web.opponents import ANALYSIS, Opponents
from plyzero.kits.web.server import make_app
from plyzero.play.bundled_bots import find_card
from plyzero.play.clock import Clock
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from tests.helpers.runs import small_run
from tests.helpers.web import events, serving


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the scale of a game by few and short searches."""
    for name, value in {"PLAYING": 16, "SECONDS": 0.01}.items():
        monkeypatch.setattr(measuring, name, value)


@pytest.fixture(scope="module")
def address():
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game))) as found:
        yield found


@pytest.fixture(scope="module")
def race():
    """A game with dice, which has no bundled bot."""
    game = load_game("tests.helpers.dice:Race")
    with serving(make_app(game, Opponents(game))) as found:
        yield found


def test_the_scale_of_a_game_is_measured_once_and_then_the_turns_are_searched(address, monkeypatch):
    without = find_card(load_game("tic-tac-toe"))._replace(review={})
    monkeypatch.setattr(measuring, "find_card", lambda game: without)
    first, second = (events(address, "/api/review", moves="b2 a2 c3", simulations=64) for _ in range(2))
    measured = [each["measuring"] for each in first if "measuring" in each]
    assert measured == [[number, measuring.GAMES] for number in range(measuring.GAMES + 1)]
    assert not any("measuring" in each for each in second)
    made = [each["done_of"][0] for each in second[:-1]]
    assert made == sorted(made)
    assert second[-2]["done_of"][1] == 3 * 64
    assert [each.get("done") for each in first] == [*[None] * (len(first) - 1), True]
    assert second[-1] == first[-1]


def test_the_scale_on_the_card_of_a_bundled_bot_is_used():
    game = load_game("tic-tac-toe")
    with serving(make_app(game, Opponents(game))) as address:
        found = events(address, "/api/review", moves="b2 a2", simulations=64)
    assert not any("measuring" in each for each in found)
    assert found[-1]["scale"]["random"] == find_card(game).review["random"]


def test_who_has_resigned_has_lost(address):
    asked = ({}, {"resigned": 1})
    found = [events(address, "/api/review", moves="b2 a2", simulations=64, **fields)[-1] for fields in asked]
    assert [(each["winner"], bool(each["verdict"])) for each in found] == [(None, False), ("first", True)]


def test_the_end_of_a_game_is_reviewed_alone_so_that_another_move_is_judged_as_the_one_played(address):
    whole = events(address, "/api/review", moves="b2 a2", simulations=64)[-1]["turns"]
    alone = [events(address, "/api/review", moves=f"b2 {name}", since=1, simulations=64)[-1] for name in ("a2", "a1")]
    assert [len(each["turns"]) for each in alone] == [1, 1]
    assert [each["turns"][0]["lost"] for each in alone] == [whole[1]["lost"], 0.0]
    assert whole[1]["choices"] == 8


def test_a_wrong_review_is_a_sentence_before_anything_is_measured(race):
    (found,) = events(race, "/api/review", moves="step")
    assert "move 1: expected a roll" in found["error"]


def test_rolls_have_luck_and_the_same_game_has_the_same_review(race):
    moves = "one throw four step throw three"
    found, again = (events(race, "/api/review", moves=moves, simulations=64)[-1] for _ in range(2))
    assert [each["names"] for each in found["rolls"]] == [["one"], ["four"], ["three"]]
    assert found["rolls"][-1]["luck"] > 0.1  # three reaches the goal
    assert again == found  # also by pure MCTS


def test_an_analysis_finds_the_same_each_time(race):
    first, second = (events(race, "/api/think", moves="one", simulations=64)[-1] for _ in range(2))
    assert second == first
    assert first["judge"] == "The judge: pure MCTS, which knows the rules alone."


def test_the_analysis_and_the_opponent_under_a_clock_are_the_judge_whose_network_is_loaded_once(tmp_path, monkeypatch):
    loaded, load = [], Bot.of_model

    def count(path, game, **options):
        loaded.append((path.stem, options["threads"]))
        return load(path, game, **options)

    monkeypatch.setattr(Bot, "of_model", count)
    run = small_run(tmp_path / "r", "tic-tac-toe")
    opponents = Opponents(run.game, run=run.root, clock=Clock(per_move=0.01), threads=1)
    judge = opponents.judge(simulations=64)
    assert judge.about.endswith(", because the run has no model yet")
    identities = {bot.identity for bot in (judge.bot, opponents.find(ANALYSIS), opponents.find("clock"))}
    assert identities == {opponents.judge().bot.identity}
    assert loaded == [("tic-tac-toe", 0), ("tic-tac-toe", 1)]
