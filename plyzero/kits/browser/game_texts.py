"""The texts of a game on a page: names of moves, the cells that are clicked for them, the board and the scoreboard."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError, shown
from plyzero.kits.browser.byte_tables import (
    ENOUGH,
    MAX_BYTES,
    Samples,
    Table,
    Texts,
    UndecidedError,
    made_states,
    missing_states,
    seen_in_byte,
    seen_in_field,
    values_of_bytes,
)
from plyzero.rules.board import Board
from plyzero.rules.board_svg import svg_parts
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import chances_of, is_chance, possible_rolls
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, board_of
from plyzero.rules.random_game import PlayedGame, play_on, random_move
from plyzero.rules.user_errors import with_location

REAL: Final = 2000
"""Number of positions of random games from which tables are made at first."""

MADE: Final = 1000
"""Number of states made of their bytes."""

TRIED: Final = 50
"""Number of made states that are shown, to see whether the game knows such states."""

MAX_TEXTS: Final = 2_000_000
"""Largest number of texts that are asked for in made states."""

OF_A_GAME: Final = 50
"""Number of positions of one game that are taken, about."""

FURTHER: Final = 2000
"""Number of positions on which tables are tried; those that they do not know are added."""

MAX_UNKNOWN: Final = 0.001
"""Largest share of positions in which a page may not know a part of the board or the scoreboard; it then says so."""

HOPELESS: Final = 0.1
"""Share of positions from which on a table that does not know them is given up."""

MORE: Final = 3
"""Number of times that more states are made for an item that few samples know."""

ROUNDS: Final = 4
"""Largest number of times that tables are made anew."""

Report = Callable[[str], None]

TextsOf = Callable[[CompiledGame], Texts]
"""Returns the texts of all items in a position."""


@dataclass(frozen=True)
class GameTexts:
    """The texts of a game, as tables.

    names:      of actions; `rolls` of rolls.
    paths:      for each text of `names` the names of the cells that are clicked, in small letters, () without a cell.
    board:      the parts of its drawing.
    scoreboard: what players 0 and 1 have; None if there is none, or if it is left out.
    notes:      what a page leaves out, as sentences.
    """

    names: Table
    rolls: Table
    paths: list[tuple[str, ...]]
    board: Table
    scoreboard: Table | None
    notes: list[str]

    @cached_property
    def path_of(self) -> dict[str, tuple[str, ...]]:
        """The path of each text of `names`."""
        return {str(text): path for text, path in zip(self.names.texts, self.paths, strict=True)}


def find_texts(game: GameSpec, report: Report = lambda text: None) -> GameTexts:
    """Return the texts of a game. Raises UserError if names or the board do not follow from a few bytes of the state.

    The positions are always the same ones.
    """
    start = game.start
    assert isinstance(start, CompiledGame)
    expect_board(game)
    notes: list[str] = []
    finder = _TextFinder(game, start, report)
    names = finder.table(names_of, start.num_actions, "the names of moves", "action {}".format, made=_every_name)
    rolls = finder.table(rolls_of, start.num_chances, "the names of rolls", "roll {}".format, made=_every_roll)
    first = board_parts(start)
    board = finder.table(board_parts, len(first), "the board", finder.describe_part, has_numbers=True)
    shown_board = board_of(start)
    assert shown_board
    scoreboard = None
    if type(start).scoreboard is not Game.scoreboard:
        try:
            scoreboard = finder.table(scoreboard_of, 2, "the scoreboard", "that of player {}".format, has_numbers=True)
        except UserError:
            notes.append("The scoreboard is left out: it does not follow from a few bytes of the state.")
    if finder.has_marks():
        notes.append("Marks on the board, such as that of a king in check, are left out.")
    if type(start).san is not Game.san:
        notes.append("Moves have their plain names, not those that people write.")
    paths = [shown_board.path(str(text)) for text in names.texts]
    return GameTexts(names, rolls, paths, board, scoreboard, notes)


def expect_board(game: GameSpec) -> None:
    """Raise UserError, with the reason, if a game has no board that can be drawn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        board = board_of(game.start)
    if board is None:
        why = str(caught[0].message) if caught else "it has none; write render()"
        raise UserError(f"{game.name} cannot be shared: a page shows its board, and {why}")


