"""A review of a whole game: what each move has lost, and how accurately both sides have played."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from plyzero.kits.web.searches import Event, Report
from plyzero.kits.web.spots import line_of
from plyzero.play.found_moves import move_infos
from plyzero.play.players import Bot
from plyzero.rules.chance import is_chance
from plyzero.rules.game import Game
from plyzero.search.slots import SearchResult, SearchSlots, at_intervals
from plyzero.search.tree import PROVEN_WIN, UNPROVEN

MISTAKES: Final = ((0.3, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))
"""(smallest loss of expected score, the name of such a move), the largest first; lichess uses the same bounds."""

TOGETHER: Final = 64
"""Number of positions searched at a time: `Bot.search` searches so many in one group, so progress adds up."""


def review(bot: Bot, positions: Sequence[Game], moves: Sequence[int]) -> Callable[[Report], Event]:
    """Return the review of a game by `bot`. `moves`, rolls among them, are the moves between its `positions`.

    A game is judged from its end backwards, because the value of a move is known better after it than before it. The
    value of a position is the value of the position after the move played, or of the best other move if that is
    larger. So nobody gains by a move, and where the score falls, the move played there has lost it. A position before
    a roll is judged by its own search alone, because the roll is luck.

    plies:    for each position `winrate`, `drawrate` and `lead`, the expected points, for player 0; null where a roll
              comes next, and `lead` also where it is not known. A move of a player also has `by`; `lost`, how much less
              the expected score is than after the best move; `best`, the name of that move; and `mistake`:
              "inaccuracy", "mistake", "blunder" or null. A mistake has two principal variations, see `line_of`: `line`
              begins with the best move, and `answer` follows the move played; it is empty where a roll or the end
              comes next.
    accuracy: the accuracy of both players, in percent; null for one who has not moved.
    done_of:  [made, all] simulations, in the events before; fewer are made where a result is proven.
    """

    def run(report: Report) -> Event:
        decisions = [ply for ply, each in enumerate(positions) if each.outcome() is None and not is_chance(each)]
        found = dict(zip(decisions, _search(bot, [positions[ply] for ply in decisions], report), strict=True))
        scores = _exact_scores(positions, moves, found)
        plies: list[dict[str, Any]] = []
        for ply, position in reversed(list(enumerate(positions))):
            judged: dict[str, Any] = {}
            if ply in found:
                move = moves[ply] if ply < len(moves) else None
                scores[ply], judged = _judge(position, found[ply], move, scores.get(ply), scores.get(ply + 1))
            if judged.get("mistake"):
                judged["line"] = _variation(position, found[ply], judged["best"])
                judged["answer"] = _variation(positions[ply + 1], found[ply + 1]) if ply + 1 in found else []
            drawrate = found[ply].draw if ply in found else None
            lead = _lead(position, found.get(ply))
            plies.insert(0, {"winrate": scores.get(ply), "drawrate": drawrate, "lead": lead, **judged})
        return {"plies": plies, "accuracy": [_accuracy(plies, player) for player in (0, 1)]}

    return run


def _search(bot: Bot, positions: Sequence[Game], report: Report) -> list[SearchResult]:
    results: list[SearchResult] = []

    def show(slots: SearchSlots) -> None:
        made = len(results) * bot.simulations + slots.simulations()
        report({"done_of": [made, len(positions) * bot.simulations]})

    show_often = at_intervals(0.3, show, least=0)
    for first in range(0, len(positions), TOGETHER):
        results += bot.search(positions[first : first + TOGETHER], on_batch=show_often)
    return results


def _exact_scores(
    positions: Sequence[Game], moves: Sequence[int], found: Mapping[int, SearchResult]
) -> dict[int, float]:
    """Return ply -> score of player 0 where it is certain: at the end, where a search has proven it, and after that.

    All positions after a proven loss are lost too. After a proven winning move they are lost for the opponent.
    """
    scores: dict[int, float] = {}
    for ply, position in enumerate(positions):
        outcome = position.outcome()
        result = found.get(ply)
        before = found.get(ply - 1)
        if outcome is not None:
            scores[ply] = (1 + outcome.value(0)) / 2
        elif result and result.proven != UNPROVEN:
            scores[ply] = _seen_by(position.to_play, (1 + result.value) / 2)
        elif result and before and ply - 1 in scores:
            lost = _seen_by(positions[ply - 1].to_play, scores[ply - 1]) == 0
            if lost or (before.proven == PROVEN_WIN and moves[ply - 1] == before.best_action()):
                scores[ply] = scores[ply - 1]
    return scores


def _variation(position: Game, result: SearchResult, move: str | None = None) -> list[dict[str, object]]:
    """Return the principal variation of `move`, or of the best one."""
    infos = move_infos(position, result)
    matching = [info for info in infos if info["move"] == move]
    info = matching[0] if matching else infos[0]
    return line_of(position, info["pv"])


def _lead(position: Game, result: SearchResult | None) -> float | None:
    """Return the points by which player 0 leads at the end, or is expected to lead; None if that is not known."""
    outcome = position.outcome()
    if outcome is not None:
        return None if outcome.score is None else outcome.lead(0)
    if result is None or result.score is None:
        return None
    return round(-result.score if position.to_play else result.score, 2)


def _seen_by(player: int, score: float) -> float:
    """Return a score of player 0 as that of `player`, and the other way round."""
    return score if player == 0 else 1 - score


def _judge(
    position: Game, result: SearchResult, move: int | None, exact: float | None, after: float | None
) -> tuple[float, dict[str, Any]]:
    """Return the expected score of player 0, and the judgement of the move played.

    move:  None in the last position.
    exact: the score of player 0 where it is certain.
    after: the score of player 0 after the move; None where a roll comes next. Then the value that the search gives to
           the move is used, if it has visited it.
    """
    mover = int(position.to_play)
    best = result.best_action()
    values = {int(action): (1 + float(q)) / 2 for action, q in zip(result.actions, result.q, strict=True)}
    if move is not None and after is not None:
        values[move] = _seen_by(mover, after)
        best = best if best != move else _most_visited_but(move, result)
        expected = max(values[move], _known(values[best], result))
    else:
        expected = _known(values[best], result)
    if exact is not None:
        expected = _seen_by(mover, exact)
    if move is None:
        return _seen_by(mover, expected), {}
    lost = 0.0 if math.isnan(values[move]) else max(0.0, expected - values[move])
    if move == result.best_action() and lost < MISTAKES[-1][0]:
        lost = 0.0  # the search itself would have played this move, so a small loss is noise
    mistake = next((name for bound, name in MISTAKES if lost >= bound), None)
    judged = {"by": mover, "lost": round(lost, 4), "best": position.action_name(best), "mistake": mistake}
    return _seen_by(mover, expected), judged


def _known(score: float, result: SearchResult) -> float:
    """Return an action's score, or that of the position if the search has not visited the action."""
    return (1 + result.value) / 2 if math.isnan(score) else score


def _most_visited_but(move: int, result: SearchResult) -> int:
    """Return the most visited of the other actions, the best of equals; `move` if no other was visited."""
    others = np.where(result.actions == move, 0, result.visits)
    order = np.lexsort((np.nan_to_num(result.q, nan=-1), others))
    return int(result.actions[order[-1]]) if others.any() else move


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
