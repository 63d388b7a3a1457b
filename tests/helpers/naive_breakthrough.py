"""Breakthrough as people write it first: a small NumPy array, loops, and nothing prepared. For tests and `bench`."""

import copy

import numpy as np

from plyzero import Game, Outcome

EMPTY = 0


class Breakthrough(Game, version=1):
    """The rules and the numbers of examples/breakthrough.py."""

    size = 6
    num_actions = 80
    observation_shape = (2, 6, 6)
    max_plies = 85
    to_play = 0

    def __init__(self):
        self.board = np.zeros((6, 6), np.int8)
        self.board[:2], self.board[4:] = 1, 2

    def seen(self):
        """The board as the player to move sees it, with 1 for the own pawns."""
        return self.board if self.to_play == 0 else np.where(self.board > 0, 3 - self.board, 0)[::-1]

    def steps(self):
        return [
            (row, column, to)
            for row in range(5)
            for column in range(6)
            for to in (column - 1, column, column + 1)
            if 0 <= to < 6
        ]

    def legal_actions(self):
        if self.outcome() is not None:
            return []
        board, legal = self.seen(), []
        for action, (row, column, to) in enumerate(self.steps()):
            if board[row, column] != 1 or board[row + 1, to] == 1:
                continue
            if to == column and board[row + 1, to] == 2:
                continue
            legal.append(action)
        return legal

    def play(self, action):
        row, column, to = self.steps()[action]
        after = copy.copy(self)
        board = after.seen().copy()
        board[row, column], board[row + 1, to] = EMPTY, 1
        after.board = board if self.to_play == 0 else np.where(board > 0, 3 - board, 0)[::-1]
        after.to_play = 1 - self.to_play
        return after

    def outcome(self):
        board = self.seen()
        if (board[0] == 2).any() or not (board == 1).any():
            return Outcome(winner=1 - self.to_play)
        return None

    def observe(self):
        board = self.seen()
        return np.array([board == 1, board == 2])
