"""The curves of a run: the lines of the trainer, the workers and the ratings as columns of numbers for a chart."""

from __future__ import annotations

import math
import uuid
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

import numpy as np

from plyzero.errors import UserError, plain
from plyzero.files import modified_at
from plyzero.kits.arena.ladder import LADDER, TABLE, read_table
from plyzero.play.scores import MatchResult
from plyzero.run.directory import RunDirectory, read_run
from plyzero.run.events import BEFORE, RATINGS, NewLines, TrainerLine, WorkerLine, figure, parse_scores, words_of
from plyzero.run.view import RunView
from plyzero.volume_errors import FileErrors

MAX_POINTS: Final = 2000
"""Largest number of points of a curve in one answer."""

MAX_OPPONENTS: Final = 20
"""Largest number of opponents whose scores are shown."""

LEARNING: Final = (
    *("step", "time", "games", "policy_loss", "value_loss", "policy_learned", "value_learned"),
    *("window_policy_learned", "window_value_learned", "replay_ratio", "replay_ratio_wanted"),
)
"""Fields of the trainer's lines that become columns."""

RATING: Final = (
    *("step", "time", "games", "played"),
    *("score", "score_low", "score_high", "elo", "elo_low", "elo_high"),
)
"""Columns of the scores against an opponent; `games` are those that the trainer had read, `played` is of the match."""

WORKER: Final = ("time", "step", "positions_per_second", "network_share", "waited_share")
"""Columns of a worker: the time of a line, the step of its model, and rates since the line before."""

MAX_WORKERS: Final = 8
"""Number of workers whose curves are shown."""

Curve = dict[str, list[float | None]]
"""Columns of one length by name; None where a number is missing."""


class LadderCurve(TypedDict):
    """The ratings of a ladder; `others` are the players that are no checkpoints of the run.

    Of a checkpoint, `games` are those that the trainer had read, and `played` is on the ladder.
    """

    anchor: str
    games: float | None
    checkpoints: Curve
    others: dict[str, dict[str, float | None]]


class Series(TypedDict):
    """The curves of a run, or the rows that are new since an earlier answer; docs/formats.md lists the fields.

    reader: changes when the numbers begin anew; rows of another reader must be dropped.
    next:   the number with which the rows after this answer are asked for.
    before: of the run before, in an answer with all rows; None if there is none.
    """

    version: int
    reader: str
    next: int
    learning: Curve
    ratings: dict[str, Curve]
    workers: dict[str, Curve]
    ladder: LadderCurve | None
    before: Series | None


class Warned(TypedDict):
    """A warning of the trainer, and the last step with it."""

    text: str
    step: float | None


