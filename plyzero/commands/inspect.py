"""games, status, report, health, replay: read-only commands about games and runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from plyzero.commands import common
from plyzero.errors import FailedError, UserError, plain

if TYPE_CHECKING:
    from rich.console import Console

    from plyzero.ops.status import Snapshot
    from plyzero.run.events import Beat
    from plyzero.run.segments import SegmentName
    from plyzero.run.view import Liveness, Process


def list_games() -> None:
    """List the installed games, the bundled bots and the games of OpenSpiel."""
    from plyzero.play.bundled_bots import list_cards
    from plyzero.rules.catalog import game_prefixes, installed_games

    table = common.make_table("game", "description")
    for name, description in installed_games().items():
        table.add_row(name, description)
    common.make_console().print(table)
    bots = common.make_table("bundled bot", "levels", "the level with the highest rating")
    for card in list_cards():
        best = max(card.levels, key=lambda level: level.elo)
        bots.add_row(card.game, f"1 to {len(card.levels)}", f"level {best.number}: {best.claim}")
    print()
    common.make_console().print(bots)
    print()
    for prefix in game_prefixes():
        _list_games_of(prefix)
    print("\nA game of your own is my_module:MyGame, found from the current directory.")


def _list_games_of(prefix: str) -> None:
    """Print the games of another toolkit, or what installs it; nothing if it has no list of games."""
    from plyzero.rules.catalog import find_source

    example = f"{prefix}:NAME"
    try:
        source = find_source(prefix)
        if source is None:
            return
        example = f"{prefix}:{source.example}"
        found = source.playable_games()
    except UserError as missing:
        print(f"Games such as {example}: {missing}")
        return
    if not found:
        return
    games = common.make_table(f"game of {source.toolkit}", "parameters and their defaults")
    for name, defaults in found.items():
        games.add_row(f"{prefix}:{name}", ", ".join(f"{key}={value!r}" for key, value in defaults.items()))
    common.make_console().print(games)


def status(
    run: common.RunOption,
    as_json: common.Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat every two seconds.")] = False,
) -> None:
    """Show the state of every process of a run, and which processes wait for others."""
    from plyzero.ops.status import snapshot
    from plyzero.run.directory import read_run
    from plyzero.run.view import watch_run
    from plyzero.volume_errors import wait_for

    opened, console = read_run(run), common.make_console()
    view = watch_run(opened)  # a single reading of the heartbeats does not show which processes are alive
    while True:
        look = partial(snapshot, view)
        found = wait_for(look, str(run)) if watch else look()
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            if watch:
                console.clear()
            _print_status(console, found, view.processes())
        if not watch:
            return
        time.sleep(2)
        view.refresh()


def wait(run: common.RunOption) -> None:
    """Wait until the training of a run is over. Exit code 0: its budget is reached; 3: no process runs for 30 s.

    A run that is just being created has these 30 s too.
    """
    from plyzero.run.directory import read_run
    from plyzero.run.view import watch_run

    began = time.monotonic()
    while not (run / "run.toml").exists() and time.monotonic() - began <= 30.0:
        time.sleep(1)
    opened = read_run(run)
    view = watch_run(opened)
    alive_at = time.monotonic()
    while not (end := view.end):
        view.refresh()
        if view.alive():
            alive_at = time.monotonic()
        elif time.monotonic() - alive_at > 30.0:
            print(f"plyzero: {run} is not over, and none of its processes runs", file=sys.stderr)
            raise typer.Exit(3)
        time.sleep(1)
    print(f"the training is over: {end}")


def health(
    run: common.RunOption,
    within: Annotated[
        float, typer.Option(min=1, max=86_400, help="Fail if the process has shown no progress for this many seconds.")
    ] = 15.0,
    scratch: common.Scratch = None,
) -> None:
    """Check whether the process of this container is making progress; exit 1 if not. For its health check.

    It reads one file outside the run, so a volume or a store that does not answer stops no process.
    """
    from plyzero.pulse import find_stalled
    from plyzero.run.directory import check_scratch

    check_scratch(run, scratch)
    try:
        problem = find_stalled(str(run), within)
    except FileNotFoundError:
        if scratch is None and not (run / "run.toml").exists():
            raise UserError(f"{run} is not a run directory: it has no run.toml") from None
        problem = "no process of this run is running in this container"
    if problem:
        raise FailedError(problem)
    print("ok")


RENAMED: Final = {"first_step": "low", "last_step": "high"}
"""Field of a segment's name -> its key in the JSON of `replay ls`, where they differ."""


