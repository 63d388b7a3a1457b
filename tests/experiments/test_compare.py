"""The task compare: a ladder of the bots that exist and of the opponents, which can be continued."""

import csv
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.tasks.compare import compare
from plyzero.arena import pair_player
from plyzero.arena.ladder import Pair, PairResult
from plyzero.errors import UserError
from plyzero.play import bundled_bots
from plyzero.rules.catalog import GameSpec

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

BOTS = Path(bundled_bots.__file__).parent / "bots"


class InThisProcess:
    """In place of the worker processes."""

    played = 0

    def __init__(self, number: int, game: GameSpec, entrants: Sequence[Any], **settings: Any) -> None:
        self._player = pair_player.PairPlayer(game, entrants, **settings)

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def play(self, pairs: Sequence[Pair]) -> Iterator[tuple[Pair, PairResult]]:
        for pair in pairs:
            InThisProcess.played += 1
            yield pair, self._player.play(pair)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pair_player, "Processes", InThisProcess)
    InThisProcess.played = 0


def plant(run: str):
    Path(run, "train").mkdir(parents=True)
    shutil.copy(BOTS / "tic-tac-toe.onnx", Path(run, "train/agent.onnx"))


def run_task(runs: str, opponents: str = "random", games: int = 4, **options: Any) -> list[str]:
    said: list[str] = []
    arguments = {"game": "tic-tac-toe", "simulations": 2, "seed": 1, **options}
    compare(
        Path(),
        Path("ladder"),
        report=said.append,
        runs=runs.split(),
        opponents=opponents.split(),
        games=games,
        **arguments,
    )
    return said


def players() -> list[dict[str, str]]:
    with open("ladder/ratings.csv") as file:
        return [*csv.DictReader(file)]


@pytest.mark.usefixtures("in_this_process")
def test_the_bots_that_exist_and_the_opponents_play_so_many_games_each():
    plant("run-00")
    said = run_task("run-00 run-01", "random greedy")
    assert said[0] == "run-01 has no train/agent.onnx; it is left out"
    assert [row["player"] for row in players()] == ["run-00/train/agent.onnx", "random", "greedy"]
    assert sum(int(row["games"]) for row in players()) == 2 * 4 * 3
    with Image.open("ladder/ratings.png") as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (800, int(100 * (1.2 + 0.35 * 3))))


@pytest.mark.usefixtures("in_this_process")
def test_the_anchor_is_mcts_200_if_it_plays():
    run_task("", "random mcts:200", games=2)
    assert json.loads(Path("ladder/ladder.json").read_text())["anchor"] == "mcts:200"
    elo = {row["player"]: float(row["elo"]) for row in players()}
    assert elo["mcts:200"] == 0


def test_fewer_than_two_players_are_refused():
    plant("run-00")
    with pytest.raises(UserError, match="expected at least two players, got none"):
        run_task("run-01", "")
    with pytest.raises(UserError, match=r"expected at least two players, got run-00/train/agent.onnx"):
        run_task("run-00", "")
    with pytest.raises(UserError, match="expected at least two games for each player, got 1"):
        run_task("run-00", games=1)
    assert not Path("ladder").exists()
