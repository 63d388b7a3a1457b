"""ladder: a resumable tournament with ratings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from plyzero.commands.common import (
    FailedError,
    GameArgument,
    Json,
    find_game,
    make_console,
    make_table,
    playing,
    show_progress,
)
from plyzero.commands.play import SearchOptions
from plyzero.errors import UserError

STARTING: Final = "playing the first games; the search is compiled first after an installation or update"
"""What is shown until a pair of games is finished."""


def ladder(
    game: GameArgument,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The ladder's directory; the same command continues it.")],
    players: Annotated[
        list[str] | None,
        typer.Option(metavar="A B C ...", help="The players, in the form of `plyzero match`, all after one --players."),
    ] = None,
    more_players: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    games: Annotated[
        int | None, typer.Option(min=2, max=10_000_000, help="Games in all; default: 100 for each player.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(min=1, metavar="ELO", help="Stop once every 95 % interval is at most this to either side."),
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="PLAYER", help="The player with 0 Elo; default: mcts:200, or else the first.")
    ] = None,
    simulations: Annotated[
        int, typer.Option(min=0, help="Simulations per move of runs and files; 0 = the raw network.")
    ] = 64,
    opening_plies: Annotated[
        int | None, typer.Option(min=0, help="Random moves at the start; default: a fifth of max_plies, at most 4.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of openings, dice and players.")] = 0,
    processes: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Worker processes; default: one per CPU core.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also plot the ratings, as .png, .svg or .pdf.")
    ] = None,
    options: SearchOptions = None,
    as_json: Json = False,
) -> None:
    """Play a tournament between several players, and rate them with 95 % intervals.

    A ladder that was stopped or killed is continued by the same command.
    """
    from plyzero.ops.processes import usable_cores
    from plyzero.play.entrants import find_entrants
    from plyzero.play.ladder import GAMES_PER_PLAYER, MODELS, Limits, open_ladder
    from plyzero.play.pair_player import PlayError, Processes
    from plyzero.run.configuration import parse_search_options

    if games is not None and games % 2:
        raise UserError(f"expected an even number of --games, since each opening is played twice, got {games}")
    figure = _prepare_plot(plot)
    spec, search = find_game(game), parse_search_options(options or ())
    names = [*(players or ()), *(more_players or ())]
    with playing(spec):
        entrants = find_entrants(names, spec, simulations=simulations, search=search)
    limits = Limits(GAMES_PER_PLAYER * len(entrants) if games is None else games, within)
    with open_ladder(out, spec, entrants, anchor=anchor, seed=seed, opening_plies=opening_plies) as found:
        settings = {"models": out / MODELS, "seed": seed, "opening_plies": found.about["opening_plies"]}
        try:
            with (
                show_progress(STARTING) as report,
                playing(spec),
                Processes(processes or usable_cores(), spec, entrants, **settings) as workers,
            ):
                found.play(workers.play, limits, on_progress=report)
        except PlayError as error:
            raise FailedError(str(error)) from error
        except KeyboardInterrupt:
            _print(found.write_table(), as_json=as_json)
            raise
        with show_progress("checking the intervals by bootstrap"):
            table = found.write_table(check=True)
    _print(table, as_json=as_json)
    if figure is not None:
        figure(table)


def _print(table: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(table))
        return
    console = make_console()
    console.print(f"{table['game']}: {table['games']} games; 0 Elo is {table['anchor']}\n")
    ratings = make_table("player", "Elo", "95 %", "games", "score", "forfeits")
    for each in sorted(table["players"], key=lambda each: -each["elo"]):
        score = "" if each["score"] is None else f"{each['score']:.1%}"
        interval = f"{each['low']:+.0f} to {each['high']:+.0f}" if each["high"] > each["low"] else ""
        forfeits = str(each["forfeits"] or "")
        ratings.add_row(each["player"], f"{each['elo']:+.0f}", interval, str(each["games"]), score, forfeits)
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
    pairs = make_table("pair", "", "games", "score", "expected", "z", "")
    for each in sorted(table["pairs"], key=lambda each: -abs(each["z"])):
        score, expected = (f"{each[key] / each['games']:.1%}" for key in ("points", "expected"))
        mark = "misfit" if each["misfit"] else ""
        pairs.add_row(each["a"], each["b"], str(each["games"]), score, expected, f"{each['z']:+.1f}", mark)
    console.print(pairs)
    for each in table["players"]:
        for reason, number in each["reasons"].items():
            console.print(f"{each['player']} forfeited {number} times: {reason}")


def _prepare_plot(file: Path | None) -> Any:
    """Return a function that plots a table into `file`, None without a file. Raises UserError if it cannot be done."""
    if file is None:
        return None
    kinds = (".png", ".svg", ".pdf")
    if file.suffix not in kinds:
        raise UserError(f"expected --plot FILE to end in {', '.join(kinds[:-1])} or {kinds[-1]}, got {file}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(f"--plot needs matplotlib ({error}): pip install 'plyzero[plot]' installs it") from error

    def plot(table: dict[str, Any]) -> None:
        import io

        from plyzero.files import write_file

        rated = sorted(table["players"], key=lambda each: each["elo"])
        figure = Figure(figsize=(8, 1.2 + 0.35 * len(rated)), layout="constrained")
        axes = figure.subplots()
        errors = [each["elo"] - each["low"] for each in rated]
        axes.errorbar([each["elo"] for each in rated], range(len(rated)), xerr=errors, fmt="o", capsize=3)
        axes.set_yticks(range(len(rated)), [each["player"] for each in rated])
        axes.set_xlabel(f"Elo with 95 % interval; {table['anchor']} = 0")
        axes.set_title(f"{table['game']}, {table['games']} games")
        axes.grid(axis="x", alpha=0.3)
        content = io.BytesIO()
        figure.savefig(content, format=file.suffix[1:])
        write_file(file, content.getvalue(), replace=True)

    return plot
