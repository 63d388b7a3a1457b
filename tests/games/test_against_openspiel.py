"""The games against OpenSpiel's: the same players to move, legal moves and results."""

import re
import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest

from plyzero.games.backgammon import Backgammon
from plyzero.games.breakthrough import Breakthrough
from plyzero.games.go import Go
from plyzero.games.gomoku import Gomoku
from plyzero.games.hex import Hex
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

pyspiel = pytest.importorskip("pyspiel")

MANY = 1_000
"""Positions of each game that the slow tests compare."""

REPEATING = 3_000
"""Positions of go among which some on a small board let a move repeat a board."""


class Pair(NamedTuple):
    """A game here and there.

    name_of: returns our name of an action, given its name there.
    """

    start: CompiledGame
    text: str
    name_of: Callable[[str], str] = str


def compared(pair: Pair, *, positions: int) -> Iterator[tuple[Game, Any, dict[str, int]]]:
    """Yield the positions of random games here and there, and the actions that are legal there by our names.

    Players to move and results are compared.
    """
    rng, game, seen = np.random.default_rng(1), pyspiel.load_game(pair.text), 0
    while seen < positions:
        ours, theirs = pair.start, game.new_initial_state()
        while not theirs.is_terminal():
            assert ours.outcome() is None
            assert ours.to_play == theirs.current_player()
            names = {pair.name_of(theirs.action_to_string(action)): action for action in theirs.legal_actions()}
            yield ours, theirs, names
            seen += 1
            action = int(rng.choice(ours.legal_actions()))
            theirs.apply_action(names[ours.action_name(action)])
            ours = ours.play_unchecked(action)
        first, second = theirs.returns()
        assert first == -second
        assert ours.outcome().value(0) == first


def compare(pair: Pair, *, positions: int) -> None:
    for ours, _, names in compared(pair, positions=positions):
        assert sorted(ours.legal_names().split()) == sorted(names), str(ours)


def gomoku_name(theirs: str) -> str:
    row, column = map(int, theirs.split(","))
    return f"{string.ascii_lowercase[column]}{row + 1}"


def hex_games(size: int, swap: bool) -> Pair:
    return Pair(Hex(size=size, swap=swap), f"hex(board_size={size},swap={swap})")


def gomoku_games(size: int) -> Pair:
    """Return freestyle gomoku, which is OpenSpiel's: there is nothing to compare exactly five with."""
    return Pair(Gomoku(size=size), f"gomoku(size={size})", gomoku_name)


def breakthrough_games(size: int) -> Pair:
    """Return breakthrough; on boards of 4x4 and 5x5 each player has only one row of pawns there.

    The player who moves first has the upper rows there, and a star follows a capture.
    """

    def name(theirs: str) -> str:
        from_file, from_row, to_file, to_row = re.fullmatch(r"([a-h])(\d)([a-h])(\d)\*?", theirs).groups()
        return f"{from_file}{size + 1 - int(from_row)}-{to_file}{size + 1 - int(to_row)}"

    return Pair(Breakthrough(size=size), f"breakthrough(rows={size},columns={size})", name)


FEW = [gomoku_games(7), breakthrough_games(6)]
MANY_GAMES = [hex_games(3, True), hex_games(8, True), hex_games(11, False), *map(gomoku_games, (5, 15))]
SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in (*MANY_GAMES, *map(breakthrough_games, (6, 8)))]


@pytest.mark.parametrize("swap", [True, False])
def test_hex_agrees_with_openspiel(swap):
    pair = hex_games(5, swap)
    compare(pair._replace(start=pair.start.as_plain_python()), positions=300)  # nothing to compile


@pytest.mark.parametrize("pair", [*FEW, *SLOW], ids=lambda pair: pair.text)
def test_a_game_agrees_with_openspiel(pair):
    compare(pair, positions=1000)


# --- go: OpenSpiel allows to repeat a board, and the game is then over ---


SLOW_GO = [(3, 0.5, REPEATING), (5, 1.0, REPEATING), (9, 7.5, 500), (19, 7.0, 400)]


