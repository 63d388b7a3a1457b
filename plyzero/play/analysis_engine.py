"""The analysis engine: reads positions and writes search results, both as JSON lines (`plyzero analyze`)."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TextIO

from plyzero.play.analysis import move_infos, root_info
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, possible_moves
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named

BATCH: Final = 1024
"""Largest number of positions that are searched together."""


def answer_queries(
    game: GameSpec,
    bot: Bot,
    source: Iterable[str],
    sink: TextIO,
    *,
    on_progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Answer every query in `source` with one JSON line in `sink`, in the same order.

    All queries that have arrived are searched together, so a program may send one at a time or thousands at once. An
    invalid query gets {"id", "error"} as its answer and does not affect the others.

    on_progress: called with a sentence during a search, and with "" after it.
    """
    answered = 0
    for lines in batches(source):
        queries = [parse_query(game, line) for line in lines]
        positions = [position for _, position in queries if isinstance(position, Game)]
        on_progress(f"{answered} lines answered, searching {len(positions)} positions" if positions else "")
        results = iter(bot.search(positions) if positions else [])
        on_progress("")
        answered += len(lines)
        for id_, position in queries:
            if isinstance(position, str):
                answer: dict[str, Any] = {"id": id_, "error": position}
            else:
                result = next(results)
                answer = {
                    "id": id_,
                    "moveInfos": move_infos(position, result),
                    "rootInfo": root_info(position, result),
                }
            sink.write(json.dumps(answer) + "\n")
        sink.flush()


def parse_query(game: GameSpec, line: str) -> tuple[Any, Game | str]:
    """Return the id of a query, None if it has none, and its position or, if it is invalid, an error message."""
    try:
        query = json.loads(line, parse_constant=_refuse_constant)
    except ValueError as error:
        return None, f"expected a JSON object: {error}"
    if not isinstance(query, dict):
        return None, f"expected a JSON object, got {line.strip()[:80]}"
    id_ = query.get("id")
    if unknown := query.keys() - {"id", "moves"}:
        fields = "field" if len(unknown) == 1 else "fields"
        return id_, f"unknown {fields} {', '.join(sorted(unknown))}; expected id and moves"
    moves = query.get("moves")
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        example = move_name(game.start, possible_moves(game.start)[0])
        return id_, f'expected moves as a list of names, such as "moves": ["{example}"]'
    try:
        position = play_named(game.start, moves)[0][-1]
    except ValueError as error:
        return id_, str(error)
    if position.outcome() is not None:
        return id_, "the game is over after these moves; there is nothing to analyze"
    if is_chance(position):
        rolls = " ".join(move_name(position, roll) for roll in possible_moves(position))
        return id_, f"chance moves after these moves; add a roll to them, one of {rolls}"
    return id_, position


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")  # Python's parser accepts NaN and Infinity


def batches(source: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of `source` that are not blank, in lists of those that have arrived, at most BATCH in a list."""
    lines: queue.Queue[str | None] = queue.Queue(maxsize=4 * BATCH)

    def read() -> None:
        for line in source:
            if line.strip():
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        batch = [lines.get()]
        while batch[-1] is not None and len(batch) < BATCH:
            try:
                batch.append(lines.get(timeout=0.01))
            except queue.Empty:
                break
        ended = batch[-1] is None
        yield [line for line in batch if line is not None]
