"""The parts that a run may replace: what does not fit is one sentence, and only the trainer imports them."""

import sys
from contextlib import closing
from pathlib import Path

import pytest

from plyzero.errors import UserError
from plyzero.run.directory import open_run
from plyzero.trainer.loop import Trainer
from plyzero.trainer.parts import make_parts
from tests.helpers.cli import plyzero
from tests.helpers.learning import training
from tests.helpers.runs import play_segment, small_run

PARTS = "tests.helpers.own_parts"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run with games."""
    run = small_run(tmp_path_factory.mktemp("own") / "r")
    play_segment(run, full=20)
    return run.root


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("network.module=nowhere:Net", "there is no module 'nowhere' in this directory"),
        ("network.module=own_parts:Missing", "own_parts' has no class or function 'Missing'"),
        ("network.module=own_parts:a_function", "own_parts:a_function is not a subclass of torch.nn.Module"),
        ("network.module=own_parts:OtherArguments", "TypeError: .* got an unexpected keyword argument 'blocks'"),
        ("network.module=own_parts:Narrow", r"\[\(3, 8\), \(3, 3\)\] for 3 positions, .* \[\(3, 9\), \(3, 3\)\]"),
        ("network.module=own_parts:OneOutput", r"forward\(\) returned Tensor, expected a tuple of two tensors"),
        ("network.module=own_parts:Constant", r"outputs of forward\(\) do not depend on any parameter"),
        ("network.module=own_parts:View", r"RuntimeError: view size is not compatible .* \(own_parts.py, line \d+\)"),
        ("network.module=own_parts:Raises", r"RuntimeError: .* \(own_parts.py, line 33\)"),
        ("network.module=own_parts:NotInOnnx", "i0"),
        ("network.module=own_parts:OneBatchSize", "own_parts:OneBatchSize: "),
        ("trainer.loss=own_parts:a_function", "expected trainer.loss.Losses of three tensors"),
        ("trainer.loss=own_parts:tuple_of_losses", "expected trainer.loss.Losses of three tensors"),
        ("trainer.loss=own_parts:loss_per_position", "three tensors without dimensions"),
        ("trainer.optimizer=own_parts:a_function", "expected a torch.optim.Optimizer, got NoneType"),
        ("trainer.optimizer=own_parts:Missing", "own_parts' has no class or function 'Missing'"),
        ("trainer.schedule=own_parts:a_function", "expected a learning rate, a finite float of at least 0, got None"),
        ("trainer.schedule=own_parts:one_argument", r"TypeError: one_argument\(\) takes 1 positional argument"),
        ("trainer.loss=own_parts:one_argument", r"TypeError: one_argument\(\) got an unexpected keyword argument"),
    ],
)
def test_an_unfit_part_is_one_sentence_before_training(option: str, sentence: str, root: Path):
    option = option.replace("own_parts", PARTS)
    run = open_run(root, options=[option])
    before = sorted(run.trainer.iterdir())
    with pytest.raises(UserError, match=sentence) as raised:
        Trainer(run, device="cpu")
    assert str(raised.value).startswith(option.replace("=", " = "))
    assert "\n" not in str(raised.value)
    assert sorted(run.trainer.iterdir()) == before


def test_an_optimiser_and_a_schedule_of_ones_own_make_the_steps(tmp_path: Path):
    options = (f"trainer.optimizer={PARTS}:sgd", f"trainer.schedule={PARTS}:halving")
    run = small_run(tmp_path / "r", "tic-tac-toe", *options)
    play_segment(run)
    with training(run, steps=3) as trainer:
        trainer.publisher.save()
        (group,) = trainer.learner.state_dict()["optimiser"]["param_groups"]
        assert (group["momentum"], group["lr"]) == (0.5, trainer.settings.learning_rate / 4)
    with training(run, steps=1) as trainer:
        (group,) = trainer.learner.state_dict()["optimiser"]["param_groups"]
        assert (trainer.learner.step, group["lr"]) == (4, trainer.settings.learning_rate / 8)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a_function", "returned NoneType, expected trainer.targets.Targets"),
        ("short_wdl", r"returned wdl of shape \(\d+, 3\), expected \(\d+, 3\), for \d+ positions with \d+ legal"),
        ("negative_wdl", "returned a probability that is negative or not finite"),
        ("numbers_for_a_mask", "returned is_sample of another type than bool"),
    ],
)
def test_unfit_targets_are_one_sentence(name: str, sentence: str, root: Path):
    run = open_run(root, options=[f"trainer.targets={PARTS}:{name}"])
    with closing(Trainer(run, device="cpu")) as trainer, pytest.raises(UserError, match=f"own_parts:{name} {sentence}"):
        trainer.ingest()


def test_a_name_of_no_class_is_refused_when_the_settings_are_read(tmp_path: Path):
    with pytest.raises(UserError, match=r"setting network.module from -o: .* got 'my_net'"):
        small_run(tmp_path / "r", "tic-tac-toe", "network.module=my_net")


@pytest.mark.parametrize("command", ["init", "train"])
def test_an_unfit_part_is_refused_before_a_run_is_created(tmp_path: Path, command: str):
    options = ("-o", f"network.module={PARTS}:Narrow", "-o", "network.channels=8", "-o", "network.blocks=1")
    done = plyzero(command, "tic-tac-toe", "--run", str(tmp_path / "r"), *options)
    assert done.returncode == 2
    assert f"plyzero: network.module = {PARTS}:Narrow: forward() returned shapes [(3, 8), (3, 3)]" in done.stderr
    assert not (tmp_path / "r").exists()


def test_only_the_trainer_imports_the_parts_that_a_run_names(tmp_path: Path):
    names = ("network.module=own_only:Net", "trainer.targets=own_only:targets", "trainer.loss=own_only:loss")
    small_run(tmp_path / "r", "tic-tac-toe", *names)
    run = open_run(tmp_path / "r")  # as workers, status and players do
    assert run.settings.network.module == "own_only:Net"
    assert "own_only" not in sys.modules
    with pytest.raises(UserError, match=r"^network.module = own_only:Net: there is no module 'own_only'"):
        make_parts(run.game, run.settings)


def test_the_default_parts_are_found_from_inside_a_run_directory(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root)
    run = open_run(Path())
    assert type(make_parts(run.game, run.settings).network).__name__ == "ResidualNetwork"
