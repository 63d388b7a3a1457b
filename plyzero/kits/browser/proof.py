"""The proof that a page plays as Python does: its rules and its texts are compared on random positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import FailedError, shown
from plyzero.kits.browser.byte_tables import Table, Texts
from plyzero.kits.browser.game_texts import (
    MAX_UNKNOWN,
    GameTexts,
    Report,
    names_of,
    parts_of,
    rolls_of,
    scoreboard_of,
    varied_games,
)
from plyzero.kits.browser.module_rules import ModuleRules
from plyzero.rules.board import Board
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING, board_of
from plyzero.rules.notation import action_names
from plyzero.rules.random_game import PlayedGame

SEED: Final = 2
"""The seed of the games, which are others than those that tables are made from."""


class Difference(NamedTuple):
    """A difference from Python in a position, as a clause, and whether the page only does not know a text there."""

    text: str
    is_unknown: bool = False


class Proof(NamedTuple):
    """The result of a comparison without a difference.

    positions, games: numbers of those that were compared.
    unknown:          positions in which the page does not know a part of the board or of the scoreboard.
    """

    positions: int
    games: int
    unknown: int


def prove(
    game: GameSpec,
    module: bytes,
    texts: GameTexts,
    *,
    positions: int,
    report: Report = lambda text: None,
) -> Proof:
    """Compare a module and tables with the rules and texts of a game, in so many positions of random games or more.

    Raises FailedError at the first difference, with the moves that lead to it; and if the page does not know a part of
    the board or of the scoreboard in a larger share of positions than MAX_UNKNOWN.
    """
    start = game.start
    assert isinstance(start, CompiledGame)
    compared, games = 0, 0
    unknown: list[str] = []
    rules = ModuleRules(start, module)
    for played in varied_games(start, SEED):
        for ply, position in enumerate(played.positions):
            if position.awaits_setup:
                continue
            found = list(differences(played, ply, rules, texts))
            for difference in found:
                if not difference.is_unknown:
                    raise FailedError(f"{game.name} cannot be shared: {_after(played, ply)} {difference.text}")
            if found:
                unknown.append(f"{_after(played, ply)} {found[0].text}")
            if len(unknown) > MAX_UNKNOWN * positions:
                raise FailedError(f"{game.name} cannot be shared: {unknown[0]}; as in {len(unknown)} positions")
            compared += 1
        games += 1
        report(f"{compared} of {positions} positions compared")
        if compared >= positions:
            return Proof(compared, games, len(unknown))
    raise AssertionError("random games have no end")


def differences(played: PlayedGame, ply: int, rules: ModuleRules, texts: GameTexts) -> Iterator[Difference]:
    """Yield what differs from Python in a position of a game."""
    position: Any = played.positions[ply]
    try:
        rules.set_state(position.state)
        yield from map(Difference, _differing_rules(position, rules))
        if ply < len(played.moves):
            rules.set_state(position.state)
            rules.play(played.moves[ply])
            after: Any = played.positions[ply + 1]
            yield from map(Difference, _differing_state(position, rules.state(), after.state, played.moves[ply]))
    except FailedError as error:
        yield Difference(str(error))
    board = board_of(position)
    yield from map(Difference, _differing_names(position, board, texts))
    yield from _differing_pictures(position, board, texts)


def _differing_rules(position: CompiledGame, rules: ModuleRules) -> Iterator[str]:
    outcome = int(position.rules.outcome(position.state))
    if (found := rules.outcome()) != outcome:
        yield f"the outcome is {found} in WebAssembly, expected {outcome}"
    if outcome != ONGOING:
        if position.max_score and (score := rules.score()) != position.rules.score(position.state):
            yield f"the score is {score:g} in WebAssembly, expected {position.rules.score(position.state):g}"
        return
    if position.num_chances:
        chances = np.zeros(position.num_chances, np.float32)
        position.rules.chances(position.state, chances)
        rolled = rules.chances()
        for at in np.flatnonzero(rolled != chances)[:1].tolist():
            yield f"the probability of roll {at} is {rolled[at]:g} in WebAssembly, expected {chances[at]:g}"
    if is_chance(position):
        return
    legal = np.zeros(position.num_actions, np.bool_)
    position.rules.legal(position.state, legal)
    for action in np.flatnonzero(rules.legal() != legal).tolist():
        is_legal = "is illegal in WebAssembly, but legal" if legal[action] else "is legal in WebAssembly, but illegal"
        yield f"action {action} {is_legal} in Python"
    planes = position.observe()
    seen = rules.observe()
    for place in map(tuple, np.argwhere(seen != planes)[:1].tolist()):
        yield f"the observation at {place} is {seen[place]:g} in WebAssembly, expected {planes[place]:g}"


def _differing_state(
    position: CompiledGame, found: NDArray[np.uint8], expected: NDArray[np.uint8], move: int
) -> Iterator[str]:
    for at in np.flatnonzero(found != expected).tolist():
        field = _field_at(position.State, at)
        yield f"move {move} leads to the byte {found[at]} at {at}, in {field}, in WebAssembly, expected {expected[at]}"


def _field_at(record: np.dtype[np.void], at: int) -> str:
    """Return the name of the field to which a byte belongs; "no field" for one between fields."""
    for name, (field, offset, *_) in (record.fields or {}).items():
        if offset <= at < offset + field.itemsize:
            return name
    return "no field"


def _differing_names(position: CompiledGame, board: Board | None, texts: GameTexts) -> Iterator[str]:
    names = names_of(position)
    for what, table, expected in ("action", texts.names, names), ("roll", texts.rolls, rolls_of(position)):
        for item, text, found in _other_texts(position, table, expected):
            known = "unknown" if found is None else shown(found)
            yield f"the name of {what} {item} is {known} on the page, expected {shown(text)}"
    known_paths = texts.path_of
    for name in names:
        if board and name is not None and name in known_paths and known_paths[name] != board.path(name):
            clicks = " ".join(known_paths[name])
            yield f"the move {name} is made by clicks on {clicks} on the page, expected {' '.join(board.path(name))}"


def _differing_pictures(position: CompiledGame, board: Board | None, texts: GameTexts) -> Iterator[Difference]:
    pictures = [("the board", texts.board, parts_of(board))]
    if texts.scoreboard:
        pictures.append(("the scoreboard", texts.scoreboard, scoreboard_of(position)))
    for what, table, expected in pictures:
        if len(expected) != len(table.items):
            yield Difference(f"{what} has {len(expected)} parts, expected {len(table.items)}")
            continue
        for item, text, found in _other_texts(position, table, expected):
            known = "unknown" if found is None else _unlike(found, text)
            wanted = _unlike(text, found or "")
            yield Difference(f"part {item} of {what} is {known} on the page, expected {wanted}", found is None)


def _other_texts(position: CompiledGame, table: Table, expected: Texts) -> Iterator[tuple[int, str, str | None]]:
    """Yield each item whose text is another one in the table, with the expected text and that of the table."""
    for item, text in enumerate(expected):
        if text is not None and (found := table.text(item, position.state)) != text:
            yield item, text, found


def _unlike(text: str, other: str) -> str:
    """Return the part of a text from shortly before it differs from another one."""
    same = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    return shown(text[max(0, same - 20) : same + 40])


def _after(played: PlayedGame, ply: int) -> str:
    """Return where a position is, as the beginning of a sentence: with all moves that lead there."""
    names = action_names(played.positions[0], tuple(played.moves[:ply]))
    return f"after {' '.join(names)}" if names else "at the start"
