"""Train tic-tac-toe until the raw network cannot be beaten, and prove it: `make demo`.

The proof enumerates every reply of the opponent. The network plays without a search, once as the first player and once
as the second. The untrained network takes the same test first and has to fail it.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plyzero import Bot, Game
from plyzero.network.onnx_network import Network
from plyzero.ops.processes import interrupt_on_signals
from plyzero.ops.supervisor import Report, train
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.directory import create_run
from plyzero.search.evaluators import Evaluate
from plyzero.settings import SearchSettings

QUIET_SECONDS = 6.0  # time without a new model until a line reports the current activity


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and test; return exit code 0 if the trained network passes the test and the untrained one fails it."""
    from plyzero.trainer.export import untrained

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--run", type=Path, default=Path("runs/demo"), help="run directory; an existing one is deleted")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--seconds", type=float, default=180.0, help="longest duration of the training")
    options = parser.parse_args(arguments)

    print("Loading tic-tac-toe ...", flush=True)
    game = load_game("tic-tac-toe")
    if options.run.exists():
        shutil.rmtree(options.run)
    # Every model takes the test, and the first that passes it ends the training.
    settings = ["trainer.publish_seconds=4", f"budget.minutes={options.seconds / 60}"]
    run = create_run(options.run, game, seed=options.seed, options=settings)
    print(f"Training {game.name} from its rules alone, with two workers and a trainer, seed {options.seed}.")
    print("The search is compiled first, unless it has been on this machine.", flush=True)
    trained: Network | None = None
    began = time.monotonic()
    printed = began

    def show(report: Report) -> None:
        nonlocal printed
        printed = time.monotonic()
        fields = report.fields
        print(f"{report.seconds:5.1f} s: {fields['games']:6d} games, step {fields['step']:5d}", end="", flush=True)
        print(f", value loss {fields['value_loss']:.3f}", flush=True)

    def progress(doing: str, *_: object) -> None:
        nonlocal printed
        if time.monotonic() - printed > QUIET_SECONDS:
            printed = time.monotonic()
            print(f"{printed - began:5.1f} s: {doing}", flush=True)

    def passes(network: Network) -> bool:
        nonlocal trained
        trained = network
        return find_loss(network, game)[0] is None

    def test_untrained() -> tuple[list[int] | None, int]:
        return find_loss(Network(untrained(run), game, label="untrained"), game)

    with ThreadPoolExecutor() as beside:
        untrained_result = beside.submit(test_untrained)  # compiles the search while the workers compile self-play
        train(run, workers=2, stop=interrupt_on_signals(), on_report=show, on_progress=progress, stop_when=passes)
    print(f"Trained for {time.monotonic() - began:.0f} s.\n")
    before = print_result("untrained network", *untrained_result.result(), game)
    after = trained is not None and print_result("trained network", *find_loss(trained, game), game)
    command = Path(sys.executable).with_name("plyzero")
    print(f"\nPlay against it:      {command} play tic-tac-toe --run {run.root} --as second")
    print(f"Train a larger game:  {command} train connect-four --run runs/c4 --minutes 10")
    return 0 if after and not before else 1


def find_loss(evaluate: Evaluate, game: GameSpec) -> tuple[list[int] | None, int]:
    """Play the raw network against every reply, on both sides.

    Return the moves of a game that it loses, None if there is none, and the number of finished games.
    """
    bot = Bot("raw network", game, evaluate, simulations=0, settings=SearchSettings())
    finished = 0
    for side in (0, 1):
        unfinished: list[tuple[Game, list[int]]] = [(game.start, [])]
        while unfinished:
            own = [(position, moves) for position, moves in unfinished if position.to_play == side]
            chosen = bot.choose_all([position for position, _ in own]) if own else []
            nodes = [(position, moves, [action]) for (position, moves), action in zip(own, chosen, strict=True)]
            nodes += [(p, moves, list(p.legal_actions())) for p, moves in unfinished if p.to_play != side]
            unfinished = []
            for position, moves, actions in nodes:
                for action in actions:
                    after, moves_after = position.play(action), [*moves, action]
                    outcome = after.outcome()
                    if outcome is None:
                        unfinished.append((after, moves_after))
                    elif outcome.value(side) < 0:
                        return moves_after, finished
                    else:
                        finished += 1
    return None, finished


def print_result(name: str, loss: list[int] | None, finished: int, game: GameSpec) -> bool:
    """Print the result of `find_loss`, and return whether the network passes the test: it loses no game."""
    if loss is None:
        print(f"{name}: cannot be beaten. It loses none of the {finished} games that its opponents can reach.")
    else:
        print(f"{name}: loses, for example {' '.join(game.start.action_name(action) for action in loss)}")
    return loss is None


if __name__ == "__main__":
    sys.exit(main())
