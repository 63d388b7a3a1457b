"""Mistakes in rules: random games are played until one breaks a law, and that game is shortened to few moves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, TypeGuard

import numpy as np

from plyzero.check.agreement import COMPILED_LAWS, state_has_all
from plyzero.check.final_board_laws import FINAL_BOARD_LAWS
from plyzero.check.laws import (
    CHANCE_LAWS,
    POSITION_LAWS,
    SETUP_LAWS,
    TEXT_LAWS,
    GameTrace,
    Law,
    LawBrokenError,
    evenly_spaced,
)
from plyzero.check.sample_laws import CHANCE_SAMPLE_LAWS, SAMPLE_LAWS, TURN_LAWS, observations_show_the_limit
from plyzero.check.sampling import NEAR_POSITIONS, Extent, RulesFailedError, Sample, extent_of
from plyzero.check.symmetry_laws import SYMMETRY_LAWS
from plyzero.check.wording import names_of, shown_moves
from plyzero.errors import UserError
from plyzero.rules.chance import awaiting_setup, is_chance, possible_moves, rolls_endlessly
from plyzero.rules.compiled_game import CompiledGame, ForeignGame
from plyzero.rules.game import Game
from plyzero.rules.random_game import PlayedGame
from plyzero.rules.user_errors import own_frames

INTERPRETED_PART: Final = 16
"""COMPILED_LAWS run the rules as plain Python, which is slow, so they are tried on one of this many positions."""

FIRST_PART: Final = 15
"""All laws are first checked on one of this many positions."""

GAME_LAWS: Final = (*SETUP_LAWS, *CHANCE_LAWS, *POSITION_LAWS, *FINAL_BOARD_LAWS, *TEXT_LAWS, *SYMMETRY_LAWS)
ALL_LAWS: Final = (*COMPILED_LAWS, *GAME_LAWS, *CHANCE_SAMPLE_LAWS, *TURN_LAWS, *SAMPLE_LAWS)
"""All laws of GameTraces but COMPILED_LAWS, and all laws, in the order of their checks."""

RULES_ANSWER: Final = next(law for law in POSITION_LAWS if law.name == "rules_answer")
"""The law that is reported as broken if a rule raises an exception, whichever laws are checked."""

PLAYING: Final = "random games"
PLAYING_AS_PYTHON: Final = "random games with the rules as plain Python"
SEEKING: Final = "games that look for rare events"
SHRINKING: Final = "a mistake was found; looking for fewer moves that show it"
"""States of a search, for `on_progress`."""

SHORTENING_GAMES: Final = 300  # most games with another ending, and most games without two of the moves
SHORTENING_POSITIONS: Final = 20_000  # positions that the search for fewer moves may make
DRAW_EVERY: Final = 8  # moves of a compiled game

MakeGame = Callable[[], Game]
"""The type of a function that returns a new initial position."""

Choose = Callable[[Sequence[int]], int | None]
"""The type of a function that returns one of the legal moves, or None to end the game."""

Progress = Callable[[str, int], None]
"""The type of a function that receives the state of the search and the number of games so far."""


class Violation(NamedTuple):
    """A law that does not hold, with moves that show it.

    law:      the broken law.
    what:     what was expected and what was found.
    moves:    the names of the actions from the initial position on.
    position: the position after these moves, as text.
    actions:  the actions.
    """

    law: Law
    what: str
    moves: tuple[str, ...]
    position: str
    actions: tuple[int, ...] = ()

    def __str__(self) -> str:
        moves = shown_moves(self.moves, "none, the initial position")
        return f"broken law {self.law.name}: {self.law.text}\n{self.what}\nmoves: {moves}\n{self.position}"


def find_violation(
    make: MakeGame,
    *,
    games: int | None = None,
    sample: Sample | None = None,
    skip: Sequence[str] = (),
    extra_laws: Sequence[Law] = (),
    on_progress: Progress = lambda doing, number: None,
    on_violation: Callable[[Violation], None] = lambda found: None,
    on_games: Callable[[Sample], None] = lambda sample: None,
) -> Violation | None:
    """Return a violation of the first law that random games break, None if all laws hold.

    Every call plays the same games.

    make:         returns a new initial position.
    games:        number of random games for each law; None for enough to have plyzero.check.sampling.POSITIONS.
    sample:       the games and positions for laws about many of them, if they are needed afterwards.
    skip:         names of laws that are not checked.
    extra_laws:   laws of GameTraces to check besides those of every game.
    on_progress:  called before every game.
    on_violation: called with the violation as it was found first, before fewer moves are looked for.
    on_games:     called with `sample` once the laws hold on the first part of the games.
    """
    make = functools.partial(_start_of_game, make)
    start, extent = make(), extent_of(games)
    compared = sample or Sample(start, extent)
    laws = [law for law in (*laws_of(start), *extra_laws) if law.name not in skip]
    games_of: tuple[list[int], list[int]] = [], []

    def find_in_games(much: Extent, sought: Sequence[PlayedGame]) -> Violation | None:
        for of_trace, part, played in zip(
            (COMPILED_LAWS, (*GAME_LAWS, *extra_laws)), (INTERPRETED_PART, 1), games_of, strict=True
        ):
            wanted = [law for law in laws if law in of_trace]
            some = sought[: -(-len(sought) // part)]
            if wanted and (
                found := find_position_violation(
                    make, wanted, much.part(part), played, on_progress, on_violation, sought=some
                )
            ):
                return found
        return None

    def find_in(sample: Sample, these: Sequence[Law]) -> Violation | None:
        wanted = [law for law in laws if law in these]
        return find_sample_violation(make, wanted, sample, on_progress) if wanted else None

    # First on one of FIRST_PART positions, so that a common mistake is reported at once.
    found = find_in_games(extent.part(FIRST_PART), ()) or find_in(compared, (*CHANCE_SAMPLE_LAWS, *TURN_LAWS))
    if found:
        return found
    on_games(compared)
    return (
        find_in(compared.part(FIRST_PART), SAMPLE_LAWS)
        or find_in_games(extent, _sought(compared))
        or find_in(compared, SAMPLE_LAWS)
    )


def _sought(sample: Sample) -> Sequence[PlayedGame]:
    """Return the sample's games that look for rare events; none if a rule raises, which SAMPLE_LAWS then report."""
    try:
        return sample.sought
    except RulesFailedError:
        return ()


