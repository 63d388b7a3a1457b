"""Points and the final board: a network learns them, and is exported with them."""

import numpy as np
import pytest
import torch

from plyzero.games.othello import Othello
from plyzero.network.model_loader import load_newest
from plyzero.network.onnx_network import Network, run_on_cpu
from plyzero.ops.sizes import network_weights
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import replay_game
from plyzero.rules.game import ONGOING, Game
from plyzero.run.configuration import preset_for
from plyzero.run.records import UNKNOWN_SCORE
from plyzero.search.evaluators import EvaluationBatch
from plyzero.settings import NetworkSettings, TrainerSettings
from plyzero.trainer.export import export, quantise
from plyzero.trainer.learner import Learner
from plyzero.trainer.loss import MIN_SCORE_SD, board_loss, loss, score_loss
from plyzero.trainer.network import make_network
from plyzero.trainer.targets import board_targets, score_targets
from plyzero.trainer.window import Window
from tests.helpers.learning import training
from tests.helpers.recorded import random_games, recorded
from tests.helpers.runs import play_segment, small_run
from tests.helpers.samples import made_up, samples_of
from tests.helpers.toys import Harvest

OTHELLO = load_game("othello(size=6)")
PLAIN = NetworkSettings(blocks=1, channels=8)
POINTS = NetworkSettings(blocks=1, channels=8, points=True)


def searched(start: Game, count: int):
    games = recorded(random_games(start, count))
    games.positions["full"] = 1
    return games


@pytest.mark.parametrize("start", [Harvest(), OTHELLO.start])
def test_the_target_is_the_final_lead_of_the_player_to_move(start: Game):
    games = searched(start, 5)
    score, board, row = score_targets(games, start), board_targets(games, start), 0
    for one in games:
        *_, (end, _) = replay_game(start, one.games[0], one.positions["action"].tolist())
        for position in one.positions:
            player = int(position["to_play"])
            assert score[row] == pytest.approx(end.outcome().lead(player) / start.max_score)
            side = 1 if player == end.to_play else -1
            assert np.array_equal(board[row], side * end.final_board().astype(np.float16))
            row += 1


def test_where_the_score_is_unknown_there_is_no_target():
    games = searched(Harvest(), 3)
    games.games["score"][1], games.games["winner"][2] = UNKNOWN_SCORE, ONGOING
    assert np.isnan(score_targets(games, Harvest())).tolist() == [False] * 6 + [True] * 12
    assert np.isnan(board_targets(games, Harvest())[:, 0, 0, 0]).tolist() == [False] * 12 + [True] * 6


def test_without_points_samples_have_neither():
    samples = samples_of(searched(Harvest(), 2))
    assert (samples.score, samples.board) == (None, None)
    window = Window(Harvest())
    window.add("x", samples, size=100)
    batch = window.sample(5, np.random.default_rng(0))
    assert (np.isnan(batch.score).all(), batch.board.shape) == (True, (5, 0, 1, 1))


def test_a_window_turns_the_final_board_as_it_turns_the_observation():
    start, rng = Othello(6), np.random.default_rng(0)
    own, other = rng.random((2, 40, 6, 6)) < 0.5
    observations = np.stack([own, other], axis=1)
    score, board = (own.sum((1, 2)) / 100).astype(np.float32), (own.astype(np.float16) - other)[:, None]
    samples = made_up(observations, np.full((40, 3), 1 / 3), np.full((40, 37), 1 / 37), score=score, board=board)
    window = Window(start)
    window.add("x", samples, size=40)
    batch = window.sample(200, rng)
    assert np.array_equal(batch.board[:, 0], batch.observations[:, 0] - batch.observations[:, 1])
    assert batch.score == pytest.approx(batch.observations[:, 0].sum((1, 2)) / 100)


def test_the_losses_have_known_values_and_ignore_what_is_unknown():
    nan = float("nan")
    score, expected = torch.tensor([0.05, nan]), torch.tensor([[0.0, 0.0], [9.0, 9.0]])
    variance = 1 + 0.02**2
    known = (variance * np.log(variance) + 0.05**2) / 2
    assert score_loss(expected, score).item() == pytest.approx(known, rel=1e-3)
    assert score_loss(expected, torch.tensor([nan, nan])).item() == 0
    board, logits = torch.tensor([[[[1.0, nan]]], [[[-1.0, 0.0]]]]), torch.tensor([[[[0.5, 9.0]]], [[[0.5, 0.0]]]])
    likely = 1 / (1 + np.exp(-1.0))  # tanh(x) = 2 σ(2x) - 1
    assert board_loss(logits, board).item() == pytest.approx(-np.log([likely, 1 - likely, 0.5]).mean(), rel=1e-5)


@pytest.mark.parametrize("log_sd", [-9.0, -1.0, 2.0])
def test_the_gradient_of_the_score_is_bounded_however_certain_the_network_is(log_sd: float):
    expected = torch.tensor([[0.25, log_sd]], requires_grad=True)
    score_loss(expected, torch.tensor([-0.5])).backward()
    variance = np.exp(2 * log_sd) + MIN_SCORE_SD**2
    share = np.exp(2 * log_sd) / variance  # of it that the network has expected itself
    assert expected.grad[0].tolist() == pytest.approx([0.75, share * (variance - 0.75**2)], rel=1e-4)


