"""The trainer: it learns, exports what it learned, and goes on after a stop as if there had been none."""

import errno
import itertools
import json
import os
import shutil
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from plyzero.errors import UserError
from plyzero.files import read_file, write_file
from plyzero.network.model_loader import load_newest
from plyzero.network.onnx_network import Network, run_on_cpu
from plyzero.run.directory import Run, open_run
from plyzero.run.events import read_lines, read_reading
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import ModelName, list_models
from plyzero.run.segments import list_segments, read_segment
from plyzero.search.evaluators import Evaluation, EvaluationBatch
from plyzero.settings import SelfplaySettings
from plyzero.trainer.diagnosis.diagnostics import Diagnostics
from plyzero.trainer.export import ExportError, Forms, export
from plyzero.trainer.loop import Trainer, run_trainer
from plyzero.trainer.loss import loss
from plyzero.trainer.network import GlobalPooling, PlanesPolicy, ResidualNetwork
from plyzero.trainer.publisher import Publisher
from plyzero.trainer.state import NUM_STATES, load_state
from tests.helpers.beats import fields_of, process_of
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.learning import training
from tests.helpers.runs import play_bootstrap, play_segment, small_run
from tests.helpers.surroundings import wait_until


@pytest.fixture(scope="module")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose workers have made their bootstrap positions and wait."""
    run = small_run(tmp_path_factory.mktemp("run") / "r", "tic-tac-toe")
    play_bootstrap(run, incarnation="00000001")
    return run


@pytest.fixture
def run(bootstrapped: Run, tmp_path: Path) -> Run:
    """A copy of it."""
    return replace(bootstrapped, root=Path(shutil.copytree(bootstrapped.root, tmp_path / "r")))


def test_the_loss_is_zero_only_for_its_targets_and_ignores_illegal_actions():
    legal = torch.tensor([[True, True, False]])
    policy, wdl = torch.tensor([[0.25, 0.75, 0.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    certain = torch.tensor([[50.0, 0.0, 0.0]])
    perfect = loss(torch.log(torch.tensor([[0.25, 0.75, 9.0]])), certain, legal, policy, wdl)
    assert (perfect.policy.item(), perfect.value.item()) == pytest.approx((0, 0), abs=1e-6)
    uniform = loss(torch.zeros(1, 3), torch.zeros(1, 3), legal, policy, wdl)
    divergence = np.log(2) + 0.25 * np.log(0.25) + 0.75 * np.log(0.75)
    assert (uniform.policy.item(), uniform.value.item()) == pytest.approx((divergence, np.log(3)), abs=1e-6)


def test_a_position_with_one_legal_action_has_a_finite_gradient():
    logits = torch.zeros(1, 3, requires_grad=True)
    one_hot = torch.tensor([[0.0, 1.0, 0.0]])
    loss(logits, torch.zeros(1, 3), one_hot > 0, one_hot, one_hot).total.backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(("shape", "actions"), [((2, 3, 3), 9), ((1, 1, 1), 2), ((5, 6, 4), 97)])
def test_the_network_is_made_from_the_shapes_alone(shape: tuple[int, int, int], actions: int):
    network = ResidualNetwork(shape, actions, blocks=2, channels=8)
    logits, wdl = network(torch.zeros(3, *shape))
    assert (logits.shape, wdl.shape) == ((3, actions), (3, 3))
    sizes = {tuple(each.shape[2:]) for each in network.parameters() if each.ndim == 4}
    assert sizes == ({(1, 1)} if shape[1:] == (1, 1) else {(1, 1), (3, 3)})  # without a board there are no neighbours


def test_what_is_pooled_from_the_whole_board_reaches_every_square():
    layer = GlobalPooling(4)
    features = torch.rand(2, 4, 5, 6)
    assert torch.equal(layer(features), features)  # it has learned nothing yet
    torch.nn.init.normal_(layer.bias.weight, generator=torch.Generator().manual_seed(0))
    features[1] = features[0]
    features[1, 2, 0, 0] += 1
    with torch.no_grad():
        first, second = layer(features)
    assert not torch.equal(first[:, 4, 5], second[:, 4, 5])


def test_a_policy_plane_has_the_same_weights_on_every_square():
    head, generator = PlanesPolicy(8, planes=3, others=1).eval(), torch.Generator().manual_seed(0)
    row, column = 2, 3
    features = torch.zeros(2, 8, 4, 5)
    features[0, :, 0, 0] = features[1, :, row, column] = torch.rand(8, generator=generator)
    with torch.no_grad():
        first, second = head(features)
    corner, square = first[:-1].reshape(3, 4, 5), second[:-1].reshape(3, 4, 5)
    assert torch.equal(square[:, row, column], corner[:, 0, 0])
    assert not torch.allclose(square[:, row, column], square[:, 0, 0])
    assert torch.equal(square[:, 0, 1], corner[:, 0, 1])
    assert first[-1] == pytest.approx(second[-1])  # no square matters for what belongs to none


def test_a_network_with_policy_planes_is_small():
    def weights(policy_planes: int) -> int:
        network = ResidualNetwork((4, 8, 8), 4672, blocks=1, channels=32, policy_planes=policy_planes)
        return sum(each.numel() for each in network.parameters())

    assert weights(73) < weights(0) / 30


def wrong_by(content: bytes, observations: np.ndarray, *, logits_off: float = 0.0, wdl_off: float = 0.0) -> Evaluation:
    """An answer of ONNX Runtime with an error added, to a logit as a share of the largest one, or to a probability."""
    logits, wdl = run_on_cpu(content, observations)
    logits[0, 0] += logits_off * np.abs(logits).max()
    wdl[0, 0] += wdl_off
    return Evaluation(logits, wdl)


def positions_of(run: Run) -> np.ndarray:
    with training(run, steps=0) as trainer:
        return trainer.intake.window.sample(64, np.random.default_rng(0)).observations


def loud_network(scale: float, **size: int) -> ResidualNetwork:
    """An untrained network whose logits are `scale` times as large as usual."""
    torch.manual_seed(0)
    network = ResidualNetwork((2, 3, 3), 9, **size).eval()
    with torch.no_grad():
        for weights in (*network.policy[-1].parameters(), *network.value[-1].parameters()):
            weights.mul_(scale)
    return network


def test_an_untrained_network_of_8_by_96_with_large_logits_can_be_exported(run: Run):
    observations, network = positions_of(run), loud_network(20_000, blocks=8, channels=96)
    with torch.no_grad():
        logits, wdl_logits = network(torch.from_numpy(observations))
    exported = Network(export(network, run.game, observations, metadata={}), run.game, label="x")
    said = exported(EvaluationBatch(observations, list))
    assert logits.abs().max() > 500
    assert np.abs(said.logits - logits.numpy()).max() > 1e-4  # which is what was refused
    assert wdl_logits.abs().max() > 100


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize(("wrong", "name"), [({"logits_off": 2e-2}, "logits"), ({"wdl_off": 6e-2}, "probabilities")])
def test_a_wrong_export_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch, scale: float, wrong: dict, name: str):
    observations = positions_of(run)
    monkeypatch.setattr("plyzero.trainer.export.run_on_cpu", partial(wrong_by, **wrong))
    with pytest.raises(ExportError, match=f"the {name} of torch and ONNX Runtime differ"):
        export(loud_network(scale, blocks=1, channels=8), run.game, observations, metadata={})


TORCH_FAILS = ("plyzero.trainer.export._to_onnx", Mock(side_effect=RuntimeError("no operator")))
WRONG_ANSWER = ("plyzero.trainer.export.run_on_cpu", partial(wrong_by, wdl_off=2e-4))
VOLUME_IS_FULL = ("plyzero.trainer.publisher.publish_model", failing(errno.ENOSPC))


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (WRONG_ANSWER, "the probabilities of torch and ONNX Runtime differ by 2"),
        (TORCH_FAILS, "the export fails: RuntimeError: no operator"),
        (VOLUME_IS_FULL, "No space left on device"),
    ],
)
def test_a_lasting_export_failure_loses_nothing(run: Run, monkeypatch: pytest.MonkeyPatch, failure, said: str):
    with training(run, steps=0) as trainer:
        monkeypatch.setattr(*failure)
        for _ in range(3):
            trainer.train_step()
            trainer.publish()
        assert list_models(run.models) == []
        warning = trainer.reporter.describe("training")["warning"]
        assert warning.startswith("step 3 is not published, training goes on: ")
        assert said in warning
        assert len(list(run.trainer.glob("state-*"))) == NUM_STATES  # so that retention goes on
        trainer.train_step()
        trainer.publisher.is_first = False
        trainer.end()
    monkeypatch.undo()
    with training(run, steps=0) as resumed:
        assert resumed.learner.step == 4
        resumed.publish()
        assert resumed.reporter.describe("training")["warning"] is None
    *_, line = read_lines(run.metrics / "trainer-000002.jsonl")
    assert (line["step"], line["policy_loss"]) == (4, None)  # it has made no step itself
    assert [name.step for name in list_models(run.models)] == [4]


@pytest.fixture
def clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of trainers."""
    for module in ("loop", "publisher", "reporter"):
        monkeypatch.setattr(f"plyzero.trainer.{module}.time", SimpleNamespace(monotonic=clock))
    return clock


