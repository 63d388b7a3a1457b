"""Training on one machine for `plyzero train`: processes are started, watched, and every model is reported.

The run is done when a process ends because the budget is reached. No process is started again: one that ends by itself
ends the training, and the same command continues it.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from plyzero.errors import ModelRefusedError
from plyzero.files import interval
from plyzero.network.model_loader import load_model
from plyzero.network.onnx_network import Network
from plyzero.ops.child import Child
from plyzero.ops.local_processes import check_children, children
from plyzero.ops.summary import (
    WAITING,
    Bar,
    as_sentence,
    budget_bar,
    describe_games,
    first_model,
    first_model_bar,
)
from plyzero.run.budget import COUNTED, budget_of_trainer, read_done, read_trainer, share_used
from plyzero.run.directory import Run
from plyzero.run.events import Progress, TrainerLine, words_of
from plyzero.run.lease import is_held
from plyzero.run.metrics import BEAT_SECONDS, TRAINER, Rate
from plyzero.run.models import ModelName, list_models
from plyzero.run.segments import bootstrap_positions
from plyzero.run.view import RunView

if TYPE_CHECKING:
    from plyzero.ops.rating import Rater, Rating

T = TypeVar("T")

POLL_SECONDS: Final = 0.25
"""Time between two checks of the child processes and of the metrics, in seconds."""

PREVIOUS_SECONDS: Final = 30.0
"""Time for which `train` waits for the trainer of a `train` that was killed, which is still saving, in seconds."""

REPEAT_SECONDS: Final = 300.0
"""Time after which a warning that differs only in its numbers is shown again, in seconds."""

KNOWN_SECONDS: Final = 10.0
"""Time after which it is estimated how long something still takes, in seconds."""


class OnProgress(Protocol):
    """A function that gets the state of the processes as a sentence, and what has a known end."""

    def __call__(self, doing: str, bars: Sequence[Bar] = (), /) -> None: ...


def train(
    run: Run,
    *,
    workers: int,
    stop: threading.Event,
    options: Sequence[str] = (),
    device: str = "auto",
    on_report: Callable[[Report], None],
    rater: Rater | None = None,
    on_rating: Callable[[Rating], None] = lambda _: None,
    on_progress: OnProgress = lambda doing, bars=(): None,
    on_message: Callable[[str], None] = lambda _: None,
    stop_when: Callable[[Network], bool] | None = None,
) -> None:
    """Run `workers` and a trainer until `stop` is set, the run is done, or `stop_when` is true of a new model.

    workers:     number of self-play processes; with 0 a reproducible trainer plays the games itself.
    on_report:   called for every model.
    rater:       measures models while they are trained, and the last one when the run is done.
    on_rating:   called for every model whose strength has been measured.
    on_progress: called every two seconds with a sentence about the state of the processes, and with bars for the first
                 model and the budget.
    on_message:  called with every sentence that must not be missed: warnings, and why it is ending.

    An error of the volume may be transient: it is reported, and the call is repeated. A KeyboardInterrupt that comes
    with `stop` is the same as `stop`. Raises ChildFailedError. All processes are stopped before this function ends.
    """
    notify = Messages(on_message)
    reporter = Reporter(run, rater, notify, on_report=on_report, on_rating=on_rating, on_progress=on_progress)
    done = was_done = read_done(run)
    if not done:
        with until_interrupted(stop):
            wait_for_previous_trainer(run, stop=stop, notify=notify)
            reporter.skip_old_models(stop)
            processes = children(run, workers, device=device, options=options, on_progress=on_progress, notify=notify)
            with processes as running:
                while not done and not stop.wait(POLL_SECONDS):
                    done = check_children(running, run)
                    if model := reporter.report_models_at_times():
                        if stop_when and (network := load(run, model, notify)) and stop_when(network):
                            return
                        if rater and workers:  # not in a reproducible training, which depends on no time
                            rater.offer(model)
                    reporter.report_ratings()
                    reporter.report_progress_at_times(running)
    with until_interrupted(stop):
        reporter.report_models()
        reporter.report_warning()
        if done and not stop.is_set():
            notify(f"done: {done}" + ("" if was_done else f"; {reporter.clock()} for this start"))
            if rater:
                measure_last_model(rater, stop, notify=notify, on_progress=on_progress)
        reporter.report_ratings()  # also one that was completed while the processes stopped


def measure_last_model(rater: Rater, stop: threading.Event, *, notify: Messages, on_progress: OnProgress) -> None:
    """Measure the newest model, if it is not measured yet, unless `stop` is set before that is done."""
    name = notify.unless_error(rater.unmeasured)
    if name is None:
        return
    rater.close()
    rater.offer(name, now=True)
    while rater.is_busy and not stop.wait(POLL_SECONDS):
        on_progress(f"{rater.doing}; Ctrl-C skips this")


class Reporter:
    """Reports models, ratings and progress of a training to those who asked for them."""

    def __init__(
        self,
        run: Run,
        rater: Rater | None,
        notify: Messages,
        *,
        on_report: Callable[[Report], None],
        on_rating: Callable[[Rating], None],
        on_progress: OnProgress,
    ) -> None:
        self._run = run
        self._rater = rater
        self._notify = notify
        self._on_report = on_report
        self._on_rating = on_rating
        self._on_progress = on_progress
        self._began = time.monotonic()
        self._observer = Observer(run, began=self._began, notify=notify)
        self._next_look = 0.0  # when it looks for models again
        self._next_refresh = 0.0  # when it reports the progress again

    def skip_old_models(self, stop: threading.Event) -> None:
        """Report no model that is there already. An error of the volume is waited for, until `stop`."""
        while self._notify.unless_error(self._observer.new_reports) is None and not stop.wait(1.0):
            pass

    def report_models_at_times(self) -> ModelName | None:
        """Do what `report_models` does, but no more often than the volume should be looked at."""
        if time.monotonic() < self._next_look:
            return None
        self._next_look = time.monotonic() + interval(self._run.metrics, 0.0)
        return self.report_models()

    def report_models(self) -> ModelName | None:
        """Report the models that are new, and return the name of the newest one of them."""
        reports = self._notify.unless_error(self._observer.new_reports) or []
        for report in reports:
            self._on_report(report)
        return reports[-1].line.model if reports else None

    def report_ratings(self) -> None:
        """Report the models that have been measured."""
        while self._rater and (result := self._rater.poll()):
            if isinstance(result, str):
                self._notify(f"warning: {result}")
            else:
                self._on_rating(result)

    def report_progress_at_times(self, running: Sequence[Child]) -> None:
        """Report the trainer's warning and the state of the processes, every two seconds."""
        if time.monotonic() >= self._next_refresh and self.report_warning():
            doing = self._observer.describe(running, rating=self._rater.doing if self._rater else None)
            self._on_progress(doing, self._observer.bars())
            self._next_refresh = time.monotonic() + BEAT_SECONDS

    def report_warning(self) -> bool:
        """Read the heartbeats, and report the trainer's warning. Return whether they could be read."""
        if not self._notify.unless_error(self._observer.refresh):
            return False
        self._notify.warning(self._observer.warning)
        return True

    def clock(self) -> str:
        """Return the time since the training began, as minutes:seconds."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02d}"


@dataclass(frozen=True)
class Report:
    """The report of one published model.

    seconds:              time since this call of `train` began.
    positions_per_second: positions that the trainer read per second since the previous report; 0 in the first one.
    line:                 the trainer's line of metrics.
    """

    seconds: float
    positions_per_second: float
    line: TrainerLine

    @property
    def fields(self) -> Mapping[str, object]:
        """All fields of the line; docs/formats.md lists them."""
        return self.line.fields


class Messages:
    """Reports what a person must not miss, each message once."""

    def __init__(self, on_message: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._on_message = on_message
        self._clock = clock
        self._warning = ""  # the last one, without its numbers
        self._warned_at = 0.0
        self._errors: dict[str, float] = {}  # text -> when it was reported

    def __call__(self, text: str) -> None:
        self._on_message(text)

    def warning(self, text: object) -> None:
        """Report a warning if it has changed in more than its numbers, or after REPEAT_SECONDS."""
        if not isinstance(text, str):
            self._warning = ""
            return
        words, now = words_of(text), self._clock()
        if words != self._warning or now - self._warned_at >= REPEAT_SECONDS:
            self._warning = words
            self._warned_at = now
            self(f"warning: {text}")

    def unless_error(self, call: Callable[[], T]) -> T | None:
        """Return `call()`, or None after an OSError, which is reported."""
        with self.skipping():
            return call()
        return None

    @contextmanager
    def skipping(self, path: Path | None = None) -> Iterator[None]:
        """Run the body; report an OSError, the same one every REPEAT_SECONDS."""
        try:
            yield
        except OSError as error:
            text, now = str(error), self._clock()
            if now - self._errors.get(text, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                self._errors[text] = now
                self(f"warning: cannot read the run: {text}; trying again")


class Observer:
    """Reports the models of a run that are new, and the state of its processes.

    warning: the trainer's warning at the last refresh.
    """

    def __init__(self, run: Run, *, began: float, notify: Messages) -> None:
        self._run, self._began, self._notify = run, began, notify
        self._view = RunView(run, from_now=True)
        self._last: TrainerLine | None = None
        self._has_model, self._sealed = False, 0
        self._first_model_pace, self._budget_pace = Pace(), Pace()
        self.warning: object = None

    def new_reports(self) -> list[Report]:
        """Return the reports of the models published since the call before; the first call returns []."""
        return [self._report(line) for line in self._view.lines.read(self._notify.skipping) if line.model]

    def _report(self, line: TrainerLine) -> Report:
        # `seconds` is the trainer's own clock; `time` is the time of day, which may stand still or jump.
        speed = 0.0
        if before := self._last:
            positions, seconds = line.positions - before.positions, line.seconds - before.seconds
            speed = positions / seconds if seconds > 0 and positions > 0 else 0.0
        self._last = line
        return Report(seconds=time.monotonic() - self._began, positions_per_second=speed, line=line)

    def refresh(self) -> bool:
        """Read the heartbeats of all processes. Return True."""
        self._view.refresh()
        self._has_model = self._has_model or bool(list_models(self._run.models))
        if not self._has_model:
            self._sealed = bootstrap_positions(self._run.segments)
        if trainer := self._view.trainer:
            self.warning = trainer.fields.get("warning", self.warning)
        return True

    def describe(self, running: Sequence[Child], *, rating: str | None) -> str:
        """Return a sentence or two about the state of the living processes."""
        alive = {each.name: each.beat for each in self._view.alive()}
        beating = {beat.pid for beat in alive.values()}
        starts = ""
        if starting := [child for child in running if child.pid not in beating]:
            starts = f"starting: {', '.join(_name(child) for child in starting)}"
            waits = re.compile(r"volume_errors: (.*; will try again)\s*$")  # for the volume, before it starts
            reasons = [found[1] for child in starting if (found := waits.search(child.read_log()))]
            starts = ", ".join([starts, *reasons])
        workers = [beat for beat in alive.values() if beat.role == "selfplay"]
        parts = []
        for state, count in sorted(Counter(beat.state for beat in workers).items()):
            parts.append(f"{count} worker{'' if count == 1 else 's'} {state}")
        parts += [games] if (games := describe_games(workers)) else []
        others = [beat for beat in alive.values() if beat.role != "selfplay"]
        others.sort(key=lambda beat: beat.role != TRAINER)
        parts += [f"{beat.role} {beat.state}" for beat in others if self._has_model or not WAITING.match(beat.state)]
        parts += [rating] if rating else []
        return " ".join(filter(None, map(as_sentence, (starts, ", ".join(parts)))))

    def bars(self) -> list[Bar]:
        """Return bars for the first model, while there is none, and for the budget, if it can be counted."""
        bars = [] if self._has_model else [self._first_model_bar()]
        budget = budget_of_trainer(self._run, self._view.trainer)
        if any(getattr(budget, name) is not None for name, _ in COUNTED):
            used = share_used(budget, self._view.trainer or Progress())
            bars.append(budget_bar(used, minutes=self._budget_pace.minutes_to(1.0, used if self._has_model else 0.0)))
        return bars

    def _first_model_bar(self) -> Bar:
        beats = [each.beat for each in self._view.alive()]
        workers = [beat for beat in beats if beat.role == "selfplay"]
        trainer = next((beat for beat in beats if beat.role == TRAINER), Progress())
        made = max(self._sealed, sum(worker.full_positions for worker in workers))
        found = first_model(self._run.settings, made=made, trainer=trainer)
        plies = sum(worker.plies_under_way for worker in workers)
        begun = self._run.settings.selfplay.full_search_probability * plies
        minutes = self._first_model_pace.minutes_to(found.wanted, found.done + begun if plies else 0.0)
        return first_model_bar(found, begun, minutes=minutes)


class Pace:
    """The pace of a count, from which the time to its end is estimated."""

    def __init__(self) -> None:
        self._rate = Rate()
        self._began: float | None = None

    def minutes_to(self, end: float, count: float) -> float | None:
        """Return about how many minutes it takes to reach `end`, at the rate of the last minute.

        None until `count` has been above 0 for KNOWN_SECONDS, while it stands still, and once `end` is reached.
        """
        if not count:
            return None
        now = time.monotonic()
        self._began = self._began or now
        rate = self._rate.per_second(count, now)
        if now - self._began < KNOWN_SECONDS or rate <= 0 or count >= end:
            return None
        return (end - count) / rate / 60


def _name(child: Child) -> str:
    return child.name if child.name == TRAINER else f"worker {child.name}"


@contextmanager
def until_interrupted(stop: threading.Event) -> Iterator[None]:
    """End the block at a KeyboardInterrupt that comes with `stop`."""
    try:
        yield
    except KeyboardInterrupt:
        if not stop.is_set():
            raise


def wait_for_previous_trainer(run: Run, *, stop: threading.Event, notify: Callable[[str], None]) -> None:
    """Wait while the trainer of a `train` that was killed still saves, but at most PREVIOUS_SECONDS."""
    deadline = time.monotonic() + PREVIOUS_SECONDS
    if is_held(run.trainer):
        beat = read_trainer(run)
        about = f" (process {beat.pid} on {beat.host})" if beat else ""
        notify(f"this run still has a trainer{about}; waiting up to {PREVIOUS_SECONDS:.0f} s for it to save and end")
    while is_held(run.trainer) and time.monotonic() < deadline and not stop.wait(POLL_SECONDS):
        pass


def load(run: Run, name: ModelName, notify: Messages) -> Network | None:
    """Return a model, None if it cannot be loaded, for example because it has been removed meanwhile."""
    try:
        return notify.unless_error(lambda: load_model(run.models, name, run.game, run_id=run.id))
    except ModelRefusedError as error:
        notify(f"warning: {error}")
        return None
