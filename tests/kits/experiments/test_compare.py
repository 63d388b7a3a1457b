"""The task compare: a ladder of the bots that exist and of the opponents, which can be continued."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.arena import pair_player
from plyzero.kits.experiments.tasks.compare import compare
from plyzero.rules.catalog import GameSpec
from tests.helpers.experiments import plant_bot, rows_of

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch):
    """In place of the worker processes."""

    @contextmanager
    def processes(number: int, game: GameSpec, entrants: Sequence[Any], **settings: Any) -> Iterator[SimpleNamespace]:
        player = pair_player.PairPlayer(game, entrants, **settings)
        yield SimpleNamespace(play=lambda pairs: ((pair, player.play(pair)) for pair in pairs))

    monkeypatch.setattr(pair_player, "Processes", processes)


def run_task(runs: str, opponents: str = "random", games: int = 4, **options: Any) -> list[str]:
    said: list[str] = []
    given = {"game": "tic-tac-toe", "simulations": 2, "seed": 1, "games": games, **options}
    players = {"runs": runs.split(), "opponents": opponents.split()}
    compare(Path(), Path("ladder"), report=said.append, **players, **given)
    return said


@pytest.mark.usefixtures("in_this_process")
def test_the_bots_that_exist_and_the_opponents_play_so_many_games_each():
    plant_bot("run-00")
    said = run_task("run-00 run-01", "random greedy")
    assert said[0] == "run-01 has no train/agent.onnx; it is left out"
    rows = rows_of("ladder/ratings.csv")
    assert [row["player"] for row in rows] == ["run-00/train/agent.onnx", "random", "greedy"]
    assert sum(int(row["games"]) for row in rows) == 2 * 4 * 3
    with Image.open("ladder/ratings.png") as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (800, int(100 * (1.2 + 0.35 * 3))))


@pytest.mark.usefixtures("in_this_process")
def test_runs_that_were_not_asked_for_do_not_play():
    plant_bot("run-00")
    plant_bot("run-01")
    run_task("run-00 run-01", first=1)
    assert [row["player"] for row in rows_of("ladder/ratings.csv")] == ["run-00/train/agent.onnx", "random"]


@pytest.mark.usefixtures("in_this_process")
def test_the_anchor_is_mcts_200_if_it_plays():
    run_task("", "random mcts:200", games=2)
    assert json.loads(Path("ladder/ladder.json").read_text())["anchor"] == "mcts:200"
    elo = {row["player"]: float(row["elo"]) for row in rows_of("ladder/ratings.csv")}
    assert elo["mcts:200"] == 0


def test_fewer_than_two_players_are_refused():
    plant_bot("run-00")
    with pytest.raises(UserError, match="expected at least two players, got none"):
        run_task("run-01", "")
    with pytest.raises(UserError, match=r"expected at least two players, got run-00/train/agent.onnx"):
        run_task("run-00", "")
    with pytest.raises(UserError, match="expected at least two games for each player, got 1"):
        run_task("run-00", games=1)
    assert not Path("ladder").exists()
