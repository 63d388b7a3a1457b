"""ladder, plot: ratings of many players from their games, and pictures of tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.commands.match import OpeningPlies, PlayersSimulations
from plyzero.commands.play import SearchOptions, Thinking
from plyzero.errors import FailedError, UserError

if TYPE_CHECKING:
    from plyzero.kits.arena.checkpoints import Checkpoints
    from plyzero.kits.arena.ladder import Ladder, Limits, Table
    from plyzero.kits.arena.pair_player import Processes


@common.in_panel("Play")
@common.with_groups
def ladder(
    game: common.GameArgument,
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The ladder's directory; the same command continues it. Default: RUN/ladder."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="RUN", parser=common.read_directory, help="Rate the models of this run as they come."
        ),
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, max=2**31, help="With --run: least number of steps between two models.")
    ] = 1000,
    players: Annotated[
        list[str] | None,
        typer.Option(metavar="A B C ...", help="The players, in the form of `plyzero match`, all after one --players."),
    ] = None,
    more_players: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    games: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000_000, help="Games in all, with --run for each player; default: 100 for each player."
        ),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(min=1, metavar="ELO", help="Stop once every 95 % interval is at most this to either side."),
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="PLAYER", help="The player with 0 Elo; default: mcts:200, or else the first.")
    ] = None,
    simulations: PlayersSimulations = None,
    opening_plies: OpeningPlies = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of openings, dice and players.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Worker processes; default: one per CPU core.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also plot the ratings, as .png, .svg or .pdf.")
    ] = None,
    options: SearchOptions = None,
    as_json: common.Json = False,
    thinking: Thinking,
) -> None:
    """Play a tournament between several players, and rate them with 95 % intervals.

    A ladder that was stopped or killed is continued by the same command. With --run it ends when the run has ended.
    """
    from plyzero.kits.arena.checkpoints import Checkpoints
    from plyzero.kits.arena.entrants import find_entrants
    from plyzero.kits.arena.ladder import GAMES_PER_PLAYER, LADDER, MODELS, Limits, open_ladder, read_table
    from plyzero.kits.arena.pair_player import PlayError, Processes
    from plyzero.kits.arena.plots import check_picture, plot_ratings, write_picture
    from plyzero.machine import usable_cores
    from plyzero.run.configuration import parse_search_options
    from plyzero.run.directory import open_run
    from plyzero.run.replay import check_rules

    if games is not None and games % 2:
        raise UserError(f"expected an even number of --games, since each opening is played twice, got {games}")
    if plot is not None:
        check_picture(plot)
    spec, limits = common.find_game(game), thinking.limits(simulations, uses_cores=False)
    limits["search"] = parse_search_options(options or ())
    directory = out or (run / LADDER if run else None)
    if directory is None:
        raise UserError("expected --out DIR, the directory of the ladder, or --run RUN, whose models it rates")
    directory, plot = directory.absolute(), plot and plot.absolute()  # rules may leave the current directory
    opponents_of_run = ["random", "mcts:50", "mcts:200"]
    names = [*(players or ()), *(more_players or ())] or (opponents_of_run if run else [])
    checkpoints: Checkpoints | None = None
    with common.playing(spec):
        fixed = find_entrants(names, spec, **limits)
        if run is not None:
            opened = open_run(run, game=spec)
            check_rules(opened)
            checkpoints = Checkpoints(opened, directory, every, **limits)
            checkpoints.add_new()
    table = None
    try:
        while table is None or (checkpoints is not None and _wait(checkpoints)):
            entrants = [*fixed, *(checkpoints.entrants if checkpoints else ())]
            in_all = games if games and not run else (games or GAMES_PER_PLAYER) * len(entrants)
            with open_ladder(directory, spec, entrants, anchor=anchor, seed=seed, opening_plies=opening_plies) as found:
                settings = {"models": directory / MODELS, "seed": seed, "opening_plies": found.about["opening_plies"]}
                workers = Processes(processes or usable_cores(), spec, entrants, **settings)
                table = _play(
                    found, workers, Limits(in_all, within), checkpoints.add_new if checkpoints else lambda: False
                )
    except PlayError as error:
        raise FailedError(str(error)) from error
    except KeyboardInterrupt:
        if stopped := read_table(directory):
            _print(stopped, as_json=as_json)
        raise
    _print(table, as_json=as_json)
    if plot is not None:
        title = f"{table['game']}, {table['games']} games"
        write_picture(plot_ratings(table["players"], anchor=table["anchor"], title=title), plot)


def _play(found: Ladder, workers: Processes, limits: Limits, has_new: Callable[[], bool]) -> Table | None:
    """Play until the limits are reached and return the table; return None once there are new players."""
    try:
        text = "playing the first games; the search is compiled first after an installation or update"
        with common.show_progress(text) as report, common.playing(found.game), workers:
            while found.play_round(workers.play, limits, on_progress=report):
                if has_new():
                    return None
    finally:
        found.write_table()
    with common.show_progress("checking the intervals by bootstrap"):
        return found.write_table(check=True)


def _wait(checkpoints: Checkpoints) -> bool:
    """Wait for a new model; return False if the run has ended without one."""
    with common.show_progress(checkpoints.waiting):
        while not checkpoints.add_new():
            if not checkpoints.more_may_come():
                return checkpoints.add_new()
            time.sleep(2)
    return True


def _print(table: Table, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(table))
        return
    console = common.make_console()
    console.print(f"{table['game']}: {table['games']} games; 0 Elo is {table['anchor']}\n")
    has_points = any(each.get("points") is not None for each in table["players"])
    ratings = common.make_table(
        "player", "Elo", "95 %", "games", "score", *(["points"] if has_points else []), "forfeits"
    )
    for each in sorted(table["players"], key=lambda each: -each["elo"]):
        score = "" if each["score"] is None else f"{each['score']:.1%}"
        interval = f"{each['low']:+.0f} to {each['high']:+.0f}" if each["high"] > each["low"] else ""
        forfeits = str(each["forfeits"] or "")
        points = [f"{each.get('points') or 0:+.2f}"] if has_points else []
        row = [each["player"], f"{each['elo']:+.0f}", interval, str(each["games"]), score, *points, forfeits]
        ratings.add_row(*row)
    console.print(ratings)
    side, draws = table["side"], table["draws"]
    console.print(f"\nMoving first: {side['value']:+.0f} Elo, {side['low']:+.0f} to {side['high']:+.0f}.")
    console.print(f"Draws between equal players: {draws['value']:.1%}, {draws['low']:.1%} to {draws['high']:.1%}.")
    ratios = [
        2 * each["bootstrap_error"] / (each["high"] - each["low"])
        for each in table["players"]
        if each["bootstrap_error"] and each["high"] > each["low"]
    ]
    if ratios:
        console.print(f"Resampling the openings gives intervals {min(ratios):.2f} to {max(ratios):.2f} times as wide.")
    console.print()
    pairs = common.make_table("pair", "", "games", "score", "expected", "z", "")
    for pair in sorted(table["pairs"], key=lambda pair: -abs(pair["z"])):
        score, expected = (f"{pair[key] / pair['games']:.1%}" for key in ("points", "expected"))
        mark = "misfit" if pair["misfit"] else ""
        pairs.add_row(pair["a"], pair["b"], str(pair["games"]), score, expected, f"{pair['z']:+.1f}", mark)
    console.print(pairs)
    for each in table["players"]:
        for reason, number in each["reasons"].items():
            console.print(f"{each['player']} forfeited {number} times: {reason}")


X_NAMES: Final = ("step", "games", "time", "seconds")
"""Default horizontal axis: the first of these columns that all files have."""


@common.in_panel("Inspect")
def plot(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="CSV files with a header, or JSON lines; one curve each.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PICTURE", help="A .png, .svg or .pdf file.")],
    columns: Annotated[
        list[str] | None, typer.Option("-y", metavar="COLUMN", help="A column to plot; may be repeated.")
    ] = None,
    x: Annotated[
        str | None, typer.Option("-x", metavar="COLUMN", help=f"The horizontal axis. Default: {', '.join(X_NAMES)}.")
    ] = None,
    title: Annotated[str, typer.Option(help="Text above the plot.")] = "",
) -> None:
    """Plot columns of CSV files or JSON lines, such as the metrics of a run; or the ratings.csv of a ladder.

    Columns with _low and _high after the name of a plotted one are its band.
    """
    from plyzero.kits.arena.plots import check_picture, plot_curves, plot_ratings, read_table, write_picture

    check_picture(output)
    tables = {str(path): read_table(path) for path in files}
    first = next(iter(tables.values()))
    is_ladder = len(tables) == 1 and first.keys() >= {"player", "elo", "low", "high"}
    if is_ladder and not columns:
        rows = [dict(zip(first, row, strict=True)) for row in zip(*first.values(), strict=True)]
        figure = plot_ratings(rows, title=title)
    elif columns:
        shared = [name for name in X_NAMES if all(name in table for table in tables.values())]
        usual = shared[0] if shared else X_NAMES[0]
        figure = plot_curves(tables, x or usual, columns, title=title)
    else:
        names = sorted({name for table in tables.values() for name in table})
        raise UserError(f"expected -y COLUMN, one of {', '.join(names)}")
    write_picture(figure, output)
    print(output)
