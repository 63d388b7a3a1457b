"""The moves that a search has found, for people: a table as text, and in a notebook the board with the moves on it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from plyzero.play.analysis import MoveInfo, move_infos, root_info
from plyzero.rules.board_svg import html_table, render_svg, with_shares
from plyzero.rules.game import Game, board_of
from plyzero.search.slots import SearchResult

HEADS: Final = ("move", "visits", "wins", "prior", "line")
"""Heads of the table: share of the simulations, expected score of the player to move, prior, principal variation."""


@dataclass(frozen=True, repr=False)
class FoundMoves:
    """A position and the result of its search, which print as a table of moves."""

    position: Game
    result: SearchResult

    def __repr__(self) -> str:
        rows = [HEADS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join([repr(self.position), "", self._sentence(), *lines])

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
        proven = f", proven {info['proven']}" if info["proven"] else ""
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
