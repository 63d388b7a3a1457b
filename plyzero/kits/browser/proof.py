"""The proof that a page plays as Python does: its rules and its texts are compared on random positions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import FailedError, shown
from plyzero.kits.browser.byte_tables import Table
from plyzero.kits.browser.game_texts import (
    GameTexts,
    Report,
    board_parts,
    names_of,
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

POSITIONS: Final = 10_000
"""Number of positions that are compared."""

SEED: Final = 2
"""The seed of the games, which are others than those that tables are made from."""


class Proof(NamedTuple):
    """The number of positions and of games that were compared, and the seconds that it took."""

    positions: int
    games: int
    seconds: float


def prove(
    game: GameSpec,
    module: bytes,
    texts: GameTexts,
    *,
    positions: int = POSITIONS,
    report: Report = lambda text: None,
) -> Proof:
    """Compare a module and tables with the rules and texts of a game, in so many positions of random games or more.

    Raises FailedError at the first difference, with the moves that lead to it.
    """
    start = game.start
    assert isinstance(start, CompiledGame)
    began, compared, games = time.monotonic(), 0, 0
    rules = ModuleRules(start, module)
    for played in varied_games(start, SEED):
        for ply, position in enumerate(played.positions):
            if position.awaits_setup:
                continue
            for difference in differences(played, ply, rules, texts):
                raise FailedError(f"{game.name} cannot be shared: {_after(played, ply)} {difference}")
            compared += 1
        games += 1
        report(f"{compared} of {positions} positions compared")
        if compared >= positions:
            return Proof(compared, games, time.monotonic() - began)
    raise AssertionError("random games have no end")


def differences(played: PlayedGame, ply: int, rules: ModuleRules, texts: GameTexts) -> Iterator[str]:
    """Yield what differs from Python in a position of a game, as clauses."""
    position: Any = played.positions[ply]
    try:
        rules.set_state(position.state)
        yield from _differing_rules(position, rules)
        if ply < len(played.moves):
            rules.set_state(position.state)
            rules.play(played.moves[ply])
            yield from _differing_state(position, rules.state(), played.positions[ply + 1], played.moves[ply])
    except FailedError as error:
        yield str(error)
    yield from _differing_texts(position, texts)


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
        if not _equal(rules.chances(), chances):
            at = int(np.flatnonzero(rules.chances() != chances)[0])
            yield f"the probability of roll {at} is {rules.chances()[at]:g} in WebAssembly, expected {chances[at]:g}"
    if is_chance(position):
        return
    legal = np.zeros(position.num_actions, np.bool_)
    position.rules.legal(position.state, legal)
    for action in np.flatnonzero(rules.legal() != legal).tolist():
        is_legal = "is illegal in WebAssembly, but legal" if legal[action] else "is legal in WebAssembly, but illegal"
        yield f"action {action} {is_legal} in Python"
    planes = position.observe()
    if not _equal(found := rules.observe(), planes):
        place = tuple(np.argwhere(found != planes)[0].tolist()) if found.shape == planes.shape else ()
        yield f"the observation at {place} is {found[place]} in WebAssembly, expected {planes[place]}"


def _equal(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Return whether two arrays have the same bytes, so that not a number equals itself."""
    return found.tobytes() == expected.tobytes()


def _differing_state(position: CompiledGame, found: NDArray[np.uint8], after: Any, move: int) -> Iterator[str]:
    expected = after.state
    for at in np.flatnonzero(found != expected).tolist():
        field = _field_at(position.State, at)
        yield f"move {move} leads to the byte {found[at]} at {at}, in {field}, in WebAssembly, expected {expected[at]}"


def _field_at(record: np.dtype[np.void], at: int) -> str:
    """Return the name of the field to which a byte belongs; "no field" for one between fields."""
    for name in record.names or ():
        field, offset = (record.fields or {})[name][:2]
        if offset <= at < offset + field.itemsize:
            return name
    return "no field"


def _differing_texts(position: CompiledGame, texts: GameTexts) -> Iterator[str]:
    board = board_of(position)
    names = names_of(position)
    yield from _differing_table(position, texts.names, names, "the name of action")
    yield from _differing_table(position, texts.rolls, rolls_of(position), "the name of roll")
    yield from _differing_table(position, texts.board, board_parts(position), "part of the board")
    if texts.scoreboard:
        yield from _differing_table(position, texts.scoreboard, scoreboard_of(position), "the scoreboard of player")
    if board:
        yield from _differing_paths(board, texts, [name for name in names if name is not None])


def _differing_table(position: CompiledGame, table: Table, expected: Sequence[str | None], what: str) -> Iterator[str]:
    if len(expected) != len(table.items):
        yield f"there are {len(expected)} times {what}, and the page knows {len(table.items)}"
        return
    for item, text in enumerate(expected):
        if text is not None and (found := table.text(item, position.state)) != text:
            known = "unknown on the page" if found is None else f"{shown(found)} on the page"
            yield f"{what} {item} is {known}, expected {shown(text)}"


def _differing_paths(board: Board, texts: GameTexts, names: Sequence[str]) -> Iterator[str]:
    known = dict(zip(texts.names.texts, texts.paths, strict=True))
    for name in names:
        if known.get(name) != board.path(name):
            yield f"the move {name} is made by clicks on {known.get(name)} on the page, expected {board.path(name)}"


def _after(played: PlayedGame, ply: int) -> str:
    """Return where a position is, as the beginning of a sentence: with all moves that lead there."""
    names = action_names(played.positions[0], tuple(played.moves[:ply]))
    return f"after {' '.join(names)}" if names else "at the start"
