"""Players: found by name, loaded from a run or a file."""

from pathlib import Path

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.play.model_loader import load_network
from plyzero.play.players import Bot, find_player
from plyzero.run.metrics import append_line
from plyzero.run.models import best_model, publish_model
from plyzero.search.tree import PUCT
from tests.helpers.runs import small_run
from trainer.export import untrained


def test_the_best_model_is_the_one_with_the_most_points_and_still_there(tmp_path: Path):
    run = small_run(tmp_path / "r")
    content = untrained(run)
    names = [publish_model(run.models, content, fence=1, step=step) for step in (1, 2, 3, 4)]
    rated = {1: [5, 4, 1], 2: [6, 2, 2], 3: [7, 0, 3]}  # 7, 7 and 7 points of 10
    for step, points in rated.items():
        append_line(run.metrics / "rating.jsonl", {"model": str(names[step - 1]), "scores": {"random": points}})
    gone = "000001-000000009-00000000.onnx"
    append_line(run.metrics / "rating.jsonl", {"model": gone, "scores": {"random": [10, 0, 0]}})
    assert best_model(run.models, run.metrics) == names[2]
    append_line(
        run.metrics / "rating.jsonl", {"model": str(names[0]), "scores": {"random": [5, 4, 1], "mcts:100": [0, 1, 9]}}
    )
    assert best_model(run.models, run.metrics) == names[0]
    assert load_network(run.root, model="best").step == 1
    assert load_network(run.root).step == 4
    assert load_network(run.root, model="2").step == 2


def test_two_games_won_do_not_count_for_more_than_nineteen_of_twenty(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    names = [publish_model(run.models, bytes([step]), fence=1, step=step) for step in (1, 2)]
    for name, points in zip(names, ([19, 0, 1], [2, 0, 0]), strict=True):
        append_line(run.metrics / "rating.jsonl", {"model": str(name), "scores": {"random": points}})
    assert best_model(run.models, run.metrics) == names[0]


def test_a_bot_finds_its_game_and_its_search_in_the_file(tmp_path: Path):
    run = small_run(tmp_path / "r", "connect-four", "search.algorithm=puct")
    name = publish_model(run.models, untrained(run), fence=1, step=3)
    copied = tmp_path / "copied.onnx"
    copied.write_bytes((run.models / str(name)).read_bytes())
    for path in (run.root, copied):
        bot = Bot.load(path, simulations=8)
        assert bot.game.name == "connect-four"
        position = bot.game.start
        root = bot.search([position])[0]
        assert (root.algorithm, root.simulations) == (PUCT, 8)
        assert bot.choose(position) == root.best_action() == bot.choose_all([position])[0]
    with pytest.raises(UserError, match="is a run of connect-four, not of othello"):
        Bot.load(run.root, game="othello")
    with pytest.raises(UserError, match="its game is 'connect-four v1', expected 'othello v1'"):
        Bot.load(copied, game="othello")


def test_players_are_found_by_name(tmp_path: Path):
    run = small_run(tmp_path / "r")
    for step in (1, 2):
        publish_model(run.models, untrained(run), fence=1, step=step)
    rng = np.random.default_rng(0)
    names = {each: find_player(each, run.game, rng, simulations=5).name for each in ("random", "mcts:7")}
    assert names == {"random": "random", "mcts:7": "mcts:7"}
    assert find_player("mcts:7", run.game, rng).simulations == 7
    assert find_player(str(run.root), run.game, rng, simulations=5).name.startswith("000001-000000002-")
    assert find_player(f"{run.root}@1", run.game, rng, simulations=5).name.startswith("000001-000000001-")
    assert find_player(f"{run.root}@1", run.game, rng, simulations=5).name.endswith(" with 5 simulations")
