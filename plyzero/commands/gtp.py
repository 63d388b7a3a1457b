"""gtp: an engine for controllers and boards that speak the Go Text Protocol."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from plyzero.commands.common import GameArgument, data_output, find_game
from plyzero.commands.play import Net, RunToPlay, Simulations, find_bot
from plyzero.errors import UserError, shown
from plyzero.lines import ArrivingLines, bounded_lines

COORDINATES = ("names", "points")
"""The values of --coordinates."""


def gtp(
    game: GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    player: Annotated[
        str | None, typer.Option(metavar="NAME", help="Any player that plyzero match knows, such as mcts:1000.")
    ] = None,
    simulations: Simulations = None,
    coordinates: Annotated[
        str, typer.Option(help="How moves are said: names, as the game says them, or points, such as D4.")
    ] = "names",
) -> None:
    """Speak the Go Text Protocol (GTP 2) on standard input and output, for Sabaki, GoGui and other controllers."""
    with data_output() as output:
        import numpy as np

        from plyzero.gtp.engine import Engine, is_quit
        from plyzero.play.players import DEFAULT_SIMULATIONS, Player, find_player

        if coordinates not in COORDINATES:
            raise UserError(f"expected --coordinates {' or '.join(COORDINATES)}, got {shown(coordinates)}")
        if player is not None and (run, net) != (None, None):
            raise UserError("expected one of --run, --net and --player, got several")
        spec, rng = find_game(game), np.random.default_rng()
        chosen: Player = (
            find_bot(spec, run, net, "newest", simulations)
            if player is None
            else find_player(player, spec, rng, simulations=DEFAULT_SIMULATIONS if simulations is None else simulations)
        )

        def write(text: str) -> None:
            output.write(text)
            output.flush()

        text = (line.decode(errors="replace") for line in bounded_lines(sys.stdin))
        lines = ArrivingLines(text, is_last=is_quit)
        engine = Engine(spec, chosen, points=coordinates == "points", write=write, has_input=lines.wait)
        for line in lines:
            write(engine.answer(line))
