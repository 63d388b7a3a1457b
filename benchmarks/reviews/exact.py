"""Reviews of Connect Four and Othello 6x6 beside the exact values of the moves."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from benchmarks.reviews.games import mixed_game
from benchmarks.reviews.judges import Reviewer, progress, share
from benchmarks.strength.exams import STRATA
from benchmarks.strength.solver import Solver
from plyzero.rules.catalog import GameSpec
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

FIRST: Final = {"connect-four": 0, "othello(size=6)": STRATA["othello(size=6)"][0][0] - 2}
"""The ply from which on the solver is fast enough."""

LOSSES: Final = {2: "a whole win", 1: "half a win", 0: "nothing"}


def exact_row(game: GameSpec, games: int, simulations: int, seed: int) -> None:
    """Print the precision of blunders, and the recall of moves that lower the exact value."""
    reviewer, value, first = Reviewer(game), solver_of(game), FIRST[game.name]
    found: Counter[tuple[int, str]] = Counter()
    for number in range(games):
        record = mixed_game(game, (seed, number))
        judged = reviewer.review(record, simulations)
        for each in judged.turns:
            turn = each.turn
            if turn.ply < first or not turn.has_choice:
                continue
            change = value(turn.positions[0]) - value(turn.after)
            exact = turn.sign() * change
            found[exact, each.kind or "none"] += 1
            is_named = each.kind in ("mistake", "blunder")
            if (each.kind == "blunder" and not exact) or (exact and not is_named):
                moves = " ".join(map(str, record.moves[: turn.end]))
                values = f"lost {each.lost:.3f} +- {each.margin:.3f}, {each.kind}, really {exact / 2}"
                print(f"{game.name} game {number} ply {turn.ply}: {values}: {moves}", file=sys.stderr)
        progress(number + 1, games)
    where = f"from ply {first} on" if first else "all plies"
    print(f"{game.name}, {simulations} simulations, {games} games, {sum(found.values())} turns with a choice, {where}")
    print(f"  scale: spread {reviewer.scale.spread:.3f}, margins {dict(reviewer.scale.margins)}")
    for lost, words in LOSSES.items():
        kinds = {kind: found[lost, kind] for kind in ("blunder", "mistake", "inaccuracy", "none")}
        print(f"  turns that lose {words}: {kinds}")
    for kinds in (("blunder",), ("mistake",), ("inaccuracy",)):
        called = sum(found[lost, kind] for lost in LOSSES for kind in kinds)
        right = sum(found[lost, kind] for lost in (1, 2) for kind in kinds)
        print(f"  {kinds[0]}: really loses {share(right, called)}")
    for lost in (2, 1):
        all_ = sum(found[lost, kind] for kind in ("blunder", "mistake", "inaccuracy", "none"))
        named = found[lost, "blunder"] + found[lost, "mistake"]
        print(f"  loses {LOSSES[lost]}: called a mistake or a blunder {share(named, all_)}")


def solver_of(game: GameSpec) -> Callable[[Game], int]:
    """Return the function from a position to its value for player 0: 1, 0 or -1."""
    if game.name == "connect-four":
        return _connect_four_solver()
    assert isinstance(game.start, CompiledGame)
    solver = Solver(game.start)

    def value(position: Game) -> int:
        assert isinstance(position, CompiledGame)
        outcome = position.outcome()
        if outcome is not None:
            return int(outcome.value(0))
        return solver.value(position) * (1 if position.to_play == 0 else -1)

    return value


def _connect_four_solver() -> Callable[[Game], int]:
    from bitbully import BitBully, Board

    solver = BitBully()

    def value(position: Game) -> int:
        outcome = position.outcome()
        if outcome is not None:
            return int(outcome.value(0))
        assert isinstance(position, CompiledGame)
        board = np.asarray(position.record["board"], int)  # the bottom row first
        scores = solver.score_all_moves(Board(board[::-1].tolist()))
        return int(np.sign(max(scores.values()))) * (1 if position.to_play == 0 else -1)

    return value
