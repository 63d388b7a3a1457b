"""A run in two lines, everywhere the same: what it has reached and whether it learns; what it waits for, what is left.

They are the first two lines of `status`, of the dashboard, of `train` and of the log of every role.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence

from plyzero.play.scores import MatchResult
from plyzero.play.strength import explained
from plyzero.run.budget import budget_of_trainer, describe_left, read_trainer
from plyzero.run.directory import RunDirectory
from plyzero.run.events import Beat, Progress, Scores, last_scores
from plyzero.run.segments import bootstrap_positions
from plyzero.settings import Settings


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
    if found.step or ratings:
        reached = f"Step {found.step:,.0f} after {found.games:,.0f} games and {found.minutes:.0f} min"
        judged_from = math.ceil(run.settings.trainer.mature_steps)
        first = f"{reached}. {describe_learning(ratings, found.step, judged_from)}"
    else:
        first = _sentence(f"no model yet; {describe_first_model(run.settings, made=made, trainer=found)}")
    if found.done:
        return first, _sentence(waiting or f"the training is over: {found.done} reached")
    return first, " ".join(filter(None, [_sentence(waiting), _sentence(describe_rest(run, trainer))]))


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


def describe_first_model(settings: Settings, *, made: float, trainer: Progress) -> str:
    """Return how far a run is from its first model, as a clause.

    made: the positions that its workers have made for it.
    """
    wanted, read = settings.selfplay.bootstrap_positions, trainer.bootstrap_positions
    if read < wanted and not trainer.trained_positions:
        return f"games for the first model: {min(wanted, max(read, made)):.0f} of {wanted} positions"
    trained, batch = trainer.trained_positions, settings.trainer.batch_size
    left = settings.left_for_first_model(trained=trained, credit=trainer.credit) // batch
    done = int(trained) // batch
    return f"first model: step {done} of {done + left}, from {read:.0f} positions"


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
    measured: dict[str, list[tuple[float, MatchResult]]] = {}
    for found in ratings:
        for opponent, counts in found.counts.items() if found.time is not None else ():
            measured.setdefault(opponent, []).append((found.time or 0.0, MatchResult(*counts)))
    if not measured:
        return "Not measured yet." if step >= judged_from else f"Learning is judged from step {judged_from} on."
    name = max(measured, key=lambda name: (measured[name][-1][0], [*map(int, re.findall(r"\d+", name))]))
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


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}." if clause else ""
