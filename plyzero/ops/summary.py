"""A run in two lines, everywhere the same: what it has reached and whether it learns; what it waits for, what is left.

They are the first two lines of `status`, of the dashboard, of `train` and of the log of every role. The bars are those
of `train` on a terminal.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from plyzero.play.scores import MatchResult
from plyzero.play.strength import explained
from plyzero.run.budget import budget_of_trainer, describe_left, describe_minutes, read_trainer
from plyzero.run.directory import RunDirectory
from plyzero.run.events import BEFORE, Beat, Progress, Scores, is_before, last_scores
from plyzero.run.segments import bootstrap_positions
from plyzero.settings import Settings

WAITING: Final = re.compile(r"waiting for (\d+) positions")
"""The state of a trainer that has too few positions."""


def summarize(
    run: RunDirectory,
    *,
    trainer: Progress | None,
    ratings: Sequence[Scores],
    made: float,
    waiting: str = "",
) -> tuple[str, str]:
    """Return the two lines of a run.

    trainer: the newest heartbeat of the trainer.
    ratings: the newest scores, oldest first.
    made:    the positions for the first model so far.
    waiting: which processes wait, and for what, as a clause; "" if that is not known.
    """
    found = trainer or Progress()
    has_passed = any(map(is_before, found.confirmed))
    before = describe_before(last_scores(run.root / BEFORE / "metrics"), ratings, has_passed=has_passed)
    if found.step or ratings:
        reached = f"Step {found.step:,.0f} after {found.games:,.0f} games and {found.minutes:.0f} min"
        judged_from = math.ceil(run.settings.trainer.mature_steps)
        first = f"{reached}. {describe_learning(ratings, found.step, judged_from)}{before}"
    else:
        told = as_sentence(describe_first_model(run.settings, made=made, trainer=found))
        first = f"No model yet. {told}{before}"
    if found.done:
        return first, as_sentence(waiting or f"the training is over: {found.done} reached")
    return first, " ".join(filter(None, [as_sentence(waiting), as_sentence(describe_rest(run, trainer))]))


def summarize_files(run: RunDirectory) -> tuple[str, str]:
    """Return the two lines of a run from its files, without what its processes wait for. Raises OSError."""
    trainer = read_trainer(run)
    has_learned = trainer is not None and trainer.step > 0
    made = 0 if has_learned else bootstrap_positions(run.segments)
    return summarize(run, trainer=trainer, ratings=last_scores(run.metrics), made=made)


def describe_rest(run: RunDirectory, trainer: Progress | None) -> str:
    """Return how much is left of the budget of a run, as a clause."""
    budget = budget_of_trainer(run, trainer)
    parts = [f"{value:,} {name}" for name, value in budget.model_dump(exclude_none=True, exclude={"until"}).items()]
    ends = [*parts, *([budget.until] if budget.until else [])]
    if not ends:
        return "it goes on until it is stopped"
    left = describe_left(budget, trainer or Progress())
    return f"{f'{left} of' if left else 'the budget is'} {' or '.join(ends)}"


class Bar(NamedTuple):
    """The part of a task that is done.

    done:  from 0 to 1.
    begun: the part that is being made, from 0 to 1 - done.
    text:  in numbers.
    """

    name: str
    done: float
    begun: float
    text: str


class FirstModel(NamedTuple):
    """The way of a run to its first model.

    counted: what is counted: "positions", which workers make, or "steps" of the training on them.
    """

    counted: Literal["positions", "steps"]
    done: int
    wanted: int


def first_model(settings: Settings, *, made: float, trainer: Progress) -> FirstModel:
    """Return how far a run is from its first model.

    made: the positions that its workers have made for it.
    """
    wanted = float(settings.selfplay.bootstrap_positions)
    read = trainer.bootstrap_positions + trainer.generated_positions
    missing = WAITING.match(trainer.state)
    if missing:
        wanted = min(wanted, read + int(missing[1]))
    if read < wanted and (missing or not trainer.trained_positions):
        return FirstModel("positions", int(min(wanted, max(read, made))), int(wanted))
    trained, batch = trainer.trained_positions, settings.trainer.batch_size
    left = settings.left_for_first_model(trained=trained, credit=trainer.credit) // batch
    done = int(trained) // batch
    return FirstModel("steps", done, done + left)


def describe_first_model(settings: Settings, *, made: float, trainer: Progress) -> str:
    """Return `first_model` as a clause."""
    found = first_model(settings, made=made, trainer=trainer)
    if found.counted == "positions":
        return f"first model after {found.wanted} positions: {found.done} so far"
    read = trainer.bootstrap_positions + trainer.generated_positions
    return f"first model: step {found.done} of {found.wanted}, from {read:.0f} positions"


def first_model_bar(found: FirstModel, begun: float, *, minutes: float | None = None) -> Bar:
    """Return a bar for the first model.

    begun:   positions in games that are not finished.
    minutes: about how long it takes until there are enough positions; None if that is not known.
    """
    if found.counted == "steps":
        return Bar("first model", found.done / max(1, found.wanted), 0.0, f"step {found.done} of {found.wanted}")
    done = found.done / found.wanted
    text = f"{found.done} of {found.wanted} positions{_left(minutes)}"
    return Bar("first model", done, min(1 - done, begun / found.wanted), text)


def budget_bar(used: float, *, minutes: float | None = None) -> Bar:
    """Return a bar for a budget of which a share is used. minutes: about how long the rest takes, None if unknown."""
    return Bar("budget", used, 0.0, f"{100 * used:.0f} %{_left(minutes)}")


def _left(minutes: float | None) -> str:
    return "" if minutes is None else f", {describe_minutes(minutes)}"


def describe_games(workers: Sequence[Beat]) -> str:
    """Return the games that workers play at the moment, as a clause; "" if they have none."""
    games = sum(each.games_under_way for each in workers)
    plies = sum(each.plies_under_way for each in workers)
    return f"{games:.0f} games under way, {plies / games:.0f} plies each so far" if games else ""


def describe_learning(ratings: Sequence[Scores], step: float, judged_from: int) -> str:
    """Return whether a run learns, in a sentence: by the newest score against the strongest opponent it has had.

    That is compared with the score of ten minutes before, or with the first one. Before the step `judged_from` nothing
    is said to be wrong.
    """
    measured = _by_opponent(ratings)
    if not measured:
        return "Not measured yet." if step >= judged_from else f"Learning is judged from step {judged_from} on."
    name = _strongest(measured)
    times = [time for time, _ in measured[name]]
    earlier = max(0, bisect_right(times, times[-1] - 600) - 1)
    minutes = max(1, round((times[-1] - times[earlier]) / 60))
    now, before = measured[name][-1][1], measured[name][earlier][1]
    low, high = now.interval()
    then = f", was {before.score:.0%} {minutes} minute{'s' * (minutes > 1)} ago"
    if len(times) == 1:
        word, then = "Measured", ""
    else:
        word = "Learning" if low > before.score else "Worse than before" if high < before.score else "No clear change"
    sentence = f"{word}: {now.score:.0%} ({low:.0%} to {high:.0%}) against {name}{then}."
    return explained(sentence.replace("%", " %"))


def describe_before(earlier: Sequence[Scores], ratings: Sequence[Scores], *, has_passed: bool = False) -> str:
    """Return the newest score of the run before, and whether its last model is passed, in a sentence after a space.

    "" if neither is known.

    earlier:    the newest scores of the run before.
    ratings:    those of the run itself.
    has_passed: whether a model has passed it, whose scores need not be among `ratings` any more.
    """
    parts = []
    if measured := _by_opponent(earlier):
        name = _strongest(measured)
        parts.append(f"the run before had {_percent(measured[name][-1][1])} against {name}")
    against = [(found, counts) for found in ratings for name, counts in found.counts.items() if is_before(name)]
    passing = [each for each in against if each[0].confirmed and is_before(each[0].confirmed["quantity"])]
    if has_passed or passing:
        word, decided = "passed", passing
    else:
        word, decided = "not yet passed", against
    for scores, counts in decided[-1:]:
        parts.append(f"step {scores.model.step} scored {_percent(MatchResult(*counts))} against its last model: {word}")
    return f" {as_sentence('; '.join(parts))}" if parts else ""


def _by_opponent(ratings: Sequence[Scores]) -> dict[str, list[tuple[float, MatchResult]]]:
    """Return the times and results against each opponent of constant strength, but the last model of the run before."""
    measured: dict[str, list[tuple[float, MatchResult]]] = {}
    for found in ratings:
        for opponent, counts in found.counts.items() if found.time is not None else ():
            if not is_before(opponent):
                measured.setdefault(opponent, []).append((found.time or 0.0, MatchResult(*counts)))
    return measured


def _strongest(measured: Mapping[str, Sequence[tuple[float, MatchResult]]]) -> str:
    """Return the strongest of the opponents that were measured last."""
    return max(measured, key=lambda name: (measured[name][-1][0], [*map(int, re.findall(r"\d+", name))]))


def _percent(result: MatchResult) -> str:
    low, high = result.interval()
    return f"{result.score:.0%} ({low:.0%} to {high:.0%})".replace("%", " %")


def as_sentence(clause: str) -> str:
    """Return a clause as a sentence, "" for none."""
    return f"{clause[:1].upper()}{clause[1:]}." if clause else ""
