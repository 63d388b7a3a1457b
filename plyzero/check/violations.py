"""The search for broken laws: Hypothesis plays random games and shrinks one that breaks a law to few moves."""

from __future__ import annotations

import functools
import itertools
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numba
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from plyzero.check.laws import COMPILED_AS_WRITTEN, POSITION_LAWS, GameTrace, Law, LawBrokenError
from plyzero.check.new_project import TEMPLATE
from plyzero.check.sample_laws import NEAR_POSITIONS, SAMPLE_LAWS, sample
from plyzero.errors import UserError
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

GAMES_PER_INTERPRETED_GAME: Final = 4
"""COMPILED_AS_WRITTEN runs the rules as plain Python, which is slow, so it is tried on one of this many games."""

RULES_ANSWER: Final = Law(
    "rules_answer", "Every method of the game runs without an error at every position.", lambda _: None
)
"""The law that is reported as broken if a rule raises an exception before any law is checked."""

MakeGame = Callable[[], Game]
"""The type of a function that returns a new initial position."""


@dataclass(frozen=True)
class Violation:
    """A law that does not hold, with moves that show it.

    law:      the broken law.
    what:     what was expected and what was found.
    moves:    the names of the actions from the initial position on; the fewest found that show it.
    position: the position after these moves, as text.
    """

    law: Law
    what: str
    moves: tuple[str, ...]
    position: str

    def __str__(self) -> str:
        moves = " ".join(self.moves) or "none, the initial position"
        return f"broken law {self.law.name}: {self.law.text}\n{self.what}\nmoves: {moves}\n{self.position}"


