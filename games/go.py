"""Go with area scoring, without suicide, and with positional superko: no board may occur twice."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from plyzero.rules.board import Board, grid, square_names
from plyzero.rules.compiled_game import CompiledGame, Record, kernel
from plyzero.rules.game import DRAW, ONGOING
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors

MAX_SIZE = 19
FILES = "abcdefghjklmnopqrst"  # no i, as is usual in go

# The board has a border, so that every point has four neighbours. Stones are 1 and 2.
EMPTY, BORDER = 0, 3
FORBIDDEN = 4

# A board's hash is the xor of these numbers over its stones: KEYS[player, point] (Zobrist, 1970).
KEYS = np.random.default_rng(1).integers(1 << 63, size=(2, (MAX_SIZE + 2) ** 2), dtype=np.uint64)


class Go(CompiledGame, version=1):
    """Surround more than the opponent; two passes end the game. On 9x9, or 2 to 19: `go(size=13, komi=6.5)`.

    Player 1 gets `komi` points; whole numbers make draws possible. A game is scored after 2 * size * size plies at the
    latest. Points are area and komi.
    """

    rules_text = """In turn, each player places a stone on a crossing, or passes. Stones whose chain has no empty
    crossing beside it are captured. A move that repeats an earlier board, or captures only one's own stones, is
    illegal. After two passes each player counts stones and the empty areas that only they enclose; White adds the
    komi. More wins. Capture dead stones before you pass: all stones on the board count as alive."""
    sgf_game = 1
    waived_laws: ClassVar[Mapping[str, str]] = {
        "observations_show_the_limit": "the network does not see how many of the 2 * size * size plies are left, "
        "since games of trained players end by passes long before"
    }

    observation_dtype = bool
    final_planes = 1
    policy_planes = 1

    def __init__(self, size: int = 9, komi: float = 7.5) -> None:
        if size not in range(2, MAX_SIZE + 1):
            raise ValueError(f"expected a size from 2 to {MAX_SIZE}, got {size!r}")
        if 2 * komi not in range(-2 * MAX_SIZE**2, 2 * MAX_SIZE**2 + 1):
            raise ValueError(f"expected a komi in steps of 0.5 from -{MAX_SIZE**2} to {MAX_SIZE**2}, got {komi!r}")
        self.max_plies = 2 * size * size
        self.max_score = size * size + abs(komi)
        area = (size + 2) ** 2
        self.State = np.dtype(
            [
                ("hashes", "u8", (self.max_plies + 1,)),  # the hashes of all boards so far
                ("board", "i1", (area,)),
                # Bits 1 and 2: that player has lost a stone here. FORBIDDEN: the player to move may not play here. In a
                # finished game: whose stones this point is, or reaches over empty points.
                ("marks", "i1", (area,)),
                ("chain", "i2", (area,)),  # the point that stands for the chain of connected stones; 0 without a stone
                ("next", "i2", (area,)),  # the next stone of the chain, in a circle
                (
                    "liberties",
                    "i2",
                    (area,),
                ),  # by chain[point]: pairs of a stone and an empty point beside it
                ("plies", "i2"),
                ("size", "i1"),
                ("half_komi", "i2"),
                ("passes", "i1"),
                ("half_score", "i2"),  # lead of the winner of a finished game, in half points
                ("result", "i1"),
                ("to_play", "i1"),
            ]
        )
        self.num_actions = size * size + 1
        self.action_names = (*square_names(size, size, files=FILES), "pass")
        self.observation_shape = (5, size, size)
        super().__init__()
        self.record["size"] = size
        self.record["half_komi"] = 2 * komi
        self.record["board"] = BORDER
        self.inner(self.record["board"])[:] = EMPTY

    def start(s: Record) -> None:
        s["result"] = ONGOING

    def legal(s: Record, mask: Record) -> None:
        size = int(s["size"])
        for row in range(size):
            for column in range(size):
                point = point_of(s, row, column)
                mask[row * size + column] = s["board"][point] == EMPTY and not s["marks"][point] & FORBIDDEN
        mask[size * size] = True

    def play(s: Record, action: int) -> None:
        size = int(s["size"])
        s["plies"] += 1
        s["hashes"][s["plies"]] = s["hashes"][s["plies"] - 1]
        if action == size * size:
            s["passes"] += 1
        else:
            s["passes"] = 0
            put(s, point_of(s, action // size, action % size))
        s["to_play"] = 1 - s["to_play"]
        if s["passes"] == 2 or s["plies"] == 2 * size * size:
            lead = 2 * area_lead(s) - s["half_komi"]
            if lead == 0:
                s["result"] = DRAW
            else:
                s["result"] = 0 if lead > 0 else 1
            s["half_score"] = abs(lead)
        else:
            mark_forbidden(s)

    def outcome(s: Record) -> int:
        return s["result"]

    def score(s: Record) -> float:
        return s["half_score"] / 2

    def observe(s: Record, planes: Record) -> None:
        size = int(s["size"])
        for row in range(size):
            for column in range(size):
                point = point_of(s, row, column)
                if s["board"][point]:
                    planes[(s["board"][point] - 1) ^ s["to_play"], row, column] = 1
                elif s["marks"][point] & FORBIDDEN:
                    planes[2, row, column] = 1
        planes[3] = s["to_play"]  # the komi is mine
        planes[4] = s["passes"]  # a pass ends the game

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the rotations and reflections of the board."""
        return turns_and_mirrors(self.observation_shape, non_board_actions=1)

    def final_board(self) -> Record:
        """Return whose area each point is."""
        area = self.inner(self.record["marks"])
        lead = (area == 1).astype(np.float32) - (area == 2)
        return (lead if self.to_play == 0 else -lead)[np.newaxis]

    def scoreboard(self) -> tuple[str, str]:
        """Return the number of stones that each player has captured, and the komi."""
        hashes = self.record["hashes"][: int(self.record["plies"]) + 1]
        has_placed = hashes[1:] != hashes[:-1]  # and not passed
        board = self.record["board"]
        lost = [int(has_placed[player::2].sum() - (board == player + 1).sum()) for player in (0, 1)]
        return f"{max(0, lost[1])} captured", f"{max(0, lost[0])} captured, komi {self.record['half_komi'] / 2:g}"

    def why_illegal(self, action: int) -> str:
        size = int(self.record["size"])
        if action == size * size or self.inner(self.record["board"])[divmod(action, size)] != EMPTY:
            return ""
        return "A stone there would be without a liberty, or repeat an earlier board."

    def inner(self, points: Record) -> Record:
        """Return a view of a field of all points, `[size, size]`, without the border."""
        width = int(self.record["size"]) + 2
        return points.reshape(width, width)[1:-1, 1:-1]

    def render(self) -> Board:
        return grid(self.inner(self.record["board"]), rows_up=True, files=FILES, style="points")


