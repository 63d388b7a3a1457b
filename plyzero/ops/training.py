"""Training in one call from Python: `plyzero.train`."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path

from plyzero.errors import UserError, install_command
from plyzero.files import write_file
from plyzero.machine import usable_cores
from plyzero.ops import supervisor
from plyzero.ops.rating import Rater, Rating, check_opponents, only_rater
from plyzero.ops.sizes import check_sizes
from plyzero.ops.supervisor import Report
from plyzero.play.players import Bot
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.rules.user_modules import MAIN, NOTEBOOK
from plyzero.run.budget import share_used
from plyzero.run.directory import Run, open_or_create_run


def train(
    game: str | type[Game],
    *,
    run: Path | str,
    workers: int | None = None,
    steps: int | None = None,
    games: int | None = None,
    positions: int | None = None,
    minutes: float | None = None,
    until: str | None = None,
    preset: str | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    on_report: Callable[[Report], None] | None = None,
) -> Bot:
    """Train a game in processes of its own until a budget is reached, and return the bot of the newest model.

    The same call continues a training that was interrupted, and returns at once if its budget is reached.

    game:         a name, such as "connect-four" or "my_game:MyGame", or a class, also one that was made in a notebook.
    run:          the directory of the run.
    workers:      number of self-play processes; None = one per core.
    steps, games, positions, minutes, until: the budget, as of `plyzero train`; whichever comes first, at least one.
    preset, seed: of a new run; None = quick and 0.
    settings:     such as ["selfplay.simulations=32"].
    on_report:    called with every new model; None = print a line of progress.
    Raises UserError for bad input, and local_processes.ChildFailedError if a process ends by itself.
    """
    budget = {"steps": steps, "games": games, "positions": positions, "minutes": minutes, "until": until}
    limits = [f"budget.{key}={value}" for key, value in budget.items() if value is not None]
    if not limits:
        raise UserError("expected a budget: steps, games, positions, minutes or until")
    workers, options = workers or usable_cores(), [*settings, *limits]
    opened = open_or_create_run(Path(run).absolute(), load_game(game), preset=preset, seed=seed, options=options)
    check_sizes(opened.game.start, opened.settings, workers=workers, trainer=True)
    check_opponents(opened)
    shown = Progress(opened)
    with ExitStack() as training:
        training.enter_context(_known_to_processes(game))
        training.enter_context(only_rater(opened))
        supervisor.train(
            opened,
            workers=workers,
            stop=threading.Event(),
            options=options,
            on_report=on_report or shown.report,
            rater=training.enter_context(closing(Rater(opened))),
            on_rating=shown.rate if on_report is None else lambda _: None,
            on_message=lambda text: print(text, file=sys.stderr) if text.startswith("warning") else None,
        )
    return Bot.load(opened.root, game=game)


class Progress:
    """A line that is shown again and again: how much of the budget is used, and the newest score.

    In a notebook it is replaced, and so is a chart of the policy's loss below it: one of each is left in the file.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._score = run, ""
        self._losses: list[tuple[float, float]] = []
        self._displayed: set[str] = set()

    def report(self, report: Report) -> None:
        """Show a new model."""
        line = report.line
        share = share_used(self._run.settings.budget, line)
        counts = f"step {line.step:,.0f}, {line.games:,.0f} games{self._score}"
        text = f"[{'#' * round(30 * share):30}] {share:4.0%}  {counts}"
        if "ipykernel" not in sys.modules:
            print(f"\r{text}  ", end="\n" if share == 1 else "", flush=True)
            return
        self._display("line", {"text/plain": text})
        if line.policy_loss:
            self._losses.append((line.step, line.policy_loss))
            self._display("chart", {"image/svg+xml": loss_chart(self._losses), "text/plain": "the policy's loss"})

    def rate(self, rating: Rating) -> None:
        """Show the scores of a model from the next report on."""
        self._score = "".join(f", {result.score:.0%} against {name}" for name, result in rating.scores.items())

    def _display(self, part: str, content: dict[str, str]) -> None:
        """Show a part of the output in a notebook, in place of what it was before."""
        display = import_module("IPython.display").display
        display(content, raw=True, display_id=f"plyzero-{part}-{id(self)}", update=part in self._displayed)
        self._displayed.add(part)


def loss_chart(losses: Sequence[tuple[float, float]]) -> str:
    """Return a chart of (training step, loss > 0) as SVG."""
    (step, loss), most = losses[-1], max(loss for _, loss in losses)
    points = " ".join(f"{300 * x / max(1, step):.1f},{100 - 90 * y / most:.1f}" for x, y in losses)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 120" width="400" font-size="11" fill="#888">'
        f'<path d="M0 10V100H300" fill="none" stroke="#888"/><polyline points="{points}" fill="none" stroke="#0b6258"/>'
        f'<text x="0" y="115">policy loss until step {step:,.0f}: {loss:.3f}</text></svg>'
    )


@contextmanager
def _known_to_processes(game: str | type[Game]) -> Iterator[None]:
    """Let the processes that are started meanwhile know a class that was made in a notebook."""
    if isinstance(game, str) or not load_game(game).name.startswith(f"{MAIN}:"):
        yield
        return
    try:
        import cloudpickle
    except ImportError as error:
        raise UserError(f"to train a class of a notebook: {install_command('notebook')}") from error
    with tempfile.TemporaryDirectory(prefix="plyzero-") as folder:
        path = Path(folder) / "classes"
        write_file(path, cloudpickle.dumps({game.__name__: game}))
        os.environ[NOTEBOOK] = str(path)
        try:
            yield
        finally:
            del os.environ[NOTEBOOK]
