"""Verification of a run: every file is read and validated, and the files are compared with each other.

The rules of the game are not imported: the sizes of the records are those that the first segment or journal claims, and
models evaluate recorded positions. Whoever has the rules passes an initial position, from which every game is replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from plyzero.errors import ModelRefusedError
from plyzero.network.model_loader import check_run
from plyzero.network.onnx_network import NUM_TESTS, Network
from plyzero.ops.accounts import find_gaps
from plyzero.rules.game import Game
from plyzero.run.directory import RunDirectory
from plyzero.run.journals import list_journals, read_journal
from plyzero.run.models import list_int8, list_models, read_int8, read_model
from plyzero.run.recorded_game import find_recorded_game
from plyzero.run.replay import find_disagreement
from plyzero.run.segments import SegmentError, list_segments, read_segment
from plyzero.volume_errors import explain


def find_faults(run: RunDirectory, rules: Game | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield (file, fault or None) for every segment, journal and model; then faults that concern several files.

    Those are a sequence number or a game that occurs twice, missing segments, and files in quarantine. Segments that
    retention has removed are not missed; a journal counts once if the segment of its number exists too.

    rules: the initial position, by whose rules the games of the segments are replayed; None = they are not.
    """
    ids: Counter[int] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    game, observations = find_recorded_game(run), None
    for name in sorted(list_segments(run.segments)):
        try:
            if game is None:
                raise SegmentError(f"{name} cannot be read: no segment or journal of the run can")
            games = read_segment(run.segments / str(name), game, run_id=run.id)
        except FileNotFoundError:  # retention removed it in the meantime
            continue
        except OSError as error:
            yield str(name), f"{name} cannot be read: {explain(error)}"
        except SegmentError as error:
            yield str(name), str(error)
        else:
            ids.update(games.games["id"].tolist())
            observations = games.observations[:NUM_TESTS]
            numbers[name.incarnation, name.sequence] += 1
            invalid = name.games - len(games.games)
            fault = f"{name}: {invalid} of {name.games} games are invalid" if invalid else None
            if not fault and rules is not None and (found := find_disagreement(games, rules)):
                fault = f"{name}: {found}"
            yield str(name), fault
    for journal in list_journals(run.journals):
        path, damage = run.journals / str(journal), list[str]()
        try:
            if game is None:
                raise ValueError("no segment or journal of the run can be read")
            batches = read_journal(path, game, run_id=run.id, on_fault=damage.append)
        except FileNotFoundError:  # it was sealed in the meantime
            continue
        except OSError as error:
            yield path.name, f"{path.name} cannot be read: {explain(error)}"
        except Exception as error:  # damage causes errors of many types
            yield path.name, f"{path.name} cannot be read: {error!r}"
        else:
            if (journal.incarnation, journal.sequence) not in numbers:
                ids.update(identity for batch in batches for identity in batch.games["id"].tolist())
            yield path.name, "; ".join(damage[:3]) or None
    for model in list_models(run.models):
        try:
            content = read_model(run.models, model)
            if game is not None:
                boards = np.zeros((1, *game.start.observation_shape)) if observations is None else observations
                network = Network(content, game, label=str(model), observations=boards.astype(np.float32))
                check_run(network, run.id)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield str(model), f"{model} cannot be read: {explain(error)}"
        except ModelRefusedError as error:
            yield str(model), str(error)
        else:
            yield str(model), None
    for file in list_int8(run.models):
        with suppress(FileNotFoundError):
            try:
                read_int8(run.models, file)
            except ModelRefusedError as error:
                yield file, str(error)
            except OSError as error:
                yield file, f"{file} cannot be read: {explain(error)}"
            else:
                yield file, None
    for (incarnation, sequence), count in numbers.items():
        if count > 1:
            yield incarnation, f"{count} segments are number {sequence} of incarnation {incarnation}"
    if repeated := [identity for identity, count in ids.items() if count > 1]:
        yield "games", f"{len(repeated)} games occur more than once, {repeated[0]:016x} for example"
    for gap in find_gaps(run):
        yield f"{gap.worker}.{gap.incarnation}", str(gap)
    for path in sorted(run.quarantine.glob("*")):
        yield path.name, f"{path.name} is in quarantine, because it could not be read"
