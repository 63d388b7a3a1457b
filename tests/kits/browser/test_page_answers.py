"""The page of a shared game answers itself as the server of `plyzero serve` does."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.kits.web import play_api
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import move_name
from plyzero.rules.random_game import PlayedGame, random_game
from tests.helpers.node_search import run_node
from tests.helpers.shared_games import Gather
from tests.helpers.shared_page import files_of_folder

DRIVER = Path(__file__).parents[2] / "helpers" / "node_positions.mjs"
CONNECT_FOUR = "connect-four"
DICE = "tests.helpers.shared_games:Gather"
OWN_NAMES = f"{__name__}:Turned"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled_for_node")]


class Turned(Gather, version=1):
    """Player 1 counts the squares from the other end, as in backgammon, so a turn renames all of them."""

    def _square(self, square):
        return 8 - square if self.record["to_play"] else square

    def action_name(self, action):
        return super().action_name(self._square(action))

    def render(self):
        board = super().render()
        cells = [cell._replace(name=board.cells[self._square(i)].name) for i, cell in enumerate(board.cells)]
        return replace(board, cells=tuple(cells))


def answers(name: str, asked: list[dict[str, Any]], results: list[dict[str, Any]] | None = None) -> Any:
    return run_node(DRIVER, {"asked": asked, "results": results or []}, files_of_folder(name))["answers"]


def played(name: str, seed: int) -> tuple[PlayedGame, str]:
    game = random_game(load_game(name).start, np.random.default_rng(seed))
    return game, " ".join(move_name(*each) for each in zip(game.positions, game.moves, strict=False))


def question(path: str, moves: str, **fields: Any) -> dict[str, Any]:
    return {"path": path, "fields": {"moves": moves, **fields}}


@pytest.mark.parametrize("name", [CONNECT_FOUR, DICE, OWN_NAMES])
def test_every_position_of_a_game_is_described_as_the_server_does(name: str):
    _, moves = played(name, seed=3)
    places = range(1 + len(moves.split()))
    found = answers(name, [question("position", moves, at=at) for at in places])
    for at, described in zip(places, found, strict=True):
        expected = play_api.describe_position(load_game(name), moves, np.random.default_rng(), at=at)
        left_out = {"text", "territory"} | (set() if name == CONNECT_FOUR else {"scoreboard"})  # game.json has none
        assert {key: described[key] for key in described if key not in left_out} == {
            key: jsonable(value) for key, value in expected.items() if key not in left_out
        }


def jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: jsonable(each) for key, each in value.items()}
    return [jsonable(each) for each in value] if isinstance(value, list | tuple) else value


def test_dice_are_rolled_until_a_player_moves():
    (described,) = answers(DICE, [question("position", "")])
    assert (described["movers"], described["rollers"], described["at"]) == ([None], [0], 1)
    assert described["moves"][0] in ("one", "two", "three")


def test_a_move_that_is_not_legal_is_refused_with_its_place():
    (found,) = answers(CONNECT_FOUR, [question("position", "4 4 9")])
    assert found == {"error": "expected a legal move after 2 moves, got 9"}


def test_cells_that_begin_no_move_get_a_reason():
    full = " ".join("111111")
    found = answers(CONNECT_FOUR, [question("why", full, cells="1"), question("why", full, cells="x9")])
    assert [each["sentence"] for each in found] == ["1 is taken.", "No move begins at x9."]


@pytest.mark.parametrize("name", [CONNECT_FOUR, DICE, OWN_NAMES])
def test_a_preview_shows_the_pieces_that_a_move_adds(name: str):
    game, moves = played(name, seed=5)
    spec, names = load_game(name), moves.split()
    asked, expected = [], []
    for position, move, before in zip(
        game.positions, names, accumulate([[]] + [[each] for each in names]), strict=False
    ):
        if move == "pass" or (position.num_chances and move in position.roll_names):
            continue
        asked.append(question("preview", " ".join(before), name=move))
        expected.append(jsonable(play_api.pieces_added(spec, " ".join(before), move)))
    assert answers(name, asked) == expected


def test_the_end_of_a_game_cannot_be_searched():
    _, moves = played(CONNECT_FOUR, seed=0)
    (found,) = answers(CONNECT_FOUR, [{"path": "think", "fields": {"moves": moves}, "isStream": True}])
    assert found == {"error": "The game is over after these moves; there is nothing to search."}


def test_levels_are_those_of_the_card_and_the_usual_one_moves_within_two_seconds():
    about = answers(CONNECT_FOUR, [{"path": "about", "fields": {}}] * 2)
    assert [each["ready"] for each in about] == [False, True]
    levels = [each for each in about[1]["players"] if each["id"].startswith("level:")]
    assert len(levels) == 9
    assert about[1]["opponent"] == "level:9"
    assert "in this browser" in levels[-1]["strength"]
    assert about[1]["newest"] is None


@pytest.mark.parametrize(
    ("speed", "usual", "last"), [(100, "level:8", "level:9"), (20, "level:7", "level:8"), (1, "level:6", "level:6")]
)
def test_a_slow_browser_gets_a_weaker_opponent_and_no_level_that_takes_more_than_ten_seconds(speed, usual, last):
    about: dict[str, Any] = {"path": "about", "fields": {}}
    files = files_of_folder(CONNECT_FOUR)
    found = run_node(DRIVER, {"asked": [about, about], "speed": speed}, files)["answers"][1]
    assert found["opponent"] == usual
    assert [each["id"] for each in found["players"]][-2:] == [last, "random"]


@pytest.mark.parametrize(
    ("failure", "reason"), [("TypeError: no.", "TypeError: no"), ("No", "No"), ("", "its worker cannot be loaded")]
)
def test_a_bot_that_cannot_be_loaded_is_one_sentence(failure: str, reason: str):
    asked = [{"path": "about", "fields": {}}] * 2
    first, second = run_node(DRIVER, {"asked": asked, "failure": failure}, files_of_folder(CONNECT_FOUR))["answers"]
    assert not first["ready"]
    assert second == {"error": f"The bot cannot run in this browser: {reason}."}


def test_a_network_without_levels_has_those_of_its_simulations():
    about = answers(DICE, [{"path": "about", "fields": {}}] * 2)[1]
    assert [each["id"] for each in about["players"]] == ["net:0", "net:16", "net:64", "net:256", "net:1024", "random"]
    assert about["opponent"] == "net:256"


def result_of(moves: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    of_move = {"proven": None, "plies": None, "points": None, "prior": 0.5, "policy": 0.5}
    of_all = {"proven": None, "plies": None, "points": None, "networkValue": 0, "simulations": 4, "best": 3}
    return {"value": 0.2, "draw": 0.1, **of_all, "moves": [{**of_move, **each} for each in moves], **fields}


def test_what_a_search_has_found_has_names_lines_and_the_choice():
    result = result_of(
        [{"action": 2, "visits": 3, "q": 0.1, "line": [2, 3]}, {"action": 3, "visits": 1, "q": 0.5, "line": [3]}]
    )
    (found,) = answers(CONNECT_FOUR, [{"path": "think", "fields": {"moves": "4"}, "isStream": True}], [result])
    assert [each["move"] for each in found["moveInfos"]] == ["4", "3"]
    assert found["moveInfos"][1]["pv"] == ["3", "4"]
    assert [each["by"] for each in found["moveInfos"][1]["line"]] == [1, 0]
    assert (found["rootInfo"]["winrate"], found["rootInfo"]["currentPlayer"]) == (0.6, 1)
    assert (found["choice"], found["done"], found["hopeless"]) == ("4", True, False)


def test_a_bot_offers_to_resign_where_the_position_and_its_best_move_are_hopeless():
    moves = [{"action": 3, "visits": 4, "q": -0.95, "line": [3]}]
    asked = {"path": "think", "fields": {"moves": "4", "player": "level:9"}, "isStream": True}
    found = answers(CONNECT_FOUR, [asked, asked], [result_of(moves, value=-0.95), result_of(moves, value=0)])
    assert [each["hopeless"] for each in found] == [True, False]


def test_a_review_names_the_turn_that_lost_the_game():
    """The last move of the loser lets a won game be lost: a search has proven both."""
    names = ["1", "7", "1", "7", "1", "6", "7", "6"]
    plain = [result_of([{"action": int(name) - 1, "visits": 4, "q": 0.0, "line": [int(name) - 1]}], best=int(name) - 1)
             for name in names]  # fmt: skip
    won = [{"action": 0, "visits": 4, "q": 1, "line": [0], "proven": "win", "plies": 1, "policy": 1},
           {"action": 6, "visits": 1, "q": 0, "line": [6], "policy": 0}]  # fmt: skip
    plain[6] = result_of(won, best=0, value=1, proven="win", plies=1)
    asked = {"path": "review", "fields": {"moves": " ".join(names), "simulations": 64, "resigned": 0}, "isStream": True}
    last = result_of([{"action": 3, "visits": 4, "q": 0.0, "line": [3]}])
    confirmed = [result_of([{"action": 3, "visits": 4, "q": 0.0, "line": [3]}])] * 12
    (found,) = answers(CONNECT_FOUR, [asked], [*plain, last, *confirmed])
    assert found["winner"] == "second"
    [worst] = [each for each in found["turns"] if each["mistake"] == "blunder"]
    assert (worst["ply"], worst["moves"], worst["best"]) == (6, ["7"], ["1"])
    assert found["players"][0]["largest"] == [6]
    assert worst["line"][0]["name"] == "1"
    assert "The first player has lost" in found["verdict"]
    assert len(found["plies"]) == 9


def test_the_ends_of_random_games_are_shown_with_their_numbers():
    (found,) = answers(CONNECT_FOUR, [{"path": "ends", "fields": {}}])
    assert found["firstMoves"] == ["First moves (7): 1 2 3 4 5 6 7"]
    assert {each["caption"][0] for each in found["ends"]} >= {"player 0 won", "player 1 won"}
    assert all('class="board holes"' in each["svg"] for each in found["ends"])


def test_a_newer_model_is_offered_and_the_newest_one_loaded_once_it_is_asked_for():
    """A third model has come when the second one, which was offered, is asked for."""
    old, new, newest = ({"version": each, "bot": each, "step": step, "isWatched": True}
                        for each, step in (("old", 100), ("new", 200), ("newest", 300)))  # fmt: skip
    about: dict[str, Any] = {"path": "about", "fields": {}}
    searches = [{"path": "think", "fields": {"moves": "", "step": step}, "isStream": True} for step in ("100", "200")]
    review = {"path": "review", "fields": {"moves": "4", "step": "200", "resigned": 1}, "isStream": True}
    results = [result_of([{"action": 3, "visits": 4, "q": 0.0, "line": [3]}])] * 20
    asked = {
        "asked": [about, about, *searches, review, about],
        "models": [old, new, newest, newest],
        "results": results,
    }
    found = run_node(DRIVER, asked, files_of_folder(CONNECT_FOUR))
    first, later, before, after, reviewed, last = found["answers"]
    assert (first["newest"], later["newest"], last["newest"]) == (100, 200, 300)
    assert (first["steps"], later["steps"], last["steps"]) == (["100", "100"], ["100", "200"], ["300", "300"])
    assert found["started"] == ["#old", "end", "#newest"]
    judges = [answer["judge"].partition(",")[0] for answer in (before, after, reviewed)]
    assert judges == ["The judge: old", "The judge: newest", "The judge: newest"]
