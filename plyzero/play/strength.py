"""The measured strength of a model: its newest score in a run, or the card of a bundled bot."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

from plyzero.play.bundled_bots import Level, find_card
from plyzero.play.player import Strength
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import GameSpec
from plyzero.run.events import read_scores
from plyzero.setting_types import parse_rollouts
from plyzero.volume_errors import explain

UNKNOWN: Final = Strength("the strength of this network has not been measured", judges=False)
"""The strength of a network that is only a file."""


def strength_of(path: Path, game: GameSpec, step: int) -> Strength:
    """Return the strength of a model for `game`: of training step `step` in a run, or of a file."""
    if path.is_dir():
        try:
            return _of_run(path / "metrics", step)
        except OSError as error:
            return Strength(f"the scores of step {step} cannot be read: {explain(error)}", judges=False)
    card = find_card(game)
    if card is None or card.network != path:
        return UNKNOWN
    return of_level(max(card.levels, key=lambda level: level.elo))


def of_level(level: Level) -> Strength:
    """Return the strength of a bundled bot at a level."""
    return Strength(
        f"the bundled bot, level {level.number}, {level.scores}", judges=level.low > 0 and not level.measured
    )


def _of_run(metrics: Path, step: int) -> Strength:
    """Return the newest score that `train` has measured of the model of `step` or, without one, of an earlier model.

    Raises OSError if the scores cannot be read.
    """
    measured, scores = -1, dict[int, MatchResult]()
    for found in read_scores(metrics):
        model, against = found.model, {}
        for opponent, counts in found.counts.items():
            with suppress(ValueError):  # another opponent
                if opponent.startswith("mcts:"):
                    against[parse_rollouts(opponent)] = MatchResult(*counts)
        if against and measured <= model.step <= step:
            measured, scores = model.step, against
    if not scores:
        return Strength(f"step {step} has not been measured against pure MCTS", judges=False)
    rollouts, result = max(scores.items())
    newer = "" if measured == step else f"step {step} has not been measured; "
    text = f"{newer}step {measured} scored {result.short} in {result.games} games against mcts:{rollouts}"
    # It judges the moves of a game once it has beaten pure MCTS with at least 100 rollouts.
    return Strength(text, judges=any(each.interval()[0] > 0.5 for n, each in scores.items() if n >= 100))


def introduction(game: GameSpec, text: str) -> str:
    """Return the `text` of a Strength as a sentence for people; of pure MCTS how to train a network."""
    if text.startswith("pure MCTS"):
        return f"It knows the rules alone. Train a network: plyzero train {shlex.quote(game.name)} --run DIR"
    _, scores, rest = text.partition("scores ")
    return f"{f'It scores {explained(rest)}' if scores else f'Its strength: {explained(text)}'}."


def explained(text: str) -> str:
    """Return a text in which players such as mcts:100, whose names few people know, are named in words."""
    return re.sub(r"\bmcts:(\d+)", r"pure MCTS (\1 random games a move)", text)
