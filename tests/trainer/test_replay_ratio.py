"""The replay ratio and who waits for whom, over any sequence of deaths: the trainer without the network, all else real.

Each step of the machine is one thing that can happen to a run. What must hold is checked after every one of them.
"""

import itertools
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plyzero.run.directory import Run
from plyzero.run.metrics import TRAINER, Heartbeat
from plyzero.run.models import list_models, publish_model
from plyzero.run.records import Games
from plyzero.selfplay.backpressure import PROGRESS_SECONDS, Backpressure
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.loop import Trainer
from plyzero.trainer.replay_reader import TRIES
from tests.helpers.clock import Clock
from tests.helpers.journals import adopt_journals, leave
from tests.helpers.runs import small_run
from tests.helpers.segments import seal, some_games

RATIO, BATCH, BOOTSTRAP, PASSES, WINDOW = 4.0, 8, 16, 2.0, 8
SETTINGS = (
    f"trainer.replay_ratio={RATIO}",
    f"trainer.batch_size={BATCH}",
    f"trainer.bootstrap_passes={PASSES}",
    f"trainer.window_positions={WINDOW}",
    f"selfplay.bootstrap_positions={BOOTSTRAP}",
    "trainer.window_growth=0",
    "trainer.publish_seconds=0",
    "selfplay.when_ahead=throttle",
    "store.keep_positions=1",
    "store.min_free_mb=0",
)


class Bookkeeper(Trainer):
    """A trainer that does all but learn: its steps are only counted, and its models are one byte long."""

    def maintain(self) -> None:
        adopt_journals(self.run)
        super().maintain()

    def train_step(self) -> None:
        self.learner.step += 1
        self.intake.ledger.spend(BATCH)

    def _publish(self) -> None:
        step = self.learner.step
        publish_model(self.run.models, bytes([step % 256]), fence=self.lease.fence, step=step)
        self.publisher.is_first = False
        self.publisher._published_step = step

    def publish_is_due(self, *, waiting: bool) -> bool:
        self._attempt_seconds = 0.0  # how long it took depends on the machine
        return super().publish_is_due(waiting=waiting)


class Writer:
    """One incarnation of a worker, which seals some of its games and dies with others in its journal."""

    def __init__(self, run: Run, number: int) -> None:
        self._run, self._owner, self._sequences = run, f"w0.{number:08x}", itertools.count()

    def seal(self, games: Games) -> Path:
        return seal(self._run, games, next(self._sequences), self._owner)

    def die_with(self, games: Games) -> None:
        leave(self._run.journals, self._run, games, sequence=next(self._sequences), owner=self._owner)


