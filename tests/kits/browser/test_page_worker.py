"""The worker of the page: it loads what lies beside it, answers messages, and stops a search."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from plyzero.rules.catalog import load_game
from tests.helpers.node_search import description, rules_of, run_node
from tests.helpers.shared_page import RUNTIME

DRIVER = Path(__file__).parents[2] / "helpers" / "node_worker.mjs"


def answers_of(
    messages: Sequence[Mapping[str, Any]], *, actions: int = 7, without: str = "", stop_after_progress: str = ""
) -> list[dict[str, Any]]:
    game = load_game("connect-four")
    files = {
        "game.json": json.dumps({"name": "connect-four", **description(game.start)}).encode(),
        "rules.wasm": rules_of(game),
        "model.onnx": bytes([actions]),
        "ort.wasm.min.mjs": RUNTIME,
    }
    asked = {"messages": messages, "stopAfterProgress": stop_after_progress}
    found: list[dict[str, Any]] = run_node(DRIVER, asked, {name: files[name] for name in files if name != without})
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_for_node")
class TestWorker:
    def test_it_describes_the_game_and_its_speed(self):
        (about,) = answers_of([{"id": "a", "kind": "about"}])
        assert (about["id"], about["kind"], about["game"]["name"]) == ("a", "about", "connect-four")
        assert about["simulationsPerSecond"] > 0

    def test_searches_are_answered_one_after_the_other(self):
        state = load_game("connect-four").start.state.tolist()
        searches = [{"id": n, "kind": "search", "state": state, "simulations": 100 + n} for n in range(3)]
        found = [each for each in answers_of(searches) if each["kind"] != "progress"]
        assert [each["id"] for each in found] == [0, 1, 2]
        assert all(each["kind"] == "result" and not each["isStopped"] for each in found)
        assert [each["result"]["simulations"] for each in found] == [100, 101, 102]
        assert sum(move["visits"] for move in found[0]["result"]["moves"]) == 100

    def test_a_search_that_is_stopped_ends_with_what_it_has_found(self):
        state = load_game("connect-four").start.state.tolist()
        long = {"id": "long", "kind": "search", "state": state, "simulations": 10**6}
        *progress, last, about = answers_of([long, {"id": "a", "kind": "about"}], stop_after_progress="long")
        assert {each["kind"] for each in progress} == {"progress"}
        assert (last["kind"], last["isStopped"], about["kind"]) == ("result", True, "about")
        assert progress[0]["result"]["simulations"] <= last["result"]["simulations"] < 10**6

    def test_a_win_of_a_few_plies_is_found_after_a_search_that_has_missed_it(self):
        """With 3 and 4 of the lowest row, and nothing beside them, 2 or 5 makes two threats at once."""
        start = load_game("connect-four").start
        state = reduce(lambda position, action: position.play(action), (3, 3, 2, 2), start).state.tolist()
        asked = {"kind": "search", "state": state, "simulations": 16}
        plain, solved = answers_of([{"id": 0, **asked}, {"id": 1, **asked, "shortWins": True}])
        assert plain["result"]["proven"] is None
        result = solved["result"]
        assert (result["proven"], result["plies"], result["value"]) == ("win", 3, 1)
        assert result["best"] in (1, 4)
        (best,) = [each for each in result["moves"] if each["policy"]]
        assert (best["action"], best["proven"], len(best["line"])) == (result["best"], "win", 3)

    def test_where_no_win_is_near_a_search_stays_as_it_is(self):
        state = load_game("connect-four").start.state.tolist()
        asked = {"kind": "search", "state": state, "simulations": 16}
        plain, same = answers_of([{"id": 0, **asked}, {"id": 1, **asked, "shortWins": True}])
        assert same["result"] == plain["result"]

    def test_the_time_of_a_search_is_limited(self):
        state = load_game("connect-four").start.state.tolist()
        (found,) = answers_of([{"id": 1, "kind": "search", "state": state, "simulations": 10**6, "seconds": 0.05}])
        assert (found["kind"], found["isStopped"]) == ("result", False)
        assert found["result"]["simulations"] < 10**6

    @pytest.mark.parametrize("name", ["game.json", "rules.wasm", "model.onnx"])
    def test_what_cannot_be_loaded_is_named_in_every_answer(self, name: str):
        found = answers_of([{"id": n, "kind": "about"} for n in range(2)], without=name)
        assert [(each["id"], each["kind"]) for each in found] == [(0, "error"), (1, "error")]
        assert all(name in each["message"] and "404 Not Found" in each["message"] for each in found)

    def test_a_network_of_another_game_is_refused(self):
        (found,) = answers_of([{"id": 1, "kind": "about"}], actions=9)
        assert found["message"] == "Expected a network with 7 actions, got one with 9; share the game again."

    def test_an_unknown_message_is_refused_and_the_next_one_answered(self):
        wrong, about = answers_of([{"id": 1, "kind": "play"}, {"id": 2, "kind": "about"}])
        assert (wrong["kind"], about["kind"]) == ("error", "about")
        assert "play" in wrong["message"]
