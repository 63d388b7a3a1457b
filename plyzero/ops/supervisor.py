"""Training on one machine for `plyzero train`: start workers and a trainer, watch them, and report every model."""

from __future__ import annotations

import fnmatch
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

from plyzero.errors import FailedError, ModelRefusedError, install_command
from plyzero.files import interval, list_files
from plyzero.network.model_loader import load_model
from plyzero.network.onnx_graph import MAX_BATCH
from plyzero.network.onnx_network import SMALLEST_BATCH, Network, has_gpu
from plyzero.ops.failures import describe_log
from plyzero.ops.processes import Child, free_port
from plyzero.ops.summary import describe_first_model, describe_games
from plyzero.run.budget import read_done, read_trainer
from plyzero.run.directory import Run
from plyzero.run.lease import is_held
from plyzero.run.liveness import LivenessMonitor
from plyzero.run.metrics import BEAT_SECONDS, TRAINER, NewLines, number
from plyzero.run.models import ModelName, list_models, model_of
from plyzero.run.segments import list_segments

if TYPE_CHECKING:
    from plyzero.ops.rating import Rater, Rating

T = TypeVar("T")

POLL_SECONDS: Final = 0.25
"""Time between two checks of the child processes and of the metrics, in seconds."""

STOP_SECONDS: Final = 60.0
"""Time that the processes have to save and end, in seconds; then they are killed."""

PREVIOUS_SECONDS: Final = 30.0
"""Time for which `train` waits for the trainer of a `train` that was killed, which is still saving, in seconds."""

REPEAT_SECONDS: Final = 300.0
"""Time after which a warning that differs only in its numbers is shown again, in seconds."""


class ChildFailedError(FailedError):
    """A worker or the trainer failed, or ended without being asked to. The message says which, why, and where."""


@dataclass(frozen=True)
class Report:
    """The report of one published model.

    seconds:              time since this call of `train` began.
    positions_per_second: positions that the trainer read per second since the previous report; 0 in the first one.
    fields:               the trainer's line of metrics.
    """

    seconds: float
    positions_per_second: float
    fields: dict[str, object]


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
    on_progress: Callable[[str], None] = lambda _: None,
    on_message: Callable[[str], None] = lambda _: None,
    stop_when: Callable[[Network], bool] | None = None,
) -> None:
    """Run `workers` and a trainer until `stop` is set, the run is done, or `stop_when` is true of a new model.

    workers:     number of self-play processes; with 0 a reproducible trainer plays the games itself.
    on_report:   called for every model.
    rater:       measures models while they are trained, and the last one when the run is done.
    on_rating:   called for every model whose strength has been measured.
    on_progress: called every two seconds with a sentence about the state of the processes.
    on_message:  called with every sentence that must not be missed: warnings, and why it is ending.

    An error of the volume may be transient: it is reported, and the call is repeated. A KeyboardInterrupt that comes
    with `stop` is the same as `stop`. Raises ChildFailedError. All processes are stopped before this function ends.
    """
    began = time.monotonic()
    notify = Messages(on_message)
    view = RunView(run, began=began, notify=notify)
    done = was_done = read_done(run)

    def report_models() -> ModelName | None:
        """Report the models that are new, and return the name of the newest one of them."""
        reports = notify.unless_error(view.new_reports) or []
        for report in reports:
            on_report(report)
        return model_of(reports[-1].fields) if reports else None

    def report_ratings() -> None:
        while rater and (result := rater.poll()):
            if isinstance(result, str):
                notify(f"warning: {result}")
            else:
                on_rating(result)

    with until_interrupted(stop), ExitStack() as ending:
        if not done:
            wait_for_previous_trainer(run, stop=stop, notify=notify)
            while notify.unless_error(view.new_reports) is None and not stop.wait(1.0):
                pass
            begun = children(run, workers, device=device, options=options, on_progress=on_progress, notify=notify)
            running = ending.enter_context(begun)
        next_look = next_refresh = 0.0
        while not done and not stop.wait(POLL_SECONDS):
            done = check_children(running, run)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + interval(run.metrics, 0.0)
                name = report_models()
                if name and stop_when and (network := load(run, name, notify)) and stop_when(network):
                    return
                if name and rater and workers:  # a reproducible training depends on no time: its last model is measured
                    rater.offer(name)
            report_ratings()
            if time.monotonic() >= next_refresh and notify.unless_error(view.refresh):
                notify.warning(view.warning)
                on_progress(view.describe(running, rating=rater.doing if rater else None))
                next_refresh = time.monotonic() + BEAT_SECONDS
    with until_interrupted(stop):
        report_models()
        if notify.unless_error(view.refresh):
            notify.warning(view.warning)
        if done and not stop.is_set():
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            notify(f"done: {done}" + ("" if was_done else f"; {minutes}:{seconds:02d} for this start"))
            if rater and (name := notify.unless_error(rater.unmeasured)):
                rater.close()
                rater.offer(name, now=True)
                while rater.is_busy and not stop.wait(POLL_SECONDS):
                    on_progress(f"{rater.doing}; Ctrl-C skips this")
        report_ratings()  # also one that was completed while the processes stopped