def names_of(position: CompiledGame) -> Texts:
    """Return the name of each action that is legal."""
    found: list[str | None] = [None] * position.num_actions
    for action in position.legal_actions():
        found[action] = position.action_name(action)
    return found


def rolls_of(position: CompiledGame) -> Texts:
    """Return the name of each roll that is possible."""
    found: list[str | None] = [None] * position.num_chances
    if position.num_chances and is_chance(position):
        for roll in possible_rolls(position):
            found[roll] = position.roll_name(roll)
    return found


def board_parts(position: CompiledGame) -> Texts:
    """Return the parts of the drawing of the board, without marks; () if there is no board."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a board that cannot be drawn
        board = board_of(position)
    return parts_of(board)


def parts_of(board: Board | None) -> Texts:
    """Return the parts of the drawing of a board, without marks; () for None."""
    if board is None:
        return ()
    return svg_parts(replace(board, marks=()) if board.marks else board, style=False)


def scoreboard_of(position: CompiledGame) -> Texts:
    """Return what players 0 and 1 have."""
    first, second = position.scoreboard()
    return str(first), str(second)


def _every_name(position: CompiledGame) -> Texts:
    found: list[str | None] = [None] * position.num_actions
    for action in range(position.num_actions):
        with suppress(Exception):  # a game need not name actions that are illegal
            found[action] = position.action_name(action)
    return found


def _every_roll(position: CompiledGame) -> Texts:
    return [position.roll_name(roll) for roll in range(position.num_chances)]


def varied_games(start: Game, seed: int) -> Iterator[PlayedGame]:
    """Yield random games without end, always the same ones. In every other one some actions are preferred at random.

    So positions come up that uniformly random moves seldom lead to.
    """
    number = 0
    while True:
        rng = np.random.default_rng((seed, number))
        preferences = rng.exponential(size=start.num_actions) ** 3 if number % 2 else None
        yield _varied_game(start, rng, preferences)
        number += 1


def _varied_game(start: Game, rng: np.random.Generator, preferences: NDArray[np.float64] | None) -> PlayedGame:
    def choose(positions: Sequence[Game]) -> int:
        position = positions[-1]
        if preferences is None or position.awaits_setup or len(chances_of(position)):
            return random_move(position, rng)
        legal = np.asarray(position.legal_actions())
        shares = np.cumsum(preferences[legal])
        return int(legal[min(np.searchsorted(shares, rng.random() * shares[-1]), len(legal) - 1)])

    game = PlayedGame([], [start])
    play_on(game, choose)
    return game


class _TextFinder:
    """Makes tables from positions of random games, tries them on others, and adds those that they do not know."""

    def __init__(self, game: GameSpec, start: CompiledGame, report: Report) -> None:
        self._game, self._start, self._report = game, start, report
        self._rng = np.random.default_rng(0)
        self._games = varied_games(start, seed=1)
        report("positions of random games")
        self._positions = self._further(REAL)
        states = np.array([each.state for each in self._positions])
        for values in (values_of_bytes(states, start.State), seen_in_field(states, start.State), seen_in_byte(states)):
            self._values = values
            self._made = made_states(states, self._values, MADE, self._rng)
            if self._are_mostly_shown(self._made[:TRIED]):
                break

    def table(
        self,
        texts_of: TextsOf,
        items: int,
        what: str,
        describe: Callable[[int], str],
        *,
        made: TextsOf | None = None,
        has_numbers: bool = False,
    ) -> Table:
        """Return the table of `items` texts.

        what:        the texts, in messages.
        describe:    names an item in messages.
        made:        returns the texts in made states, if others are known there.
        has_numbers: whether numbers in the texts may be numbers of the state.
        Raises UserError if nothing decides an item.
        """
        samples = Samples(items, self._start.State if has_numbers else None)
        if not items:
            samples.add(self._start.state, (), is_real=True)
            return samples.table()
        self._report(f"{what} in {len(self._positions)} positions")
        for position in self._positions:
            samples.add(position.state, self._texts(texts_of, position, items, what), is_real=True)
        most = max(1, MAX_TEXTS // items)

        def add_made(states: Iterable[NDArray[np.uint8]]) -> None:
            for state in states:
                with suppress(Exception):  # rules need not know states that no game reaches
                    texts = (made or texts_of)(self._start.with_state(state))
                    if len(texts) == items:
                        samples.add(state, texts, is_real=False)

        add_made(self._made[:most])
        try:
            self._report(f"which bytes of the state decide {what}")
            add_made(
                missing_states(self._decided(samples, add_made, most), samples.states, self._values, most, self._rng)
            )
            for number in range(ROUNDS):
                self._report(f"which bytes of the state decide {what}")
                table = self._decided(samples, add_made, most)
                unknown = 0
                for position in self._further(FURTHER):
                    texts = self._texts(texts_of, position, items, what)
                    for item, text in enumerate(texts):
                        if text is not None and table.text(item, position.state) != text:
                            samples.add(position.state, texts, is_real=True)
                            unknown += 1
                            break
                    if unknown > HOPELESS * FURTHER:
                        raise UndecidedError(item)
                if not unknown:
                    break
                self._report(f"{what} in {unknown} positions more, round {number + 2}")
            return samples.table() if unknown else table
        except UndecidedError as error:
            raise UserError(
                f"{self._game.name} cannot be shared: a page knows {what} from a few bytes of the state, and no "
                f"{MAX_BYTES} of them decide {describe(error.item)}"
            ) from error

    def _decided(self, samples: Samples, add_made: Callable[[Iterable[NDArray[np.uint8]]], None], count: int) -> Table:
        """Return the table of samples. An item that few of them know is given up only when `count` more do not help.

        So it is with castling, which is legal in one position of a hundred, in a game with so many actions that their
        names are asked for in few made states.
        """
        for _ in range(MORE):
            try:
                return samples.table()
            except UndecidedError as error:
                if error.known >= ENOUGH:
                    raise
                real = np.array([each.state for each in self._positions])
                add_made(made_states(real, self._values, count, self._rng))
        return samples.table()

    def _are_mostly_shown(self, states: NDArray[np.uint8]) -> bool:
        """Return whether the board can be drawn in most of these states.

        It cannot where a square has a value between those of two pieces, or that of the border around the board.
        """
        drawn = 0
        for state in states:
            with suppress(Exception):  # rules need not know states that no game reaches
                drawn += bool(board_parts(self._start.with_state(state)))
        return 2 * drawn > len(states)

    def describe_part(self, number: int) -> str:
        """Return a part of the drawing in words."""
        board = board_of(self._start)
        assert board
        if 0 < number <= len(board.cells):
            return f"the cell {number}"
        label = number - len(board.cells) - 1
        return f"the label {board.labels[label].text!r}" if 0 <= label < len(board.labels) else "its frame"

    def has_marks(self) -> bool:
        """Return whether cells are marked in one of the positions."""
        boards = map(board_of, self._positions)
        return any(board is not None and board.marks for board in boards)

    def _further(self, count: int) -> list[CompiledGame]:
        """Return so many positions, or a few more, of random games."""
        found: list[Any] = []
        while len(found) < count:
            positions = next(self._games).positions
            share = min(1.0, OF_A_GAME / len(positions))
            found += [each for each in positions if not each.awaits_setup and self._rng.random() < share]
        return found

    def _texts(self, texts_of: TextsOf, position: CompiledGame, items: int, what: str) -> Texts:
        """Return the texts in a real position. Raises UserError if they cannot be had."""
        try:
            texts = texts_of(position)
        except Exception as error:
            raise UserError(f"{self._game.name} cannot be shared: {what}: {with_location(error)}") from error
        if len(texts) != items:
            raise UserError(
                f"{self._game.name} cannot be shared: {what} of every position must have equally many parts, expected "
                f"{items}, got {len(texts)} in {shown(str(position))}"
            )
        return texts
