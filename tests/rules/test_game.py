"""Copies of positions are what `copy.copy` makes of any object."""

import copy
from dataclasses import dataclass

import pytest

from tests.helpers.toys import Relay


class WithDictionary(Relay):
    def __init__(self):
        super().__init__()
        self.board = [1, 2]


class WithSlots(WithDictionary):
    __slots__ = ("board",)


class BelowSlots(WithSlots):
    pass


@dataclass(frozen=True, slots=True)
class Frozen(Relay):
    board: tuple[int, ...] = (1, 2)
    movers, max_plies, ply = "0", 1, 0


class WithItsOwn(WithDictionary):
    def __copy__(self):
        after = WithItsOwn()
        after.board, after.mark = self.board, "its own"
        return after


class WithoutItsCache(WithDictionary):
    cache = None

    def __getstate__(self):
        return self.__dict__ | {"cache": None}


@pytest.mark.parametrize("game", [WithDictionary, WithSlots, BelowSlots, Frozen, WithItsOwn, WithoutItsCache])
def test_a_copy_has_the_attributes_of_its_original(game: type[Relay]):
    original = game()
    if game is WithoutItsCache:
        original.cache = "to be left behind"
    copied = copy.copy(original)
    assert (type(copied), copied is original) == (game, False)
    assert (copied.board, copied.ply, copied.max_plies) == (original.board, original.ply, original.max_plies)
    assert copied.board is original.board
    assert (getattr(copied, "cache", None), hasattr(copied, "mark")) == (None, game is WithItsOwn)
