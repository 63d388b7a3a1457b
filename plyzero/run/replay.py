"""Recorded games: as arrays for analysis in Python, for a new run, and compared with what the rules say now."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import thread_time
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, plain, shown
from plyzero.files import read_file
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import replay_game
from plyzero.rules.game import DRAW, ONGOING, Game, outcome_code
from plyzero.run import journals
from plyzero.run.directory import KEY, Run, RunDirectory, open_run
from plyzero.run.records import BY_RULE, FOREIGN_FENCE, RESIGNED, UNKNOWN_SCORE, Games, JournalName, score_of
from plyzero.run.segments import SegmentError, list_segments, read_segment, write_segment
from plyzero.run.zarr_zip import MAX_BYTES, Archive
from plyzero.volumes import to_path

CHECK_SECONDS: Final = 0.3
"""CPU seconds that a command spends when it starts, to compare the rules with recorded games."""

NEWEST: Final = 30
"""Number of the newest segments, of which the smallest is read, and number of its newest games, which are compared."""

MAX_SIZE: Final = 1 << 24
"""Largest number of actions, and of numbers in an observation."""

log = logging.getLogger(__name__)


def read_games(path: Path | str) -> Games:
    """Return all sealed games of a run directory, or of one of its segments, as the arrays of `plyzero.run.records`.

    The games of a worker are in the order in which they ended; those of an older model come before those of a newer
    one. A segment of a run that cannot be read is left out, with a warning.

    Raises UserError if `path` is neither, if it is a segment that cannot be read, or if there are no games.
    """
    path = to_path(str(path))
    is_run = path.is_dir()
    run = open_run(path if is_run else path.absolute().parent.parent)
    if not is_run:
        try:
            return read_segment(path, run.game, run_id=run.id)
        except (SegmentError, OSError) as error:
            raise UserError(f"cannot read the games in {path}: {error}") from error
    parts = []
    for name in sorted(list_segments(run.segments), key=lambda each: (each.last_step, each)):
        try:
            parts.append(read_segment(run.segments / str(name), run.game, run_id=run.id))
        except FileNotFoundError:
            continue  # removed by the trainer since the listing
        except SegmentError as error:
            log.warning("left out: %s", error)
    if not parts:
        raise UserError(f"{path} has no sealed games yet")
    return Games.concatenate(parts)


def copy_games(source: Run, target: Run, *, report: Callable[[str], None]) -> int:
    """Copy the sealed games of `source` into `target`, a run without games, as those of one worker; return how many.

    Their models are not models of `target`: moves are recorded as evaluated by FOREIGN_FENCE and step 1, older than all
    of its own. A damaged segment is left out, with a warning. Raises UserError if there are none, and OSError.

    report: called with a sentence before each segment.
    """
    incarnation = uuid.uuid4().hex[:8]
    copied, sequence = 0, 0
    for name in sorted(list_segments(source.segments), key=lambda each: (each.last_step, each)):
        report(f"{copied} games copied")
        try:
            games = read_segment(source.segments / str(name), source.game, run_id=source.id)
        except FileNotFoundError:
            continue  # removed by the trainer of `source` since the listing
        except SegmentError as error:
            log.warning("left out: %s", error)
            continue
        evaluated = games.positions["model_fence"] > 0
        games.positions["model_fence"][evaluated] = FOREIGN_FENCE
        games.positions["model_step"][evaluated] = 1
        journal = JournalName("imported", incarnation, sequence)
        write_segment(target.segments, games, target.game, journal, run_id=target.id)
        copied += len(games.games)
        sequence += 1
    if not copied:
        raise UserError(f"{source.root} has no sealed games that can be read; begin without --from")
    return copied


def check_rules(run: Run) -> None:
    """Raise UserError if the rules are not those that made the newest games of `run`: its text says where they differ.

    A few games are replayed, for CHECK_SECONDS at most. Compiled rules run as plain Python, so nothing has to be
    compiled. If no sealed game can be read, nothing is compared.
    """
    from plyzero.rules.compiled_game import CompiledGame  # only here, so that reading games does not load Numba

    began = thread_time()
    start = run.game.start
    found = None
    rules = start.as_plain_python() if isinstance(start, CompiledGame) else start
    try:
        small = [each for each in list_segments(run.segments) if each.positions <= 20_000]  # others take too long
        names = sorted(small, key=lambda each: (each.last_step, each.sequence, each))[-NEWEST:]
        for name in sorted(names, key=lambda each: each.positions):
            try:
                games = read_segment(run.segments / str(name), run.game, run_id=run.id)
            except SegmentError:
                if found := _find_other_sizes(run):
                    break
                continue  # it is damaged, which others report
            plies = games.games["positions"]
            numbers = np.arange(len(plies))
            newest = numbers >= len(plies) - NEWEST
            shortest = numbers == plies.argmin()
            games = Games.concatenate([games.select(shortest), games.select(newest)])
            found = find_disagreement(games, rules, seconds=CHECK_SECONDS - (thread_time() - began))
            if found and rules is not start:
                found = find_disagreement(games, start)  # compiled arithmetic may differ, and it is what plays
            break
    except OSError:
        return  # the processes of the run report it
    if found:
        raise UserError(
            f"the rules of {run.game.name} are not those that made the games in {run.root}: {plain(found, 300)}; raise "
            "its `version` and begin a new run, or undo the change"
        )


def _find_other_sizes(run: Run) -> str | None:
    """Return how the sizes in the records of `run` differ from those of its game, None if they do not."""
    recorded = find_recorded_game(run)
    forms: dict[str, Callable[[Any], object]] = {
        "num_actions": int,
        "observation_shape": tuple,
        "observation_dtype": np.dtype,
    }
    for name, form in forms.items():
        then, now = (form(getattr((each or run.game).start, name)) for each in (recorded, run.game))
        if then != now:
            return f"{name}: recorded {then}, by the rules {now}"
    return None


def find_disagreement(games: Games, start: Game, *, seconds: float = math.inf) -> str | None:
    """Return where the rules differ from what `games` record, in one sentence, or None if they agree everywhere.

    start:   the initial position. Players, legal actions, observations and winners are compared, in the order played.
    seconds: CPU seconds until nothing more is compared. After a quarter of them only winners are compared.
    """
    began = thread_time()
    for one in games:
        (game,) = one.games
        actions = one.positions["action"].tolist()
        legal = np.split(one.moves["action"], np.cumsum(one.positions["num_legal"], dtype=np.int64))
        ply = 0
        fault = None
        try:
            with np.errstate(all="ignore"):  # machine code ignores numbers that overflow too
                for ply, (position, _) in enumerate(replay_game(start, game, actions)):
                    used = thread_time() - began
                    if used > seconds:
                        return None
                    if ply == len(actions):
                        fault = _compare_end(position, game)
                    elif 4 * used <= seconds:
                        fault = _compare(position, one.positions[ply], legal[ply], one.observations[ply])
                    if fault:
                        break
        except Exception as error:  # rules raise errors of any type
            fault = f"the rules raise {type(error).__name__}: {error}"
        if fault:
            return f"game {game['id']:016x}, move {min(ply + 1, len(actions))}: {fault}"
    return None


def _compare(position: Game, record: np.void, legal: NDArray[np.uint32], seen: NDArray[np.generic]) -> str | None:
    """Return how a position differs from its record, recorded legal actions and observation; None if it does not."""
    if int(record["to_play"]) != position.to_play:
        return f"the player to move: recorded {record['to_play']}, by the rules {position.to_play}"
    then, now = set(legal.tolist()), set(map(int, position.legal_actions()))
    if then != now:
        gone, new = (shown(sorted(each)) for each in (then - now, now - then))
        return f"the legal actions: only recorded {gone}, only by the rules {new}"
    observed = np.asarray(position.observe(), np.float32).astype(seen.dtype)
    if observed.shape != seen.shape or not np.allclose(seen, observed, rtol=1e-3, atol=1e-5):
        return "the observation is not the one recorded"
    return None


def _compare_end(position: Game, game: np.void) -> str | None:
    """Return how the final position differs from the record of the game; None if it does not."""
    then, now = int(game["winner"]), outcome_code(position.outcome())
    if (then == now or game["end"] == RESIGNED) and (now == ONGOING) == (game["end"] != BY_RULE):
        recorded, score = game["score"], np.float32(score_of(position.outcome(), position))
        is_right = recorded in (UNKNOWN_SCORE, score)
        return None if is_right else f"the score: recorded {recorded:g}, by the rules {score:g}"
    nobody = {DRAW: "none, a draw", ONGOING: "none, as the game is not over"}
    recorded, by_rules = (nobody.get(code, f"player {code}") for code in (then, now))
    return f"the winner: recorded {recorded}, by the rules {by_rules}"


class Shapes(NamedTuple):
    """A game by its records: the attributes of `Game` that their readers use; with points, to read both versions."""

    version: int
    num_actions: int
    observation_shape: tuple[int, ...]
    observation_dtype: str
    max_score: int = 1


def find_recorded_game(run: RunDirectory) -> GameSpec | None:
    """Return the game of `run` as its first readable segment or journal describes it, None if there is none.

    Only the sizes are known: its `start` is a Shapes, which cannot be played.
    """
    version = int(run.identity.rpartition(" v")[2])
    dtypes = ("bool", "uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64")
    for fields in _descriptions(run):
        if run.id and run.id.find_fault(fields.get(KEY)):
            continue
        shape, actions, dtype = (fields.get(key) for key in ("observation_shape", "num_actions", "observation_dtype"))
        sizes = [actions, *shape] if isinstance(shape, list) and len(shape) == 3 else [0]
        known = all(type(size) is int and 0 < size <= MAX_SIZE for size in sizes) and dtype in dtypes
        if known and math.prod(sizes[1:]) <= MAX_SIZE:
            shapes = Shapes(version, sizes[0], tuple(sizes[1:]), str(dtype))
            return GameSpec(run.game_name, cast(Game, shapes))
    return None


def _descriptions(run: RunDirectory) -> Iterator[dict[str, object]]:
    """Yield the attributes of the segments and the headers of the journals that can be read."""
    for name in sorted(list_segments(run.segments)):
        with suppress(Exception):  # damage causes errors of many types, and is reported where the file is verified
            archive = Archive(read_file(run.segments / str(name), max_bytes=MAX_BYTES))
            yield {**archive.attributes, "observation_dtype": archive.data_type("position/observation") or "bool"}
    for journal in journals.list_journals(run.journals):
        with suppress(Exception):
            yield journals.read_header(run.journals / str(journal))
