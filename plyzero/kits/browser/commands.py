"""share: a game and its bot as a folder of static files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.commands.play import Net, RunToPlay
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.kits.browser.game_folder import SharedBot
    from plyzero.rules.catalog import GameSpec

POSITIONS: Final = 10_000
"""Number of positions that are compared."""


@common.in_panel("Play")
def share(
    game: common.GameArgument,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="The folder to make; one of a shared game is replaced."),
    ],
    run: RunToPlay = None,
    net: Net = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then keep the folder at the newest model of --run, until it is over.")
    ] = False,
    runtime: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The package onnxruntime-web, unpacked; without it, npm fetches it once."),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=100, help="Number of positions in which the page is compared with the rules.")
    ] = POSITIONS,
) -> None:
    """Make a folder with which any browser plays GAME against its bot, without Python and without a server."""
    from plyzero.kits.browser.folder_sizes import describe_sizes
    from plyzero.kits.browser.game_folder import expect_free, find_bot
    from plyzero.kits.browser.game_texts import expect_board
    from plyzero.kits.browser.page_files import page_files
    from plyzero.kits.browser.sharing import share_game
    from plyzero.kits.browser.wasm import expect_compiled, find_linker
    from plyzero.kits.browser.web_runtime import find_runtime

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if watch and run is None:
        raise UserError("expected --watch with --run DIR, a run whose newest model is kept")
    spec = common.find_game(game)
    expect_compiled(spec)
    expect_board(spec)
    expect_free(output)
    common.require("wasmtime", "onnx", "onnxruntime")
    find_linker()
    folder = output.absolute()  # rules may leave the current directory
    with common.playing(spec) as printed:
        with common.show_progress("reading the model") as report:
            bot = find_bot(spec, run=run, net=net)
            report("fetching ONNX Runtime for the browser")
            page = {**page_files(), **find_runtime(runtime)}
            shared = share_game(spec, bot, folder, page=page, positions=positions, report=report)
        proof = shared.proof
        lines = [
            f"{output} has {spec.name} with {bot.name}. In {proof.positions} positions of {proof.games} random games "
            "the page does as the rules do.",
            *(
                [f"In {proof.unknown} of these it does not know a part of the board or a score."]
                if proof.unknown
                else []
            ),
            *shared.notes,
            *describe_sizes(shared.sizes),
        ]
        print(*lines, sep="\n", file=printed, flush=True)
        if watch and run is not None:
            _watch(run, spec, bot, folder, partial(print, file=printed, flush=True))


def _watch(root: Path, game: GameSpec, bot: SharedBot, folder: Path, report: Callable[[str], None]) -> None:
    from plyzero.kits.browser.newest_bot import keep_newest
    from plyzero.ops.processes import stop_on_signals
    from plyzero.run.directory import open_run

    stop = stop_on_signals()
    report(f"The folder keeps the newest model of {root}; Ctrl-C ends this, and the folder stays.")
    report(f"END, {keep_newest(open_run(root, game=game), folder, bot, stop=stop, report=report)}")
