"""Training on one machine, the parts that need no processes; the whole is in test_loop.py."""

import errno
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from plyzero import files
from plyzero.ops import child as child_processes
from plyzero.ops import local_processes, supervisor
from plyzero.ops.child import Child, start_plyzero
from plyzero.ops.local_processes import ChildFailedError
from plyzero.ops.rating import Rating
from plyzero.ops.supervisor import REPEAT_SECONDS, Messages, Observer, Report, train
from plyzero.run import events
from plyzero.run.directory import Run, open_run
from plyzero.run.lease import LOCK
from plyzero.run.metrics import TRAINER, Heartbeat, append_line
from tests.helpers.cli import parsed
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.runs import play_segment

Step = Callable[[], object]


class Script(threading.Event):
    """A stop event: each wait takes the next step of a script; after the last one training is stopped."""

    def __init__(self, *steps: Step) -> None:
        super().__init__()
        self._steps = iter(steps)

    def wait(self, timeout: float | None = None) -> bool:
        step = next(self._steps, self.set)
        step()
        return self.is_set()


class Output:
    """The reports and messages of `train`."""

    def __init__(self) -> None:
        self.reports, self.messages, self.progress = list[Report](), list[str](), list[str]()

    @property
    def steps(self) -> list[object]:
        return [report.fields["step"] for report in self.reports]

    @property
    def warnings(self) -> list[str]:
        return [text for text in self.messages if text.startswith("warning")]


def trained(run: Run, *steps: Step, children: Any = lambda *_, **__: nullcontext([]), **options: Any) -> Output:
    """Let `train` look at once after every step, without processes if no other `children` are given."""
    output = Output()
    calls: dict[str, Any] = {"on_report": output.reports.append, "on_message": output.messages.append}
    calls["on_progress"] = lambda doing, bars=(): output.progress.append(doing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "children", children)
        patch.setattr(supervisor, "BEAT_SECONDS", 0.0)
        train(run, workers=1, stop=Script(*steps), **calls, **options)
    return output


def observing(run: Run) -> Observer:
    observer = Observer(run, began=0.0, notify=Messages(print))
    observer.refresh()
    return observer


def beat(run: Run, name: str, **fields: object) -> None:
    Heartbeat(run.workers / f"{name}.json").beat(fields)


def publish(run: Run, step: int) -> None:
    """A line of metrics about a model that has been removed already."""
    line = {"step": step, "positions": 100 * step, "seconds": float(step)}
    append_line(run.metrics / "trainer-000001.jsonl", line | {"model": f"000001-{step:09d}-0123abcd.onnx"})


def test_models_removed_before_they_are_reported_keep_their_lines(run: Run):
    def wake_up() -> None:  # after a stop that was longer than models are kept
        for step in (3, 4, 5):
            publish(run, step)

    publish(run, 1)  # by a trainer before
    assert trained(run, lambda: publish(run, 2), wake_up).steps == [2, 3, 4, 5]


def test_the_last_model_is_reported_however_seldom_a_bucket_is_looked_at(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervisor, "interval", lambda *_: 1000.0)
    assert trained(run, lambda: publish(run, 2), lambda: publish(run, 3)).steps == [2, 3]


def test_ratings_completed_while_the_processes_stop_are_reported(run: Run):
    completed: list[Rating | str] = []

    @contextmanager
    def stopping(*_: object, **__: object) -> Iterator[list[Child]]:
        yield []
        completed.extend([Rating(step=2, scores={}), "step 3 is not measured: it has been removed"])

    rater = Mock(poll=lambda: completed.pop(0) if completed else None, doing=None)
    rated: list[Rating] = []
    output = trained(run, children=stopping, rater=rater, on_rating=rated.append)
    assert [rating.step for rating in rated] == [2]
    assert output.messages[-1] == "warning: step 3 is not measured: it has been removed"


def test_a_time_of_day_that_stands_still_changes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    output = trained(run, lambda: publish(run, 2), lambda: publish(run, 4))
    assert [report.positions_per_second for report in output.reports] == [0.0, 100.0]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (events, "list_files"),
        (events, "read_part"),
        (supervisor, "list_models"),
        (supervisor.RunView, "refresh"),
    ],
)
def test_a_transient_error_in_train_is_reported_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
):
    monkeypatch.setattr(owner, name, failing(errno.EIO, 3, then=getattr(owner, name)))
    output = trained(run, *[lambda: None] * 4, lambda: publish(run, 2), *[lambda: None] * 4)
    assert output.steps == [2]
    assert output.progress
    assert output.warnings == ["warning: cannot read the run: [Errno 5] Input/output error; trying again"]


