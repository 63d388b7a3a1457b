"""The store as one machine: whatever happens to workers, trainer and volume, each acknowledged game is read once.

The model is two sets of games, those that are acknowledged and those that the trainer has read, and what is on the disk
for certain. Everything else is the code of plyzero; only its clock and its volume are the test's own. Each step is one
thing that can happen. At the end of every history all errors end, and what was acknowledged must have been read.
"""

import logging
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from plyzero import files, volume_errors
from plyzero.errors import UserError
from plyzero.kits.cluster.bucket import BucketPath
from plyzero.ops.verify import restore
from plyzero.run import adoption, journals
from plyzero.run.adoption import Adoption
from plyzero.run.directory import Run, create_run
from plyzero.run.journals import FRAME, MAGIC, Journal, list_journals
from plyzero.run.metrics import Heartbeat
from plyzero.run.records import Games, JournalName
from plyzero.run.segments import SegmentName, list_segments, write_segment
from plyzero.run.view import GONE_SECONDS, STALLED_SECONDS, by_beats
from plyzero.selfplay import replay_writer
from plyzero.selfplay.replay_writer import ReplayWriter
from plyzero.trainer.replay_reader import GAP_SECONDS, ReplayReader
from plyzero.trainer.retention import Retention
from plyzero.trainer.state import load_state, save_state
from plyzero.volume_errors import wait_for
from tests.helpers.clock import Clock
from tests.helpers.fault_points import FAULT_POINTS
from tests.helpers.model_volume import LOCKS, TROUBLES, IdleError, ModelVolume, Process, Trouble
from tests.helpers.segments import RELAY, some_games

POSITIONS = 4
SETTINGS = (
    f"selfplay.seal_positions={6 * POSITIONS}",
    "selfplay.seal_seconds=1000",
    f"store.keep_positions={3 * POSITIONS}",
    "store.min_free_mb=0",
    "store.min_free_files=0",
)
VOLUMES = ("directory", "directory without locks", "bucket")
WINDOW = 2
"""Segments in the window of the trainer."""

WHERE = st.integers(1, 20) | st.sampled_from(FAULT_POINTS)
TROUBLE = st.none() | st.builds(Trouble, WHERE, st.sampled_from(TROUBLES))
SECONDS = st.sampled_from([0.0, STALLED_SECONDS, 3 * STALLED_SECONDS, GAP_SECONDS, GONE_SECONDS])
IN_APPEND = st.sampled_from([point for point in FAULT_POINTS if point.startswith("append: ")])
SILENCE = st.sampled_from([STALLED_SECONDS, GONE_SECONDS])
WHICH = st.integers(0, 9)
TEMPLATE = some_games(RELAY, 0, (POSITIONS,))


