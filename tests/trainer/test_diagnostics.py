"""Diagnostics: a run that is not learning gets a warning with the likely cause; a run that learns gets none."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plyzero.errors import UserError
from plyzero.games.connect_four import ConnectFour
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import DRAW, Game
from plyzero.run.directory import Run
from plyzero.run.events import read_lines
from plyzero.run.segments import SegmentName
from plyzero.settings import TrainerSettings
from plyzero.trainer.diagnosis import guard
from plyzero.trainer.diagnosis.consistency import Agreement, Consistency
from plyzero.trainer.diagnosis.diagnostics import CHECK_SECONDS, Diagnostics, game_results, game_statistics, learned
from plyzero.trainer.diagnosis.guard import GameStatistics, Learned, Measurements, Staleness, diagnose
from plyzero.trainer.diagnosis.perspective import PointOfView
from plyzero.trainer.loop import Trainer
from plyzero.trainer.network import ResidualNetwork
from plyzero.trainer.window import Window
from tests.helpers.clock import Clock
from tests.helpers.learning import learn
from tests.helpers.recorded import random_games, recorded
from tests.helpers.runs import games_of, small_run
from tests.helpers.samples import made_up, samples_of
from tests.helpers.toys import Chain
from tests.helpers.zoo import Clobber, Kalah, Shuffle

AGREES = Agreement(compared=200, different=9)
DIFFERS = Agreement(compared=200, different=10)
GAMES = {"games": guard.NEWEST_GAMES, "openings": 400, "drawn": 0.1, "truncated": 0.0}
HEALTHY = Measurements(
    mature=True,
    statistics=GameStatistics(**GAMES, won=(0.6, 0.3), moved=(0.5, 0.5), foresight=(0.3, 0.01)),
    consistency=Consistency(positions=5000, repeats=AGREES, legal=AGREES, effects=AGREES, values=AGREES, images=AGREES),
    view=PointOfView(mover=0.1, first=0.0, turn=0.1, surplus=-9.0),
    held_out=Learned(policy=0.5, value=0.3),
    trained=Learned(policy=0.6, value=0.4),
    stale=Staleness(worker="w0", seconds=20.0),
)


def measured(**changed: Any) -> Measurements:
    """Return what a run that learns measures, but for the fields `changed`; a dict changes fields of a field."""
    fields = HEALTHY._asdict()
    return HEALTHY._replace(
        **{name: fields[name]._replace(**to) if isinstance(to, dict) else to for name, to in changed.items()}
    )


FIRST_PLAYERS = PointOfView(mover=0.0, first=0.1, turn=0.1, surplus=9.0)


def verdicts(run: Run) -> list[dict]:
    return [line for path in sorted(run.metrics.glob("trainer-*.jsonl")) for line in read_lines(path)]


FEW = {"games": guard.NEWEST_GAMES - 1, "openings": 1, "drawn": 1, "truncated": 1, "moved": (1, 0), "won": (0, 0)}
RARE = Agreement(compared=1000, different=49)
NO_FAULTS = {
    "nothing": {},
    "one player wins most games": {"statistics": {"won": (0.9, 0.0)}},
    "few games": {"statistics": FEW},
    "few comparisons": {"consistency": {"legal": Agreement(compared=2, different=2)}},
    "a rare rule that is not shown": {"consistency": dict.fromkeys(("legal", "effects", "values", "images"), RARE)},
}


@pytest.mark.parametrize("changed", NO_FAULTS.values(), ids=NO_FAULTS)
def test_a_run_that_learns_gets_no_warning(changed: dict[str, Any]):
    assert diagnose("nim", [measured(**changed)] * guard.CONFIRMATIONS) is None


WARNINGS = [
    ({"consistency": {"positions": 1}}, "shows the same for every position"),
    ({"consistency": {"repeats": DIFFERS}}, "not a function of the moves"),
    ({"consistency": {"legal": DIFFERS}}, "have different legal actions (10 of 200 compared)"),
    ({"consistency": {"effects": DIFFERS}}, "leads to different positions or results"),
    ({"consistency": {"values": DIFFERS}}, "have different proven values"),
    ({"view": FIRST_PLAYERS, "held_out": Learned(policy=0.5, value=0.09)}, "from the side of player 0"),
    ({"consistency": {"images": DIFFERS}}, "symmetries() is wrong"),
    ({"statistics": {"truncated": 0.51}}, "cut off at max_plies"),
    ({"statistics": {"moved": (1.0, 0.0)}}, "player 1 never moves"),
    ({"statistics": {"drawn": 1.0, "won": (0.0, 0.0)}}, "nothing to learn"),
    ({"statistics": {"won": (0.9, 0.0)}, "mature": False}, "player 1 won none"),
    ({"statistics": {"openings": guard.MIN_OPENINGS - 1}}, "games all look alike"),
    ({"stale": Staleness(worker="w7", seconds=guard.MAX_STALE_SECONDS + 1)}, "worker w7 plays with a model"),
]
"""Faults of the games or the workers, visible in the newest measurements alone."""

NOT_LEARNING = [
    ({"trained": Learned(policy=-0.6, value=0.1)}, "diverged"),
    ({"statistics": {"foresight": (-0.3, 0.01)}}, "predicts the opposite"),
    ({"held_out": Learned(policy=0.5, value=-0.1)}, "overfitting"),
    ({"held_out": Learned(policy=0.1, value=0.1), "trained": Learned(policy=0.2, value=0.01)}, "even the games"),
    ({"held_out": Learned(policy=0.24, value=0.01), "trained": Learned(policy=0.1, value=0.1)}, "observe()"),
    ({"held_out": Learned(policy=0.24, value=None), "trained": Learned(policy=0.3, value=None)}, "observe()"),
]
"""Faults of learning, in which the measurements of several models must agree."""


@pytest.mark.parametrize(("wrong", "said"), WARNINGS)
def test_a_fault_of_the_games_is_reported_at_once_with_its_likely_cause(wrong: dict[str, Any], said: str):
    assert said in str(diagnose("nim", [measured(**wrong)]))


@pytest.mark.parametrize(("wrong", "said"), NOT_LEARNING)
def test_a_fault_of_learning_is_reported_once_several_models_confirm_it(wrong: dict[str, Any], said: str):
    confirmed = [measured(**wrong)] * guard.CONFIRMATIONS
    assert said in str(diagnose("nim", confirmed))
    assert diagnose("nim", confirmed[1:]) is None
    assert diagnose("nim", [HEALTHY, *confirmed[1:]]) is None


@pytest.mark.parametrize(("wrong", "said"), NOT_LEARNING[1:])
def test_learning_is_not_judged_before_there_has_been_time_to_learn_or_on_few_games(wrong: dict[str, Any], said: str):
    few = wrong.get("statistics", {}) | {"games": guard.NEWEST_GAMES - 1}  # of a run that began with a trained network
    for young in (measured(**wrong, mature=False), measured(**{**wrong, "statistics": few})):
        assert diagnose("nim", [young] * guard.CONFIRMATIONS) is None


@pytest.mark.parametrize("changed", [{"mover": 0.08}, {"first": 0.02}, {"turn": 0.9}, {"surplus": 3.0}])
def test_an_observation_that_shows_who_is_to_move_may_show_any_side(changed: dict[str, float]):
    unknown = Learned()
    assert diagnose("nim", [measured(view=FIRST_PLAYERS, held_out=unknown)])
    assert diagnose("nim", [measured(view=FIRST_PLAYERS._replace(**changed), held_out=unknown)]) is None
    assert diagnose("nim", [measured(view=FIRST_PLAYERS)]) is None  # the network has learned the values


class Faceless(Clobber):
    """Every position looks alike."""

    def observe(self):
        return super().observe() & False


SEGMENT = SegmentName.parse("w0.0123abcd-00000000-g500-p5000-f5000-m0_0.zarr.zip")


def test_the_games_are_checked_before_there_is_a_model(clock: Clock):
    diagnostics = Diagnostics(GameSpec("faceless", Faceless()), TrainerSettings(), clock=clock)
    games = recorded(random_games(Faceless(), guard.NEWEST_GAMES))
    diagnostics.record(SEGMENT, games)
    assert "observe() shows the same for every position" in diagnostics.report["warning"]
    diagnostics.report = {}
    diagnostics.record(SEGMENT, games)
    assert diagnostics.report == {}  # not at every segment: it takes time
    clock.now += CHECK_SECONDS
    diagnostics.record(SEGMENT, games)
    assert diagnostics.report["warning"]


def statistics_of(start: Game, count: int = 100) -> GameStatistics:
    return game_statistics(game_results(recorded(random_games(start, count))))


def test_foresight_is_positive_for_right_values():
    games = recorded(random_games(Kalah(), 100))
    position, winner = games.positions, np.repeat(games.games["winner"], games.games["positions"])
    result = np.where(winner == DRAW, 0, np.where(winner == position["to_play"], 1, -1))
    decided = np.mean(games.games["winner"] != DRAW)
    for sign, fence in ((1, 1), (-1, 1), (1, 0)):
        position["network_value"], position["model_fence"] = sign * result, fence
        assert game_statistics(game_results(games)).foresight[0] == pytest.approx(sign * decided * fence)


def test_statistics_count_who_has_won_and_who_has_moved_and_games_cut_off():
    statistics = statistics_of(Kalah())
    assert statistics.won[0] + statistics.won[1] + statistics.drawn == pytest.approx(1)
    assert sum(statistics.moved) == pytest.approx(1)
    assert min(*statistics.won, *statistics.moved) > 0.2
    alone = statistics_of(Chain("000"), 3)
    assert (alone.won, alone.moved, alone.truncated) == ((0, 1), (1, 0), 0)
    start = Shuffle()
    start.max_plies = 3
    cut = statistics_of(start)
    assert (cut.truncated > 0.9, cut.drawn < 0.1) == (True, True)


def window_of(values: list[list[float]], policies: list[list[float]]) -> Window:
    """Positions of Connect Four, all alike to look at, of which only the first two columns are legal."""
    window = Window(ConnectFour())
    window.add("x", made_up(np.zeros((len(values), 84), bool), values, policies), size=len(values))
    return window


class Says(torch.nn.Module):
    """Says the same of every position: logits of 7 columns, and of win, draw and loss."""

    def __init__(self, policy: list[float], wdl: list[float]) -> None:
        super().__init__()
        self.policy, self.wdl = torch.log(torch.tensor(policy)), torch.log(torch.tensor(wdl))

    def forward(self, observations):
        return self.policy.expand(len(observations), -1), self.wdl.expand(len(observations), -1)


def test_the_target_is_all_there_is_to_learn_and_a_guess_is_nothing():
    measure = partial(learned, device=torch.device("cpu"), seed=1)
    one, other = [0.9, 0.0, 0.1], [0.1, 0.0, 0.9]
    window = window_of([one, other] * 50, [[0.9, 0.1]] * 100)
    guess = Says([0.2] * 7, [0.5, 1e-6, 0.5])
    assert measure(guess, window) == pytest.approx((0.0, 0.0), abs=0.02)
    knows = Says([0.9, 0.1, 0.5, 0.5, 0.5, 0.5, 0.5], [0.5, 1e-6, 0.5])
    assert measure(knows, window) == pytest.approx((1.0, 0.0), abs=0.02)
    assert max(measure(Says([0.1, 0.9, 1, 1, 1, 1, 1], [0.9, 1e-6, 0.1]), window)) < -1
    same = window_of([one] * 100, [[0.5, 0.5]] * 100)
    assert measure(guess, same) == measure(guess, Window(ConnectFour())) == Learned()


def test_whole_games_are_held_out_and_never_trained_on(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "trainer.window_positions=20000")
    learn(run, models=1, full=700)
    games = games_of(run)
    trained, held_out = Diagnostics(run.game, run.settings.trainer).split(games)
    assert 0.01 < len(held_out.games) / len(games.games) < 0.06
    assert len(trained.games) + len(held_out.games) == len(games.games)
    assert not set(trained.games["id"]) & set(held_out.games["id"])
    assert held_out.games["positions"].sum() == len(held_out.positions) == len(held_out.observations)
    assert held_out.positions["num_legal"].sum() == len(held_out.moves)
    resumed = Trainer(run, device="cpu")
    for window, part in (resumed.intake.diagnostics.held_out, held_out), (resumed.intake.window, trained):
        assert len(window) == len(samples_of(part).wdl)


def test_a_worker_that_loads_no_newer_model_causes_a_warning(clock: Clock):
    diagnostics = Diagnostics(GameSpec("kalah", Kalah()), TrainerSettings(), clock=clock)
    network, window = ResidualNetwork((10, 1, 1), 4, blocks=1, channels=8), Window(Kalah())
    games = recorded(random_games(Kalah(), 50))
    for minutes in range(9):
        step = 10 + 10 * minutes
        for worker, model in ("w0", step - 10), ("w1", 10):
            diagnostics.record(SEGMENT._replace(worker=worker, last_step=model), games)
        diagnostics.evaluate(network, window, step=step, device=torch.device("cpu"))
        assert diagnostics.report["stale_seconds"] == 60 * max(0, minutes - 1)
        clock.now += 60
    assert "worker w1" in diagnostics.report["warning"]


def test_a_loss_that_is_no_number_ends_the_trainer_with_what_to_do(tmp_path: Path):
    run = small_run(tmp_path / "r", "tic-tac-toe", "trainer.learning_rate=1e30", "trainer.max_grad_norm=1e30")
    with pytest.raises(UserError, match=r"is not finite at step .*learning_rate=2.5e[+]29"):
        learn(run, models=3, full=300)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["tests.helpers.zoo:Nim", "tests.helpers.zoo:Kalah"])
def test_a_game_that_can_be_learned_is_never_warned_of(tmp_path: Path, game: str):
    run = small_run(tmp_path / "r", game, "trainer.publish_seconds=0")
    learn(run, models=8, full=400)
    assert [line["warning"] for line in verdicts(run)] == [None] * 8
    assert verdicts(run)[-1]["value_learned"] > 0.05
