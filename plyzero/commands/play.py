"""play, analyze, match: play against a bot, analyze positions, compare players."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from plyzero.commands.common import (
    GameArgument,
    Json,
    find_game,
    make_console,
    playing,
    read_directory,
    show_progress,
)
from plyzero.errors import UserError
from plyzero.lines import bounded_lines

if TYPE_CHECKING:
    from plyzero.play.players import Bot, Player
    from plyzero.rules.catalog import GameSpec

RunToPlay = Annotated[
    Path | None, typer.Option("--run", metavar="DIR", parser=read_directory, help="Use a model of this run.")
]
Net = Annotated[Path | None, typer.Option("--net", metavar="FILE", help="Use the model in this ONNX file.")]
Model = Annotated[
    str, typer.Option(metavar="WHICH", help="With --run: newest, best (by measured scores), or a training step.")
]
Simulations = Annotated[
    int | None,
    typer.Option(min=0, help="Simulations per move; 0 = the raw network. Default: 64, for pure MCTS 1000."),
]
SearchOptions = Annotated[
    list[str] | None,
    typer.Option("-o", metavar="search.KEY=VALUE", help="A setting of the search, such as search.c_puct=2."),
]

PlayersSimulations = Annotated[
    int, typer.Option(min=0, help="Simulations per move of runs and files; 0 = the raw network.")
]
OpeningPlies = Annotated[
    int | None, typer.Option(min=0, help="Random moves at the start; default: a fifth of max_plies, at most 4.")
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="PLAYER", help="Another opponent: greedy, alphabeta:4, your agent MODULE:CLASS, or as in match."
    ),
]


def play(
    game: GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    side: Annotated[str, typer.Option("--as", help="Your side: first, second or random.")] = "first",
    simulations: Simulations = None,
    level: Annotated[int | None, typer.Option(min=1, help="Level of the bundled bot; 1 is the weakest.")] = None,
    against: Against = None,
) -> None:
    """Play in the terminal against the bot of a run, of a file, or the bundled bot; if there is none, pure MCTS."""
    owns_process = sys.stdout is sys.__stdout__  # and is not called by a test
    if owns_process:
        _begin_at_once(game)  # before anything imports the search

    import numpy as np

    from plyzero.commands.terminal import Terminal
    from plyzero.play.players import Bot, find_player
    from plyzero.play.session import SIDES, Session

    if side not in (*SIDES, "random"):
        raise UserError(f"expected --as first, second or random, got {side!r}")
    spec = find_game(game)
    if level is not None and (run, net, simulations) != (None, None, None):
        raise UserError(
            "--level selects the bundled bot, which sets its own simulations; omit --run, --net and --simulations"
        )
    if against is not None and (run, net, simulations, level) != (None, None, None, None):
        raise UserError("--against names the opponent; omit --run, --net, --simulations and --level")
    bot: Player
    if against is not None:
        bot = find_player(against, spec, np.random.default_rng())
    else:
        bot = Bot.at_level(spec, level) if level else find_bot(spec, run, net, model, simulations)
    person = SIDES.index(side) if side in SIDES else int(np.random.default_rng().integers(2))
    terminal = Terminal(Session(spec, person), bot)
    with playing(spec, may_print=True):
        terminal.run()
    terminal.warming.join(10 if owns_process else None)
    if terminal.warming.is_alive():  # it compiles, and the interpreter would abort if it ended meanwhile
        sys.stdout.flush()
        os._exit(0)


def _begin_at_once(game: str) -> None:
    """Where the search is not compiled, let this process run it as plain Python, and another one compile it."""
    import numba

    from plyzero.ops.processes import start_beside
    from plyzero.search.numba_kernel import is_compiled

    if numba.config.DISABLE_JIT or is_compiled():  # type: ignore[attr-defined]
        return
    numba.config.DISABLE_JIT = 1  # type: ignore[attr-defined]
    start_beside("match", "mcts:4", "random", "--game", game, "--games", "2")
    print("The search is not compiled yet: it runs as plain Python, slower, while another process compiles it.")


def analyze(
    game: GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    simulations: Simulations = None,
    options: SearchOptions = None,
) -> None:
    """Analyze positions: one JSON line in, such as {"id": 1, "moves": ["4", "4"]}, one JSON line out, in order."""
    from plyzero.play.analysis_engine import answer_queries
    from plyzero.run.configuration import change_search, parse_search_options

    def note(text: str) -> None:
        print(f"plyzero: {text}", file=sys.stderr)

    spec, changes = find_game(game), parse_search_options(options or ())
    with playing(spec) as output, show_progress("") as report:
        bot = find_bot(spec, run, net, model, simulations)
        bot.settings = change_search(bot.settings, changes)
        answer_queries(spec, bot, bounded_lines(sys.stdin), output, on_progress=report, on_note=note)


def match(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="random, greedy, alphabeta:DEPTH, mcts:N, bot, bot:LEVEL, a run (DIR, DIR@best), an ONNX file, your "
            "agent MODULE:CLASS, your evaluator MODULE:FUNCTION.",
        ),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The opponent, in the same form.")],
    game: Annotated[str, typer.Option("--game", metavar="GAME", help="The game to play.")],
    games: Annotated[
        int, typer.Option(min=2, max=100_000, help="Number of games; each opening is played twice, with sides swapped.")
    ] = 100,
    simulations: PlayersSimulations = 64,
    opening_plies: OpeningPlies = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of openings and players.")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write each finished game into this new file, one JSON line each."),
    ] = None,
    options: SearchOptions = None,
    as_json: Json = False,
) -> None:
    """Play a match between two players, and print the score and Elo difference of A with 95 % intervals."""
    import json

    import numpy as np

    from plyzero.arena.match import PlayedGame, play_match
    from plyzero.play.players import find_player
    from plyzero.run.configuration import parse_search_options

    if games % 2:
        raise UserError(f"expected an even number of --games, since each opening is played twice, got {games}")
    spec, rng = find_game(game), np.random.default_rng(seed)
    search, ended = parse_search_options(options or ()), 0
    with playing(spec):
        player_a, player_b = (
            find_player(name, spec, rng, simulations=simulations, search=search) for name in (first, second)
        )

    def show(finished: int, plies: int) -> None:
        nonlocal ended
        ended = finished
        report(f"{finished} of {games} games finished after {plies} plies")

    def write(game: PlayedGame) -> None:
        if file is not None:
            file.write(json.dumps(game.as_json(spec, (player_a.name, player_b.name))).encode() + b"\n")
            file.flush()

    try:
        with (
            _new_file(save) as file,
            show_progress(f"playing {games} games in parallel") as report,
            playing(spec),
        ):
            result = play_match(
                player_a,
                player_b,
                spec.start,
                games=games,
                rng=rng,
                opening_plies=opening_plies,
                on_progress=show,
                on_game=write,
            )
    except KeyboardInterrupt:
        why = "there is no score, because the shortest games finish first"
        print(f"plyzero: {ended} of {games} games were finished; {why}", file=sys.stderr)
        raise
    if as_json:
        print(
            json.dumps(
                {"version": 1, "game": spec.identity, "a": player_a.name, "b": player_b.name, **result.as_json()}
            )
        )
        return
    console = make_console()
    console.print(f"{spec.name}: {player_a.name} (A) against {player_b.name} (B)")
    console.print(result.report())


@contextmanager
def _new_file(path: Path | None) -> Iterator[BinaryIO | None]:
    """Create a file to append to; None without a path. Raises UserError if it cannot be."""
    from plyzero.files import open_to_append, write_file
    from plyzero.volume_errors import explain

    if path is None:
        yield None
        return
    try:
        write_file(path, b"")
        with open_to_append(path) as file:
            yield file
    except FileExistsError as error:
        raise UserError(f"{path} exists already; expected --save FILE with the name of a new file") from error
    except OSError as error:
        raise UserError(f"cannot write {path}: {explain(error)}") from error


def find_bot(game: GameSpec, run: Path | None, net: Path | None, model: str, simulations: int | None) -> Bot:
    """Return the bot of a run or of a file, else the bundled one, else pure MCTS; None = its usual simulations.

    Raises UserError if there is no such model, or for arguments that exclude each other.
    """
    import numpy as np

    from plyzero.play.bundled_bots import find_card
    from plyzero.play.players import DEFAULT_SIMULATIONS, Bot

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if model != "newest" and run is None:
        raise UserError(f"--model {model} needs --run")
    if run is not None and not run.exists():
        raise UserError(f"{run} is not a run directory: it has no run.toml; make one with plyzero train")
    card, path = find_card(game), net or run
    if path is None and card is not None:
        if simulations is None:
            return Bot.at_level(game)
        path = card.network
    if path is None:
        return Bot.pure_mcts(game, np.random.default_rng(), simulations=1000 if simulations is None else simulations)
    if net is not None and net.is_dir():
        raise UserError(f"{net} is a directory; expected --net FILE, or --run {net}")
    return Bot.of_model(
        path, game, model=model, simulations=DEFAULT_SIMULATIONS if simulations is None else simulations
    )
