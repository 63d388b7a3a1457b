"""Games for benchmarks/guard.py: further right ones, and wrong ones, each with one mistake that an author may make.

A wrong game differs from a right one in the rule that its class overrides.
"""

import numpy as np

from examples.breakthrough import OTHER, OWN, Breakthrough, turned
from games.connect_four import ConnectFour, four_through
from games.othello import Othello
from games.tic_tac_toe import WINNING_LINES, TicTacToe
from plyzero.rules.compiled_game import CompiledGame, kernel
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, mirror_columns, turns_and_mirrors
from tests.helpers.zoo import Kalah


@kernel
def three_in_a_row(board):
    """Return the stone of a line that is full, 1 or 2; 0 if there is none."""
    for i in range(8):
        stone = board[WINNING_LINES[i, 0]]
        if stone and stone == board[WINNING_LINES[i, 1]] and stone == board[WINNING_LINES[i, 2]]:
            return stone
    return 0


# --- right games ---


class Misere(TicTacToe):
    """Three in a row lose. With best play it is a draw."""

    def outcome(s):
        stone = three_in_a_row(s["board"])
        if stone:
            return 2 - stone
        return DRAW if s["plies"] == 9 else ONGOING


SIDE = 5
PLIES = 120


class Chase(CompiledGame):
    """Two cats and a mouse walk on a 5x5 board, 120 plies long; the cats win if one of them catches the mouse.

    The roles of the players differ, and games are long. Player 0 moves both cats, one after the other.
    """

    State = np.dtype([("places", "i1", (3,)), ("plies", "i2"), ("to_play", "i1"), ("turn", "i1")])
    num_actions = 4
    observation_shape = (4, SIDE, SIDE)  # mouse, cat to move or moved first, other cat, what is left and whose turn
    max_plies = PLIES

    def start(s):
        s["places"][0], s["places"][1], s["places"][2] = SIDE * SIDE // 2, 0, SIDE * SIDE - 1

    def legal(s, mask):
        # s["turn"]: 0 and 1 = the cats, 2 = the mouse; s["places"]: mouse, cats
        place = s["places"][(s["turn"] + 1) % 3]
        other = s["places"][2 - s["turn"]] if s["turn"] < 2 else -1
        row, column = place // SIDE, place % SIDE
        for action in range(4):
            r, c = row + (action == 0) - (action == 1), column + (action == 2) - (action == 3)
            mask[action] = 0 <= r < SIDE and 0 <= c < SIDE and r * SIDE + c != other

    def play(s, action):
        at = (s["turn"] + 1) % 3
        s["places"][at] += SIDE * ((action == 0) - (action == 1)) + (action == 2) - (action == 3)
        s["turn"] = (s["turn"] + 1) % 3
        s["to_play"] = 1 if s["turn"] == 2 else 0
        s["plies"] += 1

    def outcome(s):
        if s["places"][0] == s["places"][1] or s["places"][0] == s["places"][2]:
            return 0
        return 1 if s["plies"] == PLIES else ONGOING

    def observe(s, planes):
        for i in range(3):
            planes[i, s["places"][i] // SIDE, s["places"][i] % SIDE] = 1
        planes[3, 0, :] = s["plies"] / PLIES
        planes[3, 1 + s["turn"], :] = 1


# --- wrong games: the observation ---


class Constant(ConnectFour):
    """Every position looks alike."""

    def observe(s, planes):
        planes[0, 0, 0] = 1


class Noise(ConnectFour):
    """The observation is random, and a new one at every call."""

    def observe(s, planes):
        for row in range(planes.shape[1]):
            for column in range(planes.shape[2]):
                planes[np.random.randint(2), row, column] = 1


class FirstPlayersKalah(Kalah):
    """The cups are shown from the side of player 0, whoever is to move."""

    def observe(self):
        half = len(self.cups) // 2
        cups = self.cups if self.to_play == 0 else self.cups[half:] + self.cups[:half]
        return np.reshape(np.array(cups, np.float32), self.observation_shape)


class NotTurned(Breakthrough):
    """The board is shown from the side of player 0, while the actions are turned."""

    def observe(self):
        board = self.board if self.to_play == 0 else turned(self.board)
        return np.array([board == OWN, board == OTHER])


class Late(ConnectFour):
    """The observation is that of the position before the last move."""

    def __init__(self, rows: int = 6, columns: int = 7):
        super().__init__(rows, columns)
        self.State = np.dtype([*((name, self.State[name]) for name in self.State.names), ("last", "i1", (2,))])
        CompiledGame.__init__(self)

    def play(s, action):
        row = 0
        while s["board"][row, action]:
            row += 1
        s["board"][row, action] = s["to_play"] + 1
        s["last"][0], s["last"][1] = row, action
        s["plies"] += 1
        if four_through(s["board"], row, action):
            s["result"] = s["to_play"]
        elif s["plies"] == s["board"].size:
            s["result"] = DRAW
        s["to_play"] = 1 - s["to_play"]

    def observe(s, planes):
        rows, columns = s["board"].shape
        for row in range(rows):
            for column in range(columns):
                is_last = s["plies"] > 0 and s["last"][0] == row and s["last"][1] == column
                if s["board"][row, column] and not is_last:
                    planes[(s["board"][row, column] - 1) ^ s["to_play"], row, column] = 1


class OwnPiecesOnly(Othello):
    """The plane of the opponent's discs is forgotten."""

    def observe(s, planes):
        own = s["discs"][s["to_play"]]
        for row in range(s["size"]):
            for column in range(s["size"]):
                planes[0, row, column] = own >> np.uint64(8 * row + column) & np.uint64(1)


class HiddenCounter(TicTacToe):
    """Who makes three in a row wins, but loses at every third ply; the observation does not show the ply."""

    State = np.dtype([("board", "i1", (9,)), ("plies", "i1"), ("lost", "i1"), ("to_play", "i1")])

    def legal(s, mask):
        for square in range(9):
            mask[square] = s["board"][square] == 0
        mask[9] = True

    num_actions = 10  # 9 = pass
    action_names = ()
    max_plies = 30

    def play(s, action):
        if action < 9:
            s["board"][action] = s["to_play"] + 1
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        stone = three_in_a_row(s["board"])
        if stone:
            return 2 - stone if s["plies"] % 3 == 0 else stone - 1
        return DRAW if s["plies"] == 30 or s["board"].all() else ONGOING

    def symmetries(self):
        return turns_and_mirrors(self.observation_shape, non_board_actions=1)


# --- wrong games: the rules ---


class TurnNeverPasses(ConnectFour):
    """The same player is always to move."""

    def play(s, action):
        row = 0
        while s["board"][row, action]:
            row += 1
        s["board"][row, action] = s["to_play"] + 1 + s["plies"] % 2
        s["plies"] += 1
        if four_through(s["board"], row, action):
            s["result"] = s["plies"] % 2
        elif s["plies"] == s["board"].size:
            s["result"] = DRAW


class RandomLegal(ConnectFour):
    """Each column that is open is left out now and then."""

    def legal(s, mask):
        rows, columns = s["board"].shape
        found = False
        for column in range(columns):
            if s["board"][rows - 1, column] == 0:
                mask[column] = np.random.randint(4) > 0
                found = found or mask[column]
        for column in range(columns):
            if not found and s["board"][rows - 1, column] == 0:
                mask[column] = True


class LegalOfBefore(TicTacToe):
    """The legal moves are those of the position before the last move, so that a stone may be replaced."""

    State = np.dtype([("board", "i1", (9,)), ("plies", "i1"), ("last", "i1"), ("to_play", "i1")])
    max_plies = 30

    def legal(s, mask):
        for square in range(9):
            mask[square] = s["board"][square] == 0 or (s["plies"] > 0 and square == s["last"])

    def play(s, action):
        s["board"][action] = s["to_play"] + 1
        s["last"] = action
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        stone = three_in_a_row(s["board"])
        if stone:
            return stone - 1
        return DRAW if s["board"].all() else ONGOING


class RandomWinner(TicTacToe):
    """Chance decides who has won."""

    State = np.dtype([("board", "i1", (9,)), ("plies", "i1"), ("result", "i1"), ("to_play", "i1")])

    def start(s):
        s["result"] = ONGOING

    def play(s, action):
        s["board"][action] = s["to_play"] + 1
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]
        if three_in_a_row(s["board"]):
            s["result"] = np.random.randint(2)
        elif s["plies"] == 9:
            s["result"] = DRAW

    def outcome(s):
        return s["result"]


