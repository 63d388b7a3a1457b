"""doctor, bench: whether plyzero can run on this machine, and how fast."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from plyzero.commands import common
from plyzero.errors import FailedError, plain

if TYPE_CHECKING:
    from plyzero.rules.catalog import GameSpec
    from plyzero.run.directory import Run
    from plyzero.search.evaluators import RemoteEvaluator

STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def doctor(
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="DIR",
            parser=common.read_directory,
            help="Also check the volume on which this run directory is or would be.",
        ),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Check whether plyzero can run on this machine and on a volume; exit 1 if not."""
    from plyzero.ops.doctor import examine

    findings = []
    with common.show_progress("probing") as report:
        for finding in examine(run):
            findings.append(finding)
            report(f"probing, {len(findings)} done, the last: {finding.name}")
    failures = [finding.name for finding in findings if finding.verdict == "failure"]
    if as_json:
        print(json.dumps({"version": 1, "findings": [asdict(each) for each in findings], "fit": not failures}))
    else:
        table = common.make_table("", "check", "result")
        for each in findings:
            table.add_row(Text(each.verdict, STYLES[each.verdict]), each.name, Text(plain(each.says)))
        common.make_console().print(table)
    if failures:
        raise FailedError(f"cannot run here until these are fixed: {', '.join(failures)}")
    if not as_json:
        warnings = sum(finding.verdict == "warning" for finding in findings)
        where = "this machine" if run is None else "this machine and this volume"
        count = {0: "no warnings", 1: "1 warning"}.get(warnings, f"{warnings} warnings")
        print(f"\nplyzero can run on {where}: {count}.")


def bench(
    game: common.GameArgument,
    net: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An ONNX model; by default a network with random weights.")
    ] = None,
    blocks: Annotated[int, typer.Option(min=1, help="Residual blocks of the random network.")] = 4,
    channels: Annotated[int, typer.Option(min=1, help="Channels of the random network.")] = 64,
    seconds: Annotated[float, typer.Option(min=1, max=86_400, help="Duration of the measurement, in seconds.")] = 20,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Evaluate every position with the network, without the cache.")
    ] = False,
    precision: Annotated[
        Literal["fp32", "int8"], typer.Option(help="Numbers of the network; its 8-bit form is made here.")
    ] = "fp32",
    evaluator: Annotated[
        bool, typer.Option("--evaluator", help="Evaluate in another process, as workers do beside a GPU.")
    ] = False,
    options: common.Options = None,
    as_json: common.Json = False,
) -> None:
    """Measure the speed of self-play, compared with the network alone.

    Half a second of self-play, recording included, and half a second of the network alone are measured in turn.
    """
    import tempfile

    from plyzero.network.model_loader import load_network
    from plyzero.network.onnx_network import Network, reachable_observations
    from plyzero.run.directory import create_run, open_run
    from plyzero.run.models import read_model_file

    found = common.find_game(game)
    settings = list(options or ())
    settings += [f"network.blocks={blocks}", f"network.channels={channels}"]
    if no_cache:
        settings.append("selfplay.cache_mb=0")
    with (
        tempfile.TemporaryDirectory() as directory,
        common.show_progress("starting") as report_progress,
        common.playing(found),
    ):
        run = create_run(Path(directory) / "run", found, options=settings)
        threads = run.settings.selfplay.threads
        if net is None:
            content = common.in_another_process(random_weights, run.root)  # a worker does not load torch
            network = Network(content, found, label=f"random weights, {blocks} x {channels}", threads=threads)
        else:
            network = load_network(net, found, threads=threads)
            content = read_model_file(open_run(net).models / network.label if net.is_dir() else net)
        if precision == "int8":
            from plyzero.trainer.export import quantise

            content = quantise(content, reachable_observations(found))
            network = Network(content, found, label=f"{network.label}, int8", threads=threads)
        from plyzero.selfplay.benchmark import measure  # it takes seconds, so arguments are checked before

        with _serving(run, content) if evaluator else nullcontext() as remote:
            report = measure(run, network, seconds=seconds, on_progress=report_progress, remote=remote)
    if as_json:
        print(json.dumps(report))
    else:
        _print(report)


