"""Measuring the scale of a game: games of random play and of the judge's own, reviewed with fewer and more simulations.

A bundled bot has its scale on its card. That of a run is measured at its first review and kept with the run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plyzero.files import read_file, write_file
from plyzero.kits.engines.game_record import GameRecord
from plyzero.kits.review.reviewing import losses
from plyzero.kits.review.scale import Scale
from plyzero.play.bundled_bots import find_card
from plyzero.rules.chance import roll_dice

if TYPE_CHECKING:
    from plyzero.kits.review.values import Valuer
    from plyzero.play.judge import Judge

FILE: Final = "review.json"
"""The file of a run with its scale."""

GAMES: Final = 8
"""Number of games that are reviewed. In half of them one side plays at random, which gives the accuracy of random play;
in the others both sides make some moves at random, which gives the spread and the accuracy of the bot."""

PLAYING: Final = 64
"""Simulations per move of the bot in these games."""

SIMULATIONS: Final = 256
"""Simulations of each review."""

SECONDS: Final = 30.0
"""About the time for all reviews."""

RANDOM_SHARE: Final = 0.25
"""Share of random moves in the other games, which stay open for longer and therefore show what a move may lose."""

SHARE: Final = 0.95
"""The spread is larger than this share of the losses of random play; the margin than that of the changes."""

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
    if kept is not None and kept.exists():
        return parse_scale(json.loads(read_file(kept, max_bytes=MAX_BYTES)))
    scale = measure_scale(valuer, np.random.default_rng(0), seconds=SECONDS, on_game=on_game)
    if kept is not None and may_write:
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
    began = time.monotonic()
    played = [_play(valuer, number, rng) for number in range(games)]
    turns = sum(len(record.moves) for record, _ in played)
    if seconds < math.inf:
        rate = turns * PLAYING / (time.monotonic() - began)
        simulations = int(min(simulations, max(PLAYING // 4, seconds * rate / (1.25 * turns))))
    of_random_player: list[float] = []
    of_random_moves: list[float] = []
    of_bot: list[float] = []
    changes: list[tuple[float, float]] = []  # the larger one of two losses of a turn, and their difference
    for number, (record, random_plies) in enumerate(played):
        few, many = (losses(valuer, record, each) for each in (max(1, simulations // 4), simulations))
        for (turn, lost), (_, before) in zip(many, few, strict=True):
            if not turn.has_choice:
                continue
            changes.append((max(lost, before), abs(lost - before)))
            is_random = [ply in random_plies for ply in range(turn.ply, turn.end)]
            if number % 2 == 0 and all(is_random):
                of_random_player.append(lost)
            elif all(is_random):
                of_random_moves.append(lost)
            elif number % 2 and not any(is_random):
                of_bot.append(lost)
        on_game(number + 1, games)
    spread = max(float(np.quantile(of_random_moves, SHARE)), LEAST_SPREAD) if of_random_moves else 1.0
    scale = Scale(valuer.unit, spread, {})
    matters = [change for lost, change in changes if lost >= scale.bounds[-1][0] / 2]
    margin = float(np.quantile(matters, SHARE)) if matters else scale.bounds[-1][0]
    return scale._replace(
        margins={max(1, simulations // 4): margin}, random=scale.accuracy(of_random_player), bot=scale.accuracy(of_bot)
    )


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


def _play(valuer: Valuer, number: int, rng: np.random.Generator) -> tuple[GameRecord, set[int]]:
    """Return a game of the bot, and the plies of random moves: of one side, or in every second game of both.

    A turn of several moves is played at random as a whole or not at all.
    """
    start = valuer.bot.game.start
    positions, moves = [start], list[int]()
    random_plies = set[int]()
    is_random, mover = False, None
    while len(moves) < start.max_plies:
        position, rolls = roll_dice(positions[-1], rng)
        for roll in rolls:
            moves.append(roll)
            positions.append(positions[-1].play_unchecked(roll))
        if position.outcome() is not None:
            break
        if rolls or position.to_play != mover:
            mover = position.to_play
            is_random = bool(rng.random() < RANDOM_SHARE) if number % 2 else mover == number // 2 % 2
        if is_random:
            random_plies.add(len(moves))
            move = int(rng.choice(np.asarray(position.legal_actions())))
        else:
            (result,) = valuer.search([position], PLAYING)
            move = result.best_action()
        moves.append(move)
        positions.append(position.play_unchecked(move))
    return GameRecord(positions, moves), random_plies
