"""A game that a GTP controller plays word by word, with undo of each word, and with passes after the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.kits.engines.points import Points, Words, spell
from plyzero.play.session import Session
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, parse_move
from plyzero.rules.game import MAX_NAMES, Game

PASS: Final = "pass"
"""The word that has no effect after the end of a game: some controllers end every game by two passes."""


class State(NamedTuple):
    """A state of a game, to which `undo` goes back. It is never changed.

    session: the game without the move that has been begun.
    begun:   the words so far, in small letters, of a move that needs further words.
    planned: all words of the move that the player has begun.
    entered: number of rolls after the last move that the controller has entered.
    """

    session: Session
    begun: Words = ()
    planned: Words = ()
    entered: int = 0


class SpelledGame:
    """A game whose moves are entered word by word. A failure raises UserError and changes nothing."""

    def __init__(self, game: GameSpec, points: Points | None, rng: np.random.Generator) -> None:
        """Begin a game, and roll if it begins with a roll.

        points: spell moves by points, otherwise by the names of the actions.
        rng:    rolls the dice.
        """
        self._points = points
        self._states = [State(Session(game, 0, rng=rng))]

    @property
    def state(self) -> State:
        """The current state."""
        return self._states[-1]

    @property
    def position(self) -> Game:
        """The current position, in which no roll is due."""
        return self.state.session.position

    def spelled(self, action: int) -> Words:
        """Return the words of a legal action."""
        return spell(self.position, self._points)[action]

    def next_words(self) -> list[str]:
        """Return the words that can follow, each once; none after the end of the game."""
        size = len(self.state.begun)
        return list(dict.fromkeys(words[size] for words in self._ways().values()))

    def enter(self, word: str, *, planned: Words = ()) -> None:
        """Play the action that a word names or completes, or begin one.

        planned: all words of the action, if a player has chosen it.
        """
        session = self.state.session
        begun = (*self.state.begun, word.lower())
        if self.position.outcome() is not None:
            if word.lower() != PASS:
                raise UserError(f"illegal move: the game is over, so only pass is accepted, got {shown(word)}")
            self._states.append(State(session))
            return
        ways = {action: _lower(words) for action, words in self._ways().items()}
        action = next((action for action, words in ways.items() if words[: len(begun)] == begun), None)
        if action is None:
            raise UserError(f"illegal move: expected one of {self._listed()}, got {shown(word)}")
        if ways[action] != begun:
            self._states.append(State(session, begun, planned))
            return
        after = replace(session, positions=list(session.positions), moves=list(session.moves))
        after.play(action)
        self._states.append(State(after))

    def enter_roll(self, name: str) -> None:
        """Replace the first roll after the last move that has not been entered, and roll again after it."""
        session, entered = self.state.session, self.state.entered
        rolls = len(session.last_rolls)
        if self.state.begun or entered == rolls:
            raise UserError(f"illegal move: {entered} of {rolls} rolls after the last move have been said")
        at = len(session.moves) - rolls + entered
        try:
            roll = parse_move(session.positions[at], name)
        except ValueError as error:
            raise UserError(f"illegal move: {error}") from error
        positions = [*session.positions[: at + 1], session.positions[at].play_unchecked(roll)]
        after = replace(session, positions=positions, moves=[*session.moves[:at], roll])
        self._states[-1] = State(after, entered=entered + 1)

    def undo(self) -> None:
        """Take back the last word, with the rolls after it."""
        if len(self._states) == 1:
            raise UserError("cannot undo: nothing has been played")
        self._states.pop()

    def _ways(self) -> dict[int, Words]:
        """Return the words of each legal action whose first words are those of the move that has been begun."""
        if self.position.outcome() is not None or is_chance(self.position):
            return {}
        begun = self.state.begun
        spelled = spell(self.position, self._points).items()
        return {action: words for action, words in spelled if _lower(words)[: len(begun)] == begun}

    def _listed(self) -> str:
        words = self.next_words()
        listed = " ".join(words[:MAX_NAMES])
        if len(words) > MAX_NAMES:
            listed += f" ... ({len(words)} in all)"
        return listed


def _lower(words: Words) -> Words:
    return tuple(word.lower() for word in words)
