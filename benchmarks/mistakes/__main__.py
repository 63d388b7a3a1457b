"""Plant mistakes in the rules of games, and print which of them `plyzero check` finds.

python -m benchmarks.mistakes --write build/mistakes.jsonl --jobs 2
python -m benchmarks.mistakes --read build/mistakes.jsonl          the tables again
python -m benchmarks.mistakes --games chess                        the usual mistakes of chess programs
python -m benchmarks.mistakes --correct                            what check says of correct games, and its CPU seconds

A mistake either makes the parts of a game contradict one another, which a law can find, or makes another game that is
right in itself, which `check --against` and a person can find.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from benchmarks.mistakes.chess_rules import chess_mistakes
from benchmarks.mistakes.interface import interface_mistakes
from benchmarks.mistakes.planted import Make
from benchmarks.mistakes.source import source_mistakes
from benchmarks.mistakes.trial import Asked, Trial, known_warnings, try_mistakes
from plyzero.rules.catalog import load_game

PLAIN = (
    "examples.breakthrough:Breakthrough",
    "examples.dots_and_boxes:DotsAndBoxes",
    "examples.race:Race",
    "benchmarks.mistakes.games.onitama:Onitama",
    "benchmarks.mistakes.games.walls:Walls",
    "benchmarks.mistakes.games.two_moves:TwoMoves",
    "benchmarks.mistakes.games.dice_points:DicePoints",
)
"""Games in plain Python, whose source is changed as well."""

COMPILED = (
    "backgammon",
    "connect-four",
    "go(size=5)",
    "gomoku(size=7)",
    "hex(size=5)",
    "othello(size=6)",
    "pig(goal=40)",
    "tic-tac-toe",
)

HARMLESS = (
    ("*DotsAndBoxes", "a plane is left out", "plane [12]", "the edges and the other plane tell whose a box is"),
    ("*DotsAndBoxes", "a plane is stale", "plane [12]", "the edges and the other plane tell whose a box is"),
    ("*DotsAndBoxes", "a plane is shown twice", "plane 2", "the edges and one's own boxes tell the opponent's"),
    ("*DotsAndBoxes", "*", "observe, line *", "the edges and the other plane tell whose a box is"),
    ("*Onitama", "a counter is not shown", "plane [4-9]", "a card that is nowhere else is there"),
    ("*Onitama", "a counter is not shown", "plane 1[0-8]", "a card that is nowhere else is there"),
    ("*Onitama", "a plane is stale", "plane [4-9]", "a card that is nowhere else is there"),
    ("*Onitama", "a plane is stale", "plane 1[0-8]", "a card that is nowhere else is there"),
    ("*Onitama", "a number is off by one", "observe, line 98: 1", "a two where a one was"),
    ("*Race", "*", "observe, line 5*np.arange(21) == *", "all squares but the right one are as good as this one"),
    ("*Walls", "a counter is not shown", "plane [45]", "the walls on the board and the other number tell it"),
    ("*Walls", "a counter stops half-way", "plane [45]", "the walls on the board and the other number tell it"),
    ("*Walls", "a plane is stale", "plane [45]", "the walls on the board and the other number tell it"),
    ("*Walls", "a plane is stale", "plane 6", "it is always the number of plies less one"),
    ("*Walls", "planes of the wrong player", "planes 0 and 1", "plane 7 says who is to move"),
    ("*Walls", "a number is off by one", "observe, line 149: 5", "the walls on the board tell it"),
    ("*Walls", "a number is off by one", "observe, line 144: 1", "a two where a one was"),
    ("*TwoMoves", "a counter is not shown", "plane 2", "the number of stones tells what is left of the turn"),
    ("*TwoMoves", "a test is off by one or turned", "observe, line *", "zeros and ones are exchanged"),
    ("*DicePoints", "a plane is stale", "plane 3", "it is always the number of plies less one"),
    ("*DicePoints", "a test is off by one or turned", "observe, line *", "zeros and ones are exchanged"),
    ("backgammon", "a counter is not shown", "plane *", "each player has fifteen checkers, and a die one number"),
    ("backgammon", "a plane is stale", "plane *", "each player has fifteen checkers, and a die one number"),
    ("pig*", "*", "plane 0", "nobody has one point"),
    ("go*", "a plane is stale", "plane 3", "the player alternates"),
    ("go*", "planes of the wrong player", "planes 0 and 1", "plane 3 says who is to move"),
    ("hex*", "a plane is stale", "plane 2", "the number of stones tells whether players may swap"),
    ("*", "a name twice", "the first letter only", "the letters are different"),
)
"""Survivors that are no mistakes: patterns of the game, the operator and the place, and the reason."""

CORRECT = (
    *PLAIN,
    *("backgammon", "breakthrough", "chess", "connect-four", "go", "gomoku", "hex", "othello", "pig", "tic-tac-toe"),
    *("go(size=5)", "gomoku(size=7)", "hex(size=5)", "othello(size=6)"),
)
"""Games about which a warning is wrong."""

MOST_OF_SOURCE = 5  # mistakes of an operator in the source of a game


def main() -> None:
    """Plant the mistakes and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=[*PLAIN, *COMPILED])
    parser.add_argument("--operators", nargs="+", default=[], help="only these, by a part of their name")
    parser.add_argument("--write", type=Path, help="a file of JSON lines that gets each result as it comes")
    parser.add_argument("--read", type=Path, help="print the tables of such a file")
    parser.add_argument("--again", type=Path, help="only what was not found in such a file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--correct", nargs="*", metavar="GAME", help="check correct games instead; a warning is wrong")
    given = parser.parse_args()
    if given.correct is not None:
        for game in given.correct or CORRECT:
            print(check_correct(game), flush=True)
        return
    if given.read:
        print("\n".join(report(read(given.read))))
        return
    wanted = {identity(each) for each in read(given.again) if not each.found_by} if given.again else None
    trials = []
    for trial in try_mistakes(planted(given.games, given.operators, wanted), given.jobs):
        trials.append(trial)
        print(f"{trial.seconds:6.1f} s  {trial.found_by or '-':32s} {' | '.join(identity(trial))}", flush=True)
        if given.write:
            with given.write.open("a") as file:
                file.write(json.dumps(asdict(trial)) + "\n")
    print("\n".join(report(trials)))