class OneWinner(ConnectFour):
    """Four in a row win for player 0, whoever has made them: the outcome is +1 in place of the player's number."""

    def outcome(s):
        return 0 if s["result"] == 0 or s["result"] == 1 else s["result"]


class NobodyWins(ConnectFour):
    """A line of four is never found."""

    def outcome(s):
        return DRAW if s["plies"] == s["board"].size else ONGOING

    def play(s, action):
        row = 0
        while s["board"][row, action]:
            row += 1
        s["board"][row, action] = s["to_play"] + 1
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]


class Endless(TicTacToe):
    """Squares stay legal when they are taken, and a move there changes nothing."""

    max_plies = 30

    def legal(s, mask):
        mask[:] = True

    def play(s, action):
        if s["board"][action] == 0 and s["plies"] < 4:
            s["board"][action] = s["to_play"] + 1
            s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]


# --- wrong games: the symmetries ---


class MirrorWithoutMoves(ConnectFour):
    """The reflection moves the discs, but not the columns in which they are dropped."""

    def symmetries(self):
        return (mirror_columns(self.observation_shape, range(self.num_actions)),)


class InverseTurns(TicTacToe):
    """The rotations turn the actions the other way round than the board."""

    def symmetries(self):
        return tuple(
            Symmetry(planes, np.argsort(actions)) for planes, actions in turns_and_mirrors(self.observation_shape)
        )


class NotSymmetric(Kalah):
    """The pits in reverse order are declared to be an image, but the direction of sowing is not symmetric."""

    def symmetries(self):
        cups, pits = np.arange(len(self.cups)), self.num_actions
        store = pits + 1
        planes = [*reversed(cups[:pits]), pits, *reversed(cups[store : store + pits]), store + pits]
        return [Symmetry(np.array(planes), np.arange(pits)[::-1])]
