"""Hex: connect two sides of a rhombus of hexagons."""

import numpy as np

from plyzero.rules.board import Board, hexes, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import ONGOING
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors

# A cell is 0, or a stone: 1 or 2 for its player, plus FIRST and LAST if it is connected to that player's two sides.
PLAYER, FIRST, LAST = 3, 4, 8
NEIGHBOURS = ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0))


class Hex(CompiledGame, version=1):
    """Black connects top and bottom, White left and right; the second player may swap. `hex(size=7, swap=False)`.

    The network always connects top and bottom: for player 1, rows and columns are exchanged in the observation and in
    the numbers of the actions.
    """

    rules_text = """In turn, each player places a stone. Black connects the top and the bottom edge, White the left
    and the right one; there is no draw. Instead of a first move of their own, the second player may swap: take over
    the first stone, mirrored."""
    sgf_game = 11

    observation_dtype = bool
    policy_planes = 1

    def __init__(self, size: int = 11, swap: bool = True) -> None:
        if size not in range(3, 20):
            raise ValueError(f"expected a size from 3 to 19, got {size!r}")
        if swap not in (False, True):
            raise ValueError(f"expected True or False for swap, got {swap!r}")
        self.State = np.dtype(
            [("board", "i1", (size, size)), ("plies", "i2"), ("swap", "i1"), ("result", "i1"), ("to_play", "i1")]
        )
        self.num_actions = self.max_plies = size * size + swap
        names = square_names(size, size)
        mirrored = [names[column * size + row] for row in range(size) for column in range(size)]
        self.names = [[*names, "swap"], [*mirrored, "swap"]]  # one list for each player
        self.observation_shape = (2 + swap, size, size)  # own stones, the opponent's, may I swap?
        super().__init__()
        self.record["swap"] = swap

    def start(s: Record) -> None:
        s["result"] = ONGOING

    def legal(s: Record, mask: Record) -> None:
        size = len(s["board"])
        for row in range(size):
            for column in range(size):
                mask[row * size + column] = s["board"][place(s, row, column)] == 0
        if may_swap(s):
            mask[size * size] = True

    def play(s: Record, action: int) -> None:
        board, player = s["board"], s["to_play"] + 1
        size = len(board)
        if action == size * size:
            swap_stones(board)
        else:
            stone = player
            if action // size == 0:
                stone |= FIRST
            if action // size == size - 1:
                stone |= LAST
            row, column = place(s, action // size, action % size)
            for down, right in NEIGHBOURS:
                r, c = row + down, column + right
                if 0 <= r < size and 0 <= c < size and board[r, c] & PLAYER == player:
                    stone |= board[r, c]
            fill(board, row, column, stone)
            if stone == player | FIRST | LAST:
                s["result"] = s["to_play"]
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        return s["result"]

    def observe(s: Record, planes: Record) -> None:
        size = len(s["board"])
        for row in range(size):
            for column in range(size):
                stone = s["board"][place(s, row, column)] & PLAYER
                if stone:
                    planes[(stone - 1) ^ s["to_play"], row, column] = 1
        if may_swap(s):
            planes[2] = 1

    def action_name(self, action: int) -> str:
        return self.names[self.to_play][action]

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the half turn of the board."""
        swap = self.num_actions - self.record["board"].size
        return turns_and_mirrors(self.observation_shape, non_board_actions=swap)[1:2]

    def render(self) -> Board:
        return hexes(self.record["board"] & PLAYER, edges=True)


@kernel
def place(s: Record, row: int, column: int) -> tuple[int, int]:
    """Return row and column on the board of a cell, given those that the player to move sees."""
    return (row, column) if s["to_play"] == 0 else (column, row)


@kernel
def may_swap(s: Record) -> bool:
    """Return whether the player to move may take over the first stone."""
    return s["swap"] and s["plies"] == 1


@kernel
def swap_stones(board: Record) -> None:
    """Replace the only stone, of player 0, by one of player 1 in the mirrored place."""
    cell = 0
    while not board[cell // len(board), cell % len(board)]:
        cell += 1
    row, column = cell // len(board), cell % len(board)
    stone = board[row, column]
    board[row, column] = 0
    board[column, row] = stone + 1


@kernel
def fill(board: Record, row: int, column: int, stone: int) -> None:
    """Write `stone` to the cell and to all stones of its player that are connected to it."""
    size = len(board)
    to_visit = np.empty(size * size, np.int64)
    to_visit[0] = row * size + column
    waiting = 1
    board[row, column] = stone
    while waiting:
        waiting -= 1
        cell = to_visit[waiting]
        for down, right in NEIGHBOURS:
            r, c = cell // size + down, cell % size + right
            inside = 0 <= r < size and 0 <= c < size
            if inside and board[r, c] != stone and board[r, c] & PLAYER == stone & PLAYER:
                board[r, c] = stone
                to_visit[waiting] = r * size + c
                waiting += 1
