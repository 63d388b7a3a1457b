"""play: play against a bot in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from plyzero.commands import common
from plyzero.errors import UserError

if TYPE_CHECKING:
    from plyzero.play.judge import Judge
    from plyzero.play.player import Player
    from plyzero.play.players import Bot
    from plyzero.rules.catalog import GameSpec

RunToPlay = Annotated[
    Path | None, typer.Option("--run", metavar="DIR", parser=common.read_directory, help="Use a model of this run.")
]

Net = Annotated[Path | None, typer.Option("--net", metavar="FILE", help="Use the model in this ONNX file.")]

Model = Annotated[
    str, typer.Option(metavar="WHICH", help="With --run: newest, best (by measured scores), or a training step.")
]

Simulations = Annotated[
    int | None,
    typer.Option(
        min=0, help="Simulations per move; 0 = the raw network. Default: 64, for pure MCTS 1000, with a clock no limit."
    ),
]


class Thinking(NamedTuple):
    """The options for the time and the threads of a search."""

    seconds: Annotated[float | None, typer.Option(min=0.01, max=86_400, metavar="N", help="At most N seconds a move.")]
    clock: Annotated[str | None, typer.Option(metavar="TIME", help="Time for a game; 5m+3s has 3 s more a move.")]
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Threads for the network of one search. Default: one per core, at most 4."),
    ]

    def limits(self, simulations: int | None, *, uses_cores: bool = True) -> dict[str, Any]:
        """Return arguments of `find_player`, without simulations if a bot is to make its usual number.

        uses_cores: without --threads, use a thread per core, at most 4; otherwise 0.

        Raises UserError for two clocks.
        """
        from plyzero.machine import usable_cores
        from plyzero.play.clock import NO_LIMIT, Clock

        if self.seconds is not None and self.clock is not None:
            raise UserError("expected --seconds or --clock, got both")
        clock = None
        if self.seconds is not None:
            clock = Clock(per_move=self.seconds)
        elif self.clock is not None:
            clock = Clock.parse(self.clock)
        if simulations is None and clock:
            simulations = NO_LIMIT
        threads = self.threads or 0
        if not threads and uses_cores:
            threads = min(4, usable_cores())
        limits: dict[str, Any] = {"clock": clock, "threads": threads}
        if simulations is not None:
            limits["simulations"] = simulations
        return limits


Unmeasured = Annotated[
    bool,
    typer.Option("--unmeasured", help="Use the network of --run or --net even if it has not beaten mcts:100."),
]

SearchOptions = Annotated[
    list[str] | None,
    typer.Option("-o", metavar="search.KEY=VALUE", help="A setting of the search, such as search.c_puct=2."),
]


@common.with_groups
def play(
    game: common.GameArgument,
    *,
    run: RunToPlay = None,
    net: Net = None,
    model: Model = "newest",
    side: Annotated[Literal["first", "second", "random"], typer.Option("--as", help="Your side.")] = "first",
    simulations: Simulations = None,
    level: Annotated[int | None, typer.Option(min=1, help="Level of the bundled bot; 1 is the weakest.")] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="PLAYER", help="The opponent: greedy, alphabeta:4, your agent MODULE:CLASS, as in match."),
    ] = None,
    start: common.Start = None,
    thinking: Thinking,
) -> None:
    """Play in the terminal against the bot of a run, of a file, or the bundled bot; if there is none, pure MCTS."""
    owns_process = sys.stdout is sys.__stdout__  # otherwise a test has called this
    if owns_process:
        _begin_at_once(game)  # before anything imports the search

    import numpy as np

    from plyzero.commands.terminal import Terminal
    from plyzero.play.judge import JUDGE_SIMULATIONS, find_judge
    from plyzero.play.players import Bot, find_player
    from plyzero.play.session import SIDES, Session

    spec = common.find_game(game, start)
    makes_other_bot = any(each is not None for each in (run, net, simulations))
    has_clock = thinking.seconds is not None or thinking.clock is not None
    if level is not None and (makes_other_bot or has_clock):
        raise UserError(
            "--level selects the bundled bot, which sets its own simulations; omit --run, --net, --simulations, clocks"
        )
    if against is not None and (makes_other_bot or level is not None):
        raise UserError("--against names the opponent; omit --run, --net, --simulations and --level")
    limits = thinking.limits(simulations)
    bot: Player
    about = None
    if against is not None:
        bot = find_player(against, spec, np.random.default_rng(), **limits)
    elif level is not None:
        bot = Bot.at_level(spec, level, threads=limits["threads"])
    elif run is not None and net is None and model == "newest" and _waits_for_model(run, spec):
        bot = _pure_mcts(spec, limits)
        about = f"{run} has no model yet: until then pure MCTS plays by the same rules; start again to play the model."
    else:
        bot = find_bot(spec, run, net, model, limits)
    person = SIDES.index(side) if side in SIDES else int(np.random.default_rng().integers(2))

    def make_judge() -> Judge:
        return find_judge(spec, run=run, net=net, model=model, simulations=JUDGE_SIMULATIONS)

    terminal = Terminal(Session(spec, person), bot, make_judge, about=about)
    with common.playing(spec, may_print=True):
        terminal.run()
    terminal.warming.join(10 if owns_process else None)
    if terminal.warming.is_alive():  # the thread compiles, and the interpreter would abort if it ended meanwhile
        sys.stdout.flush()
        os._exit(0)


def _begin_at_once(game: str) -> None:
    """If the search is not compiled, run it as plain Python here, and let another process compile it."""
    import numba

    from plyzero.ops.child import start_beside
    from plyzero.search.numba_kernel import is_compiled

    if numba.config.DISABLE_JIT or is_compiled():  # type: ignore[attr-defined]
        return
    numba.config.DISABLE_JIT = 1  # type: ignore[attr-defined]
    start_beside("match", "mcts:4", "random", "--game", game, "--games", "2")
    print("The search is not compiled yet: it runs as plain Python, slower, while another process compiles it.")


def find_bot(game: GameSpec, run: Path | None, net: Path | None, model: str, limits: Mapping[str, Any]) -> Bot:
    """Return the bot of a run or of a file, else the bundled one, else pure MCTS, with the limits of `Thinking`.

    Raises UserError if there is no such model, or for arguments that exclude each other.
    """
    from plyzero.play.bundled_bots import find_card
    from plyzero.play.players import Bot

    check_source(run, net, model)
    card = find_card(game)
    path = net or run
    if path is None and card is not None:
        if "simulations" not in limits:
            return Bot.at_level(game, threads=limits["threads"])
        path = card.network
    if path is None:
        return _pure_mcts(game, limits)
    return Bot.of_model(path, game, model=model, **limits)


def check_source(run: Path | None, net: Path | None, model: str) -> None:
    """Raise UserError for a run or a file that does not exist, or for options that exclude each other."""
    if net is not None and run is not None:
        raise UserError("expected --run or --net, got both")
    if model != "newest" and run is None:
        raise UserError(f"--model {model} needs --run")
    if run is not None and not run.exists():
        raise UserError(f"{run} is not a run directory: it has no run.toml; make one with plyzero train")
    if net is not None and net.is_dir():
        raise UserError(f"{net} is a directory; expected --net FILE, or --run {net}")


def _pure_mcts(game: GameSpec, limits: Mapping[str, Any]) -> Bot:
    import numpy as np

    from plyzero.play.players import Bot

    simulations = limits.get("simulations", 1000)
    bot = Bot.pure_mcts(game, np.random.default_rng(), simulations=simulations)
    return bot.with_clock(limits["clock"], simulations=simulations)


def _waits_for_model(run: Path, game: GameSpec) -> bool:
    """Return whether a run of `game` exists and has no model yet. Raises UserError if it is of another game."""
    from plyzero.run.directory import open_run
    from plyzero.run.models import list_models

    return (run / "run.toml").exists() and not list_models(open_run(run, game=game).models)