def laws_of(start: Game) -> list[Law]:
    """Return the laws of a game: some are for compiled or foreign games, some for games with dice; none is waived."""
    without = list[Law]()
    for law in COMPILED_LAWS:
        needs_library = law.check is state_has_all
        if not isinstance(start, CompiledGame) or needs_library != isinstance(start, ForeignGame):
            without.append(law)
    if not start.setups:
        without += SETUP_LAWS
    if not start.num_chances:
        without += [*CHANCE_LAWS, *CHANCE_SAMPLE_LAWS]
    if not start.final_planes:
        without += FINAL_BOARD_LAWS
    if type(start).from_text is Game.from_text:
        without += TEXT_LAWS
    if start.num_chances or start.is_adapted:  # plies are not counted with rolls, and rules of others cannot be changed
        without += [law for law in SAMPLE_LAWS if law.check is observations_show_the_limit]
    return [law for law in ALL_LAWS if law not in without and law.name not in start.waived_laws]


def find_position_violation(
    make: MakeGame,
    laws: Sequence[Law],
    extent: Extent,
    played: list[int],
    on_progress: Progress,
    on_violation: Callable[[Violation], None],
    *,
    sought: Sequence[PlayedGame] = (),
) -> Violation | None:
    """Return the shortest violation found of the first of `laws`, laws of GameTraces, that is broken; None if all hold.

    played: the numbers of positions of the games before, to which those of further games are appended up to the extent.
    sought: games that are played after the random ones.
    """
    plain = any(law in COMPILED_LAWS for law in laws)
    make = functools.partial(_start_to_check, make, plain=plain)
    draw_every = DRAW_EVERY if isinstance(make(), CompiledGame) else 1
    # A number that overflows in plain Python is an error. COMPILED_LAWS find the numbers that matter by themselves.
    with np.errstate(over="ignore" if plain else "raise"):
        for doing, number, choose in _choices(PLAYING_AS_PYTHON if plain else PLAYING, extent, played, sought):
            on_progress(doing, number + 1)
            trace = GameTrace(make, draw_every)
            if found := play_until_violation(trace, laws, choose):
                on_violation(found)
                on_progress(SHRINKING, number + 1)
                return shorten(make, laws, found)
            played.append(len(trace.positions))
    return None


def _choices(
    playing: str, extent: Extent, played: Sequence[int], sought: Sequence[PlayedGame]
) -> Iterator[tuple[str, int, Choose]]:
    """Yield, for each game, what is being done, its number and how it chooses its moves: random games first.

    Those are played until `played` has the extent.
    """
    while sum(played) < extent.positions and (number := len(played)) < extent.games:
        yield playing, number, _random_choice(number, extent.positions - sum(played))
    for number, game in enumerate(sought):
        yield SEEKING, number, _next_legal(game.moves)


