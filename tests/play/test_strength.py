"""What a judge is worth: the newest score of a run's model, or a bundled bot's card, and who may judge by it."""

import io
import json
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from plyzero.commands.terminal import Terminal
from plyzero.errors import UserError
from plyzero.kits.engines.analysis import answer_queries
from plyzero.kits.web.opponents import Opponents
from plyzero.play.bundled_bots import find_card
from plyzero.play.judge import find_judge
from plyzero.play.players import Bot
from plyzero.play.session import Session
from plyzero.play.strength import UNKNOWN, introduction, strength_of
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run
from plyzero.run.metrics import append_line
from plyzero.run.models import publish_model
from plyzero.trainer.export import untrained

GAME = load_game("tic-tac-toe")


def measure(run: Run, step: int, **scores: list[int]) -> None:
    """Write a line of ratings; mcts_100 stands for mcts:100."""
    named = {opponent.replace("_", ":"): counts for opponent, counts in scores.items()}
    write_scores(run, f"000001-{step:09d}-0123abcd.onnx", named)


def write_scores(run: Run, model: object, scores: object) -> None:
    append_line(run.metrics / "rating.jsonl", {"model": model, "scores": scores})


def of(run: Run, step: int) -> tuple[str, bool]:
    return strength_of(run.root, GAME, step)


def test_the_strength_of_a_runs_model_is_its_newest_score(run: Run):
    assert of(run, 7) == ("step 7 has not been measured against pure MCTS", False)
    measure(run, 5, random=[10, 0, 0])
    assert of(run, 7) == ("step 7 has not been measured against pure MCTS", False)
    measure(run, 182, random=[20, 0, 0], mcts_100=[10, 0, 10])
    measure(run, 300, mcts_100=[18, 1, 1])
    half = "step 182 scored 50% (30-70) in 20 games against mcts:100"
    assert of(run, 182) == (half, False)
    assert of(run, 200) == (f"step 200 has not been measured; {half}", False)
    text, judges = of(run, 300)
    assert (text.startswith("step 300 scored 92% ("), judges) == (True, True)
    measure(run, 300, mcts_100=[1, 0, 1])  # again
    assert of(run, 300)[0].endswith("in 2 games against mcts:100")


@pytest.mark.parametrize(
    ("scores", "judges"),
    [
        ({"mcts_100": [6, 0, 4]}, False),  # more than one half, by chance
        ({"mcts_100": [16, 0, 4]}, True),
        ({"mcts_50": [20, 0, 0]}, False),
        ({"mcts_200": [20, 0, 0]}, True),
        ({"mcts_100": [20, 0, 0], "mcts_1000": [0, 0, 20]}, True),
    ],
)
def test_a_model_judges_once_it_has_beaten_mcts_100(run: Run, scores: dict[str, list[int]], judges: bool):
    measure(run, 9, **scores)
    assert of(run, 9)[1] == judges


def test_lines_that_train_does_not_write_are_passed_over(run: Run):
    measure(run, 9, mcts_100=[16, 0, 4])
    expected = of(run, 9)
    for scores in ({"mcts:100": [1, 2]}, {"mcts:x": [1, 0, 0]}, ["mcts:100"], {"mcts:100": None}, {}):
        write_scores(run, "000001-000000009-0123abcd.onnx", scores)
    write_scores(run, 9, {"mcts:100": [0, 0, 9]})
    assert of(run, 9) == expected


