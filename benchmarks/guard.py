"""Train right and wrong games, and see which warnings the learning guard gives, and when.

python -m benchmarks.guard train --runs DIR --minutes 10 right     # all right games, or some by name
python -m benchmarks.guard train --runs DIR --minutes 3 wrong
python -m benchmarks.guard replay --runs DIR                       # what today's guard says of recorded runs
python -m benchmarks.guard table benchmarks/results/guard.jsonl    # the tables of results/guard.md
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from plyzero.play.model_loader import load_model
from plyzero.rules.catalog import load_game
from plyzero.run.directory import Run, create_run, open_run
from plyzero.run.metrics import TRAINER, append_line, read_heartbeat, read_lines
from plyzero.run.models import ModelName
from plyzero.run.segments import list_segments, read_segment
from plyzero.search.evaluators import EvaluationBatch
from plyzero.search.onnx_network import Network
from trainer.diagnostics import HELD_OUT, Diagnostics
from trainer.targets import make_samples
from trainer.window import Window, window_size

KEEP_ALL = ("store.keep_models=100000", "store.keep_positions=1000000000", "store.keep_mb=100000")
"""Settings under which a run can be replayed."""


class Case(NamedTuple):
    """What is trained.

    game:    its name.
    options: settings.
    trainer: the module that runs the trainer.
    """

    game: str
    options: tuple[str, ...] = ()
    trainer: str = "plyzero"


OWN = "benchmarks.guard_games"
RIGHT = {
    name: Case(game)
    for name, game in {
        "tic-tac-toe": "tic-tac-toe",
        "connect-four": "connect-four",
        "othello 6x6": "othello(size=6)",
        "breakthrough": "examples.breakthrough:Breakthrough",
        "dots and boxes": "examples.dots_and_boxes:DotsAndBoxes",
        "connect-four 4x4": "connect-four(rows=4, columns=4)",
        "nim": "tests.helpers.zoo:Nim",
        "kalah": "tests.helpers.zoo:Kalah",
        "hex": "tests.helpers.zoo:Hex",
        "chomp": "tests.helpers.zoo:Chomp",
        "shuffle": "tests.helpers.zoo:Shuffle",
        "clobber": "tests.helpers.zoo:Clobber",
        "misere": f"{OWN}:Misere",
        "chase": f"{OWN}:Chase",
        "connect-four 5x5": "connect-four(rows=5, columns=5)",
    }.items()
}
WRONG = {
    "constant observation": Case(f"{OWN}:Constant"),
    "noise as observation": Case(f"{OWN}:Noise"),
    "observation of player 0's side, kalah": Case(f"{OWN}:FirstPlayersKalah"),
    "observation of player 0's side, actions turned": Case(f"{OWN}:NotTurned(size=5)"),
    "observation one move late": Case(f"{OWN}:Late"),
    "observation without the opponent": Case(f"{OWN}:OwnPiecesOnly(size=6)"),
    "hidden counter": Case(f"{OWN}:HiddenCounter"),
    "turn never passes": Case(f"{OWN}:TurnNeverPasses"),
    "legal moves random": Case(f"{OWN}:RandomLegal"),
    "legal moves of the position before": Case(f"{OWN}:LegalOfBefore"),
    "winner random": Case(f"{OWN}:RandomWinner"),
    "winner always player 0": Case(f"{OWN}:OneWinner"),
    "nobody wins": Case(f"{OWN}:NobodyWins"),
    "games never end": Case(f"{OWN}:Endless"),
    "symmetry without the moves": Case(f"{OWN}:MirrorWithoutMoves"),
    "symmetries with inverse moves": Case(f"{OWN}:InverseTurns"),
    "symmetry that is none": Case(f"{OWN}:NotSymmetric"),
    "learning rate 1": Case("tic-tac-toe", ("trainer.learning_rate=1",)),
    "labels swapped": Case("tic-tac-toe", trainer="benchmarks.guard_swapped"),
}
CASES = {**RIGHT, **WRONG}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    train_parser = commands.add_parser("train")
    train_parser.add_argument("cases", nargs="+", choices=["right", "wrong", *CASES])
    train_parser.add_argument("--minutes", type=float, default=10.0)
    train_parser.add_argument("--cpu-minutes", type=float, default=1e9, help="of the process that has used the most")
    train_parser.add_argument("--until-warning", action="store_true")
    replay_parser = commands.add_parser("replay")
    replay_parser.add_argument("cases", nargs="*")
    for each in train_parser, replay_parser:
        each.add_argument("--runs", type=Path, required=True, help="a folder with a run directory for each case")
        each.add_argument("--write", type=Path, help="append the lines to this file")
    table_parser = commands.add_parser("table")
    table_parser.add_argument("lines", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        print(table([json.loads(line) for line in given.lines.read_text().splitlines()]))
        return
    groups = {"right": list(RIGHT), "wrong": list(WRONG)}
    for name in [name for case in given.cases or CASES for name in groups.get(case, [case])]:
        root = given.runs / directory_of(name)
        if given.command == "train":
            train(CASES[name], root, given)
        if not (root / "began.json").exists():
            continue
        found = lines_of(name, root, replayed=given.command == "replay")
        lines = sorted(found, key=lambda line: line["seconds"])
        text = "".join(json.dumps(line) + "\n" for line in lines)
        print(summary(lines), flush=True)
        if given.write:
            with given.write.open("a") as file:
                file.write(text)


def train(case: Case, root: Path, given: argparse.Namespace) -> None:
    """Train a new run with one worker, and record how much CPU time its processes use."""
    shutil.rmtree(root, ignore_errors=True)
    run = create_run(root, load_game(case.game), seed=1, options=[*KEEP_ALL, *case.options])
    began = time.time()
    (root / "began.json").write_text(json.dumps({"began": began}))
    running = [
        start(case.trainer, ["trainer", "--run", str(root), "--device", "cpu"], run.logs / "trainer.log"),
        start("plyzero", ["selfplay", "--run", str(root), "--name", "w0"], run.logs / "w0.log"),
    ]
    used = [0.0, 0.0]
    while time.time() < began + 60 * given.minutes and max(used) < 60 * given.cpu_minutes:
        time.sleep(1)
        if any(child.poll() is not None for child in running):
            break
        used = [cpu_seconds(child.pid) for child in running]
        beat = read_heartbeat(run.workers / f"{TRAINER}.json") or {}
        append_line(root / "watch.jsonl", {"cpu": used} | {key: beat.get(key) for key in ("step", "games", "warning")})
        if given.until_warning and beat.get("warning"):
            break
    for child in running:
        child.terminate()
    for child in running:
        child.wait()


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a living process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metrics_of(run: Run) -> list[dict[str, Any]]:
    return [line for path in sorted(run.metrics.glob("trainer-*.jsonl")) for line in read_lines(path)]


def start(module: str, arguments: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=output, stderr=subprocess.STDOUT)


def lines_of(name: str, root: Path, *, replayed: bool) -> Iterator[dict[str, Any]]:
    """Yield a line for the first warning, one for each model, and one for the error that ended the trainer."""
    run = open_run(root)
    began = json.loads((root / "began.json").read_text())["began"]
    watched = [*read_lines(root / "watch.jsonl")]

    def common(time: float) -> dict[str, Any]:
        used = next((line["cpu"] for line in reversed(watched) if line["time"] <= time), [None, None])
        cpu = {"trainer_cpu": used[0], "worker_cpu": used[1]}
        return {"case": name, "right": name in RIGHT, "seconds": round(time - began, 1)} | cpu

    early = next((line for line in watched if line["warning"]), None)
    if early and not replayed:
        yield common(early["time"]) | {key: early[key] for key in ("step", "games", "warning")}
    lines = metrics_of(run)
    for line, report in zip(lines, replay(run, lines) if replayed else lines, strict=True):
        kept = {key: line[key] for key in ("step", "games")}
        yield common(line["time"]) | kept | {key: report[key] for key in REPORTED if key in report}
    log = run.logs / "trainer.log"
    error = log.read_text(errors="replace").strip().splitlines()[-1:]
    if error and error[0].startswith("error"):
        yield common(log.stat().st_mtime) | {"games": None, "step": None, "warning": error[0]}


REPORTED = (
    "policy_learned", "value_learned", "window_policy_learned", "window_value_learned", "openings",
    "drawn", "cut_off", "won", "foresight", "compared", "view", "warning",
)  # fmt: skip


def replay(run: Run, lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the guard of this code reports at each published model of a recorded run with one worker."""
    settings = run.settings.trainer
    diagnostics, window, full, games = Diagnostics(run.game, settings), Window(run.game.start), 0, 0
    names = iter(sorted(list_segments(run.segments), key=lambda name: name.sequence))
    for line in lines:
        while games < line["games"]:
            name = next(names)
            recorded = read_segment(run.segments / str(name), run.game)
            games, full = games + name.games, full + name.full
            size = window_size(
                full,
                smallest=settings.window_positions,
                growth=settings.window_growth,
                exponent=settings.window_exponent,
            )
            trained, held_out = diagnostics.split(recorded)
            for part, into, room in (trained, window, size), (held_out, diagnostics.held_out, -(-size // HELD_OUT)):
                samples = make_samples(part, search=run.settings.search, trainer=settings)
                if len(samples.wdl):
                    into.add(str(name), samples, size=room)
            diagnostics.record(name, recorded)
        model = ModelName.parse(line["model"])
        assert model is not None
        network = Recorded(load_model(run.models, model, run.game))
        diagnostics.evaluate(network, window, step=line["step"], device=torch.device("cpu"))
        yield diagnostics.report


class Recorded(torch.nn.Module):
    """A published model as a torch module."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        evaluation = self.network(EvaluationBatch(observations.numpy(), list))
        return torch.from_numpy(evaluation.logits), torch.from_numpy(evaluation.wdl).clamp(min=1e-30).log()


def directory_of(name: str) -> str:
    return re.sub(r"\W+", "-", name)


def summary(lines: list[dict[str, Any]]) -> str:
    """Return how long a run took, what it made, and its first warning."""
    if not lines:
        return "no model was published"
    last = lines[-1]
    first = next((line for line in lines if line["warning"]), None)
    warned = sum(line["warning"] is not None for line in lines)
    said = f"{warned} warnings, first at {first['seconds']:.0f} s: {first['warning']}" if first else "no warning"
    made = f"{len(lines)} models, step {last['step']}, {last['games']} games"
    return f"{last['case']}: {last['seconds']:.0f} s, {made}: {said}"


def table(lines: list[dict[str, Any]]) -> str:
    """Return both tables in Markdown; of a case that was run again, its last run counts."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        earlier = runs.setdefault(line["case"], [])
        if earlier and line["seconds"] < earlier[-1]["seconds"]:
            earlier.clear()
        earlier.append(line)
    right = [right_row(runs[name]) for name in RIGHT if name in runs]
    wrong = [wrong_row(runs[name]) for name in WRONG if name in runs]
    heads = (
        "| game | minutes | models | steps | games | policy, value learned | compared | contradictions | warnings |",
        "| mistake | game | seconds | CPU seconds | games | steps | warning |",
    )
    tables = [
        [head, "|" + "---|" * (head.count("|") - 1), *rows] for head, rows in zip(heads, (right, wrong), strict=True)
    ]
    return "\n\n".join("\n".join(rows) for rows in tables)


def right_row(run: list[dict[str, Any]]) -> str:
    """Return the row of a right game."""
    last, models = run[-1], [line for line in run if "compared" in line]
    compared = [found for line in models for found in line["compared"].values()]
    cells = [
        last["case"],
        f"{last['seconds'] / 60:.0f}",
        len(models),
        last["step"],
        f"{last['games']:,}",
        f"{last['policy_learned']:.2f}, {last['value_learned']:.2f}",
        f"{sum(count for count, _ in models[-1]['compared'].values()):,}",
        max(different for _, different in compared),
        sum(line["warning"] is not None for line in run) or "none",
    ]
    return row(cells)


def wrong_row(run: list[dict[str, Any]]) -> str:
    """Return the row of a wrong game: when its first warning came."""
    first = next((line for line in run if line["warning"]), None)
    at = first or run[-1]
    used = [at["trainer_cpu"], at["worker_cpu"]]
    cpu = " + ".join(f"{seconds:.0f}" for seconds in used) if None not in used else ""
    said = first["warning"].partition(": plyzero check")[0] if first else "none"
    game = CASES[at["case"]].game.removeprefix(f"{OWN}:")
    return row([at["case"], game, f"{at['seconds']:.0f}", cpu, at["games"], at["step"], said])


def row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
