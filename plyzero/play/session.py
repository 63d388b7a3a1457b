"""A game between a person and a bot, independent of the screen: undo, resignation, game record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Self

from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game, Outcome
from plyzero.rules.notation import play_named

VERSION: Final = 1
"""Version of the game record, whose fields are listed in docs/formats.md."""

SIDES: Final = ("first", "second")
"""The names of players 0 and 1."""


@dataclass
class Session:
    """A game in progress.

    person:    the side of the person, 0 or 1.
    positions: the positions so far, the current one last.
    moves:     the actions between them.
    resigned:  whether the person has resigned.
    """

    game: GameSpec
    person: int
    positions: list[Game] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    resigned: bool = False

    def __post_init__(self) -> None:
        self.positions = self.positions or [self.game.start]

    @property
    def position(self) -> Game:
        """The current position."""
        return self.positions[-1]

    @property
    def outcome(self) -> Outcome | None:
        """The outcome by the rules or by the person's resignation; None while the game goes on."""
        return Outcome(1 - self.person) if self.resigned else self.position.outcome()

    @property
    def is_persons_turn(self) -> bool:
        """Whether the person is the player to move."""
        return self.position.to_play == self.person

    def play(self, action: int) -> None:
        """Play a legal action for the player to move."""
        self.positions.append(self.position.play(action))
        self.moves.append(action)

    def undo(self) -> bool:
        """Take back the person's last move and all later moves. Return False if the person has not moved."""
        for ply in range(len(self.moves) - 1, -1, -1):
            if self.positions[ply].to_play == self.person:
                del self.positions[ply + 1 :], self.moves[ply:]
                return True
        return False

    def rematch(self) -> Session:
        """Return a new game with the sides swapped."""
        return Session(self.game, 1 - self.person)

    def record(self, bot: str) -> dict[str, Any]:
        """Return the game as a JSON object; `bot` is the name of the bot."""
        outcome = self.outcome
        result = None if outcome is None else "draw" if outcome.winner is None else SIDES[outcome.winner]
        return {
            "version": VERSION,
            "game": self.game.identity,
            "person": SIDES[self.person],
            "bot": bot,
            "moves": [
                position.action_name(action) for position, action in zip(self.positions, self.moves, strict=False)
            ],
            "result": result,
            "resigned": self.resigned,
        }

    @classmethod
    def from_record(cls, game: GameSpec, record: Any) -> Self:
        """Return the game that `record`, a JSON object, contains. Raises ValueError if it is no record of `game`."""
        if not isinstance(record, dict) or record.get("version") != VERSION:
            raise ValueError(f"expected a game record of version {VERSION}")
        if record.get("game") != game.identity:
            raise ValueError(f"it is a game of {record.get('game')}, not of {game.identity}")
        moves, person = record.get("moves"), record.get("person")
        if person not in SIDES or not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
            raise ValueError("expected moves as a list of action names, and person as first or second")
        positions, actions = play_named(game.start, moves)
        return cls(game, SIDES.index(person), positions, actions, bool(record.get("resigned")))
