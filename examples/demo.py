"""Train tic-tac-toe until its raw network cannot be beaten, and prove it: `make demo`.

The proof plays out every reply of the opponent, with the network moving first and moving second; the network moves
without any search. The untrained network goes through the same proof first, and has to fail it.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from plyzero.ops.processes import interrupt_on_signals
from plyzero.ops.supervisor import Report, train
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.game import Game
from plyzero.run.directory import create_run
from plyzero.search.evaluators import Evaluate
from plyzero.search.onnx_network import Network
from plyzero.settings import SearchSettings


def find_loss(evaluate: Evaluate, game: GameSpec) -> tuple[list[int] | None, int]:
    """Play the raw network against every reply, as both players.

    Return the moves of a game that it loses, None if there is none, and how many games were played out.
    """
    player = Bot("raw network", game, evaluate, simulations=0, settings=SearchSettings())
    finished = 0
    for side in (0, 1):
        frontier: list[tuple[Game, list[int]]] = [(game.start, [])]
        while frontier:
            ours = [(position, line) for position, line in frontier if position.to_play == side]
            replies = player.choose_all([position for position, _ in ours]) if ours else []
            grown = [(position, line, [reply]) for (position, line), reply in zip(ours, replies, strict=True)]
            grown += [(p, line, list(p.legal_actions())) for p, line in frontier if p.to_play != side]
            frontier = []
            for position, line, actions in grown:
                for action in actions:
                    following, longer = position.play(action), [*line, action]
                    outcome = following.outcome()
                    if outcome is None:
                        frontier.append((following, longer))
                    elif outcome.value(side) < 0:
                        return longer, finished
                    else:
                        finished += 1
    return None, finished


def verdict(name: str, evaluate: Evaluate, game: GameSpec) -> bool:
    """Print and return whether `evaluate` stands the proof."""
    loss, finished = find_loss(evaluate, game)
    if loss is None:
        print(f"{name}: cannot be beaten. It lost none of the {finished} games that its opponents can steer it into.")
    else:
        print(f"{name}: loses, for example {' '.join(game.start.action_name(action) for action in loss)}")
    return loss is None


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 if the trained network stands the proof and the untrained one does not."""
    from trainer.export import untrained

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--run", type=Path, default=Path("runs/demo"), help="made anew")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=90.0, help="of training, at most")
    given = parser.parse_args(arguments)

    game = load_game("tic-tac-toe")
    if given.run.exists():
        shutil.rmtree(given.run)
    run = create_run(given.run, game, seed=given.seed)
    print(f"Training {game.name} from nothing but its rules, two workers and a trainer, seed {given.seed}.")
    trained: list[Network] = []
    began = time.monotonic()

    def show(report: Report) -> None:
        fields = report.fields
        print(f"{report.seconds:5.1f} s: {fields['games']:6d} games, step {fields['step']:5d}", end="", flush=True)
        print(f", value loss {fields['value_loss']:.3f}", flush=True)

    def proven(network: Network) -> bool:
        trained[:] = [network]
        return find_loss(network, game)[0] is None

    train(run, workers=2, minutes=given.seconds / 60, stop=interrupt_on_signals(), report=show, until=proven)
    print(f"Trained for {time.monotonic() - began:.0f} s.\n")
    before = verdict("untrained network", Network(untrained(run), game, label="untrained"), game)
    after = bool(trained) and verdict("trained network", trained[0], game)
    command = Path(sys.executable).with_name("plyzero")
    print(f"\nPlay it:            {command} play tic-tac-toe --run {run.root} --as second")
    print(f"Train a bigger one: {command} train connect-four --run runs/c4 --minutes 10")
    return 0 if after and not before else 1


if __name__ == "__main__":
    sys.exit(main())
