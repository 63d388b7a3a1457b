"""Further small games, of different kinds and all of them correct: what a checker of games must let pass.

The player who makes the last move wins in Nim and Clobber, loses in Chomp; Kalah and Shuffle have draws too.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np

from plyzero.rules.board import render_grid, square_names
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import ONGOING, Game, Outcome
from plyzero.rules.symmetry import Symmetry, turns_and_mirrors

HEAPS = (3, 4, 5)
MOST = max(HEAPS)


class Nim(CompiledGame):
    """Take any number from one heap; who takes the last one wins. The initial position has none of the symmetries."""

    State = np.dtype([("heaps", "i1", (len(HEAPS),)), ("to_play", "i1")])
    num_actions = len(HEAPS) * MOST  # action = heap * MOST + number taken - 1
    action_names = tuple(f"{heap}-{number}" for heap in "abc" for number in range(1, MOST + 1))
    observation_shape = (len(HEAPS), 1, 1)
    max_plies = sum(HEAPS)

    def start(s):
        s["heaps"] = HEAPS

    def legal(s, mask):
        for heap in range(len(HEAPS)):
            mask[heap * MOST : heap * MOST + s["heaps"][heap]] = True

    def play(s, action):
        s["heaps"][action // MOST] -= action % MOST + 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return ONGOING if s["heaps"].any() else 1 - s["to_play"]

    def observe(s, planes):
        planes[:, 0, 0] = s["heaps"]

    def symmetries(self):
        actions = np.arange(self.num_actions).reshape(len(HEAPS), MOST)
        orders = [np.array(order) for order in itertools.permutations(range(len(HEAPS)))]
        return [Symmetry(order, actions[np.argsort(order)].ravel()) for order in orders[1:]]

    def __str__(self):
        return " ".join(f"{heap}:{number}" for heap, number in zip("abc", self.record["heaps"], strict=True))


PITS, SEEDS = 4, 3
OWN_STORE, OTHER_STORE = PITS, 2 * PITS + 1


class Kalah(Game):
    """Sow the seeds of an own pit. The last one in the own store: move again; in an empty own pit: capture."""

    num_actions = PITS
    observation_shape = (2 * PITS + 2, 1, 1)
    # Count for every seed in a pit how many pits lie ahead of it on its side. A ply that puts no seed into the store
    # lowers the sum by at least 1. One that does may sow, after each seed in the store, one into every pit: that
    # raises the sum by PITS * (PITS - 1) at most. It starts at SEEDS times as much, and a store keeps what it gets.
    max_plies = 2 * PITS * SEEDS + (SEEDS + 2 * PITS * SEEDS) * PITS * (PITS - 1)
    to_play = 0

    def __init__(self):
        side = (SEEDS,) * PITS + (0,)
        self.cups = side + side  # pits and store of the player to move, then those of the other

    def legal_actions(self):
        return [pit for pit in range(PITS) if self.cups[pit]]

    def play(self, action):
        after = copy.copy(self)
        cups = list(self.cups)
        seeds = cups[action]
        cups[action] = 0
        last = action
        for _ in range(seeds):
            last = (last + 1) % OTHER_STORE  # OTHER_STORE, the last cup, is passed over
            cups[last] += 1
        opposite = 2 * PITS - last
        if last < PITS and cups[last] == 1 and cups[opposite]:
            cups[OWN_STORE] += 1 + cups[opposite]
            cups[last] = cups[opposite] = 0
        own, other = cups[:PITS], cups[PITS + 1 : OTHER_STORE]
        if not any(own) or not any(other):
            own_store = cups[OWN_STORE] + sum(own)
            other_store = cups[OTHER_STORE] + sum(other)
            empty = [0] * PITS
            cups = [*empty, own_store, *empty, other_store]
        if last != OWN_STORE:
            cups = cups[PITS + 1 :] + cups[: PITS + 1]
            after.to_play = 1 - self.to_play
        after.cups = tuple(cups)
        return after

    def outcome(self):
        if self.legal_actions():
            return None
        lead = self.cups[OWN_STORE] - self.cups[OTHER_STORE]
        if lead == 0:
            return Outcome(None)
        return Outcome(self.to_play if lead > 0 else 1 - self.to_play)

    def observe(self):
        return np.reshape(np.array(self.cups, np.float32), self.observation_shape)

    def __str__(self):
        return f"player {self.to_play}: {self.cups[: PITS + 1]}, the other one: {self.cups[PITS + 1 :]}"


ROWS, COLUMNS = 3, 4


class Chomp(CompiledGame):
    """Eat a square and all that lie below and right of it; a1 is poisoned, so who makes the last move loses."""

    State = np.dtype([("eaten", "i1", (ROWS, COLUMNS)), ("to_play", "i1")])
    num_actions = ROWS * COLUMNS
    action_names = square_names(ROWS, COLUMNS)
    observation_shape = (1, ROWS, COLUMNS)
    observation_dtype = bool
    max_plies = ROWS * COLUMNS

    def legal(s, mask):
        for square in range(ROWS * COLUMNS):
            mask[square] = not s["eaten"][square // COLUMNS, square % COLUMNS]

    def play(s, action):
        s["eaten"][action // COLUMNS :, action % COLUMNS :] = 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        return s["to_play"] if s["eaten"][0, 0] else ONGOING

    def observe(s, planes):
        planes[0] = s["eaten"]

    def __str__(self):
        return render_grid(self.record["eaten"], glyphs="o.")


STRIP = 5
STRIDES = (-1, 1, 2)


class Shuffle(Game):
    """Two men face each other on a strip; who cannot move has lost; a position that comes a third time is a draw."""

    num_actions = len(STRIDES)
    # Planes at [own man, other man], counted from their homes: the position; earlier positions with the player to move;
    # earlier positions with the other.
    observation_shape = (3, STRIP, STRIP)
    # For each player to move, the men have STRIP * (STRIP - 1) / 2 positions. Each may come twice.
    max_plies = 2 * STRIP * (STRIP - 1)
    to_play = 0

    def __init__(self):
        self.men = (0, 0)  # steps from home, of the man of the player to move and of the other man
        self.past = ()  # earlier (player to move, men)

    def legal_actions(self):
        own, other = self.men
        return [] if self.is_third() else [a for a, s in enumerate(STRIDES) if 0 <= own + s < STRIP - 1 - other]

    def is_third(self):
        return self.past.count((self.to_play, self.men)) == 2

    def play(self, action):
        after = copy.copy(self)
        own, other = self.men
        after.past = (*self.past, (self.to_play, self.men))
        after.men = (other, own + STRIDES[action])
        after.to_play = 1 - self.to_play
        return after

    def outcome(self):
        if self.legal_actions():
            return None
        return Outcome(None if self.is_third() else 1 - self.to_play)

    def observe(self):
        planes = np.zeros(self.observation_shape, np.float32)
        planes[0][self.men] = 1
        for player, men in self.past:
            planes[1 if player == self.to_play else 2][men] += 1
        return planes

    def key(self):
        return self.to_play, self.men, tuple(sorted(self.past))  # the order of earlier positions does not matter

    def action_name(self, action):
        return f"{STRIDES[action]:+d}"

    def __str__(self):
        first, second = self.men if self.to_play == 0 else self.men[::-1]
        squares = ["."] * STRIP
        squares[first] = "x"
        squares[STRIP - 1 - second] = "o"
        return "".join(squares)


SIDE = 4
SQUARES = SIDE * SIDE
STEPS = [
    (at, to)
    for at, to in itertools.product(range(SQUARES), repeat=2)
    if abs(at // SIDE - to // SIDE) + abs(at % SIDE - to % SIDE) == 1
]


class Clobber(Game):
    """Move a stone onto a neighbour of the other colour, which is gone; who cannot has lost.

    Only half of the symmetries keep the initial position, a chequerboard.
    """

    num_actions = len(STEPS)
    observation_shape = (2, SIDE, SIDE)
    observation_dtype = bool
    max_plies = SQUARES - 1  # each takes a stone off the board and leaves one on it
    to_play = 0

    def __init__(self):
        self.board = tuple(1 + (square // SIDE + square % SIDE) % 2 for square in range(SQUARES))

    def legal_actions(self):
        own = self.to_play + 1
        return [a for a, (at, to) in enumerate(STEPS) if self.board[at] == own and self.board[to] == 3 - own]

    def play(self, action):
        after, board = copy.copy(self), list(self.board)
        at, to = STEPS[action]
        board[at], board[to] = 0, board[at]
        after.board, after.to_play = tuple(board), 1 - self.to_play
        return after

    def outcome(self):
        return None if self.legal_actions() else Outcome(1 - self.to_play)

    def observe(self):
        board = np.reshape(self.board, (SIDE, SIDE))
        return np.array([board == self.to_play + 1, board == 2 - self.to_play])

    def action_name(self, action):
        at, to = STEPS[action]
        return f"{square_names(SIDE, SIDE)[at]}-{square_names(SIDE, SIDE)[to]}"

    def symmetries(self):
        squares = turns_and_mirrors(self.observation_shape)
        return [
            Symmetry(planes, np.array([STEPS.index((moved[at], moved[to])) for at, to in STEPS]))
            for planes, moved in squares
        ]

    def __str__(self):
        return render_grid(np.reshape(self.board, (SIDE, SIDE)))


class OneOrTwo(Game):
    """Place one or two stones a turn, on six by six squares; who has more of the last row when all are full wins."""

    num_actions, stop = 37, 36
    observation_shape, observation_dtype = (3, 6, 6), bool
    max_plies = 72
    to_play, placed = 0, 0

    def __init__(self):
        self.board = (0,) * 36

    def legal_actions(self):
        if self.outcome():
            return []
        legal = [a for a in range(36) if not self.board[a]]
        if self.placed == 1:
            legal.append(self.stop)
        return legal

    def play(self, action):
        after = copy.copy(self)
        if action != self.stop:
            after.board = tuple(self.to_play + 1 if a == action else piece for a, piece in enumerate(self.board))
        after.placed = self.placed + 1 if action != self.stop and self.placed == 0 else 0
        after.to_play = self.to_play if after.placed else 1 - self.to_play
        return after

    def outcome(self):
        if 0 in self.board:
            return None
        return Outcome(int(self.board[-6:].count(2) > 3))

    def observe(self):
        board = np.reshape(self.board, (6, 6))
        return np.array([board == self.to_play + 1, board == 2 - self.to_play, np.full((6, 6), self.placed)])

    def key(self):
        return self.board, self.to_play, self.placed
