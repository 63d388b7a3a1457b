"""A run that goes on from another one: with its settings and its games, and with its last model to be compared with.

What is kept of the earlier run is a run directory without games, `before/` in the new one, so that every command that
reads a run reads it too. Nothing of the earlier run is changed or needed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from plyzero.errors import ModelRefusedError, UserError
from plyzero.files import list_files, read_file, read_part, write_file
from plyzero.run.directory import MAX_BYTES, Run, RunDirectory, plan_run, read_run
from plyzero.run.events import BEFORE, PART_BYTES, RATINGS
from plyzero.run.models import ModelName, list_models, read_model
from plyzero.run.replay import check_rules, copy_games
from plyzero.run.segments import list_segments

LARGEST_SEED: Final = 2**63 - 1


def plan_after(root: Path, earlier: Run, *, preset: str | None, seed: int | None, options: Sequence[str] = ()) -> Run:
    """Return a new run in `root` that would go on from `earlier`, without writing anything.

    It has all settings of `earlier` but the budget, changed by the environment and by `options`; with a `preset` those
    of the preset. Its first model is due after `trainer.bootstrap_passes` over the games that it begins with. Its seed
    is another one, so that it does not play the same games again.

    Raises UserError for a wrong setting, if `earlier` has no games or other rules than these, and what `plan_run`
    raises.
    """
    settings = read_run(earlier.root, environment={}).settings
    full = sum(name.full for name in list_segments(earlier.segments))
    enough = -(-settings.trainer.batch_size // settings.trainer.bootstrap_passes)  # for a step
    begins = f"selfplay.bootstrap_positions={max(full, int(enough), 1)}"
    planned = plan_run(
        root,
        earlier.game,
        preset=preset or earlier.preset,
        seed=seed if seed is not None else (earlier.seed + 1) % LARGEST_SEED,
        options=[begins, *options],
        settings=None if preset else settings.model_dump(exclude={"budget"}),
    )
    if any(list_segments(planned.segments)):
        raise UserError(f"{root} has the games of an init that did not end; remove it, or give another new run")
    check_rules(earlier)
    return planned


def take_over(earlier: Run, planned: Run, *, report: Callable[[str], None] = lambda text: None) -> str:
    """Copy the sealed games of `earlier`, its last model and its record of scores; return a clause that counts them.

    `earlier` may be running: a segment that it removes meanwhile is left out. Raises UserError if it has no games, and
    OSError.
    """
    games = copy_games(earlier, planned, report=report)
    model = _keep_record(earlier, planned.root / BEFORE)
    last = f"; its last model, step {model.step}, is the one to pass" if model else ", which has no model yet"
    return f"it begins with {games} games of {earlier.root}{last}"


def find_opponent(run: RunDirectory) -> str | None:
    """Return the name of the last model of the run before, as an opponent of ratings; None if there is none."""
    models = list_models(run.root / BEFORE / "models")
    return f"{BEFORE}@{models[0].step}" if models else None


def _keep_record(earlier: RunDirectory, root: Path) -> ModelName | None:
    """Write run.toml, the newest model that can be read and the scores of `earlier` to `root`; return the model."""
    for name in list_models(earlier.models):
        with suppress(FileNotFoundError, ModelRefusedError):
            write_file(root / "models" / str(name), read_model(earlier.models, name))
            break
    else:
        return None
    for file, size in list_files(earlier.metrics).items():
        if file == RATINGS or fnmatch(file, "trainer-*.jsonl"):
            write_file(root / "metrics" / file, _read_lines(earlier.metrics / file, size))
    write_file(root / "run.toml", read_file(earlier.root / "run.toml", max_bytes=MAX_BYTES))
    return name


def _read_lines(path: Path, size: int) -> bytes:
    """Return the first `size` bytes of a file that may grow, to the end of the last complete line."""
    content = b""
    while len(content) < size and (part := read_part(path, len(content), max_bytes=PART_BYTES)):
        content += part
    return content[: content.rfind(b"\n") + 1]
