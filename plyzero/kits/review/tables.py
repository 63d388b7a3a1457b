"""Reviews as text: of one game who lost how much by which turns, and of many a table by game and by player."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plyzero.kits.engines.game_record import GameRecord, result_of
from plyzero.kits.review.description import amount_lost, describe, doubt_of, number_in, verdict_of
from plyzero.kits.review.scale import KINDS
from plyzero.play.session import SIDES
from plyzero.rules.board_svg import text_table
from plyzero.rules.chance import setup_name
from plyzero.rules.notation import action_names

if TYPE_CHECKING:
    from plyzero.kits.review.reviewing import JudgedTurn, Review


class ReviewedGame(NamedTuple):
    """A game of a file with its review. `players`: the names of both sides."""

    number: int
    players: tuple[str, str]
    record: GameRecord
    review: Review

    @property
    def setup(self) -> str:
        """The set-up of the game in words; "" if it has none."""
        return setup_name(self.record.positions, self.record.moves)

    @property
    def loser(self) -> int | None:
        """The player who has lost; None for a draw."""
        winner = self.record.winner
        return 1 - SIDES.index(winner) if winner in SIDES else None

    def describe(self, judge: str) -> dict[str, object]:
        """Return the game and its review as JSON: its number, set-up, players and winner, and what `describe` has."""
        return {
            "game": self.number,
            "setup": self.setup,
            "first": self.players[0],
            "second": self.players[1],
            "winner": self.record.winner,
            **describe(self.review, self.record.positions, judge=judge, loser=self.loser),
        }


def review_text(game: ReviewedGame) -> str:
    """Return the review of one game."""
    review, result = game.review, result_of(game.record)
    begun = f"{game.setup}, " if game.setup else ""
    blocks = [f"Game {game.number}, {begun}{len(review.turns)} turns: {result}."]
    verdict = verdict_of(review, game.loser)
    if verdict:
        blocks.append(verdict)
    heads = ("player", *_heads(review))
    blocks.append(text_table(heads, [(_name(game, side), *_cells(review, side)) for side in (0, 1)]))
    blocks.append(_beside(review))
    for side in (0, 1) if game.loser is None else (game.loser, 1 - game.loser):
        largest = review.largest(side)
        if largest:
            blocks.append(f"The largest losses of {_name(game, side)}:")
            blocks.append(text_table(("turn", "played", "lost", "", "better"), _rows(review, largest)))
    return "\n\n".join(blocks)


def reviews_text(games: Sequence[ReviewedGame]) -> str:
    """Return the reviews of many games: a row for each player of each game, and the means of each player."""
    review = games[0].review
    rows = [
        (*_number(game), _result(game, side), _name(game, side), *_cells(game.review, side))
        for game in games
        for side in (0, 1)
    ]
    number = ("game", "set-up") if games[0].setup else ("game",)
    names = dict.fromkeys(_name(game, side) for game in games for side in (0, 1))
    means = [(name, *_means([(game.review, side) for game in games for side in _sides(game, name)])) for name in names]
    unit = "percentage points" if review.unit == "score" else "points"
    return "\n\n".join(
        [
            text_table((*number, "result", "player", *_heads(review)), rows),
            f"In the mean of a game, play{' and luck' if review.rolls else ''} in {unit}:",
            text_table(("player", "games", *_heads(review)), means),
            _beside(review),
        ]
    )


def _number(game: ReviewedGame) -> tuple[str, ...]:
    """Return the number of a game and, in a game with set-ups, that of its set-up."""
    number = str(game.number)
    return (number, game.setup.removeprefix("set-up ")) if game.setup else (number,)


def _heads(review: Review) -> tuple[str, ...]:
    luck = ("luck",) if review.rolls else ()
    return "accuracy", "play", *luck, "blunders", "mistakes", "inaccuracies"


def _cells(review: Review, side: int) -> tuple[str, ...]:
    luck = (number_in(review.luck(side), review.unit, signed=True),) if review.rolls else ()
    play = number_in(-review.lost(side), review.unit, signed=True)
    return _percent(review.accuracy(side)), play, *luck, *(str(each) for each in _counts(review, side))


def _means(played: Sequence[tuple[Review, int]]) -> tuple[str, ...]:
    unit = played[0][0].unit
    accuracies = [accuracy for review, side in played if (accuracy := review.accuracy(side)) is not None]
    play = float(np.mean([-review.lost(side) for review, side in played]))
    luck = float(np.mean([review.luck(side) for review, side in played]))
    counts = np.mean([_counts(review, side) for review, side in played], axis=0)
    return (
        str(len(played)),
        _percent(float(np.mean(accuracies)) if accuracies else None),
        number_in(play, unit, signed=True),
        *((number_in(luck, unit, signed=True),) if played[0][0].rolls else ()),
        *(f"{count:.1f}" for count in counts),
    )


def _counts(review: Review, side: int) -> list[int]:
    kinds = [each.kind for each in review.turns if each.turn.by == side]
    return [kinds.count(kind) for _, kind in KINDS]


def _rows(review: Review, largest: Sequence[JudgedTurn]) -> Iterator[tuple[str, ...]]:
    numbers = {id(each): number for number, each in enumerate(review.turns, 1)}
    for each in largest:
        start = each.turn.positions[0]
        played, best = (" ".join(action_names(start, moves)) for moves in (each.turn.moves, each.best))
        kind = each.kind or ("" if each.is_clear else "not clear")
        yield str(numbers[id(each)]), played, amount_lost(each, review.unit), kind, best


def _beside(review: Review) -> str:
    scale = review.scale
    if scale.random is None or scale.bot is None:
        return ""
    beside = (
        f"In this game random play has an accuracy of {scale.random:.0f} %, the judge's own play {scale.bot:.0f} %."
    )
    return f"{beside} {doubt_of(scale)}".strip()


def _result(game: ReviewedGame, side: int) -> str:
    if game.loser is None:
        return "draw"
    return "lost" if side == game.loser else "won"


def _name(game: ReviewedGame, side: int) -> str:
    """Return the name of a player without what is said of its strength in brackets."""
    return game.players[side].partition(" (")[0]


def _sides(game: ReviewedGame, name: str) -> list[int]:
    return [side for side in (0, 1) if _name(game, side) == name]


def _percent(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.0f} %"
