"""train, init: create a run, and train it on this machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, Self

import typer
from rich.text import Text

from plyzero.commands import common
from plyzero.errors import UserError, plain
from plyzero.threads import repeating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plyzero.ops.rating import Rating
    from plyzero.ops.summary import Bar
    from plyzero.ops.supervisor import Report
    from plyzero.rules.catalog import GameSpec
    from plyzero.run.directory import Run

QUIET_SECONDS: Final = 10.0
"""Longest time without a line where `train` does not write to a terminal, in seconds."""

BLOCKS: Final = "▁▂▃▄▅▆▇█"
"""A score from 0 to 1 as one character."""


@common.with_groups
def train(
    game: common.GameArgument,
    run: common.RunOption,
    *,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Number of self-play processes; default: one per core.")
    ] = None,
    budget: common.Budget,
    reproducible: Annotated[
        bool,
        typer.Option(help="Play and train in turns in one process: the same seed makes the same games and weights."),
    ] = False,
    sync: Annotated[
        bool,
        typer.Option("--sync", help="Workers and trainer take turns, to compare; same as selfplay.when_ahead=turns."),
    ] = False,
    preset: common.Preset = None,
    seed: common.Seed = None,
    device: common.Device = "auto",
    scratch: common.Scratch = None,
    options: common.Options = None,
) -> None:
    """Train GAME on this machine, until Ctrl-C or a budget ends it. The same command continues what was stopped."""
    from plyzero.machine import usable_cores
    from plyzero.ops.processes import interrupt_on_signals

    common.require("torch", "onnx", "onnxruntime")
    if reproducible and budget.until:
        raise UserError("expected --steps, --games or --positions with --reproducible: ratings depend on time")
    options = budget.added_to(options)
    if sync:
        options.append("selfplay.when_ahead=turns")
    with _Screen().shown() as screen:
        stop = interrupt_on_signals(screen.interrupted_again)  # before the slow imports
        screen.progress(f"loading {game} and compiling its rules, if they are compiled ones")
        from plyzero.ops import supervisor
        from plyzero.ops.rating import Rater, check_opponents, only_rater
        from plyzero.ops.sizes import check_sizes
        from plyzero.ops.summary import summarize_files
        from plyzero.run.budget import how_to_continue, read_trainer
        from plyzero.run.directory import check_scratch, describe_changed_settings, open_or_create_run
        from plyzero.run.models import list_models
        from plyzero.run.replay import check_rules

        check_scratch(run, scratch)
        common.check_continues(run, options)
        if reproducible:
            workers = 0
        elif workers is None:
            workers = usable_cores()
        check_new = partial(common.check_new_run, workers=workers, trainer=True)

        def check(run: Run) -> None:
            check_new(run)
            check_opponents(run)

        try:
            opened = open_or_create_run(
                run, common.find_game(game), preset=preset, seed=seed, options=options, scratch=scratch, check=check
            )
        except Exception:
            if stop.is_set():  # an import that is interrupted may fail with any error
                raise KeyboardInterrupt from None
            raise
        check_rules(opened)
        check_sizes(opened.game.start, opened.settings, workers=workers, trainer=True)  # settings may have changed
        check_opponents(opened)
        processes = "one process, in turns"
        if workers:
            processes = "1 worker + trainer" if workers == 1 else f"{workers} workers + trainer"
        screen.line(f"{opened.game.name} · preset {opened.preset} · {processes} · run {run}")
        if changes := describe_changed_settings(opened):
            screen.line(changes)
        for line in supervisor.Messages(screen.message).unless_error(lambda: summarize_files(opened)) or ():
            screen.line(line)
        screen.line(_row(["time", "games", "pos/s", "step", "policy", "value", "ratio"]))
        with ExitStack() as measuring:
            rater = None
            try:
                measuring.enter_context(only_rater(opened))
                rater = measuring.enter_context(closing(Rater(opened)))
            except UserError as error:
                screen.message(f"{error}, so this one does not")
            supervisor.train(
                opened,
                workers=workers,
                stop=stop,
                options=options,
                device=device,
                on_report=lambda report: screen.line(_report_row(report)),
                rater=rater,
                on_rating=screen.rating,
                on_progress=screen.progress,
                on_message=screen.message,
            )
        screen.scores(opened)
        ended = "stopped and saved" if stop.is_set() else "saved"
        again = f"the same command {how_to_continue(opened, read_trainer(opened))}".rstrip()
        if supervisor.Messages(screen.message).unless_error(lambda: list_models(opened.models)):
            screen.line(f"{ended}. To continue: {again}. To play: plyzero play {quote(game)} --run {run}")
        else:
            screen.line(f"{ended}, but there is no model yet. To continue: the same command.")


class _Screen:
    """The output of `train`: lines, and the current activity, with bars, as a line every QUIET_SECONDS.

    On a terminal the activity and the bars are below the lines and change, and scores have a character of BLOCKS.
    """

    def __init__(self) -> None:
        self._console = common.make_console()
        self._status = self._console.status("")
        self._doing, self._printed = "", time.monotonic()
        self._was_interrupted_again = False

    @contextmanager
    def shown(self) -> Iterator[Self]:
        with self._status, repeating(self._print_now_and_then, 0.5, name="progress"):
            yield self

    def line(self, text: str, style: str | None = None) -> None:
        self._printed = time.monotonic()
        self._console.print(plain(text), style=style, soft_wrap=True)

    def message(self, text: str) -> None:
        self.line(f"       {text}", style="bold" if text.startswith("warning") else None)

    def rating(self, rating: Rating) -> None:
        if not self._console.is_terminal:
            self.line(f"       {rating}")
            return
        scores = "  ".join(f"{_block(each.score)} {each.short} {opponent}" for opponent, each in rating.scores.items())
        again = ", played again" if rating.confirmation else ""
        if rating.has_passed is not None:
            again += ", passed" if rating.has_passed else ", not yet passed"
        self.line(f"{_row(['', '', '', f'{rating.step}', '', '', '']).rstrip()}  {scores}{again}")

    def scores(self, run: Run) -> None:
        """On a terminal, print the newest scores of a run against each opponent as a row of characters."""
        from plyzero.play.scores import MatchResult
        from plyzero.run.events import last_scores

        of: dict[str, list[MatchResult]] = {}
        for found in last_scores(run.metrics)[-30:] if self._console.is_terminal else ():
            for opponent, counts in found.counts.items():
                of.setdefault(opponent, []).append(MatchResult(*counts))
        for opponent, results in of.items():
            blocks = "".join(_block(each.score) for each in results)
            self.line(f"       against {opponent:<10} {blocks} {results[-1].short}")

    def progress(self, doing: str, bars: Sequence[Bar] = ()) -> None:
        shown = [f"{each.name[:1].upper()}{each.name[1:]}: {each.text}." for each in bars]
        self._doing = plain(" ".join([doing, *shown]), 400)
        width = self._console.width - 3  # beside the turning sign
        self._status.update(Text("\n".join([plain(doing, 400), *_drawn(bars, width)])))
        if self._was_interrupted_again:
            self._was_interrupted_again = False
            self.message("still stopping, for a minute at most; nothing is lost, even if this process is killed")

    def interrupted_again(self) -> None:
        self._was_interrupted_again = True

    def _print_now_and_then(self) -> None:
        """Without a terminal, print the current activity after QUIET_SECONDS without other output."""
        if not self._console.is_terminal and time.monotonic() - self._printed >= QUIET_SECONDS:
            try:
                self.message(self._doing)
            except SystemExit:  # raised by rich when the output is closed: stop and save
                signal.raise_signal(signal.SIGTERM)


def _drawn(bars: Sequence[Bar], width: int) -> list[str]:
    """Return each bar as a line of at most `width` characters, if the texts leave room for it."""
    longest = max((len(each.text) for each in bars), default=0)
    cells = max(5, min(30, width - longest - 14))
    lines = []
    for name, share, share_begun, text in bars:
        done, ends = round(cells * share), round(cells * (share + share_begun))
        lines.append(f"{name:<11} {'█' * done}{'▒' * (ends - done)}{'░' * (cells - ends)}  {text}")
    return lines


def _block(score: float) -> str:
    return BLOCKS[min(len(BLOCKS) - 1, int(score * len(BLOCKS)))]


BEGINS_WITH_MODEL: Final = ("selfplay.bootstrap_positions=512",)
"""Settings of a run that begins with a model: its first games need the network, and so take longer."""


def init(
    game: Annotated[
        str,
        typer.Argument(
            metavar="GAME|NEW",
            help="The game, such as connect-four or my_module:MyGame; without --run the new run, with the game of OLD.",
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", parser=common.read_directory, help="The new run, or s3://BUCKET/PREFIX."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="OLD|BOT.onnx",
            parser=common.read_directory,
            help="Go on from this run, with its settings and its sealed games, for example with a larger network; or "
            "begin with this bot, made by plyzero imitate, or with the newest model of a run of another board size.",
        ),
    ] = None,
    preset: common.Preset = None,
    seed: common.Seed = None,
    options: common.Options = None,
) -> None:
    """Create a run directory and write all its settings to run.toml."""
    from plyzero.run.before import plan_after, take_over
    from plyzero.run.directory import open_run, plan_run, read_run, write_run

    begins = ""
    is_run = source is not None and (source / "run.toml").exists()
    if run is None:
        run, spec = _new_run_of(game, source if is_run else None)
    else:
        spec = common.find_game(game)
    try:
        if source is not None and is_run and read_run(source).game_name == spec.name:
            earlier = open_run(source, game=spec)
            planned = plan_after(run, earlier, preset=preset, seed=seed, options=options or ())
            common.check_new_run(planned)
            with common.show_progress("copying") as report:
                begins = f"; {take_over(earlier, planned, report=report)}"
        else:
            first = BEGINS_WITH_MODEL if source else ()
            options = [*first, *(options or ())]
            planned = plan_run(run, spec, preset=preset or "quick", seed=seed or 0, options=options)
            common.check_new_run(planned)
            if source is not None:
                _begin_with_model(planned, source)
                begins = f"; its first model is {f'the newest of {source}' if is_run else source}"
        write_run(planned)  # last, so that a process that waits for the run finds all of it
    except FileExistsError as error:
        raise UserError(f"{run} is a run directory already; it was not changed") from error
    print(f"created {run} for {planned.game.name}; its settings are in {run / 'run.toml'}{begins}")


def _new_run_of(name: str, source: Path | None) -> tuple[Path, GameSpec]:
    """Return the new run that `name` names and the game of the run `source`. Raises UserError if they are none."""
    from plyzero.run.directory import open_run

    if source is None:
        raise UserError("expected --run DIR, the new run; only with --from and a run is its game known")
    with common.data_output():
        earlier = open_run(source)
    if name == earlier.game_name:
        raise UserError(f"expected the new run, got the game {name}; give --run DIR too")
    return common.read_directory(name), earlier.game


def _begin_with_model(planned: Run, source: Path) -> None:
    """Give a new run the bot `source`, or the newest model of that run, as its first model."""
    from plyzero.trainer.first_model import read_bot
    from plyzero.trainer.loop import begin_run

    begin_run(planned, *read_bot(source, planned))


def _row(cells: list[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 8, 6, 7, 6, 5, 5), strict=True))


def _report_row(report: Report) -> str:
    line, minutes = report.line, int(report.seconds) // 60
    return _row(
        [
            f"{minutes}:{int(report.seconds) % 60:02d}",
            f"{line.games:.0f}",
            f"{report.positions_per_second:.0f}" if report.positions_per_second else "",
            f"{line.step:.0f}",
            f"{line.policy_loss:.3f}" if line.policy_loss is not None else "",
            f"{line.value_loss:.3f}" if line.value_loss is not None else "",
            f"{line.replay_ratio:.2f}",
        ]
    ).rstrip()