def test_the_warnings_in_the_trainers_heartbeat_are_shown(run: Run):
    def warn(warning: str | None) -> Step:
        return lambda: beat(run, TRAINER, role=TRAINER, state="training", warning=warning)

    output = trained(run, warn(None), warn("a"), warn("step 3 is not"), warn("step 4 is not"))
    assert output.warnings == ["warning: a", "warning: step 3 is not"]


def test_a_warning_is_shown_again_when_it_changes_or_lasts():
    said: list[str] = []
    clock = Clock()
    notify = Messages(said.append, clock=clock)
    for warning in ("a 1", "a 2", "b", "a 3", None, "a 3"):
        notify.warning(warning)
    assert said == ["warning: a 1", "warning: b", "warning: a 3", "warning: a 3"]
    clock.now += REPEAT_SECONDS
    notify.warning("a 4")
    assert said[4:] == ["warning: a 4"]


def test_train_waits_for_the_trainer_of_a_train_that_was_killed(run: Run):
    files.write_file(run.trainer / LOCK, b"")
    held = files.lock(run.trainer / LOCK)
    began: list[bool] = []
    output = trained(run, lambda: began.append(True), lambda: os.close(held or 0), lambda: publish(run, 2))
    assert began
    assert len(output.messages) == 1
    assert output.messages[0].startswith("this run still has a trainer; waiting up to 30 s for it to save")
    assert output.progress  # and went on


def test_before_the_first_model_train_says_how_far_it_is(run: Run):
    games = {"games_under_way": 8, "plies_under_way": 20}
    beat(run, "w0.00000001", role="selfplay", state="playing", full_positions=50, **games)
    beat(run, "w1.00000002", role="selfplay", state="waiting for the first model", full_positions=40)
    beat(run, "trainer", role="trainer", state="waiting for 130 positions", bootstrap_positions=70)
    observer = observing(run)
    assert observer.describe([], rating=None) == (
        "1 worker playing, 1 worker waiting for the first model, 8 games under way, 2 plies each so far."
    )
    (bar,) = observer.bars()
    assert bar == ("first model", 90 / 200, 5 / 200, "90 of 200 positions")  # a quarter of the plies count
    beat(run, "trainer", role="trainer", state="training", bootstrap_positions=210, credit=330)
    observer.refresh()
    assert [each.text for each in observer.bars()] == ["step 0 of 10"]
    said = observer.describe([], rating="measuring step 3 against random")
    assert said.endswith("trainer training, measuring step 3 against random.")


