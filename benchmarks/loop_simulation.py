"""A simulation of the training loop as queues: what workers, volume and trainer do, without games and networks.

`simulate` follows when positions are sealed, read, trained and skipped, and with which model a worker plays; how fast a
worker plays and the trainer trains is given. Processes that share a machine share its cores equally.
"""

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

from plyzero.settings import Settings
from selfplay.backpressure import REFRESH_SECONDS
from trainer.loop import MAINTAIN_SECONDS, POLL_SECONDS
from trainer.window import window_size

DEFAULTS = Settings()

IDLE_SECONDS = 0.2
"""How long a trainer without enough credit sleeps before it looks again, as in `run_trainer`."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What is simulated. Times are in seconds, costs in seconds of a core, rates in positions for a second of a core.

    full_per_second:  full-search positions that a worker makes.
    positions_for_full: positions that are recorded for each of them.
    trained_per_second: positions that the trainer trains.
    segment_cost, position_cost: for the trainer to take in a segment, and each position in it.
    maintain_cost, publish_cost: for the trainer, each time.
    load_cost:        for a worker to load a model.
    first_model_at:   when the bootstrap positions are there; until then nobody counts.
    poll, trainer_poll, beat: time between two looks at models/, at replay/, and between two heartbeats of the trainer.
    cores:            that all processes share; None = each has its own.
    beside:           processes that want a core besides, on average.
    """

    workers: int
    full_per_second: float
    trained_per_second: float
    settings: Settings = DEFAULTS
    positions_for_full: float = 5.0
    segment_cost: float = 0.0
    position_cost: float = 0.0
    maintain_cost: float = 0.0
    publish_cost: float = 0.0
    load_cost: float = 0.0
    first_model_at: float = 0.0
    poll: float = 0.0
    trainer_poll: float = POLL_SECONDS
    beat: float = 2.0
    cores: float | None = None
    beside: float = 0.0


class Report(NamedTuple):
    """What came out.

    ratio:          positions trained per full-search position read.
    full:           full-search positions made per second.
    trained:        positions trained per second.
    skipped:        credit that was skipped, as a share of what was earned.
    trainer_waits, workers_wait: shares of their time.
    model_age:      mean time since its publication of the model that a worker plays with, in seconds.
    segments:       segments sealed per second.
    """

    ratio: float
    full: float
    trained: float
    skipped: float
    trainer_waits: float
    workers_wait: float
    model_age: float
    segments: float


def simulate(loop: Loop, seconds: float) -> Report:
    """Return what happens in so many seconds from the start of the run."""
    return _Simulation(loop, seconds).run()


class _Worker:
    def __init__(self, number: int) -> None:
        self.number = number
        self.clock = 0.0  # seconds of a core that any worker could have played for, when `unsealed` was brought up
        self.unsealed = self.debt = 0.0  # positions; seconds of a core
        self.oldest = 0.0
        self.plays = False
        self.since = 0.0  # when it began to play, or to wait
        self.model = self.model_since = math.nan  # when it was published; when it was loaded


