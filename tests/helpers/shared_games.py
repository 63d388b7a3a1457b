"""A compiled game with dice, points, lists and arrays, and the same with planted differences."""

from __future__ import annotations

import numpy as np

from plyzero.rules.board import Board, Cell, grid
from plyzero.rules.catalog import GameSpec
from plyzero.rules.compiled_game import CompiledGame, kernel
from plyzero.rules.game import DRAW, ONGOING

SIZE = 3
PIECES = ("", "0:1", "0:2", "0:3", "1:3", "1:2", "1:1")  # -1 is the last one


@kernel
def neighbours(square):
    """Return the squares beside a square."""
    row, column = square // SIZE, square % SIZE
    found = [square]
    found.pop()
    if row > 0:
        found.append(square - SIZE)
    if row < SIZE - 1:
        found.append(square + SIZE)
    if column > 0:
        found.append(square - 1)
    if column < SIZE - 1:
        found.append(square + 1)
    return found


@kernel
def fewer_neighbours(square):
    """The same without the right one."""
    found = neighbours(square)
    if square % SIZE < SIZE - 1:
        found.pop()
    return found


class Gather(CompiledGame, version=1):
    """Throw a die of three and put the number on an empty square: smaller numbers beside it become yours."""

    State = np.dtype([("to_play", "i1"), ("board", "i2", (SIZE * SIZE,)), ("thrown", "i1")])
    num_actions, num_chances = SIZE * SIZE, 3
    observation_shape, max_plies, max_score = (4, SIZE, SIZE), SIZE * SIZE, 27
    roll_names = ("one", "two", "three")

    def legal(s, mask):
        for square in range(SIZE * SIZE):
            mask[square] = s["board"][square] == 0

    def chances(s, weights):
        if s["thrown"] == 0:
            for roll in range(3):
                weights[roll] = (3 - roll) / 6

    def play(s, action):
        if s["thrown"] == 0:
            s["thrown"] = action + 1
            return
        if action >= SIZE * SIZE:
            raise ValueError("no such square")
        sign = 1 - 2 * s["to_play"]
        for square in neighbours(action):
            if abs(s["board"][square]) < s["thrown"]:
                s["board"][square] = sign * abs(s["board"][square])
        s["board"][action] = sign * s["thrown"]
        s["thrown"] = 0
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        if (s["board"] == 0).any():
            return ONGOING
        lead = s["board"].sum()
        if lead == 0:
            return DRAW
        return 0 if lead > 0 else 1

    def score(s):
        return abs(s["board"].sum())

    def observe(s, planes):
        counts = np.zeros(7, np.int64)
        for square in range(SIZE * SIZE):
            own = s["board"][square] * (1 - 2 * s["to_play"])
            planes[1 if own > 0 else 0, square // SIZE, square % SIZE] = own / 3
            counts[own + 3] += 1
        planes[2, 0, 0] = s["thrown"] / 3
        planes[3, 0, 0] = np.sqrt(counts[4])

    def action_name(self, action):
        """Return a name that depends on the number thrown: b2=3."""
        return f"{'abc'[action % SIZE]}{action // SIZE + 1}={self.record['thrown']}"

    def render(self):
        return grid(self.record["board"].reshape(SIZE, SIZE), pieces=PIECES)

    def scoreboard(self):
        """Return what follows from the whole board."""
        lead = int(self.record["board"].sum())
        return f"{max(lead, 0)} points", f"{max(-lead, 0)} points"


class OneNeighbourLess(Gather, version=1):
    """The square to the right is not gathered."""

    def play(s, action):
        if s["thrown"] == 0:
            s["thrown"] = action + 1
            return
        sign = 1 - 2 * s["to_play"]
        for square in fewer_neighbours(action):
            if abs(s["board"][square]) < s["thrown"]:
                s["board"][square] = sign * abs(s["board"][square])
        s["board"][action] = sign * s["thrown"]
        s["thrown"] = 0
        s["to_play"] = 1 - s["to_play"]


class OtherChances(Gather, version=1):
    """All numbers are equally likely."""

    def chances(s, weights):
        if s["thrown"] == 0:
            weights[:] = 1 / 3


class OtherScore(Gather, version=1):
    """A point more."""

    def score(s):
        return abs(s["board"].sum()) + (s["board"].sum() != 0)


class OtherName(Gather, version=1):
    """One name with one number is another one."""

    def action_name(self, action):
        name = super().action_name(action)
        return "c3" if name == "c3=3" else name


class OtherBoard(Gather, version=1):
    """A one of player 1 on b2 looks like a two."""

    def render(self):
        board = self.record["board"].copy()
        board[4] = -2 if board[4] == -1 else board[4]
        return grid(board.reshape(SIZE, SIZE), pieces=PIECES)


class RareName(Gather, version=1):
    """The last square is legal at the end only, and then its name depends on five bytes."""

    State = np.dtype([("to_play", "i1"), ("board", "i1", (SIZE * SIZE,)), ("thrown", "i1"), ("odd", "i1", (4,))])

    def legal(s, mask):
        for square in range(SIZE * SIZE - 1):
            mask[square] = s["board"][square] == 0
        mask[SIZE * SIZE - 1] = not mask.any()

    def play(s, action):
        if s["thrown"] == 0:
            s["thrown"] = action + 1
            return
        s["board"][action] = s["thrown"] * (1 - 2 * s["to_play"])
        s["odd"][action % 4] ^= s["thrown"] % 2
        s["thrown"] = 0
        s["to_play"] = 1 - s["to_play"]

    def action_name(self, action):
        name = super().action_name(action)
        odd = "".join(map(str, self.record["odd"].tolist()))
        return f"{name}/{odd}" if action == SIZE * SIZE - 1 else name


class ManyNames(Gather, version=1):
    """A name depends on the whole board."""

    def action_name(self, action):
        return f"{super().action_name(action)}/{int(self.record['board'].sum())}"


class ManyPieces(Gather, version=1):
    """A square shows the sum of the board."""

    def render(self):
        board, total = self.record["board"].reshape(SIZE, SIZE), int(self.record["board"].sum())
        pieces = ("", *(f"{piece}{total}" for piece in PIECES[1:]))
        return grid(board, pieces=pieces)


class ManyCells(Gather, version=1):
    """The board has a thousand cells."""

    def render(self):
        return Board(tuple(Cell(f"{number}", number % 32, number // 32) for number in range(1024)))


class Counting(Gather, version=1):
    """The board and the scoreboard show numbers of the state, with many values."""

    State = np.dtype([("to_play", "i1"), ("board", "i2", (SIZE * SIZE,)), ("thrown", "i1"), ("points", "i4", (2,))])

    def play(s, action):
        if s["thrown"] == 0:
            s["thrown"] = action + 1
            return
        s["board"][action] = s["thrown"]
        s["points"][s["to_play"]] += 1000 * int(s["thrown"]) + 7 * action
        s["thrown"] = 0
        s["to_play"] = 1 - s["to_play"]

    def render(self):
        shown = [f"1:{number + 5}" if number else "" for number in self.record["points"].tolist()]
        cells = (Cell("mine", 0, 0, shown[0], "card"), Cell("yours", 0, 1, shown[1], "card"))
        return Board((*super().render().cells, *(each._replace(x=each.x + 5) for each in cells)))

    def scoreboard(self):
        first, second = self.record["points"].tolist()
        return f"{first} points", f"{second} points"


def spec(cls):
    """Return a game whose rules run as plain Python, and which has the name of Gather."""
    return GameSpec(f"{__name__}:Gather", cls().as_plain_python())