@kernel
def point_of(s: Record, row: int, column: int) -> int:
    """Return the number of a point, which counts the border as well."""
    return (row + 1) * (int(s["size"]) + 2) + column + 1


@kernel
def around(s: Record, point: int) -> tuple[int, int, int, int]:
    """Return the four neighbours of a point."""
    width = int(s["size"]) + 2
    return point - width, point - 1, point + 1, point + width


@kernel
def put(s: Record, point: int) -> None:
    """Put a stone of the player to move on `point` and remove the chains that it captures."""
    board, chain, following, liberties = s["board"], s["chain"], s["next"], s["liberties"]
    own = s["to_play"] + 1
    s["hashes"][s["plies"]] ^= KEYS[s["to_play"], point]
    board[point] = own
    chain[point] = point
    following[point] = point
    liberties[point] = 0
    for near in around(s, point):
        liberties[point] += board[near] == EMPTY
        liberties[chain[near]] -= 1  # points without a stone have chain 0, whose liberties nobody reads
    for near in around(s, point):
        if board[near] == own and chain[near] != point:  # join its chain
            liberties[point] += liberties[chain[near]]
            stone = near
            while chain[stone] != point:
                chain[stone] = point
                stone = following[stone]
            following[point], following[near] = following[near], following[point]
    for near in around(s, point):
        if board[near] == 3 - own and liberties[chain[near]] == 0:
            capture(s, near)


@kernel
def capture(s: Record, point: int) -> None:
    """Remove the chain of the stone on `point`."""
    board, chain, following = s["board"], s["chain"], s["next"]
    player = board[point] - 1
    while board[point]:
        s["hashes"][s["plies"]] ^= KEYS[player, point]
        board[point] = EMPTY
        chain[point] = 0
        s["marks"][point] |= player + 1
        for near in around(s, point):
            s["liberties"][chain[near]] += 1
        point = following[point]


@kernel
def mark_forbidden(s: Record) -> None:
    """Mark the empty points on which the player to move may not put a stone."""
    marks = s["marks"]
    for point in range(len(marks)):
        if s["board"][point] == EMPTY:
            marks[point] &= ~FORBIDDEN
            # To repeat a board, a stone has to return to a point where the same player has lost one.
            if is_suicide(s, point) or (marks[point] & (s["to_play"] + 1) and repeats(s, point)):
                marks[point] |= FORBIDDEN


@kernel
def is_suicide(s: Record, point: int) -> bool:
    """Return whether a stone of the player to move would have no liberty on an empty point."""
    for near in around(s, point):
        stone = s["board"][near]
        if stone == EMPTY or (stone != BORDER and (stone == s["to_play"] + 1) != fills(s, point, near)):
            return False
    return True


@kernel
def fills(s: Record, point: int, stone: int) -> bool:
    """Return whether an empty point is the last liberty of the chain of a stone beside it."""
    pairs = 0
    for near in around(s, point):
        pairs += s["chain"][near] == s["chain"][stone]
    return pairs == s["liberties"][s["chain"][stone]]


@kernel
def repeats(s: Record, point: int) -> bool:
    """Return whether a stone of the player to move on an empty point makes a board that has been there before."""
    chain, beside = s["chain"], around(s, point)
    after = s["hashes"][s["plies"]] ^ KEYS[s["to_play"], point]
    for i in range(4):
        first = True
        for j in range(i):
            first &= chain[beside[j]] != chain[beside[i]]
        if first and s["board"][beside[i]] == 2 - s["to_play"] and fills(s, point, beside[i]):
            stone = beside[i]
            while True:
                after ^= KEYS[1 - s["to_play"], stone]
                stone = s["next"][stone]
                if stone == beside[i]:
                    break
    found = False
    for ply in range(s["plies"]):  # no early exit, so that the processor compares several at once
        found |= s["hashes"][ply] == after
    return found


@kernel
def area_lead(s: Record) -> int:
    """Return the area of player 0 less that of player 1: stones, and empty points that reach one colour only."""
    board, marks = s["board"], s["marks"]
    for point in range(len(board)):
        marks[point] = board[point] if board[point] != BORDER else 0
    changed = True
    while changed:
        changed = False
        for point in range(len(board)):
            if board[point] == EMPTY:
                before = marks[point]
                for near in around(s, point):
                    marks[point] |= marks[near]
                changed |= marks[point] != before
    lead = 0
    for mark in marks:
        if mark == 1:
            lead += 1
        elif mark == 2:
            lead -= 1
    return lead
