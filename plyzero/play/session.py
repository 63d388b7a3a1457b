"""A game between a person and a bot, independent of the screen: undo, resignation, game record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from plyzero.errors import shown
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, move_name, roll_dice, setup_name
from plyzero.rules.game import Game, Outcome, outcome_code
from plyzero.rules.notation import action_names, play_named
from plyzero.run.json_games import WINNERS

VERSION: Final = 1
STARTED: Final = 2
"""Versions of the game record, whose fields are listed in docs/formats.md: without `start` and with it."""

SIDES: Final = ("first", "second")
"""The names of players 0 and 1; where dice decide who begins, the second player may move first."""


@dataclass
class Session:
    """A game in progress.

    person:    the side of the person, 0 or 1.
    positions: the positions so far, the current one last; those in which chance moves are among them.
    moves:     the actions and rolls between them.
    resigned:  the player who has resigned, 0 or 1; None if nobody has.
    forfeited: whether the bot has failed to move.
    rng:       rolls the dice, as soon as chance moves.
    """

    game: GameSpec
    person: int
    positions: list[Game] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    resigned: int | None = None
    forfeited: bool = False
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def __post_init__(self) -> None:
        self.positions = self.positions or [self.game.start]
        self._roll()

    @property
    def position(self) -> Game:
        """The current position."""
        return self.positions[-1]

    @property
    def outcome(self) -> Outcome | None:
        """The outcome by the rules, by resignation or by forfeit; None while the game goes on."""
        if self.resigned is not None:
            return Outcome(1 - self.resigned)
        return Outcome(self.person) if self.forfeited else self.position.outcome()

    @property
    def is_persons_turn(self) -> bool:
        """Whether the person is the player to move."""
        return self.position.to_play == self.person

    @property
    def first_mover(self) -> int:
        """The player who makes the first move: 0, unless dice have decided otherwise."""
        return next(int(each.to_play) for each in self.positions if not is_chance(each))

    @property
    def last_mover(self) -> int | None:
        """The player who made the last move; None if there is none."""
        movers = (each.to_play for each in self.positions[-2::-1] if not is_chance(each))
        return next(movers, None)

    @property
    def last_rolls(self) -> list[str]:
        """The names of the rolls after the last move, or before the first one; the first may be that of a set-up."""
        names: list[str] = []
        for position, move in zip(self.positions[-2::-1], self.moves[::-1], strict=True):
            if not is_chance(position):
                break
            names.insert(0, move_name(position, move))
        return names

    @property
    def setup_and_rolls(self) -> tuple[str, list[str]]:
        """The set-up in words, "" if there is none or a player has moved since; the names of the other last rolls."""
        names = self.last_rolls
        setup = setup_name(self.positions, self.moves) if len(names) == len(self.moves) else ""
        return setup, names[1:] if setup else names

    def play(self, action: int) -> None:
        """Play a legal action for the player to move, and roll where chance moves then."""
        self.positions.append(self.position.play(action))
        self.moves.append(action)
        self._roll()

    def undo(self) -> bool:
        """Take back the person's last move and all later moves and rolls. Return False if the person has not moved."""
        self.forfeited = False
        for ply in range(len(self.moves) - 1, -1, -1):
            if self.positions[ply].to_play == self.person and not is_chance(self.positions[ply]):
                del self.positions[ply + 1 :], self.moves[ply:]
                return True
        return False

    def record(self, bot: str) -> dict[str, object]:
        """Return the game as a JSON object; `bot` is the name of the bot."""
        return {
            "version": STARTED if self.game.text else VERSION,
            "game": self.game.identity,
            **({"start": self.game.text} if self.game.text else {}),
            "person": SIDES[self.person],
            "bot": bot,
            "moves": action_names(self.positions[0], tuple(self.moves)),
            "result": WINNERS[outcome_code(self.outcome)],
            "resigned": self.resigned == self.person,
            **({"end": "resign"} if self.resigned == 1 - self.person else {}),
        }

    @classmethod
    def from_record(cls, game: GameSpec, record: Mapping[str, object]) -> Self:
        """Return the game that `record`, a JSON object, contains. Raises ValueError if it is no record of `game`."""
        if record.get("version") not in (VERSION, STARTED):
            raise ValueError(f"expected a game record of version {VERSION}")
        if record.get("game") != game.identity:
            raise ValueError(f"it is a game of {shown(record.get('game'))}, not of {game.identity}")
        moves, side = record.get("moves"), record.get("person")
        if side not in SIDES or not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
            raise ValueError("expected moves as a list of action names, and person as first or second")
        game = game.starting_at(record.get("start", ""))
        positions, actions = play_named(game.start, moves)
        person = SIDES.index(side)
        loser = person if record.get("resigned") else 1 - person if record.get("end") == "resign" else None
        return cls(game, person, positions, actions, loser)

    def _roll(self) -> None:
        _, rolls = roll_dice(self.position, self.rng)
        for roll in rolls:
            self.positions.append(self.position.play_unchecked(roll))
        self.moves += rolls
