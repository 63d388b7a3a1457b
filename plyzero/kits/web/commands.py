"""serve, report: the page to play on and to watch a run, and the dashboard as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plyzero.commands import common
from plyzero.commands.play import Net, RunToPlay, Thinking
from plyzero.errors import UserError, shown

if TYPE_CHECKING:
    from socket import socket


@common.in_panel("Play")
@common.with_groups
def serve(
    game: Annotated[
        str | None,
        typer.Argument(metavar="[GAME]", help="As in play. Without it: that of --run, or all games and runs."),
    ] = None,
    *,
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
    start: common.Start = None,
    thinking: Thinking,
) -> None:
    """Serve a web page to play GAME, to analyse and review it, and with --run to watch the run; or of all games."""
    from plyzero.kits.web.connections import listen, serve_forever
    from plyzero.kits.web.opponents import Opponents
    from plyzero.kits.web.searches import MAX_SECONDS
    from plyzero.kits.web.server import make_app, make_home
    from plyzero.play.strength import introduction
    from plyzero.run.directory import open_run, read_run

    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if game is None and run is not None:
        game = read_run(run).game_name
    if game is None:
        if net is not None or against is not None or start is not None:
            raise UserError("--net, --against and --start need a game: plyzero serve GAME ...")
        with common.data_output() as output, listen(host, port) as listening:
            address = _address(host, listening)
            print(f"All games on {address} ; Ctrl-C ends the server.", file=output, flush=True)
            serve_forever(make_home(Path(), allowed_hosts=allow_host or ()), listening)
        return
    spec, whole = common.find_game(game, start), common.find_game(game)
    if net is not None and not net.is_file():
        raise UserError(f"{net} is not a file; expected --net FILE with an ONNX model, or --run DIR")
    limits = thinking.limits(None)
    if limits["clock"] and limits["clock"].seconds() > MAX_SECONDS:
        raise UserError(f"expected at most {MAX_SECONDS:g} s a move on the page, got {limits['clock'].seconds():g} s")
    listening = listen(host, port)
    with common.playing(spec) as output, listening:
        opened = open_run(run, game=whole) if run and (run / "run.toml").exists() else run
        opponents = Opponents(
            spec, run=run, net=net, others=against or (), clock=limits["clock"], threads=limits["threads"]
        )
        app = make_app(spec, opponents, allowed_hosts=allow_host or (), run=opened)
        address = _address(host, listening)
        watch = f"Watch {run} on {address}run ; " if run else ""
        print(f"Play {spec.name} on {address} ; {watch}Ctrl-C ends the server.", file=output, flush=True)
        usual = opponents.usual()
        name = opponents.names()[usual]
        if usual.startswith("mcts:"):
            about = introduction(spec, name)
            if run:
                about = f"It plays by the rules alone until {run} has a model, which then takes its place."
        else:
            about = introduction(spec, opponents.strengths().get(usual, "not measured"))
        print(f"The opponent is {name}. {about}", file=output, flush=True)
        serve_forever(app, listening)


def _address(host: str, listening: socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


@common.in_panel("Inspect")
def report(
    run: common.RunOption,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The HTML file, which is replaced.")],
) -> None:
    """Write the dashboard of a run as one HTML file, which any browser opens without a server or a network."""
    from plyzero.files import write_file
    from plyzero.kits.web.pages import make_report
    from plyzero.run.directory import read_run

    opened = read_run(run)
    if output.is_dir() or not output.parent.is_dir():
        raise UserError(f"expected -o FILE in a directory that exists, such as report.html, got {shown(str(output))}")
    with common.show_progress("reading the run"):
        page = make_report(opened)
    write_file(output, page.encode(), replace=True)
    print(f"{output}: {len(page) / 1000:.0f} kB")
