"""serve: a web page to play, analyse and review a game, and to watch a run."""

from __future__ import annotations

from typing import Annotated

import typer

from plyzero.commands.common import GameArgument, find_game, playing
from plyzero.commands.play import Net, RunToPlay
from plyzero.errors import UserError


def serve(
    game: GameArgument,
    run: RunToPlay = None,
    net: Net = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 = all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 = any that is free.")] = 8765,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="PLAYER", help="A further opponent, such as your agent MODULE:CLASS; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name under which people reach this machine; may be repeated."),
    ] = None,
) -> None:
    """Serve a web page to play GAME, to analyse and review it, and with --run to watch the run."""
    from plyzero.run.directory import open_run
    from plyzero.web.opponents import Opponents
    from plyzero.web.server import listen, make_app, serve_forever

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    spec = find_game(game)
    if net is not None and not net.is_file():
        raise UserError(f"{net} is not a file; expected --net FILE with an ONNX model, or --run DIR")
    listening = listen(host, port)
    with playing(spec) as output, listening:
        opened = open_run(run, game=spec) if run and (run / "run.toml").exists() else run
        opponents = Opponents(spec, run=run, net=net, others=against or ())
        app = make_app(spec, opponents, allowed_hosts=allow_host or (), run=opened)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
        watch = f"Watch {run} on {address}run ; " if run else ""
        print(f"Play {spec.name} on {address} ; {watch}Ctrl-C ends the server.", file=output, flush=True)
        serve_forever(app, listening)