class Turns:
    """Stands in for the event that wakes a writer: it tries again three times, and then waits for the machine."""

    def __init__(self) -> None:
        self.tries = 0

    def set(self) -> None:
        self.tries = 3

    def clear(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        if seconds == 0:
            return
        if seconds < 1 or self.tries <= 0:
            raise IdleError
        self.tries -= 1


class Worker(Process):
    """A worker: the loop of its replay writer, and its heartbeat. shown_at: when it has last shown that it lives.

    slept: whether it was ever silent for so long that it may drop a game that it was writing.
    """

    def __init__(self, run: Run, number: int, clock: Clock) -> None:
        super().__init__()
        self.name, self._clock = f"w0.{number:08x}", clock
        self.slept = False
        self.writer = ReplayWriter(run, worker="w0", incarnation=f"{number:08x}")
        self.writer._thread = SimpleNamespace(start=lambda: None, check=lambda: None)  # type: ignore[assignment]
        self.writer._wake = Turns()  # type: ignore[assignment]
        self._heartbeat = Heartbeat(*run.heartbeats(self.name)[1:])  # that of the container is not on the volume
        self.beat()

    def beat(self) -> None:
        self._heartbeat.beat({"role": "selfplay", "state": "playing"}, force=True)
        self.shown_at = self._clock.now

    def owns(self, name: JournalName) -> bool:
        """Return whether it goes on to write into this journal."""
        is_own = self.alive and name.owner == self.name and name.sequence == self.writer._sequence
        return is_own and self.writer._journal is not None

    def work(self) -> None:
        self.writer._wake.set()
        self.writer._work()

    def is_done_with(self, name: SegmentName) -> bool:
        """Return whether it never looks for a segment of its own again."""
        writer = self.writer
        return name.sequence < writer._sequence and name.sequence not in writer._in_doubt and not writer._must_seal


class Trainer(Process):
    """A trainer without a network.

    read:   how often it has read each game, those of the state from which it has resumed included.
    window: the segments of which a state says that they are read again.
    missing: those of them that were not there when it resumed.
    saved:  whether it has saved a state.
    """

    def __init__(self, run: Run, number: int, clock: Clock) -> None:
        super().__init__()
        self.run, self._fence, self._step = run, number, 0
        self.read: Counter[int] = Counter()
        self.window: list[str] = []
        self.missing: list[str] = []
        self.saved = False
        self.reader = ReplayReader(run, clock=clock)
        self.adoption = Adoption(run, clock=clock)
        self.retention = Retention(run, clock=clock)

    def resume(self) -> None:
        state = wait_for(lambda: load_state(self.run.trainer), "trainer/")
        if state is None:
            return
        self.read = Counter(state["read"])  # type: ignore[typeddict-item]
        self.reader.cursor, self.reader.skipped = state["cursor"], state["skipped"]
        self.reader.missing_segments = state["holes"]
        self.retention.remember_state(0, state)
        for each in state["window"]:
            name = SegmentName.parse(each)
            assert name is not None
            try:
                self.reader.read_again(name)
                self.window.append(each)
            except FileNotFoundError:
                self.missing.append(each)

    def ingest(self, fails_at: int | None = None, steps: int | None = None) -> None:
        """Read what is new. fails_at: number of the segment with which its caller fails. steps: before it saves."""
        for number, (name, games) in enumerate(self.reader.read_new()):
            if number == fails_at:
                break
            assert name.sequence <= self.reader.cursor.get(name.incarnation, 0), "read before an earlier one"
            self.read.update(games.games["id"].tolist())
            self.window = [*self.window, str(name)][-WINDOW:]
        if steps is not None:
            self._save(steps)

    def _save(self, steps: int) -> None:
        self._step += steps
        state = {
            "step": self._step,
            "read": list(self.read.elements()),
            "cursor": self.reader.cursor,
            "skipped": self.reader.skipped,
            "holes": self.reader.missing_segments,
            "window": self.window,
        }
        try:
            save_state(self.run.trainer, state, fence=self._fence, step=self._step)  # type: ignore[arg-type]
        except OSError:
            return  # it is saved later
        self.saved = True
        self.retention.remember_state(self._fence, state)  # type: ignore[arg-type]

    def maintain(self) -> None:
        self.adoption.adopt()
        self.retention.view.refresh()
        self.retention.prune_for_states()


class Store(RuleBasedStateMachine):
    """Two workers, one after another under each number, and one trainer at a time."""

    def __init__(self, kind: str, happened: Counter[str]) -> None:
        super().__init__()
        self._kind, self.happened = kind, happened
        self._stack = ExitStack()

    @initialize(unlocked=st.sampled_from(LOCKS[1:]), seconds=st.sampled_from([0, 0, 5]))
    def begin(self, unlocked: str, seconds: int) -> None:
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        kinds = {"directory": "locks", "directory without locks": unlocked, "bucket": "locks"}
        self.locks = kinds[self._kind]
        self.clock, self.volume = Clock(), ModelVolume(directory, self.locks)
        self._stack.enter_context(self.volume.mounted())
        root = BucketPath("memory://runs/r") if self._kind == "bucket" else directory / "r"
        options = (*SETTINGS, f"store.sync_seconds={seconds}")
        self.run = create_run(root, RELAY, options=options)
        if self._kind == "bucket":
            object.__setattr__(self.run, "scratch", directory)
            self.run.journals.mkdir(parents=True)
            (self.run.local / "workers").mkdir()
        self.acknowledged: set[int] = set()
        self.on_disk: set[int] = set()
        self.excused: set[int] = set()  # may be lost
        self.made_by: defaultdict[str, set[int]] = defaultdict(set)  # owner of a journal -> its games
        self.frames: dict[str, list[tuple[int, int, int]]] = {}  # of a journal: game, begin and end
        self.given_up: set[str] = set()  # journals that could not be synced once: the system forgets what it had
        self.sealed: set[str] = set()
        self.removed: set[str] = set()  # segments that were read, so that it does not matter if they are sealed again
        self.spoiled: set[str] = set()  # owners of journals, and segments
        self.away: dict[SegmentName, bytes] = {}  # not visible for a while
        self.damaged: dict[SegmentName, bytes] = {}
        self.rolled_back = False
        self.games = self.starts = self.copies = self.power_failures = 0
        self.seconds = seconds
        self._observe()
        self.workers = [self._new_worker(), self._new_worker()]
        self.trainer = self._new_trainer()
        for worker in self.workers:
            worker.do(worker.writer.__enter__)

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and hasattr(self, "trainer"):
                self._settle()
        finally:
            for process in (*getattr(self, "workers", ()), *([self.trainer] if hasattr(self, "trainer") else [])):
                process.kill()
            self._stack.close()

    def _observe(self) -> None:
        """Let the model know what is acknowledged, and what is on the disk for certain."""
        append, sync = Journal.append, Journal.sync

        def appended(journal: Journal, games: Games) -> None:
            begin, size = journal._size, os.fstat(journal._descriptor).st_size
            append(journal, games)
            (game,) = games.games["id"].tolist()
            self.acknowledged.add(game)
            for worker in self.workers:
                if journal is worker.writer._journal and size < journal._size:
                    worker.shown_at = self.clock.now
            self.frames.setdefault(journal._path.stem, []).append((game, begin, journal._size))

        def synced(journal: Journal) -> None:
            try:
                sync(journal)
            except OSError:
                self.given_up.add(journal._path.stem)
                raise
            if journal._path.stem not in self.given_up:
                self.on_disk.update(game for game, _, _ in self.frames.get(journal._path.stem, ()))

        def written(directory: Path, games: Games, *arguments: object, **options: object) -> Path:
            path = write_segment(directory, games, *arguments, **options)  # type: ignore[arg-type]
            self.on_disk.update(games.games["id"].tolist())
            assert path.name not in self.sealed - self.removed, "two have created one segment"
            self.sealed.add(path.name)
            self.removed.discard(path.name)
            name = SegmentName.parse(path.name)
            numbers = [each.sequence for each in list_segments(directory) if each.journal.owner == name.journal.owner]
            assert numbers.count(name.sequence) == 1, "two segments have one number"
            assert self.made_by[name.journal.owner].issuperset(games.games["id"].tolist()), "of another worker"
            return path

        timing = SimpleNamespace(monotonic=self.clock, sleep=lambda _: None)
        for owner, name, replacement in (
            (Journal, "append", appended),
            (Journal, "sync", synced),
            (replay_writer, "write_segment", written),
            (adoption, "write_segment", written),
            (replay_writer, "now", self.clock),
            (journals, "now", self.clock),
            (replay_writer, "time", timing),
            (volume_errors, "time", timing),
        ):
            self._stack.enter_context(patch.object(owner, name, replacement))

    def _new_worker(self) -> Worker:
        self.starts += 1
        return Worker(self.run, self.starts, self.clock)

    def _new_trainer(self) -> Trainer:
        self.starts += 1
        trainer = Trainer(self.run, self.starts, self.clock)
        trainer.do(trainer.resume)
        assert self.power_failures or not trainer.missing, "a segment of the window is gone"
        return trainer

    def _do(self, process: Process, work: Callable[[], object], trouble: Trouble | None) -> None:
        process.do(work, trouble)
        self._note(process)

    def _note(self, process: Process) -> None:
        if process is self.trainer:
            self.removed |= self.sealed.difference(files.list_names(self.run.segments), map(str, self.away))
        if process.met:
            what, _, point = process.met.partition(" after ")
            self.happened[f"{type(process).__name__} {what}"] += 1
            if what == "killed":
                self.happened[f"killed after {point}"] += 1

    def _can(self, number: int) -> bool:
        return self.workers[number].alive and not self.workers[number].paused

    @property
    def trainer_can(self) -> bool:
        return self.trainer.alive and not self.trainer.paused

    @rule(number=st.integers(0, 1), count=st.integers(1, 3), seal=st.booleans(), trouble=TROUBLE)
    def write(self, number: int, count: int, seal: bool, trouble: Trouble | None) -> None:
        """A worker finishes games, and writes them down."""
        worker = self.workers[number]
        if worker.paused:
            worker.go_on(trouble)
            self._note(worker)
            return
        if not worker.alive:
            worker = self.workers[number] = self._new_worker()
            self._do(worker, worker.writer.__enter__, None if seal else trouble)
            if not self._can(number):
                return
        for _ in range(count):
            self.games += 1
            self.made_by[worker.name].add(self.games)
            games = TEMPLATE.games.copy()
            games["id"] = self.games
            worker.writer.add(Games(games, TEMPLATE.positions, TEMPLATE.moves, TEMPLATE.observations))
        if seal:
            worker.writer.seal_soon()
        self._do(worker, worker.work, trouble)
        if self._can(number) and not worker.writer.write_error:
            made = self.made_by[worker.name]
            assert self.seconds or made & self.acknowledged <= self.on_disk, "not synced"

    @precondition(lambda self: self.trainer_can)
    @rule(rounds=st.integers(1, 3), seconds=SECONDS, reads=st.booleans())
    def let_time_pass(self, rounds: int, seconds: float, reads: bool) -> None:
        """Nothing happens to anybody: games are written and sealed, some are read, and what is old goes."""
        for _ in range(rounds):
            for number in range(len(self.workers)):
                self.write(number, 1, True, None)
            if reads:
                self.read(seconds, None, 1, None)
            self.maintain(seconds, None)

    @precondition(lambda self: self.trainer_can)
    @rule(
        number=st.integers(0, 1),
        at=IN_APPEND | WHERE,
        seconds=SILENCE,
        rounds=st.sampled_from([1, 3, 4]),
        trouble=TROUBLE,
    )
    def suspend(self, number: int, at: int | str, seconds: float, rounds: int, trouble: Trouble | None) -> None:
        """A worker is suspended, if it comes so far while it writes, and the trainer looks after the volume."""
        if not self.workers[number].paused:
            self.write(number, 2, False, Trouble(at, "stops"))
        for _ in range(rounds):
            self._wait(seconds)
            if self.trainer_can:
                self._maintain(trouble)
            trouble = None
        if self.trainer_can:
            self.trainer.do(self.trainer.ingest)

    @precondition(lambda self: any(worker.alive for worker in self.workers))
    @rule(number=st.integers(0, 1), how=st.sampled_from(["killed", "ends"]))
    def end_worker(self, number: int, how: str) -> None:
        worker = self.workers[number]
        if how == "ends" and self._can(number):
            self._close(worker)
        worker.kill()

    @precondition(lambda self: self.trainer_can)
    @rule(seconds=SECONDS, trouble=TROUBLE)
    def maintain(self, seconds: float, trouble: Trouble | None) -> None:
        """The trainer looks for journals of the dead, and removes what is not needed."""
        self._wait(seconds)
        self._maintain(trouble)

    @precondition(lambda self: self.trainer_can)
    @rule(
        seconds=st.sampled_from([0.0, GAP_SECONDS]),
        fails_at=st.none() | st.integers(0, 3),
        steps=st.none() | st.integers(0, 1),
        trouble=TROUBLE,
    )
    def read(self, seconds: float, fails_at: int | None, steps: int | None, trouble: Trouble | None) -> None:
        """The trainer reads what is new, and saves its state after so many steps."""
        self._wait(seconds)
        self._do(self.trainer, lambda: self.trainer.ingest(fails_at, steps), trouble)

    @precondition(lambda self: not self.trainer_can)
    @rule(trouble=TROUBLE)
    def go_on_with_trainer(self, trouble: Trouble | None) -> None:
        if self.trainer.paused:
            self.trainer.go_on(trouble)
            self._note(self.trainer)
        else:
            self.trainer = self._new_trainer()

    @rule(older=st.booleans())
    def restart_trainer(self, older: bool) -> None:
        """The trainer is killed. The next one resumes from the state before, if somebody takes the newest away."""
        self.trainer.kill()
        states = sorted(name for name in files.list_names(self.run.trainer) if name.endswith(".pt"))
        if older and len(states) > 1 and (self.trainer.saved or not self.rolled_back):
            self._remove(self.run.trainer / states[-1])
            self.rolled_back = True
            self.happened["state before"] += 1
        else:
            self.rolled_back = self.rolled_back and not self.trainer.saved
        before = self.trainer.read
        self.trainer = self._new_trainer()
        self.happened["games read again"] += len(before) - len(self.trainer.read)

    @precondition(lambda self: not self.power_failures and any(worker.alive for worker in self.workers))
    @rule(kept=st.sampled_from(["nothing", "names", "some"]), seed=st.integers(0, 99))
    def fail_of_power(self, kept: str, seed: int) -> None:
        for process in (*self.workers, self.trainer):
            process.kill()
        self.volume.fail_of_power(kept, random.Random(seed))
        lost = self.acknowledged - self.on_disk
        self.excused |= lost
        self.power_failures += 1
        self.happened["power failures"] += 1
        self.happened["games that were not synced"] += len(lost)
        self.rolled_back = True
        self.trainer = self._new_trainer()

    @precondition(lambda self: self.trainer_can)
    @rule(which=WHICH, how=st.sampled_from(["torn", "torn", "cut", "damaged"]), part=st.floats(0, 1, width=16))
    def spoil_journal(self, which: int, how: str, part: float) -> None:
        """The journal of a dead worker ends within a frame, or a byte of it changes."""
        alive = {worker.name for worker in self.workers if worker.alive}
        kept = [name for name in list_journals(self.run.journals) if name.owner not in alive]
        names = [name for name in kept if name.owner not in self.spoiled]
        if not names:
            return
        name = names[which % len(names)]
        self.spoiled.add(name.owner)
        path = self.run.journals / str(name)
        content = files.read_file(path, max_bytes=1 << 20)
        if not content:
            return
        at = int(part * (len(content) - 1))
        frames = self.frames.get(path.stem, [])
        first = len(content)  # where games begin
        if content.startswith(MAGIC) and len(content) >= FRAME.size:
            first = min(first, FRAME.size + FRAME.unpack_from(content)[1])
        if how == "torn":
            content += content[: max(1, int(part * (first - 1)))]
        elif how == "cut":
            content = content[:at]
            self.excused.update(game for game, _, end in frames if end > at or at < first)
        else:
            content = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            self.excused.update(game for game, begin, end in frames if begin <= at < end or at < first)
        self.happened[f"journals {how}"] += 1
        files.write_file(path, content, replace=True)

    @precondition(lambda self: self.trainer_can and self.copies < 2)
    @rule(which=WHICH)
    def copy(self, which: int) -> None:
        """The copy of a journal or of a segment appears under another name."""
        segments = [(self.run.segments, name) for name in sorted(list_segments(self.run.segments))]
        found = [*((self.run.journals, name) for name in list_journals(self.run.journals)), *segments]
        if not found:
            return
        directory, name = found[which % len(found)]
        self.starts, self.copies = self.starts + 1, self.copies + 1
        copied = name._replace(incarnation=f"{self.starts:08x}")
        content = files.read_file(directory / str(name), max_bytes=1 << 20)
        files.write_file(directory / str(copied), content)
        self.happened["copies"] += 1

    def _unread(self) -> list[SegmentName]:
        """Return the segments that nobody has read or looks for again."""
        own = {worker.name: worker for worker in self.workers}
        left = {(name.incarnation, name.sequence) for name in list_journals(self.run.journals)}
        return [
            name
            for name in sorted(list_segments(self.run.segments))
            if str(name) in self.sealed
            and name.sequence >= self.trainer.reader.cursor.get(name.incarnation, 0)
            and (name.incarnation, name.sequence) not in left
            and (not (worker := own.get(name.journal.owner)) or not worker.alive or worker.is_done_with(name))
            and name not in self.damaged
        ]

    @precondition(lambda self: self.trainer_can and not any(worker.paused for worker in self.workers))
    @rule(which=WHICH, how=st.sampled_from(["away", "damaged"]))
    def spoil_segment(self, which: int, how: str) -> None:
        """A segment, of many a new one, is not visible for a while, or is damaged."""
        self.write(0, 1, True, None)
        if not (names := self._unread()):
            return
        name = names[which % len(names)]
        path = self.run.segments / str(name)
        content = files.read_file(path, max_bytes=1 << 20)
        self.happened[f"segments {how}"] += 1
        self.spoiled.add(str(name))
        if how == "away":
            self.away[name] = content
            self._remove(path)
        else:
            self.damaged[name] = content
            files.write_file(path, content[:-9], replace=True)

    @precondition(lambda self: self.trainer_can and (self.away or self.damaged))
    @rule()
    def mend_segments(self) -> None:
        """The segments appear; those in quarantine are brought back."""
        for name, content in self.away.items():
            files.write_file(self.run.segments / str(name), content, replace=True)
        for name, content in self.damaged.items():
            for directory in (self.run.segments, self.run.quarantine):
                if str(name) in files.list_names(directory):
                    files.write_file(directory / str(name), content, replace=True)
        self.away.clear()
        self.damaged.clear()
        brought_back = [fault for _, fault in restore(self.run)].count(None)
        self.happened["brought back from quarantine"] += brought_back

    def _remove(self, path: Path) -> None:
        files.remove(path)
        if self._kind != "bucket":
            files.sync_directory(path.parent)

    def _wait(self, seconds: float) -> None:
        """Let time pass, in which all who do not stand still show that they live."""
        self.clock.now += seconds
        for worker in self.workers:
            if seconds and worker.alive and not worker.paused:
                worker.beat()

    def _maintain(self, trouble: Trouble | None = None) -> None:
        """Let the trainer look after the volume; the journal of a living worker must stay."""
        for worker in self.workers:
            worker.slept |= self.clock.now - worker.shown_at >= GONE_SECONDS
        segments = len(list(list_segments(self.run.segments)))
        journals = list_journals(self.run.journals)
        held = [(name, worker) for name in journals for worker in self.workers if worker.owns(name) and not name.taken]
        self._do(self.trainer, self.trainer.maintain, trouble)
        self.happened["segments removed"] += max(0, segments - len(list(list_segments(self.run.segments))))
        left = list_journals(self.run.journals)
        patience = {"no locks": GONE_SECONDS, "locks that do not cross": by_beats(self.run, STALLED_SECONDS)}
        for name, worker in held:
            if name not in left:
                silence = self.clock.now - worker.shown_at
                assert silence >= patience.get(self.locks, float("inf")), "the journal of a living worker was taken"
                self.happened["journals of the living taken"] += 1
        self.happened["journals sealed"] += sum(name.taken for name in journals) - sum(
            name.taken for name in left if name in journals
        )

    def _close(self, worker: Worker) -> None:
        worker.writer._closing = True
        self._do(worker, worker.work, None)
        assert not worker.writer._waiting, "a writer has ended with games that are nowhere"
        assert worker.writer._in_doubt or not worker.writer.unsealed_full_positions
        if not worker.slept:
            self.acknowledged |= self.made_by[worker.name]

    @invariant()
    def nothing_is_read_twice_or_made_up(self) -> None:
        if hasattr(self, "trainer"):
            assert set(self.trainer.read.values()) <= {1}, "a game was read twice"
            assert self.trainer.read.keys() <= set(range(1, self.games + 1)), "a game was read that nobody made"

    def _settle(self) -> None:
        """End all errors, let everybody come to an end, and check that every game was read once."""
        for process in (*self.workers, self.trainer):
            if process.paused:
                process.go_on()
        for worker in self.workers:
            if worker.alive:
                self._close(worker)
            worker.kill()
        if not self.trainer.alive:
            self.trainer = self._new_trainer()
        self.mend_segments()
        self._read_all()
        if not (self.spoiled or self.copies or self.power_failures):
            assert not files.list_names(self.run.quarantine), "put away though nothing was damaged"
        if not (self.copies or self.power_failures):
            assert not self._whole_journals(), "a journal is left"
            assert self.spoiled or not self.trainer.reader.missing_segments, "a hole that never was"
        self.happened["games made"] += self.games
        self.happened["games acknowledged"] += len(self.acknowledged)
        self.happened["games excused"] += len(self.excused)
        self.happened["games read"] += len(self.trainer.read)
        self.happened["segments"] += len(self.sealed)
        states = sorted(name for name in files.list_names(self.run.trainer) if name.endswith(".pt"))
        states = states[-1:] if self.rolled_back and not self.trainer.saved else states[-2:]
        while states:
            self.trainer.kill()
            self.trainer = self._new_trainer()
            self._read_all()
            files.remove(self.run.trainer / states.pop())

    def _whole_journals(self) -> list[JournalName]:
        """Return the journals without damage, which need not be brought back from quarantine again and again."""
        return [name for name in list_journals(self.run.journals) if name.owner not in self.spoiled]

    def _read_all(self) -> None:
        before = 0
        for number in range(12):
            self.clock.now += GONE_SECONDS
            self._maintain()
            self.trainer.do(self.trainer.ingest)
            self.mend_segments()
            after = len(self.trainer.read)
            if number > 3 and before == after and not self._whole_journals():
                break
            before = after
        self.nothing_is_read_twice_or_made_up()
        lost = self.acknowledged - self.excused - self.trainer.read.keys()
        assert not lost, f"lost: {sorted(lost)}"


HAPPENS = (
    *("Worker killed", "Worker stops", "Worker fails", "Worker fails though done", "Trainer killed", "Trainer stops"),
    *("journals sealed", "journals torn", "segments away", "segments damaged", "games read again", "power failures"),
)
"""Events that a long run of the machine must contain: without them it would prove nothing."""


HISTORIES: Final = {
    "a segment is sealed but its name is not synced when the power fails": (
        ("write", 0, 2, True, Trouble("write: before the directory is synced", "fails")),
        ("fail_of_power", "nothing", 0),
    ),
    "a worker is killed before it syncs the name of its segment, and the power fails later": (
        ("write", 0, 2, True, Trouble("write: before the directory is synced", "killed")),
        *(("maintain", GONE_SECONDS, None),) * 4,
        ("end_worker", 1, "killed"),
        ("maintain", GONE_SECONDS, None),  # takes its journal, and syncs that the other one is gone
        ("fail_of_power", "nothing", 0),
    ),
    "a journal without a game is taken, and its owner looks for it late": (
        ("suspend", 1, "append: half", STALLED_SECONDS, 4, None),
        ("let_time_pass", 1, GONE_SECONDS, True),
    ),
    "a game is half written when its journal is taken": (
        ("write", 0, 2, False, None),
        ("suspend", 0, "append: half", STALLED_SECONDS, 4, None),
        ("write", 0, 1, False, None),
    ),
    "a game is written but not acknowledged when its journal is taken": (
        ("write", 0, 2, False, None),
        ("suspend", 0, "append: before it is checked", STALLED_SECONDS, 4, None),
        ("write", 0, 1, False, None),
    ),
    "a worker is killed when it notices that its journal was taken": (
        ("suspend", 0, "append: half", STALLED_SECONDS, 4, None),
        ("write", 0, 1, False, Trouble(1, "killed")),
    ),
    "a worker is killed after it has gone on behind a journal that was taken": (
        ("suspend", 0, "append: half", STALLED_SECONDS, 4, None),
        ("write", 0, 2, False, None),
        ("write", 0, 2, False, None),
        ("end_worker", 0, "killed"),
    ),
    "a worker sleeps for so long that its journal is sealed, read and removed": (
        ("write", 0, 2, False, None),
        ("suspend", 0, "append: half", GONE_SECONDS, 4, None),
        *(("write", 1, 2, True, None), ("read", 0.0, None, 1, None), ("maintain", 0.0, None)) * 4,
        ("write", 0, 1, True, None),
    ),
    "the journal of a worker that lives is taken before it has a game": (
        ("suspend", 0, 1, GONE_SECONDS, 4, None),
        ("write", 0, 1, True, None),
        ("write", 0, 2, True, None),
    ),
    "a game that was not acknowledged is in the journal of a killed worker": (
        ("write", 0, 2, False, Trouble("append: before it is checked", "killed")),
        ("spoil_journal", 0, "torn", 0.5),
    ),
    "appends fail, and are tried again": (
        ("write", 0, 2, False, Trouble("append: half", "fails")),
        ("write", 0, 2, False, Trouble("append: half", "short")),
        ("write", 0, 2, False, Trouble("append: before it is checked", "fails though done")),
    ),
    "a journal cannot be synced": (
        ("write", 0, 1, False, Trouble("append: before sync", "fails")),
        ("write", 0, 1, False, None),
        ("fail_of_power", "nothing", 0),
    ),
    "a segment appears although its writer is told that it does not": (
        ("write", 0, 2, True, Trouble("write: before it appears", "fails though done")),
        ("write", 0, 2, True, Trouble("write: before the directory is synced", "fails")),
        ("write", 0, 1, False, None),
    ),
    "a worker is killed before it removes a journal that is sealed, which is cut": (
        ("write", 0, 3, True, Trouble("remove: before", "killed")),
        ("spoil_journal", 0, "cut", 0.9),
    ),
    "a worker sleeps until the mark of its empty journal has gone": (
        ("suspend", 0, "append: half", GONE_SECONDS, 4, None),
        ("maintain", GONE_SECONDS, None),
    ),
    "a worker wakes up while the mark of its empty journal goes": (
        ("suspend", 0, "append: half", GONE_SECONDS, 4, None),
        ("maintain", GONE_SECONDS, None),
        ("let_time_pass", 1, 0.0, False),
    ),
    "a byte within a journal is damaged": (
        ("write", 0, 4, False, None),
        ("end_worker", 0, "killed"),
        ("spoil_journal", 0, "damaged", 0.5),
    ),
    "the trainer is killed while it seals a journal": (
        ("write", 0, 2, False, None),
        ("end_worker", 0, "killed"),
        ("maintain", GONE_SECONDS, None),
        ("maintain", GONE_SECONDS, None),
        ("maintain", GONE_SECONDS, None),
        ("maintain", GONE_SECONDS, Trouble("write: before it appears", "killed")),
    ),
    "the trainer cannot seal a journal at once": (
        ("write", 0, 2, False, None),
        ("end_worker", 0, "killed"),
        *(("maintain", GONE_SECONDS, Trouble("write: before it appears", "fails")),) * 4,
    ),
    "journals and segments are copied": (
        ("write", 0, 2, False, None),
        ("copy", 0),
        ("spoil_segment", 0, "away"),
        ("write", 1, 1, True, None),
        ("copy", 3),
        ("end_worker", 0, "killed"),
    ),
    "a segment appears after others have been read": (
        ("spoil_segment", 0, "away"),
        ("let_time_pass", 3, GAP_SECONDS, True),
        ("restart_trainer", False),
        ("mend_segments",),
        ("let_time_pass", 1, GAP_SECONDS, True),
        ("restart_trainer", True),
    ),
    "a damaged segment is brought back from quarantine": (
        ("spoil_segment", 0, "damaged"),
        ("let_time_pass", 3, 0.0, True),
        ("let_time_pass", 3, 0.0, True),
        ("mend_segments",),
        ("restart_trainer", True),
    ),
    "a damaged segment cannot be moved to quarantine, and is mended where it is": (
        ("spoil_segment", 0, "damaged"),
        *(("read", 0.0, None, None, None),) * 2,
        ("read", 0.0, None, None, Trouble("move: before", "fails")),
    ),
    "a segment is not visible while a journal has the one before": (
        ("write", 0, 2, False, None),
        ("suspend", 0, "write: before it appears", STALLED_SECONDS, 1, None),
        ("let_time_pass", 3, GAP_SECONDS, True),
    ),
    "whoever reads a segment fails": (
        ("let_time_pass", 3, 0.0, False),
        ("read", 0.0, 1, 1, None),
        ("restart_trainer", False),
        ("read", 0.0, 2, 1, None),
    ),
    "old segments go, and the state before is needed": (
        ("let_time_pass", 3, 0.0, True),
        ("let_time_pass", 2, 0.0, False),
        ("read", 0.0, 2, 1, None),
        ("maintain", 0.0, None),
        ("restart_trainer", True),
        ("let_time_pass", 3, GONE_SECONDS, True),
        ("restart_trainer", True),
    ),
    "the power fails while a segment appears, after it was read": (
        ("write", 0, 2, True, Trouble("write: before the directory is synced", "stops")),
        ("read", 0.0, None, 1, None),
        ("fail_of_power", "nothing", 0),
    ),
    "the power fails when names are on the disk and what was not synced is not": (
        ("let_time_pass", 2, 0.0, True),
        ("write", 0, 2, False, None),
        ("write", 1, 2, True, Trouble("remove: before", "killed")),
        ("fail_of_power", "names", 0),
    ),
}
"""Histories, each of which has found a fault that was planted: a rule and its arguments for each step."""


def run_machine(volume: str, **how: object) -> Counter[str]:
    """Run the machine on a volume; return what has happened, and how often."""
    happened = Counter[str]()
    chosen = settings(stateful_step_count=40, phases=[Phase.generate], **how)  # type: ignore[arg-type]
    logging.disable()  # thousands of lines about what happens on purpose
    try:
        run_state_machine_as_test(lambda: Store(volume, happened), settings=chosen)
    finally:
        logging.disable(logging.NOTSET)
    return happened


@pytest.mark.parametrize("volume", [*VOLUMES, "directory whose locks do not cross"])
@pytest.mark.parametrize("history", HISTORIES)
def test_in_a_history_that_a_fault_needs_every_acknowledged_game_is_read_once(history: str, volume: str):
    kind, crosses = volume.replace("whose locks do not cross", "without locks"), "cross" not in volume
    store = Store(kind, Counter())
    try:
        store.begin("no locks" if crosses else "locks that do not cross", 0)
        for name, *arguments in HISTORIES[history]:
            getattr(store, name)(*arguments)
    finally:
        store.teardown()


@pytest.mark.parametrize("volume", VOLUMES)
def test_whatever_happens_every_acknowledged_game_is_read_once(volume: str):
    run_machine(volume, max_examples=30)


@pytest.mark.soak
@pytest.mark.parametrize("volume", VOLUMES)
def test_in_thousands_of_histories_every_acknowledged_game_is_read_once(volume: str):
    happened = run_machine(volume, max_examples=3000, derandomize=False)
    assert {each: happened[each] for each in HAPPENS if not happened[each]} == {}


def test_without_syncs_the_same_power_failures_lose_games(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ModelVolume, "_sync", lambda *_: None)
    with pytest.raises((AssertionError, UserError), match=r"lost: |cannot be read: it is damaged"):
        run_machine("directory", max_examples=50)
