"""A player for Othello: alpha-beta search that values corners, an example of docs/playing.md."""

from plyzero import Game
from plyzero.play.rule_based import AlphaBeta


class Corners(AlphaBeta):
    """Prefers positions with more own corners."""

    def evaluate(self, position: Game) -> float:  # in (-1, 1), for the player to move
        own, other = position.observe()[:2].astype(int)
        corners = (own - other)[[0, 0, -1, -1], [0, -1, 0, -1]]
        return float(corners.sum()) / 8
