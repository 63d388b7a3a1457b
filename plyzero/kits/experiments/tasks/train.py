"""The task that trains a bot: `plyzero train` for a number of minutes, then its newest model and its curves."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from plyzero import __version__
from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.kits.experiments.tasks.results import (
    AGENT,
    CARD,
    MEASURED,
    TRAIN_COLUMNS,
    TRAIN_SCORES,
    TRAIN_TABLE,
    Cell,
    write_json,
    write_table,
    write_text,
)
from plyzero.ops.child import plyzero_command
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.run.directory import RunDirectory, plan_run, read_run
from plyzero.run.events import read_scores
from plyzero.run.models import ModelName, list_models, read_model
from plyzero.run.view import RunView


def train(
    inputs: Path,
    out: Path,
    *,
    report: Callable[[str], None],
    game: str,
    minutes: float = 0.0,
    steps: int = 0,
    until: str = "",
    seed: int,
    preset: str = "quick",
    settings: str = "",
    workers: int = 0,
    device: str = "auto",
    group: str = "",
    reproducible: bool = False,
) -> None:
    """Train `game` in out/run until a budget is reached, and write agent.onnx, train.csv, values/score and card.json.

    A training that was killed goes on. It ends at the first of `minutes`, `steps` and `until`.

    minutes, steps: limits for all its starts together; 0 = no limit.
    until:          a score, such as "score >= 0.9 against mcts:100"; "" = none.
    settings:       settings, such as "selfplay.simulations=32 search.c_puct=2".
    workers:        number of self-play processes; 0 = one per core.
    group:          a name for runs that are averaged together.
    reproducible:   the same seed gives the same table, except for times; this uses one core.

    Raises UserError if the training has made no model or no rating.
    """
    root = out / "run"
    report("")  # the training shows its own progress
    budget = {"minutes": minutes, "steps": steps, "until": until}
    arguments = [game, "--run", str(root)]
    for name, most in budget.items():
        if most:
            arguments += [f"--{name}", str(most)]
    arguments += ["--seed", str(seed), "--preset", preset, "--device", device]
    if workers:
        arguments += ["--workers", str(workers)]
    if reproducible:
        arguments.append("--reproducible")
    for setting in settings.split():
        arguments += ["-o", setting]
    _run_train(*arguments)
    run = read_run(root)
    models = list_models(run.models)
    if not models:
        raise UserError(f"{root} has no model: its training was stopped before; the same command continues it")
    score = _last_score(run)
    content = read_model(run.models, models[0])
    write_file(out / Path(AGENT).name, content, replace=True)
    about = {"run": inputs.resolve().name, "group": group}
    write_table(out / Path(TRAIN_TABLE).name, TRAIN_COLUMNS, [about | row for row in curve(run)])
    write_text(out / "values" / "score", f"{score:g}\n")
    card = {
        "version": 1,
        "game": run.identity,
        "step": models[0].step,
        "sha256": hashlib.sha256(content).hexdigest(),
        "seed": seed,
        "group": group,
        "settings": settings,
        "preset": preset,
        **budget,
        "score": score,
        "plyzero": __version__,
    }
    write_json(out / Path(CARD).name, card)


def check_train(
    *, game: str, minutes: float, steps: int, until: str, seed: int, preset: str, settings: str, **_: object
) -> None:
    """Raise UserError for settings that a run of the game would refuse, and without a budget."""
    if min(minutes, steps) < 0 or not (minutes or steps or until):
        raise UserError(f"expected more than 0 minutes or steps of training, or until, got {minutes:g} and {steps}")
    budget = [f"budget.until={until}"] if until else []
    plan_run(Path(), load_game(game), preset=preset, seed=seed, options=[*settings.split(), *budget])


def curve(run: RunDirectory) -> list[dict[str, Cell]]:
    """Return a row for each published model, with increasing steps: train.csv without run and group.

    After a crash the training goes on from an older step. The rows of later models from before the crash are left out,
    but `seconds` is the time of all starts of the trainer, with that of the lost steps.
    """
    results = dict(_ratings(run))
    rows: list[dict[str, Cell]] = []
    lines = RunView(run).lines
    for line in lines.read():
        if line.model is None:
            continue
        while rows and int(rows[-1]["step"] or 0) >= line.model.step:
            rows.pop()
        row: dict[str, Cell] = {"step": line.model.step, "seconds": round(lines.seconds(), 1)}
        figures = line.figures(MEASURED)
        row |= {name: int(x) if x is not None and x.is_integer() else x for name, x in figures.items()}
        row |= dict(zip(("first_won", "second_won"), line.won, strict=True))
        row |= line.figures(("drawn",))
        if result := results.get(line.model):
            found = (result.score, *result.interval())
            row |= {name: round(value, 4) for name, value in zip(TRAIN_SCORES, found, strict=True)}
        rows.append(row)
    return rows


def _run_train(*arguments: str) -> None:
    """Run `plyzero train` to its end. If it fails, it has reported why; end this process with its exit code."""
    child = subprocess.Popen(plyzero_command("train", *arguments), stdin=subprocess.DEVNULL)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        child.wait()  # the same Ctrl-C stops it, and it saves
        raise
    if code:
        sys.exit(code)


def _ratings(run: RunDirectory) -> Iterator[tuple[ModelName, MatchResult]]:
    """Yield each measured model with its result against the last opponent, which is the strongest."""
    for found in read_scores(run.metrics):
        yield found.model, MatchResult(*list(found.counts.values())[-1])


def _last_score(run: RunDirectory) -> float:
    ratings = list(_ratings(run))
    if not ratings:
        raise UserError(
            f"{run.root} has no rating of a model: its training was stopped before; the same command continues it"
        )
    return round(ratings[-1][1].score, 4)
