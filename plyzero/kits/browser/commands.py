"""share: a game and its bot as a folder of static files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from plyzero.commands import common
from plyzero.commands.play import Net, RunToPlay
from plyzero.errors import UserError

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
    runtime: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The package onnxruntime-web, unpacked; without it, npm fetches it once."),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=100, help="Number of positions in which the page is compared with the rules.")
    ] = POSITIONS,
) -> None:
    """Make a folder with which any browser plays GAME against its bot, without Python and without a server."""
    from plyzero.kits.browser.game_folder import expect_free, find_bot
    from plyzero.kits.browser.page_files import page_files
    from plyzero.kits.browser.sharing import share_game
    from plyzero.kits.browser.wasm import expect_compiled, find_linker
    from plyzero.kits.browser.web_runtime import find_runtime

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    spec = common.find_game(game)
    expect_compiled(spec)
    expect_free(output)
    common.require("wasmtime")
    find_linker()
    folder = output.absolute()  # rules may leave the current directory
    with common.show_progress("reading the model") as report, common.playing(spec) as printed:
        bot = find_bot(spec, run=run, net=net)
        report("fetching ONNX Runtime for the browser")
        page = {**page_files(), **find_runtime(runtime)}
        shared = share_game(spec, bot, folder, page=page, positions=positions, report=report)
    proof = shared.proof
    print(
        f"{output}: {sum(shared.sizes.values()) / 1e6:.1f} MB, with {bot.name}. In {proof.positions} positions of "
        f"{proof.games} random games the page does as the rules do.",
        file=printed,
    )
    if proof.unknown:
        print(f"In {proof.unknown} of these it does not know a part of the board or a score.", file=printed)
    for note in shared.notes:
        print(note, file=printed)
