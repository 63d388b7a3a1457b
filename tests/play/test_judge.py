"""The judge of a game: the network of a run once it has beaten mcts:100, else the bundled bot, else pure MCTS."""

from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.play.bundled_bots import find_card
from plyzero.play.judge import find_judge
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run
from plyzero.run.metrics import append_line
from plyzero.run.models import publish_model
from plyzero.trainer.export import untrained

GAME = load_game("tic-tac-toe")


def scored(run: Run, wins: int) -> None:
    """Publish a model that has won so many of 20 games against mcts:100, and lost the others."""
    name = publish_model(run.models, untrained(run), fence=1, step=9)
    append_line(run.metrics / "rating.jsonl", {"model": str(name), "scores": {"mcts:100": [wins, 0, 20 - wins]}})


def test_the_network_of_a_run_judges_once_it_has_beaten_pure_mcts(run: Run):
    scored(run, 16)
    judge = find_judge(GAME, run=run.root, simulations=32)
    assert judge.network == run.root
    assert judge.bot.simulations == 32
    assert judge.sentence == (
        "The judge: step 9 scored 80% (58-92) in 20 games against pure MCTS (100 random games a move)."
    )


def test_until_then_the_bundled_bot_judges_and_the_reason_is_said(run: Run):
    scored(run, 5)
    judge = find_judge(GAME, run=run.root)
    assert judge.network == find_card(GAME).network
    assert "because the network has not beaten pure MCTS (100 random games a move) yet" in judge.sentence
    assert "step 9 scored 25% (11-47)" in judge.sentence
    assert find_judge(GAME, run=run.root, unmeasured=True).network == run.root


def test_a_run_without_a_model_is_judged_by_another(run: Run):
    judge = find_judge(GAME, run=run.root)
    assert judge.network == find_card(GAME).network
    assert judge.sentence.endswith(", because the run has no model yet.")


def test_a_file_whose_strength_is_not_known_is_not_the_judge(run: Run):
    scored(run, 5)
    (file,) = run.models.glob("*.onnx")
    assert find_judge(GAME, net=file).network == find_card(GAME).network
    assert find_judge(GAME, net=file, unmeasured=True).network == file


def test_a_game_without_a_bot_is_judged_by_pure_mcts():
    judge = find_judge(load_game("tests.helpers.toys:Relay"))
    assert judge.network is None
    assert judge.bot.name == "mcts:1000"
    assert judge.sentence == "The judge: pure MCTS, which knows the rules alone."


def test_a_game_with_dice_is_judged_by_puct_whose_values_converge():
    assert find_judge(load_game("backgammon")).bot.settings.algorithm == "puct"
    assert find_judge(GAME).bot.settings.algorithm == "gumbel"


def test_a_model_that_does_not_exist_is_refused(run: Run):
    scored(run, 5)
    with pytest.raises(UserError, match="step 8"):
        find_judge(GAME, run=run.root, model="8")
    with pytest.raises(UserError):
        find_judge(GAME, net=Path("none.onnx"))
