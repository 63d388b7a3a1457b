"""evaluator, ray: central evaluation for many workers, and a run on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from plyzero.commands import common
from plyzero.commands.roles import begin_role, end_role
from plyzero.errors import UserError


@common.in_panel("Train")
@common.with_groups
def evaluator(
    run: common.RunOption,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 = all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 = any that is free.")] = 8001,
    repository: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Do not serve, but keep the newest model in this NVIDIA Triton repository."),
    ] = None,
    max_batch: Annotated[
        int, typer.Option(min=1, max=65536, help="Number of positions of a full batch, which is evaluated at once.")
    ] = 512,
    wait_ms: Annotated[
        float, typer.Option(min=0, max=1000, help="Longest time that a batch waits for more positions, in ms.")
    ] = 0.0,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Threads for inference on the CPU.")] = 1,
    new: common.RunOptions,
    logs: common.LogOptions,
) -> None:
    """Evaluate positions for the self-play workers of a run, with its newest model, until it is stopped or over."""
    common.require("onnx", "onnxruntime", "grpc")
    opened, stop = begin_role(run, new, logs)
    from plyzero.kits.cluster.evaluation_server import run_evaluator
    from plyzero.kits.cluster.model_repository import keep_repository

    batches: dict[str, Any] = {"max_batch": max_batch, "wait_seconds": wait_ms / 1000, "threads": threads, "stop": stop}
    if repository is None:
        run_evaluator(opened, host=host, port=port, **batches)
    else:
        keep_repository(opened, repository, **batches)
    end_role(opened, stop, logs)


ray = common.in_panel("Train")(typer.Typer(help="Train on a Ray cluster.", no_args_is_help=True))


@ray.command("up")
@common.with_groups
def ray_up(
    run: common.RunOption,
    *,
    workers: Annotated[int, typer.Option(min=0, max=10_000, help="Number of self-play processes.")] = 1,
    trainer: Annotated[bool, typer.Option("--trainer", help="Also run the trainer.")] = False,
    rater: Annotated[bool, typer.Option("--rate", help="Also measure the newest models.")] = False,
    address: Annotated[
        str | None,
        typer.Option(help="A Ray cluster, HOST:PORT, or auto; default: one that is started on this machine."),
    ] = None,
    device: common.Device = "auto",
    devices: Annotated[int, typer.Option(min=1, max=64, help="Number of GPUs with which the trainer trains.")] = 1,
    budget: common.Budget,
    new: common.RunOptions,
) -> None:
    """Run workers, and a trainer, on a Ray cluster until Ctrl-C or the end of the training; start those that die."""
    common.require("ray", "onnx", "onnxruntime")
    if not workers and not trainer:
        raise UserError("expected --workers N with at least one worker, or --trainer")
    if devices > 1 and device == "auto":
        raise UserError(f"--devices {devices} needs --device cuda, for Ray to give the trainer its GPUs")
    from plyzero.kits.cluster.keeper import Role
    from plyzero.kits.cluster.ray_cluster import keep_running
    from plyzero.run.directory import check_scratch

    options = budget.added_to(new.options)
    check_scratch(run, new.scratch)
    common.check_continues(run, options)
    scratch = new.scratch and new.scratch.absolute()
    opened = new._replace(options=options, scratch=scratch).open(run.absolute(), common.check_new_run)
    shared = ["--run", str(opened.root)]
    for option in options:
        shared += ["-o", option]
    if opened.scratch:
        shared += ["--scratch", str(opened.scratch)]
    roles = [Role(f"w{each}", ["selfplay", *shared, "--name", f"w{each}"]) for each in range(workers)]
    if rater:
        roles.append(Role("rater", ["rate", *shared]))
    if trainer:
        arguments = ["trainer", *shared, "--device", device, "--devices", str(devices)]
        roles.append(Role("trainer", arguments, gpus=devices if device == "cuda" else 0))
    keep_running(opened, roles, address=address, on_line=lambda line: print(line, flush=True))
