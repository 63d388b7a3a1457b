"""Analysis: an engine that answers JSON lines with search results, both with the field names of KataGo's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TextIO

from plyzero.errors import plain, shown
from plyzero.lines import ArrivingLines, Line, parse_object
from plyzero.play.found_moves import move_infos, root_info
from plyzero.play.judge import Judge
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import expected_rolls, is_chance, move_name, possible_moves
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named

BATCH: Final = 1024
"""Largest number of positions that are searched together."""

COLOURS: Final = {"b": 0, "black": 0, "w": 1, "white": 1}
"""Names of the players, as in KataGo and GTP."""


def answer_queries(
    game: GameSpec,
    judge: Judge,
    source: Iterable[Line],
    sink: TextIO,
    *,
    on_progress: Callable[[str], None] = lambda text: None,
    on_note: Callable[[str], None] = lambda text: None,
) -> None:
    """Answer every query in `source` with one JSON line in `sink`, in the same order.

    All queries that have arrived are searched together, so a program may send one at a time or thousands at once. An
    invalid query gets {"id", "error"} as its answer and does not affect the others.

    on_progress: called with a sentence during a search, and with "" after it.
    on_note:     called with a sentence about fields that are ignored, when they occur for the first time.
    """
    answered, ignored = 0, set[str]()
    for lines in batches(source):
        queries = [parse_query(game, line, judge.bot.simulations) for line in lines]
        positions = [query.position for query in queries if isinstance(query.position, Game)]
        on_progress(f"{answered} lines answered, searching {len(positions)} positions" if positions else "")
        results = iter(judge.bot.search(positions) if positions else [])
        on_progress("")
        answered += len(lines)
        for id_, position, _ in queries:
            if isinstance(position, str):
                answer: dict[str, object] = {"id": id_, "error": position}
            else:
                result = next(results)
                answer = {
                    "id": id_,
                    "moveInfos": move_infos(position, result),
                    "rootInfo": root_info(position, result),
                    "judge": judge.about,
                }
            sink.write(json.dumps(answer) + "\n")
        sink.flush()
        if new := {field for query in queries for field in query.ignored} - ignored:
            ignored |= new
            on_note(f"these fields change nothing and are ignored: {', '.join(sorted(new))}")


class Query(NamedTuple):
    """A line of input.

    id:       None if it has none.
    position: an error message if it is invalid.
    ignored:  the fields that change nothing.
    """

    id: object
    position: Game | str
    ignored: list[str]


def parse_query(game: GameSpec, line: str | bytes, simulations: int) -> Query:
    """Return what is asked in a line; `simulations` is the number of every search."""
    try:
        query = parse_object(line)
    except ValueError as error:
        return Query(None, plain(str(error), 300), [])
    try:
        names, colours = _moves(game, query.get("moves"))
        ignored = _ignored(game, query, [len(names)], simulations)
        positions = play_named(game.start, names)[0]
        _check_colours(positions, colours)
    except ValueError as error:
        return Query(query.get("id"), plain(str(error)), [])
    return Query(query.get("id"), _check(positions[-1]), ignored)


def _check(position: Game) -> Game | str:
    """Return a position if it can be searched, else an error message."""
    if position.outcome() is not None:
        return "the game is over after these moves; there is nothing to analyze"
    if is_chance(position):
        return f"chance moves after these moves; add to them {expected_rolls(position)}"
    return position


def _moves(game: GameSpec, moves: Any) -> tuple[list[str], list[str]]:
    """Return the names of moves and, for pairs as in KataGo, who plays them. Raises ValueError."""
    pairs = moves if isinstance(moves, list) and all(isinstance(each, list) for each in moves) else None
    found = [*zip(*pairs, strict=True)] if pairs and {len(pair) for pair in pairs} == {2} else [(), moves]
    colours, names = found
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in (*names, *colours)):
        example = move_name(game.start, possible_moves(game.start)[0])
        raise ValueError(f'expected moves as a list of names, such as "moves": ["{example}"]')
    return [*names], [*colours]


def _check_colours(positions: Sequence[Game], colours: Sequence[str]) -> None:
    for number, (position, colour) in enumerate(zip(positions, colours, strict=False), 1):
        if not is_chance(position) and COLOURS.get(colour.lower()) != position.to_play:
            mover = "BW"[position.to_play]
            raise ValueError(f"move {number}: it is the turn of {mover}, the players are B and W, got {shown(colour)}")


def _ignored(game: GameSpec, query: dict[str, object], turns: list[int], simulations: int) -> list[str]:
    """Return which fields of KataGo's analysis engine are in a query, and change nothing.

    Raises ValueError for one that would change the answer, and for unknown fields.
    """
    rows, columns = game.start.observation_shape[1:]
    komi = game.parameter("komi")
    same: dict[str, Sequence[object]] = {  # field -> the values with which it changes nothing; () = all
        **dict.fromkeys(("priority", "priorities", "reportDuringSearchEvery"), ()),
        **dict.fromkeys(("initialStones", "avoidMoves", "allowMoves"), ([],)),
        **dict.fromkeys((field for field in query if field.startswith("include")), (False,)),
        "overrideSettings": ({},),
        "analyzeTurns": (turns,),
        "maxVisits": (simulations,),
        "boardXSize": (columns,),
        "boardYSize": (rows,),
        "initialPlayer": ("BW"[game.start.to_play],),
        "komi": () if komi is None else (komi,),
        # Area scoring and positional superko, as here; the first also allows the suicide of several stones.
        "rules": () if komi is None else ("tromp-taylor", "chinese-ogs", "chinese-kgs"),
    }
    fields = sorted(query.keys() - {"id", "moves"})
    if unknown := [field for field in fields if field not in same]:
        text = f"unknown field{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}; expected id and moves"
        raise ValueError(plain(text, 300))
    for field in fields:
        if same[field] and query[field] not in same[field]:
            raise ValueError(
                f"{field} {shown(query[field])} would change the answer, and here it is {shown(same[field][0])}: leave "
                "it out, or start plyzero analyze with another game or --simulations"
            )
    return fields


def batches(source: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines of `source` that are not blank, in lists of those that have arrived, at most BATCH in a list."""
    lines = ArrivingLines(line for line in source if line.strip())
    for first in lines:
        batch = [first]
        while len(batch) < BATCH and lines.wait_for_line(0.01):
            batch.append(next(lines))
        yield batch
