"""The bundled, pretrained bots: a network and a model card for each, in bots/.

`benchmarks/strength/bots.py` creates both, and `benchmarks/strength/levels.py` measures the levels against programs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from plyzero.errors import UserError
from plyzero.play.anchors import Anchor, claim, distance
from plyzero.rules.catalog import GameSpec

DIRECTORY: Final = Path(__file__).parent / "bots"
"""The directory with an ONNX file and a TOML file for each bot."""


PURE: Final = "pure MCTS (200 random games a move)"
"""The player that has 0 Elo."""


class Level(NamedTuple):
    """A playing strength of a bot.

    number:      1 is the weakest level.
    simulations: number per move; 0 = the raw network.
    temperature: moves are sampled from policy^(1/temperature); 0 = the best move.
    elo:         measured Elo difference to pure MCTS with 200 rollouts per move.
    low, high:   95 % confidence interval of `elo`.
    measured:    on which board, if that is another one.
    programs:    scores against other players, the weakest first.
    """

    number: int
    simulations: int
    temperature: float
    elo: float
    low: float
    high: float
    measured: str = ""
    programs: tuple[Anchor, ...] = ()

    def __str__(self) -> str:
        named = f": {self.claim}" if self.programs else self.measured
        return f"level {self.number}{named}"

    @property
    def claim(self) -> str:
        """The strength in words, as measured: see `plyzero.play.anchors`; the score if only pure MCTS is known."""
        words = claim(self.anchors)
        if not self.programs:
            [pure] = self.anchors
            words = f"scores {pure.share} against {pure.opponent}"
        return f"{words}{self.measured}"

    @property
    def scores(self) -> str:
        """All measured scores in words, the one nearest to one half first."""
        return f"scores {', '.join(map(str, sorted(self.anchors, key=distance)))}{self.measured}"

    @property
    def anchors(self) -> tuple[Anchor, ...]:
        """All measured scores, the first one against pure MCTS, for which `elo` stands."""
        score, low, high = (1 / (1 + 10 ** (-elo / 400)) for elo in (self.elo, self.low, self.high))
        return Anchor(PURE, score, low, high), *self.programs


class Card(NamedTuple):
    """The model card of a bot.

    game:     identity of the game that the bot plays.
    network:  path of its ONNX file.
    levels:   its levels, the weakest first.
    default:  number of the default level, which moves within a second.
    training: command, hardware, minutes and settings of the training, and test scores with their intervals.
    shape:    of an observation, if the network plays every size of the board; otherwise empty.
    review:   what was measured of the losses in the game, for reviews (kit review); {} = not measured.
    """

    game: str
    network: Path
    levels: tuple[Level, ...]
    default: int
    training: dict[str, object]
    shape: Sequence[int]
    review: Mapping[str, Any]

    def level(self, number: int | None = None) -> Level:
        """Return the level with that number, by default the default level. Raises UserError if there is none."""
        wanted = self.default if number is None else number
        if not 1 <= wanted <= len(self.levels):
            raise UserError(f"expected a level from 1 to {len(self.levels)}, got {number}")
        return self.levels[wanted - 1]


def find_card(game: GameSpec) -> Card | None:
    """Return the model card of the bundled bot for `game`, None if there is no bot for this version of the rules.

    Where there is none for its size of the board, it is that of a bot which plays every size, if there is one.
    """
    cards, shape = list_cards(), game.start.observation_shape
    for card in cards:
        if card.game == game.identity:
            return card
    for card in cards:
        if game.is_size_of(card.game) and card.shape[:1] == shape[:1] and card.shape[1:] != shape[1:]:
            board = f", measured on {card.shape[1]} x {card.shape[2]}"
            levels = tuple(level._replace(measured=board) for level in card.levels)
            return card._replace(game=game.identity, levels=levels, review={})
    return None


def list_cards() -> list[Card]:
    """Return the model cards of all bundled bots, ordered by the game."""
    return [_read_card(path) for path in sorted(DIRECTORY.glob("*.toml"))]


def _read_card(path: Path) -> Card:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    measured = ("simulations", "temperature", "elo", "low", "high")
    levels = [Level(i, *(each[key] for key in measured)) for i, each in enumerate(table["levels"], start=1)]
    for found in table.get("anchors", []):
        level = levels[found["level"] - 1]
        anchor = Anchor(*(found[key] for key in Anchor._fields))
        levels[level.number - 1] = level._replace(programs=(*level.programs, anchor))
    return Card(
        game=table["game"],
        network=path.with_suffix(".onnx"),
        levels=tuple(levels),
        default=table["default_level"],
        training=table["training"],
        shape=tuple(table.get("observation_shape", ())),
        review=table.get("review", {}),
    )