@contextmanager
def _serving(run: Run, content: bytes) -> Iterator[RemoteEvaluator]:
    """Start an evaluator of the model `content` for `run`, and yield what asks it. Raises FailedError if it ends."""
    from plyzero.ops.child import free_port, start_plyzero
    from plyzero.run.directory import KEY
    from plyzero.run.events import read_heartbeats
    from plyzero.run.models import publish_model
    from plyzero.selfplay.evaluated_games import connect
    from plyzero.trainer.export import with_metadata

    assert run.id
    publish_model(run.models, with_metadata(content, KEY, run.id.text), fence=1, step=1)
    port = free_port()
    arguments = ["evaluator", "--run", str(run.root), "--port", str(port)]
    server = start_plyzero("evaluator", arguments, run.logs / "evaluator.log")
    try:
        while not any(beat.state == "serving" for beat in read_heartbeats(run.workers).values()):
            if server.exit_code() is not None:
                raise FailedError(f"the evaluator has ended: {plain(server.read_log(), 500)}")
            time.sleep(0.1)
        remote = connect(f"127.0.0.1:{port}", run)
        yield remote
        if not remote.is_ready:
            raise FailedError(f"the evaluator has stopped answering: {plain(server.read_log(), 500)}")
    finally:
        server.end(10.0)


def default_network(game: GameSpec) -> tuple[str, float] | None:
    """Return the name of the default network and its microseconds for a position; None if torch is not installed."""
    import tempfile

    import numpy as np

    from plyzero.errors import UserError
    from plyzero.network.onnx_network import Network, reachable_observations
    from plyzero.run.directory import create_run
    from plyzero.selfplay.benchmark import evaluate_alone, timed

    with tempfile.TemporaryDirectory() as directory:
        run = create_run(Path(directory) / "run", game)
        try:
            network = Network(common.in_another_process(_quantised, run.root), game, label="random weights")
        except UserError:
            return None
    shape = (run.settings.selfplay.parallel_games, *game.start.observation_shape)
    batch = np.resize(reachable_observations(game), shape)
    turn = timed(lambda limit: evaluate_alone(network, batch, limit))
    size = f"{run.settings.network.blocks} x {run.settings.network.channels}, {network.precision}"
    return size, 1e6 / turn.per_cpu_second


def _quantised(run: Path) -> bytes:
    from plyzero.network.onnx_network import reachable_observations, takes_int8
    from plyzero.run.directory import open_run

    content, opened = random_weights(run), open_run(run)
    if not takes_int8(opened.settings.selfplay.precision):
        return content
    from plyzero.trainer.export import quantise

    return quantise(content, reachable_observations(opened.game))


def random_weights(run: Path) -> bytes:
    """Return an ONNX model with random weights for the run in this directory."""
    from plyzero.errors import UserError
    from plyzero.run.directory import open_run

    try:
        from plyzero.trainer.export import untrained
    except ImportError as error:
        raise UserError("a network with random weights needs the package torch; pass a model with --net") from error
    return untrained(open_run(run))


def _print(report: dict[str, Any]) -> None:
    console = common.make_console()
    games = f"{report['parallel_games']} parallel games, batches of {report['batch']}"
    through = ", through an evaluator" if report["evaluator"] else ""
    console.print(f"{report['game']}, {report['network']}{through}, {games}")
    low, _, high = report["share_of_ceiling_quartiles"]
    cpu = report["share_of_ceiling_cpu"]
    table = common.make_table("", "", show_header=False)
    table.columns[1].justify = "right"
    rows = {
        "network alone, evaluations/s": f"{report['ceiling_per_second']:,.0f}",
        "worker, evaluations/s": f"{report['evaluations_per_second']:,.0f}",
        "worker relative to the network alone": f"{report['share_of_ceiling']:.1%} ({low:.1%} to {high:.1%})",
        "the same in CPU time": "–" if cpu is None else f"{cpu:.1%}",
        "cache hit rate": f"{report['cache_hit_rate']:.1%}",
        "simulations/s": f"{report['simulations_per_second']:,.0f}",
        "simulations relative to the network alone": f"{report['simulations_of_ceiling']:.1%}",
        "positions/s": f"{report['positions_per_second']:,.1f}",
        "time to the first move": f"{report['first_move_seconds']:.1f} s",
        "memory": f"{report['memory_mb']} MB",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    if report["solved_by_cache"]:
        console.print(
            f"Only {report['shares']['network']:.1%} of the time goes to the network: the game is so small that "
            f"{report['cache_hit_rate']:.0%} of the evaluations come from the cache, so this is not the speed of the "
            "network. --no-cache measures without it."
        )
    parts = ", ".join(f"{name} {share:.1%}" for name, share in report["shares"].items() if share)
    console.print(f"time spent in: {parts}")
