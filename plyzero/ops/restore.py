"""The way back from quarantine: files that are sound are moved to where they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from plyzero.bucket import BucketPath
from plyzero.errors import UserError
from plyzero.files import list_names, move, remove
from plyzero.run.adoption import seal_games
from plyzero.run.directory import Run
from plyzero.run.journals import JournalName, read_journal
from plyzero.run.segments import SegmentError, SegmentName, list_segments, read_segment
from plyzero.volume_errors import explain


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
        elif journal and isinstance(path, BucketPath):  # in which nobody looks for journals
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
