"""The task examples: records, films and texts of the same games."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.engines.game_record import frames_of, read_game
from plyzero.kits.experiments.tasks import examples as task
from plyzero.rules.catalog import load_game
from tests.helpers.experiments import plant_bot

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def bot(here: Path) -> None:
    plant_bot("run-00")


def run_task(**options: Any) -> dict[str, bytes]:
    arguments = {"game": "tic-tac-toe", "opponents": ["random"], "games": 2, "seed": 1, "simulations": 2, **options}
    task.examples(Path("run-00"), Path("run-00/examples"), report=lambda text: None, **arguments)
    return {path.name: path.read_bytes() for path in sorted(Path("run-00/examples").iterdir())}


def records_of(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["games.jsonl"].splitlines()]


def test_a_game_is_a_record_a_film_and_a_text_of_all_its_positions():
    files = run_task()
    assert [*files] == ["game-01.gif", "game-01.txt", "game-02.gif", "game-02.txt", "games.jsonl"]
    spec, lines = load_game("tic-tac-toe"), files["games.jsonl"].decode().splitlines()
    for number, record in enumerate(records_of(files), 1):
        game = read_game(lines, spec, str(number), "games.jsonl")  # which checks the moves and the winner
        with Image.open(f"run-00/examples/game-{number:02d}.gif") as film:
            assert film.format == "GIF"
            assert film.width == 360
            assert film.n_frames == len(game.positions) == len(record["moves"]) + 1
        text = files[f"game-{number:02d}.txt"].decode()
        assert all(str(position) in text for position in game.positions)
        assert all(f". {side}, {record[side]}: " in text for side in ("first", "second"))
        ends = {"first": "the first player won", "second": "the second player won", "draw": "draw"}
        assert text.startswith("tic-tac-toe v1: ")
        assert text.endswith(f"\n\n{ends[record['winner']]}\n")


def test_the_bot_begins_the_first_game_and_meets_each_opponent_with_both_sides(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.kits.engines.film.make_film", lambda *_, **__: b"")
    sides = [(each["first"], each["second"]) for each in records_of(run_task(games=3))]
    assert sides == [("agent", "random"), ("random", "agent"), ("agent", "random")]
    sides = [(each["first"], each["second"]) for each in records_of(run_task(opponents=["random", "greedy"], games=4))]
    assert sides == [("agent", "random"), ("greedy", "agent"), ("random", "agent"), ("agent", "greedy")]


def test_the_same_arguments_give_the_same_files():
    options = {"opponents": ["mcts:4"], "games": 1}
    first = run_task(**options)
    assert run_task(**options) == first
    assert run_task(**options, seed=2)["games.jsonl"] != first["games.jsonl"]


def test_a_film_of_a_game_with_dice_has_a_frame_for_each_move_of_a_player(monkeypatch: pytest.MonkeyPatch):
    greedy = task.find_opponent("greedy", load_game("pig"), np.random.default_rng(0), simulations=1)
    monkeypatch.setattr(task, "find_agent", lambda run, spec, simulations: greedy)
    (record,) = records_of(run_task(game="pig", games=1))
    frames = frames_of(read_game([json.dumps(record)], load_game("pig"), "1", "games.jsonl"))
    assert len(frames) < len(record["moves"]) + 1
    with Image.open("run-00/examples/game-01.gif") as film:
        assert film.n_frames == len(frames)


def test_forfeited_and_truncated_games_are_told_as_such():
    assert task._result({"end": "forfeit", "winner": "second"}, None) == "the first player forfeited"
    assert task._result({"end": "truncated", "winner": None}, None) == "truncated, a draw"


def test_what_is_missing_is_said():
    with pytest.raises(UserError, match="expected an opponent and at least one game, got 0 opponents and 2 games"):
        run_task(opponents=[])
    Path("run-00/train/agent.onnx").unlink()
    with pytest.raises(UserError, match=r"expected run-00/train/agent.onnx, which the task train writes"):
        run_task()
