"""Games that begin with a random set-up: a small kind of chess, compiled, and heaps of stones, in plain Python."""

from __future__ import annotations

import copy
import itertools

import numpy as np

from plyzero import DRAW, ONGOING, CompiledGame, Game, Outcome, Symmetry, grid, kernel
from plyzero.rules.catalog import load_game

SIZE = 5
SQUARES = SIZE * SIZE
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
LETTERS = " PNBRQK"
ORDERS = tuple(itertools.permutations((KNIGHT, BISHOP, ROOK, QUEEN, KING)))
ROOK_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
BISHOP_STEPS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
STEPS = np.array(ROOK_STEPS + BISHOP_STEPS)
JUMPS = np.array(((1, 2), (1, -2), (-1, 2), (-1, -2), (2, 1), (2, -1), (-2, 1), (-2, -1)))
MAX_PLIES = 50


@kernel
def mark_step(board, square, row_step, column_step, mask):
    """Mark the move of a piece by one step, and return whether the piece can go on from there."""
    row, column = square[1] // SIZE + row_step, square[1] % SIZE + column_step
    if not (0 <= row < SIZE and 0 <= column < SIZE):
        return False
    target = row * SIZE + column
    if board[target] > 0:
        return False
    mask[target * SQUARES + square[0]] = True
    square[1] = target
    return board[target] == 0


@kernel
def mark_moves(board, mask):
    """Mark the moves of the player whose pieces are positive; the action is 25 * target + source."""
    square = np.zeros(2, np.int64)  # the source, and how far the piece has come
    for source in range(SQUARES):
        piece = board[source]
        if piece == PAWN:
            ahead = source + SIZE
            if board[ahead] == 0:
                mask[ahead * SQUARES + source] = True
            if source % SIZE > 0 and board[ahead - 1] < 0:
                mask[(ahead - 1) * SQUARES + source] = True
            if source % SIZE < SIZE - 1 and board[ahead + 1] < 0:
                mask[(ahead + 1) * SQUARES + source] = True
        elif piece > PAWN:
            first = 4 if piece == BISHOP else 0
            last = 4 if piece == ROOK else 8
            for number in range(first, last):
                row_step, column_step = STEPS[number]
                if piece == KNIGHT:
                    row_step, column_step = JUMPS[number]
                square[0] = source
                square[1] = source
                while mark_step(board, square, row_step, column_step, mask):
                    if piece in (KNIGHT, KING):
                        break