def test_the_time_to_the_first_model_is_told_once_games_have_been_played_for_a_while(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()
    monkeypatch.setattr(supervisor.time, "monotonic", clock)
    observer, texts = observing(run), []
    for seconds, plies in ((0, 0), (30, 40), (8, 72), (8, 104)):
        clock.now += seconds
        beat(
            run, "w0.00000001", role="selfplay", state="playing", games_under_way=8, plies_under_way=plies, beats=plies
        )
        observer.refresh()
        texts += [bar.text for bar in observer.bars()]
    assert texts == ["0 of 200 positions"] * 3 + ["0 of 200 positions, about 3 min left"]


def test_a_budget_has_a_bar_if_it_can_be_counted_and_a_time_left_once_there_is_a_model(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()
    monkeypatch.setattr(supervisor.time, "monotonic", clock)
    observer, texts = observing(run), []
    assert [bar.name for bar in observer.bars()] == ["first model"]
    for step in (100, 200, 300, 400):
        clock.now += 30
        beat(run, "trainer", role="trainer", state="training", step=step, minutes=9, budget={"steps": 1000})
        observer.refresh()
        texts.append(observer.bars()[-1].text)
        files.write_file(run.models / f"000001-{step:09d}-0123abcd.onnx", b"")
    assert texts == ["10 %", "20 %", "30 %, about 4 min left", "40 %, about 3 min left"]


def test_a_resumed_run_counts_the_games_for_its_first_model_that_are_there(run: Run):
    play_segment(run, full=50)
    (bar,) = observing(run).bars()
    assert re.match("(5|6)[0-9] of 200 positions", bar.text)


def test_one_metrics_file_that_cannot_be_read_hides_no_other(run: Run, monkeypatch: pytest.MonkeyPatch):
    read, broken = events.read_part, failing(errno.EIO)

    def fail(path: Path, *arguments: Any, **more: Any) -> bytes:
        return (broken if path.name == "trainer-000000.jsonl" else read)(path, *arguments, **more)

    monkeypatch.setattr(events, "read_part", fail)
    output = trained(run, lambda: append_line(run.metrics / "trainer-000000.jsonl", {}), lambda: publish(run, 2))
    assert output.steps == [2]
    assert len(output.warnings) == 1


def test_train_says_what_a_process_waits_for_before_it_starts(run: Run, monkeypatch: pytest.MonkeyPatch):
    child = FakeChild("trainer", [], run.logs / "trainer.log")
    log = "12:00 INFO a: b\n12:01 WARNING plyzero.volume_errors: trainer/: Permission denied; will try again\n"
    monkeypatch.setattr(child, "read_log", lambda: log)
    said = observing(run).describe([child], rating=None)
    assert said == "Starting: trainer, trainer/: Permission denied; will try again."
    monkeypatch.setattr(child, "read_log", lambda: log + "12:02 INFO goes on\n")
    assert "again" not in observing(run).describe([child], rating=None)


@dataclass
class FakeChild:
    """A process that ends when it is asked to, unless `ends_with` is None; then it is killed after its time."""

    name: str
    arguments: list[str]
    log: Path
    niceness: int = 0
    sees_gpus: bool = True
    ends_with: int | None = 0
    code: int | None = None
    pid, was_killed = 1, False

    def ask_to_stop(self, seconds: float) -> None:
        self.code, self.was_killed = (-9, True) if self.ends_with is None else (self.ends_with, False)

    def exit_code(self) -> int | None:
        return self.code

    def wait(self, seconds: float) -> bool:
        return self.code is not None

    def read_log(self) -> str:
        return "plyzero: cannot use state: No space left on device"


def test_a_run_is_over_when_its_trainer_says_so_and_its_processes_end(run: Run):
    def end() -> None:
        beat(run, TRAINER, role=TRAINER, state="stopped", step=3, done="3 steps")
        worker.code = 0

    worker = FakeChild("w0", [], Path("w0.log"))
    ours, with_budget = Mock(return_value=nullcontext([worker])), open_run(run.root, options=["budget.steps=3"])
    (message,) = trained(with_budget, lambda: None, end, lambda: None, children=ours).messages
    assert re.fullmatch(r"done: 3 steps; \d+:\d\d for this start", message)
    assert trained(with_budget, children=ours).messages == ["done: 3 steps"]  # at once
    assert ours.call_count == 1
    with pytest.raises(ChildFailedError, match="w0 stopped by itself"):  # a larger budget: nobody should end
        trained(open_run(run.root, options=["budget.steps=4"]), lambda: None, children=ours)


def test_ctrl_c_is_acknowledged_before_anybody_is_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch):
    def interrupt() -> None:
        stop.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(local_processes, "start_plyzero", FakeChild)
    stop, said = Script(interrupt), []
    monkeypatch.setattr(FakeChild, "exit_code", lambda child: said.append("looked at") if stop.is_set() else None)
    monkeypatch.setattr(FakeChild, "wait", lambda child, seconds: setattr(FakeChild, "exit_code", lambda _: 0))
    train(run, workers=1, stop=stop, on_report=said.append, on_message=said.append)
    assert next(text for text in said if text != "looked at") == (
        "stopping: the workers store their finished games, the trainer saves and publishes"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (2, "trainer failed while it stopped: cannot use state: No space left on device (see"),
        (None, "it did not end within 60 s and was killed, what it learned since its last saved state is"),
    ],
)
def test_a_failure_while_a_process_stops_is_reported(
    run: Run, monkeypatch: pytest.MonkeyPatch, code: int | None, said: str
):
    monkeypatch.setattr(local_processes, "start_plyzero", partial(FakeChild, ends_with=code))
    with pytest.raises(ChildFailedError, match=re.escape(said)):
        trained(run, children=local_processes.children)


