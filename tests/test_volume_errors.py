"""Errors of the volume: whatever the number, a process waits and goes on, or ends with one sentence."""

import errno
import fcntl
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import pytest

from plyzero import files, volume_errors
from plyzero.commands import cli
from plyzero.errors import UserError
from plyzero.run import adoption, journals, lease
from plyzero.run.directory import Run, read_run
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.lease import Lease
from plyzero.run.metrics import Heartbeat
from plyzero.run.models import list_models, publish_model
from plyzero.run.segments import list_segments, read_segment
from plyzero.selfplay import replay_writer
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.threads import repeating
from plyzero.trainer.loop import SAVE_SECONDS, Trainer
from plyzero.trainer.replay_reader import ReplayReader
from plyzero.trainer.state import load_state, save_state
from plyzero.volume_errors import retry, wait_for
from tests.helpers.beats import fields_of
from tests.helpers.clock import Clock
from tests.helpers.hostile import failing
from tests.helpers.segments import seal, some_games

NUMBERS: Final = sorted(errno.errorcode)
FINAL: Final = {
    *("ENOENT", "EEXIST", "ENAMETOOLONG", "ENOTDIR", "EISDIR", "ELOOP", "EINVAL", "EBADF", "EXDEV"),
    *("ENOSYS", "ENOTSUP", "EOPNOTSUPP"),
}
"""The numbers that no waiting mends: a process may end with a sentence."""

CALLS: Final = (
    *("open", "pwrite", "fsync", "fdatasync", "link", "replace", "unlink"),
    *("stat", "fstat", "listdir", "scandir", "flock"),
)
TIMES: Final = 2
"""Number of times that each call and each fault point fails before it works."""

Work = Callable[[Run, int], None]


