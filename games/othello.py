"""Othello, also called Reversi, on a board of 8x8 or 6x6."""

import numpy as np

from plyzero.compiled import DRAW, ONGOING, CompiledGame, Record, kernel
from plyzero.drawing import draw_grid, square_names
from plyzero.symmetry import Symmetry, turns_and_mirrors


class Othello(CompiledGame, version=1):
    """Enclose and turn discs; most discs win. `othello(size=6)` is the small board; a player who cannot move passes."""

    observation_dtype = bool

    def __init__(self, size: int = 8) -> None:
        if size not in (6, 8):
            raise ValueError(f"expected size 6 or 8, got {size!r}")
        self.State = np.dtype([("board", "i1", (size, size)), ("empty", "i1"), ("passes", "i1"), ("to_play", "i1")])
        self.num_actions = size * size + 1
        self.action_names = (*square_names(size, size), "pass")
        self.observation_shape = (2, size, size)
        self.max_plies = 2 * (size * size - 4) + 1  # at worst a pass before every disc, then the second pass in a row
        super().__init__()

    def start(s: Record) -> None:
        board = s["board"]
        low, high = board.shape[0] // 2 - 1, board.shape[0] // 2
        board[low, low] = board[high, high] = 2
        board[low, high] = board[high, low] = 1
        s["empty"] = board.size - 4

    def legal(s: Record, mask: Record) -> None:
        board, own = s["board"], s["to_play"] + 1
        size = board.shape[0]
        must_pass = True
        for square in range(size * size):
            if board[square // size, square % size] == 0 and encloses(board, square // size, square % size, own):
                mask[square] = True
                must_pass = False
        mask[size * size] = must_pass

    def play(s: Record, action: int) -> None:
        board, own = s["board"], s["to_play"] + 1
        size = board.shape[0]
        if action == size * size:
            s["passes"] += 1
        else:
            turn_enclosed(board, action // size, action % size, own)
            board[action // size, action % size] = own
            s["empty"] -= 1
            s["passes"] = 0
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        if s["empty"] and s["passes"] < 2:
            return ONGOING
        board = s["board"]
        lead = 0
        for row in range(board.shape[0]):
            for column in range(board.shape[1]):
                if board[row, column]:
                    lead += 3 - 2 * board[row, column]
        if lead == 0:
            return DRAW
        return 0 if lead > 0 else 1

    def observe(s: Record, planes: Record) -> None:
        board = s["board"]
        for row in range(board.shape[0]):
            for column in range(board.shape[1]):
                if board[row, column]:
                    planes[(board[row, column] - 1) ^ s["to_play"], row, column] = 1

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the turns and mirrors of the board."""
        return turns_and_mirrors(self.observation_shape, other_actions=1)

    def __str__(self) -> str:
        return draw_grid(self.record["board"])


@kernel
def enclosed(board: Record, row: int, column: int, down: int, right: int, own: int) -> int:
    """Count the opponent's discs from (row, column) in one direction up to the first disc of `own`; 0 without one."""
    size = board.shape[0]
    count = 0
    r, c = row + down, column + right
    while 0 <= r < size and 0 <= c < size and board[r, c] == 3 - own:
        count += 1
        r, c = r + down, c + right
    return count if 0 <= r < size and 0 <= c < size and board[r, c] == own else 0


@kernel
def encloses(board: Record, row: int, column: int, own: int) -> bool:
    """Tell whether a disc of `own` on (row, column) encloses any of the opponent's."""
    for down in range(-1, 2):
        for right in range(-1, 2):
            if (down or right) and enclosed(board, row, column, down, right, own):
                return True
    return False


@kernel
def turn_enclosed(board: Record, row: int, column: int, own: int) -> None:
    """Turn every disc that a new disc of `own` on (row, column) encloses."""
    for down in range(-1, 2):
        for right in range(-1, 2):
            if down or right:
                for step in range(enclosed(board, row, column, down, right, own)):
                    board[row + (step + 1) * down, column + (step + 1) * right] = own
