"""Measuring the scale of a game: games of the judge with some random turns, reviewed with fewer and more simulations.

A bundled bot has its scale on its card. That of a run is measured at its first review and kept with the run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plyzero.files import read_file, write_file
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.reviewing import losses
from plyzero.kits.review.scale import Scale
from plyzero.play.bundled_bots import find_card
from plyzero.rules.chance import is_chance, roll_dice

if TYPE_CHECKING:
    from plyzero.kits.review.values import Valuer
    from plyzero.kits.review.verdicts import Unit
    from plyzero.play.judge import Judge
    from plyzero.rules.game import Game

FILE: Final = "review.json"
"""The file of a run with its scale."""

GAMES: Final = 8
"""Number of games that are played and reviewed."""

PLAYING: Final = 64
"""Simulations per move of the bot in these games."""

SIMULATIONS: Final = 256
"""Simulations of each review."""

SECONDS: Final = 30.0
"""About the time for all reviews."""

RANDOM_SHARE: Final = 0.25
"""Share of random turns: few, so that the games stay open and show what a move may lose."""

SHARE: Final = 0.95
"""The margin is larger than this share of the changes of losses; the spread follows from that of random turns."""

LEAST_SPREAD: Final = 0.02

MAX_BYTES: Final = 10_000
"""Size of the file of a run, at most."""

Progress = Callable[[int, int], None]
"""Called with the number of games that are measured, and of all."""


def scale_of(judge: Judge, valuer: Valuer, run: Path | None, on_game: Progress, *, may_write: bool = True) -> Scale:
    """Return the scale of the game for a judge: from the card or from the run, measured if neither has it.

    may_write: whether a new one is kept with the run.
    """
    card = find_card(valuer.bot.game)
    if card and card.review and judge.network == card.network:
        return parse_scale(card.review)
    kept = run / FILE if run is not None and judge.network == run else None
    if kept is not None:
        with suppress(
            OSError, ValueError, KeyError, TypeError, AttributeError
        ):  # not there, or damaged: measured again
            return parse_scale(json.loads(read_file(kept, max_bytes=MAX_BYTES)))
    scale = measure_scale(valuer, np.random.default_rng(0), seconds=SECONDS, on_game=on_game)
    if kept is not None and may_write:
        with suppress(OSError):  # a run on a read-only mount can be reviewed too
            write_file(kept, json.dumps(describe_scale(scale)).encode(), replace=True)
    return scale


def measure_scale(
    valuer: Valuer,
    rng: np.random.Generator,
    *,
    games: int = GAMES,
    simulations: int = SIMULATIONS,
    seconds: float = math.inf,
    on_game: Progress = lambda made, number: None,
) -> Scale:
    """Return the scale of the valuer's game.

    simulations: of each review; the first margin is that after a quarter of them.
    seconds:     about the time that the reviews may take; in a slow game they have fewer simulations.
    """
    on_game(0, games)
    began = time.monotonic()
    played = _play(valuer, games, rng)
    turns = sum(len(game.moves) for game in played)
    if seconds < math.inf:
        rate = turns * PLAYING / (time.monotonic() - began)
        simulations = int(min(simulations, max(PLAYING // 4, seconds * rate / (1.25 * turns))))
    of_random: list[float] = []
    of_bot: list[float] = []
    changes: list[tuple[float, float]] = []  # the larger one of two losses of a turn, and their difference
    for number, game in enumerate(played):
        record = GameRecord(game.positions, game.moves)
        few, many = (losses(valuer, record, each) for each in (max(1, simulations // 4), simulations))
        for (turn, lost), (_, before) in zip(many, few, strict=True):
            if turn.has_choice:
                (of_random if turn.ply in game.random_plies else of_bot).append(lost)
                changes.append((max(lost, before), abs(lost - before)))
        on_game(number + 1, games)
    spread = _spread(of_random, valuer.unit)
    scale = Scale(valuer.unit, spread, {})
    matters = [change for lost, change in changes if lost >= scale.bounds[-1][0] / 2]
    margin = float(np.quantile(matters, SHARE)) if matters else scale.bounds[-1][0]
    return scale._replace(
        margins={max(1, simulations // 4): margin}, random=scale.accuracy(of_random), bot=scale.accuracy(of_bot)
    )


def _spread(of_random: Sequence[float], unit: Unit) -> float:
    """Return the spread of the losses of random turns: the loss that few of them exceed.

    Of the expected score it is twice that, and at most the whole game: then the bounds of mistakes are those of lichess
    wherever random turns may lose half of the game.
    """
    if not of_random:
        return 1.0
    usual = max(float(np.quantile(of_random, SHARE)), LEAST_SPREAD)
    return usual if unit == "points" else min(1.0, 2 * usual)


def parse_scale(fields: Mapping[str, Any]) -> Scale:
    """Return the scale that `describe_scale` has described."""
    margins = {int(simulations): float(margin) for simulations, margin in fields["margins"].items()}
    return Scale(fields["unit"], float(fields["spread"]), margins, fields.get("random"), fields.get("bot"))


def describe_scale(scale: Scale) -> dict[str, object]:
    """Return a scale as JSON."""
    return {
        "unit": scale.unit,
        "spread": round(scale.spread, 4),
        "margins": {str(simulations): round(margin, 4) for simulations, margin in scale.margins.items()},
        "random": None if scale.random is None else round(scale.random, 1),
        "bot": None if scale.bot is None else round(scale.bot, 1),
    }


class _Game:
    """A game that is played. A turn of several moves is played at random as a whole or not at all."""

    def __init__(self, start: Game) -> None:
        self.positions = [start]
        self.moves: list[int] = []
        self.random_plies: set[int] = set()
        self._mover: int | None = None
        self._is_random = False

    def roll(self, rng: np.random.Generator) -> None:
        """Make the rolls that are due, and decide at the beginning of a turn whether it is a random one."""
        position, rolls = roll_dice(self.positions[-1], rng)
        for roll in rolls:
            self.play(roll)
        if rolls or position.to_play != self._mover:
            self._mover = int(position.to_play)
            self._is_random = bool(rng.random() < RANDOM_SHARE)
        while self._is_random and not self.is_over and self.positions[-1].to_play == self._mover:
            if is_chance(self.positions[-1]):
                break
            self.random_plies.add(len(self.moves))
            self.play(int(rng.choice(np.asarray(self.positions[-1].legal_actions()))))

    def play(self, move: int) -> None:
        """Play a move, or roll."""
        self.moves.append(move)
        self.positions.append(self.positions[-1].play_unchecked(move))

    @property
    def is_over(self) -> bool:
        """Whether the game has ended or is too long."""
        return self.positions[-1].outcome() is not None or len(self.moves) >= self.positions[0].max_plies


def _play(valuer: Valuer, count: int, rng: np.random.Generator) -> list[_Game]:
    """Return games of the bot, which are played side by side."""
    games = [_Game(valuer.bot.game.start) for _ in range(count)]
    while True:
        for game in games:
            if not game.is_over:
                game.roll(rng)
        waiting = [game for game in games if not game.is_over and not is_chance(game.positions[-1])]
        results = valuer.search([game.positions[-1] for game in waiting], PLAYING)
        for game, result in zip(waiting, results, strict=True):
            game.play(result.best_action())
        if all(game.is_over for game in games):
            return games
