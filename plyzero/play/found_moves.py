"""The moves that a search has found: with the field names of KataGo's analysis engine, and as a table for people.

In a notebook the table comes with the board, and the shares of the visits on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

import numpy as np

from plyzero.rules.board_svg import html_table, render_svg, text_table, with_shares
from plyzero.rules.game import Game, board_of
from plyzero.rules.notation import action_names
from plyzero.search.tree import PROVEN_DRAW, PROVEN_LOSS, PROVEN_WIN

if TYPE_CHECKING:
    from plyzero.search.slots import SearchResult

HEADS: Final = ("move", "visits", "wins", "prior", "line")
"""Heads of the table: share of the simulations, expected score of the player to move, prior, principal variation."""

HOPELESS: Final = 0.05
"""The expected score below which a bot offers to resign."""


class MoveInfo(TypedDict):
    """The result of a search for a legal action."""

    move: str  # the name of the action
    visits: int  # number of simulations through it
    winrate: float | None  # expected score in [0, 1] for the player to move, a draw counts 1/2; None without visits
    prior: float  # the network's probability
    order: int  # the rank; 0 is the action to play
    pliesToEnd: int | None  # as in RootInfo, if the value of this move is proven; itself counted
    pv: list[str]  # the principal variation, as action names; the first is the action itself


class RootInfo(TypedDict):
    """The result of a search for the position itself, from the point of view of the player to move."""

    currentPlayer: int  # the player to move, 0 or 1
    visits: int  # number of simulations
    winrate: float  # expected score in [0, 1], a draw counts 1/2
    drawrate: float  # probability of a draw
    proven: str | None  # "win", "draw" or "loss", None if the search has not proven the value
    pliesToEnd: int | None  # of a proven win or loss: most moves of both players to the end, if the winner hurries
    scoreLead: NotRequired[float]  # expected points by which the player wins in the end, if the network estimates them


def move_infos(position: Game, result: SearchResult) -> list[MoveInfo]:
    """Return what is found of each legal action of `position`, from the best to the worst."""
    best = result.best_action()
    order = np.lexsort((-result.prior, -result.visits, result.actions != best))
    return [
        {
            "move": position.action_name(int(result.actions[i])),
            "visits": int(result.visits[i]),
            "winrate": None if np.isnan(result.q[i]) else round((1 + float(result.q[i])) / 2, 4),
            "prior": round(float(result.prior[i]), 4),
            "order": rank,
            "pliesToEnd": int(result.plies[i]) or None,
            "pv": action_names(position, result.principal_variations[i]),
        }
        for rank, i in enumerate(order.tolist())
    ]


def root_info(position: Game, result: SearchResult) -> RootInfo:
    """Return what is found of `position` itself."""
    proven = {PROVEN_WIN: "win", PROVEN_DRAW: "draw", PROVEN_LOSS: "loss"}
    info: RootInfo = {
        "currentPlayer": position.to_play,
        "visits": result.simulations,
        "winrate": round((1 + result.value) / 2, 4),
        "drawrate": round(result.draw, 4),
        "proven": proven.get(result.proven),
        "pliesToEnd": result.plies_to_end,
    }
    if result.score is not None:
        info["scoreLead"] = round(result.score, 2)
    return info


def within(plies: int | None) -> str:
    """Return how far the end of a game is, such as " in at most 7 moves of both players"; "" if it is unknown."""
    if plies is None:
        return ""
    return " in 1 move" if plies == 1 else f" in at most {plies} moves of both players"


def is_hopeless(result: SearchResult, below: float = HOPELESS) -> bool:
    """Return whether the player to move is expected to score less than `below`, from 0 to 1: a reason to resign.

    As in AlphaGo Zero both the value of the position and that of the best action must say so.
    """
    of_best = result.q[result.actions == result.best_action()]
    value = max(result.value, float(np.nan_to_num(of_best, nan=-1).max()))
    return bool((1 + value) / 2 < below)  # as plain Python, the search has numbers of NumPy


@dataclass(frozen=True, repr=False)
class FoundMoves:
    """A position and the result of its search, which print as a table of moves."""

    position: Game
    result: SearchResult

    def __repr__(self) -> str:
        return "\n".join([repr(self.position), "", self._sentence(), text_table(HEADS, self._rows())])

    def _repr_html_(self) -> str:
        board, picture = board_of(self.position), f"<pre>{escape(str(self.position))}</pre>"
        if board:
            moves = (
                (board.clicked(info["move"]), self._share(info)) for info in move_infos(self.position, self.result)
            )
            picture = f'<div style="max-width: 28em">{with_shares(render_svg(board), moves)}</div>'
        return f"{picture}<p>{escape(self._sentence())}</p>{html_table(HEADS, self._rows())}"

    def _sentence(self) -> str:
        info = root_info(self.position, self.result)
        proven = f", proven {info['proven']}{within(info['pliesToEnd'])}" if info["proven"] else ""
        score = f"expected score {info['winrate']:.0%}{proven}"
        return f"Player {info['currentPlayer']} to move; {score}, after {info['visits']} simulations"

    def _share(self, info: MoveInfo) -> float:
        return info["visits"] / max(1, int(self.result.visits.sum()))

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for info in move_infos(self.position, self.result)[:10]:
            wins = "" if info["winrate"] is None else f"{info['winrate']:.0%}"
            rows.append(
                (info["move"], f"{self._share(info):.0%}", wins, f"{info['prior']:.0%}", " ".join(info["pv"][:6]))
            )
        return rows
