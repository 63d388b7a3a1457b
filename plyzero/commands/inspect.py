"""games, status, replay: look at what there is; nothing is changed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plyzero.commands.common import FailedError, Json, RunOption


def list_games() -> None:
    """List the games that can be trained, and the bots that come along."""
    from plyzero.play.bundled_bots import list_cards
    from plyzero.rules.catalog import installed_games

    table = Table("game", "what it is", box=None)
    for name, what in installed_games().items():
        table.add_row(name, what)
    Console().print(table)
    bots = Table("bot", "levels", "the strongest, 0 Elo = pure MCTS with 200 rollouts", box=None)
    for card in list_cards():
        bots.add_row(card.game, f"1 to {len(card.levels)}", str(max(card.levels, key=lambda level: level.elo)))
    print()
    Console().print(bots)
    print("\nYour own game is my_module:MyGame, found from the directory you are in.")


def status(
    run: RunOption,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds.")] = False,
) -> None:
    """Show what every process of a run is doing and who waits for whom."""
    from plyzero.ops.status import snapshot
    from plyzero.run.directory import open_run
    from plyzero.run.liveness import watch_run

    opened, console = open_run(run), Console(highlight=False, markup=False)
    observer = watch_run(opened)  # one look cannot tell who lives
    while True:
        found = snapshot(opened, observer)
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            if watch:
                console.clear()
            _print_status(console, found)
        if not watch:
            return
        time.sleep(2)
        observer.look()


def health(
    run: RunOption,
    within: Annotated[float, typer.Option(min=1, help="Seconds in which its heartbeat must move.")] = 15.0,
) -> None:
    """Tell, for a container's health check, whether the process of this host makes progress; exit 1 if not."""
    from plyzero.ops.health import find_stalled_process

    if trouble := find_stalled_process(run / "workers", within=within):
        raise FailedError(trouble)
    print("ok")


def replay_ls(run: RunOption, as_json: Json = False) -> None:
    """List the segments of a run."""
    from dataclasses import asdict

    from plyzero.run.directory import open_run
    from plyzero.run.segments import list_segments

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


def replay_verify(run: RunOption, as_json: Json = False) -> None:
    """Read and check every segment, journal and model of a run; exit 1 if anything is wrong."""
    from plyzero.ops.verify import find_faults
    from plyzero.run.directory import open_run

    sound, faults = 0, []
    with Console(stderr=True).status("reading") as progress:
        for name, fault in find_faults(open_run(run)):
            progress.update(f"{sound} files are sound; {name}")
            if fault is None:
                sound += 1
            else:
                faults.append(fault)
    if as_json:
        print(json.dumps({"version": 1, "sound": sound, "faults": faults}))
    else:
        for fault in faults:
            print(fault)
        print(f"{sound} files are sound, {len(faults)} faults")
    if faults:
        raise FailedError(f"{len(faults)} faults in {run}")


def replay_export(run: RunOption) -> None:
    """Print every recorded game as a JSON line."""
    from plyzero.run.directory import open_run
    from plyzero.run.games_json import as_objects
    from plyzero.run.segments import SegmentError, list_segments, read_segment

    opened = open_run(run)
    for name in sorted(list_segments(opened.segments), key=lambda each: (each.low, each.worker, each.sequence)):
        try:
            games = read_segment(opened.segments / str(name), opened.game)
        except FileNotFoundError:  # the trainer has just removed it
            continue
        except SegmentError as error:
            raise FailedError(f"{error}; all games before it are exported") from error
        for game in as_objects(games, opened.game.start):
            print(json.dumps(game))


def printable(text: str) -> Text:
    """Return what a terminal can show of a text that another process wrote."""
    return Text("".join(letter if letter.isprintable() else "?" for letter in text[:400]))


def _rows(processes: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for the trainer, one for every worker that lives, and one for all that do so no more."""
    from plyzero.run.metrics import number
    from plyzero.run.models import ModelName

    over: dict[str, list[float]] = {}
    for process in processes:
        name, life, state = process["name"], process["life"], process["state"]
        games = number(process, "games")
        if process["role"] == "trainer":
            step, window = number(process, "step"), number(process, "window")
            ratio, wanted = number(process, "replay_ratio"), number(process, "replay_ratio_wanted")
            yield name, life, state, f"step {step:.0f}, replay ratio {ratio:.2f} of {wanted:g}, window {window:.0f}"
        elif life in ("ok", "stalled"):
            model = ModelName.parse(str(process.get("model")))
            yield (
                name,
                life,
                state,
                f"{games:.0f} games, " + (f"model of step {model.step}" if model else "no model yet"),
            )
        else:
            over.setdefault(life, []).append(games)
    for life, games_of in over.items():
        yield f"{len(games_of)} worker{'s' if len(games_of) > 1 else ''}", life, "", f"{sum(games_of):.0f} games"


def _learned(trainer: dict[str, Any]) -> str:
    """Return what the network knows of games that were held out, if that is known."""
    from plyzero.run.metrics import number

    if not all(isinstance(trainer.get(key), float) for key in ("policy_learned", "value_learned")):
        return "learned: not known yet"
    policy, value = number(trainer, "policy_learned"), number(trainer, "value_learned")
    return f"learned, of games held out: {policy:.0%} of the policies, {value:.0%} of the values; a guess knows 0%"


def _print_status(console: Console, found: dict[str, Any]) -> None:
    replay, models = found["replay"], found["models"]
    console.print(f"{found['run']}: {found['game']}")
    console.print(
        f"replay: {replay['games']} games, {replay['positions']} positions "
        f"({replay['full_positions']} with a full search) in {replay['segments']} segments"
    )
    console.print(f"models: {models['count']}, newest {models['newest'] or 'none yet'}")
    for trainer in (each for each in found["processes"] if each["role"] == "trainer"):
        console.print(_learned(trainer))
        if isinstance(trainer.get("warning"), str):
            console.print(printable(trainer["warning"]), style="bold")
    if replay["quarantined"]:
        console.print(f"{replay['quarantined']} files could not be read and were put into quarantine/")
    table = Table("process", "", "doing", "done", box=None)
    for row in _rows(found["processes"]):
        table.add_row(*(printable(cell) for cell in row))
    console.print(table)
    console.print(printable(found["waiting"]))
    if balance := found["balance"]:
        console.print(
            f"while nobody waits, the workers make {balance['made_per_second']:.0f} positions/s and the trainer can "
            f"use {balance['wanted_per_second']:.0f}: {balance['suitable_workers']} such workers would suit it"
        )
