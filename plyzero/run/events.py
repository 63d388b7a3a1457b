"""Events of a run, read from the volume as typed records: heartbeats, lines about models, and scores.

Files are not trusted. A heartbeat or a line that is no JSON object is passed over, and so is a field of another kind
than the record declares: a number is then 0, or None where that is declared. docs/formats.md lists all fields.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypedDict, cast

from plyzero.errors import UserError
from plyzero.files import TEMPORARY, list_files, list_names, read_file, read_files, read_part
from plyzero.run.metrics import CURSOR, TRAINER
from plyzero.run.models import ModelName, list_models
from plyzero.volume_errors import UnreadableError

PART_BYTES: Final = 1 << 20
"""Largest part of a file of JSON lines that is read at once, and longest line, in bytes."""

MAX_BEAT_BYTES: Final = 1 << 16
"""Largest size of a heartbeat that is read, in bytes."""

RATINGS: Final = "rating.jsonl"
"""The file of metrics with a line for each measured model."""

BEFORE: Final = "before"
"""The directory of the last model and the metrics of the run before, from which a run goes on; `before@STEP` is this
model as an opponent of ratings."""

CONFIRMED: Final = "confirmed"
"""The field of a line of ratings with a confirmation of a score, and of the trainer's heartbeat with all of them."""

HISTORY: Final = ("minutes", "policy_loss", "value_loss", "replay_ratio")
"""The fields of the lines of a trainer in the history of a run, beside its counts."""

SCALARS: Final = {
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "learned/policy": "policy_learned",
    "learned/value": "value_learned",
    "learned/policy_window": "window_policy_learned",
    "learned/value_window": "window_value_learned",
    "run/replay_ratio": "replay_ratio",
    "run/games": "games",
    "run/positions": "positions",
}
"""Tag for TensorBoard -> field of a line of the trainer."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A JSON object that a process wrote, and those of its fields that are declared here and in a subclass.

    fields:  all of them, unchecked.
    seconds: time since the process began.
    model:   the model that it plays with or has published.
    """

    fields: Mapping[str, object] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    model: ModelName | None = None

    @classmethod
    def parse(cls, fields: Mapping[str, object]) -> Self:
        """Return the event with these fields."""
        declared = (each for each in dataclasses.fields(cls) if each.name != "fields")
        return cls(fields=fields, **{each.name: KINDS[str(each.type)](fields, each.name) for each in declared})

    def figures(self, names: Iterable[str]) -> dict[str, float | None]:
        """Return the numbers with these names, None for those that are missing or not plausible."""
        return {name: figure(self.fields, name) for name in names}


class Confirmation(TypedDict):
    """The result of further games of a model, played because it had reached the condition of a budget before.

    quantity: what is measured, with the opponent: "score against mcts:100".
    least:    the value that the condition asks for.
    first:    the value in the games before.
    value, low, high: the value in the further games, and its 95 % interval.
    games:    the number of these.
    reached:  whether the interval lies above `least`, or `value` does after the largest number of games.
    """

    quantity: str
    least: float
    first: float
    value: float
    low: float
    high: float
    games: int
    reached: bool


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """The progress of a training, as the trainer reports it. Numbers are counted in all starts of the trainer.

    state:     what the process does, as a clause.
    minutes:   of training.
    confirmed: the scores that further games have confirmed, by quantity.
    budget:    the settings of the trainer's budget.
    done:      the part of the budget with which the training is over, "" if it is not.
    bootstrap_positions, generated_positions: positions with a full search that it has read, made without a model and
    with one.
    """

    state: str = ""
    step: float = 0.0
    games: float = 0.0
    positions: float = 0.0
    minutes: float = 0.0
    confirmed: dict[str, Confirmation] = field(default_factory=dict)
    budget: dict[str, object] | None = None
    done: str = ""
    bootstrap_positions: float = 0.0
    generated_positions: float = 0.0
    trained_positions: float = 0.0
    credit: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Beat(Progress):
    """A heartbeat. Every process has a state, the first four fields, and those of its role."""

    role: str
    beats: int
    pid: int
    host: str
    warning: str | None = None
    thread_error: str | None = None
    read_error: str | None = None
    write_error: str | None = None
    # of the trainer
    window: float = 0.0
    credit_enough: float = 0.0
    workers: float = 0.0
    replay_ratio: float = 0.0
    replay_ratio_wanted: float = 0.0
    trained_per_second: float = 0.0
    policy_learned: float | None = None
    value_learned: float | None = None
    cursor: dict[str, object] | None = None
    # of workers and evaluators
    evaluations: float = 0.0
    full_positions: float = 0.0
    full_positions_per_second: float = 0.0
    games_under_way: float = 0.0
    plies_under_way: float = 0.0

    @classmethod
    def read(cls, content: bytes) -> Beat | None:
        """Return the heartbeat in a file; None if the file has none."""
        fields = _parse_object(content)
        needed = {"role": str, "state": str, "beats": int, "pid": int, "host": str}
        if fields is None or not all(isinstance(fields.get(key), kind) for key, kind in needed.items()):
            return None
        return cls.parse(fields)


