"""Check every game of OpenSpiel that plyzero can play, and write what it finds as a table.

python benchmarks/openspiel_games.py --seconds 20 --write benchmarks/results/openspiel.md

A line is written as soon as a game is checked. The command continues where it was stopped; a game is checked again
once its version has changed.
"""

import argparse
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from plyzero.errors import UserError
from plyzero.rules.catalog import GameSpec, load_game, openspiel

HEAD = """# OpenSpiel's games

What `plyzero check --seconds {seconds:g}` says of every game of OpenSpiel {version} that plyzero can play, with default
parameters. The page was made by `python benchmarks/openspiel_games.py --seconds {seconds:g} --write FILE`.

A game in which a law does not hold can be trained and played. Where `games_end` does not hold, games are cut off after
max_plies, and self-play does not train on their results. Where `equal_observations_equal_futures` does not hold,
OpenSpiel's observation omits something, so the network cannot tell some positions apart.

| game | laws | random games | observation | actions | symmetries | seconds |
|---|---|---|---|---|---|---|
"""

LENGTH = ("games_end", "games_with_dice_end")
"""The laws that long games break, whose max_plies is less than OpenSpiel's; the others are checked nevertheless."""

TIMES_LONGER = 10
"""After how many times its seconds a check is stopped that does not end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="for each game")
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="the page with the table")
    given = parser.parse_args()
    if not given.write.exists():
        given.write.write_text(HEAD.format(version=version("open-spiel"), seconds=given.seconds))
    for name in openspiel().playable_games():
        game = load_game(f"openspiel:{name}")
        if f"| {game.identity} |" in given.write.read_text():
            continue
        row = row_of(game, given.seconds)
        print(row, flush=True)
        with given.write.open("a") as page:
            page.write(f"{row}\n")


def row_of(game: GameSpec, seconds: float) -> str:
    """Return the table's row about `game`."""
    began = time.monotonic()
    laws, games = verdict(game.name, seconds)
    shape, actions = "x".join(map(str, game.start.observation_shape)), game.start.num_actions
    found = (
        game.identity,
        laws,
        games,
        shape,
        actions,
        len(game.start.symmetries()),
        f"{time.monotonic() - began:.0f}",
    )
    return f"| {' | '.join(map(str, found))} |"


def verdict(name: str, seconds: float, skip: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return which laws do not hold and why, or that all hold, and the number of random games that were played."""
    command = [sys.executable, "-m", "plyzero", "check", name, "--seconds", f"{seconds:g}"]
    command += [part for law in skip for part in ("--skip", law)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMES_LONGER * seconds)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMES_LONGER * seconds:g} s", ""
    if passed := re.search(r"(\d+) laws hold on (\d+)(?: of \d+)? random game", done.stdout):
        return f"{'all' if not skip else 'the other'} {passed[1]} hold", passed[2]
    if not (broken := re.search(r"broken law (\w+): .*\n((?:.*\n)*?)moves: ", done.stdout)):
        raise UserError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    reason = " ".join(broken[2].split()).rpartition("so observe() omits something or a rule is wrong; ")[2]
    found = f"`{broken[1]}` does not hold: {reason.replace('|', '/')}"
    if broken[1] not in LENGTH:
        return found, ""
    others, games = verdict(name, seconds, (*skip, broken[1]))
    return f"{found}; {others}", games


if __name__ == "__main__":
    main()
