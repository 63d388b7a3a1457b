"""match: compare two players."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from plyzero.commands import common
from plyzero.commands.play import SearchOptions, Thinking
from plyzero.errors import UserError

PlayersSimulations = Annotated[
    int | None,
    typer.Option(
        min=0, help="Simulations per move of runs and files; 0 = the raw network. Default: 64, with a clock no limit."
    ),
]

OpeningPlies = Annotated[
    int | None, typer.Option(min=0, help="Random moves at the start; default: a fifth of max_plies, at most 4.")
]


@common.with_groups
def match(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="random, greedy, alphabeta:DEPTH, mcts:N, bot, bot:LEVEL, a run (DIR, DIR@best), an ONNX file, your "
            "agent MODULE:CLASS, your evaluator MODULE:FUNCTION, a program: gtp:COMMAND, uci:COMMAND, text:COMMAND.",
        ),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The opponent, in the same form.")],
    *,
    game: Annotated[str, typer.Option("--game", metavar="GAME", help="The game to play.")],
    games: Annotated[
        int, typer.Option(min=2, max=100_000, help="Number of games; each opening is played twice, with sides swapped.")
    ] = 100,
    simulations: PlayersSimulations = None,
    opening_plies: OpeningPlies = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of openings and players.")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each finished game into this new file, one JSON line each."),
    ] = None,
    options: SearchOptions = None,
    as_json: common.Json = False,
    start: common.Start = None,
    thinking: Thinking,
) -> None:
    """Play a match between two players, and print the score of A with its 95 % interval.

    The Elo difference follows where its interval is at most 400 Elo to either side.

    With a clock or --threads, which then has no default, games are played one after the other.
    """
    import numpy as np

    from plyzero.play.match import PlayedGame, play_match
    from plyzero.play.players import find_player
    from plyzero.run.configuration import parse_search_options

    if games % 2:
        raise UserError(f"expected an even number of --games, since each opening is played twice, got {games}")
    spec = common.find_game(game, start)
    rng = np.random.default_rng(seed)
    search = parse_search_options(options or ())
    ended = 0
    limits = thinking.limits(simulations, uses_cores=False)
    one_by_one = bool(limits["clock"] or limits["threads"])
    with common.playing(spec):
        player_a, player_b = (find_player(name, spec, rng, search=search, **limits) for name in (first, second))

    def show(finished: int, plies: int) -> None:
        nonlocal ended
        ended = finished
        report(f"{finished} of {games} games finished after {plies} plies")

    def write(game: PlayedGame) -> None:
        if file is not None:
            file.write(json.dumps(game.as_json(spec, (player_a.name, player_b.name))).encode() + b"\n")
            file.flush()

    try:
        with _new_file(save) as file, common.show_progress(f"playing {games} games") as report, common.playing(spec):
            result = play_match(
                player_a,
                player_b,
                spec.start,
                games=games,
                rng=rng,
                opening_plies=opening_plies,
                at_once=1 if one_by_one else None,
                on_progress=show,
                on_game=write,
            )
    except KeyboardInterrupt:
        why = "there is no score, because the shortest games finish first"
        print(f"plyzero: {ended} of {games} games were finished; {why}", file=sys.stderr)
        raise
    if as_json:
        about = {"version": 1, "game": spec.identity, "a": player_a.name, "b": player_b.name}
        print(json.dumps(about | result.as_json()))
        return
    console = common.make_console()
    console.print(f"{spec.name}: {player_a.name} (A) against {player_b.name} (B)")
    console.print(result.report())


def _new_file(path: Path | None) -> AbstractContextManager[BinaryIO | None]:
    """Create a file to append to; None without a path. Raises UserError if that fails."""
    from plyzero.files import open_to_append, write_file
    from plyzero.volume_errors import explain

    if path is None:
        return nullcontext()
    try:
        write_file(path, b"")
        return open_to_append(path)
    except FileExistsError as error:
        raise UserError(f"{path} exists already; expected --save FILE with the name of a new file") from error
    except OSError as error:
        raise UserError(f"cannot write {path}: {explain(error)}") from error
