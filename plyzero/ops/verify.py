"""Verification of a run: every file is read and validated, and compared with the others; the way back from quarantine.

The rules of the game are not imported: the sizes of the records are those that the first segment or journal claims, and
models evaluate recorded positions. Whoever has the rules passes an initial position, from which every game is replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from plyzero.errors import ModelRefusedError, UserError
from plyzero.files import list_names, move, remove
from plyzero.network.model_loader import check_run
from plyzero.network.onnx_network import NUM_TESTS, Network
from plyzero.ops.accounts import find_gaps
from plyzero.rules.game import Game
from plyzero.run.adoption import seal_games
from plyzero.run.directory import Run, RunDirectory
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.models import ModelName, list_models, read_model
from plyzero.run.records import JournalName
from plyzero.run.replay import find_disagreement, find_recorded_game
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment
from plyzero.volume_errors import explain
from plyzero.volumes import RemotePath


def find_faults(run: RunDirectory, rules: Game | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield (file, fault or None) for every segment, journal and model; then faults that concern several files.

    Those are a sequence number or a game that occurs twice, missing segments, and files in quarantine. Segments that
    retention has removed are not missed; a journal counts once if the segment of its number exists too.

    rules: the initial position, by whose rules the games of the segments are replayed; None = they are not.
    """
    ids: Counter[int] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    game = find_recorded_game(run)
    boards = np.zeros((1, *game.start.observation_shape), np.float32) if game else None

    def check_segment(name: SegmentName) -> str | None:
        nonlocal boards
        if game is None:
            raise SegmentError(f"{name} cannot be read: no segment or journal of the run can")
        games = read_segment(run.segments / str(name), game, run_id=run.id)
        ids.update(games.games["id"].tolist())
        boards = games.observations[:NUM_TESTS].astype(np.float32)
        numbers[name.incarnation, name.sequence] += 1
        if invalid := name.games - len(games.games):
            return f"{name}: {invalid} of {name.games} games are invalid"
        found = find_disagreement(games, rules) if rules is not None else None
        return f"{name}: {found}" if found else None

    def check_journal(name: JournalName) -> str | None:
        if game is None:
            raise ValueError("no segment or journal of the run can be read")
        damage = list[str]()
        batches = read_journal(run.journals / str(name), game, run_id=run.id, on_fault=damage.append)
        if (name.incarnation, name.sequence) not in numbers:
            ids.update(identity for batch in batches for identity in batch.games["id"].tolist())
        return "; ".join(damage[:3]) or None

    def check_model(name: ModelName) -> None:
        content = read_model(run.models, name)
        if game is not None and not name.int8:
            check_run(Network(content, game, label=str(name), observations=boards), run.id)

    for segment in sorted(list_segments(run.segments)):
        yield from _checked(str(segment), partial(check_segment, segment))
    for journal in list_journals(run.journals):
        yield from _checked(str(journal), partial(check_journal, journal))
    for model in (*list_models(run.models), *list_models(run.models, int8=True)):
        yield from _checked(str(model), partial(check_model, model))
    for (incarnation, sequence), count in numbers.items():
        if count > 1:
            yield incarnation, f"{count} segments are number {sequence} of incarnation {incarnation}"
    if repeated := [identity for identity, count in ids.items() if count > 1]:
        yield "games", f"{len(repeated)} games occur more than once, {repeated[0]:016x} for example"
    for gap in find_gaps(run):
        yield f"{gap.worker}.{gap.incarnation}", str(gap)
    for path in sorted(run.quarantine.glob("*")):
        yield path.name, f"{path.name} is in quarantine, because it could not be read"


def _checked(name: str, check: Callable[[], str | None]) -> Iterator[tuple[str, str | None]]:
    """Yield the file `name` and the fault that `check` returns or raises; nothing if it has been removed meanwhile."""
    try:
        fault = check()
    except FileNotFoundError:
        return
    except OSError as error:
        fault = f"{name} cannot be read: {explain(error)}"
    except (SegmentError, ModelRefusedError) as error:
        fault = str(error)
    except Exception as error:  # damage of a journal causes errors of many types
        fault = f"{name} cannot be read: {error!r}"
    yield name, fault


def restore(run: Run, names: Sequence[str] = ()) -> Iterator[tuple[str, str | None]]:
    """Move the files `names` of the quarantine, or all, back; yield (name, None) or (name, why it was left there).

    The trainer reads a restored segment once, although it has read later ones of the same writer. A restored journal is
    sealed like that of a dead worker.

    Raises UserError if one of `names` is not a file in quarantine.
    """
    present = sorted(list_names(run.quarantine))
    for name in names:
        if name not in present:
            raise UserError(f"{run.quarantine} has no file {name!r}; it has {', '.join(present[:8]) or 'none'}")
    for name in names or present:
        yield name, _restore(run, run.quarantine / name)


def _restore(run: Run, path: Path) -> str | None:
    """Move one file back; return None, or why it was left."""
    segment, journal = SegmentName.parse(path.name), JournalName.parse(path.name)
    name = segment or journal
    if name is None:
        return "left, its name is neither that of a segment nor that of a journal"
    try:
        for other in list_segments(run.segments):
            if (other.incarnation, other.sequence) == (name.incarnation, name.sequence):
                return f"left, the segment with its number exists: {other}"
        if journal and (run.journals / path.name).exists():
            return "left, a journal of this name exists"
        if segment:
            read_segment(path, run.game, run_id=run.id)
            move(path, run.segments)
        elif journal and isinstance(path, RemotePath):  # nobody looks for journals in a bucket
            seal_games(run, journal, read_journal(path, run.game, run_id=run.id))
            remove(path)
        else:
            read_journal(path, run.game, run_id=run.id)
            move(path, run.journals)
    except SegmentError as error:
        return f"left, {error}"
    except OSError as error:
        return f"left, {explain(error)}"
    except Exception as error:  # the header of a journal can be wrong in many ways
        return f"left, it cannot be read: {error!r}"
    return None
