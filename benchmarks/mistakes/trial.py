"""The trial of a mistake: is it found, by which law or warning, and after how many CPU seconds?"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mistakes.planted import Make, Mistake
from plyzero.check.agreement import agreement_with
from plyzero.check.ends import ends_of, first_moves
from plyzero.check.laws import rule_answers
from plyzero.check.sampling import Extent, Sample
from plyzero.check.survey import survey, warnings, warnings_of_results
from plyzero.check.violations import find_position_violation, find_violation
from plyzero.rules.random_game import random_move

EQUIVALENT_GAMES = 2000  # random games that tell whether a mistake changes anything
CLEAR_SHARE = 0.15  # difference of a share, or relative difference of a mean, that a reader sees
SECONDS = 120  # CPU seconds after which a trial ends


@dataclass
class Trial:
    """The result of a trial.

    operator, where, contradicts: those of the Mistake.
    game:     the name of the game.
    found_by: the name of the law, or "warning"; "" if nothing was found.
    what:     the first line of the message.
    moves:    the length of the shortest example; -1 without one.
    seconds:  CPU seconds until the mistake was named, or until the end.
    against:  the same for `--against` the game without the mistake; "" if it was not found, or not asked.
    visible:  what the figures at the end of check show of a mistake that was not found; "" if they are alike.
    changes:  what the mistake changes in random games: "nothing", or the names of the methods.
    """

    game: str
    operator: str
    where: str
    contradicts: bool
    found_by: str = ""
    what: str = ""
    moves: int = -1
    seconds: float = 0.0
    against: str = ""
    changes: str = ""
    visible: str = ""


class Asked(NamedTuple):
    """A mistake to try in the game of this name, which `make` begins; `known`: the kinds of warnings without it."""

    game: str
    make: Make
    mistake: Mistake
    known: frozenset[str]


def try_mistakes(asked: Iterable[Asked], jobs: int) -> Iterator[Trial]:
    """Yield the trials of mistakes, each in a process of its own, `jobs` at a time, in the order of their ends."""
    context = multiprocessing.get_context("fork")
    running: dict[Any, tuple[Any, Trial]] = {}
    left = iter(asked)
    while True:
        while len(running) < jobs and (each := next(left, None)) is not None:
            here, there = context.Pipe(duplex=False)
            trial = Trial(each.game, each.mistake.operator, each.mistake.where, each.mistake.contradicts)
            process = context.Process(target=_run, args=(trial, each, there))
            process.start()
            there.close()
            running[here] = (process, trial)
        if not running:
            return
        for here in wait([*running]):
            process, trial = running[here]
            try:
                running[here] = (process, here.recv())
            except EOFError:  # the process has ended, or was ended after SECONDS
                process.join()
                del running[here]
                yield trial


def _run(trial: Trial, asked: Asked, results: Any) -> None:
    """Send the trial when the mistake is named, and again when more is known."""
    make, mistake = asked.make, asked.mistake
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    began = time.process_time()

    def named(found_by: str, what: str, moves: int) -> None:
        if not trial.found_by:
            trial.seconds = time.process_time() - began
        trial.found_by, trial.what, trial.moves = found_by, what.partition("\n")[0], moves
        results.send(trial)

    try:
        find(mistake.make, named, asked.known)
    except Exception as error:  # a game that cannot even begin
        named("error", f"{type(error).__name__}: {error}", 0)
    if not trial.found_by:
        trial.seconds = time.process_time() - began
        results.send(trial)
    if not trial.found_by or not mistake.contradicts:
        trial.against = differs_from(mistake.make, make)
        results.send(trial)
    if not trial.found_by:
        trial.changes = trial.against or changes(mistake.make, make)
        trial.visible = visible(mistake.make, make) if trial.against else ""
        results.send(trial)


def find(make: Make, named: Any, known: frozenset[str]) -> None:
    """Check a game as `plyzero check` does; `named` is called when a mistake is named, and for a shorter example."""
    start = make()
    sample = Sample(start, Extent())

    def warn(found: Iterator[str]) -> None:
        for sentence in found:
            if kind_of(sentence) not in known:
                named("warning", sentence, -1)
                return

    violation = find_violation(
        make,
        sample=sample,
        on_violation=lambda found: named(found.law.name, found.what, len(found.moves)),
        on_games=lambda sample: warn(warnings_of_results(sample.results)),
    )
    if violation:
        named(violation.law.name, violation.what, len(violation.moves))
    else:
        warn(warnings(sample))


def kind_of(warning: str) -> str:
    """Return a warning without its numbers."""
    return "".join(each for each in warning if not each.isdigit())[:60]


def known_warnings(make: Make) -> frozenset[str]:
    """Return the kinds of the warnings about a game."""
    return frozenset(map(kind_of, warnings(Sample(make(), Extent()))))


def differs_from(make: Make, original: Make) -> str:
    """Return what `check --against` says first of two games; "" if they agree."""
    law = agreement_with(original)
    broken = find_position_violation(make, [law], Extent(), [], lambda doing, number: None, lambda found: None)
    return broken.what.partition("\n")[0] if broken else ""


def visible(make: Make, original: Make) -> str:
    """Return which figures at the end of check are clearly different from those of `original`, "" if none is."""
    one, other = (Sample(each(), Extent()) for each in (make, original))
    here, there = survey(one.start, sample=one), survey(other.start, sample=other)
    pairs = {
        "first moves": [[*first_moves(each.start)] for each in (one, other)],
        "kinds of ends": [{end.how for end in ends_of(each.games) if end.games > 1} for each in (one, other)],
    }
    found = [name for name, (mine, right) in pairs.items() if mine != right]
    if max(abs(a - b) for a, b in zip(here.results, there.results, strict=True)) > CLEAR_SHARE:
        found.append("results")
    means = {"plies": (here.plies[1], there.plies[1]), "branching": (here.branching[0], there.branching[0])}
    found += [name for name, (mine, right) in means.items() if abs(mine - right) > CLEAR_SHARE * right]
    return ", ".join(found)


def changes(make: Make, original: Make) -> str:
    """Return which methods answer otherwise than those of `original` in EQUIVALENT_GAMES random games.

    A key() does so if two positions have the same one whose keys in `original` are different.
    """
    found: set[str] = set()
    keys: dict[object, object] = {}
    for number in range(EQUIVALENT_GAMES):
        position, other = make(), original()
        rng = np.random.default_rng(number)
        for _ in range(position.max_plies):
            one, two = rule_answers(position), rule_answers(other)
            if "key()" in two and keys.setdefault(one.pop("key()"), two["key()"]) != two.pop("key()"):
                found.add("key()")
            found |= {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}
            if found or position.outcome() is not None or other.outcome() is not None:
                break
            move = random_move(other, rng)
            position, other = position.play_unchecked(move), other.play_unchecked(move)
        if found:
            return " ".join(sorted(found))
    return "nothing"