def find_violation(
    make: MakeGame,
    *,
    games: int,
    skip: Sequence[str] = (),
    extra_laws: Sequence[Law] = (),
    on_progress: Callable[[], None] = lambda: None,
) -> Violation | None:
    """Return a violation of the first law that random games break, None if all laws hold.

    make:        returns a new initial position.
    games:       number of random games for each law; every call plays the same games.
    skip:        names of laws that are not checked.
    extra_laws:  laws of GameTraces to check besides those of every game.
    on_progress: called before every game.
    """
    compiled = [law for law in laws_of(make()) if law is COMPILED_AS_WRITTEN]
    for find, laws, count in (
        (find_position_violation, compiled, max(1, games // GAMES_PER_INTERPRETED_GAME)),
        (find_position_violation, [*POSITION_LAWS, *extra_laws], games),
        (find_sample_violation, SAMPLE_LAWS, games),
    ):
        wanted = [law for law in laws if law.name not in skip]
        if wanted and (broken := find(make, wanted, games=count, on_progress=on_progress)):
            return broken
    return None


def laws_of(start: Game) -> list[Law]:
    """Return the laws that apply to a game; COMPILED_AS_WRITTEN applies to compiled games only."""
    return [*([COMPILED_AS_WRITTEN] if isinstance(start, CompiledGame) else []), *POSITION_LAWS, *SAMPLE_LAWS]


def find_position_violation(
    make: MakeGame, laws: Sequence[Law], *, games: int, on_progress: Callable[[], None] = lambda: None
) -> Violation | None:
    """Return the shortest violation found of any of `laws`, which are laws of GameTraces; None if all hold."""
    make = functools.partial(_start_to_check, make, plain=COMPILED_AS_WRITTEN in laws)
    shortest: Violation | None = None

    @settings(
        max_examples=games,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.data())
    def play_a_game(data: st.DataObject) -> None:
        nonlocal shortest
        on_progress()
        found = play_until_violation(make, laws, lambda legal: data.draw(st.sampled_from(legal)))
        if found:
            shortest = min(shortest or found, found, key=lambda each: len(each.moves))
            raise _BrokenError

    with suppress(_BrokenError, Flaky):  # Flaky: the game itself is not deterministic
        play_a_game()
    return shortest and shorten(make, laws, shortest)


def shorten(make: MakeGame, laws: Sequence[Law], found: Violation) -> Violation:
    """Return a violation with fewer moves than `found` if there is one near the start, else `found`.

    Hypothesis shrinks by leaving moves out. It gets stuck where that passes the remaining moves to the wrong player, so
    this function tries the sequences of moves in breadth-first order.
    """
    sequences: list[tuple[int, ...]] = [()]
    for moves in itertools.islice(sequences, NEAR_POSITIONS):
        if len(moves) >= len(found.moves):
            break
        trace, broken, legal = GameTrace(make), None, list[int]()
        for action in (None, *moves):
            broken, legal = play_and_check(trace, laws, action)
        if broken:
            return broken
        sequences += [(*moves, action) for action in legal]
    return found


def play_until_violation(make: MakeGame, laws: Sequence[Law], choose: Callable[[list[int]], int]) -> Violation | None:
    """Play one game whose moves `choose` selects from the legal actions; return its first violation, None if none."""
    trace, action = GameTrace(make), None
    while True:
        broken, legal = play_and_check(trace, laws, action)
        if broken or not legal:
            return broken
        action = choose(legal)


def play_and_check(trace: GameTrace, laws: Sequence[Law], action: int | None) -> tuple[Violation | None, list[int]]:
    """Play `action`, None for the initial position, and check `laws`.

    Return the violation, None if the laws hold, and the legal actions to go on with: none if the game is over, has
    reached max_plies or has broken a law.
    """
    law = RULES_ANSWER
    try:
        position = trace.make() if action is None else trace.position.play_unchecked(action)
        trace.moves += [] if action is None else [action]
        trace.add(position)
        for law in laws:
            law.check(trace)
        over = position.outcome() is not None or len(trace.moves) >= position.max_plies
        return None, [] if over else [int(each) for each in position.legal_actions()]
    except UserError:  # rules that cannot be compiled
        raise
    except Exception as error:
        return violation_of(law, error, trace.positions, trace.moves), []


def find_sample_violation(
    make: MakeGame, laws: Sequence[Law], *, games: int, on_progress: Callable[[], None] = lambda: None
) -> Violation | None:
    """Return a violation of the first of `laws`, which are laws of Samples, that is broken; None if all hold."""
    on_progress()
    found = sample(make(), games=games)
    for law in laws:
        try:
            law.check(found)
        except LawBrokenError as error:
            positions = list(
                itertools.accumulate(error.moves, lambda position, a: position.play_unchecked(a), initial=make())
            )
            return violation_of(law, error, positions, error.moves)
    return None


def violation_of(law: Law, error: Exception, positions: Sequence[Game], moves: Sequence[int]) -> Violation:
    """Return the violation of `law` that `error` reports after `moves`, which led through `positions`."""
    what = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if not isinstance(error, LawBrokenError):
        frames = traceback.extract_tb(error.__traceback__)
        at = next((each for each in reversed(frames) if not _is_toolkit(each.filename)), frames[-1])
        what = f"{type(error).__name__} in {at.name}() ({Path(at.filename).name}, line {at.lineno}): {what}"
    names = tuple(_name(position, move) for position, move in zip(positions, moves, strict=False))
    return Violation(law, what, names, _text(positions[-1]) if positions else "")


class GameLaws:
    """A base class for tests with pytest, one test per law: `class TestMyGame(GameLaws): game = MyGame`.

    game:  the class of the game; with parameters, `functools.partial(MyGame, size=6)`.
    games: number of random games for each law.
    skip:  names of laws that do not hold by the rules of the game.
    """

    game: ClassVar[type[Game] | functools.partial[Game]]
    games: ClassVar[int] = 50
    skip: ClassVar[tuple[str, ...]] = ()


def _test_of(law: Law, find: Callable[..., Violation | None]) -> Callable[[GameLaws], None]:
    def test(self: GameLaws) -> None:
        if law.name not in self.skip and (law is not COMPILED_AS_WRITTEN or isinstance(self.game(), CompiledGame)):
            broken = find(self.game, [law], games=self.games)
            assert broken is None, str(broken)

    test.__doc__ = law.text
    return test


for _law in (COMPILED_AS_WRITTEN, *POSITION_LAWS):
    setattr(GameLaws, f"test_{_law.name}", _test_of(_law, find_position_violation))
for _law in SAMPLE_LAWS:
    setattr(GameLaws, f"test_{_law.name}", _test_of(_law, find_sample_violation))


class _BrokenError(Exception):
    pass


def _start_to_check(make: MakeGame, *, plain: bool) -> Game:
    """Return a new initial position; if compiled, as plain Python or with checked bounds, so that bad indices raise."""
    start = make()
    if not isinstance(start, CompiledGame):
        return start
    return start.as_plain_python() if plain else start.with_bounds_checked()


TOOLKIT: Final = Path(__file__).parents[1]
NUMBA: Final = Path(numba.__file__).parent


def _is_toolkit(filename: str) -> bool:
    """Return whether a file is part of plyzero, without the template, or of Numba: not where a user's mistake is."""
    path = Path(filename)
    return path.is_relative_to(NUMBA) or (path.is_relative_to(TOOLKIT) and not path.is_relative_to(TEMPLATE))


def _name(position: Game, action: int) -> str:
    try:
        return position.action_name(action)
    except Exception:  # action_name itself may be what is broken
        return str(action)


def _text(position: Game) -> str:
    try:
        return str(position)
    except Exception as error:
        return f"(str() of the position raises {type(error).__name__}: {error})"
