"""play, analyze, match: meet the bot, ask it, let it meet others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from plyzero.commands.common import GameArgument, Json, find_game
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.play.players import Bot
    from plyzero.rules.catalog import GameSpec

RunToPlay = Annotated[Path | None, typer.Option("--run", metavar="DIR", help="The bot of this run.")]
Net = Annotated[Path | None, typer.Option("--net", metavar="FILE", help="The bot in this ONNX file.")]
Model = Annotated[str, typer.Option(metavar="WHICH", help="With --run: newest, best (as measured), or a step.")]
Simulations = Annotated[
    int | None,
    typer.Option(min=0, help="Of the bot, a move; 0 = the raw network. Default: 64; of pure MCTS 1000."),
]


def play(
    game: GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    side: Annotated[str, typer.Option("--as", help="Your side: first, second or random.")] = "first",
    simulations: Simulations = None,
    level: Annotated[int | None, typer.Option(min=1, help="Of the bot that comes along, from 1 on.")] = None,
) -> None:
    """Play the bot in the terminal: of a run, of a file, or the one that comes along; for other games pure MCTS."""
    import numpy as np

    from plyzero.commands.terminal import Terminal
    from plyzero.play.players import Bot
    from plyzero.play.session import SIDES, Session

    if side not in (*SIDES, "random"):
        raise UserError(f"expected --as first, second or random, got {side!r}")
    spec = find_game(game)
    if level is not None and (run, net, simulations) != (None, None, None):
        raise UserError("--level is of the bot that comes along, with its own simulations; leave the other options out")
    bot = Bot.at_level(spec, level) if level else _bot(spec, run, net, model, simulations)
    person = SIDES.index(side) if side in SIDES else int(np.random.default_rng().integers(2))
    Terminal(Session(spec, person), bot).run()


def analyze(
    game: GameArgument, run: RunToPlay = None, net: Net = None, model: Model = "newest", simulations: Simulations = None
) -> None:
    """Answer positions: JSON lines in, such as {"id": 1, "moves": ["4", "4"]}, JSON lines out, in the same order."""
    from plyzero.play.analysis_engine import answer_lines

    spec = find_game(game)
    answer_lines(spec, _bot(spec, run, net, model, simulations), sys.stdin, sys.stdout)


def match(
    first: Annotated[
        str, typer.Argument(metavar="A", help="random, mcts:N, bot, bot:LEVEL, a run (DIR, DIR@best), an ONNX file.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    game: Annotated[str, typer.Option("--game", metavar="GAME", help="What they play.")],
    games: Annotated[int, typer.Option(min=2, help="How many; two from each opening, with colours swapped.")] = 100,
    simulations: Annotated[int, typer.Option(min=0, help="Of networks, a move; 0 = the raw network.")] = 64,
    opening_plies: Annotated[
        int | None, typer.Option(min=0, help="Random moves at the start; default: a fifth of max_plies, at most 4.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of openings and players.")] = 0,
    as_json: Json = False,
) -> None:
    """Let two players meet, and say how much stronger A is, with a 95 % interval."""
    import json

    import numpy as np

    from plyzero.play.match import play_match
    from plyzero.play.players import find_player

    if games % 2:
        raise UserError(f"expected an even number of --games, two from each opening, got {games}")
    spec, rng = find_game(game), np.random.default_rng(seed)
    one, other = (find_player(name, spec, rng, simulations=simulations) for name in (first, second))
    console = Console(highlight=False, soft_wrap=True, stderr=as_json)
    with console.status(f"{games} games side by side") as status:
        result = play_match(
            *(one, other, spec.start),
            games=games,
            rng=rng,
            opening_plies=opening_plies,
            doing=lambda finished, plies: status.update(f"{finished} of {games} games finished after {plies} plies"),
        )
    if as_json:
        print(json.dumps({"version": 1, "game": spec.identity, "a": one.name, "b": other.name, **result.as_json()}))
        return
    console.print(f"{spec.name}: {one.name} against {other.name}")
    console.print(result.report())


def _bot(game: GameSpec, run: Path | None, net: Path | None, model: str, simulations: int | None) -> Bot:
    import numpy as np

    from plyzero.play.bundled_bots import find_card
    from plyzero.play.model_loader import load_network
    from plyzero.play.players import SIMULATIONS, Bot

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if model != "newest" and run is None:
        raise UserError(f"--model {model} needs the --run it belongs to")
    card, path = find_card(game), net or run
    if path is None and card is not None:
        if simulations is None:
            return Bot.at_level(game)
        path = card.network
    if path is None:
        return Bot.pure_mcts(game, np.random.default_rng(), simulations=1000 if simulations is None else simulations)
    if net is not None and net.is_dir():
        raise UserError(f"{net} is a directory; expected --net FILE, or --run {net}")
    network = load_network(path, game, model=model)
    return Bot.of(network, simulations=SIMULATIONS if simulations is None else simulations)
