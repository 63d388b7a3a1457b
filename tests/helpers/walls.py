"""A game with walls between the squares, as in Quoridor, on 3x3: cross the board, or place a wall of your colour."""

import copy

import numpy as np

from plyzero.rules.board import Board, Cell
from plyzero.rules.game import Game, Outcome

SIZE, APART = 3, 1.3
SQUARES = [(column, row) for row in range(SIZE) for column in range(SIZE)]
EDGES = [(one, other) for one in SQUARES for other in SQUARES if other in ((one[0] + 1, one[1]), (one[0], one[1] + 1))]
MAX_PLIES = 12


def name_of(square):
    return f"{'abc'[square[0]]}{square[1] + 1}"


def name_of_edge(edge):
    return name_of(edge[0]) + ("v" if edge[0][1] == edge[1][1] else "h")


class Walls(Game, version=1):
    """Move to a neighbouring square where no wall stands, or place a wall. Who reaches the other side wins."""

    num_actions = len(SQUARES) + len(EDGES)
    observation_shape = (4 + 2 * len(EDGES), SIZE, SIZE)
    max_plies = MAX_PLIES

    def __init__(self):
        self.to_play, self.plies = 0, 0
        self.pawns = (1, 0), (1, SIZE - 1)
        self.walls = dict.fromkeys(EDGES)

    def legal_actions(self):
        free = [len(SQUARES) + number for number, edge in enumerate(EDGES) if self.walls[edge] is None]
        return [number for number, square in enumerate(SQUARES) if self.can_step(square)] + free

    def can_step(self, square):
        edge = tuple(sorted((self.pawns[self.to_play], square)))
        return square not in self.pawns and self.walls.get(edge, "not beside each other") is None

    def play(self, action):
        after = copy.copy(self)
        after.plies, after.to_play = self.plies + 1, 1 - self.to_play
        if action < len(SQUARES):
            pawns = list(self.pawns)
            pawns[self.to_play] = SQUARES[action]
            after.pawns = tuple(pawns)
        else:
            after.walls = {**self.walls, EDGES[action - len(SQUARES)]: self.to_play}
        return after

    def outcome(self):
        for player, goal in ((0, SIZE - 1), (1, 0)):
            if self.pawns[player][1] == goal:
                return Outcome(winner=player)
        return Outcome(winner=None) if self.plies == MAX_PLIES else None

    def observe(self):
        planes = np.zeros(self.observation_shape, np.float32)
        for player, (column, row) in enumerate(self.pawns):
            planes[player ^ self.to_play, row, column] = 1
        planes[2], planes[3] = self.to_play, self.plies / MAX_PLIES
        for number, owner in enumerate(self.walls.values()):
            if owner is not None:
                planes[4 + 2 * number + (owner ^ self.to_play)] = 1
        return planes

    def action_name(self, action):
        return name_of(SQUARES[action]) if action < len(SQUARES) else name_of_edge(EDGES[action - len(SQUARES)])

    def why_illegal(self, action):
        square = SQUARES[action] if action < len(SQUARES) else None
        edge = tuple(sorted((self.pawns[self.to_play], square))) if square else None
        return "A wall stands in between." if self.walls.get(edge) is not None else ""

    def scoreboard(self):
        owners = list(self.walls.values())
        return f"{owners.count(0)} walls", f"{owners.count(1)} walls"

    def render(self):
        pieces = {square: str(player) for player, square in enumerate(self.pawns)}
        cells = [Cell(name_of(each), APART * each[0], -APART * each[1], pieces.get(each, "")) for each in SQUARES]
        for edge, owner in self.walls.items():
            x, y = (APART * (one + other) / 2 for one, other in zip(*edge, strict=True))
            shape = "bar-v" if name_of_edge(edge).endswith("v") else "bar-h"
            cells.append(Cell(name_of_edge(edge), x, -y, "" if owner is None else str(owner), shape))
        return Board(tuple(cells))


class LongWalls(Walls, version=1):
    """A wall also takes the edge to the right of its own, or above it, if that is free."""

    def play(self, action):
        after = super().play(action)
        if action >= len(SQUARES):
            (one, other) = EDGES[action - len(SQUARES)]
            column, row = (0, 1) if one[1] == other[1] else (1, 0)
            further = tuple((x + column, y + row) for x, y in (one, other))
            if after.walls.get(further, "none") is None:
                after.walls[further] = self.to_play
        return after

    def outcome(self):
        return super().outcome() or (None if self.legal_actions() else Outcome(winner=None))


class Faulty(Walls, version=1):
    """Its board cannot be drawn after the first move: `render` raises an error. After the second one neither can
    its scoreboard.
    """

    def scoreboard(self):
        return super().scoreboard() if self.plies < 2 else super().scoreboard()[3]

    def render(self):
        return super().render() if not self.plies else super().render().cells[100]
