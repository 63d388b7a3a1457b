"""Tic-tac-toe as people write it for alpha-zero-general, in the ways in which its games and forks differ."""

import numpy as np

LINES = [*np.arange(9).reshape(3, 3), *np.arange(9).reshape(3, 3).T, np.array([0, 4, 8]), np.array([2, 4, 6])]


class Noughts:
    """Players 1 and -1; results are for the player who is asked for, and a draw is a small number."""

    def getInitBoard(self):
        return np.zeros((3, 3), int)

    def getActionSize(self):
        return 10  # the last is a pass, as in their own games

    def getNextState(self, board, player, action):
        board = np.copy(board)
        board.flat[action] = player
        return board, -player

    def getValidMoves(self, board, player):
        return np.append(np.ravel(board) == 0, False).astype(int)

    def getGameEnded(self, board, player):
        for line in LINES:
            total = board.flat[line].sum()
            if abs(total) == 3:
                return np.sign(total) * player
        return 0 if (board == 0).any() else 1e-4

    def getCanonicalForm(self, board, player):
        return board * player

    def getSymmetries(self, board, pi):
        policy = np.reshape(pi[:-1], (3, 3))
        images = [(np.rot90(board, k), np.rot90(policy, k)) for k in range(4)]
        images += [(np.fliplr(board), np.fliplr(policy)) for board, policy in images]
        return [(board, [*policy.ravel(), pi[-1]]) for board, policy in images]


class InPlace(Noughts):
    """It changes the board that it is given."""

    def getNextState(self, board, player, action):
        board.flat[action] = player
        return board, -player


class Absolute(Noughts):
    """Its results are those of player 1, whoever is asked for: right for a canonical board only."""

    def getGameEnded(self, board, player):
        return super().getGameEnded(board, 1)


class Unturned(Noughts):
    """Its canonical board is the board itself."""

    def getCanonicalForm(self, board, player):
        return board


class Fork(Noughts):
    """Players 0 and 1, results of both, more arguments, and one board that is kept in the object."""

    def __init__(self, players=2):
        self.players, self.board = players, np.zeros((3, 3), np.int8)

    def getNumberOfPlayers(self):
        return self.players

    def getInitBoard(self):
        self.board[:] = 0
        return self.board

    def getNextState(self, board, player, action, random_seed=0):
        self.board[:] = board
        self.board.flat[action] = 1 - 2 * player
        return self.board, 1 - player

    def getGameEnded(self, board, next_player):
        result = super().getGameEnded(board, 1)
        return np.array([result, -result if abs(result) == 1 else result])

    def getCanonicalForm(self, board, player):
        self.board[:] = board * (1 - 2 * player)
        return self.board

    def getSymmetries(self, board, pi, valid_actions):
        return [(*each, valid_actions) for each in super().getSymmetries(board, pi)]


class Sheet:
    """A board that is an object."""

    def __init__(self, squares):
        self.squares = squares

    def astype(self, kind):
        return np.array(self.squares, kind)


class Objects(Noughts):
    """Its boards are no arrays."""

    def getInitBoard(self):
        return Sheet(super().getInitBoard())

    def getNextState(self, board, player, action):
        after, player = super().getNextState(board.squares, player, action)
        return Sheet(after), player

    def getValidMoves(self, board, player):
        return super().getValidMoves(board.squares, player)

    def getGameEnded(self, board, player):
        return super().getGameEnded(board.squares, player)

    def getCanonicalForm(self, board, player):
        return Sheet(board.squares * player)

    def getSymmetries(self, board, pi):
        return [(board, pi)]

    def stringRepresentation(self, board):
        return str(board.squares)


class Old(Noughts):
    """It was written for a NumPy that had these names."""

    def getInitBoard(self):
        return np.zeros((3, 3), np.int)


class Lost(Noughts):
    """Its getSymmetries sends the squares elsewhere than the moves."""

    def getSymmetries(self, board, pi):
        return [(np.fliplr(board), pi)]


class TwoStarts(Noughts):
    """A coin decides where the first stone lies, as in their Santorini."""

    def getInitBoard(self):
        board = super().getInitBoard()
        board[1, 1], board[0, 0] = (1, -1) if np.random.randint(2) else (-1, 1)
        return board


class RandomMove(Noughts):
    def getNextState(self, board, player, action):
        board = np.copy(board)
        board.flat[np.random.choice(np.flatnonzero(board == 0))] = player
        return board, -player


class Endless(Noughts):
    def getNextState(self, board, player, action):
        return board, -player


class Stuck(Noughts):
    def getValidMoves(self, board, player):
        return np.zeros(10)


class Half:
    def getInitBoard(self):
        return np.zeros((3, 3))