def _random_choice(number: int, positions: float) -> Choose:
    """Return how game `number` chooses its moves: at random, until there are so many positions."""
    rng = np.random.default_rng(number)
    asked = itertools.count(1)

    def choose(legal: Sequence[int]) -> int | None:
        return legal[int(rng.integers(len(legal)))] if next(asked) < positions else None

    return choose


def shorten(make: MakeGame, laws: Sequence[Law], found: Violation) -> Violation:
    """Return a violation with fewer moves than `found` if some SHORTENING_POSITIONS have one, else `found`.

    Its law is the same, or an earlier one, which explains more. Moves of `found` are left out, or its end is replaced
    by fewer random moves, as long as that helps; then the sequences of moves near the start are tried, in
    breadth-first order.
    """
    if found.law.name == "games_end":  # no fewer moves than max_plies show that a game is longer
        return found
    order = [RULES_ANSWER.name, *(law.name for law in laws)]
    laws = laws[: order.index(found.law.name)]  # this one and those before it
    left = SHORTENING_POSITIONS // (INTERPRETED_PART if any(law in COMPILED_LAWS for law in laws) else 1)

    def cost(of: Violation) -> tuple[int, int]:
        return len(of.moves), order.index(of.law.name)

    def is_better(other: Violation | None) -> TypeGuard[Violation]:
        return other is not None and cost(other) < cost(found)

    def better() -> Violation | None:
        nonlocal left
        for moves in _fewer(found.actions) if left > 0 else ():
            trace = GameTrace(make)
            if is_better(other := play_until_violation(trace, laws, _next_legal(moves))):
                return other
            left -= len(trace.positions)
            if left <= 0:
                break
        return None

    while shorter := better():
        found = shorter
    sequences: list[tuple[int, ...]] = [()]
    for moves in itertools.islice(sequences, NEAR_POSITIONS):
        left -= len(moves) + 1
        if len(moves) > len(found.moves) or left < 0:
            break
        trace = GameTrace(make)
        broken: Violation | None = None
        legal: Sequence[int] = ()
        for action in (None, *moves):
            broken, legal = play_and_check(trace, laws, action)
        if is_better(broken):
            return broken
        sequences += [(*moves, action) for action in legal[:NEAR_POSITIONS]]
    return found


def _next_legal(moves: Iterable[int | float]) -> Choose:
    """Return how a game is played by `moves`; a move that is not legal when its turn comes is left out.

    A float, from [0, 1), stands for the move at this part of the list of legal ones.
    """
    left = iter(moves)

    def choose(legal: Sequence[int]) -> int | None:
        for move in left:
            if isinstance(move, float):
                return legal[int(move * len(legal))]
            if move in legal:
                return move
        return None

    return choose


def _fewer(moves: tuple[int, ...]) -> Iterator[tuple[int | float, ...]]:
    """Yield `moves` without a half of them, a quarter, and so on to one, and without two; then with random endings."""
    size = len(moves) // 2
    while size:
        yield from (moves[:at] + moves[at + size :] for at in range(0, len(moves), size))
        size //= 2
    for one, other in itertools.islice(itertools.combinations(range(len(moves)), 2), SHORTENING_GAMES):
        yield moves[:one] + moves[one + 1 : other] + moves[other + 1 :]
    rng = np.random.default_rng(len(moves))
    for _ in range(SHORTENING_GAMES if len(moves) > 2 else 0):
        kept = int(rng.integers(len(moves)))
        part = rng.random()  # the first moves of the list only: choosing from few of them makes unusual games
        yield (*moves[:kept], *(part * rng.random(len(moves) - 1 - kept)).tolist())


def play_until_violation(trace: GameTrace, laws: Sequence[Law], choose: Choose) -> Violation | None:
    """Play the game of `trace`, which is empty; return its first violation, None if none.

    choose: returns one of the legal actions, or None to end the game.
    """
    action = None
    while True:
        broken, legal = play_and_check(trace, laws, action)
        if broken or not legal or (action := choose(legal)) is None:
            return broken


def play_and_check(trace: GameTrace, laws: Sequence[Law], action: int | None) -> tuple[Violation | None, Sequence[int]]:
    """Play `action`, None for the initial position, and check `laws`.

    Return the violation, None if the laws hold, and the legal actions to go on with: none if the game is over, has
    reached max_plies, rolls endlessly or has broken a law.
    """
    law = RULES_ANSWER
    try:
        position = trace.make() if action is None else trace.position.play_unchecked(action)
        if action is not None:
            trace.moves.append(action)
        trace.add(position)
        for law in laws:
            law.check(trace)
        over = (
            position.outcome() is not None
            or (trace.plies >= position.max_plies and not is_chance(position))
            or rolls_endlessly(trace.positions)
        )
        return None, [] if over else possible_moves(position)
    except UserError:  # rules that cannot be compiled
        raise
    except (Exception, SystemExit) as error:
        return violation_of(law, error, trace.positions, trace.moves), []