def test_scores_that_cannot_be_read_are_no_error(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plyzero.run.events.read_part", Mock(side_effect=OSError(5, "Input/output error")))
    assert of(run, 9) == ("the scores of step 9 cannot be read: Input/output error", False)


def test_bundled_bots_have_the_strength_on_their_cards_and_files_none(run: Run, tmp_path: Path):
    for name in ("tic-tac-toe", "connect-four", "othello(size=6)"):
        text, judges = Bot.at_level(load_game(name)).strength()
        assert (text.startswith("the bundled bot, level "), "against pure MCTS (200 " in text, judges) == (True,) * 3
    file = tmp_path / "bot.onnx"
    file.write_bytes(untrained(run))
    assert Bot.load(file).strength() == UNKNOWN
    pure = Bot.pure_mcts(GAME, np.random.default_rng(), simulations=50)
    assert pure.strength() == ("pure MCTS with 50 rollouts", True)


def test_a_player_is_introduced_with_its_strength_and_pure_search_with_the_way_to_a_better_one():
    level = Bot.at_level(GAME, 2).strength().text
    assert level.startswith("the bundled bot, level 2, scores 32.2 % against perfect play (computed), ")
    assert re.fullmatch(r"It scores .*, \d+ % \(\d+ to \d+\) against pure MCTS \(200 .*\)\.", introduction(GAME, level))
    assert introduction(GAME, "step 3 scored 9%") == "Its strength: step 3 scored 9%."
    hex_game = load_game("hex(size=5)")
    pure = Bot.pure_mcts(hex_game, np.random.default_rng(), simulations=50).strength().text
    assert introduction(hex_game, pure) == (
        "It knows the rules alone. Train a network: plyzero train 'hex(size=5)' --run DIR"
    )


def test_the_page_has_the_judge_that_find_judge_names_also_while_a_run_grows(run: Run):
    publish_model(run.models, untrained(run), fence=1, step=9)
    opponents = Opponents(GAME, run=run.root)
    judge = opponents.judge("", 100, most=10_000)
    assert judge.bot.model_file == find_card(GAME).network
    assert judge.sentence.endswith(
        ", because the network has not beaten pure MCTS (100 random games a move) yet "
        "(step 9 has not been measured against pure MCTS)."
    )
    assert [opponents.judge("", each, most=10_000).bot.simulations for each in (4096, 1, None)] == [4096, 1, 256]
    assert opponents.network().name.startswith("000001-000000009-")
    measure(run, 9, mcts_100=[16, 0, 4])  # while the page is open
    judge = opponents.judge("", 100, most=10_000)
    assert judge.bot.name.startswith("000001-000000009-")
    assert judge.sentence == (
        "The judge: step 9 scored 80% (58-92) in 20 games against pure MCTS (100 random games a move)."
    )


def test_hints_and_analyses_say_what_their_judge_is_worth(run: Run, capsys: pytest.CaptureFixture[str]):
    publish_model(run.models, untrained(run), fence=1, step=9)
    measure(run, 9, mcts_100=[5, 0, 15])
    judge = find_judge(GAME, run=run.root, unmeasured=True, simulations=4)
    Terminal(Session(GAME, 0), judge.bot, lambda: judge).hint("")
    worth = "The judge: step 9 scored 25% (11-47) in 20 games against pure MCTS (100 random games a move).\n"
    assert worth in capsys.readouterr().out
    answers = io.StringIO()
    answer_queries(GAME, judge, ['{"moves": ["a1"]}'], answers)
    assert json.loads(answers.getvalue())["judge"] == "step 9 scored 25% (11-47) in 20 games against mcts:100"


def test_the_history_of_a_bot_has_a_row_for_each_model_and_a_column_for_each_opponent(run: Run):
    for step in (3, 9):
        name = publish_model(run.models, untrained(run), fence=1, step=step)
        line = {"model": str(name), "step": step, "games": 10 * step, "policy_loss": 1 / step}
        append_line(run.metrics / "trainer-000001.jsonl", line)
    write_scores(run, str(name), {"mcts:100": [16, 2, 2], "random": [20, 0, 0]})
    found = Bot.load(run.root).history()
    assert {len(column) for column in found.values()} == {2}
    assert (found["step"], found["games"], found["policy_loss"], found["value_loss"]) == (
        [3, 9],
        [30, 90],
        [1 / 3, 1 / 9],
        [None, None],
    )
    assert (found["score against mcts:100"], found["score against random"]) == ([None, 0.85], [None, 1.0])
    for bot in (Bot.at_level(GAME, 1), Bot.pure_mcts(GAME, np.random.default_rng(), simulations=50)):
        with pytest.raises(UserError, match="is not of a run, so it has no history; expected"):
            bot.history()
