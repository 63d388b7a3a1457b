"""Files of recorded games: JSON lines, SGF collections and PGN files. How a file begins decides which it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Final, Protocol

from plyzero.lines import bounded_lines
from plyzero.rules.catalog import GameSpec
from plyzero.run.json_games import FoundGame, json_games

SGF: Final = re.compile(rb"\s*\(")
"""Pattern of the first line of an SGF file."""

PGN: Final = re.compile(rb'\s*(?:\[\s*[A-Za-z]\w*\s*"|[%;]|\d+\s*\.(?!\d))')
"""Pattern of the first line of a PGN file: a tag, an escaped line, a comment, or the number of a move."""


class Reader(Protocol):
    """Yields the games in the lines of a file; the first line has the number `first`."""

    def __call__(self, lines: Iterable[bytes], first: int) -> Iterator[FoundGame]: ...


@contextmanager
def open_lines(file: str) -> Iterator[Iterator[bytes]]:
    """Open a file, or standard input if it is `-`, and yield its lines, as `bounded_lines` reads them."""
    if file == "-":
        yield bounded_lines(sys.stdin)
        return
    with open(file, "rb") as lines:
        yield bounded_lines(lines)


def find_games(lines: Iterable[str | bytes], game: GameSpec) -> Iterator[FoundGame]:
    """Yield every game of a file with games of `game`: JSON lines, an SGF collection, or PGN."""
    encoded = (line.encode() if isinstance(line, str) else line for line in lines)
    for first, line in enumerate(encoded, 1):
        if line.strip():
            yield from reader_of(line, game)(chain([line], encoded), first)


def reader_of(line: bytes, game: GameSpec) -> Reader:
    """Return the reader of a file whose first line that is not blank is `line`."""
    if SGF.match(line):
        from plyzero.kits.engines.sgf_games import sgf_games

        return partial(sgf_games, game=game)
    if PGN.match(line):
        from plyzero.kits.engines.pgn_games import pgn_games

        return partial(pgn_games, game=game)
    return json_games
