"""A review in words and as JSON: amounts in the unit of the game, who lost by what, and what the fields are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from plyzero.kits.review.verdicts import Unit
from plyzero.play.session import SIDES
from plyzero.rules.game import Game
from plyzero.rules.notation import action_names

if TYPE_CHECKING:
    from plyzero.kits.review.reviewing import JudgedTurn, Review
    from plyzero.kits.review.scale import Scale

LINE: Final = 6
"""Number of moves of a line that are given."""


DOUBTFUL: Final = 10.0
"""Accuracy, in percent, by which the judge's own play has to be better than random play."""


def amount(value: float, unit: Unit, *, signed: bool = False) -> str:
    """Return a difference of values in words, such as "12 percentage points" or "0.25 points"."""
    number = number_in(value, unit, signed=signed)
    return f"{number} percentage points" if unit == "score" else f"{number} points"


def amount_lost(judged: JudgedTurn, unit: Unit) -> str:
    """Return what a turn has lost, with its uncertainty, in words."""
    lost = number_in(judged.lost, unit)
    if judged.margin > 0:
        lost += f" ± {number_in(judged.margin, unit)}"
    lost += " percentage points" if unit == "score" else " points"
    if judged.points is not None and judged.points >= 0.05:
        lost += f" and about {judged.points:.1f} points"
    return lost


def number_in(value: float, unit: Unit, *, signed: bool = False) -> str:
    """Return a difference of values as a number: in percentage points, or in points."""
    text = f"{100 * value:z.0f}" if unit == "score" else f"{value:z.2f}"
    return f"+{text}" if signed and value > 0 else text


def verdict_of(review: Review, loser: int | None) -> str:
    """Return in a sentence why a game was lost. `loser`: None for a draw, or if the game is not over."""
    if loser is None:
        return ""
    clear = [each for each in review.turns if each.turn.by == loser and each.is_clear]
    lost = amount(sum(each.lost for each in clear), review.unit)
    named = f"the {SIDES[loser]} player"
    luck = review.luck(loser)
    if not review.rolls:
        if clear:
            return f"{_capital(named)} has lost {lost} by {_clearly_worse(len(clear))}."
        return f"The turns of {named} were as good as the judge can tell."
    play = amount(-review.lost(loser), review.unit, signed=True)
    sums = f"luck {number_in(luck, review.unit, signed=True)}, play {play}"
    if not clear:
        decided = ", and luck decided" if luck < 0 else ""
        return f"The turns of {named} were as good as the judge can tell{decided}: {sums}."
    if luck >= 0:
        return f"{_capital(named)} lost by play, not by luck: {sums}."
    if -luck > review.lost(loser):
        return f"{_capital(named)} lost more by luck than by play: {sums}."
    return f"{_capital(named)} lost more by play than by luck: {sums}."


def doubt_of(scale: Scale) -> str:
    """Return a sentence about a judge that does not tell its own play from random play; "" about another one."""
    if scale.random is None or scale.bot is None or scale.bot > scale.random + DOUBTFUL:
        return ""
    return "It hardly tells its own play from random play in this game, so do not rely on it."


def describe(review: Review, positions: Sequence[Game], *, judge: str, loser: int | None) -> dict[str, object]:
    """Return a review as JSON.

    unit:    "score", the expected score from 0 to 1, or "points".
    judge:   a sentence about the judge; `verdict`: why the game was lost, as a sentence, "" for a draw.
    scale:   the accuracy of `random` play and of the `bot` in this game, in percent, or null; and the smallest loss of
             an `inaccuracy`, a `mistake` and a `blunder`.
    players: for both players `accuracy` in percent, null without a choice; `lost` by all turns; `luck`, what all rolls
             gave beside their expectation; and `largest`, the numbers of the turns that lost most.
    turns:   `ply`, the number of moves and rolls before it, and `plies`, that of its moves; `by`; the names of its
             `moves` and of the `best` ones; `lost`, with the `margin` of its uncertainty, and whether it is `clear`;
             `mistake`: "inaccuracy", "mistake", "blunder" or null; `points` lost beside the expected score, or null;
             the names of the better `line`, and of the `answer` to the turn that was played, [] where none is known;
             and `choices`, the number of legal moves where the best turn first differs from that played, else 0.
    rolls:   `ply` and `plies`; the `names`; and `luck`, what they gave player 0.
    plies:   for each position the `value` for player 0; `withoutLuck`, the same if no roll had given anything beside
             its expectation; `winrate`, the expected score of player 0; `drawrate` and `lead`; null where not known.
    """
    lucks = {each.rolls.end: each.luck for each in review.rolls}
    luck = 0.0
    plies: list[dict[str, object]] = []
    for ply, value in enumerate(review.values):
        luck += lucks.get(ply, 0.0)
        plies.append(
            {
                "value": round(value, 4),
                "withoutLuck": round(value - luck, 4),
                "winrate": _rounded(review.winrates[ply]),
                "drawrate": _rounded(review.draws[ply]),
                "lead": _rounded(review.leads[ply], 2),
            }
        )
    numbers = {id(each): number for number, each in enumerate(review.turns)}
    bounds: dict[str, object] = {kind: round(bound, 4) for bound, kind in review.scale.bounds}
    return {
        "unit": review.unit,
        "judge": f"{judge} {doubt_of(review.scale)}".strip(),
        "verdict": verdict_of(review, loser),
        "scale": {
            "random": _rounded(review.scale.random, 1),
            "bot": _rounded(review.scale.bot, 1),
            **bounds,
        },
        "players": [
            {
                "accuracy": _rounded(review.accuracy(player), 1),
                "lost": round(review.lost(player), 6),
                "luck": round(review.luck(player), 6),
                "largest": [numbers[id(each)] for each in review.largest(player)],
            }
            for player in (0, 1)
        ],
        "turns": [_describe_turn(each, positions) for each in review.turns],
        "rolls": [
            {
                "ply": each.rolls.ply,
                "plies": len(each.rolls.names),
                "names": each.rolls.names,
                "luck": round(each.luck, 4),
            }
            for each in review.rolls
        ],
        "plies": plies,
    }


def _describe_turn(judged: JudgedTurn, positions: Sequence[Game]) -> dict[str, object]:
    turn = judged.turn
    before, after = positions[turn.ply], positions[turn.end]
    return {
        "ply": turn.ply,
        "plies": len(turn.moves),
        "by": turn.by,
        "moves": action_names(before, turn.moves),
        "best": action_names(before, judged.best),
        "lost": round(judged.lost, 4),
        "margin": round(judged.margin, 4),
        "clear": judged.is_clear,
        "mistake": judged.kind,
        "points": _rounded(judged.points, 1),
        "line": action_names(before, judged.line[:LINE]),
        "answer": action_names(after, judged.answer[:LINE]),
        "choices": _choices(judged),
    }


def _choices(judged: JudgedTurn) -> int:
    """Return the number of legal moves where the best turn first differs from the one played; 0 if it is the same."""
    turn = judged.turn
    for position, played, better in zip(turn.positions, turn.moves, judged.best, strict=False):
        if played != better:
            return len(position.legal_actions())
    return 0


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


def _clearly_worse(turns: int) -> str:
    return "a turn that was clearly worse" if turns == 1 else f"{turns} turns that were clearly worse"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