def replay_ls(run: common.RunOption, as_json: common.Json = False) -> None:
    """List the segments of a run."""
    from plyzero.run.directory import read_run
    from plyzero.run.segments import list_segments

    names = _in_order(list_segments(read_run(run).segments))
    totals = {key: sum(getattr(name, key) for name in names) for key in ("games", "positions", "full")}
    if as_json:
        segments = []
        for name in names:
            fields = name._asdict()
            segments.append({RENAMED.get(key, key): value for key, value in fields.items()})
        print(json.dumps({"version": 1, "segments": segments, "totals": totals}))
        return
    table = common.make_table("writer", "segment", "games", "positions", "full search", "model steps")
    for name in names:
        steps = "no model" if name.bootstrap else f"{name.first_step} to {name.last_step}"
        writer = f"{name.worker}.{name.incarnation}"
        counts = (name.sequence, name.games, name.positions, name.full)
        table.add_row(writer, *map(str, counts), steps)
    table.add_row("total", str(len(names)), *map(str, totals.values()), "", style="bold")
    common.make_console().print(table)


def _in_order(names: Iterable[SegmentName]) -> list[SegmentName]:
    return sorted(names, key=lambda name: (name.first_step, name.worker, name.sequence))


def replay_verify(
    run: common.RunOption,
    rules: Annotated[
        bool, typer.Option("--rules", help="Also replay every sealed game by the game's rules, run as plain Python.")
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Read and check every segment, journal and model of a run; exit 1 if any is damaged."""
    from plyzero.ops.verify import find_faults
    from plyzero.rules.compiled_game import CompiledGame
    from plyzero.run.directory import open_run, read_run

    with common.data_output():
        start = open_run(run).game.start if rules else None
    if isinstance(start, CompiledGame):
        start = start.as_plain_python()

    intact = 0
    faults: list[str] = []
    with common.data_output() as output, common.show_progress("reading") as report:
        for name, fault in find_faults(read_run(run), start):
            report(f"{intact} files ok, {len(faults)} faults; read {plain(name, 80)}")
            if fault is None:
                intact += 1
                continue
            faults.append(plain(fault))
            if not as_json:
                print(printable(fault), file=output, flush=True)
    if as_json:
        print(json.dumps({"version": 1, "sound": intact, "faults": faults}))
    else:
        print(f"{intact} files ok, {len(faults)} faults")
    if faults:
        raise FailedError(f"{len(faults)} faults in {run}")


def replay_restore(
    run: common.RunOption,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Files in quarantine/; all if none is given.")
    ] = None,
) -> None:
    """Move intact files out of quarantine; the trainer then reads them once. Exit 1 if one is left there."""
    from plyzero.ops.verify import restore
    from plyzero.run.directory import open_run

    left = 0
    for name, reason in restore(open_run(run), names or ()):
        print(printable(f"{name}: {reason or 'restored'}"))
        if reason is not None:
            left += 1
    if left:
        files = "1 file" if left == 1 else f"{left} files"
        raise FailedError(f"{files} left in {run}/quarantine")


def replay_export(run: common.RunOption) -> None:
    """Print every recorded game as a JSON line."""
    from plyzero.run.directory import open_run
    from plyzero.run.json_games import games_to_json
    from plyzero.run.replay import check_rules
    from plyzero.run.segments import SegmentError, list_segments, read_segment

    unread = 0
    with common.data_output() as output, common.show_progress("exporting") as report:
        opened = open_run(run)
        try:
            check_rules(opened)
        except UserError as error:
            print(f"plyzero: warning: {error}", file=sys.stderr)
        names = _in_order(list_segments(opened.segments))
        for number, name in enumerate(names):
            report(f"{number} of {len(names)} segments exported")
            try:
                games = read_segment(opened.segments / str(name), opened.game, run_id=opened.id)
            except FileNotFoundError:  # removed by the trainer since the listing
                continue
            except (SegmentError, OSError) as error:
                print(plain(f"plyzero: left out: {error}"), file=sys.stderr, flush=True)
                unread += 1
                continue
            for game in games_to_json(games, opened.game.start):
                print(json.dumps(game), file=output)
    if unread:
        raise FailedError(f"{unread} of {len(names)} segments cannot be read; the games of the others are exported")


def printable(text: str) -> Text:
    """Return a text from another process, shortened and without unprintable characters, for a terminal."""
    return Text(plain(text, 400))


def _rows(processes: Sequence[Process]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the rows of the table: the trainer, every live worker and evaluator, and the numbers of ended processes.

    A worker that was started again has one live process, and an ended process for each earlier start.
    """
    ended: dict[Liveness, list[tuple[str, float]]] = {}  # worker and games of the processes that have ended, by state
    for process in processes:
        name, beat, life, silent_seconds = process
        age = f"{beat.seconds / 60:.1f} min" if "seconds" in beat.fields else ""
        heard = f"{life}, {silent_seconds:.0f} s ago"
        if beat.role == "trainer":
            yield name, life if life == "stopped" else heard, age, beat.state, _learning(beat)
        elif beat.role == "rater":
            yield name, heard if process.is_alive else life, age, beat.state, ""
        elif process.is_alive:
            newest = f"model of step {beat.model.step}" if beat.model else "no model yet"
            yield name, heard, age, beat.state, f"{_made(beat)}, {newest}"
        else:
            ended.setdefault(life, []).append((name.partition(".")[0], beat.games))
    for life, processes_of in ended.items():
        workers = sorted({worker for worker, _ in processes_of})
        listed = ", ".join(workers[:8])
        if len(workers) > 8:
            listed += ", ..."
        count = len(processes_of)
        ended_processes = "1 ended process" if count == 1 else f"{count} ended processes"
        total = sum(games for _, games in processes_of)
        yield f"{ended_processes} of {listed}", life, "", "", f"{total:.0f} games"


def _learning(trainer: Beat) -> str:
    if "step" not in trainer.fields:
        return ""
    rate, ratio = trainer.trained_per_second, trainer.replay_ratio
    return (
        f"step {trainer.step:.0f}, {trainer.games:.0f} games, {rate:.0f} positions/s, "
        f"replay ratio {ratio:.2f} of {trainer.replay_ratio_wanted:g}, window {trainer.window:.0f}"
    )


def _made(worker: Beat) -> str:
    if worker.role == "evaluator":
        return f"{worker.evaluations:.0f} evaluations"
    rate = worker.full_positions_per_second
    return f"{worker.games:.0f} games, {worker.positions:.0f} positions, {rate:.0f} full ones/s"


def _learned(trainer: Beat) -> str:
    policy, value = trainer.policy_learned, trainer.value_learned
    if policy is None or value is None:
        return "held-out games: not measured yet"
    return f"held-out games: policy {_versus_guess(policy)}, value {_versus_guess(value)}"


def _versus_guess(skill: float) -> str:
    """Return a skill score in words; 0 is as good as a guess."""
    percent = f"{abs(skill):.0%}"
    if percent == "0%":
        return "as good as a guess"
    return f"{percent} better than a guess" if skill > 0 else f"{percent} worse than a guess"


def _print_status(console: Console, found: Snapshot, processes: Sequence[Process]) -> None:
    replay, models = found["replay"], found["models"]
    for line in found["summary"]:
        console.print(printable(line))
    console.print(f"{found['run']}: {found['game']}")
    console.print(
        f"replay: {replay['games']} games, {replay['positions']} positions "
        f"({replay['full_positions']} with a full search) in {replay['segments']} segments"
    )
    if replay["unread_games"] is not None and (replay["games"] or replay["read_games"]):
        gone = f", {replay['removed_games']} read and removed since" if replay["removed_games"] else ""
        console.print(f"the trainer: {replay['read_games']} games read, {replay['unread_games']} not read yet{gone}")
    console.print(f"models: {models['count']}, newest {models['newest']}" if models["newest"] else "models: none yet")
    for trainer in (each.beat for each in processes if each.beat.role == "trainer"):
        if "step" in trainer.fields:
            console.print(_learned(trainer))
    for warning in found["warnings"]:
        console.print(printable(f"{warning['who']}: {warning['text']}"), style="bold")
    table = common.make_table("process", "heartbeat", "age", "state", "progress")
    for row in _rows(processes):
        table.add_row(*(printable(cell) for cell in row))
    console.print(table)
    if balance := found["balance"]:
        console.print(
            f"without waiting, the workers produce {balance['made_per_second']:.0f} positions/s and the trainer can "
            f"use {balance['wanted_per_second']:.0f}: {balance['suitable_workers']} such workers would keep it busy"
        )
