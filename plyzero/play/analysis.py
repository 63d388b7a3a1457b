"""Search results for people and programs, with the field names of KataGo's analysis engine."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plyzero.rules.game import Game
from plyzero.rules.notation import action_names
from plyzero.search.slots import SearchResult
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN

PROVEN_NAMES: Final = {PROVEN_WIN: "win", PROVEN_DRAW: "draw", PROVEN_LOSS: "loss"}
"""The names of the proven values, for the player to move."""


def move_infos(position: Game, result: SearchResult) -> list[dict[str, Any]]:
    """Return an object for each legal action of `position`, from the best to the worst.

    move:    the name of the action.
    visits:  number of simulations through the action.
    winrate: expected score in [0, 1] for the player to move, a draw counts 1/2; null if the action was never visited.
    prior:   the network's probability of the action.
    order:   the rank; 0 is the action to play.
    pv:      the principal variation, as action names; the first is the action itself.
    """
    best = result.best_action()
    order = np.lexsort((-result.prior, -result.visits, result.actions != best))
    return [
        {
            "move": position.action_name(int(result.actions[i])),
            "visits": int(result.visits[i]),
            "winrate": None if np.isnan(result.q[i]) else round((1 + float(result.q[i])) / 2, 4),
            "prior": round(float(result.prior[i]), 4),
            "order": rank,
            "pv": action_names(position, result.principal_variations[i]),
        }
        for rank, i in enumerate(order.tolist())
    ]


def root_info(position: Game, result: SearchResult) -> dict[str, Any]:
    """Return an object about `position` itself.

    currentPlayer: the player to move, 0 or 1. The winrate and drawrate are for this player.
    visits:        number of simulations.
    winrate:       expected score in [0, 1], a draw counts 1/2.
    drawrate:      probability of a draw.
    proven:        "win", "draw" or "loss", null if the search has not proven the value.
    """
    return {
        "currentPlayer": position.to_play,
        "visits": result.simulations,
        "winrate": round((1 + result.value) / 2, 4),
        "drawrate": round(result.draw, 4),
        "proven": PROVEN_NAMES.get(result.proven),
    }