def test_workers_leave_the_cores_to_the_trainer(run: Run, monkeypatch: pytest.MonkeyPatch):
    found, begin = {}, Child.__init__

    def note(child: Child, *arguments: Any, **more: Any) -> None:
        begin(child, *arguments, **more)
        found[child.name] = os.getpriority(os.PRIO_PROCESS, child.pid), os.getsid(child.pid), os.getpgid(child.pid)

    monkeypatch.setattr(Child, "__init__", note)
    trained(run, children=local_processes.children)
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert {name: each[0] for name, each in found.items()} == {"trainer": ours, "w0": min(19, ours + 10)}
    assert {session for _, session, _ in found.values()} == {os.getsid(0)}  # another one would have its own share
    assert os.getpgid(0) not in {group for _, _, group in found.values()}  # so Ctrl-C does not reach them


def test_no_line_of_an_older_process_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "w0.log"
    log.write_text("plyzero: an error of yesterday\n")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, stdout, **__: stdout.write(b"of today\n"))
    assert Child("w0", ["selfplay"], log=log).read_log() == "of today\n"
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    assert Child("w0", ["selfplay"], log=log).read_log() == ""


def started_on_a_gpu(run: Run, monkeypatch: pytest.MonkeyPatch, **how: Any) -> tuple[dict[str, FakeChild], list[str]]:
    """The processes that `train` starts on a machine with a GPU, and what it reports."""
    said: list[str] = []
    monkeypatch.setattr(local_processes, "start_plyzero", FakeChild)
    monkeypatch.setattr(local_processes, "has_gpu", lambda: True)
    given = {"workers": 2, "device": "auto", **how}
    with local_processes.children(run, **given, options=[], on_progress=said.append, notify=said.append) as running:
        return {each.name: each for each in running}, said


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_on_a_gpu_one_evaluator_uses_it_for_all_workers(run: Run, monkeypatch: pytest.MonkeyPatch, device: str):
    found, _ = started_on_a_gpu(run, monkeypatch, device=device)
    assert list(found) == ["trainer", "evaluator", "w0", "w1"]
    command, options = parsed(found["evaluator"].arguments)
    assert (command, options["run"], options["host"]) == ("evaluator", run.root, "127.0.0.1")
    assert options["max_batch"] == 64
    for name in ("w0", "w1"):
        assert parsed(found[name].arguments)[1]["evaluator"] == f"127.0.0.1:{options['port']}"
    assert [name for name, each in found.items() if each.sees_gpus] == ["trainer", "evaluator"]


@pytest.mark.parametrize(("workers", "games", "batch"), [(1, 8, 64), (14, 256, 1024), (16, 256, 2048), (64, 512, 4096)])
def test_a_batch_has_half_of_all_games_while_the_others_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, workers: int, games: int, batch: int
):
    run = open_run(run.root, options=[f"selfplay.parallel_games={games}"])
    found, _ = started_on_a_gpu(run, monkeypatch, workers=workers)
    assert parsed(found["evaluator"].arguments)[1]["max_batch"] == batch


@pytest.mark.parametrize("why", ["device", "reproducible", "scores", "no grpc"])
def test_without_an_evaluator_workers_may_use_the_gpu_themselves(run: Run, monkeypatch: pytest.MonkeyPatch, why: str):
    how: dict[str, Any] = {"device": {"device": "cpu"}, "reproducible": {"workers": 0}}.get(why, {})
    if why == "scores":
        run = open_run(run.root, options=["search.score_weight=0.5"])
    if why == "no grpc":
        monkeypatch.setattr(local_processes, "find_spec", lambda name: None)
    found, said = started_on_a_gpu(run, monkeypatch, **how)
    assert list(found) == ["trainer", *(["w0", "w1"] if why != "reproducible" else [])]
    assert all(each.sees_gpus and "--evaluator" not in each.arguments for each in found.values())
    assert any("pip install -e '.[grpc]'" in each for each in said) == (why == "no grpc")


def test_a_process_that_may_not_see_gpus_finds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begun: list[dict[str, Any]] = []
    monkeypatch.setattr(child_processes.subprocess, "Popen", lambda *_, **how: begun.append(how))
    start_plyzero("w0", ["selfplay"], tmp_path / "log", sees_gpus=False)
    start_plyzero("w0", ["selfplay"], tmp_path / "log")
    assert begun[0]["env"] == os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    assert begun[1]["env"] is None
