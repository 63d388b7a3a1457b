"""Imitation: what the network learns of recorded games, how that is measured, and a run that begins with it."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from plyzero.errors import UserError
from plyzero.kits.imitation import learning
from plyzero.kits.imitation.learning import (
    TARGETS,
    Imitated,
    Imitation,
    Progress,
    agreement,
)
from plyzero.network.model_loader import load_network, load_newest
from plyzero.network.onnx_network import reachable_observations
from plyzero.play.match import play_match
from plyzero.play.player import RandomPlayer
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from plyzero.run.configuration import resolve
from plyzero.run.directory import KEY, Run, open_run, plan_run, write_run
from plyzero.run.json_games import import_games, json_games
from plyzero.run.models import list_models, read_model
from plyzero.run.records import Games
from plyzero.search.evaluators import EvaluationBatch
from plyzero.settings import Settings
from plyzero.trainer import learner
from plyzero.trainer.export import with_metadata
from plyzero.trainer.first_model import read_bot, write_bot
from plyzero.trainer.loop import Trainer, begin_run
from plyzero.trainer.state import read_state
from tests.helpers.runs import SMALL, play_segment
from tests.helpers.samples import samples_of
from tests.helpers.teachers import encoded, game_lines, perfect

GAME = load_game("tic-tac-toe")
STEPS, PATIENCE = 40, 1
QUICK = ("network.channels=16", "trainer.batch_size=64", "trainer.warmup_steps=20", "trainer.ema_decay=0.95")


def settings_of(*options: str) -> Settings:
    return resolve(environment={}, options=[TARGETS, *SMALL, *QUICK, *options])


def imitation_of(lines: list[str], *options: str, seed: int = 0) -> Imitation:
    made = Imitation(GAME, settings_of(*options), seed=seed, device="cpu")
    for game in import_games(json_games(encoded(lines)), GAME):
        assert isinstance(game, Games)
        made.add(game)
    return made


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return game_lines(GAME.start, perfect, 400, opening=6)


@pytest.fixture(scope="module")
def learned(lines: list[str]) -> tuple[Imitated, list[Progress]]:
    shown: list[Progress] = []
    with pytest.MonkeyPatch.context() as patch:  # to save time
        patch.setattr(learning, "STEPS", STEPS)
        patch.setattr(learning, "PATIENCE", PATIENCE)
        return imitation_of(lines).learn(on_progress=shown.append), shown


@pytest.fixture(scope="module")
def bot(learned: tuple[Imitated, list[Progress]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bot") / "bot.onnx"
    write_bot(path, learned[0].model, learned[0].state)
    return path


def test_a_perfect_player_is_imitated_and_random_is_beaten(learned: tuple[Imitated, list[Progress]], bot: Path):
    found, rng = learned[0], np.random.default_rng(0)
    assert found.agreement.low > 0.7
    assert found.guess < 0.4
    assert found.agreement.low < found.agreement.share < found.agreement.high
    player = Bot.from_network(load_network(bot, GAME), simulations=0)
    result = play_match(player, RandomPlayer(rng), GAME.start, games=100, rng=rng)
    assert result.interval()[0] > 0.75


def test_training_ends_in_time_and_the_best_weights_are_kept(learned: tuple[Imitated, list[Progress]]):
    found, shown = learned
    losses = [each.held_out_policy + each.held_out_value for each in shown]
    best = int(np.argmin(losses))
    assert len(shown) == best + 1 + PATIENCE
    assert found.state["step"] == shown[best].step == (best + 1) * STEPS
    assert found.agreement.share == pytest.approx(shown[best].share)


def test_the_same_seed_gives_the_same_bot_on_any_processor(lines: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(learning, "STEPS", 4)
    monkeypatch.setattr(learning, "PATIENCE", 1)
    found = []
    for seed, flags in ((0, set()), (0, {"avx512_bf16"}), (1, set())):
        monkeypatch.setattr(learner, "cpu_flags", lambda flags=flags: flags)
        found.append(imitation_of(lines[:150], seed=seed).learn(on_progress=lambda _: None))
    one, same, other = found
    assert (one.model, one.agreement) == (same.model, same.agreement)
    assert one.model != other.model


def test_a_time_limit_ends_training_after_one_step_at_least(lines: list[str]):
    shown: list[Progress] = []
    found = imitation_of(lines[:150]).learn(minutes=0, on_progress=shown.append)
    assert [each.step for each in shown] == [found.state["step"]] == [1]


def test_equal_games_are_held_out_together(lines: list[str]):
    once, twice = imitation_of(lines), imitation_of([*lines, *lines])
    assert len(twice.held_out) == 2 * len(once.held_out)
    assert len(twice.training) == 2 * len(once.training)
    share = len(once.held_out) / (len(once.held_out) + len(once.training))
    assert 0.3 < share * learning.HELD_OUT < 3


def test_a_position_is_known_if_the_network_sees_its_like_under_a_symmetry():
    one = {"moves": ["a1", "b2", "c3", "a3", "c1", "b1", "c2"], "winner": "first", "opening_plies": 1}
    image = {**one, "moves": ["c1", "b2", "a3", "c3", "a1", "b1", "a2"]}
    other = {**one, "moves": ["b2", "a1", "b1", "c1", "b3"]}
    made = imitation_of([])
    games = import_games(json_games(encoded([json.dumps(each) for each in (one, image, other)])), GAME)
    keys = [made._position_keys(samples_of(each)) for each in games]
    assert np.array_equal(keys[0], keys[1])
    assert not np.isin(keys[2], keys[0]).any()
    assert len(set(keys[0])) == 6


def test_games_without_a_result_or_with_opening_moves_only_teach_nothing():
    made = imitation_of([json.dumps({"moves": ["a1", "b1", "a2", "b2", "a3"], "winner": "first", "opening_plies": 5})])
    assert (made.games, made.unused, len(made.training), len(made.held_out)) == (1, 1, 0, 0)
    with pytest.raises(UserError, match=r"^1 games are too few: 0 positions are left to train on, and 0 of the held"):
        made.learn(on_progress=lambda _: None)


def test_a_loss_that_is_not_finite_ends_training_with_what_to_do(lines: list[str]):
    with pytest.raises(UserError, match=r"^the loss is not finite at step \d+; try a lower learning rate, -o trainer"):
        imitation_of(lines[:150], "trainer.learning_rate=1e30", "trainer.warmup_steps=1").learn(on_progress=id)


def test_the_interval_of_agreement_allows_for_dependent_moves():
    rng, held, narrow = np.random.default_rng(0), 0, 0
    for _ in range(500):
        skill = rng.beta(4, 2, size=40)  # of each game; 2/3 on average
        of_game = np.repeat(np.arange(40), rng.integers(5, 20, size=40))
        found = agreement(rng.random(len(of_game)) < skill[of_game], of_game)
        held += found.low <= 2 / 3 <= found.high
        alone = agreement(rng.random(400) < 2 / 3, np.arange(400))
        narrow += alone.low <= 2 / 3 <= alone.high
    assert 0.91 <= held / 500 <= 0.985
    assert 0.92 <= narrow / 500 <= 0.985


def test_one_game_is_one_observation():
    found = agreement(np.array([True, False, True]), np.zeros(3, np.int64))
    assert found.high - found.low > 0.8


def outputs(network: Callable[[EvaluationBatch], object]) -> list[np.ndarray]:
    return [np.asarray(each) for each in network(EvaluationBatch(reachable_observations(GAME), list))]


@pytest.mark.slow
def test_a_run_continues_the_training_of_a_bot_with_an_empty_ledger(bot: Path, tmp_path: Path):
    planned = plan_run(tmp_path / "r", GAME, options=[*SMALL, *QUICK])
    begin_run(planned, *read_bot(bot, planned))
    assert not (tmp_path / "r" / "run.toml").exists()
    write_run(planned)
    run = open_run(tmp_path / "r")
    (name,) = list_models(run.models)
    state = read_state(bot.with_suffix(".pt"), "")
    assert (name.fence, name.step) == (1, state["step"])
    assert read_model(run.models, name) == with_metadata(bot.read_bytes(), KEY, run.id.text)
    assert load_network(run.root).label == str(name)
    first = load_newest(run.models, run.game)
    assert all(map(np.array_equal, outputs(first), outputs(load_network(bot, GAME))))
    with closing(Trainer(run, device="cpu")) as trainer:
        assert trainer.learner.step == name.step
        assert all(
            torch.equal(value, trainer.learner.averaged.state_dict()[key]) for key, value in state["averaged"].items()
        )
        ledger = trainer.intake.ledger
        assert (ledger.bootstrap, ledger.generated, ledger.trained, ledger.credit) == (0, 0, 0, 0)
        assert trainer.missing_positions() == run.settings.selfplay.bootstrap_positions
        play_segment(run, full=400, fence=1)  # whose model has step 0, so its positions are said to be bootstrap
        trainer.ingest()
        assert trainer.missing_positions() == 0
        trainer.train_step()
        assert trainer.learner.step == name.step + 1
        assert ledger.trained == run.settings.trainer.batch_size
        trainer.publish()
    assert [each.fence for each in list_models(run.models)] == [2, 1]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("network.channels=12", "is another network than that of the run, which has channels = 12; give -o network.c"),
        ("network.blocks=2", r"which has blocks = 2; give -o network.blocks=1$"),
    ],
)
def test_a_bot_of_another_network_begins_no_run(bot: Path, tmp_path: Path, option: str, message: str):
    with pytest.raises(UserError, match=message):
        read_bot(bot, plan_run(tmp_path / "r", GAME, options=[*SMALL, *QUICK, option]))
    assert not (tmp_path / "r").exists()


def test_a_bot_without_its_weights_or_with_those_of_another_is_refused(bot: Path, tmp_path: Path):
    run = plan_run(tmp_path / "r", GAME, options=[*SMALL, *QUICK])
    alone, weights = tmp_path / "alone.onnx", bot.with_suffix(".pt")

    def check_refused(path: Path, sentence: str, run: Run = run) -> None:
        with pytest.raises(UserError, match=sentence):
            read_bot(path, run)

    alone.write_bytes(bot.read_bytes())
    check_refused(alone, r"alone.pt does not exist; `plyzero imitate` writes it beside alone.onnx, and a")
    alone.with_suffix(".pt").write_bytes(weights.read_bytes()[:1000])
    check_refused(alone, r"alone.pt cannot be read: it is damaged; `plyzero imitate` writes it")
    write_bot(alone, b"another", read_state(weights, ""))
    alone.write_bytes(bot.read_bytes())
    check_refused(alone, r"alone.pt is not of alone.onnx, but of another model; `plyzero imitate`")
    other = replace(run, game=load_game("connect-four"), identity="connect-four v1")
    check_refused(bot, r"bot.onnx does not fit: its game is 'tic-tac-toe v1', expected 'connect-four", other)
    check_refused(Path("nowhere.onnx"), r"^cannot use nowhere.onnx: No such file or directory$")
    assert not (tmp_path / "r").exists()
