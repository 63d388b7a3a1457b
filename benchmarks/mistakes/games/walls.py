"""Quoridor on 5x5 in plain Python: a game of walls, which must leave both players a way."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Cell, Game, Label, Outcome, Symmetry, square_names

SIZE = 5
SQUARES = SIZE * SIZE
WALLS = 3  # of each player
NAMES = square_names(SIZE, SIZE)
GOALS = (range(SQUARES - SIZE, SQUARES), range(SIZE))

# Actions are planes of squares: steps to a square, then walls above it and right of it. A wall is as long as two
# squares: the one above a1 is also above b1, the one right of a1 is also right of a2.
ABOVE, RIGHT = SQUARES, 2 * SQUARES
ANCHORS = [row * SIZE + column for row in range(SIZE - 1) for column in range(SIZE - 1)]
CUTS = {ABOVE + a: ((a, a + SIZE), (a + 1, a + 1 + SIZE)) for a in ANCHORS}
CUTS |= {RIGHT + a: ((a, a + 1), (a + SIZE, a + SIZE + 1)) for a in ANCHORS}


def clashes(wall: int) -> list[int]:
    """Return the walls that overlap or cross a wall, and the wall itself."""
    crossing, step = (wall + SQUARES, 1) if wall < RIGHT else (wall - SQUARES, SIZE)
    return [wall, crossing, *(other for other in (wall - step, wall + step) if other in CUTS)]


CLASHES = {wall: clashes(wall) for wall in CUTS}
NEIGHBOURS: list[list[int]] = [[] for _ in range(SQUARES)]
for cuts in CUTS.values():
    for lower, higher in cuts:
        if higher not in NEIGHBOURS[lower]:
            NEIGHBOURS[lower].append(higher)
            NEIGHBOURS[higher].append(lower)


class Walls(Game, version=1):
    """Reach the far row with your pawn. In your turn, step to a neighbouring square or put up a wall.

    A wall is as long as two squares and must leave both players a way to their far row. Each player has three. A pawn
    jumps over the other; where a wall or the edge of the board forbids that, it steps to the side of it. Fifty plies
    are a draw.
    """

    num_actions = 3 * SQUARES
    policy_planes = 3
    # own pawn, the other's; walls above and right of squares; own walls left, the other's; plies; whether o is to move
    observation_shape = (8, SIZE, SIZE)
    max_plies = 50  # then the game is drawn

    def __init__(self) -> None:
        self.pawns = (SIZE // 2, SQUARES - 1 - SIZE // 2)
        self.walls: list[int] = []
        self.walls_left = (WALLS, WALLS)
        self.neighbours = NEIGHBOURS  # of each square, those that no wall separates from it
        self.plies = 0
        self.to_play = 0

    def legal_actions(self) -> list[int]:
        if self.outcome() is not None:
            return []
        walls = self._legal_walls() if self.walls_left[self.to_play] else ()
        return [*sorted(self._steps()), *walls]

    # There is always a step: a pawn that the other shuts in would share a part of the board with it that has only two
    # squares, and then the walls leave neither of them a way.
    def _steps(self) -> set[int]:
        square, other = self.pawns[self.to_play], self.pawns[1 - self.to_play]
        steps = set(self.neighbours[square])
        if other in steps:
            steps.remove(other)
            beyond = 2 * other - square
            jumps = set(self.neighbours[other]) - {square}
            steps |= {beyond} if beyond in jumps else jumps
        return steps

    def _legal_walls(self) -> Iterator[int]:
        used = {(a, b) for player in (0, 1) for a, b in self._way(player)}
        clashing = {clash for wall in self.walls for clash in CLASHES[wall]}
        for wall, cuts in CUTS.items():
            if wall in clashing:
                continue
            if used.isdisjoint(cuts):  # a shortest way stays open
                yield wall
            else:
                after = copy.copy(self)
                after._put_up(wall)
                if after._way(0) and after._way(1):
                    yield wall

    def _way(self, player: int) -> list[tuple[int, int]]:
        """Return the steps of a shortest way to the far row, each as (lower square, higher square); [] if none is."""
        start, goal = self.pawns[player], GOALS[player]
        came_from = {start: start}
        queue = [start]
        for square in queue:
            if square in goal:
                way = []
                while square != start:
                    before = came_from[square]
                    way.append((min(square, before), max(square, before)))
                    square = before
                return way
            for near in self.neighbours[square]:
                if near not in came_from:
                    came_from[near] = square
                    queue.append(near)
        return []

    def _put_up(self, wall: int) -> None:
        self.walls = [*self.walls, wall]
        self.neighbours = self.neighbours.copy()
        for a, b in CUTS[wall]:
            self.neighbours[a] = [square for square in self.neighbours[a] if square != b]
            self.neighbours[b] = [square for square in self.neighbours[b] if square != a]

    def play(self, action: int) -> Self:
        after = copy.copy(self)
        if action < SQUARES:
            after.pawns = (action, self.pawns[1]) if self.to_play == 0 else (self.pawns[0], action)
        else:
            after._put_up(action)
            first, second = self.walls_left
            after.walls_left = (first - 1, second) if self.to_play == 0 else (first, second - 1)
        after.plies += 1
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        last = 1 - self.to_play
        if self.pawns[last] in GOALS[last]:
            return Outcome(winner=last)
        return Outcome(None) if self.plies == self.max_plies else None

    def observe(self) -> NDArray[np.float32]:
        planes = np.zeros((8, SQUARES), np.float32)
        me, other = self.to_play, 1 - self.to_play
        planes[0, self.pawns[me]] = 1
        planes[1, self.pawns[other]] = 1
        for wall in self.walls:
            planes[1 + wall // SQUARES, wall % SQUARES] = 1
        planes[4] = self.walls_left[me] / WALLS
        planes[5] = self.walls_left[other] / WALLS
        planes[6] = self.plies / self.max_plies
        planes[7] = me
        return planes.reshape(self.observation_shape)

    def action_name(self, action: int) -> str:
        return NAMES[action % SQUARES] + ("", "-", "|")[action // SQUARES]

    # Left and right are exchanged. The columns of walls are the first four.
    def symmetries(self) -> list[Symmetry]:
        squares = np.arange(SQUARES).reshape(SIZE, SIZE)
        of_squares, of_walls = squares[:, ::-1].ravel(), squares[:, [3, 2, 1, 0, 4]].ravel()
        images = [of_walls if plane in (2, 3) else of_squares for plane in range(8)]
        planes = np.concatenate([plane * SQUARES + image for plane, image in enumerate(images)])
        return [Symmetry(planes, np.concatenate([of_squares, ABOVE + of_walls, RIGHT + of_walls]))]

    def render(self) -> Board:
        pieces = {self.pawns[0]: "0", self.pawns[1]: "1"}
        closed = {cut: "#" for wall in self.walls for cut in CUTS[wall]}
        cells = []
        for square, name in enumerate(NAMES):
            x, y = 2 * (square % SIZE), 2 * (SIZE - 1 - square // SIZE)
            cells.append(Cell(name, x, y, pieces.get(square, "")))
            if y > 0:
                cells.append(Cell(f"{name}-", x, y - 1, closed.get((square, square + SIZE), ""), "bar-h"))
            if x < 2 * (SIZE - 1):
                cells.append(Cell(f"{name}|", x + 1, y, closed.get((square, square + 1), ""), "bar-v"))
        labels = [Label(2 * i, 2 * SIZE - 1, NAMES[i][0]) for i in range(SIZE)]
        labels += [Label(-1, 2 * (SIZE - 1 - i), str(i + 1)) for i in range(SIZE)]
        return Board(tuple(cells), style="dots", labels=tuple(labels))
