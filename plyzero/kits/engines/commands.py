"""gtp, uci, text, analyze: other programs play by GTP, UCI or lines of text, and ask by JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from plyzero.commands import common
from plyzero.commands.play import (
    Model,
    Net,
    RunToPlay,
    SearchOptions,
    Simulations,
    Thinking,
    Unmeasured,
    check_source,
    find_bot,
)
from plyzero.errors import UserError
from plyzero.lines import ArrivingLines, bounded_lines

if TYPE_CHECKING:
    from plyzero.play.player import Player
    from plyzero.rules.catalog import GameSpec


class Played(NamedTuple):
    """The options for the player of an engine, and for the position at which its games begin."""

    run: RunToPlay
    net: Net
    player: Annotated[
        str | None, typer.Option(metavar="NAME", help="Any player that plyzero match knows, such as mcts:1000.")
    ]
    simulations: Simulations
    start: common.Start

    def find(self, game: str, thinking: Thinking) -> tuple[GameSpec, Player, int | None]:
        """Return the game, the player that is named, and its largest number of simulations under a clock."""
        import numpy as np

        from plyzero.play.players import Bot, find_player
        from plyzero.play.strength import introduction

        if self.player is not None and (self.run is not None or self.net is not None):
            raise UserError("expected one of --run, --net and --player, got several")
        spec = common.find_game(game, self.start)
        limits = thinking.limits(self.simulations)
        chosen: Player
        if self.player is None:
            chosen = find_bot(spec, self.run, self.net, "newest", limits)
        else:
            chosen = find_player(self.player, spec, np.random.default_rng(), **limits)
        if isinstance(chosen, Bot):
            about = introduction(spec, chosen.strength().text)
            print(f"plyzero: {spec.name} is played by {chosen.name}. {about}", file=sys.stderr, flush=True)
        most = self.simulations if self.player is None else getattr(chosen, "simulations", None)
        return spec, chosen, most


@common.in_panel("Play")
@common.with_groups
def gtp(
    game: common.GameArgument,
    *,
    played: Played,
    coordinates: Annotated[
        Literal["names", "points"],
        typer.Option(help="Form of moves: names, as the game prints them, or points, such as D4."),
    ] = "names",
    thinking: Thinking,
    resign: Annotated[
        float, typer.Option(min=0, max=1, metavar="X", help="A bot resigns when it expects to score less, from 0 to 1.")
    ] = 0.0,
) -> None:
    """Speak the Go Text Protocol (GTP 2) on standard input and output, for Sabaki, GoGui and other controllers."""
    with common.data_output() as output:
        from plyzero.kits.engines.engine import Engine, is_quit

        spec, chosen, most = played.find(game, thinking)
        write = _writer(output)
        lines = _arriving_lines(is_quit)
        points = coordinates == "points"
        engine = Engine(spec, chosen, points=points, write=write, has_input=lines.wait, most=most, resign_below=resign)
        for line in lines:
            write(engine.answer(line))


@common.in_panel("Play")
@common.with_groups
def uci(
    game: common.GameArgument,
    *,
    played: Played,
    thinking: Thinking,
) -> None:
    """Speak the Universal Chess Interface (UCI) on standard input and output, for chess-like controllers."""
    with common.data_output() as output:
        from plyzero.kits.engines.uci import Engine

        spec, chosen, most = played.find(game, thinking)
        write = _writer(output)
        lines = _arriving_lines(lambda line: line.split() == ["quit"])
        Engine(spec, chosen, lines, lambda line: write(f"{line}\n"), most=most).run()


@common.in_panel("Play")
@common.with_groups
def text(
    game: common.GameArgument,
    *,
    played: Played,
    thinking: Thinking,
) -> None:
    """Read moves, one in a line, and print one after each line go; new begins a new game."""
    with common.data_output() as output:
        from plyzero.kits.engines.text_engine import play_by_lines

        spec, chosen, _ = played.find(game, thinking)
        write = _writer(output)
        play_by_lines(spec, chosen, _lines_of_input(), lambda line: write(f"{line}\n"))


def _writer(output: IO[str]) -> Callable[[str], None]:
    def write(text: str) -> None:
        output.write(text)
        output.flush()

    return write


def _lines_of_input() -> Iterator[str]:
    return (line.decode(errors="replace") for line in bounded_lines(sys.stdin))


def _arriving_lines(is_last: Callable[[str], bool]) -> ArrivingLines[str]:
    return ArrivingLines(_lines_of_input(), is_last=is_last)


@common.in_panel("Play")
def analyze(
    game: common.GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    simulations: Simulations = None,
    options: SearchOptions = None,
    unmeasured: Unmeasured = False,
    start: common.Start = None,
) -> None:
    """Analyze positions: one JSON line in, such as {"id": 1, "moves": ["4", "4"]}, one JSON line out, in order.

    The judge is the network of --run or --net if it is measured to beat mcts:100, else the bundled bot, else pure MCTS.
    """
    from plyzero.kits.engines.analysis import answer_queries
    from plyzero.play.judge import find_judge
    from plyzero.run.configuration import change_search, parse_search_options

    def note(text: str) -> None:
        print(f"plyzero: {text}", file=sys.stderr)

    spec = common.find_game(game, start)
    changes = parse_search_options(options or ())
    limits = Thinking(None, None, None).limits(simulations, uses_cores=False)
    check_source(run, net, model)
    with common.playing(spec) as output, common.show_progress("") as report:
        judge = find_judge(spec, run=run, net=net, model=model, unmeasured=unmeasured, **limits)
        judge.bot.settings = change_search(judge.bot.settings, changes)
        answer_queries(spec, judge, bounded_lines(sys.stdin), output, on_progress=report, on_note=note)
