"""Verification of a run: every file is read and validated, and the files are compared with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plyzero.errors import ModelRefusedError
from plyzero.ops.accounts import find_gaps
from plyzero.play.model_loader import load_model
from plyzero.run.directory import Run
from plyzero.run.journals import NAME, read_journal
from plyzero.run.models import list_models
from plyzero.run.segments import SegmentError, list_segments, read_segment


def find_faults(run: Run) -> Iterator[tuple[str, str | None]]:
    """Yield (file, fault or None) for every segment, journal and model; then faults that concern several files.

    Those are a sequence number or a game that occurs twice, missing segments, and files in quarantine. Segments that
    retention has removed are not missed; a journal counts once if the segment of its number exists too.
    """
    ids: Counter[int] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    for name in sorted(list_segments(run.segments)):
        try:
            games = read_segment(run.segments / str(name), run.game)
        except FileNotFoundError:  # retention removed it in the meantime
            continue
        except SegmentError as error:
            yield str(name), str(error)
        else:
            ids.update(games.games["id"].tolist())
            numbers[name.incarnation, name.sequence] += 1
            yield str(name), None
    for path in sorted(run.journals.glob("*.wal")):
        match = NAME.fullmatch(path.name)
        if not match:
            continue
        try:
            batches = read_journal(path, run.game)
        except FileNotFoundError:  # it was sealed in the meantime
            continue
        except Exception as error:  # damage causes errors of many types
            yield path.name, f"{path.name} cannot be read: {error!r}"
        else:
            if (match["incarnation"], int(match["sequence"])) not in numbers:
                ids.update(identity for batch in batches for identity in batch.games["id"].tolist())
            yield path.name, None
    for model in list_models(run.models):
        try:
            load_model(run.models, model, run.game)
        except FileNotFoundError:
            continue
        except ModelRefusedError as error:
            yield str(model), str(error)
        else:
            yield str(model), None
    for (incarnation, sequence), count in numbers.items():
        if count > 1:
            yield incarnation, f"{count} segments are number {sequence} of incarnation {incarnation}"
    if repeated := [identity for identity, count in ids.items() if count > 1]:
        yield "games", f"{len(repeated)} games occur more than once, {repeated[0]:016x} for example"
    for gap in find_gaps(run):
        yield f"{gap.worker}.{gap.incarnation}", str(gap)
    for path in sorted(run.quarantine.glob("*")):
        yield path.name, f"{path.name} is in quarantine, because it could not be read"
