"""A game between a person and a bot, as far as it needs no screen: undo, resign, record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import play_named

VERSION = 1
"""Of a record; docs/formats.md lists its fields."""

SIDES = ("first", "second")


@dataclass
class Session:
    """One game. person: the side of the person, 0 or 1. moves: actions played so far."""

    game: GameSpec
    person: int
    positions: list[Game] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    resigned: bool = False

    def __post_init__(self) -> None:
        self.positions = self.positions or [self.game.start]

    @property
    def position(self) -> Game:
        """The one on the board."""
        return self.positions[-1]

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, by the rules or because the person gave up; None while it goes on."""
        return Outcome(1 - self.person) if self.resigned else self.position.outcome()

    @property
    def persons_turn(self) -> bool:
        """Whether the person is to move."""
        return self.position.to_play == self.person

    def play(self, action: int) -> None:
        """Play a legal action for whoever is to move."""
        self.positions.append(self.position.play(action))
        self.moves.append(action)

    def undo(self) -> bool:
        """Take back the person's last move and all after it; False if there is none."""
        for ply in range(len(self.moves) - 1, -1, -1):
            if self.positions[ply].to_play == self.person:
                del self.positions[ply + 1 :], self.moves[ply:]
                return True
        return False

    def rematch(self) -> Session:
        """Return a new game with the sides swapped."""
        return Session(self.game, 1 - self.person)

    def record(self, bot: str) -> dict[str, Any]:
        """Return the game as JSON can hold it; `bot` is the other player's name."""
        outcome = self.outcome
        result = None if outcome is None else "draw" if outcome.winner is None else SIDES[outcome.winner]
        return {
            "version": VERSION,
            "game": self.game.identity,
            "person": SIDES[self.person],
            "bot": bot,
            "moves": [at.action_name(action) for at, action in zip(self.positions, self.moves, strict=False)],
            "result": result,
            "resigned": self.resigned,
        }

    @classmethod
    def from_record(cls, game: GameSpec, record: Any) -> Self:
        """Return the game that `record` tells. Raises ValueError if it is none, or of another game."""
        if not isinstance(record, dict) or record.get("version") != VERSION:
            raise ValueError(f"expected the record of a game, version {VERSION}")
        if record.get("game") != game.identity:
            raise ValueError(f"it is a game of {record.get('game')}, not of {game.identity}")
        moves, person = record.get("moves"), record.get("person")
        if person not in SIDES or not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
            raise ValueError("expected moves, a list of names, and person, first or second")
        positions, actions = play_named(game.start, moves)
        return cls(game, SIDES.index(person), positions, actions, bool(record.get("resigned")))
