"""What a search found, for people and programs: the field names are KataGo's."""

from __future__ import annotations

from typing import Any

import numpy as np

from plyzero.rules.game import Game
from plyzero.rules.notation import action_names
from plyzero.search.slots import SearchResult
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN

PROVEN = {PROVEN_WIN: "win", PROVEN_DRAW: "draw", PROVEN_LOSS: "loss"}


def move_infos(position: Game, root: SearchResult) -> list[dict[str, Any]]:
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
            "pv": action_names(position, root.lines[i]),
        }
        for rank, i in enumerate(order.tolist())
    ]


def root_info(position: Game, root: SearchResult) -> dict[str, Any]:
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
