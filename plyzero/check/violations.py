"""Try to break the laws of a game: Hypothesis plays games, and shrinks the line of one that breaks a law."""

from __future__ import annotations

import functools
import itertools
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from plyzero.check.laws import COMPILED, LINE_LAWS, Law, LawBrokenError, Line
from plyzero.check.sample_laws import NEAR, SAMPLE_LAWS, sample
from plyzero.errors import UserError
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game

SLOW_SHARE: Final = 4
"""Rules in plain Python are slow: COMPILED is tried on one of so many games."""

ANSWERS: Final = Law("rules_answer", "The rules answer at every position.", lambda _: None)
"""What is broken where a game raises before any law is asked."""

MakeGame = Callable[[], Game]


@dataclass(frozen=True)
class Violation:
    """A broken law.

    law:      which.
    what:     what was expected and what came.
    moves:    the shortest line found that shows it, names of actions.
    position: the one at its end, as text.
    """

    law: Law
    what: str
    moves: tuple[str, ...]
    position: str

    def __str__(self) -> str:
        line = " ".join(self.moves) or "none, the initial position"
        return f"broken law {self.law.name}: {self.law.text}\n{self.what}\nmoves: {line}\n{self.position}"


def find_violation(
    make: MakeGame,
    *,
    games: int,
    skip: Sequence[str] = (),
    more: Sequence[Law] = (),
    doing: Callable[[], None] = lambda: None,
) -> Violation | None:
    """Try every law but those in `skip`, and `more`; return the first that is broken, or None.

    make:  makes the initial position, anew each time.
    games: random games to try each law on. The same ones each time.
    doing: called before every game.
    """
    compiled = [law for law in laws_of(make()) if law is COMPILED]
    for find, laws, count in (
        (break_laws, compiled, max(1, games // SLOW_SHARE)),
        (break_laws, [*LINE_LAWS, *more], games),
        (break_sample_laws, SAMPLE_LAWS, games),
    ):
        wanted = [law for law in laws if law.name not in skip]
        if wanted and (broken := find(make, wanted, games=count, doing=doing)):
            return broken
    return None


def laws_of(start: Game) -> list[Law]:
    """Return the laws that hold for a game: all, and one more if it is compiled."""
    return [*([COMPILED] if isinstance(start, CompiledGame) else []), *LINE_LAWS, *SAMPLE_LAWS]


def break_laws(
    make: MakeGame, laws: Sequence[Law], *, games: int, doing: Callable[[], None] = lambda: None
) -> Violation | None:
    """Return the shortest line found that breaks one of the laws of lines, or None."""
    make = functools.partial(_in_form, make, plain=COMPILED in laws)
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
        doing()
        found = play_until_broken(make, laws, lambda legal: data.draw(st.sampled_from(legal)))
        if found:
            shortest = min(shortest or found, found, key=lambda each: len(each.moves))
            raise _BrokenError

    with suppress(_BrokenError, Flaky):  # flaky is a game with a will of its own
        play_a_game()
    return shortest and shorten(make, laws, shortest)


def shorten(make: MakeGame, laws: Sequence[Law], found: Violation) -> Violation:
    """Return what the shortest of the lines next to the start breaks, or `found` if none does in fewer moves.

    Hypothesis leaves moves out; where that hands the other moves to the wrong player it is stuck.
    """
    lines: list[tuple[int, ...]] = [()]
    for moves in itertools.islice(lines, NEAR):
        if len(moves) >= len(found.moves):
            break
        line, broken, legal = Line(make), None, list[int]()
        for action in (None, *moves):
            broken, legal = go_on(line, laws, action)
        if broken:
            return broken
        lines += [(*moves, action) for action in legal]
    return found


def play_until_broken(make: MakeGame, laws: Sequence[Law], choose: Callable[[list[int]], int]) -> Violation | None:
    """Play one game, its moves by `choose`, until a law breaks or the game ends; return what broke."""
    line, action = Line(make), None
    while True:
        broken, legal = go_on(line, laws, action)
        if broken or not legal:
            return broken
        action = choose(legal)


def go_on(line: Line, laws: Sequence[Law], action: int | None) -> tuple[Violation | None, list[int]]:
    """Play `action`, None for the start, and ask the laws; return what broke, and what can be played next."""
    law = ANSWERS
    try:
        position = line.make() if action is None else line.position.play_unchecked(action)
        line.moves += [] if action is None else [action]
        line.add(position)
        for law in laws:
            law.check(line)
        over = position.outcome() is not None or len(line.moves) >= position.max_plies
        return None, [] if over else [int(each) for each in position.legal_actions()]
    except UserError:  # rules that cannot be compiled
        raise
    except Exception as error:
        return violation(law, error, line.positions, line.moves), []


def break_sample_laws(
    make: MakeGame, laws: Sequence[Law], *, games: int, doing: Callable[[], None] = lambda: None
) -> Violation | None:
    """Return the first of the laws of samples that is broken, or None."""
    doing()
    found = sample(make(), games=games)
    for law in laws:
        try:
            law.check(found)
        except LawBrokenError as error:
            positions = list(
                itertools.accumulate(error.moves, lambda position, a: position.play_unchecked(a), initial=make())
            )
            return violation(law, error, positions, error.moves)
    return None


def violation(law: Law, error: Exception, positions: Sequence[Game], moves: Sequence[int]) -> Violation:
    """Return what `error` says of a law, for people."""
    what = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if not isinstance(error, LawBrokenError):
        frames = traceback.extract_tb(error.__traceback__)
        at = next((each for each in reversed(frames) if not _is_ours(each.filename)), frames[-1])
        what = f"{type(error).__name__} in {at.name}() ({Path(at.filename).name}, line {at.lineno}): {what}"
    names = tuple(_name(position, move) for position, move in zip(positions, moves, strict=False))
    return Violation(law, what, names, _text(positions[-1]) if positions else "")


class GameLaws:
    """The laws as tests: `class TestMyGame(GameLaws): game = MyGame` in a file that pytest collects.

    game:  makes the initial position; with parameters, `functools.partial(MyGame, size=6)`.
    games: random games to try each law on.
    skip:  names of laws that do not hold by the rules.
    """

    game: ClassVar[type[Game] | functools.partial[Game]]
    games: ClassVar[int] = 50
    skip: ClassVar[tuple[str, ...]] = ()


def _test_of(law: Law, find: Callable[..., Violation | None]) -> Callable[[GameLaws], None]:
    def test(self: GameLaws) -> None:
        if law.name not in self.skip and (law is not COMPILED or isinstance(self.game(), CompiledGame)):
            broken = find(self.game, [law], games=self.games)
            assert broken is None, str(broken)

    test.__doc__ = law.text
    return test


for _laws, _find in ((COMPILED, *LINE_LAWS), break_laws), (SAMPLE_LAWS, break_sample_laws):
    for _law in _laws:
        setattr(GameLaws, f"test_{_law.name}", _test_of(_law, _find))


class _BrokenError(Exception):
    pass


def _in_form(make: MakeGame, *, plain: bool) -> Game:
    start = make()
    if not isinstance(start, CompiledGame):
        return start
    return start.as_plain_python() if plain else start.with_bounds_checked()


def _is_ours(filename: str) -> bool:
    path = Path(filename)
    return path.parent == Path(__file__).parent or "numba" in path.parts


def _name(position: Game, action: int) -> str:
    try:
        return position.action_name(action)
    except Exception:  # the name itself may be what is broken
        return str(action)


def _text(position: Game) -> str:
    try:
        return str(position)
    except Exception as error:
        return f"(drawing it raises {type(error).__name__}: {error})"