class Messages:
    """Reports what a person must not miss, each message once."""

    def __init__(self, on_message: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._on_message, self._clock = on_message, clock
        self._warning, self._warned_at = "", 0.0
        self._errors: dict[str, float] = {}  # text -> when it was reported

    def __call__(self, text: str) -> None:
        self._on_message(text)

    def warning(self, text: object) -> None:
        """Report a warning if it has changed in more than its numbers, or after REPEAT_SECONDS."""
        if not isinstance(text, str):
            self._warning = ""
            return
        words, now = re.sub(r"\d+", "", text), self._clock()
        if words != self._warning or now - self._warned_at >= REPEAT_SECONDS:
            self._warning, self._warned_at = words, now
            self(f"warning: {text}")

    def unless_error(self, call: Callable[[], T]) -> T | None:
        """Return `call()`; report an OSError, the same one every REPEAT_SECONDS, and return None."""
        try:
            return call()
        except OSError as error:
            text, now = str(error), self._clock()
            if now - self._errors.get(text, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                self._errors[text] = now
                self(f"warning: cannot read the run: {text}; trying again")
            return None


class RunView:
    """A run by its files: the models that are new, and the state of its processes.

    warning: the trainer's warning at the last refresh.
    """

    def __init__(self, run: Run, *, began: float, notify: Messages) -> None:
        self._run, self._began, self._notify = run, began, notify
        self._monitor = LivenessMonitor(run)
        self._lines: dict[str, NewLines] | None = None  # by the name of a metrics file
        self._last: Mapping[str, object] = {}
        self._has_model, self._sealed = False, 0
        self.warning: object = None

    def new_reports(self) -> list[Report]:
        """Return the reports of the models published since the call before; the first call returns []."""
        sizes = list_files(self._run.metrics)
        names = fnmatch.filter(sorted(sizes), "trainer-*.jsonl")
        if self._lines is None:
            self._lines = {name: NewLines(self._run.metrics / name, offset=sizes[name]) for name in names}
        new: list[dict[str, object]] = []
        for name in names:
            lines = self._lines.setdefault(name, NewLines(self._run.metrics / name))
            if sizes[name] > lines.offset:
                self._notify.unless_error(partial(new.extend, lines.read()))
        return [self._report(fields) for fields in new if model_of(fields)]

    def _report(self, fields: dict[str, object]) -> Report:
        # `seconds` is the trainer's own clock; `time` is the time of day, which may stand still or jump.
        positions, seconds = (number(fields, key) - number(self._last, key) for key in ("positions", "seconds"))
        speed = positions / seconds if self._last and seconds > 0 and positions > 0 else 0.0
        self._last = fields
        return Report(seconds=time.monotonic() - self._began, positions_per_second=speed, fields=fields)

    def refresh(self) -> bool:
        """Read the heartbeats of all processes. Return True."""
        self._monitor.refresh()
        self._has_model = self._has_model or bool(list_models(self._run.models))
        if not self._has_model:
            self._sealed = sum(name.full for name in list_segments(self._run.segments) if name.bootstrap)
        if trainer := self._monitor.heartbeats.get(TRAINER):
            self.warning = trainer.get("warning", self.warning)
        return True

    def describe(self, running: Sequence[Child], *, rating: str | None) -> str:
        """Return a sentence about the state of the living processes."""
        beats = self._monitor.heartbeats
        alive = {name: beats[name] for name in beats if self._monitor.liveness(name) in ("ok", "stalled")}
        beating = {beat["pid"] for beat in alive.values()}
        parts = []
        if starting := [child for child in running if child.pid not in beating]:
            parts.append(f"starting {', '.join(child.name for child in starting)}")
            waits = re.compile(r"volume_errors: (.*; will try again)\s*$")  # for the volume, before it starts
            parts += [found[1] for child in starting if (found := waits.search(child.read_log()))]
        workers = [beat for beat in alive.values() if beat["role"] == "selfplay"]
        if not self._has_model:
            made = max(self._sealed, sum(number(worker, "full_positions") for worker in workers))
            parts.append(describe_first_model(self._run.settings, made=made, trainer=alive.get(TRAINER) or {}))
        for state, count in sorted(Counter(beat["state"] for beat in workers).items()):
            parts.append(f"{count} worker{'' if count == 1 else 's'} {state}")
        parts += [games] if (games := describe_games(workers)) else []
        others = [beat for beat in alive.values() if beat["role"] != "selfplay"]
        others.sort(key=lambda beat: beat["role"] != TRAINER)
        parts += [f"{beat['role']} {beat['state']}" for beat in others]
        parts += [rating] if rating else []
        return ", ".join(parts)


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
        about = f" (process {beat['pid']} on {beat['host']})" if beat else ""
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


def check_children(running: Sequence[Child], run: Run) -> str:
    """Return why the run is done if a process has ended for that, otherwise "".

    Raises ChildFailedError if one has ended by itself.
    """
    for child in running:
        if child.exit_code() is not None:
            if child.exit_code() == 0 and (done := read_done(run)):
                return done
            raise ChildFailedError(f"{child.name} stopped by itself: {_reason(child, run)}")
    return ""


@contextmanager
def children(
    run: Run,
    workers: int,
    *,
    device: str,
    options: Sequence[str],
    on_progress: Callable[[str], None],
    notify: Callable[[str], None],
) -> Iterator[list[Child]]:
    """Start the trainer and the workers, of which it needs none if it is reproducible; on exit stop them.

    On a machine with a GPU, unless `device` is cpu, one evaluator uses it for all workers, which do not see it.
    Raises ChildFailedError if one fails while it stops.
    """
    common = ["--run", str(run.root), *(part for option in options for part in ("-o", option))]
    common += ["--scratch", str(run.scratch)] if run.scratch else []
    running: list[Child] = []
    try:
        arguments = ["trainer", *common, "--device", device, *(["--reproducible"] if not workers else [])]
        running.append(Child("trainer", arguments, run.logs / "trainer.log"))
        serving: list[str] = []
        if workers and device != "cpu" and (port := _find_port(run, notify=notify)):
            serving = ["--evaluator", f"127.0.0.1:{port}"]
            batch = str(full_batch(workers, run.settings.selfplay.parallel_games))
            arguments = ["evaluator", *common, "--port", str(port), "--max-batch", batch]
            running.append(Child("evaluator", arguments, run.logs / "evaluator.log"))
        for each in range(workers):
            name = f"w{each}"
            arguments = ["selfplay", *common, "--name", name, *serving]
            # Where cores are too few, the trainer has the time that the replay ratio needs, and the workers the rest.
            running.append(Child(name, arguments, run.logs / f"{name}.log", niceness=10, sees_gpus=not serving))
        yield running
    finally:
        ended = [child for child in running if child.exit_code() is not None]
        for child in running:
            child.ask_to_stop()
        for child in ended:
            if child.exit_code():
                notify(f"{child.name} has ended by itself")
        try:
            _wait_for_end(running, on_progress=on_progress, notify=notify)
        except KeyboardInterrupt:  # the first signal comes while they stop already; no other one raises
            _wait_for_end(running, on_progress=on_progress, notify=notify)
        failed = [child for child in running if child not in ended and child.exit_code() != 0]
        if failed and not ended:
            raise ChildFailedError(f"{failed[0].name} failed while it stopped: {_reason(failed[0], run)}")


def full_batch(workers: int, games: int) -> int:
    """Return the number of positions of a full batch for so many workers with `games` each at once.

    It is about half of them all, while the others are played on, and a size to which nothing is padded.
    """
    half = max(SMALLEST_BATCH, workers * games // 2)
    return min(MAX_BATCH, 1 << (half.bit_length() - 1))


def _find_port(run: Run, *, notify: Callable[[str], None]) -> int | None:
    """Return a free port for an evaluator; None if there is no GPU, or if the workers cannot use an evaluator."""
    if not has_gpu() or run.settings.search.score_weight:  # of which an evaluator sends nothing
        return None
    if find_spec("grpc") is None:
        notify(f"warning: every worker uses the GPU by itself, which is slower: {install_command('grpc')}")
        return None
    return free_port()


def _wait_for_end(
    running: Sequence[Child], *, on_progress: Callable[[str], None], notify: Callable[[str], None]
) -> None:
    """Wait until all processes have ended; kill those that have not after STOP_SECONDS."""
    notify("stopping: the workers store their finished games, the trainer saves and publishes")
    deadline = time.monotonic() + STOP_SECONDS
    while left := [child for child in running if child.exit_code() is None]:
        on_progress(f"stopping: waiting for {', '.join(child.name for child in left)}")
        if time.monotonic() > deadline:
            for child in left:
                child.kill()
        left[0].wait(POLL_SECONDS)


def _reason(child: Child, run: Run) -> str:
    if child.was_killed:
        lost = "what it learned since its last saved state is" if child.name == TRAINER else "its unfinished games are"
        return f"it did not end within {STOP_SECONDS:.0f} s and was killed, {lost} lost (see {child.log})"
    try:
        log = child.read_log()
    except OSError as error:
        return f"its log {child.log} cannot be read: {error.strerror}"
    return f"{describe_log(log, child.exit_code() or 0, run.game)} (see {child.log})"