class Columns:
    """Rows of numbers, kept as columns; every row has a number of its own, which ascend."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers = array("q")
        self._columns = {name: array("d") for name in names}

    def add(self, number: int, row: Mapping[str, float | None]) -> None:
        """Append a row; what it lacks is missing."""
        self._numbers.append(number)
        for name, column in self._columns.items():
            value = row.get(name)
            column.append(math.nan if value is None else value)

    def since(self, number: int) -> Curve:
        """Return the rows from `number` on, evenly thinned to MAX_POINTS, without losing the ends."""
        first, end = bisect_left(self._numbers, number), len(self._numbers)
        rows: Collection[int] = range(first, end)
        if len(rows) > MAX_POINTS:
            rows = np.linspace(first, end - 1, MAX_POINTS).round().astype(int).tolist()
        return {name: [_jsonable(column[row]) for row in rows] for name, column in self._columns.items()}

    @property
    def last(self) -> dict[str, float | None]:
        """The last row; {} if there is none."""
        return {name: _jsonable(column[-1]) for name, column in self._columns.items() if column}


class RunSeries:
    """The metrics of a run as curves; every line is read once."""

    def __init__(self, view: RunView, *, with_before: bool = True) -> None:
        """with_before: with the curves of the run before."""
        self._view, self._run, self._lines = view, view.run, view.lines
        self._reader = uuid.uuid4().hex[:8]
        self._files: dict[Path, NewLines] = {}
        self._file_errors = FileErrors()
        self._next = 0
        self._learning = Columns(LEARNING)
        self._ratings: dict[str, Columns] = {}
        self._workers: dict[Path, _WorkerCurve] = {}
        self._games_read: dict[tuple[int, int], float] = {}  # by (fence, step) of a model
        self._published: dict[int, dict[str, float | None]] = {}  # by step of a model: time, and games read
        self._ladder: LadderCurve | None = None
        self._ladder_at = 0.0
        self._warnings: dict[str, Warned] = {}
        self._before = read_before(view.run) if with_before else None

    def refresh(self) -> None:
        """Read the lines that are new."""
        for line in self._lines.read(self._skipping):
            self._add_learning(line)
        self._read(self._run.metrics / RATINGS, self._add_rating)
        newest = self._find_workers()
        for path in self._workers.keys() - newest:
            del self._files[path]  # if its worker writes again, its curve is read anew
        self._workers = {path: self._workers.get(path) or _WorkerCurve(path) for path in sorted(newest)}
        for path, curve in self._workers.items():
            self._read(path, partial(self._add_worker, curve))
        changed_at = modified_at(self._run.root / LADDER / TABLE)
        if changed_at != self._ladder_at:
            self._ladder_at, self._ladder = changed_at, self._read_ladder()

    def _find_workers(self) -> list[Path]:
        """Return the files of MAX_WORKERS workers: of living ones if there are so many, else those written last.

        The time of a file is a call of the volume, and the files of a thousand workers would take turns.
        """
        paths = sorted(self._run.metrics.glob("worker-*.jsonl"))
        alive = {f"worker-{each.name}.jsonl" for each in self._view.alive()}
        living = [path for path in paths if path.name in alive]
        if len(living) >= MAX_WORKERS:
            return living[:MAX_WORKERS]
        return sorted(paths, key=modified_at)[-MAX_WORKERS:]

    def since(self, number: int) -> Series:
        """Return the rows from `number` on."""
        return {
            "version": 1,
            "reader": self._reader,
            "next": self._next,
            "learning": self._learning.since(number),
            "ratings": {opponent: columns.since(number) for opponent, columns in self._ratings.items()},
            "workers": {curve.name: curve.columns.since(number) for curve in self._workers.values()},
            "ladder": self._ladder,
            "before": None if number else self._before,
        }

    @property
    def newest(self) -> dict[str, float | None]:
        """The newest row of the trainer's; {} if there is none."""
        return self._learning.last

    @property
    def warnings(self) -> list[Warned]:
        """The newest warnings of the trainer, the newest last."""
        return list(self._warnings.values())

    def _skipping(self, path: Path) -> AbstractContextManager[None]:
        """While one file cannot be read, the others still are."""
        return self._file_errors.skipping(path, "is not shown")

    def _read(self, path: Path, add: Callable[[dict[str, object]], None]) -> None:
        """Add every line of a file that is new."""
        with self._skipping(path):
            for line in self._files.setdefault(path, NewLines(path)).read():
                add(line)

    def _add_worker(self, curve: _WorkerCurve, line: dict[str, object]) -> None:
        self._next += curve.add(line, number=self._next)

    def _add_learning(self, line: TrainerLine) -> None:
        row = line.figures(LEARNING)
        if row["step"] is None or row["time"] is None or row["games"] is None:
            return  # not a line that the trainer writes
        self._learning.add(self._next, row)
        self._next += 1
        if model := line.model:
            self._games_read[model.fence, model.step] = line.games
            self._published[model.step] = {"time": line.time, "games": line.games}
        if line.warning is not None:
            text = plain(line.warning, 600)
            words = words_of(text)
            self._warnings.pop(words, None)
            self._warnings[words] = {"text": text, "step": line.step}
            if len(self._warnings) > 20:
                self._warnings.pop(next(iter(self._warnings)))

    def _add_rating(self, line: dict[str, object]) -> None:
        measured = parse_scores(line)
        if measured is None or measured.time is None:
            return
        model = measured.model
        about = {
            "step": float(model.step),
            "time": measured.time,
            "games": self._games_read.get((model.fence, model.step)),
        }
        for opponent, counts in measured.counts.items():
            name, result = plain(opponent, 80), MatchResult(*counts)
            if name not in self._ratings and len(self._ratings) == MAX_OPPONENTS:
                continue
            low, high = result.interval()
            elo, elo_low, elo_high = result.elo()
            found = (result.games, result.score, low, high, elo, elo_low, elo_high)
            columns = self._ratings.setdefault(name, Columns(RATING))
            columns.add(self._next, about | dict(zip(RATING[3:], found, strict=True)))
        self._next += 1

    def _read_ladder(self) -> LadderCurve | None:
        """Return the ratings of the ladder in the run's directory; None if there is none, or if it is damaged."""
        try:
            table = read_table(self._run.root / LADDER)
        except (UserError, OSError):
            return None
        if table is None:
            return None
        checkpoints, others = Columns(("step", "time", "games", "elo", "elo_low", "elo_high", "played")), {}
        for player in table["players"]:
            row = {name: figure(player, name) for name in ("step", "elo", "low", "high", "games")}
            if None in (row["elo"], row["low"], row["high"]):
                continue
            found = {"elo": row["elo"], "elo_low": row["low"], "elo_high": row["high"], "played": row["games"]}
            if row["step"] is None:
                others[plain(str(player.get("player")), 80)] = found
            else:
                checkpoints.add(0, {**found, "step": row["step"], **self._published.get(int(row["step"]), {})})
        return {
            "anchor": plain(str(table.get("anchor")), 80),
            "games": figure(table, "games"),
            "checkpoints": checkpoints.since(0),
            "others": dict([*others.items()][:MAX_OPPONENTS]),
        }


def read_before(run: RunDirectory) -> Series | None:
    """Return the curves of the run before, which do not change any more; None if there is none that can be read."""
    try:
        series = RunSeries(RunView(read_run(run.root / BEFORE, environment={})), with_before=False)
    except UserError:
        return None
    series.refresh()
    return series.since(0)


class _WorkerCurve:
    """The lines of one start of a worker as rates: counts in a line are sums since the start."""

    def __init__(self, path: Path) -> None:
        self.name, self.columns = plain(path.stem.removeprefix("worker-"), 80), Columns(WORKER)
        self._before = WorkerLine()

    def add(self, line: dict[str, object], *, number: int) -> bool:
        """Add a line as the row `number`. Return False if it is not one that a worker writes."""
        now, before = WorkerLine.parse(line), self._before
        seconds = now.seconds - before.seconds
        if now.time is None or seconds <= 0:
            return False
        row = {
            "time": now.time,
            "step": now.model.step if now.model else None,
            "positions_per_second": (now.positions - before.positions) / seconds,
            "network_share": (now.network_seconds - before.network_seconds) / seconds,
            "waited_share": (now.waited_seconds - before.waited_seconds) / seconds,
        }
        self.columns.add(number, row)
        self._before = now
        return True


def _jsonable(value: float) -> float | None:
    """Return a number without a useless fraction; None for what JSON cannot hold."""
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else round(value, 6)