def check_correct(game: str) -> str:
    """Return a line with the CPU seconds of `plyzero check` of a correct game, and what it reports as wrong."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "plyzero", "check", game]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    reported = [line for line in done.stdout.splitlines() if line.startswith(("warning:", "broken law"))]
    failed = done.stderr.splitlines()[-1:] if done.returncode else []
    return f"{seconds:6.1f} s  {game}: {' | '.join([*reported, *failed]) or 'nothing'}"


def planted(
    games: Sequence[str], operators: Sequence[str], wanted: set[tuple[str, str, str]] | None
) -> Iterator[Asked]:
    """Yield the mistakes to try."""
    for name in games:
        make = maker(name)
        known = known_warnings(make)
        if name == "chess":
            mistakes = [*chess_mistakes()]
        else:
            mistakes = [*interface_mistakes(make), *(source_mistakes(make, MOST_OF_SOURCE) if ":" in name else ())]
        for mistake in mistakes:
            is_asked = not operators or any(part in mistake.operator for part in operators)
            if is_asked and (wanted is None or (name, mistake.operator, mistake.where) in wanted):
                yield Asked(name, make, mistake, known)


def maker(name: str) -> Make:
    """Return a function that makes the initial position of a game; it is tried once, which compiles its rules."""
    spec = load_game(name)
    return lambda: spec.start


def read(path: Path) -> list[Trial]:
    """Return the trials of a file; of a mistake that was tried repeatedly, the last."""
    trials = [Trial(**json.loads(line)) for line in path.read_text().splitlines()]
    return [*{identity(each): each for each in trials}.values()]


def identity(trial: Trial) -> tuple[str, str, str]:
    """Return the game, the operator and the place of a mistake."""
    return trial.game, trial.operator, trial.where


def is_survivor(trial: Trial) -> bool:
    """Return whether a mistake that makes parts contradict one another was not found, although it changes something."""
    return trial.contradicts and not trial.found_by and trial.changes != "nothing" and not is_harmless(trial)


def is_harmless(trial: Trial) -> bool:
    """Return whether a mistake that was not found is none, for a reason that is in HARMLESS."""
    patterns = [each[:3] for each in HARMLESS]
    return not trial.found_by and any(all(map(fnmatch, identity(trial), each)) for each in patterns)


def report(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the tables: by operator, by law, the seconds, and the survivors."""
    same = [each for each in trials if not each.found_by and each.changes == "nothing"]
    harmless = [each for each in trials if is_harmless(each) and each not in same]
    yield f"{len(trials)} mistakes; {len(same)} of them change nothing in 2,000 random games, {len(harmless)} no harm"
    counted = [each for each in trials if each not in same and each not in harmless]
    for contradicts, title in ((True, "parts that contradict one another"), (False, "another game, right in itself")):
        these = [each for each in counted if each.contradicts == contradicts]
        found = [each for each in these if each.found_by]
        yield f"\n{title}: {len(found)} of {len(these)} found, {len(found) / max(1, len(these)):.1%}"
        by_operator = defaultdict(list)
        for each in these:
            by_operator[each.operator].append(each)
        yield f"  {'operator':42s} found     of"
        for operator, group in sorted(by_operator.items()):
            yield f"  {operator:42s} {sum(bool(each.found_by) for each in group):5d}  {len(group):5d}"
        if not contradicts:
            told = sum(bool(each.found_by or each.against) for each in these)
            yield f"  by a law, or by --against the original: {told} of {len(these)}"
            seen = sum(bool(each.found_by or each.visible) for each in these)
            yield f"  by a law, or visible in the figures of the survey: {seen} of {len(these)}"
            continue
        yield f"\n  {'law':42s} found"
        for law, count in Counter(each.found_by for each in found).most_common():
            yield f"  {law:42s} {count:5d}"
        seconds = [each.seconds for each in found] or [0.0]
        moves = [each.moves for each in found if each.moves >= 0] or [0]
        yield f"\n  CPU seconds until it is named: {spread_of(seconds)}; moves of the example: {spread_of(moves)}"
        yield "\n  survivors:"
        for each in these:
            if not each.found_by:
                yield f"  {' | '.join(identity(each))}  (changes {each.changes})"


def spread_of(figures: Sequence[float]) -> str:
    """Return the median and the 95 % quantile in words."""
    return f"median {np.median(figures):.1f}, 95 % {np.quantile(figures, 0.95):.1f}"


if __name__ == "__main__":
    main()
