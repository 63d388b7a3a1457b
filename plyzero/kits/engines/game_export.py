"""A game as a PGN or SGF file: its main line with variations and comments.

Portable Game Notation, 1994, and Smart Game Format, FF[4]. For both, `variations` are other lines, as names of moves
and rolls from the beginning, and `comments` are texts by the names of the moves and rolls before a position, separated
by blanks. Variations that only go on after the last move are left out, since a reader would take them for the game.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.engines.pgn_games import RESULTS
from plyzero.kits.engines.sgf_games import COLOURS, SgfNames, sgf_names
from plyzero.play.session import SIDES
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, parse_move
from plyzero.rules.game import Game
from plyzero.rules.notation import play_named

ROSTER: Final = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
"""The tags that every game has, and what stands for one that is not known; the tag Result follows."""

WRITTEN: Final = {winner: text for text, winner in RESULTS.items() if text != "1/2"}
"""Winner -> result in PGN."""

WIDTH: Final = 79
"""Longest line of the file, in characters."""

Line = tuple[str, ...]
"""Names of moves and rolls from the beginning."""


def write_pgn(
    record: GameRecord,
    game: GameSpec,
    tags: Mapping[str, str],
    *,
    variations: Sequence[Sequence[str]] = (),
    comments: Mapping[str, str] | None = None,
) -> str:
    """Return a game as PGN. `pgn_games` reads its main line back.

    game: the game with its usual beginning; the tags Variant, SetUp and FEN follow from it.
    tags: further ones, such as White.

    Raises ValueError for a variation that is not legal, and for a game without FEN that begins at another position.
    """
    result = WRITTEN[record.winner]
    found = {**ROSTER, **tags, "Result": result, **_beginning_of(record, game)}
    ordered = {name: found[name] for name in (*ROSTER, "Result")} | found
    head = "".join(f'[{name} "{_escaped(value)}"]\n' for name, value in ordered.items())
    texts = comments or {}
    lines = _lines(record, variations)
    words = [*_comment(texts, ()), *_tree(record.positions[0], lines, texts, 0, _first_number(record)), result]
    text = textwrap.fill(" ".join(words), WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{head}\n{text}\n"


def write_sgf(
    record: GameRecord,
    game: GameSpec,
    *,
    variations: Sequence[Sequence[str]] = (),
    comments: Mapping[str, str] | None = None,
    by_time: bool = False,
) -> str:
    """Return a game as SGF. `sgf_games` reads its main line back.

    game:    the game with its usual beginning.
    by_time: whether the player who has resigned has run out of time.

    Raises ValueError for a variation that is not legal, for a game without names for its moves in SGF files, and for
    one that begins at another position.
    """
    names = sgf_names(game)
    if names is None:
        raise ValueError(f"{game.name} has no names for its moves in SGF files")
    if record.positions[0].key() != game.start.key():
        raise ValueError("SGF files begin at the initial position; Save keeps a game that was set up")
    lines = _lines(record, variations)
    for line in lines:
        play_named(game.start, line)
    root = {"FF": "4", "CA": "UTF-8", "AP": "plyzero", "GM": str(names.number), "SZ": names.size}
    if names.komi is not None:
        root["KM"] = f"{names.komi:g}"
    if record.winner is not None:
        root["RE"] = _sgf_result(record, by_time)
    texts = comments or {}
    properties = "".join(f"{key}[{value}]" for key, value in root.items())
    return f"(;{properties}{_sgf_comment(texts, ())}\n{_sgf_tree(lines, names, texts, 0)})\n"


def _lines(record: GameRecord, variations: Sequence[Sequence[str]]) -> list[Line]:
    """Return the main line, and the variations that do not only go on after its last move."""
    pairs = zip(record.positions, record.moves, strict=False)
    main = tuple(move_name(position, move) for position, move in pairs)
    return [main, *(tuple(line) for line in variations if tuple(line[: len(main)]) != main)]


def _sgf_result(record: GameRecord, by_time: bool) -> str:
    """Return the property RE of a game that is over."""
    if record.winner == "draw":
        return "0"
    outcome = record.positions[-1].outcome()
    how = ""
    if record.resigned is not None:
        how = "T" if by_time else "R"
    elif outcome is not None and outcome.score is not None:
        how = f"{outcome.score:g}"
    return f"{COLOURS[SIDES.index(record.winner or '')]}+{how}"


def _sgf_tree(lines: Sequence[Line], names: SgfNames, comments: Mapping[str, str], at: int) -> str:
    """Return the nodes of lines that have the first `at` moves in common. The first of them is the main line."""
    nodes = ""
    while lines := [line for line in lines if len(line) > at]:
        moves = dict.fromkeys(line[at] for line in lines)
        if len(moves) > 1:
            branches = ([line for line in lines if line[at] == move] for move in moves)
            return nodes + "\n".join(f"({_sgf_tree(branch, names, comments, at)})" for branch in branches)
        move = lines[0][at]
        nodes += f";{COLOURS[at % 2]}[{names.written.get(move, move)}]{_sgf_comment(comments, lines[0][: at + 1])}"
        at += 1
    return nodes


def _sgf_comment(comments: Mapping[str, str], before: Line) -> str:
    text = comments.get(" ".join(before), "")
    escaped = re.sub(r"[\]\\]", r"\\\g<0>", text)
    return f"C[{escaped}]" if text else ""


def _beginning_of(record: GameRecord, game: GameSpec) -> dict[str, str]:
    """Return the tags that say which game it is and where it begins, if that is not the usual one."""
    first = next(each for each in record.positions if not each.awaits_setup)
    variant = game.start.uci_variant or ""
    tags = {"Variant": variant.capitalize()} if variant not in ("", "chess") else {}
    if not game.start.awaits_setup and first.key() == game.start.key():
        return tags
    if not first.fen():
        raise ValueError(f"{game.name} has no FEN, so PGN cannot say where a game that was set up begins")
    return {**tags, "SetUp": "1", "FEN": first.fen()}


def _first_number(record: GameRecord) -> int:
    """Return the number of the first move, as FEN has it."""
    first = next(each for each in record.positions if not is_chance(each))
    number = first.fen().rpartition(" ")[2]
    return int(number) if number.isdecimal() else 1


def _escaped(value: str) -> str:
    return " ".join(value.split()).replace("\\", "\\\\").replace('"', '\\"')


def _tree(position: Game, lines: Sequence[Line], comments: Mapping[str, str], at: int, number: int) -> Iterator[str]:
    """Yield the words of lines that have the first `at` moves in common, which lead to `position` and to move `number`.

    The first one is the main line, and the others are variations in parentheses behind the move that they replace.
    """
    is_new = True  # whether a number has to say that Black moves
    while lines := [line for line in lines if len(line) > at]:
        main = lines[0]
        others = [] if position.awaits_setup else dict.fromkeys(line[at] for line in lines if line[at] != main[at])
        words = [*_comment(comments, main[: at + 1])]
        for other in others:
            variation = [*_tree(position, [line for line in lines if line[at] == other], comments, at, number)]
            variation[0] = f"({variation[0]}"
            variation[-1] += ")"
            words += variation
        yield from _move(position, main[at], number, is_new)
        yield from words
        is_new = len(words) > 0
        if position.to_play == 1 and not is_chance(position):
            number += 1
        position = position.play_unchecked(parse_move(position, main[at]))
        lines = [line for line in lines if line[at] == main[at]]
        at += 1


def _move(position: Game, name: str, number: int, is_new: bool) -> Iterator[str]:
    """Yield a move, after its number if White makes it or if it `is_new`; a roll by its name; nothing for a set-up."""
    if position.awaits_setup:
        return
    if is_chance(position):
        yield name
        return
    if position.to_play == 0:
        yield f"{number}."
    elif is_new:
        yield f"{number}..."
    yield position.san(parse_move(position, name))


def _comment(comments: Mapping[str, str], before: Line) -> Iterator[str]:
    """Yield the comment on the position after these moves, if there is one."""
    text = " ".join(comments.get(" ".join(before), "").split())
    if text:
        yield f"{{{text.replace('}', ')')}}}"
