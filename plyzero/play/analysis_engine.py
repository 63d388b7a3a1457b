"""Answer positions as JSON lines: what `plyzero analyze` does with its input and output."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final, TextIO

from plyzero.play.analysis import move_infos, root_info
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named

BATCH: Final = 1024
"""Positions that are searched together at most."""


def answer_lines(game: GameSpec, bot: Bot, source: Iterable[str], sink: TextIO) -> None:
    """Answer every line of `source` with one line in `sink`, in order.

    What has arrived is searched together, so a program may ask one position at a time or thousands at once. A line
    that cannot be answered gets {"id", "error"} and stands in nobody's way.
    """
    for lines in arrived(source):
        asked = [read_query(game, line) for line in lines]
        positions = [position for _, position in asked if isinstance(position, Game)]
        roots = iter(bot.think(positions) if positions else [])
        for id_, position in asked:
            if isinstance(position, str):
                answer: dict[str, Any] = {"id": id_, "error": position}
            else:
                root = next(roots)
                answer = {"id": id_, "moveInfos": move_infos(position, root), "rootInfo": root_info(position, root)}
            sink.write(json.dumps(answer) + "\n")
        sink.flush()


def read_query(game: GameSpec, line: str) -> tuple[Any, Game | str]:
    """Return the id of a query, None if it has none, with its position, or with what is wrong with it."""
    try:
        query = json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        return None, f"expected a JSON object: {error}"
    if not isinstance(query, dict):
        return None, f"expected a JSON object, got {line.strip()[:80]}"
    id_ = query.get("id")
    if unknown := query.keys() - {"id", "moves"}:
        return id_, f"expected id and moves, got also {', '.join(sorted(unknown))}"
    moves = query.get("moves")
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        return id_, f'expected moves as a list of names, such as "moves": ["{game.start.legal_names().split()[0]}"]'
    try:
        position = play_named(game.start, moves)[0][-1]
    except ValueError as error:
        return id_, str(error)
    if position.outcome() is not None:
        return id_, "the game is over after these moves; there is nothing to analyze"
    return id_, position


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def arrived(source: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of `source`, without blank ones, in lists of what is there, BATCH at most."""
    lines: queue.Queue[str | None] = queue.Queue(maxsize=4 * BATCH)

    def read() -> None:
        for line in source:
            if line.strip():
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        found = [lines.get()]
        while found[-1] is not None and len(found) < BATCH:
            try:
                found.append(lines.get(timeout=0.01))
            except queue.Empty:
                break
        ended = found[-1] is None
        yield [line for line in found if line is not None]