def outputs_of(settings: NetworkSettings, start: Game) -> list[tuple[int, ...]]:
    observations = torch.zeros(2, *start.observation_shape)
    return [tuple(each.shape) for each in make_network(settings, start).eval()(observations)]


def test_new_runs_of_games_with_points_expect_them_and_old_runs_do_not():
    both = [(2, 37), (2, 3), (2, 2), (2, 1, 6, 6)]
    assert preset_for("quick", OTHELLO.start)["network"]["points"] is True
    assert "points" not in preset_for("quick", load_game("connect-four").start).get("network", {})
    assert outputs_of(POINTS, OTHELLO.start) == both
    assert outputs_of(NetworkSettings(), OTHELLO.start) == both[:2]
    assert outputs_of(POINTS, load_game("backgammon").start)[1:] == [(2, 3), (2, 2)]
    assert outputs_of(POINTS, load_game("tic-tac-toe").start) == [(2, 9), (2, 3)]


@pytest.mark.parametrize("name", ["othello(size=6)", "backgammon"])
def test_the_weights_of_points_are_counted(name: str):
    start = load_game(name).start
    counted = [network_weights(start, settings)[0] for settings in (POINTS, PLAIN)]
    made = [sum(each.numel() for each in make_network(settings, start).parameters()) for settings in (POINTS, PLAIN)]
    assert counted[0] - counted[1] == made[0] - made[1] > 0


def test_the_other_weights_are_those_of_a_network_without_points():
    made = []
    for settings in (PLAIN, POINTS):
        torch.manual_seed(0)
        made.append(make_network(settings, OTHELLO.start).state_dict())
    plain, with_points = made
    assert {*with_points} - {*plain} == {"score.weight", "score.bias", "board.weight", "board.bias"}
    assert all(torch.equal(values, with_points[name]) for name, values in plain.items())


def test_an_exported_network_gives_the_score_and_the_final_board_of_torch():
    torch.manual_seed(1)
    network = make_network(POINTS, OTHELLO.start).eval()
    observations = (np.random.default_rng(0).random((8, 2, 6, 6)) < 0.4).astype(np.float32)
    content = export(network, OTHELLO, observations, metadata={})
    loaded = Network(content, OTHELLO, label="x")
    with torch.no_grad():
        _, _, score, board = network(torch.from_numpy(observations))
    found = loaded(EvaluationBatch(observations, list))
    assert found.wdl.shape == (8, 4)
    assert found.wdl[:, :3].sum(1) == pytest.approx(1, abs=1e-4)
    assert found.wdl[:, 3] == pytest.approx(score[:, 0].numpy(), abs=1e-4)
    assert loaded.has_board
    assert loaded.final_board(observations[3]) == pytest.approx(torch.tanh(board[3]).numpy(), abs=1e-4)
    rounded = Network(quantise(content, observations), OTHELLO, label="8 bits")
    assert rounded(EvaluationBatch(observations, list)).wdl[:, 3] == pytest.approx(found.wdl[:, 3], abs=0.1)
    plain = export(make_network(PLAIN, OTHELLO.start).eval(), OTHELLO, observations, metadata={})
    assert run_on_cpu(plain, observations).wdl.shape == (8, 3)
    assert not Network(plain, OTHELLO, label="x").has_board


def test_a_network_learns_points_and_the_final_board():
    start, settings = Harvest(), TrainerSettings(warmup_steps=1, learning_rate=0.01)
    torch.manual_seed(0)
    learner = Learner(make_network(POINTS, start), loss, settings, torch.device("cpu"))
    window = Window(start)
    window.add("x", samples_of(searched(start, 300), start), size=10_000)
    batch = window.sample(256, np.random.default_rng(1))

    def error_and_loss() -> tuple[float, float]:
        with torch.no_grad():
            _, _, score, board = learner.network.eval()(torch.from_numpy(batch.observations))
        return np.abs(score[:, 0].numpy() - batch.score).mean(), board_loss(board, torch.from_numpy(batch.board)).item()

    _, before = error_and_loss()
    for step in range(200):
        learner.learn(window.sample(64, np.random.default_rng(step)))
    error, after = error_and_loss()
    assert error < np.abs(batch.score).mean() * 0.9
    assert after < before


def test_a_run_of_a_game_with_points_trains_and_publishes(tmp_path):
    run = small_run(tmp_path / "r", "othello(size=6)")
    assert run.settings.network.points
    play_segment(run)
    with training(run, steps=3) as trainer:
        trainer.publish()
        assert np.isfinite(trainer.intake.window.sample(8, trainer.intake.rng).score).all()
    network = load_newest(run.models, run.game)
    assert network.has_board
    position = run.game.start
    bot = Bot.from_network(network, simulations=8)
    assert abs(bot.search([position])[0].score) <= 36
    assert bot.final_board(position).shape == (1, 6, 6)
