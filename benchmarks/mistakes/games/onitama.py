"""Onitama in plain Python, with five fixed cards: a game whose moves are on cards that change their owner."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from plyzero import Board, Game, Outcome, Symmetry, grid, square_names

SIZE = 5
SQUARES = SIZE * SIZE
NAMES = square_names(SIZE, SIZE)
PATIENCE = 16  # plies without a capture that end the game

EMPTY, STUDENT, MASTER, OTHER_STUDENT, OTHER_MASTER = range(5)
SWAPPED = (EMPTY, OTHER_STUDENT, OTHER_MASTER, STUDENT, MASTER)
HOME = SIZE // 2  # where the master of the player to move began

CARDS = {  # (rows forward, columns to the right) of each step
    "tiger": [(2, 0), (-1, 0)],
    "dragon": [(1, -2), (1, 2), (-1, -1), (-1, 1)],
    "crab": [(1, 0), (0, -2), (0, 2)],
    "frog": [(0, -2), (1, -1), (-1, 1)],
    "rabbit": [(0, 2), (1, 1), (-1, -1)],
}
CARD_NAMES = list(CARDS)
MIRRORED_CARD = [0, 1, 2, 4, 3]
STEPS = [
    (card, row * SIZE + column, (row + forward) * SIZE + column + right)
    for card, steps in enumerate(CARDS.values())
    for row in range(SIZE)
    for column in range(SIZE)
    for forward, right in steps
    if 0 <= row + forward < SIZE and 0 <= column + right < SIZE
]


class Onitama(Game, version=1):
    """Move a piece as one of your two cards says, then exchange this card for the one in the middle.

    Capture the other master, or move your own to the square where the other began. Sixteen plies without a capture are
    a draw.
    """

    num_actions = len(STEPS)
    # own students, own master, the other's; own cards, the other's, the middle card; plies without a capture
    observation_shape = (4 + 3 * len(CARDS) + 1, SIZE, SIZE)
    max_plies = PATIENCE * 9  # no more than 8 students are captured

    def __init__(self) -> None:
        # Board and steps are seen by the player to move, whose pieces begin on row 0.
        first = [STUDENT, STUDENT, MASTER, STUDENT, STUDENT]
        self.board = first + [EMPTY] * (SQUARES - 2 * SIZE) + [SWAPPED[piece] for piece in first]
        self.own_cards = (0, 1)
        self.other_cards = (3, 4)
        self.middle_card = 2
        self.quiet_plies = 0
        self.to_play = 0

    # There is always a legal action: no two of these cards leave a player without a step.
    def legal_actions(self) -> list[int]:
        if self.outcome() is not None:
            return []
        board, cards = self.board, self.own_cards
        return [
            action
            for action, (card, start, end) in enumerate(STEPS)
            if card in cards and board[start] in (STUDENT, MASTER) and board[end] not in (STUDENT, MASTER)
        ]

    def play(self, action: int) -> Self:
        card, start, end = STEPS[action]
        kept = self.own_cards[1] if card == self.own_cards[0] else self.own_cards[0]
        board = self.board.copy()
        board[start] = EMPTY
        board[end] = self.board[start]
        after = copy.copy(self)
        after.board = [SWAPPED[piece] for piece in reversed(board)]
        after.own_cards = self.other_cards
        after.other_cards = (min(kept, self.middle_card), max(kept, self.middle_card))
        after.middle_card = card
        after.quiet_plies = self.quiet_plies + 1 if self.board[end] == EMPTY else 0
        after.to_play = 1 - self.to_play
        return after

    def outcome(self) -> Outcome | None:
        if MASTER not in self.board or self.board[HOME] == OTHER_MASTER:
            return Outcome(winner=1 - self.to_play)  # only the player who has just moved can have won
        return Outcome(None) if self.quiet_plies == PATIENCE else None

    def observe(self) -> NDArray[np.float32]:
        planes = np.zeros((self.observation_shape[0], SQUARES), np.float32)
        for square, piece in enumerate(self.board):
            if piece != EMPTY:
                planes[piece - 1, square] = 1
        for place, cards in enumerate((self.own_cards, self.other_cards, (self.middle_card,))):
            for card in cards:
                planes[4 + place * len(CARDS) + card] = 1
        planes[-1] = self.quiet_plies / PATIENCE
        return planes.reshape(self.observation_shape)

    def action_name(self, action: int) -> str:
        card, start, end = STEPS[action]
        if self.to_play == 1:
            start, end = SQUARES - 1 - start, SQUARES - 1 - end
        return f"{NAMES[start]}{NAMES[end]}:{CARD_NAMES[card]}"

    # Left and right are exchanged, and with them the frog and the rabbit.
    def symmetries(self) -> list[Symmetry]:
        cards = [4 + place * len(CARDS) + card for place in range(3) for card in MIRRORED_CARD]
        planes = np.arange(np.prod(self.observation_shape)).reshape(self.observation_shape)
        planes = planes[[0, 1, 2, 3, *cards, self.observation_shape[0] - 1], :, ::-1]
        squares = np.arange(SQUARES).reshape(SIZE, SIZE)[:, ::-1].ravel()
        actions = [STEPS.index((MIRRORED_CARD[card], squares[start], squares[end])) for card, start, end in STEPS]
        return [Symmetry(planes.ravel(), np.array(actions))]

    def render(self) -> Board:
        board = self.board if self.to_play == 0 else [SWAPPED[piece] for piece in reversed(self.board)]
        pieces = ("", "0:s", "0:m", "1:S", "1:M")
        return grid(np.reshape(board, (SIZE, SIZE)), pieces=pieces, rows_up=True, style="checks")

    def __str__(self) -> str:
        own, other = (" ".join(CARD_NAMES[card] for card in cards) for cards in (self.own_cards, self.other_cards))
        lower, upper = (own, other) if self.to_play == 0 else (other, own)
        return f"{self.render()}\nlower case: {lower}, middle: {CARD_NAMES[self.middle_card]}, capitals: {upper}"