def find_sample_violation(
    make: MakeGame, laws: Sequence[Law], sample: Sample, on_progress: Progress
) -> Violation | None:
    """Return a violation of the first of `laws`, which are laws of Samples, that is broken; None if all hold."""
    start = sample.start
    law = RULES_ANSWER
    on_progress("games for the comparison of positions", 0)
    try:
        for law in laws:
            on_progress(f"comparing positions, law {law.name}", len(sample.games))
            law.check(sample)
    except RulesFailedError as failed:
        replayed = _replayed(make, failed.moves)
        if replayed:
            return shorten(make, POSITION_LAWS, replayed)
        return violation_of(RULES_ANSWER, failed.error, _positions(start, failed.moves), failed.moves)
    except LawBrokenError as error:
        return violation_of(law, error, _positions(start, error.moves), error.moves)
    except (Exception, SystemExit) as error:  # a rule fails at a position next to those of the sample
        return violation_of(law, error, [], ())
    return None


def _replayed(make: MakeGame, moves: Sequence[int]) -> Violation | None:
    """Return the violation of POSITION_LAWS that `moves` lead to, alone or with one more move; None if none does."""
    trace = GameTrace(make)
    if found := play_until_violation(trace, POSITION_LAWS, _next_legal(moves)):
        return found
    for action in evenly_spaced(possible_moves(trace.position), max_count=NEAR_POSITIONS):
        if found := play_until_violation(GameTrace(make), POSITION_LAWS, _next_legal([*moves, action])):
            return found
    return None


def violation_of(law: Law, error: BaseException, positions: Sequence[Game], moves: Sequence[int]) -> Violation:
    """Return the violation of `law` that `error` reports after `moves`, which led through `positions`."""
    what = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if not isinstance(error, LawBrokenError):
        what = f"{type(error).__name__}{_place(error)}: {what}"
    text = _text(positions[-1]) if positions else ""
    return Violation(law, what, tuple(names_of(positions, moves)), text, tuple(moves))


def _place(error: BaseException) -> str:
    """Return where in the user's code `error` was raised: method, file, line and source; "" if only the toolkit was."""
    frames = own_frames(error)
    if not frames:
        return ""
    source = f", `{frames[-1].line}`" if frames[-1].line else ""
    return f" in {frames[-1].name}() ({Path(frames[-1].filename).name}, line {frames[-1].lineno}{source})"


class GameLaws:
    """A base class for tests with pytest, one test per law: `class TestMyGame(GameLaws): game = MyGame`.

    game:  the class of the game; with parameters, `functools.partial(MyGame, size=6)`.
    games: number of random games for each law; None for as many as `plyzero check` plays.
    skip:  names of laws that do not hold by the rules of the game.
    """

    game: ClassVar[type[Game] | functools.partial[Game]]
    games: ClassVar[int | None] = 50
    skip: ClassVar[tuple[str, ...]] = ()


def _test_of(law: Law) -> Callable[[GameLaws], None]:
    def test(self: GameLaws) -> None:
        others = [each.name for each in ALL_LAWS if each != law]
        broken = find_violation(self.game, games=self.games, skip=[*self.skip, *others])
        assert broken is None, str(broken)

    test.__doc__ = law.text
    return test


for _law in ALL_LAWS:
    setattr(GameLaws, f"test_{_law.name}", _test_of(_law))


def _positions(start: Game, moves: Sequence[int]) -> list[Game]:
    positions = [start]
    with suppress(Exception):  # the last of the moves may be what cannot be played
        for move in moves:
            positions.append(positions[-1].play_unchecked(move))
    return positions


def _start_of_game(make: MakeGame) -> Game:
    """Return a new initial position, which awaits a set-up in a game with set-ups."""
    return awaiting_setup(make())


def _start_to_check(make: MakeGame, *, plain: bool) -> Game:
    """Return a new initial position; if compiled, as plain Python or with checked bounds, so that bad indices raise."""
    start = make()
    if not isinstance(start, CompiledGame):
        return start
    return start.as_plain_python() if plain else start.with_bounds_checked()


def _text(position: Game) -> str:
    try:
        return str(position)
    except Exception as error:
        return f"(str() of the position raises {type(error).__name__}: {error})"
