"""A review of a whole game: what each move has lost, and how accurately both sides have played."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from plyzero.play.players import Bot
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game
from plyzero.search.slots import SearchResult
from plyzero.web.searches import Event, Report

MISTAKES: Final = ((0.3, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))
"""What a move is called that loses so much of the expected score or more; lichess uses the same bounds."""

TOGETHER: Final = 64
"""So many positions are searched before progress is reported again."""


def review(bot: Bot, positions: Sequence[Game], moves: Sequence[int]) -> Callable[[Report], Event]:
    """Return the review of a game by `bot`: its `positions`, and the `moves`, rolls among them, between them.

    plies:    of each position `winrate` and `drawrate` for player 0, null where a roll comes next; of each move of a
              player also `by`, `lost` of the expected score against the best move, the name of the `best` move, and
              `mistake`: "inaccuracy", "mistake", "blunder" or null.
    accuracy: of both players, in percent; null for one who has not moved.
    done_of:  [searched, all], in the events before.
    """

    def run(report: Report) -> Event:
        decisions = [ply for ply, each in enumerate(positions) if each.outcome() is None and not is_chance(each)]
        found = dict(zip(decisions, _search(bot, [positions[ply] for ply in decisions], report), strict=True))
        scores = {ply: _expected(positions[ply], found.get(ply), player=0) for ply in range(len(positions))}
        plies: list[dict[str, Any]] = []
        for ply, position in enumerate(positions):
            entry: dict[str, Any] = {"winrate": scores[ply], "drawrate": found[ply].draw if ply in found else None}
            if ply in found and ply < len(moves):
                entry |= _judge(position, found[ply], moves[ply], scores[ply + 1])
            plies.append(entry)
        return {"plies": plies, "accuracy": [_accuracy(plies, player) for player in (0, 1)]}

    return run


def _search(bot: Bot, positions: Sequence[Game], report: Report) -> list[SearchResult]:
    results: list[SearchResult] = []
    for first in range(0, len(positions), TOGETHER):
        report({"done_of": [first, len(positions)]})
        results += bot.search(positions[first : first + TOGETHER])
    return results


def _expected(position: Game, result: SearchResult | None, *, player: int) -> float | None:
    """Return the expected score of `player`, from 0 to 1; None where a roll comes next."""
    outcome = position.outcome()
    if outcome is not None:
        return (1 + outcome.value(player)) / 2
    if result is None:
        return None
    value = _value(result)
    return (1 + (value if position.to_play == player else -value)) / 2


def _value(result: SearchResult) -> float:
    """Return the value of the best action: the root's own is a mean over the bad ones too."""
    q = float(result.q[result.actions == result.best_action()][0])
    return result.value if math.isnan(q) else q


def _judge(position: Game, result: SearchResult, move: int, after: float | None) -> dict[str, Any]:
    """Return what a move has lost.

    after: the expected score of player 0 after the move; None where a roll comes next: luck is no mistake, so the value
           that the search gives to the move is taken then, if it has looked at it.
    """
    mover, best = int(position.to_play), result.best_action()
    value = {int(action): float(q) for action, q in zip(result.actions, result.q, strict=True)}
    played = (1 + value[move]) / 2 if after is None else (after, 1 - after)[mover]
    expected = (1 + _value(result)) / 2
    lost = 0.0 if move == best or math.isnan(played) else max(0.0, expected - played)
    mistake = next((name for bound, name in MISTAKES if lost >= bound), None)
    return {"by": mover, "lost": round(lost, 4), "best": position.action_name(best), "mistake": mistake}


def _accuracy(plies: Sequence[dict[str, Any]], player: int) -> float | None:
    """Return the mean accuracy of the moves of `player`, in percent.

    A move that loses nothing has 100 %; one that loses a share x of the expected score has
    103.17 exp(-4.354 x) - 3.17 %, a curve that lichess has published, and at least 0.
    """
    losses = [each["lost"] for each in plies if each.get("by") == player]
    if not losses:
        return None
    shares = [min(100.0, max(0.0, 103.1668 * math.exp(-4.354 * lost) - 3.1669)) for lost in losses]
    return round(sum(shares) / len(shares), 1)
