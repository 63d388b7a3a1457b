"""A review of a game: what each turn has lost, how sure that is, and what the rolls gave.

The value of the game changes only by turns and by rolls. A turn is compared with the best one: the difference is what
it has lost. A roll is compared with the expectation over all rolls: the difference is luck. Together they add up to
the result. Where a loss is not clear, the judge searches on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plyzero.kits.review.by_ends import EndsJudging
from plyzero.kits.review.by_tree import TreeJudging
from plyzero.kits.review.scale import Kind, Scale
from plyzero.kits.review.turns import Rolls, Turn, turns_of
from plyzero.kits.review.verdicts import Judging, Unit, Verdict

if TYPE_CHECKING:
    from plyzero.kits.engines.game_record import GameRecord
    from plyzero.kits.review.values import Valuer

FURTHER: Final = 4
"""Factor by which the simulations grow when a turn whose loss is not clear is searched again."""

MOST: Final = 64
"""At most so many times as many as at first."""

BUDGET: Final = 2.0
"""Searching on takes at most so many times the simulations of the first search."""

LARGEST: Final = 3
"""Number of losses that are named whatever they cost."""


@dataclass(frozen=True)
class JudgedTurn:
    """A turn and what it has lost, in the unit of the review.

    best:   the moves of the best turn, those played if no better one is known.
    lost:   what the turn has lost against the best one.
    margin: the uncertainty of `lost`: in 19 of 20 such turns a longer search changes it by less; 0 = it is proven.
    kind:   "inaccuracy", "mistake" or "blunder"; None if the loss is smaller, or not clear. By what it has lost at
            least, `lost - margin`, a blunder is one too, and a mistake is at least an inaccuracy.
    points: what it has lost in points, beside the expected score, if the judge estimates points.
    line:   the best turn and what is expected to follow; () where no better turn is known.
    answer: what is expected to follow the turn that was played.
    """

    turn: Turn
    best: tuple[int, ...]
    lost: float
    margin: float
    kind: Kind | None
    points: float | None
    line: tuple[int, ...]
    answer: tuple[int, ...]

    @property
    def is_clear(self) -> bool:
        """Whether the turn has certainly lost something."""
        return self.lost > self.margin


@dataclass(frozen=True)
class JudgedRolls:
    """Rolls in a row and what they gave player 0 beside their expectation."""

    rolls: Rolls
    luck: float


@dataclass(frozen=True)
class Review:
    """The review of a game. Values are for player 0, in the unit of the review.

    opening:  number of moves and rolls at the beginning that nobody has chosen; they lose nothing and are no luck.
    values:   of every position.
    winrates: the expected score of player 0, draws: the probability of a draw, leads: the expected points of player 0;
              None where they are not known.
    """

    unit: Unit
    scale: Scale
    opening: int
    turns: Sequence[JudgedTurn]
    rolls: Sequence[JudgedRolls]
    values: Sequence[float]
    winrates: Sequence[float | None]
    draws: Sequence[float | None]
    leads: Sequence[float | None]

    def luck(self, player: int) -> float:
        """Return what all rolls gave a player beside their expectation."""
        total = sum(each.luck for each in self.rolls)
        return -total if player else total

    def lost(self, player: int) -> float:
        """Return what all turns of a player have lost."""
        return sum(each.lost for each in self.turns if each.turn.by == player)

    def accuracy(self, player: int) -> float | None:
        """Return the mean accuracy of the turns of a player who had a choice, in percent; None without any."""
        chosen = [each for each in self.turns if each.turn.by == player and each.turn.ply >= self.opening]
        losses = [each.lost for each in chosen if each.turn.has_choice]
        return self.scale.accuracy(losses)

    def largest(self, player: int | None = None) -> list[JudgedTurn]:
        """Return the turns that lost most, of a player or of both: clear losses first, at most LARGEST."""
        found = [each for each in self.turns if each.lost > 0 and player in (None, each.turn.by)]
        found.sort(key=lambda each: (not each.is_clear, -each.lost))
        return found[:LARGEST]


def review(valuer: Valuer, scale: Scale, record: GameRecord, simulations: int) -> Review:
    """Return the review of a game, with so many simulations for each position or turn."""
    valuer.restart()
    judging, turns, rolls = _judging(valuer, record)
    levels = [simulations] * len(turns)
    judging.search(range(len(turns)), simulations)
    verdicts = _search_on(judging, scale, turns, levels)
    values, leads = judging.values(verdicts), judging.leads()
    values[: record.opening] = [values[record.opening]] * record.opening  # nobody has chosen these moves
    judged: list[JudgedTurn] = []
    margins = _margins(judging, scale, levels)
    for turn, verdict, uncertainty in zip(turns, verdicts, margins, strict=True):
        lost = 0.0 if turn.ply < record.opening else _lost(turn, verdict)
        margin = 0.0 if verdict.is_exact else uncertainty
        line = judging.line(turn.ply, verdict.best) if lost else ()
        judged.append(
            JudgedTurn(
                turn,
                best=_of_turn(turn, verdict.best),
                lost=lost,
                margin=margin,
                kind=_kind(scale, lost, margin),
                points=_points_lost(turn, leads) if lost and valuer.unit == "score" else None,
                line=line,
                answer=judging.line(turn.end, ()) if lost else (),
            )
        )
    return Review(
        unit=valuer.unit,
        scale=scale,
        opening=record.opening,
        turns=judged,
        rolls=[JudgedRolls(each, values[each.end] - values[each.ply]) for each in rolls],
        values=values,
        winrates=judging.winrates(verdicts),
        draws=judging.draws(),
        leads=leads,
    )


def cost(valuer: Valuer, record: GameRecord, simulations: int) -> int:
    """Return about the number of simulations of the first search of all turns of a game."""
    judging, turns, _ = _judging(valuer, record)
    return sum(judging.cost(number, simulations) for number in range(len(turns)))


def losses(valuer: Valuer, record: GameRecord, simulations: int) -> list[tuple[Turn, float]]:
    """Return each turn of a game and what it has lost by one search, which is not repeated where it is not clear."""
    judging, turns, _ = _judging(valuer, record)
    judging.search(range(len(turns)), simulations)
    verdicts = judging.verdicts([0.0] * len(turns))
    return [(turn, _lost(turn, verdict)) for turn, verdict in zip(turns, verdicts, strict=True)]


def _judging(valuer: Valuer, record: GameRecord) -> tuple[TreeJudging | EndsJudging, list[Turn], list[Rolls]]:
    """Return how a game is judged: by the ends of turns if chance moves or points count, else by trees."""
    turns, rolls = turns_of(record.positions, record.moves)
    if valuer.bot.game.start.num_chances or valuer.unit == "points":
        return EndsJudging(valuer, record.positions, turns, rolls), turns, rolls
    return TreeJudging(valuer, record.positions, record.moves, turns), turns, rolls


def _search_on(judging: Judging, scale: Scale, turns: Sequence[Turn], levels: list[int]) -> list[Verdict]:
    """Search turns again whose losses matter and are not clear, the largest first; `levels` changes. Return verdicts.

    A loss matters if it is half that of an inaccuracy, or among the largest. It is clear at twice its margin.
    """
    most = MOST * max(levels, default=0)
    budget = _Budget(BUDGET * sum(judging.cost(number, level) for number, level in enumerate(levels)))
    while True:
        margins = _margins(judging, scale, levels)
        verdicts = judging.verdicts(margins)
        matter = _that_matter(turns, verdicts, scale)
        confirmed = [
            number
            for number in matter
            if budget.pays(levels[number] * len(judging.unconfirmed(number, levels[number])))
        ]
        for level in sorted({levels[number] for number in confirmed}):
            judging.confirm([number for number in confirmed if levels[number] == level], level)
        if confirmed:
            continue
        deeper: set[int] = set()
        for number, lost in matter.items():
            if lost <= 2 * margins[number]:
                shallow = _least_searched(judging, number, levels) - deeper
                if all(FURTHER * levels[each] <= most for each in shallow) and budget.pays(
                    sum(judging.cost(each, FURTHER * levels[each]) for each in shallow)
                ):
                    deeper |= shallow
        if not deeper:
            return verdicts
        for level in sorted({levels[number] for number in deeper}):
            judging.search([number for number in sorted(deeper) if levels[number] == level], FURTHER * level)
        for number in deeper:
            levels[number] *= FURTHER


class _Budget:
    """The number of simulations that are left."""

    def __init__(self, left: float) -> None:
        self._left = left

    def pays(self, cost: int) -> bool:
        """Take `cost` from what is left; return False, and take nothing, if that is less or the cost is 0."""
        if not 0 < cost <= self._left:
            return False
        self._left -= cost
        return True


def _that_matter(turns: Sequence[Turn], verdicts: Sequence[Verdict], scale: Scale) -> dict[int, float]:
    """Return the numbers of the turns whose losses matter, and are not proven, with these losses; the largest first."""
    losses = {number: _lost(turn, verdicts[number]) for number, turn in enumerate(turns)}
    order = sorted(losses, key=lambda number: -losses[number])
    least = scale.bounds[-1][0] / 2
    return {
        number: losses[number]
        for rank, number in enumerate(order)
        if losses[number] > 0 and (losses[number] >= least or rank < LARGEST) and not verdicts[number].is_exact
    }


def _margins(judging: Judging, scale: Scale, levels: Sequence[int]) -> list[float]:
    """Return the uncertainty of each loss: that of the least searched turn on which it depends."""
    return [scale.margin(min(levels[each] for each in judging.searches_of(number))) for number in range(len(levels))]


def _least_searched(judging: Judging, number: int, levels: Sequence[int]) -> set[int]:
    """Return those turns with the fewest simulations on which the loss of a turn depends."""
    searches = judging.searches_of(number)
    least = min(levels[each] for each in searches)
    return {each for each in searches if levels[each] == least}


def _kind(scale: Scale, lost: float, margin: float) -> Kind | None:
    """Return the name of a turn that has lost so much."""
    if lost <= margin:
        return None
    kind, at_least = scale.kind(lost), scale.kind(lost - margin)
    if kind == "blunder" and at_least != "blunder":
        kind = "mistake"
    if kind == "mistake" and at_least is None:
        kind = "inaccuracy"
    return kind


def _lost(turn: Turn, verdict: Verdict) -> float:
    return max(0.0, turn.sign() * (verdict.before - verdict.after))


def _of_turn(turn: Turn, moves: Sequence[int]) -> tuple[int, ...]:
    """Return those of `moves`, from the beginning of a turn on, that belong to it."""
    position, own = turn.positions[0], list[int]()
    for move in moves:
        if position.to_play != turn.by:
            break
        own.append(move)
        position = position.play_unchecked(move)
    return tuple(own)


def _points_lost(turn: Turn, leads: Sequence[float | None]) -> float | None:
    before, after = leads[turn.ply], leads[turn.end]
    return None if before is None or after is None else max(0.0, turn.sign() * (before - after))
