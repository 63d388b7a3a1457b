"""The bots that come along: a network and a card for each, in plyzero/bots, made by `benchmarks/strength/bots.py`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plyzero.errors import UserError
from plyzero.rules.catalog import GameSpec

DIRECTORY: Final = Path(__file__).parent / "bots"


@dataclass(frozen=True)
class Level:
    """How hard a bot tries, and how strong that was measured to be.

    simulations: a move, 0 = the raw network.
    temperature: its moves are drawn from policy^(1/temperature); 0 = its best.
    elo:         against pure MCTS with 200 rollouts a move; low and high are the 95 % interval.
    """

    number: int
    simulations: int
    temperature: float
    elo: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"level {self.number} (Elo {self.elo:+.0f}, {self.low:+.0f} to {self.high:+.0f})"


@dataclass(frozen=True)
class Card:
    """What is known of a bot.

    game:     it plays, by its identity. network: its ONNX file. levels: from the weakest on.
    default:  number of the level that answers within a second.
    training: command, hardware, minutes, settings, and scores with their intervals.
    """

    game: str
    network: Path
    levels: tuple[Level, ...]
    default: int
    training: dict[str, Any]

    def level(self, number: int | None = None) -> Level:
        """Return the level of that number, or the default one. Raises UserError."""
        wanted = self.default if number is None else number
        for level in self.levels:
            if level.number == wanted:
                return level
        raise UserError(f"expected a level from 1 to {len(self.levels)}, got {number}")


def find_card(game: GameSpec) -> Card | None:
    """Return the card of the bot that comes along for `game`, None if there is none for these rules."""
    return next((card for card in list_cards() if card.game == game.identity), None)


def list_cards() -> list[Card]:
    """Return all of them, by name of the game."""
    return [_read(path) for path in sorted(DIRECTORY.glob("*.toml"))]


def _read(path: Path) -> Card:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    levels = (
        Level(number, each["simulations"], each["temperature"], each["elo"], each["low"], each["high"])
        for number, each in enumerate(table["levels"], start=1)
    )
    return Card(table["game"], path.with_suffix(".onnx"), tuple(levels), table["default_level"], table["training"])
