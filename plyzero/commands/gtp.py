"""gtp: an engine for controllers and boards that speak the Go Text Protocol."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from typing import Annotated

import typer

from plyzero.commands.common import GameArgument, find_game
from plyzero.commands.play import Net, RunToPlay, Simulations, find_bot
from plyzero.errors import UserError, shown

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
    output = sys.stdout
    with redirect_stdout(sys.stderr):  # what the rules or the player print is no part of the protocol
        import numpy as np

        from plyzero.play.gtp import Engine
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

        lines = Lines(sys.stdin)
        engine = Engine(spec, chosen, points=coordinates == "points", write=write, has_input=lines.wait)
        for line in lines:
            write(engine.answer(line))


class Lines:
    """Lines of input, which a thread reads ahead up to `quit`, so that their arrival can be noticed."""

    def __init__(self, source: Iterable[str]) -> None:
        self._source, self._queue = source, queue.Queue[str | None]()
        self._first: list[str | None] = []  # a line that has arrived and is still to be returned
        threading.Thread(target=self._read, name="input", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds for the next line or the end of the input, and return whether it has come."""
        if not self._first:
            try:
                self._first.append(self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait())
            except queue.Empty:
                return False
        return True

    def __iter__(self) -> Iterator[str]:
        while (line := self._first.pop() if self._first else self._queue.get()) is not None:
            yield line

    def _read(self) -> None:
        from plyzero.play.gtp import is_quit

        for line in self._source:
            self._queue.put(line)
            if is_quit(line):
                break
        self._queue.put(None)