class ShuffledRanks(CompiledGame, version=1):
    """Chess without its special rules on a board of 5 x 5: who takes the king wins, and 50 moves are a draw.

    A set-up has one of 120 orders of the pieces, the same for both players, and any of the pawns of the files b, c and
    d: 960 in all. The board is seen by the player to move, whose pieces are positive and move up.
    """

    State = np.dtype([("board", "i1", (SQUARES,)), ("plies", "i1"), ("stuck", "i1"), ("to_play", "i1")])
    num_actions, policy_planes = SQUARES * SQUARES, SQUARES
    observation_shape, max_plies = (13, SIZE, SIZE), MAX_PLIES
    setups = 8 * len(ORDERS)

    def start(s):
        s["board"][:SIZE] = ROOK, KNIGHT, BISHOP, QUEEN, KING
        s["board"][SIZE : 2 * SIZE] = PAWN
        s["board"][3 * SIZE :] = -s["board"][: 2 * SIZE].reshape(2, SIZE)[::-1].ravel()

    def set_up(s, number):
        order, pawns = divmod(number, 8)
        s["board"][:SIZE] = ORDERS[order]
        for bit in range(3):
            s["board"][SIZE + 1 + bit] = PAWN if pawns >> bit & 1 else 0
        s["board"][3 * SIZE :] = -s["board"][: 2 * SIZE].reshape(2, SIZE)[::-1].ravel()

    def play(s, action):
        target, source = action // SQUARES, action % SQUARES
        board = s["board"].copy()
        piece = board[source]
        board[source] = 0
        board[target] = QUEEN if piece == PAWN and target >= 4 * SIZE else piece
        for square in range(SQUARES):
            s["board"][(SIZE - 1 - square // SIZE) * SIZE + square % SIZE] = -board[square]
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]
        mask = np.zeros(SQUARES * SQUARES, np.bool_)
        mark_moves(s["board"], mask)
        s["stuck"] = not mask.any()

    def legal(s, mask):
        mark_moves(s["board"], mask)

    def outcome(s):
        has_king = False
        for square in range(SQUARES):
            if s["board"][square] == KING:
                has_king = True
        if not has_king:
            return 1 - s["to_play"]
        return DRAW if s["stuck"] or s["plies"] >= MAX_PLIES else ONGOING

    def observe(s, planes):
        for square in range(SQUARES):
            piece = s["board"][square]
            if piece > 0:
                planes[piece - 1, square // SIZE, square % SIZE] = 1
            elif piece < 0:
                planes[5 - piece, square // SIZE, square % SIZE] = 1
        planes[12] = s["plies"] / MAX_PLIES

    def symmetries(self):
        numbers = np.arange(np.prod(self.observation_shape)).reshape(self.observation_shape)
        mirrored = np.arange(SQUARES).reshape(SIZE, SIZE)[:, ::-1].ravel()
        actions = np.arange(self.num_actions)
        return [
            Symmetry(numbers[:, :, ::-1].ravel(), mirrored[actions // SQUARES] * SQUARES + mirrored[actions % SQUARES])
        ]

    def action_name(self, action):
        return "".join(self._square_name(square) for square in (action % SQUARES, action // SQUARES))

    def _square_name(self, square):
        row, column = divmod(square, SIZE)
        return "abcde"[column] + str(SIZE - row if self.to_play else row + 1)

    def render(self):
        board = self.record["board"].reshape(SIZE, SIZE)
        board = -board[::-1] if self.to_play else board
        pieces = ["", *(f"0:{each}" for each in LETTERS[1:]), *(f"1:{each.lower()}" for each in LETTERS[1:])]
        return grid(np.where(board < 0, 6 - board, board), pieces=pieces, rows_up=True, style="checks")


class FixedHeaps(Game, version=1):
    """Take one or two stones from one of three heaps; who takes the last stone wins."""

    num_actions, observation_shape, max_plies = 6, (3, 5, 1), 12
    heaps = (1, 2, 3)
    to_play = 0

    def _with(self, heaps):
        after = copy.copy(self)
        after.heaps = heaps
        return after

    def legal_actions(self):
        return [2 * heap + taken - 1 for heap in range(3) for taken in (1, 2) if self.heaps[heap] >= taken]

    def play(self, action):
        heap, taken = action // 2, action % 2 + 1
        after = self._with(tuple(stones - taken * (i == heap) for i, stones in enumerate(self.heaps)))
        after.to_play = 1 - self.to_play
        return after

    def outcome(self):
        return None if any(self.heaps) else Outcome(1 - self.to_play)

    def observe(self):
        planes = np.zeros(self.observation_shape)
        for heap, stones in enumerate(self.heaps):
            planes[heap, stones] = 1
        return planes

    def key(self):
        return self.heaps, self.to_play


class Heaps(FixedHeaps, version=1):
    """The same with heaps that the bits of a number fill."""

    setups = 1 << 32

    def set_up(self, number):
        return self._with(tuple(1 + (number >> 2 * heap & 3) for heap in range(3)))


class CompiledHeaps(CompiledGame, version=1):
    """Heaps, compiled."""

    State = np.dtype([("heaps", "i1", (3,)), ("to_play", "i1")])
    num_actions, observation_shape, max_plies, observation_dtype = 6, (3, 5, 1), 12, np.float32
    setups = 1 << 32

    def start(s):
        s["heaps"][:] = 1, 2, 3

    def set_up(s, number):
        for heap in range(3):
            s["heaps"][heap] = 1 + (number >> 2 * heap & 3)

    def legal(s, mask):
        for heap in range(3):
            mask[2 * heap] = s["heaps"][heap] >= 1
            mask[2 * heap + 1] = s["heaps"][heap] >= 2

    def play(s, action):
        s["heaps"][action // 2] -= action % 2 + 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return 1 - s["to_play"] if s["heaps"].sum() == 0 else ONGOING

    def observe(s, planes):
        for heap in range(3):
            planes[heap, s["heaps"][heap], 0] = 1


class ThrownHeaps(Heaps, version=1):
    """The same, but a coin before the first move decides whether a stone lies on the last heap in addition."""

    num_chances = 2
    is_thrown = False
    observation_shape = (3, 6, 1)

    def chances(self):
        return () if self.is_thrown else (0.75, 0.25)

    def play(self, action):
        if self.is_thrown:
            return super().play_unchecked(action)
        after = self._with((*self.heaps[:2], self.heaps[2] + action))
        after.is_thrown = True
        return after

    def roll_name(self, roll):
        return ("heads", "tails")[roll]


FEW_BEGINNINGS = ((1, 2, 3), (2, 2, 1), (4, 1, 1))


class RolledHeaps(FixedHeaps, version=1):
    """The pattern for few set-ups: they are the outcomes of a first roll."""

    num_chances = len(FEW_BEGINNINGS)
    heaps = ()

    def chances(self):
        return () if self.heaps else [1 / self.num_chances] * self.num_chances

    def play(self, action):
        return super().play_unchecked(action) if self.heaps else self._with(FEW_BEGINNINGS[action])

    def outcome(self):
        return super().outcome() if self.heaps else None


def start_of(cls):
    """Return the start of a game as the catalog makes it: it awaits a set-up."""
    return load_game(cls).start
