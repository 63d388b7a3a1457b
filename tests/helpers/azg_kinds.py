"""One small game as people write it for alpha-zero-general with boards of every kind, and with every mistake.

Two players set stones on a line. Who has two neighbouring ones wins; a full line is a draw.
"""

import itertools
from collections import namedtuple

import numpy as np
from numba import _helperlib


class Line:
    """A subclass says what a board is made of: `make` makes one of the stones 1, -1 and 0, `stones` returns these."""

    size = 5

    def make(self, stones):
        return np.array([stones])

    def stones(self, board):
        return [int(each) for each in np.ravel(board)]

    def getInitBoard(self):
        return self.make([0] * self.size)

    def getBoardSize(self):
        return 1, self.size

    def getActionSize(self):
        return self.size

    def getNextState(self, board, player, action):
        stones = self.stones(board)
        stones[action] = player
        return self.make(stones), -player

    def getValidMoves(self, board, player):
        return np.array([stone == 0 for stone in self.stones(board)])

    def getGameEnded(self, board, player):
        stones = self.stones(board)
        for one, other in itertools.pairwise(stones):
            if one == other != 0:
                return one * player
        return 0 if 0 in stones else 1e-4

    def getCanonicalForm(self, board, player):
        return self.make([stone * player for stone in self.stones(board)])

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[:, ::-1], pi[::-1])]

    def stringRepresentation(self, board):
        return str(self.stones(board))


class Flat(Line):
    def make(self, stones):
        return np.array(stones)

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[::-1], pi[::-1])]


class Lists(Line):
    def make(self, stones):
        return [list(stones)]

    def getSymmetries(self, board, pi):
        return [(board, pi), ([board[0][::-1]], pi[::-1])]


class Tuples(Flat):
    def make(self, stones):
        return tuple(stones)


class Letters(Line):
    def make(self, stones):
        return np.array([[".xo"[stone] for stone in stones]])

    def stones(self, board):
        return [{".": 0, "x": 1, "o": -1}[each] for each in board[0]]


class Rows(Letters):
    def make(self, stones):
        return ["".join(".xo"[stone] for stone in stones)]

    def getSymmetries(self, board, pi):
        return [(board, pi), ([board[0][::-1]], pi[::-1])]


class Text(Letters):
    def make(self, stones):
        return "".join(".xo"[stone] for stone in stones)

    def stones(self, board):
        return super().stones([board])

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[::-1], pi[::-1])]


class Squares(Line):
    """A dict of the squares that are not empty."""

    def make(self, stones):
        return {(0, at): stone for at, stone in enumerate(stones) if stone}

    def stones(self, board):
        return [board.get((0, at), 0) for at in range(self.size)]

    def getSymmetries(self, board, pi):
        return [(board, pi)]


class Parts(Line):
    """A dict of parts."""

    def make(self, stones):
        return {"line": np.array([stones]), "ply": np.count_nonzero(stones)}

    def stones(self, board):
        return board["line"][0].tolist()

    def getSymmetries(self, board, pi):
        return [(board, pi), ({**board, "line": board["line"][:, ::-1]}, pi[::-1])]


Pair = namedtuple("Pair", "line counters")


class Pairs(Line):
    """A tuple of arrays of different shapes."""

    def make(self, stones):
        return Pair(np.array([stones]), np.array([np.count_nonzero(stones), 7]))

    def stones(self, board):
        return board[0][0].tolist()

    def getSymmetries(self, board, pi):
        return [(board, pi), (board._replace(line=board.line[:, ::-1]), pi[::-1])]


class Planes(Line):
    """Two planes of truth values."""

    def make(self, stones):
        return np.array([[stones], [stones]]) == np.array([1, -1])[:, None, None]

    def stones(self, board):
        return (board[0].astype(int) - board[1])[0].tolist()

    def getSymmetries(self, board, pi):
        return [(board, pi), (board[..., ::-1], pi[::-1])]


class Halves(Line):
    def make(self, stones):
        return np.array([stones]) / 2

    def stones(self, board):
        return [int(2 * each) for each in board[0]]


