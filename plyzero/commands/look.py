"""games, status, replay: look at what there is; nothing is changed."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from plyzero.commands.common import FailedError, Json, RunOption


def list_games() -> None:
    """List the games that can be trained."""
    from plyzero.catalog import installed_games

    table = Table("game", "what it is", box=None)
    for name, what in installed_games().items():
        table.add_row(name, what)
    Console().print(table)
    print("\nYour own game is my_module:MyGame, found from the directory you are in.")


def status(
    run: RunOption,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds.")] = False,
) -> None:
    """Show what every process of a run is doing and who waits for whom."""
    from plyzero.run import open_run
    from plyzero.status import snapshot

    opened, console = open_run(run), Console(highlight=False)
    while True:
        found = snapshot(opened)
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            if watch:
                console.clear()
            _print_status(console, found)
        if not watch:
            return
        time.sleep(2)


def health(
    run: RunOption,
    within: Annotated[float, typer.Option(min=1, help="Seconds in which its heartbeat must have moved.")] = 60.0,
) -> None:
    """Tell, for a container's health check, whether the process of this host makes progress; exit 1 if not."""
    from plyzero.health import find_trouble

    if trouble := find_trouble(run / "workers", within=within):
        raise FailedError(trouble)
    print("ok")


def replay_ls(run: RunOption, as_json: Json = False) -> None:
    """List the segments of a run."""
    from dataclasses import asdict

    from plyzero.run import open_run
    from plyzero.segments import list_segments

    names = sorted(list_segments(open_run(run).segments), key=lambda name: (name.low, name.worker, name.sequence))
    totals = {key: sum(getattr(name, key) for name in names) for key in ("games", "positions", "full")}
    if as_json:
        print(json.dumps({"version": 1, "segments": [asdict(name) for name in names], "totals": totals}))
        return
    table = Table("writer", "segment", "games", "positions", "full search", "model steps", box=None)
    for name in names:
        steps = "no model" if name.bootstrap else f"{name.low} to {name.high}"
        writer, counts = f"{name.worker}.{name.incarnation}", (name.sequence, name.games, name.positions, name.full)
        table.add_row(writer, *map(str, counts), steps)
    table.add_row("total", str(len(names)), *map(str, totals.values()), "", style="bold")
    Console().print(table)


def _print_status(console: Console, found: dict[str, Any]) -> None:
    replay, models = found["replay"], found["models"]
    console.print(f"{found['run']}: {found['game']}")
    console.print(
        f"replay: {replay['games']} games, {replay['positions']} positions "
        f"({replay['full_positions']} with a full search) in {replay['segments']} segments"
    )
    console.print(f"models: {models['count']}, newest {models['newest'] or 'none yet'}")
    table = Table("process", "doing", "last heard", "done", box=None)
    for process in found["processes"]:
        if process["role"] == "trainer":
            ratio, wanted = process["replay_ratio"], process["replay_ratio_wanted"]
            done = f"step {process['step']}, replay ratio {ratio:.2f} of {wanted:g}, window {process['window']}"
        else:
            done = f"{process['games']} games with {process.get('model') or 'no model'}"
        heard = f"{process['seconds_since_beat']:.0f} s ago"
        table.add_row(process["name"], process["state"], heard, done)
    console.print(table)
    console.print(found["waiting"])