class FailingSystem:
    """Stands in for `os` and `fcntl`: each call and each fault point fails TIMES times with `number`, or only one does.

    met: how often each has failed.
    """

    LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

    def __init__(self, number: int, only: str | None = None) -> None:
        self._number, self._only = number, only
        self.met = Counter[str]()

    def __getattr__(self, name: str) -> Any:
        real = fcntl.flock if name == "flock" else getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            self.reach(name)
            return None if "sync" in name else real(*arguments, **options)

        return call

    def reach(self, name: str, _: object = None) -> None:
        if self._only in (None, name) and self.met[name] < TIMES * (self._number > 0):
            self.met[name] += 1
            raise OSError(self._number, os.strerror(self._number))
        self.met[name] += 0

    @contextmanager
    def mounted(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module in (files, journals, adoption):
                stack.enter_context(patch.object(module, "os", self))
            stack.enter_context(patch.object(files, "fcntl", self))
            stack.enter_context(patch.object(files, "fault_point", self.reach))
            yield


class Wake:
    """Stands in for the event that wakes a writer: it closes the writer once nothing waits, instead of waiting."""

    def __init__(self, writer: ReplayWriter) -> None:
        self._writer = writer

    def wait(self, _: float) -> None:
        writer = self._writer
        writer._closing = not (writer.write_error or writer._waiting or writer._unchecked)

    def set(self) -> None: ...

    def clear(self) -> None: ...


def write_games(run: Run, case: int) -> None:
    """A worker stores its games; none is lost that was acknowledged, also where it ends."""
    incarnation, games = f"{case:08x}", [some_games(run.game, 10 * case + each, (3,)) for each in range(3)]
    writer = ReplayWriter(run, worker="w0", incarnation=incarnation)
    writer._thread = SimpleNamespace(start=lambda: None, check=lambda: None)  # type: ignore[assignment]
    writer._wake = Wake(writer)  # type: ignore[assignment]
    made = {each.games["id"][0] for each in games}
    try:
        writer.__enter__()
        for each in games:
            writer.add(each)
        writer._work()
        acknowledged = made
    except OSError:
        acknowledged = {each.games["id"][0] for each in writer._journaled}
        raise
    finally:
        with FailingSystem(0).mounted():
            found = Counter[int]()
            for name in list_segments(run.segments):
                if name.incarnation == incarnation:
                    segment = read_segment(run.segments / str(name), run.game, run_id=run.id)
                    found.update(segment.games["id"].tolist())
            assert set(found.values()) <= {1}
            for left in list_journals(run.journals):
                if left.incarnation == incarnation:
                    for batch in read_journal(run.journals / str(left), run.game, run_id=run.id):
                        found.update(batch.games["id"].tolist())
            assert acknowledged <= found.keys() <= made


def read_games(run: Run, case: int) -> None:
    """The trainer reads three segments, each once."""
    incarnation, clock = f"{case:08x}", Clock()
    with FailingSystem(0).mounted():
        for sequence in range(3):
            seal(run, some_games(run.game, sequence, (3,)), sequence, f"w0.{incarnation}")
    reader, read = ReplayReader(run, clock=clock), list[int]()
    for _ in range(40):
        read += [name.sequence for name, _ in reader.read_new()]
        clock.now += 30
    assert (read, reader.missing_segments, reader.read_error) == ([0, 1, 2], 0, None)
    assert not list(run.root.glob("quarantine/*"))
    for path in run.segments.iterdir():
        path.unlink()


def publish(run: Run, case: int) -> None:
    """The trainer saves its state and publishes a model."""
    trainer = SimpleNamespace(learner=SimpleNamespace(step=case), reporter=SimpleNamespace())
    trainer.publisher = SimpleNamespace(
        save=lambda: save_state(run.trainer, {"step": case}, fence=1, step=case),
    )
    trainer._publish = lambda: publish_model(run.models, b"model", fence=1, step=case)
    trainer._attempt = partial(Trainer._attempt, trainer)
    for _ in range(60):
        trainer.reporter.warning = None
        Trainer.publish(trainer)
        if trainer.reporter.warning is None:
            break
        assert trainer.reporter.warning.startswith(f"step {case} is not published, training goes on: ")
    with FailingSystem(0).mounted():
        assert list_models(run.models)[0].step == load_state(run.trainer)["step"] == case


def save_at_the_end(run: Run, case: int) -> None:
    """The trainer saves its state when it ends."""
    for _ in range(10):  # each call has less time than it takes until everything has failed often enough
        try:
            retry(lambda: save_state(run.trainer, {"step": case}, fence=1, step=case), "trainer/", seconds=SAVE_SECONDS)
            break
        except OSError as error:
            if not volume_errors.is_transient(error):
                raise
    with FailingSystem(0).mounted():
        assert load_state(run.trainer)["step"] == case


def beat(run: Run, case: int) -> None:
    """A process writes its heartbeat."""
    heartbeat = Heartbeat(run.workers / "w0.00000001.json")
    for _ in range(40):
        heartbeat.beat({"role": "selfplay", "state": f"case {case}"}, force=True)
        if heartbeat._file_errors.summary is None:
            break
    with FailingSystem(0).mounted():
        assert fields_of(run.workers / "w0.00000001.json")["state"] == f"case {case}"


def start(run: Run, case: int) -> None:
    """A process opens the run, a trainer takes the lease and reads its newest state."""
    with FailingSystem(0).mounted():
        for path in run.trainer.iterdir():
            path.unlink()
        save_state(run.trainer, {"step": 7}, fence=1, step=7)
    assert wait_for(lambda: read_run(run.root), "run.toml").settings == run.settings
    wait_for(lambda: Lease(run.trainer, {}), "trainer/").release()
    state = wait_for(lambda: load_state(run.trainer), "trainer/")
    if state is None:
        raise UserError("there is no state")  # as ENOENT says
    assert state["step"] == 7


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (volume_errors, replay_writer, lease):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda _: None, monotonic=itertools.count().__next__))


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("work", [write_games, read_games, publish, save_at_the_end, beat, start])
def test_whatever_error_the_volume_has_a_process_waits_and_goes_on_or_ends_with_a_sentence(work: Work, run: Run):
    cases, sound = itertools.count(1), FailingSystem(0)
    with sound.mounted():
        work(run, next(cases))
    ended, waited = Counter[str](), 0
    for number in NUMBERS:
        name = errno.errorcode[number]
        for only in sorted(sound.met) if name in FINAL else [None]:
            system = FailingSystem(number, only)
            with system.mounted():
                try:
                    work(run, next(cases))
                    waited += 1
                except (UserError, OSError) as error:
                    ended[name if isinstance(error, UserError) else errno.errorcode[error.errno]] += 1
            assert system.met.total()
    assert ended.keys() <= FINAL
    print(f"{work.__name__}: {len(NUMBERS)} numbers at {len(sound.met)} calls and fault points; ", end="")
    print(f"{waited} histories waited and went on, {ended.total()} ended with a sentence: {dict(ended)}")


def test_a_command_says_every_error_of_the_system_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for number in NUMBERS:
        monkeypatch.setattr(cli, "app", lambda number=number, **_: failing(number)())
        with pytest.raises(SystemExit) as ended:
            cli.main()
        (line,) = capsys.readouterr().err.splitlines() or [""]
        if number == errno.EPIPE:  # of an output that nobody reads
            assert (ended.value.code, line) == (1, "")
        else:
            assert (ended.value.code, line.startswith("plyzero: cannot use ")) == (2, True)
            assert os.strerror(number) in line


def test_a_thread_that_repeats_its_work_goes_on_after_an_error_of_the_volume(caplog: pytest.LogCaptureFixture):
    left, done = iter([*NUMBERS, 0]), []

    def work() -> None:
        number = next(left, 0)
        while errno.errorcode.get(number) in FINAL:
            number = next(left, 0)
        if number:
            raise OSError(number, os.strerror(number))
        done.append(True)

    with repeating(work, 0.0, name="heartbeat") as thread:
        while not done and thread.is_alive():
            thread.join(0.001)
    assert thread.error is None
    assert "heartbeat: Host is down; will try again" in caplog.text
    assert "Traceback" not in caplog.text


def test_the_numbers_that_no_waiting_mends_are_few():
    assert {errno.errorcode[number] for number in volume_errors.FINAL} <= FINAL
