"""ray up: the workers and the trainer of a run on a Ray cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from plyzero.commands.common import (
    Device,
    GameOption,
    Options,
    Preset,
    RunOption,
    Scratch,
    Seed,
    check_continues,
    check_new_run,
    find_game,
    require,
)
from plyzero.errors import UserError


def ray_up(
    run: RunOption,
    workers: Annotated[int, typer.Option(min=0, max=10_000, help="Number of self-play processes.")] = 1,
    trainer: Annotated[bool, typer.Option("--trainer", help="Also run the trainer.")] = False,
    address: Annotated[
        str | None,
        typer.Option(help="A Ray cluster, HOST:PORT, or auto; default: one that is started on this machine."),
    ] = None,
    device: Device = "auto",
    devices: Annotated[int, typer.Option(min=1, max=64, help="Number of GPUs with which the trainer trains.")] = 1,
    game: GameOption = None,
    preset: Preset = None,
    seed: Seed = None,
    options: Options = None,
    scratch: Scratch = None,
) -> None:
    """Keep workers, and a trainer, of a run on a Ray cluster until Ctrl-C; whichever of them dies is started again."""
    require("ray", "onnx", "onnxruntime")
    if not workers and not trainer:
        raise UserError("expected --workers N with at least one worker, or --trainer")
    if devices > 1 and device == "auto":
        raise UserError(f"--devices {devices} needs --device cuda, for Ray to give the trainer its GPUs")
    from plyzero.ops.keeper import Role
    from plyzero.ops.ray_cluster import keep_running
    from plyzero.run.directory import check_scratch, open_or_create_run

    check_scratch(run, scratch)
    check_continues(run, options)
    spec = find_game(game) if game else None
    opened = open_or_create_run(
        run.absolute(),
        spec,
        preset=preset,
        seed=seed,
        options=options or (),
        scratch=scratch and scratch.absolute(),
        check=check_new_run,
    )
    common = ["--run", str(opened.root), *(part for option in options or () for part in ("-o", option))]
    common += ["--scratch", str(opened.scratch)] if opened.scratch else []
    roles = [Role(f"w{each}", ["selfplay", *common, "--name", f"w{each}"]) for each in range(workers)]
    if trainer:
        arguments = ["trainer", *common, "--device", device, "--devices", str(devices)]
        roles.append(Role("trainer", arguments, gpus=devices if device == "cuda" else 0))
    keep_running(opened, roles, address=address, on_line=lambda line: print(line, flush=True))
