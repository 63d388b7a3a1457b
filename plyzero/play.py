"""A game against the bot in a terminal."""

from __future__ import annotations

import numpy as np

from plyzero.catalog import GameSpec
from plyzero.evaluate import Evaluate, Rollouts
from plyzero.game import Game
from plyzero.network import Network
from plyzero.players import PURE_MCTS
from plyzero.search import Root, search

HELP = "Type a move, `legal` for all legal moves, or `quit`."


def play_in_terminal(game: GameSpec, network: Network | None, *, side: str, simulations: int) -> None:
    """Play one game; the person is `side`: first, second or random. Without a network the bot is pure MCTS."""
    rng = np.random.default_rng()
    person = {"first": 0, "second": 1, "random": int(rng.integers(2))}[side]
    evaluate: Evaluate = network or Rollouts(game.start.num_actions, rng)
    settings = network.search_settings if network else PURE_MCTS
    simulations = simulations if network else max(simulations, 1000)
    print(f"{game.name}: you move {('first', 'second')[person]}; the bot is {_describe(network, simulations)}.\n{HELP}")
    position = game.start
    while (outcome := position.outcome()) is None:
        print(f"\n{position}")
        if position.to_play == person:
            action = _ask(position)
            if action is None:
                return
        else:
            print("thinking ...", flush=True)
            root = search([position], evaluate, simulations=simulations, settings=settings)[0]
            action = root.best_action()
            print(f"The bot plays {position.action_name(action)} {_opinion(root)}")
        position = position.play(action)
    print(f"\n{position}\n{_verdict(outcome.value(person))}")


def _ask(position: Game) -> int | None:
    """Return the person's move, None to leave."""
    while True:
        try:
            text = input("Your move: ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        if text in ("quit", "exit", "q"):
            return None
        if text in ("legal", "help", "?", ""):
            print(f"{HELP} Legal: {position.legal_names()}")
            continue
        try:
            return position.parse_action(text)
        except ValueError as error:
            print(f"That is not a move here: {error}")


def _describe(network: Network | None, simulations: int) -> str:
    if network is None:
        return f"pure MCTS with {simulations} rollouts, as no --run and no --net is given"
    return f"{network.label} with {simulations} simulations"


def _opinion(root: Root) -> str:
    win, draw = (1 - root.draw + root.value) / 2, root.draw
    return f"(it expects to win {win:.0%}, draw {draw:.0%})"


def _verdict(value: int) -> str:
    return {1: "You win.", 0: "A draw.", -1: "The bot wins."}[value]
