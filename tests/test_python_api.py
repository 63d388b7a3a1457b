"""docs/python-api.md: its code runs as it is printed, and does what the page says."""

import re
import runpy
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

import plyzero
from plyzero import Game, UserError, read_games
from plyzero.check.template.tic_tac_toe import TicTacToe
from plyzero.games.othello import Othello
from plyzero.network.onnx_network import Network
from plyzero.play.match import play_match
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.trainer.export import export
from plyzero.trainer.loop import Trainer
from plyzero.trainer.network import ResidualNetwork
from tests.helpers import cli
from tests.helpers.learning import add_model, training
from tests.helpers.runs import play_segment, small_run
from tests.helpers.surroundings import python

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python-api.md"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page, and a run in runs/c4 for those that read one."""
    folder = tmp_path_factory.mktemp("written")
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text)
    for name in ("breakthrough.py", "relabel.py"):
        shutil.copy(ROOT / "examples" / name, folder)
    run = small_run(folder / "runs" / "c4", "connect-four(rows=4, columns=4)")
    add_model(run)
    play_segment(run, full=60)
    return folder


@pytest.fixture
def run(written: Path, tmp_path: Path) -> Run:
    run = small_run(tmp_path / "r")
    play_segment(run, full=100, fence=1)
    return run


def printed(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys) -> str:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    runpy.run_path(name, run_name="__main__")
    return capsys.readouterr().out


def test_public_names_exist_and_load_only_what_they_need():
    assert all(hasattr(plyzero, name) for name in plyzero.__all__)
    code = """
import sys
from plyzero import Games, Outcome, SearchSettings, Settings, UserError, load_game, read_games
print({"numba", "onnxruntime", "torch"} & set(sys.modules))
"""
    assert python("-c", code).stdout == "set()\n"


def test_the_loop_in_one_process_has_40_lines():
    text = (ROOT / "examples" / "one_process.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= 40


def test_self_play_and_training_in_one_process_learn_tic_tac_toe(monkeypatch: pytest.MonkeyPatch, capsys):
    game, rng = load_game("tic-tac-toe"), np.random.default_rng(0)
    torch.manual_seed(0)
    network = ResidualNetwork(game.start.observation_shape, game.start.num_actions, blocks=1, channels=32)
    observations = game.start.observe()[np.newaxis].astype(np.float32)
    before = Network(export(network, game, observations, metadata={}), game, label="untrained")
    bot = Bot("untrained", game, before, simulations=0)
    assert play_match(bot, RandomPlayer(rng), game.start, games=100, rng=rng).score < 0.75
    shown = printed(ROOT / "examples", "one_process.py", monkeypatch, capsys)
    assert float(re.search(r"^score ([\d.]+) %", shown, re.MULTILINE)[1]) > 85


def weights_of(trainer: Trainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in trainer.learner.network.parameters()])


@pytest.mark.parametrize(
    "option",
    ["network.module=my_net:MyNet", "trainer.targets=my_targets:final_result", "trainer.loss=my_loss:half_value"],
)
def test_swapping_one_part_needs_no_other_change(option: str, run: Run, written: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(written))
    changed = open_run(run.root, options=[option])
    with training(run, steps=3) as trainer:
        usual = weights_of(trainer)
    with training(changed, steps=3) as trainer:
        trainer.publish()
        weights = weights_of(trainer)
    assert not torch.equal(weights, usual)
    with training(changed, steps=0) as resumed:
        assert resumed.learner.step == 3
        assert torch.equal(weights, weights_of(resumed))
        resumed.train_step()
    position = run.game.start
    assert Bot.load(run.root, simulations=4).choose(position) in position.legal_actions()


def test_the_targets_of_the_page_are_the_results_of_the_games(run: Run, written: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(written))
    with training(open_run(run.root, options=["trainer.targets=my_targets:final_result"]), steps=0) as trainer:
        wdl = trainer.intake.window.sample(256, np.random.default_rng(0)).wdl
    assert {*map(tuple, wdl.tolist())} == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_an_evaluator_of_ones_own_beats_random_moves(written: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    shown = printed(written, "material.py", monkeypatch, capsys)
    assert float(re.search(r"^score ([\d.]+) %", shown, re.MULTILINE)[1]) > 75
    command = ("match", "material:evaluate", "random", "--game", "breakthrough:Breakthrough(size=4)", "--games", "2")
    assert "material:evaluate (A) against random (B)" in cli.shown(*command, "--simulations", "4", cwd=written)


def test_the_contracts_of_the_page_pass(written: Path):
    assert "10 passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", cwd=written).stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c_puct.py", r"\d+ different games among the 20\nscore "),
        ("openings.py", r"^action \d: player 0 won \d+% of \d+ games\n"),
    ],
)
def test_other_code_of_the_page_runs(name: str, expected: str, written: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    assert re.search(expected, printed(written, name, monkeypatch, capsys))


def test_relabelled_samples_have_the_policies_of_the_new_search(written: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(written)
    found = runpy.run_path("relabel.py")
    assert re.fullmatch(r"\d+ positions: the policies differ by [1-9]\d?%\n", capsys.readouterr().out)
    samples, result = found["samples"], found["result"]  # of the last position
    assert len(samples.wdl) == len(found["searched"])
    assert samples.probabilities[-len(result.actions) :] == pytest.approx(result.policy, abs=1e-6)
    assert np.array_equal([position.observe() for position in found["positions"]], found["games"].observations)


def test_a_game_may_be_given_by_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Nim(TicTacToe, version=3):
        pass

    Nim.__module__ = "nim"
    assert load_game(Nim).identity == "nim:Nim v3"
    assert load_game(Othello).identity == load_game("othello").identity
    monkeypatch.setitem(sys.modules, "nim", SimpleNamespace(Nim=Nim))
    run = create_run(tmp_path / "r", load_game(Nim))
    name = add_model(run)
    monkeypatch.delitem(sys.modules, "nim")

    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    Nim.__module__ = "__main__"
    assert load_game(Nim).name == "__main__:Nim"
    for path in (run.root, run.models / str(name)):
        bot = Bot.load(path, game=Nim, simulations=4)
        assert bot.game.name == "nim:Nim"
        assert bot.choose(Nim()) in range(9)
    with pytest.raises(UserError, match="is a run of nim:Nim, not of othello"):
        Bot.load(run.root, game=Othello)
    notebook.__file__ = "/somewhere/nim.py"
    assert load_game(Nim).name == "nim:Nim"


@pytest.mark.parametrize("wrong", [5, TicTacToe(), int, Game])
def test_what_is_no_class_of_a_game_is_one_sentence(wrong: object):
    with pytest.raises(UserError, match=r"expected a game by its name or its class|not a subclass|does not define"):
        load_game(wrong)


def test_games_of_a_run_whose_rules_lie_elsewhere_say_where_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "twin").mkdir()
    create_run(tmp_path / "twin" / "runs" / "first", GameSpec("twin:Twin", TicTacToe()))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="module 'twin' has no class 'Twin'"):  # the folder is a module to Python
        read_games("twin/runs/first")
    (tmp_path / "twin" / "twin.py").touch()
    expected = f"twin/runs/first is a run of twin:Twin, and twin.py is not in this directory; start in {tmp_path}/twin"
    with pytest.raises(UserError, match=f"^{re.escape(expected)}$"):
        read_games("twin/runs/first")
    monkeypatch.delitem(sys.modules, "twin")
