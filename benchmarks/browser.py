"""The search of a shared page beside Python's: shares of best moves, and simulations per second.

python -m benchmarks.browser --runtime node_modules/onnxruntime-web/dist
python -m benchmarks.browser --runtime node_modules/onnxruntime-web/dist --network 3 32 --simulations 800 --positions 20
python -m benchmarks.browser --runtime node_modules/onnxruntime-web/dist --games 50 --simulations 100 --leaves 6

Node runs the modules of the page with the network in onnxruntime-web, which `npm install onnxruntime-web` brings.
Neither side plays ends exactly by alpha-beta, which the page does not have. Times are those of all searches of an exam,
one after the other; Python searches the positions side by side, so only its moves can be compared.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))  # for tests.helpers

from benchmarks.strength.exams import Question, find_exam
from benchmarks.strength.score import brief, choices, mean
from plyzero.commands.machine import random_weights
from plyzero.network.model_loader import load_network
from plyzero.play.players import Bot
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.random_game import random_move
from plyzero.run.directory import create_run
from tests.helpers.node_search import network, search_in_node

ROOT = Path(__file__).parent.parent

OPENING = 4
"""Number of random moves at the beginning of a game between both."""


def main() -> None:
    """Print a line for each search: Python's with both algorithms, the page's for each number of leaves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect-four", help="a compiled game")
    parser.add_argument("--exam", default=str(ROOT / "benchmarks" / "strength" / "connect-four-dev.txt"))
    parser.add_argument("--net", type=Path, default=ROOT / "plyzero" / "play" / "bots" / "connect-four.onnx")
    parser.add_argument("--network", type=int, nargs=2, metavar=("BLOCKS", "CHANNELS"), help="random weights instead")
    parser.add_argument("--runtime", type=Path, required=True, help="the folder dist of onnxruntime-web")
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--leaves", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--positions", type=int, help="only the first ones of the exam")
    parser.add_argument(
        "--games", type=int, help="games between both instead, from random openings, with sides swapped"
    )
    given = parser.parse_args()

    game = load_game(given.game)
    exam = find_exam(given.exam, game)[: given.positions]
    with TemporaryDirectory() as folder:
        net = given.net
        if given.network:
            blocks, channels = given.network
            net = Path(folder, "random.onnx")
            options = [f"network.blocks={blocks}", f"network.channels={channels}"]
            net.write_bytes(random_weights(create_run(Path(folder, "run"), game, options=options).root))
        if given.games:
            for algorithm in ("puct", "gumbel"):
                player = python_player(game, net, given.simulations, algorithm)
                options = {"simulations": given.simulations, "leaves": given.leaves[0]}
                score = play(game, player, network(net, given.runtime), options, given.games)
                print(f"page against Python, {algorithm}: {score}", flush=True)
            return
        for algorithm in ("puct", "gumbel"):
            moves = python_moves(game, exam, net, given.simulations, algorithm)
            print(f"Python, {algorithm}: {share(exam, moves)}", flush=True)
        first: list[int] = []
        for leaves in given.leaves:
            searches = [{"state": state_of(each), "simulations": given.simulations, "leaves": leaves} for each in exam]
            found, usage = search_in_node(game, searches, network(net, given.runtime))
            made = sum(result["simulations"] for result in found)
            moves = [result["best"] for result in found]
            first = first or moves
            print(
                f"page, at most {leaves} leaves together: {share(exam, moves)}, "
                f"{np.mean(np.equal(moves, first)):.3f} as with {given.leaves[0]}; "
                f"{made / usage['seconds']:.0f} simulations a second, {made / usage['cpuSeconds']:.0f} a CPU second, "
                f"{usage['evaluations'] / usage['batches']:.1f} positions in a batch",
                flush=True,
            )


def state_of(question: Question) -> NDArray[np.uint8]:
    assert isinstance(question.position, CompiledGame)
    return question.position.state


def python_moves(game: GameSpec, exam: Sequence[Question], net: Path, simulations: int, algorithm: str) -> list[int]:
    """Return Python's moves, by the tree alone."""
    return choices(python_player(game, net, simulations, algorithm), exam)


def python_player(game: GameSpec, net: Path, simulations: int, algorithm: str) -> Bot:
    """Return Python's bot, which plays by the tree alone."""
    search = {"algorithm": algorithm, "solver_nodes": 0}
    return Bot.from_network(load_network(net, game), simulations=simulations, search=search)


def play(game: GameSpec, bot: Bot, evaluator: Mapping[str, str], options: Mapping[str, int], games: int) -> str:
    """Return the score of the page in games against Python's bot, which are played side by side."""
    rng = np.random.default_rng(0)
    openings = [opening(game, rng) for _ in range((games + 1) // 2)]
    positions = [openings[number // 2] for number in range(games)]  # the page plays first in every other one
    while True:
        open_games = [i for i, position in enumerate(positions) if position.outcome() is None]
        if not open_games:
            break
        own = [i for i in open_games if positions[i].to_play == i % 2]
        others = [i for i in open_games if positions[i].to_play != i % 2]
        if own:
            found, _ = search_in_node(game, [{"state": positions[i].state, **options} for i in own], evaluator)
            for i, result in zip(own, found, strict=True):
                positions[i] = positions[i].play(result["best"])
        if others:
            for i, made in zip(others, bot.search([positions[i] for i in others]), strict=True):
                positions[i] = positions[i].play(made.best_action())
    outcomes = [position.outcome() for position in positions]
    scores = [(1 + outcome.value(i % 2)) / 2 for i, outcome in enumerate(outcomes) if outcome]
    counts = f"{scores.count(1)} won, {scores.count(0.5)} drawn, {scores.count(0)} lost of {games}"
    return f"score {brief(mean(np.array(scores)))}, {counts}"


def opening(game: GameSpec, rng: np.random.Generator) -> CompiledGame:
    """Return the position after OPENING random moves, in a game without dice."""
    position = game.start
    for _ in range(OPENING):
        position = position.play(random_move(position, rng))
    assert isinstance(position, CompiledGame)
    return position


def share(exam: Sequence[Question], moves: Sequence[int]) -> str:
    """Return the share of best moves with its 95 % interval."""
    right = np.array([move in each.best for move, each in zip(moves, exam, strict=True)])
    return f"best moves {brief(mean(right))}"


if __name__ == "__main__":
    main()
