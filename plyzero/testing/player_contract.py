"""Tests of a player: its moves are legal, in order, and the same for the same random numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.play.agents import Agent, AgentPlayer
from plyzero.play.player import Player, as_player
from plyzero.rules.catalog import load_game
from plyzero.rules.chance import chances_of
from plyzero.rules.game import Game
from plyzero.testing.decisions import decisions_of, final_position


class PlayerContract:
    """The tests of a player or an agent, at positions of random games.

    ```python
    class TestCautious(PlayerContract):
        game = "connect-four"

        def player(self, rng):
            return Cautious()
    ```

    game:  the name or the class of the game that it plays.
    count: number of positions.
    """

    game: str | type[Game]
    count: int = 24

    def player(self, rng: np.random.Generator) -> Player | Agent:
        """Return a new player, whose random numbers come from `rng`. An agent gets them as its `rng`."""
        raise NotImplementedError

    def made(self, seed: int = 0) -> Player:
        """Return a new player with random numbers from this seed; an agent is made a player."""
        rng = np.random.default_rng(seed)
        found = self.player(rng)
        if not isinstance(found, Agent):
            return as_player(found)
        found.rng = rng
        return AgentPlayer(type(found).__name__, found)

    def positions(self) -> list[Game]:
        """Return the positions at which it chooses a move."""
        return decisions_of(load_game(self.game).start, self.count)

    def test_it_has_a_name(self) -> None:
        """Results are shown by the names of players."""
        name = self.made().name
        assert isinstance(name, str)
        assert name.strip()

    def test_it_answers_many_positions_in_order_each_with_a_legal_move(self) -> None:
        """Positions with few legal moves come first: there the move for another position is hardly ever legal."""
        positions = sorted(self.positions(), key=lambda position: len(position.legal_actions()))
        chosen = self.made().choose_all(positions)
        assert len(chosen) == len(positions)
        for position, action in zip(positions, chosen, strict=True):
            assert isinstance(action, int | np.integer)
            assert action in position.legal_actions(), str(position)

    def test_it_plays_a_game_move_by_move(self) -> None:
        """It gets one position at a time, and keeps nothing that is wrong for the next one."""
        player = self.made()
        for position in self.positions():
            (action,) = player.choose_all([position])
            assert action in position.legal_actions(), str(position)

    def test_it_changes_no_position(self) -> None:
        """Others, such as its opponent, have the same position."""
        positions = self.positions()
        before = [_content(position) for position in positions]
        self.made().choose_all(positions)
        assert [_content(position) for position in positions] == before

    def test_equal_random_numbers_make_equal_choices(self) -> None:
        """A match can be played again from its seed."""
        positions = self.positions()
        first, second = (self.made(seed=7) for _ in range(2))
        for _ in range(2):
            assert list(first.choose_all(positions)) == list(second.choose_all(positions))

    def test_it_chooses_nothing_for_no_position(self) -> None:
        """An empty list is no error."""
        assert list(self.made().choose_all([])) == []

    def test_it_refuses_a_finished_position(self) -> None:
        """There is no legal move, so any answer would be wrong."""
        over = final_position(load_game(self.game).start)
        assert over.outcome() is not None
        with pytest.raises((UserError, ValueError)):
            self.made().choose_all([over])


class LookaheadContract(PlayerContract):
    """The tests of a player that looks at least one move ahead: those of every player, and a win in one move."""

    def test_it_wins_where_one_move_wins(self) -> None:
        """It may choose any move that wins at once."""
        positions = [position for position in self.positions() if _winning(position)]
        assert positions, "none of the positions can be won in one move; test more positions, or another game"
        chosen = self.made().choose_all(positions)
        for position, action in zip(positions, chosen, strict=True):
            assert action in _winning(position), str(position)


def _content(position: Game) -> tuple[Hashable, bytes, Sequence[int]]:
    return position.key(), np.asarray(position.observe()).tobytes(), [int(each) for each in position.legal_actions()]


def _winning(position: Game) -> list[int]:
    """Return the actions after which the player to move has won."""
    found = []
    for action in map(int, position.legal_actions()):
        after = position.play_unchecked(action)
        outcome = after.outcome() if not len(chances_of(after)) else None
        if outcome is not None and outcome.value(position.to_play) > 0:
            found.append(action)
    return found
