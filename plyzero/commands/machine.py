"""doctor, bench: whether plyzero can run on this machine, and how fast."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from plyzero.commands import common
from plyzero.errors import FailedError, UserError, plain

if TYPE_CHECKING:
    from plyzero.network.onnx_network import Network
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
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="An ONNX model, or a run, whose settings are used; by default a network with random weights.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, max=86_400, help="Duration of the measurement, in seconds.")] = 20,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Evaluate every position with the network, without the cache.")
    ] = False,
    evaluator: Annotated[
        bool, typer.Option("--evaluator", help="Evaluate in another process, as workers do beside a GPU.")
    ] = False,
    preset: common.Preset = None,
    options: common.Options = None,
    blocks: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    channels: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    precision: Annotated[Literal["auto", "fp32", "int8"] | None, typer.Option(hidden=True)] = None,
    as_json: common.Json = False,
) -> None:
    """Measure a worker as `train` would start it here: its speed, and where its time goes.

    Half a second of self-play, recording included, and half a second of the network alone are measured in turn. -o
    changes a setting, such as network.blocks=4.
    """
    import tempfile

    found = common.find_game(game)
    settings = list(options or ())
    shorter = {"network.blocks": blocks, "network.channels": channels, "selfplay.precision": precision}
    settings += [f"{key}={value}" for key, value in shorter.items() if value is not None]
    if no_cache:
        settings.append("selfplay.cache_mb=0")
    with (
        tempfile.TemporaryDirectory() as directory,
        common.show_progress("starting") as report_progress,
        common.playing(found),
    ):
        run = _make_run(Path(directory) / "run", found, net, preset, settings)
        network = _publish(run, net)
        from plyzero.selfplay.benchmark import measure  # it takes seconds, so arguments are checked before

        with _serving(run) if evaluator else nullcontext() as remote:
            report = measure(run, network, seconds=seconds, on_progress=report_progress, remote=remote)
        report_progress("this machine")
        report["bot_evaluations_per_cpu_second"] = _speed_of_bot()
    if as_json:
        print(json.dumps(report))
    else:
        _print(report, found)


def _make_run(root: Path, game: GameSpec, net: Path | None, preset: str | None, options: Sequence[str]) -> Run:
    """Create the run whose worker is measured, with the settings that `train` would give it."""
    from plyzero.run.directory import open_run, plan_run, write_run

    planned = plan_run(root, game, preset=preset or "quick", options=options)
    if net is not None and net.is_dir():
        if preset:
            raise UserError(f"expected no --preset beside the run {net}, whose settings are used")
        planned = replace(planned, settings=open_run(net, game=game, options=options).settings)
    write_run(planned)
    return planned


def _publish(run: Run, net: Path | None) -> Network:
    """Publish `net`, or random weights, in `run` as its trainer would; return what a worker of the run then loads."""
    from plyzero.network.model_loader import ModelWatch, load_network
    from plyzero.run.directory import open_run
    from plyzero.run.models import read_model_file

    content, label = None, f"random weights, {run.settings.network.blocks} x {run.settings.network.channels}"
    if net is not None:
        network = load_network(net, run.game, threads=run.settings.selfplay.threads)
        if find_spec("torch") is None:  # which makes the 8-bit form
            return network
        label = network.label
        content = read_model_file(open_run(net).models / label if net.is_dir() else net)
    common.in_another_process(publish_first, run.root, content)  # a worker does not load torch
    loaded = ModelWatch.of_worker(run).newer()
    assert loaded
    loaded.label = label
    return loaded


def publish_first(root: Path, content: bytes | None = None) -> None:
    """Publish the ONNX file `content`, or a network with random weights, in the run `root`, in both its forms."""
    from plyzero.network.onnx_network import reachable_observations
    from plyzero.run.directory import KEY, open_run
    from plyzero.run.models import publish_model

    run = open_run(root)
    if content is None:
        content = random_weights(root)
    from plyzero.trainer.export import make_forms, with_metadata

    assert run.id
    content = with_metadata(content, KEY, run.id.text)
    forms = make_forms(run, content, reachable_observations(run.game))
    publish_model(run.models, forms.content, fence=1, step=1, int8=forms.int8)


def _speed_of_bot() -> float | None:
    """Return evaluations per CPU second of the bundled network of Connect Four in 32 bits; None on a GPU."""
    import numpy as np

    from plyzero.network.model_loader import load_network
    from plyzero.network.onnx_network import has_gpu, reachable_observations
    from plyzero.play.bundled_bots import DIRECTORY
    from plyzero.rules.catalog import load_game
    from plyzero.selfplay.benchmark import evaluate_alone, timed, total

    if has_gpu():
        return None
    game = load_game("connect-four")
    network = load_network(DIRECTORY / "connect-four.onnx", game)
    batch = np.resize(reachable_observations(game), (64, *game.start.observation_shape))
    turns = [timed(lambda limit: evaluate_alone(network, batch, limit)) for _ in range(2)]
    return round(total(turns).per_cpu_second, 1)


@contextmanager
def _serving(run: Run) -> Iterator[RemoteEvaluator]:
    """Start an evaluator of the model of `run`, and yield what asks it. Raises FailedError if it ends."""
    from plyzero.ops.child import free_port, start_plyzero
    from plyzero.run.events import read_heartbeats
    from plyzero.selfplay.evaluated_games import find_evaluator

    port = free_port()
    connect = find_evaluator(f"127.0.0.1:{port}")
    arguments = ["evaluator", "--run", str(run.root), "--port", str(port)]
    server = start_plyzero("evaluator", arguments, run.logs / "evaluator.log")
    try:
        while not any(beat.state == "serving" for beat in read_heartbeats(run.workers).values()):
            if server.exit_code() is not None:
                raise FailedError(f"the evaluator has ended: {plain(server.read_log(), 500)}")
            time.sleep(0.1)
        remote = connect(run)
        yield remote
        if not remote.is_ready:
            raise FailedError(f"the evaluator has stopped answering: {plain(server.read_log(), 500)}")
    finally:
        server.end(10.0)


def default_network(game: GameSpec) -> tuple[str, float] | None:
    """Return the name of the default network and its microseconds for a position; None if torch is not installed."""
    import tempfile

    import numpy as np

    from plyzero.network.onnx_network import reachable_observations
    from plyzero.run.directory import create_run
    from plyzero.selfplay.benchmark import evaluate_alone, timed

    with tempfile.TemporaryDirectory() as directory:
        run = create_run(Path(directory) / "run", game)
        try:
            network = _publish(run, None)
        except UserError:
            return None
    shape = (run.settings.selfplay.parallel_games, *game.start.observation_shape)
    batch = np.resize(reachable_observations(game), shape)
    turn = timed(lambda limit: evaluate_alone(network, batch, limit))
    size = f"{run.settings.network.blocks} x {run.settings.network.channels}, {network.precision}"
    return size, 1e6 / turn.per_cpu_second


def random_weights(run: Path) -> bytes:
    """Return an ONNX model with random weights for the run in this directory."""
    from plyzero.run.directory import open_run

    try:
        from plyzero.trainer.export import untrained
    except ImportError as error:
        raise UserError("a network with random weights needs the package torch; pass a model with --net") from error
    return untrained(open_run(run))


def _print(report: dict[str, Any], game: GameSpec) -> None:
    from plyzero.commands.bottleneck import compare, first_change
    from plyzero.machine import usable_cores
    from plyzero.network.onnx_network import takes_int8

    console = common.make_console()
    games = f"{report['parallel_games']} parallel games, batches of {report['batch']}"
    through = ", through an evaluator" if report["evaluator"] else ""
    simulations = f"{report['simulations']} simulations for {report['full_search_probability']:.0%} of the moves"
    console.print(
        f"{report['game']}, {report['network']}, {report['precision']}{through}, {games}, {simulations}, "
        f"{report['fast_simulations']} for the others"
    )
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
    console.print(f"\n{first_change(game, report['shares'], report['rules'], evaluator=report['evaluator'])}")
    if bot := report["bot_evaluations_per_cpu_second"]:
        console.print(f"\n{compare(bot, cores=usable_cores(), has_8_bit=takes_int8('auto'))}")
