"""Recorded games as arrays: the sealed games of a run, or of one segment, for analysis in Python."""

from __future__ import annotations

import logging
from pathlib import Path

from plyzero.errors import UserError
from plyzero.run.directory import open_run, to_path
from plyzero.run.records import Games
from plyzero.run.segments import SegmentError, list_segments, read_segment

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
            return read_segment(path, run.game)
        except (SegmentError, OSError) as error:
            raise UserError(f"cannot read the games in {path}: {error}") from error
    parts = []
    for name in sorted(list_segments(run.segments), key=lambda each: (each.last_step, each)):
        try:
            parts.append(read_segment(run.segments / str(name), run.game))
        except FileNotFoundError:
            continue  # removed by the trainer since the listing
        except SegmentError as error:
            log.warning("left out: %s", error)
    if not parts:
        raise UserError(f"{path} has no sealed games yet")
    return Games.concatenate(parts)
