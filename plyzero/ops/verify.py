"""Whether everything on a run's volume is as it should be: each file is read, checked, and counted against the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plyzero.errors import ModelRefusedError
from plyzero.play.model_loader import load_model
from plyzero.run.directory import Run
from plyzero.run.journals import NAME, read_journal
from plyzero.run.models import list_models
from plyzero.run.segments import SegmentError, list_segments, read_segment


def find_faults(run: Run) -> Iterator[tuple[str, str | None]]:
    """Yield (file, what is wrong with it, or None) for every segment, journal and model, then what is wrong between
    them: one sequence number twice, one game twice, files in quarantine.

    Segments that went through retention are not missed; a journal that has a segment of its number counts once.
    """
    ids: Counter[int] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    for name in sorted(list_segments(run.segments)):
        try:
            games = read_segment(run.segments / str(name), run.game)
        except FileNotFoundError:  # retired while we read
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
        except FileNotFoundError:  # sealed while we read
            continue
        except Exception as error:  # damage has many words
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
    if doubled := [identity for identity, count in ids.items() if count > 1]:
        yield "games", f"{len(doubled)} games are there more than once, {doubled[0]:016x} for example"
    for path in sorted(run.quarantine.glob("*")):
        yield path.name, f"{path.name} is in quarantine, because it could not be read"
