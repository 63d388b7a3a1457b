"""The task that compares the bots of all runs: a ladder between them and fixed opponents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from plyzero.errors import UserError
from plyzero.kits.arena.entrants import find_entrants
from plyzero.kits.arena.ladder import MODELS, Limits, open_ladder
from plyzero.kits.arena.plots import check_picture, plot_ratings, write_picture
from plyzero.kits.experiments.tasks.results import AGENT, first_seen, runs_of
from plyzero.machine import usable_cores
from plyzero.rules.catalog import load_game


def compare(
    inputs: Path,
    out: Path,
    *,
    report: Callable[[str], None],
    game: str,
    runs: Sequence[str],
    first: int = 0,
    opponents: Sequence[str] = (),
    games: int = 100,
    simulations: int = 64,
    seed: int = 0,
) -> None:
    """Play a ladder in `out` between the bots of the runs and the opponents, and write its ratings.png.

    A ladder that was killed goes on. The anchor is mcts:200 if it is one of the players, otherwise the first player.

    runs:      directories of runs; runs without a bot are reported.
    first:     number of these runs that take part; 0 = all.
    opponents: players as in `plyzero match`.
    games:     number of games of each player.

    Raises UserError with fewer than two players, and if a game cannot be played.
    """
    from plyzero.kits.arena.pair_player import PlayError, Processes

    picture = out / "ratings.png"
    check_picture(picture)
    agents = []
    for run in runs_of(runs, first):
        if (Path(run) / AGENT).exists():
            agents.append(f"{run}/{AGENT}")
        else:
            report(f"{run} has no {AGENT}; it is left out")
    players = [*agents, *first_seen(opponents)]
    if len(players) < 2:
        raise UserError(f"expected at least two players, got {', '.join(players) or 'none'}; add opponents")
    if games < 2:
        raise UserError(f"expected at least two games for each player, got {games}")
    spec = load_game(game)
    entrants = find_entrants(players, spec, simulations=simulations)
    try:
        with open_ladder(out, spec, entrants, seed=seed) as ladder:
            settings = {"models": out / MODELS, "seed": seed, "opening_plies": ladder.about["opening_plies"]}
            with Processes(usable_cores(), spec, entrants, **settings) as processes:
                ladder.play(processes.play, Limits(games * len(entrants)), on_progress=report)
            table = ladder.write_table(check=True)
    except PlayError as error:
        raise UserError(str(error)) from error
    title = f"{table['game']}, {table['games']} games"
    write_picture(plot_ratings(table["players"], anchor=table["anchor"], title=title), picture)
