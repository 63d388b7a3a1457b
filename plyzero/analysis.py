"""What a search found, for people and programs: the field names are KataGo's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plyzero.game import Game
from plyzero.search import Root
from plyzero.tree import DRAW, LOSS, WIN

PROVEN = {WIN: "win", DRAW: "draw", LOSS: "loss"}


def move_infos(position: Game, root: Root) -> list[dict[str, Any]]:
    """Return an object per legal move, the move to play first.

    move:    the action's name.
    visits:  simulations that went through it.
    winrate: in [0, 1] for the player to move, a draw is half; null where the search never looked.
    prior:   the network's probability.
    order:   0 for the move to play, and so on.
    pv:      the line that the search expects, the move itself first.
    """
    best = root.best_action()
    order = np.lexsort((-root.prior, -root.visits, root.actions != best))
    return [
        {
            "move": position.action_name(int(root.actions[i])),
            "visits": int(root.visits[i]),
            "winrate": None if np.isnan(root.q[i]) else round((1 + float(root.q[i])) / 2, 4),
            "prior": round(float(root.prior[i]), 4),
            "order": rank,
            "pv": line_names(position, root.lines[i]),
        }
        for rank, i in enumerate(order.tolist())
    ]


def root_info(position: Game, root: Root) -> dict[str, Any]:
    """Return what the search says of the position itself.

    currentPlayer: 0 or 1, who is to move; winrate and drawrate are for that player.
    visits:        simulations made.
    proven:        "win", "draw", "loss", or null where the search has not proven the value.
    """
    return {
        "currentPlayer": position.to_play,
        "visits": root.simulations,
        "winrate": round((1 + root.value) / 2, 4),
        "drawrate": round(root.draw, 4),
        "proven": PROVEN.get(root.proven),
    }


def line_names(position: Game, actions: tuple[int, ...]) -> list[str]:
    """Return the names of `actions`, played one after the other from `position`."""
    names = []
    for action in actions:
        names.append(position.action_name(action))
        position = position.play_unchecked(action)
    return names


def play_named(position: Game, moves: Sequence[str]) -> tuple[list[Game], list[int]]:
    """Return `position` with the position after each of `moves`, names of actions, and the actions.

    Raises ValueError for a move that is not legal where it stands; says which.
    """
    positions, actions = [position], []
    for number, name in enumerate(moves, 1):
        if positions[-1].outcome() is not None:
            raise ValueError(f"move {number}, {name!r}: the game is over by then")
        try:
            actions.append(positions[-1].parse_action(name))
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from error
        positions.append(positions[-1].play_unchecked(actions[-1]))
    return positions, actions