def test_the_state_is_saved_before_there_is_a_model(run: Run, clock: Clock):
    with training(run) as trainer:
        trainer.maintain()
        assert load_state(run.trainer) is None
        clock.now += 60
        trainer.maintain()
        trainer.train_step()
        trainer.maintain()  # not at every step
    with closing(Trainer(run, device="cpu")) as resumed:  # the first one was killed
        assert resumed.learner.step == 1


def test_a_trainer_that_no_worker_ever_joins_asks_whether_this_is_the_run(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
):
    run = small_run(tmp_path / "r")
    with closing(Trainer(run, device="cpu")) as trainer:
        for seconds in (0, 29, 2, 10, 10):
            clock.now += seconds
            trainer.maintain()
            assert bool(trainer.reporter.describe("waiting").get("warning")) == (clock.now >= 1031)
        says = (
            f"no worker has written here for 30 s; is {run.root} the run you meant? plyzero selfplay --run {run.root}"
        )
        assert str(trainer.reporter.describe("waiting")["warning"]).startswith(says)
        assert caplog.text.count(says) == 1
        Heartbeat(run.workers / "w0.00000001.json").beat({"role": "selfplay", "state": "compiling"})
        trainer.maintain()
        assert not trainer.reporter.describe("waiting").get("warning")