class TwoDigits(Line):
    def make(self, stones):
        return 12 * np.array([stones])

    def stones(self, board):
        return [int(each) // 12 for each in board[0]]


class Kings(Line):
    """Pieces of two kinds."""

    def make(self, stones):
        return np.array([stones]) * np.array([2, 1, 1, 1, 2])

    def stones(self, board):
        return np.sign(board[0]).tolist()


class Piece:
    def __init__(self, stone):
        self.stone = stone

    def __str__(self):
        return ".xo"[self.stone]


class Pieces(Line):
    """An array of objects."""

    def make(self, stones):
        board = np.empty((1, self.size), object)
        board[0] = [Piece(stone) for stone in stones]
        return board

    def stones(self, board):
        return [piece.stone for piece in board[0]]


class BarePiece:
    def __init__(self, stone):
        self.stone = stone


class BarePieces(Pieces):
    def make(self, stones):
        board = np.empty((1, self.size), object)
        board[0] = [BarePiece(stone) for stone in stones]
        return board


class Sheet:
    def __init__(self, line):
        self.line = line


class Objects(Line):
    """A board that is an object, which only a function of the person makes an array of."""

    def make(self, stones):
        return Sheet(stones)

    def stones(self, board):
        return list(board.line)

    def getSymmetries(self, board, pi):
        return [(board, pi)]


def planes_of(sheet):
    return np.array([[stone == 1 for stone in sheet.line], [stone == -1 for stone in sheet.line]])[:, None]


def fails(sheet):
    return sheet.pieces


class GameMakesArrays(Objects):
    """Its getNextState returns more than the board and the player, and only who is to move has a canonical board."""

    def getCanonicalForm(self, board, player):
        assert player == 1 - 2 * (np.count_nonzero(board.line) % 2)
        return super().getCanonicalForm(board, player)

    def getNextState(self, board, player, action):
        return *super().getNextState(board, player, action), str(action)

    def board_to_array(self, board):
        return planes_of(board)


class ArraySheet(Sheet):
    def as_array(self):
        return np.array([self.line])


class BoardMakesArrays(Objects):
    def make(self, stones):
        return ArraySheet(stones)


class CanonicalArrays(Objects):
    """Only the canonical board is an array."""

    def getCanonicalForm(self, board, player):
        return np.array([[stone * player for stone in self.stones(board)]])

    def stones(self, board):
        return board[0].tolist() if isinstance(board, np.ndarray) else super().stones(board)


class Sized(Line):
    def __init__(self, n):
        self.size = n


class Named(Line):
    def __init__(self, name: str, size=5):
        self.size = size


class Counting(Line):
    """A counter grows at each pass; random games are far shorter than good ones, since most moves lose at once."""

    def getInitBoard(self):
        return np.zeros((1, 2), int)  # plies, and who has lost

    def getActionSize(self):
        return 4

    def getNextState(self, board, player, action):
        return board + np.array([1, player if action == 0 else 0]), -player

    def getValidMoves(self, board, player):
        return np.ones(4)

    def getGameEnded(self, board, player):
        return -player * board[0, 1] or (board[0, 0] == 200) * 1e-4

    def getCanonicalForm(self, board, player):
        return board * [1, player]

    def getSymmetries(self, board, pi):
        return [(board, pi)]


class Rare(Line):
    """After moves that random games hardly make, in order from the left, a piece appears that they do not show."""

    size = 8

    def getNextState(self, board, player, action):
        after = board.copy()
        after[0, action] = 3 * player if action == 7 and (board[0, :7] != 0).all() else player
        return after, -player

    def getGameEnded(self, board, player):
        return 0 if (board == 0).any() else 1e-4


class Large(Line):
    """A board of more squares than its type has numbers, with all turns and mirrors."""

    size = 12

    def getInitBoard(self):
        return np.zeros((12, 12), np.int8)

    def getBoardSize(self):
        return 12, 12

    def getActionSize(self):
        return 144

    def getNextState(self, board, player, action):
        after = board.copy()
        after.flat[action] = player
        return after, -player

    def getValidMoves(self, board, player):
        return board.ravel() == 0

    def getGameEnded(self, board, player):
        return (np.count_nonzero(board) == 4) * 1e-4

    def getCanonicalForm(self, board, player):
        return board * player

    def getSymmetries(self, board, pi):
        assert board.dtype == np.int8
        policy = np.reshape(pi, (12, 12))
        turned = [(np.rot90(board, k), np.rot90(policy, k)) for k in range(4)]
        return [(b, p.ravel()) for b, p in [*turned, *((b[:, ::-1], p[:, ::-1]) for b, p in turned)]]


class FailingSymmetries(Line):
    def getSymmetries(self, board, pi):
        return [{0: board, 1: board, -1: board}[int(stone)] for stone in board.ravel()]


class EndlessSymmetries(Line):
    def getSymmetries(self, board, pi):
        while True:
            pass


class EndlessMoves(Line):
    def getValidMoves(self, board, player):
        while True:
            pass


class Shuffled(Line):
    """The first stone of each lies anywhere."""

    def getInitBoard(self):
        return self.make(np.random.permutation([1, -1, 0, 0, 0, 0]).tolist())

    size = 6

    def getGameEnded(self, board, player):
        stones = self.stones(board)
        return 0 if 0 in stones else int(np.sign(stones[0] + 2 * stones[1])) * player


class ShuffledElsewhere(Shuffled):
    def getInitBoard(self):
        return self.make(np.random.default_rng().permutation([1, -1, 0, 0, 0, 0]).tolist())


class ShuffledByNumba(Shuffled):
    """It draws with the generator of Numba's compiled code."""

    def getInitBoard(self):
        drawn = _helperlib.rnd_get_state(_helperlib.rnd_get_np_state_ptr())[1][0]
        return self.make(np.random.default_rng(drawn).permutation([1, -1, 0, 0, 0, 0]).tolist())


class OnlyLegal(Line):
    """Its getSymmetries can move legal actions only; the last is never legal."""

    def getActionSize(self):
        return self.size + 1

    def getValidMoves(self, board, player):
        return np.append(super().getValidMoves(board, player), False)

    def getSymmetries(self, board, pi, valid_actions):
        if valid_actions[-1]:
            raise IndexError
        return [(board, pi, valid_actions), (board[:, ::-1], [*pi[-2::-1], pi[-1]], valid_actions)]


class OldNumPy(Line):
    def stringRepresentation(self, board):
        return board.tostring()

    def getValidMoves(self, board, player):
        empty = np.zeros(1, board.dtype).tostring()
        return np.array([stone.tostring() == empty for stone in board.T])


class Bitboards(Line):
    def make(self, stones):
        return tuple(sum(1 << 8 * at for at in range(self.size) if stones[at] == side) for side in (1, -1))

    def stones(self, board):
        return [(board[0] >> 8 * at & 1) - (board[1] >> 8 * at & 1) for at in range(self.size)]


class Histories(Line):
    """A list of moves grows beside the line."""

    def make(self, stones):
        return np.array([stones]), [stone for stone in stones if stone] or [0]

    def stones(self, board):
        return board[0][0].tolist()


class NoBoard(Line):
    def getNextState(self, board, player, action):
        board[0, action] = player


class NoTurn(Line):
    def getNextState(self, board, player, action):
        return super().getNextState(board, player, action)[0], None


class NoResult(Line):
    def getGameEnded(self, board, player):
        return super().getGameEnded(board, player) or None


class FewMoves(Line):
    def getValidMoves(self, board, player):
        return super().getValidMoves(board, player)[1:]


class NoActions(Line):
    def getActionSize(self):
        pass


class OverAtStart(Line):
    def getGameEnded(self, board, player):
        return 1


class Raises(Line):
    def getNextState(self, board, player, action):
        if np.count_nonzero(board) == 2:
            raise ValueError("the third stone is missing")
        return super().getNextState(board, player, action)


class NoArguments(Line):
    def getGameEnded(self, board):
        return 0
