"""Two games written from the guide alone, one plain and one compiled: what mistakes are planted in.

Rotago is plain: the player who makes a row wins, and the board turns. Ataxx is compiled: stones are cloned, jump and
flip, a player may have to pass, and a counter of plies without a clone ends the game.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np

from plyzero import DRAW, ONGOING, CompiledGame, Game, Outcome, Symmetry, kernel, render_grid, square_names
from plyzero import turns_and_mirrors as turns

SQUARES = np.arange(16).reshape(4, 4)
SQUARE_NAMES = square_names(4, 4)
QUARTERS = ("nw", "ne", "sw", "se")
CORNERS = (0, 2, 8, 10)
TURNS = [
    (square, quarter, direction)  # direction 1 = counter-clockwise, 3 = clockwise, in quarter turns
    for square, quarter, direction in itertools.product(range(16), range(4), (1, 3))
]
ROWS = [tuple(row.tolist()) for row in (*SQUARES, *SQUARES.T, np.diag(SQUARES), np.diag(SQUARES[::-1]))]


class Rotago(Game, version=1):
    """Place a stone, then turn a quarter of the board; four in a row win, for both at once it is a draw."""

    num_actions = len(TURNS)
    observation_shape = (2, 4, 4)
    observation_dtype = bool
    max_plies = 16
    to_play = 0

    def __init__(self):
        self.board = [0] * 16  # 1 = player 0, 2 = player 1

    def legal_actions(self):
        if self.outcome():
            return []
        return [action for action, (square, _, _) in enumerate(TURNS) if self.board[square] == 0]

    def play(self, action):
        square, quarter, direction = TURNS[action]
        after = copy.copy(self)
        after.board = list(self.board)  # a list of its own
        after.board[square] = self.to_play + 1
        a = CORNERS[quarter]
        ring = (a, a + 1, a + 5, a + 4)  # clockwise
        stones = [after.board[each] for each in ring]
        for number, each in enumerate(ring):
            after.board[each] = stones[(number + direction) % 4]
        after.to_play = 1 - self.to_play
        return after

    def outcome(self):
        board = self.board
        rows = {board[a] for a, b, c, d in ROWS if board[a] and board[a] == board[b] == board[c] == board[d]}
        if len(rows) == 1:
            return Outcome(rows.pop() - 1)
        return Outcome(None) if rows or all(board) else None

    def observe(self):
        board = np.reshape(self.board, (4, 4))
        return np.array([board == self.to_play + 1, board == 2 - self.to_play])

    def action_name(self, action):
        square, quarter, direction = TURNS[action]
        return f"{SQUARE_NAMES[square]}-{QUARTERS[quarter]}{'-+'[direction == 1]}"

    def symmetries(self):
        return ROTAGO_SYMMETRIES

    def __str__(self):
        return render_grid(np.reshape(self.board, (4, 4)))


def rotago_symmetry(planes, squares):
    """Return the symmetry with the image of each turn of a quarter: a reflection also changes the direction."""
    corners = {0: 0, 3: 1, 12: 2, 15: 3}  # the corner of the board in each quarter
    quarters = [corners[int(squares[corner])] for corner in corners]
    is_reflection = (quarters[0], quarters[1], quarters[3], quarters[2]) in [
        (0, 2, 3, 1),
        (2, 3, 1, 0),
        (3, 1, 0, 2),
        (1, 0, 2, 3),
    ]
    images = [
        TURNS.index((int(squares[square]), quarters[quarter], 4 - direction if is_reflection else direction))
        for square, quarter, direction in TURNS
    ]
    return Symmetry(planes, np.array(images))


ROTAGO_SYMMETRIES = [rotago_symmetry(planes, squares) for planes, squares in turns(Rotago.observation_shape)]


SIDE, CELLS = 5, 25
JUMPS = np.array(
    [
        (at, to)
        for at, to in itertools.product(range(CELLS), repeat=2)
        if max(abs(at // SIDE - to // SIDE), abs(at % SIDE - to % SIDE)) == 2
    ]
)
NUM_JUMPS = len(JUMPS)
PASS = CELLS + NUM_JUMPS
NAMES = square_names(SIDE, SIDE)
QUIET = 12  # plies without a clone


class Ataxx(CompiledGame, version=1):
    """Clone a stone or jump, and flip the neighbours; most stones win, and QUIET plies without a clone draw."""

    State = np.dtype([("board", "i1", (SIDE, SIDE)), ("quiet", "i1"), ("passes", "i1"), ("to_play", "i1")])
    num_actions = PASS + 1  # clones by their target, jumps, the pass
    action_names = (*NAMES, *(f"{NAMES[at]}-{NAMES[to]}" for at, to in JUMPS), "pass")
    observation_shape = (4, SIDE, SIDE)  # own stones, the opponent's, quiet plies, whether the opponent has passed
    max_plies = (CELLS - 4 + 1) * QUIET  # a clone, of which there is one for each empty square, or the end

    def start(s):
        s["board"][0, 0] = s["board"][4, 4] = 1
        s["board"][0, 4] = s["board"][4, 0] = 2

    def legal(s, mask):
        mark(s["board"], s["to_play"] + 1, mask)
        mask[PASS] = not mask[:PASS].any()

    def play(s, action):
        own = s["to_play"] + 1
        if action == PASS:
            s["passes"] += 1
            s["quiet"] += 1
        else:
            s["passes"] = 0
            to = action if action < CELLS else JUMPS[action - CELLS, 1]
            if action >= CELLS:
                at = JUMPS[action - CELLS, 0]
                s["board"][at // SIDE, at % SIDE] = 0
            flip(s["board"], to, own)
            s["quiet"] = 0 if action < CELLS else s["quiet"] + 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        first, second = (s["board"] == 1).sum(), (s["board"] == 2).sum()
        if first and second and first + second < CELLS and s["passes"] < 2:
            return DRAW if s["quiet"] == QUIET else ONGOING
        return DRAW if first == second else 0 if first > second else 1

    def observe(s, planes):
        for row in range(SIDE):
            for column in range(SIDE):
                if s["board"][row, column]:
                    planes[(s["board"][row, column] - 1) ^ s["to_play"], row, column] = 1
        planes[2] = s["quiet"] / QUIET
        planes[3] = s["passes"]

    def symmetries(self):
        return ATAXX_SYMMETRIES

    def __str__(self):
        return render_grid(self.record["board"])


@kernel
def mark(board, own, mask):
    """Mark the clones and jumps of a player."""
    for row in range(SIDE):
        for column in range(SIDE):
            if board[row, column] == 0:
                near = board[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
                mask[row * SIDE + column] = (near == own).any()
    for jump in range(NUM_JUMPS):
        at, to = JUMPS[jump]
        mask[CELLS + jump] = board[at // SIDE, at % SIDE] == own and board[to // SIDE, to % SIDE] == 0


@kernel
def flip(board, to, own):
    """Put a stone on a square and flip its neighbours."""
    row, column = to // SIDE, to % SIDE
    board[row, column] = own
    for r in range(max(row - 1, 0), min(row + 2, SIDE)):
        for c in range(max(column - 1, 0), min(column + 2, SIDE)):
            if board[r, c] == 3 - own:
                board[r, c] = own


def ataxx_symmetry(planes, squares):
    jumps = {(int(at), int(to)): number for number, (at, to) in enumerate(JUMPS)}
    images = [CELLS + jumps[int(squares[at]), int(squares[to])] for at, to in JUMPS]
    return Symmetry(planes, np.array([*squares, *images, PASS]))


ATAXX_SYMMETRIES = [ataxx_symmetry(planes, squares) for planes, squares in turns(Ataxx.observation_shape)]
