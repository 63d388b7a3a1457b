"""The games against OpenSpiel's: the same players to move, legal moves and results."""

import re
import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest

from games.backgammon import Backgammon
from games.breakthrough import Breakthrough
from games.go import Go
from games.gomoku import Gomoku
from games.hex import Hex
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

pyspiel = pytest.importorskip("pyspiel")

MANY = 1_000
"""Positions of each game that the slow tests compare."""

REPEATING = 3_000
"""Positions of go among which some on a small board let a move repeat a board."""


class Compared(NamedTuple):
    """A position here and there. The names are ours, of the actions that are legal there."""

    ours: Game
    theirs: Any
    names: dict[str, int]


def compared(start: CompiledGame, text: str, name_of: Callable[[str], str], *, positions: int) -> Iterator[Compared]:
    """Yield the positions of random games after comparing players to move and results.

    name_of: returns our name of an action, given its name there.
    """
    rng, game, seen = np.random.default_rng(1), pyspiel.load_game(text), 0
    while seen < positions:
        ours, theirs = start, game.new_initial_state()
        while not theirs.is_terminal():
            assert ours.outcome() is None
            assert ours.to_play == theirs.current_player()
            names = {name_of(theirs.action_to_string(action)): action for action in theirs.legal_actions()}
            yield Compared(ours, theirs, names)
            seen += 1
            action = int(rng.choice(ours.legal_actions()))
            theirs.apply_action(names[ours.action_name(action)])
            ours = ours.play_unchecked(action)
        first, second = theirs.returns()
        assert first == -second
        assert ours.outcome().value(0) == first
    assert seen >= positions


def compare(start: CompiledGame, text: str, name_of: Callable[[str], str], *, positions: int) -> None:
    for ours, _, names in compared(start, text, name_of, positions=positions):
        assert sorted(ours.legal_names().split()) == sorted(names), str(ours)


def gomoku_name(theirs: str) -> str:
    row, column = map(int, theirs.split(","))
    return f"{string.ascii_lowercase[column]}{row + 1}"


def breakthrough_name(size: int) -> Callable[[str], str]:
    """Return our names: there, the player who moves first has the upper rows, and a star follows a capture."""

    def name(theirs: str) -> str:
        from_file, from_row, to_file, to_row = re.fullmatch(r"([a-h])(\d)([a-h])(\d)\*?", theirs).groups()
        return f"{from_file}{size + 1 - int(from_row)}-{to_file}{size + 1 - int(to_row)}"

    return name


def hex_games(size: int, swap: bool) -> tuple[CompiledGame, str, Callable[[str], str]]:
    return Hex(size=size, swap=swap), f"hex(board_size={size},swap={swap})", str


def gomoku_games(size: int) -> tuple[CompiledGame, str, Callable[[str], str]]:
    """Return freestyle gomoku, which is OpenSpiel's: there is nothing to compare exactly five with."""
    return Gomoku(size=size), f"gomoku(size={size})", gomoku_name


def breakthrough_games(size: int) -> tuple[CompiledGame, str, Callable[[str], str]]:
    """Return breakthrough; on boards of 4x4 and 5x5 each player has only one row of pawns there."""
    return Breakthrough(size=size), f"breakthrough(rows={size},columns={size})", breakthrough_name(size)


FEW = [(*gomoku_games(7), 1000), (*breakthrough_games(6), 1000)]
MANY_GAMES = [
    *(hex_games(*each) for each in ((3, True), (8, True), (11, False))),
    *map(gomoku_games, (5, 15)),
    *map(breakthrough_games, (6, 8)),
]


@pytest.mark.parametrize("swap", [True, False])
def test_hex_agrees_with_openspiel(swap):
    start, text, name_of = hex_games(5, swap)
    compare(start.as_plain_python(), text, name_of, positions=300)  # nothing to compile


@pytest.mark.parametrize(
    "games", [*FEW, *(pytest.param((*games, MANY), marks=pytest.mark.slow) for games in MANY_GAMES)], ids=lambda g: g[1]
)
def test_a_game_agrees_with_openspiel(games):
    compare(*games[:3], positions=games[3])


# --- go: OpenSpiel allows to repeat a board, and the game is then over ---


def compare_go(size: int, komi: float, *, positions: int) -> int:
    """Compare as `compare` does; return how many moves were forbidden because they repeat a board."""
    text, repeating = f"go(board_size={size},komi={komi})", 0
    for ours, theirs, names in compared(
        Go(size=size, komi=komi), text, lambda theirs: theirs.split()[1].lower(), positions=positions
    ):
        legal = ours.legal_names().split()
        assert set(legal) <= names.keys(), str(ours)
        for name in names.keys() - set(legal):
            after = theirs.child(names[name])
            assert after.is_terminal(), f"{name} in\n{ours}"
            assert after.returns() == [0, 0]
            repeating += 1
        if theirs.move_number() < ours.max_plies - 1:  # the last ply ends every game
            for name in set(legal) - {"pass"}:
                assert not theirs.child(names[name]).is_terminal(), f"{name} in\n{ours}"
    return repeating


@pytest.mark.parametrize(
    ("size", "komi", "positions"),
    [
        (5, 0.5, 1000),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in ((3, 0.5, REPEATING), (5, 1.0, REPEATING), (9, 7.5, 500), (19, 7.0, 400))
        ),
    ],
)
def test_go_agrees_with_openspiel_but_forbids_to_repeat_a_board(size, komi, positions):
    repeating = compare_go(size, komi, positions=positions)
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
            our_ends = ends_of_turn(
                ours,
                lambda each: [each.play_unchecked(action) for action in each.legal_actions()],
                lambda each: each.key(),
            )
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
