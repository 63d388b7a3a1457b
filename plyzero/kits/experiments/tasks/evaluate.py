"""The task that measures a bot: matches against fixed opponents and against the bots of earlier runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from plyzero.errors import UserError
from plyzero.kits.experiments.tasks.results import (
    AGENT,
    CARD,
    EVAL_COLUMNS,
    EVAL_TABLE,
    RESULTS,
    Cell,
    first_seen,
    read_json,
    rounded,
    write_table,
)
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.player import Player
from plyzero.play.players import Bot, find_player
from plyzero.play.session import SIDES
from plyzero.rules.catalog import GameSpec, load_game


def evaluate(
    inputs: Path,
    out: Path,
    *,
    report: Callable[[str], None],
    game: str,
    opponents: Sequence[str],
    games: int,
    seed: int,
    previous: Sequence[str] = (),
    simulations: int = 64,
) -> None:
    """Play a match of `games` games against each opponent, and write eval.csv; equal arguments give an equal file.

    opponents: players as in `plyzero match`.
    previous:  directories of earlier runs, whose bots are opponents too; runs without a bot are reported.

    Raises UserError for an odd number of games, without an opponent, and if the bot is missing.
    """
    check_evaluate(game=game, opponents=opponents, games=games, simulations=simulations)
    spec = load_game(game)
    agent = find_agent(inputs, spec, simulations=simulations)
    fixed = first_seen(opponents)
    players = [(name, name) for name in fixed]
    for run in first_seen(previous):
        players.append((Path(run).name, str(Path(run) / AGENT)))
    rows: list[dict[str, Cell]] = []
    for number, (name, player) in enumerate(players):
        if number >= len(fixed) and not Path(player).exists():
            report(f"{player} does not exist; it is left out")
            continue
        rng = np.random.default_rng([seed, number])
        opponent = find_opponent(player, spec, rng, simulations=simulations)
        row = _play(agent, opponent, spec, games, rng, report)
        rows.append({"opponent": name, "simulations": simulations, **row})
    if not rows:
        raise UserError("expected an opponent, such as -p opponents=mcts:50, got none")
    about: dict[str, Cell] = {"run": inputs.resolve().name, "group": str(read_json(inputs / CARD).get("group", ""))}
    columns = list(EVAL_COLUMNS)
    if spec.start.max_score:
        columns.append("points")
    write_table(out / Path(EVAL_TABLE).name, columns, [about | row for row in rows])


def check_evaluate(*, game: str, opponents: Sequence[str], games: int, simulations: int, **_: object) -> None:
    """Raise UserError for an odd number of games, and if there is no such opponent."""
    if games < 2 or games % 2:
        raise UserError(f"expected an even number of games, so that both sides are played equally often, got {games}")
    check_opponents(opponents, load_game(game), simulations=simulations)


def find_agent(run: Path, game: GameSpec, *, simulations: int) -> Player:
    """Return the trained bot of a run, which plays without randomness. Raises UserError if it is missing."""
    path = run / AGENT
    if not path.is_file():
        raise UserError(f"expected {path}, which the task train writes, but it is not there; run that task first")
    return find_player(str(path), game, np.random.default_rng(), simulations=simulations)


def find_opponent(name: str, game: GameSpec, rng: np.random.Generator, *, simulations: int) -> Player:
    """Return the player `name` of `plyzero match`; all its random numbers come from `rng`.

    Raises UserError if there is no such player.
    """
    player = find_player(name, game, rng, simulations=simulations)
    return player.with_rng(rng.spawn(1)[0]) if isinstance(player, Bot) else player


def check_opponents(names: Sequence[str], game: GameSpec, *, simulations: int) -> None:
    """Raise UserError if there is no such player. Paths are not checked: they may be written later."""
    for name in names:
        if "/" not in name:
            find_opponent(name, game, np.random.default_rng(), simulations=simulations)


def _play(
    agent: Player, opponent: Player, game: GameSpec, games: int, rng: np.random.Generator, report: Callable[[str], None]
) -> dict[str, Cell]:
    counts: Counter[str] = Counter()

    def count(played: PlayedGame) -> None:
        value = 0 if played.outcome is None else played.outcome.value(int(played.swapped))
        counts[f"{SIDES[played.swapped]}_{RESULTS[1 - value]}"] += 1

    result = play_match(
        agent,
        opponent,
        game.start,
        games=games,
        rng=rng,
        on_progress=lambda finished, plies: report(f"{finished} of {games} games against {opponent.name}"),
        on_game=count,
    )
    low, high = result.interval()
    elo, elo_low, elo_high = result.elo()
    columns_of_sides = [f"{side}_{name}" for side in SIDES for name in RESULTS]
    row: dict[str, Cell] = {
        "games": result.games,
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        **{column: counts[column] for column in columns_of_sides},
        "score": rounded(result.score),
        "low": rounded(low),
        "high": rounded(high),
        "elo": rounded(elo, 1),
        "elo_low": rounded(elo_low, 1),
        "elo_high": rounded(elo_high, 1),
        "distinct": result.distinct,
    }
    if result.points is not None:
        row["points"] = rounded(result.points)
    return row
