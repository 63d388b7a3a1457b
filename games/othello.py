"""Othello (Reversi) on an 8x8 or 6x6 board, with sets of squares as bitboards."""

import numpy as np

from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors

# A bitboard is a set of squares in 64 bits: square (row, column) is bit 8 * row + column, for either board size.
EMPTY_SET, ONE = np.uint64(0), np.uint64(1)
STEPS = (1, 7, 8, 9, -1, -7, -8, -9)  # shifts by one square in the eight directions
INNER = np.uint64(0x7E7E7E7E7E7E7E7E)  # without the outer columns: discs there can only be enclosed vertically
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Othello(CompiledGame, version=1):
    """Enclosed discs are flipped; most discs win, and points are discs. On 8x8, or on 6x6: `othello(size=6)`."""

    rules_text = """A new disc must enclose discs of the opponent in a straight line between itself and another disc
    of one's own; all discs enclosed so are turned over. Who cannot move passes. When nobody can, more discs win."""
    sgf_game = 2

    State = np.dtype([("discs", "u8", (2,)), ("squares", "u8"), ("size", "i1"), ("passes", "i1"), ("to_play", "i1")])
    observation_dtype = bool
    final_planes = 1

    def __init__(self, size: int = 8) -> None:
        if size not in (6, 8):
            raise ValueError(f"expected size 6 or 8, got {size!r}")
        self.num_actions = size * size + 1
        self.action_names = (*square_names(size, size), "pass")
        self.observation_shape = (2, size, size)
        self.max_plies = 2 * (size * size - 4) + 1  # a pass before every disc, and one more pass
        self.max_score = size * size
        super().__init__()
        low, high = size // 2 - 1, size // 2
        self.record["size"] = size
        self.record["squares"] = sum(1 << (8 * row + column) for row in range(size) for column in range(size))
        self.record["discs"][0] = (1 << (8 * low + high)) | (1 << (8 * high + low))
        self.record["discs"][1] = (1 << (8 * low + low)) | (1 << (8 * high + high))

    def legal(s: Record, mask: Record) -> None:
        own, other = s["discs"][s["to_play"]], s["discs"][1 - s["to_play"]]
        size = int(s["size"])
        moves = moves_of(own, other, s["squares"])
        for row in range(size):
            for column in range(size):
                mask[row * size + column] = moves & bit(row, column) != 0
        mask[size * size] = moves == 0

    def play(s: Record, action: int) -> None:
        own, other = s["discs"][s["to_play"]], s["discs"][1 - s["to_play"]]
        size = int(s["size"])
        if action == size * size:
            s["passes"] += 1
        else:
            disc = bit(action // size, action % size)
            flipped = flipped_by(disc, own, other)
            s["discs"][s["to_play"]] = own | disc | flipped
            s["discs"][1 - s["to_play"]] = other & ~flipped
            s["passes"] = 0
        s["to_play"] = 1 - s["to_play"]

    def outcome(s: Record) -> int:
        if s["passes"] < 2 and (s["discs"][0] | s["discs"][1]) != s["squares"]:
            return ONGOING
        lead = popcount(s["discs"][0]) - popcount(s["discs"][1])
        if lead == 0:
            return DRAW
        return 0 if lead > 0 else 1

    def score(s: Record) -> float:
        return abs(popcount(s["discs"][0]) - popcount(s["discs"][1]))

    def observe(s: Record, planes: Record) -> None:
        own, other = s["discs"][s["to_play"]], s["discs"][1 - s["to_play"]]
        for row in range(s["size"]):
            for column in range(s["size"]):
                planes[0, row, column] = own & bit(row, column) != 0
                planes[1, row, column] = other & bit(row, column) != 0

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the rotations and reflections of the board."""
        return turns_and_mirrors(self.observation_shape, non_board_actions=1)

    def final_board(self) -> Record:
        """Return whose disc is on each square."""
        own, other = CompiledGame.observe(self)
        return (own - other)[np.newaxis]

    def scoreboard(self) -> tuple[str, str]:
        """Return the number of discs of each player."""
        own, other = CompiledGame.observe(self).sum(axis=(1, 2), dtype=int)
        first, second = (own, other) if self.to_play == 0 else (other, own)
        return f"{first} discs", f"{second} discs"

    def why_illegal(self, action: int) -> str:
        discs = CompiledGame.observe(self).any(axis=0).ravel()
        if action == len(discs) or discs[action]:
            return ""
        return f"A disc on {self.action_name(action)} would turn none over."

    def render(self) -> Board:
        own, other = CompiledGame.observe(self).astype(np.int8)
        first, second = (own, other) if self.to_play == 0 else (other, own)
        return grid(first + 2 * second)


@kernel
def moves_of(own: np.uint64, other: np.uint64, squares: np.uint64) -> np.uint64:
    """Return the set of those `squares` on which the player of the discs `own` can place a disc."""
    ends = EMPTY_SET
    for step in STEPS:
        ends |= shifted(run(own, other, step), step)
    return ends & squares & ~(own | other)


@kernel
def flipped_by(disc: np.uint64, own: np.uint64, other: np.uint64) -> np.uint64:
    """Return the discs of `other` that a new disc of the player of `own` encloses."""
    flipped = EMPTY_SET
    for step in STEPS:
        enclosed = run(disc, other, step)
        if shifted(enclosed, step) & own:
            flipped |= enclosed
    return flipped


@kernel
def bit(row: int, column: int) -> np.uint64:
    """Return the bitboard of one square."""
    return ONE << np.uint64(8 * row + column)


@kernel
def shifted(squares: np.uint64, step: int) -> np.uint64:
    """Return `squares` moved by one square in the direction of `step`."""
    return squares << np.uint64(step) if step > 0 else squares >> np.uint64(-step)


@kernel
def run(squares: np.uint64, other: np.uint64, step: int) -> np.uint64:
    """Return the discs of `other` in unbroken runs that begin next to `squares` in the direction of `step`."""
    inside = other & (ALL if step in (8, -8) else INNER)
    found = shifted(squares, step) & inside
    for _ in range(5):  # no more than 6 discs can be enclosed
        found |= shifted(found, step) & inside
    return found


@kernel
def popcount(squares: np.uint64) -> int:
    """Return the number of squares in the set."""
    count = 0
    while squares:
        squares &= squares - ONE
        count += 1
    return count
