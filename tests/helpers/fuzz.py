"""Files that are made wrong on purpose, by somebody who knows the formats, for every reader of a run's volume.

tests/test_hostile.py feeds each reader with some hundred of them, and with the files in tests/hostile, which once broke
a reader.
"""

import copy
import io
import json
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs.zstd import Zstd
from rich.console import Console

from plyzero.commands.inspect import _print_status
from plyzero.errors import ModelRefusedError, UserError
from plyzero.network.onnx_network import Network
from plyzero.ops.status import snapshot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import open_run
from plyzero.run.events import best_model, read_heartbeat
from plyzero.run.journals import FRAME, MAGIC, _decode, _encode, _identity, read_journal
from plyzero.run.models import publish_model
from plyzero.run.segments import SegmentError, read_segment
from plyzero.run.view import RunView
from plyzero.search.evaluators import EvaluationBatch
from plyzero.selfplay.backpressure import TrainerProgress
from plyzero.settings import SearchSettings, TrainerSettings
from plyzero.trainer.export import untrained
from plyzero.trainer.targets import make_samples
from tests.helpers.runs import small_run
from tests.helpers.segments import same, some_games, write
from tests.helpers.toys import Relay

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**12, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "[/]", "[red]", "\x1b[2J", "\ud800", "../x", "os:system", "\x00", "٣"),
    *([], {}, [[]], [1], [1, [2]], {"a": {"b": {}}}, "little", "big", "blosc", "gzip", "zstd", "crc32c", "bytes"),
)


COMMON = {"state": "playing", "beats": 1, "pid": 1, "host": "h"}
WORKER = {**COMMON, "role": "selfplay", "games": 1, "model": "m", "full_positions_per_second": 3.0}
TRAINER = {
    **COMMON,
    "role": "trainer",
    "step": 1,
    "replay_ratio": 1.0,
    "replay_ratio_wanted": 8.0,
    "window": 3,
    "trained_per_second": 10.0,
    "trained_positions": 4,
    "credit": 3,
    "credit_enough": 2,
}


class BrokenError(Exception):
    """A reader does not keep its promise; the message says in a few words what happened."""


class Case:
    """One file and the promise about it.

    judge: reads the file of the given path; returns whether it was accepted; raises BrokenError, or anything that the
           reader must not raise.
    """

    def __init__(self, name: str, content: bytes, judge: Callable[[Path], bool]) -> None:
        self.name = name
        self.content = content
        self.judge = judge


def pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def damaged(rng: np.random.Generator, content: bytes, other: bytes = b"") -> bytes:
    """Return `content` cut short, with bits flipped, a block zeroed or doubled, or spliced with `other`."""
    if not content:
        return other
    size = len(content)
    at, length = int(rng.integers(size)), int(rng.integers(1, 1 + min(size, 64)))
    match int(rng.integers(6)):
        case 0:
            return content[:at]
        case 1 | 2:
            changed = bytearray(content)
            for where in rng.integers(size, size=int(rng.integers(1, 9))):
                changed[int(where)] ^= 1 << int(rng.integers(8))
            return bytes(changed)
        case 3:
            return content[:at] + bytes(min(length, size - at)) + content[at + length :]
        case 4:
            return content[:at] + content[at : at + length] * int(rng.integers(1, 4)) + content[at:]
        case _:
            return content[:at] + other[int(rng.integers(1 + len(other))) :]


def twisted(rng: np.random.Generator, value: Any) -> Any:
    """Return a result of `json.loads` in which one thing is replaced, lost, added, or put into another."""
    value = copy.deepcopy(value)
    at = value
    while True:
        keys: list[Any] = []
        if isinstance(at, dict):
            keys = list(at)
        elif isinstance(at, list):
            keys = list(range(len(at)))
        if not keys:
            return pick(rng, ODD)
        key = pick(rng, keys)
        if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.7:
            at = at[key]
            continue
        match int(rng.integers(6)):
            case 0:
                del at[key]
            case 1 if isinstance(at, dict):
                at[str(pick(rng, ODD))] = at[key]
            case 2:
                at[key] = [at[key]]
            case 3 if isinstance(at[key], int):
                at[key] = int(at[key]) + int(rng.integers(-2, 3))
            case _:
                at[key] = copy.deepcopy(pick(rng, ODD))
        return value


def memory_in(error: BaseException | None) -> bool:
    """Return whether a reader ran out of memory, whatever error it raised."""
    while error is not None:
        if isinstance(error, MemoryError) or "bad_alloc" in str(error) or "bad allocation" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def refused(error: Exception) -> bool:
    if memory_in(error):
        raise BrokenError("takes too much memory")
    return False


def learns_from(games: Any) -> None:
    """Raise BrokenError if the trainer could not use games that a reader has let through."""
    with np.errstate(all="ignore"):
        samples = make_samples(games, search=SearchSettings(), trainer=TrainerSettings())
    if not (np.isfinite(samples.wdl).all() and np.isfinite(samples.probabilities).all()):
        raise BrokenError("targets are not finite")