class Life(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.run = small_run(Path(self._directory.name) / "r", "tic-tac-toe", *SETTINGS)
        self.clock, self.seeds = Clock(), itertools.count(1)
        self.incarnations = itertools.count(1)
        self.writers = [Writer(self.run, next(self.incarnations)) for _ in range(2)]
        self.heartbeat = Heartbeat(self.run.workers / f"{TRAINER}.json")
        self.made = {"bootstrap": 0, "generated": 0}  # full-search positions, in all that was sealed or journaled
        self.restart()
        writer = ReplayWriter(self.run, worker="w9", incarnation="00000009")
        self.backpressure = Backpressure(self.run, writer, clock=self.clock)
        self.beat()

    def teardown(self) -> None:
        self.trainer.close()
        self._directory.cleanup()

    @property
    def has_model(self) -> bool:
        return bool(list_models(self.run.models))

    def games(self, positions: int) -> Games:
        """A game as a worker makes it now."""
        games = some_games(self.run.game, next(self.seeds), (positions,))
        games.positions["full"][:] = 1
        games.positions["search"][:] = 2
        games.positions["model_step"][:] = int(self.has_model)
        self.made["generated" if self.has_model else "bootstrap"] += positions
        return games

    def beat(self) -> None:
        fields = self.trainer.reporter.describe("training") | {"credit_enough": 4 * BATCH}
        self.heartbeat.beat(fields, force=True)
        self.clock.now += 1
        self.backpressure.refresh()

    def restart(self) -> None:
        with mock.patch("plyzero.trainer.parts._try_step"):  # which exports a network
            self.trainer = Bookkeeper(self.run, device="cpu")

    @rule(worker=st.integers(0, 1), positions=st.integers(1, 9))
    def commit(self, worker: int, positions: int) -> None:
        """A worker that does not wait seals a segment; sometimes one that has not looked for a while."""
        self.writers[worker].seal(self.games(positions))

    @rule(worker=st.integers(0, 1), positions=st.integers(1, 9))
    def kill_worker(self, worker: int, positions: int) -> None:
        self.writers[worker].die_with(self.games(positions))
        self.writers[worker] = Writer(self.run, next(self.incarnations))

    @rule(worker=st.integers(0, 1), positions=st.integers(1, 9))
    def damage(self, worker: int, positions: int) -> None:
        """A segment is spoilt before the trainer has seen it, and found to be by three looks."""
        before = dict(self.made)
        path = self.writers[worker].seal(self.games(positions))
        self.made = before
        path.write_bytes(path.read_bytes()[:-9])
        for _ in range(TRIES):
            self.trainer.ingest()
        assert not path.exists()

    @rule(steps=st.integers(1, 20))
    def train(self, steps: int) -> None:
        """The trainer's loop, for at most `steps` steps."""
        self.trainer.ingest()
        while steps and not self.trainer.missing_positions():
            self.trainer.train_step()
            steps -= 1
        if self.trainer.publish_is_due(waiting=self.trainer.missing_positions() > 0):
            self.trainer.publish()
        self.beat()

    @rule()
    def prune(self) -> None:
        self.trainer.maintain()

    @rule()
    def save(self) -> None:
        self.trainer.publisher.save()

    @rule()
    def crash_trainer(self) -> None:
        self.trainer.close()
        self.restart()

    @precondition(lambda self: len(list(self.run.trainer.glob("state-*"))) == 2)
    @rule()
    def restore(self) -> None:
        """Somebody takes the newest state away, to go on from the one before it."""
        self.trainer.maintain()
        self.trainer.close()
        max(self.run.trainer.glob("state-*")).unlink()
        self.restart()

    @rule()
    def wedge(self) -> None:
        """The trainer hangs: it lives, it even beats, but nothing moves."""
        for _ in range(int(PROGRESS_SECONDS) + 1):
            self.beat()
        assert self.backpressure.reason(has_model=True) is None, "a trainer that does nothing holds a worker back"

    @invariant()
    def the_trainer_is_never_ahead(self) -> None:
        ledger = self.trainer.intake.ledger
        paid = min(BOOTSTRAP, ledger.bootstrap) * PASSES
        assert ledger.trained <= RATIO * ledger.generated + paid
        assert ledger.trained + ledger.skipped + ledger.credit == RATIO * ledger.generated + paid
        assert ledger.credit >= 0

    @invariant()
    def nothing_is_counted_that_nobody_made(self) -> None:
        assert self.trainer.intake.ledger.bootstrap <= self.made["bootstrap"]
        assert self.trainer.intake.ledger.generated <= self.made["generated"]

    @rule()
    def everything_is_taken_in_once(self) -> None:
        self.trainer.maintain()
        self.trainer.ingest()
        ledger = self.trainer.intake.ledger
        assert {"bootstrap": ledger.bootstrap, "generated": ledger.generated} == self.made
        assert ledger.credit <= RATIO * WINDOW

    @rule()
    def they_never_both_wait(self) -> None:
        """When all that was sealed is taken in and everybody has looked, one who has nothing to train keeps nobody."""
        self.everything_is_taken_in_once()
        while not self.trainer.missing_positions():
            self.beat()
            self.trainer.train_step()
        if self.trainer.publish_is_due(waiting=True):
            self.trainer.publish()
        self.beat()
        assert self.backpressure.reason(has_model=self.has_model) is None


Life.TestCase.settings = settings(max_examples=5, stateful_step_count=60)  # few but long: most faults need a history
TestLife = Life.TestCase


class LongLife(Life):
    """The same machine, for minutes and each time with other steps."""


LongLife.TestCase.settings = settings(max_examples=300, stateful_step_count=100, derandomize=False)
TestLongLife = pytest.mark.soak(LongLife.TestCase)