class _Simulation:
    def __init__(self, loop: Loop, seconds: float) -> None:
        self.loop, self.seconds = loop, seconds
        self.now = self.clock = 0.0
        self.workers = [_Worker(number) for number in range(loop.workers)]
        self.playing = 0
        self.events: list[tuple[float, int, str, _Worker]] = []
        self.order = 0
        self.sealed: list[float] = []  # full-search positions of the segments that are not read yet
        self.credit = self.generated = self.trained = self.skipped = self.made = 0.0
        self.segments = 0
        self.waited = self.worker_waited = self.age = self.aged = 0.0
        self.published, self.published_after = math.nan, -1.0  # when; after how many positions trained
        self.beat = (0.0, math.inf)  # credit, and how much is enough, of the trainer's last heartbeat

    def run(self) -> Report:
        """The loop of the trainer (trainer/loop.py), while the workers' events happen when their time has come."""
        loop, trainer = self.loop, self.loop.settings.trainer
        batch, free = trainer.batch_size, trainer.bootstrap_passes * self.loop.settings.selfplay.bootstrap_positions
        self.pass_time(loop.first_model_at, works=False)
        self.work(free / loop.trained_per_second)
        next_maintenance = next_poll = next_beat = next_publication = self.now
        while self.now < self.seconds:
            if self.now >= next_maintenance:
                next_maintenance = self.now + MAINTAIN_SECONDS
                self.work(loop.maintain_cost)
            if self.now >= next_poll:
                next_poll = self.now + loop.trainer_poll
                self.ingest()
            if self.now >= next_beat:
                next_beat = self.now + loop.beat
                self.announce()
            waits = self.credit < batch
            if not waits:
                self.work(batch / loop.trained_per_second)
                self.credit -= batch
                self.trained += batch
            if self.now >= next_publication and self.trained != self.published_after:
                next_publication = self.now + trainer.publish_seconds
                self.work(loop.publish_cost)
                self.publish()
            elif waits:
                self.waited += IDLE_SECONDS
                self.pass_time(IDLE_SECONDS, works=False)
        return self.report()

    def ingest(self) -> None:
        """Read all segments that are sealed, as `Trainer.ingest` does."""
        loop, trainer = self.loop, self.loop.settings.trainer
        segments, self.sealed = self.sealed, []
        full = sum(segments)
        self.work(loop.segment_cost * len(segments) + loop.position_cost * loop.positions_for_full * full)
        self.generated += full
        self.credit += trainer.replay_ratio * full
        size = window_size(
            int(self.generated) + loop.settings.selfplay.bootstrap_positions,
            smallest=trainer.window_positions,
            growth=trainer.window_growth,
            exponent=trainer.window_exponent,
        )
        surplus = max(0.0, self.credit - trainer.replay_ratio * size)
        self.skipped += surplus
        self.credit -= surplus

    def announce(self) -> None:
        """Write the trainer's heartbeat, and let each worker that throttles read it after a while of its own."""
        busy = self.now - self.waited - self.loop.first_model_at
        seal, batch = self.loop.settings.selfplay.seal_seconds, self.loop.settings.trainer.batch_size
        enough = max(4 * batch, 2 * (seal + POLL_SECONDS) * self.trained / busy) if busy > 0 else math.inf
        self.beat = (self.credit, enough)
        if self.loop.settings.selfplay.when_ahead == "throttle":
            refresh = max(REFRESH_SECONDS / 2, self.loop.beat if self.loop.beat >= 5 else 0)
            for worker in self.workers:
                self.at(self.now + refresh * (worker.number + 0.5) / len(self.workers), "throttle", worker)

    def publish(self) -> None:
        """Publish a model; each worker finds it when it looks next, at a phase of its own."""
        self.published, self.published_after = self.now, self.trained
        for worker in self.workers:
            phase = self.loop.poll * (worker.number + 0.5) / len(self.workers)
            delay = (phase - self.now) % self.loop.poll if self.loop.poll else 0.0
            self.at(self.now + delay, "load", worker)

    # --- the workers ---

    def at(self, time: float, what: str, worker: _Worker) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, worker))

    def happen(self, what: str, worker: _Worker) -> None:
        selfplay = self.loop.settings.selfplay
        self.bring_up(worker)
        if what == "load":
            self.leave_model(worker)
            first = math.isnan(worker.model)
            worker.model, worker.model_since = self.published, self.now
            worker.debt += self.loop.load_cost
            if first:
                self.turn(worker, plays=True)
                worker.oldest = self.now
                self.at(self.now + self.next_seal(worker), "seal", worker)
        elif what == "throttle":
            self.turn(worker, plays=not self.beat[0] >= self.beat[1] and not math.isnan(worker.model))
        elif worker.unsealed and (
            self.now - worker.oldest >= selfplay.seal_seconds - 1e-9 or worker.unsealed >= selfplay.seal_positions
        ):
            self.sealed.append(worker.unsealed / self.loop.positions_for_full)
            self.segments += 1
            worker.unsealed, worker.oldest = 0.0, self.now
            self.at(self.now + self.next_seal(worker), "seal", worker)
        else:
            if not worker.unsealed:
                worker.oldest = self.now
            self.at(self.now + max(0.1, self.next_seal(worker)), "seal", worker)

    def next_seal(self, worker: _Worker) -> float:
        """Return after how many seconds the next seal may be due, at the earliest."""
        selfplay, rate = self.loop.settings.selfplay, self.loop.full_per_second * self.loop.positions_for_full
        left = worker.oldest + selfplay.seal_seconds - self.now
        return max(0.0, min(left, (selfplay.seal_positions - worker.unsealed) / rate))

    def bring_up(self, worker: _Worker) -> None:
        """Count what a worker has made until now."""
        played = self.clock - worker.clock if worker.plays else 0.0
        worker.clock = self.clock
        loading = min(played, worker.debt)
        worker.debt -= loading
        full = (played - loading) * self.loop.full_per_second
        self.made += full
        worker.unsealed += full * self.loop.positions_for_full

    def leave_model(self, worker: _Worker) -> None:
        if not math.isnan(worker.model):
            played = self.now - worker.model_since
            self.age += played * ((worker.model_since + self.now) / 2 - worker.model)
            self.aged += played

    def turn(self, worker: _Worker, *, plays: bool) -> None:
        """Let a worker play or wait from now on."""
        if not math.isnan(worker.model) and plays != worker.plays:
            if worker.since and not worker.plays:
                self.worker_waited += self.now - worker.since
            worker.plays, worker.since = plays, self.now
            self.playing += 1 if plays else -1

    # --- time ---

    def work(self, core_seconds: float) -> None:
        """Let the trainer work for so long on a core, of which it may have only a share."""
        if core_seconds:
            self.pass_time(core_seconds / self.core_share(works=True), works=True)

    def core_share(self, *, works: bool) -> float:
        processes = self.playing + self.loop.beside + works
        return 1.0 if self.loop.cores is None else min(1.0, self.loop.cores / max(processes, 1e-9))

    def pass_time(self, seconds: float, *, works: bool) -> None:
        """Let time pass for the workers; how many play is looked at again at every event."""
        end = self.now + seconds
        while self.now < end:
            until = min(end, self.events[0][0]) if self.events else end
            until = max(until, self.now)
            self.clock += (until - self.now) * self.core_share(works=works)
            self.now = until
            while self.events and self.events[0][0] <= self.now:
                _, _, what, worker = heapq.heappop(self.events)
                self.happen(what, worker)

    def report(self) -> Report:
        for worker in self.workers:
            self.bring_up(worker)
            self.leave_model(worker)
            if not worker.plays and worker.since:
                self.worker_waited += self.now - worker.since
        earned = self.loop.settings.trainer.replay_ratio * self.generated
        return Report(
            ratio=self.trained / self.generated if self.generated else 0.0,
            full=self.made / self.now,
            trained=self.trained / self.now,
            skipped=self.skipped / earned if earned else 0.0,
            trainer_waits=self.waited / self.now,
            workers_wait=self.worker_waited / (self.now * len(self.workers)),
            model_age=self.age / self.aged if self.aged else math.nan,
            segments=self.segments / self.now,
        )