@dataclass(frozen=True, kw_only=True)
class Reading(Event):
    """What a trainer has read: `games` in the segments below its `cursor`, incarnation -> sequence of the next one."""

    games: float = 0.0
    cursor: dict[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class TrainerLine(Progress):
    """A line of the trainer, which it writes for every published model. time: of the day, Unix seconds."""

    time: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None
    replay_ratio: float = 0.0
    warning: str | None = None

    def scalars(self) -> dict[str, float | None]:
        """Return the scalars for TensorBoard, by tag."""
        return dict(zip(SCALARS, self.figures(SCALARS.values()).values(), strict=True))

    @property
    def won(self) -> tuple[float | None, float | None]:
        """The shares of games that the first and the second player have won."""
        won = self.fields.get("won")
        first, second = won[:2] if isinstance(won, list) and len(won) > 1 else (None, None)
        return plausible(first), plausible(second)


@dataclass(frozen=True, kw_only=True)
class WorkerLine(Event):
    """A line of a worker: counts since its start. time: of the day, Unix seconds."""

    time: float | None = None
    positions: float = 0.0
    network_seconds: float = 0.0
    waited_seconds: float = 0.0


class Scores(NamedTuple):
    """The scores that `train` has measured for a model.

    counts:    opponent -> wins, draws and losses.
    time:      of the day at which they were written, Unix seconds; None if that is not known.
    confirmed: which condition of a budget they confirm, if they do.
    """

    model: ModelName
    counts: dict[str, tuple[int, int, int]]
    time: float | None
    confirmed: Confirmation | None


def read_heartbeat(path: Path) -> Beat | None:
    """Return one heartbeat, None if the file does not exist, cannot be read or is not a heartbeat."""
    try:
        return Beat.read(read_file(path, max_bytes=MAX_BEAT_BYTES))
    except OSError:
        return None


def read_reading(directory: Path) -> Reading | None:
    """Return what the trainer has read, by the file beside its states; None if there is none that can be read."""
    try:
        fields = _parse_object(read_file(directory / CURSOR, max_bytes=PART_BYTES))
    except OSError:
        return None
    return None if fields is None else Reading.parse(fields)


def read_heartbeats(directory: Path, *, before: Mapping[str, Beat] | None = None) -> dict[str, Beat]:
    """Return name -> heartbeat of all processes in `directory`, including those that have ended.

    before: the heartbeats of an earlier call, used for files that cannot be read at the moment.

    Raises OSError if the directory exists and cannot be read.
    """
    beats: dict[str, Beat | None] = {}
    names = sorted(list_names(directory))
    paths = [directory / name for name in names if name.endswith(".json") and not name.startswith(TEMPORARY)]
    for path, found in zip(paths, read_files(paths, max_bytes=MAX_BEAT_BYTES), strict=True):
        if isinstance(found, bytes):
            beats[path.stem] = Beat.read(found)
        elif not isinstance(found, FileNotFoundError | UnreadableError):
            beats[path.stem] = (before or {}).get(path.stem)
    return {name: beat for name, beat in beats.items() if beat is not None}


def first_beat(directory: Path) -> dict[str, object]:
    """Return the fields of a trainer that starts: those of its last heartbeat in `directory`, by whose credit workers
    know whether to wait."""
    last = read_heartbeat(directory / f"{TRAINER}.json")
    own = ("version", "beats", "pid", "host", "thread_error", "done", "budget")
    kept = {key: value for key, value in last.fields.items() if key not in own} if last else {}
    return {**kept, "role": TRAINER, "state": "starting"}


class TrainerLines:
    """The lines of all starts of the trainer of a run, every line read once."""

    def __init__(self, metrics: Path, *, from_now: bool = False) -> None:
        """Read the files in `metrics`. from_now: pass over the lines that are there at the first reading."""
        self._metrics, self._from_now = metrics, from_now
        self._files: dict[str, NewLines] = {}
        self._seconds: dict[str, float] = {}

    def read(self, skipping: Callable[[Path], AbstractContextManager[object]] = nullcontext) -> Iterator[TrainerLine]:
        """Yield the lines that were completed since the last call, those of earlier starts first.

        skipping: a context that may suppress the OSError of one file, so that the others are read.
        Raises OSError if the directory cannot be read.
        """
        sizes = list_files(self._metrics, wanted=lambda name: fnmatch.fnmatchcase(name, "trainer-*.jsonl"))
        names = sorted(sizes)
        if self._from_now:
            self._files = {name: NewLines(self._metrics / name, offset=sizes[name]) for name in names}
            self._from_now = False
        for name in names:
            lines = self._files.setdefault(name, NewLines(self._metrics / name))
            if sizes[name] <= lines.offset:
                continue
            with skipping(self._metrics / name):
                for line in map(TrainerLine.parse, lines.read()):
                    self._seconds[name] = line.seconds or self._seconds.get(name, 0.0)
                    yield line

    def seconds(self, now: float | None = None) -> float:
        """Return the time that all starts of the trainer have worked, as far as they have been read.

        now: the `seconds` of its heartbeat, of the last start or of one that has no line yet.
        """
        *before, last = [*self._seconds.values()] or [0.0]
        if now is None:
            return sum(before) + last
        return sum(before) + (now if now >= last else last + now)


def read_scores(metrics: Path) -> Iterator[Scores]:
    """Yield the scores in the lines of ratings of a run, oldest first."""
    yield from filter(None, map(parse_scores, read_lines(metrics / RATINGS)))


def last_scores(metrics: Path) -> list[Scores]:
    """Return the newest scores of a run, at most 200, oldest first. Only the end of the file is read."""
    return [*filter(None, map(parse_scores, last_lines(metrics / RATINGS)))]


def parse_scores(line: Mapping[str, object]) -> Scores | None:
    """Return the scores in a line of ratings, without those that no match has; None if there are none."""
    model, scores = _model(line, "model"), _object(line, "scores") or {}
    counts = {opponent: parsed for opponent, found in scores.items() if (parsed := _counts(found))}
    if model is None or not counts:
        return None
    return Scores(model, counts, figure(line, "time"), parse_confirmation(line.get(CONFIRMED)))


def _counts(found: object) -> tuple[int, int, int] | None:
    """Return wins, draws and losses; None for what no match has."""
    if not isinstance(found, list) or len(found) != 3 or not all(type(each) is int for each in found):
        return None
    if not all(0 <= each <= 1_000_000 for each in found) or not any(found):
        return None
    wins, draws, losses = found
    return wins, draws, losses


def is_before(name: str) -> bool:
    """Return whether an opponent, or the quantity of a confirmation, is the last model of the run before."""
    return name.rpartition(" ")[2].startswith(f"{BEFORE}@")


def has_passed(metrics: Path) -> bool:
    """Return whether further games have confirmed that a model of a run scores half against that of the run before."""
    return any(found.confirmed and is_before(found.confirmed["quantity"]) for found in read_scores(metrics))


def read_history(metrics: Path) -> dict[str, list[Any]]:
    """Return the published models of a run, oldest first, as columns of equal length.

    They are the step, the numbers of games and positions, the fields of HISTORY, and the newest score against each
    opponent, None where there is none.
    """
    lines = [line for line in TrainerLines(metrics).read() if line.model]
    scores: dict[str, dict[ModelName, float]] = {}
    for found in read_scores(metrics):
        for opponent, (wins, draws, losses) in found.counts.items():
            scores.setdefault(opponent, {})[found.model] = (wins + draws / 2) / (wins + draws + losses)
    columns: dict[str, list[Any]] = {
        "step": [int(line.step) for line in lines],
        "games": [int(line.games) for line in lines],
        "positions": [int(line.positions) for line in lines],
    }
    columns |= {name: [getattr(line, name) for line in lines] for name in HISTORY}
    for opponent, of_model in scores.items():
        columns[f"score against {opponent}"] = [of_model.get(line.model) if line.model else None for line in lines]
    return columns


def last_measured(metrics: Path) -> ModelName | None:
    """Return the model that was measured last; None if none was."""
    return _model(last_line(metrics / RATINGS) or {}, "model")


def best_model(directory: Path, metrics: Path) -> ModelName:
    """Return the best model that has been measured; of equals, the newest.

    It is the newest one that reached a condition of the budget. If none did, it is the one with the best scores against
    the opponents of `plyzero train`. Raises UserError if no existing model has been measured.
    """
    counts: dict[ModelName, dict[str, tuple[int, int, int]]] = {}
    reached: set[ModelName] = set()
    for found in read_scores(metrics):
        counts.setdefault(found.model, {}).update(found.counts)
        if found.confirmed and not is_before(found.confirmed["quantity"]):
            reached.add(found.model)
    measured = [name for name in list_models(directory) if name in counts]
    if not measured:
        raise UserError(
            f"no model in {directory} has been measured yet; `plyzero train` does this while it runs; use the newest"
        )
    if ended := reached.intersection(measured):
        return max(ended)
    return max(measured, key=lambda name: (_points(counts[name]), name))


def _points(counts: Mapping[str, tuple[int, int, int]]) -> float:
    """Return the sum of all scores.

    Ratings may have different numbers of games. A win and a loss are added to each score, so that two games won do not
    count for more than nineteen of twenty.
    """
    return sum((won + drawn / 2 + 1) / (won + drawn + lost + 2) for won, drawn, lost in counts.values())


def words_of(warning: str) -> str:
    """Return a warning without its numbers; where only these differ, it is the same one."""
    return re.sub(r"\d+", "", warning)


class NewLines:
    """Reads a file of JSON lines that its writer still appends to, every line once, however long the file is.

    offset: where the next line begins, in bytes.
    """

    def __init__(self, path: Path, *, offset: int = 0) -> None:
        self._path, self.offset = path, offset

    def read(self) -> Iterator[dict[str, object]]:
        """Yield the lines that were completed since the last call, oldest first; none if there is no such file.

        Raises OSError if the file cannot be read; the next call continues after the last line that was yielded.
        """
        with suppress(FileNotFoundError, UnreadableError):
            while part := read_part(self._path, self.offset, max_bytes=PART_BYTES):
                *lines, rest = part.split(b"\n")
                if not lines and len(part) < PART_BYTES:
                    return
                for line in lines:
                    self.offset += len(line) + 1
                    # that of a writer which was killed is truncated
                    if (fields := _parse_object(line.decode(errors="replace"))) is not None:
                        yield fields
                self.offset += 0 if lines else len(rest)  # a line that is too long is passed over


def read_lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield every complete line of a file of JSON lines, oldest first; see `NewLines.read`."""
    return NewLines(path).read()


def last_lines(path: Path, *, most: int = 200) -> list[dict[str, object]]:
    """Return the last complete lines, at most `most`, of a file of JSON lines, oldest first. Only its end is read."""
    size = list_files(path.parent, wanted=lambda name: name == path.name).get(path.name, 0)
    return list(deque(NewLines(path, offset=max(0, size - PART_BYTES)).read(), maxlen=most))


def last_line(path: Path) -> dict[str, object] | None:
    """Return the last complete line of a file of JSON lines; None if there is none. Only its end is read."""
    return next(iter(last_lines(path, most=1)), None)


def _parse_object(content: str | bytes) -> dict[str, object] | None:
    """Return a JSON object; None if `content` is something else."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def figure(fields: Mapping[str, object], key: str) -> float | None:
    """Return the number `key` of a heartbeat or a line; None if it is missing or not a plausible number."""
    return plausible(fields.get(key))


def plausible(value: object) -> float | None:
    """Return a number; None for what is none, or is too large for what a run counts."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        return None
    return float(value)


def parse_confirmation(found: object) -> Confirmation | None:
    """Return a confirmation as it is read from the volume; None if it is none, or one of what was not reached."""
    if not isinstance(found, dict) or found.get("reached") is not True or not isinstance(found.get("quantity"), str):
        return None
    if any(figure(found, key) is None for key in ("least", "first", "value", "low", "high", "games")):
        return None
    return cast(Confirmation, {key: found[key] for key in Confirmation.__annotations__})


def _confirmations(fields: Mapping[str, object], key: str) -> dict[str, Confirmation]:
    found = _object(fields, key) or {}
    parsed = {quantity: parse_confirmation(each) for quantity, each in found.items()}
    return {quantity: each for quantity, each in parsed.items() if each}


def _text(fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) else None


def _object(fields: Mapping[str, object], key: str) -> dict[str, object] | None:
    value = fields.get(key)
    return value if isinstance(value, dict) else None


def _model(fields: Mapping[str, object], key: str) -> ModelName | None:
    return ModelName.parse(_text(fields, key) or "")


KINDS: Final[Mapping[str, Callable[[Mapping[str, object], str], Any]]] = {
    "int": lambda fields, key: fields[key],
    "str": lambda fields, key: _text(fields, key) or "",
    "str | None": _text,
    "float": lambda fields, key: figure(fields, key) or 0.0,
    "float | None": figure,
    "dict[str, object] | None": _object,
    "dict[str, Confirmation]": _confirmations,
    "ModelName | None": _model,
}
"""Kind of a declared field -> the function that reads one."""