@pytest.mark.parametrize(
    ("size", "komi", "positions"), [(5, 0.5, 1000), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW_GO)]
)
def test_go_agrees_with_openspiel_but_forbids_to_repeat_a_board(size, komi, positions):
    pair = Pair(Go(size=size, komi=komi), f"go(board_size={size},komi={komi})", lambda name: name.split()[1].lower())
    repeating = 0
    for ours, theirs, names in compared(pair, positions=positions):
        legal = {*ours.legal_names().split()}
        assert legal <= names.keys(), str(ours)
        for name in names.keys() - legal:
            after = theirs.child(names[name])
            assert after.is_terminal(), f"{name} in\n{ours}"
            assert after.returns() == [0, 0]
            repeating += 1
        if theirs.move_number() < ours.max_plies - 1:  # the last ply ends every game
            for name in legal - {"pass"}:
                assert not theirs.child(names[name]).is_terminal(), f"{name} in\n{ours}"
    assert repeating or positions < REPEATING  # random games on larger boards rarely come to such positions


# --- backgammon: there, an action plays two dice, a double is two turns, and the first roll also says who begins, which
# is our player 0. Here, an action plays one die. So the positions at the ends of a turn are compared. ---

Places = tuple[tuple[int, ...], tuple[int, ...]]
"""Number of checkers of each player, first our player 0, on each place of games/backgammon.py."""

Either = TypeVar("Either")


def our_places(position: Game) -> Places:
    return tuple(tuple(each.tolist()) for each in position.record["checkers"])


def their_places(state: Any, first: int) -> Places:
    """Return the places of a state there, where the player `first` is our player 0."""
    both = []
    for player in (first, 1 - first):
        points = [state.board(player, point) for point in range(24)]
        if player == 0:
            points.reverse()  # x moves upwards there
        points.append(state.board(player, 100))  # the bar
        both.append((15 - sum(points), *points))
    return tuple(both)


def ends_of_turn(
    start: Either, after: Callable[[Either], list[Either]], key: Callable[[Either], object]
) -> dict[object, Either]:
    """Return the states that end the turn, by key, given what follows a state: nothing where the turn has ended."""
    ends, open_ = {}, {key(start): start}
    while open_:
        following = {}
        for name, state in open_.items():
            found = after(state)
            following.update((key(each), each) for each in found)
            if not found:
                ends[name] = state
        open_ = following
    return ends


def our_next(position: Game) -> list[Game]:
    return [position.play_unchecked(action) for action in position.legal_actions()]


def their_next(state: Any) -> list[Any]:
    if state.is_terminal() or state.is_chance_node():
        return []
    return [state.child(action) for action in state.legal_actions()]


def compare_backgammon(start: Game, *, positions: int) -> None:
    """Compare players to move, the positions that end the turn, and results, in random games of random turns."""
    rng, game, seen = np.random.default_rng(1), pyspiel.load_game("backgammon"), 0
    rolls = {start.roll_name(roll): roll for roll in range(start.num_chances)}
    while seen < positions:
        ours, theirs, first = start, game.new_initial_state(), None
        while not theirs.is_terminal():
            action = int(rng.choice([action for action, _ in theirs.chance_outcomes()]))  # all are equally likely
            low, high = sorted(re.search(r"roll: (\d)(\d)", theirs.action_to_string(action)).groups())
            theirs.apply_action(action)
            first = theirs.current_player() if first is None else first
            assert ours.outcome() is None
            assert ours.to_play == theirs.current_player() ^ first
            ours = ours.play(rolls[f"{high}-{low}"])
            our_ends = ends_of_turn(ours, our_next, lambda each: each.key())
            by_places = {our_places(each): each for each in our_ends.values()}
            their_ends = ends_of_turn(theirs, their_next, lambda state: their_places(state, first))  # noqa: B023
            assert by_places.keys() == their_ends.keys(), str(ours)
            seen += 1
            chosen = sorted(by_places)[rng.integers(len(by_places))]
            ours, theirs = by_places[chosen], their_ends[chosen]
        assert ours.outcome().value(0) == theirs.returns()[first] == -theirs.returns()[1 - first]


@pytest.mark.parametrize("positions", [60, pytest.param(MANY, marks=pytest.mark.slow)])
def test_backgammon_agrees_with_openspiel(positions):
    compare_backgammon(Backgammon().as_plain_python() if positions < MANY else Backgammon(), positions=positions)