def test_publishing_takes_no_more_time_than_training(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    with training(run) as trainer:
        monkeypatch.setattr(trainer, "_publish", lambda: setattr(clock, "now", clock.now + 100))
        trainer.publisher.is_first = False
        trainer.publish()
        assert trainer.settings.publish_seconds < 100
        assert trainer.publish_is_due(waiting=True)  # there is nothing to train
        clock.now += 99
        assert not trainer.publish_is_due(waiting=False)
        clock.now += 1
        assert trainer.publish_is_due(waiting=False)


def test_models_that_could_not_be_exported_make_no_worker_look_outdated(run: Run, monkeypatch: pytest.MonkeyPatch):
    with training(run) as trainer:
        monkeypatch.setattr(*TORCH_FAILS)
        trainer.intake.diagnostics = Diagnostics(
            run.game, run.settings.trainer, clock=iter(range(0, 10**6, 1000)).__next__
        )
        trainer.publish()
        name = next(iter(list_segments(run.segments)))
        trainer.intake.diagnostics.record(name, read_segment(run.segments / str(name), run.game))  # an older model's
        monkeypatch.undo()
        trainer.publish()
        assert trainer.intake.diagnostics.report["stale_seconds"] == 0


def test_a_trainer_that_takes_turns_spends_all_it_has_and_then_waits_until_that_is_much(run: Run):
    run = open_run(run.root, options=["selfplay.when_ahead=turns"])
    with training(run, steps=0) as trainer:
        steps = spend(trainer)
        assert (trainer.turn_ends(), trainer.publish_is_due(waiting=True)) == (True, True)  # the first model
        trainer.publish()
        assert not trainer.turn_ends()
        batch, ratio = trainer.settings.batch_size, trainer.settings.replay_ratio
        trainer.intake.ledger.credit += batch  # enough for a step of a trainer that takes no turns
        lacking = trainer.missing_positions()
        assert lacking > batch / ratio
        trainer.intake.ledger.credit += ratio * lacking
        assert spend(trainer) > steps
        assert trainer.turn_ends()
    with closing(Trainer(run, device="cpu")) as resumed:
        resumed.intake.ledger.credit = batch
        assert resumed.missing_positions() == lacking


def spend(trainer: Trainer) -> int:
    """Train until positions are missing. Return the steps so far."""
    while not trainer.missing_positions():
        assert not (trainer.turn_ends() or trainer.publish_is_due(waiting=False)) or not trainer.learner.step
        trainer.train_step()
    return trainer.learner.step


def test_a_state_is_saved_before_its_model_is_published(run: Run, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []
    monkeypatch.setattr("plyzero.trainer.publisher.save_state", lambda *_, **__: order.append("state"))
    monkeypatch.setattr("plyzero.trainer.publisher.export", lambda *_, **__: order.append("export") or b"")
    monkeypatch.setattr("plyzero.trainer.publisher.publish_model", lambda *_, **__: order.append("model"))
    with training(run) as trainer:
        trainer.publish()
    assert order == ["state", "export", "model"]


@pytest.mark.parametrize("weights", ["network", "averaged"])
def test_a_network_that_has_diverged_replaces_no_state(run: Run, weights: str):
    with training(run) as trainer:
        trainer.publisher.save()
        trainer.train_step()
        with torch.no_grad():
            next(getattr(trainer.learner, weights).parameters()).mul_(float("inf"))
        with pytest.raises(UserError, match=r"is not finite at step 2; the last saved state is kept: .*learning_rate="):
            trainer.publish()
    assert load_state(run.trainer)["step"] == 1


def test_an_error_of_the_volume_that_passes_costs_no_state(run: Run, monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []
    monkeypatch.setattr("plyzero.volume_errors.time.sleep", slept.append)
    with training(run) as trainer:
        monkeypatch.setattr("plyzero.trainer.state.write_file", failing(errno.EIO, 2, then=write_file))
        trainer.end()
    for place, times, call in (
        ("plyzero.trainer.state.read_file", 2, read_file),
        ("plyzero.trainer.publisher.list_models", 1, list_models),
        ("plyzero.run.lease.files.write_file", 1, write_file),
    ):
        monkeypatch.setattr(place, failing(errno.ESTALE, times, then=call))
    with closing(Trainer(run, device="cpu")) as resumed:
        assert resumed.learner.step == 1
    assert slept == [1, 2, 1, 1, 1, 2]


def test_a_state_that_stays_stops_no_save(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr("plyzero.trainer.state.remove", failing(errno.EIO))
    with closing(Trainer(run, device="cpu")) as trainer:
        for step in (1, 2, 3):
            trainer.learner.step = step
            trainer.publisher.save()
    assert load_state(run.trainer)["step"] == 3
    assert len(list(run.trainer.glob("state-*"))) == 3
    assert "an old state is not removed" in caplog.text


def test_the_moving_average_of_the_weights_is_what_is_published(run: Run):
    with training(open_run(run.root, options=["trainer.ema_decay=0.9"]), steps=19) as trainer:
        before = [weights.clone() for weights in trainer.learner.averaged.module.parameters()]
        trainer.train_step()
        trainer.publish()
    trained, averaged = trainer.learner.network.eval(), trainer.learner.averaged.module.eval()
    for old, new, found in zip(before, trained.parameters(), averaged.parameters(), strict=True):
        assert torch.allclose(found, 0.9 * old + 0.1 * new, atol=1e-6)
    observations = trainer.intake.window.sample(64, np.random.default_rng(0)).observations
    published = load_newest(run.models, run.game)(EvaluationBatch(observations, list)).logits
    with torch.no_grad():
        of_average, of_trained = (each(torch.from_numpy(observations))[0].numpy() for each in (averaged, trained))
    assert np.abs(published - of_average).max() < 1e-4
    assert np.abs(published - of_trained).max() > 1e-2


def test_a_restarted_trainer_goes_on_exactly_where_it_was(run: Run):
    with training(run, steps=6) as straight:
        straight.publisher.save()
    resumed = Trainer(run, device="cpu")
    assert (resumed.learner.step, resumed.intake.ledger) == (6, straight.intake.ledger)
    assert resumed.intake.replay_reader.cursor == straight.intake.replay_reader.cursor
    assert resumed.intake.window.names == straight.intake.window.names
    resumed.ingest()
    assert resumed.intake.ledger == straight.intake.ledger
    for trainer in (straight, resumed):
        for _ in range(4):
            trainer.train_step()
    torch.testing.assert_close(
        resumed.learner.averaged.state_dict(), straight.learner.averaged.state_dict(), rtol=0, atol=0
    )


def test_a_crash_rolls_ledger_and_weights_back_together(run: Run):
    with training(run) as trainer:
        trainer.publisher.save()
        for _ in range(3):
            trainer.train_step()
    resumed = Trainer(run, device="cpu")
    assert (resumed.learner.step, resumed.intake.ledger.trained) == (1, 32)


def test_the_first_model_is_published_when_the_bootstrap_is_learned(run: Run):
    stop = threading.Event()
    with ThreadPoolExecutor() as threads:
        trainer = threads.submit(run_trainer, run, device="cpu", stop=stop)
        try:
            wait_until(lambda: list_models(run.models) or trainer.done())
        finally:
            stop.set()
    trainer.result()
    network = load_newest(run.models, run.game)
    assert network.step == 25
    (line,) = read_lines(run.metrics / "trainer-000001.jsonl")
    assert (line["version"], line["step"], line["trained_positions"], line["replay_ratio"]) == (1, 25, 800, 0.0)
    assert line["policy_loss"] > 0
    (events,) = (run.tensorboard / "trainer").iterdir()
    assert struct.pack("<f", line["policy_loss"]) in events.read_bytes()
    beat = fields_of(run.workers / "trainer.json")
    names = list(list_segments(run.segments))
    reading = read_reading(run.trainer)
    assert reading is not None
    assert (beat["state"], reading.cursor) == ("stopped", {"00000001": len(names)})
    assert beat["games"] == reading.games == sum(name.games for name in names)
    assert "cursor" not in {*line, *beat}  # which every worker reads
    assert json.loads(network.metadata["settings"])["network"]["channels"] == 8


def test_with_games_of_another_run_the_first_model_comes_as_soon(run: Run):
    for sequence in range(5):  # 1000 positions that a model has played, each with credit for 8
        play_segment(run, sequence=sequence, fence=1, step=1)
    with training(run, steps=0) as trainer:
        assert trainer.intake.ledger.credit > 4000
        while trainer.intake.ledger.credit > 0 and not trainer.publish_is_due(waiting=False):
            trainer.train_step()
        assert trainer.intake.ledger.trained == run.settings.bootstrap_credit == 800


def test_a_trainer_beats_while_it_resumes(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    path, stop, seen = run.workers / "trainer.json", threading.Event(), [{"state": ""}]
    Heartbeat(path).beat({"role": "trainer", "state": "training", "credit": 900, "credit_enough": 800, "pid": 1})

    def resume(publisher: Publisher) -> None:
        while seen[-1]["state"] != "starting":
            seen.append(fields_of(path) or {"state": ""})

    caplog.set_level("INFO")
    monkeypatch.setattr(Publisher, "resume", resume)
    monkeypatch.setattr("plyzero.trainer.loop.LOG_SECONDS", 0.0)
    monkeypatch.setattr(Trainer, "ingest", lambda _, **__: stop.set())
    run_trainer(run, device="cpu", stop=stop)
    assert (seen[-1]["credit"], seen[-1]["credit_enough"], seen[-1]["pid"]) == (900, 800, os.getpid())  # for workers
    wanted = run.settings.selfplay.bootstrap_positions
    counts = "step 0, 0 games with 0 positions read, replay ratio 0.00 of 8, trains 0 positions/s"
    assert f"waiting for {wanted} positions: {counts}" in caplog.messages


@pytest.mark.parametrize(("seconds", "wanted"), [(0, 4096), (20, 1024), (60, 256)])
def test_where_games_are_slow_fewer_positions_must_do_for_the_first_model(run: Run, seconds: float, wanted: int):
    settings = run.settings.model_copy(update={"selfplay": SelfplaySettings()})
    with closing(Trainer(replace(run, settings=settings), device="cpu")) as trainer:
        trainer.intake.minutes = seconds / 60
        assert trainer.missing_positions() == wanted
        trainer.intake.ledger.bootstrap = wanted - 1
        assert trainer.missing_positions() == 1
        trainer.intake.ledger.bootstrap = wanted
        assert trainer.missing_positions() == trainer.settings.batch_size / trainer.settings.replay_ratio  # no credit


def test_a_row_is_logged_every_half_minute_though_models_are_published_more_often(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    clock, stop = Clock(), threading.Event()

    def train_step(trainer: Trainer) -> None:
        clock.now += 8
        if clock.now >= 1320:
            stop.set()

    for name, does in (
        ("ingest", None),
        ("maintain", None),
        ("missing_positions", 0),
        ("publish", None),
        ("end", None),
    ):
        monkeypatch.setattr(Trainer, name, Mock(return_value=does))
    monkeypatch.setattr(Trainer, "publish_is_due", lambda *_, **__: True)
    monkeypatch.setattr(Trainer, "train_step", train_step)
    monkeypatch.setattr("plyzero.trainer.loop.time", SimpleNamespace(monotonic=clock))
    with caplog.at_level("INFO"):
        run_trainer(run, device="cpu", stop=stop)
    assert sum(message.startswith("training: step") for message in caplog.messages) == 320 // 32 - 1


def test_to_read_a_long_backlog_is_progress(run: Run):
    heartbeat = Mock()
    with closing(Trainer(run, device="cpu", heartbeat=heartbeat)) as trainer:
        heartbeat.reset_mock()
        trainer.ingest()
    states = [call.args[0]["state"] for call in heartbeat.beat.call_args_list]
    assert states == ["reading games"] * len([*list_segments(run.segments)])


def test_no_time_is_estimated_before_the_first_step(run: Run):
    with closing(Trainer(run, device="cpu")) as trainer:
        trainer.reporter._generated_rate = SimpleNamespace(per_second=lambda *_: 2.0)  # type: ignore[assignment]
        assert trainer.reporter.describe_waiting(200) == "waiting for 200 positions"
        trainer.intake.ledger.spend(32)
        assert trainer.reporter.describe_waiting(200) == "waiting for 200 positions, about 100 s"


def test_a_trainer_that_reads_more_slowly_than_workers_write_trains_between_and_reads_all_in_the_end(
    tmp_path: Path, clock: Clock
):
    run = small_run(tmp_path / "r", "tic-tac-toe", "selfplay.bootstrap_positions=64")
    for sequence in range(4):
        play_segment(run, full=80, sequence=sequence)
    with closing(Trainer(run, device="cpu", heartbeat=Mock())) as trainer:
        read = []

        def take_two_seconds(state: str) -> None:
            read.append(state)
            clock.now += 2

        trainer.reporter.beat = take_two_seconds  # type: ignore[method-assign]
        trainer.ingest(seconds=1.0)
        assert (len(read), trainer.missing_positions()) == (1, 0)
        trainer.train_step()
        while trainer.intake.ledger.credit >= trainer.settings.batch_size:
            trainer.intake.ledger.spend(trainer.settings.batch_size)
        trainer.ingest(seconds=1.0)
        assert len(read) == 4  # without credit it reads on
        assert trainer.intake.games == sum(name.games for name in list_segments(run.segments))


def test_a_trainer_says_in_a_sentence_how_many_workers_would_do_while_it_discards_credit(
    run: Run, caplog: pytest.LogCaptureFixture
):
    processes = [process_of("trainer", "training", trained_per_second=800.0)]
    processes += [process_of(f"w{number}", full_positions_per_second=100.0) for number in range(1000)]
    says = (
        "1000 workers make 100000 positions/s, and this trainer can use 400: 4 such workers would do; stop the others, "
        "raise selfplay.simulations or lower trainer.replay_ratio"
    )
    with closing(Trainer(run, device="cpu")) as trainer:
        reporter, ledger = trainer.reporter, trainer.intake.ledger
        trainer.learner.settings = trainer.settings.model_copy(update={"replay_ratio": 2.0})
        reporter.look(processes)
        assert (reporter.workers, reporter.surplus) == (1000, None)  # all of it can be used so far
        for _ in range(2):
            ledger.skipped += 10.0
            reporter.look(processes)
            assert reporter.describe("training")["warning"] == says
        assert caplog.text.count(says) == 1
        reporter.look(processes)
        assert not reporter.describe("training").get("warning")
        ledger.skipped += 10.0
        reporter.look(processes[:4])
        assert (reporter.workers, reporter.surplus) == (3, None)


def test_a_volume_whose_looks_take_long_is_a_sentence_and_half_of_the_time_is_left(
    run: Run, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    stop, began = threading.Event(), list[float]()

    def maintain_slowly(trainer: Trainer) -> None:
        began.append(clock.now)
        clock.now += 100  # a list that takes 20 s, five times
        if len(began) == 3:
            stop.set()

    def train_quickly(trainer: Trainer) -> None:
        clock.now += 1

    monkeypatch.setattr(Trainer, "maintain", maintain_slowly)
    monkeypatch.setattr(Trainer, "train_step", train_quickly)
    monkeypatch.setattr(Trainer, "missing_positions", lambda _: 0)
    monkeypatch.setattr(Trainer, "publish_is_due", lambda _, **__: False)
    run_trainer(run, device="cpu", stop=stop)
    assert [later - earlier for earlier, later in itertools.pairwise(began)] == [200, 200]
    assert caplog.text.count(f"the volume is slow: a look at {run.root} took 100 s, in which nothing is trained") == 1


def test_of_a_model_without_a_row_of_its_own_the_losses_are_in_the_next_row(run: Run):
    name, forms = ModelName(1, 1, "0123abcd"), Forms(b"")
    with training(run) as trainer:
        reporter = trainer.reporter
        for step in range(3):
            reporter._rows.begin = lambda *, force=False: force  # type: ignore[method-assign]
            reporter.losses.add(torch.tensor([1.0 + step, 0.5]))
            reporter.report_model(name, forms, is_last=step == 2)
        (line,) = read_lines(reporter._metrics)
        assert (line["policy_loss"], line["value_loss"]) != (None, None)
        assert reporter.losses.take() == (None, None)
