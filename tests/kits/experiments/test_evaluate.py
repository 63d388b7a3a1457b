"""The task evaluate: results by colour, earlier runs as opponents, and the same file from the same arguments."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks import evaluate as task
from plyzero.kits.experiments.tasks.evaluate import evaluate
from plyzero.kits.experiments.tasks.results import EVAL_COLUMNS
from tests.helpers.experiments import plant_bot, rows_of

ONE_MOVE = "tests.helpers.toys:FirstMoveWins"
"""A game of one move: 0 wins at once, 1 loses at once."""


def plant(*runs: str):
    """Give each run the bundled bot of tic-tac-toe as its agent."""
    for run in runs:
        plant_bot(run)
        Path(run, "train/card.json").write_text(json.dumps({"group": f"group of {run}"}))


def run_task(run: str, **options: Any) -> tuple[list[dict[str, str]], list[str]]:
    said: list[str] = []
    arguments = {"game": "tic-tac-toe", "opponents": ["random"], "games": 4, "seed": 3, "simulations": 2, **options}
    evaluate(Path(run), Path(run, "evaluate"), report=said.append, **arguments)
    return rows_of(Path(run, "evaluate/eval.csv")), said


def test_results_are_counted_by_who_moves_first(monkeypatch: pytest.MonkeyPatch):
    plant("run-00")
    players = {"run-00/train/agent.onnx": 0, "wins": 0, "loses": 1}  # who moves first decides with this move

    def find_player(name: str, *_: object, **options: object) -> SimpleNamespace:
        return SimpleNamespace(name=name, choose_all=lambda positions: [players[name]] * len(positions))

    monkeypatch.setattr(task, "find_player", find_player)
    wins, loses = run_task("run-00", game=ONE_MOVE, opponents=["wins", "loses"], games=6)[0]
    assert [*wins] == [*EVAL_COLUMNS]
    assert (wins["run"], wins["group"], wins["opponent"]) == ("run-00", "group of run-00", "wins")
    expected = {"games": "6", "wins": "3", "draws": "0", "losses": "3", "score": "0.5", "elo": "0.0", "distinct": "1"}
    assert wins.items() >= expected.items()
    by_side = {"first_wins": "3", "first_draws": "0", "first_losses": "0"}
    assert wins.items() >= {**by_side, "second_wins": "0", "second_draws": "0", "second_losses": "3"}.items()
    assert (wins["low"], wins["high"]) == ("0.1876", "0.8124")  # Wilson's interval of 3 of 6
    assert loses.items() >= {"wins": "6", "first_wins": "3", "second_wins": "3", "score": "1.0", "high": "1.0"}.items()
    assert (wins["elo_low"], wins["elo_high"]) == (f"-{wins['elo_high']}", wins["elo_high"])


def test_the_sums_of_both_sides_are_those_of_the_match():
    plant("run-00")
    (row,), _ = run_task("run-00", games=6)
    for result in ("wins", "draws", "losses"):
        assert int(row[result]) == int(row[f"first_{result}"]) + int(row[f"second_{result}"])
    assert sum(int(row[f"first_{result}"]) for result in ("wins", "draws", "losses")) == 3
    assert float(row["score"]) == pytest.approx((int(row["wins"]) + int(row["draws"]) / 2) / 6, abs=1e-4)


def test_the_same_arguments_give_the_same_file():
    plant("run-00", "run-01")
    options = {"opponents": ["random", "mcts:4", "greedy", "bot:1"], "previous": ["run-00"]}
    run_task("run-01", **options)
    first = Path("run-01/evaluate/eval.csv").read_bytes()
    run_task("run-01", **options)
    assert Path("run-01/evaluate/eval.csv").read_bytes() == first
    run_task("run-01", **options, seed=4)
    assert Path("run-01/evaluate/eval.csv").read_bytes() != first


def test_earlier_runs_are_opponents_and_one_without_a_bot_changes_nothing_else(monkeypatch: pytest.MonkeyPatch):
    plant("run-00", "run-02", "run-03")
    find = task.find_player

    def random_for_run_02(name: str, *rest: Any, **options: Any) -> Any:
        """So that the results of the last match depend on its random numbers."""
        return find("random" if "run-02" in name else name, *rest, **options)

    monkeypatch.setattr(task, "find_player", random_for_run_02)
    rows, said = run_task("run-03", previous=["run-00", "run-01", "run-02"], games=20)
    assert [row["opponent"] for row in rows] == ["random", "run-00", "run-02"]
    assert "run-01/train/agent.onnx does not exist; it is left out" in said
    plant("run-01")
    again, _ = run_task("run-03", previous=["run-00", "run-01", "run-02"], games=20)
    assert [row for row in again if row["opponent"] != "run-01"] == rows


def test_what_is_missing_or_wrong_is_said():
    with pytest.raises(UserError, match=r"expected run-00/train/agent.onnx, which the task train writes"):
        run_task("run-00")
    with pytest.raises(UserError, match=r"expected an even number of games, .* got 5"):
        run_task("run-00", games=5)
    plant("run-00")
    with pytest.raises(UserError, match="expected an opponent, such as -p opponents=mcts:50, got none"):
        run_task("run-00", opponents=[])
    Path("run-00/train/card.json").unlink()
    with pytest.raises(UserError, match=r"cannot read run-00/train/card.json"):
        run_task("run-00")
    assert not Path("run-00/evaluate").exists()