class Segments:
    """Members changed and packed again with right checksums, chunks compressed anew, names that lie, plain damage."""

    def __init__(self, rng: np.random.Generator, directory: Path) -> None:
        self.rng, self.whole = rng, []
        for game in (load_game("connect-four"), GameSpec("tests.helpers.toys:Relay", Relay(4))):
            games = some_games(game, int(rng.integers(1000)))
            path = write(directory, games, game)
            self.whole.append((game, games, path.name, path.read_bytes()))
            path.unlink()
        learns_from(games)  # compiles it

    def case(self) -> Case:
        rng = self.rng
        game, games, name, content = pick(rng, self.whole)
        faithful = True
        match int(rng.integers(5)):
            case 0:
                content = damaged(rng, content, pick(rng, self.whole)[3])
            case 1:
                numbers = list(re.finditer(r"\d+", name))
                found = pick(rng, numbers)
                new = pick(rng, ("0", "1", "2", "3", "7", "9", "00000001", "9" * 40, "٣", "02", str(2**31), str(2**24)))
                name = name[: found.start()] + new + name[found.end() :]
                faithful = False
            case _:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    members = {each: archive.read(each) for each in archive.namelist()}
                for _ in range(int(rng.integers(1, 4))):
                    if self._change(members):
                        faithful = False
                content = self._pack(members)

        def judge(path: Path) -> bool:
            try:
                found = read_segment(path, game)
            except (SegmentError, FileNotFoundError) as error:
                return refused(error)
            if faithful and not same(found, games):
                raise BrokenError("other games than were written")
            learns_from(found)
            return True

        return Case(name, content, judge)

    def _change(self, members: dict[str, bytes]) -> bool:
        """Change one member; return whether that may change the games in the file."""
        rng = self.rng
        key = pick(rng, sorted(members))
        if key.endswith("zarr.json"):
            try:
                value = json.loads(members[key])
            except ValueError:
                return False
            members[key] = json.dumps(twisted(rng, value)).encode("utf-8", "replace")
            return False
        match int(rng.integers(5)):
            case 0:
                members[key] = damaged(rng, members[key], members[pick(rng, sorted(members))])
            case 1:
                members[pick(rng, ("../x", "/x", key + "/", "game/id/c/1", ".zgroup", ".zarray"))] = members.pop(key)
            case 2:
                members[key] += pick(rng, (members[key], b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd", bytes(9)))
            case 3:
                plain = b"" if not members[key] else self._plain(members[key])
                members[key] = Zstd(level=1, checksum=bool(rng.integers(2))).encode(plain + bytes(int(rng.integers(3))))
            case _:
                members[key] = Zstd(level=1, checksum=True).encode(damaged(rng, self._plain(members[key])) or b"\0")
                return True
        return False

    @staticmethod
    def _plain(frame: bytes) -> bytes:
        try:
            return bytes(Zstd().decode(frame))
        except Exception:
            return frame

    def _pack(self, members: Mapping[str, bytes]) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for key, content in members.items():
                how = pick(self.rng, (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
                archive.writestr(key, content, how)
            if self.rng.random() < 0.1:
                each = pick(self.rng, archive.filelist)
                setattr(each, pick(self.rng, ("file_size", "compress_size", "CRC", "header_offset")), 7)
        return file.getvalue()


class Journals:
    """Frames changed, with right checksums or not; plain damage."""

    def __init__(self, rng: np.random.Generator, directory: Path) -> None:
        self.rng, self.whole = rng, []
        for game in (load_game("connect-four"), GameSpec("tests.helpers.toys:Relay", Relay(4))):
            batches = [some_games(game, int(rng.integers(1000)), (2, 1)) for _ in range(3)]
            header = json.dumps({"schema": "plyzero.journal/1", **_identity(game)}).encode()
            self.whole.append((game, batches, [header, *(_encode(each, 1) for each in batches)]))
            learns_from(_decode(_encode(batches[0], 1), game, 1))  # compiles it

    def case(self) -> Case:
        rng = self.rng
        game, batches, bodies = pick(rng, self.whole)
        bodies = list(bodies)
        damage = rng.random() < 0.4
        if not damage:
            which = int(rng.integers(len(bodies)))
            if which == 0 and rng.random() < 0.5:
                bodies[0] = json.dumps(twisted(rng, json.loads(bodies[0]))).encode("utf-8", "replace")
            else:
                body = bytearray(bodies[which])
                at = int(rng.integers(max(1, len(body) - 8)))
                match int(rng.integers(4)):
                    case 0:
                        body[at : at + 4] = pick(
                            rng, (b"\xff" * 4, bytes(4), b"\0\0\0\x80", b"\0\0\xc0\x7f", b"\1\0\0\0")
                        )
                    case 1:
                        body[:4] = pick(rng, (b"\xff" * 4, bytes(4), b"\0\0\0\x80", b"\0\0\1\0"))
                    case 2:
                        body[at] = int(rng.integers(256))
                    case _:
                        body = bytearray(damaged(rng, bytes(body), bodies[-1]))
                bodies[which] = bytes(body)
        content = b"".join(FRAME.pack(MAGIC, len(body), zlib.crc32(body)) + body for body in bodies)
        if damage:
            content = damaged(rng, content, content)

        def judge(path: Path) -> bool:
            try:
                found = read_journal(path, game)
            except Exception as error:
                return refused(error)
            if damage:
                known = [any(same(each, batch) for batch in batches) for each in found]
                if not all(known):
                    raise BrokenError("other games than were written")
            for each in found:
                learns_from(each)
            return True

        return Case("w0.0123abcd-00000000.wal", content, judge)


class Models:
    """Plain damage; tests/helpers/hostile_models.py has those that are made wrong on purpose."""

    def __init__(self, rng: np.random.Generator, directory: Path) -> None:
        self.rng, self.game = rng, load_game("tic-tac-toe")
        self.content = untrained(small_run(directory / "run", "tic-tac-toe", "network.channels=4"))

    def case(self) -> Case:
        observations = np.zeros((3, *self.game.start.observation_shape), np.float32)

        def judge(path: Path) -> bool:
            try:
                network = Network(path.read_bytes(), self.game, label="x")
            except ModelRefusedError as error:
                return refused(error)
            try:
                network(EvaluationBatch(observations, list))
            except Exception as error:  # it fits, and fails when it is asked
                return refused(error)
            return True

        return Case("model.onnx", damaged(self.rng, self.content, self.content), judge)


class RunSettings:
    """Values of run.toml changed, lines removed; plain damage."""

    def __init__(self, rng: np.random.Generator, directory: Path) -> None:
        self.rng = rng
        small_run(directory / "run")
        self.text = (directory / "run" / "run.toml").read_text()

    def case(self) -> Case:
        rng = self.rng
        text = self.text
        for _ in range(int(rng.integers(1, 4))):
            text = self._change(text)
        content = text.encode()
        if rng.random() < 0.3:
            content = damaged(rng, content, self.text.encode())

        def judge(path: Path) -> bool:
            try:
                open_run(path.parent)
            except UserError as error:
                return refused(error)
            return True

        return Case("run.toml", content, judge)

    def _change(self, text: str) -> str:
        rng = self.rng
        depth = int(rng.integers(1, 2000))
        values = (
            *('""', '"x"', '"tic-tac-toe(size=1)"', '"os:system"', '"../x"', "true", "nan", "-inf", "1e999", "-1", "0"),
            *("0.5", "1979-05-27", "07:32:00", "[]", "{}", "[1, [2]]", "{a = {b = 1}}", '"\\u0000"', "'''\n'''"),
            *("1" * 5000, "0x" + "f" * 5000, "1" + "0" * 400, "[" * depth + "]" * depth, "{a=" * 90 + "1" + "}" * 90),
            *(f'"tic-tac-toe(a={"-" * depth}1)"', f'"tic-tac-toe({"(" * 200})"', "9223372036854775808"),
        )
        lines = text.splitlines()
        at = int(rng.integers(len(lines)))
        key, equals, _ = lines[at].partition(" = ")
        if equals and rng.random() < 0.7:
            lines[at] = f"{key} = {pick(rng, values)}"
        else:
            del lines[at]
        return "\n".join(lines) + "\n"


class Heartbeats:
    """Heartbeats and metric lines with fields of every wrong kind, as `status`, `replay` and the trainer read them."""

    def __init__(self, rng: np.random.Generator, directory: Path) -> None:
        self.rng = rng
        self.run = small_run(directory / "run")
        self.model = str(publish_model(self.run.models, b"x", fence=1, step=1))
        (self.run.workers / "w9.00000009.json").write_text(json.dumps(WORKER))

    def case(self) -> Case:
        rng = self.rng
        name = pick(rng, ("w0.00000000.json", "trainer.json", "rating.jsonl"))
        line = {"model": self.model, "scores": {"random": [1, 2, 3]}}
        value: Any = {"w0.00000000.json": WORKER, "trainer.json": TRAINER, "rating.jsonl": line}[name]
        for _ in range(int(rng.integers(1, 3))):
            value = twisted(rng, value)
        content = json.dumps(value).encode() + b"\n"
        if rng.random() < 0.2:
            content = damaged(rng, content, json.dumps(line).encode())
        return Case(name, content, lambda path: look(self.run, path))


def look(run: Any, path: Path) -> bool:
    """Do all that is done with heartbeats and metric lines, with `path` among those of `run`."""
    there = (run.metrics if path.suffix == ".jsonl" else run.workers) / path.name
    there.write_bytes(path.read_bytes())
    try:
        view = RunView(run)
        view.refresh()
        found = snapshot(view)
        json.dumps(found)
        screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        _print_status(Console(file=screen, highlight=False), found, view.processes())
        screen.flush()
        progress = TrainerProgress(time.monotonic)
        for _ in range(2):
            progress.update(read_heartbeat(run.workers / "trainer.json"))
            progress.has_enough()
        try:
            best_model(run.models, run.metrics)
        except UserError as error:
            return refused(error)
        return path.suffix == ".jsonl" or read_heartbeat(there) is not None
    finally:
        there.unlink()


READERS: dict[str, Any] = {
    "segments": Segments,
    "journals": Journals,
    "models": Models,
    "settings": RunSettings,
    "heartbeats": Heartbeats,
}
