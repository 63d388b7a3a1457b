"""The laws of a game: what search, self-play and training rely on, each a function that a line of play may break.

A law is asked at every position of a line of random moves, from the start on. A broken one raises LawBrokenError, or
whatever the game itself raises. Laws about many positions together are in plyzero.check.sample_laws.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome
from plyzero.rules.symmetry import Symmetry

MAX_MOVES: Final = 32
"""So many legal actions of a position are tried at most."""


class LawBrokenError(Exception):
    """A law that does not hold; says what was expected and what came.

    moves: the line that shows it, of a law of samples.
    """

    def __init__(self, message: str, moves: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.moves = moves


class Law(NamedTuple):
    """A law.

    name:  what `--skip` and pytest call it.
    text:  the promise, as a sentence.
    check: of a Line, or of a plyzero.check.sample_laws.Sample.
    """

    name: str
    text: str
    check: Callable[[Any], None]


@dataclass
class Line:
    """A line of play.

    make:      makes the initial position, anew each time.
    positions: from the initial one on, the newest last.
    moves:     the actions between them.
    answers:   what each position said of itself when it was new.
    others:    further games that follow the same line, by law.
    """

    make: Callable[[], Game]
    positions: list[Game] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    others: dict[Hashable, list[Game]] = field(default_factory=lambda: defaultdict(list))

    @property
    def position(self) -> Game:
        """The newest."""
        return self.positions[-1]

    def add(self, position: Game) -> None:
        """Go on to `position`."""
        self.positions.append(position)
        self.answers.append(answers(position))

    def follow(self, key: Hashable, make: Callable[[], Game], moves: Sequence[int] | None = None) -> Game:
        """Return the position of another game after the same moves, or after what they are there."""
        other = self.others[key]
        if not other:
            other.append(make())
        for move in (self.moves if moves is None else moves)[len(other) - 1 :]:
            other.append(other[-1].play_unchecked(move))
        return other[-1]


def answers(position: Game) -> dict[str, Any]:
    """Return what a position says of itself, by the name of the question; arrays as bytes, so that == compares."""
    found: dict[str, Any] = {
        "outcome()": position.outcome(),
        "legal_actions()": tuple(position.legal_actions()),
        "str()": str(position),
    }
    if found["outcome()"] is None:  # of a finished position nobody asks these
        found |= {"to_play": position.to_play, "observe()": observed(position), "key()": position.key()}
    return found


def observed(position: Game) -> bytes:
    """Return the observation as the network gets it."""
    return np.asarray(position.observe(), np.float32).tobytes()


# --- laws of lines ---

LINE_LAWS: list[Law] = []
"""Fundamental ones first: each may take for granted what those before it promise."""


def law(into: list[Law]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Enter a function, whose docstring is the law, into a list of laws."""

    def enter(check: Callable[[Any], None]) -> Callable[[Any], None]:
        into.append(Law(check.__name__, check.__doc__ or "", check))
        return check

    return enter


@law(LINE_LAWS)
def answers_in_form(line: Line) -> None:
    """The player to move is 0 or 1; outcome() is None or an Outcome whose winner is 0, 1 or None."""
    outcome = line.position.outcome()
    if outcome is None:
        expect(line.position.to_play in (0, 1), f"to_play is {line.position.to_play!r}, expected 0 or 1")
        return
    expect(isinstance(outcome, Outcome), f"outcome() is {outcome!r}, expected None or an Outcome")
    expect(
        outcome.winner is None or (outcome.winner in (0, 1) and not isinstance(outcome.winner, bool)),
        f"outcome() names winner {outcome.winner!r}, expected 0, 1 or None for a draw",
    )


@law(LINE_LAWS)
def legal_actions_in_order(line: Line) -> None:
    """Legal actions ascend, lie in [0, num_actions), and are empty if and only if the game is over."""
    legal, outcome = line.position.legal_actions(), line.position.outcome()
    expect(
        isinstance(legal, Sequence | np.ndarray),
        f"legal_actions() is a {type(legal).__name__}, expected a list or tuple",
    )
    legal = list(legal)
    if outcome is None:
        expect(bool(legal), "legal_actions() is empty, but outcome() is None: the game goes on")
    else:
        expect(not legal, f"legal_actions() is {legal}, but the game is over: {outcome}")
    expect(all(isinstance(a, int | np.integer) for a in legal), f"legal_actions() is {legal}, expected numbers")
    expect(all(a < b for a, b in itertools.pairwise(legal)), f"legal_actions() is {legal}, expected ascending numbers")
    top = line.position.num_actions
    expect(all(0 <= a < top for a in legal), f"legal_actions() is {legal}, expected numbers from 0 to {top - 1}")


@law(LINE_LAWS)
def observation_as_declared(line: Line) -> None:
    """The observation has the declared shape, finite numbers, and only 0 and 1 where it is declared bool."""
    position = line.position
    if position.outcome() is not None:
        return
    planes = np.asarray(position.observe())
    shape = tuple(position.observation_shape)
    expect(planes.shape == shape, f"observe() has shape {planes.shape}, observation_shape is {shape}")
    expect(bool(np.isfinite(planes).all()), "observe() holds numbers that are not finite")
    stored = planes.astype(position.observation_dtype)
    expect(
        np.array_equal(stored, planes),
        f"observation_dtype {np.dtype(position.observation_dtype)} cannot hold what observe() returns: "
        f"{planes[stored != planes][:1]} becomes {stored[stored != planes][:1]}",
    )


@law(LINE_LAWS)
def asking_changes_nothing(line: Line) -> None:
    """Asking a position twice gives the same answers."""
    expect_same(line.answers[-1], answers(line.position), "asked again, the same position answers differently")
    if line.position.outcome() is None:
        hash(line.position.key())


@law(LINE_LAWS)
def play_makes_a_new_position(line: Line) -> None:
    """Every legal action can be played; that makes a new position and leaves the old one as it was."""
    position = line.position
    for action in some(position.legal_actions()):
        after = played(position, action)
        expect(type(after) is type(position), f"play({action}) returns {type(after).__name__}, expected a new position")
        expect(after is not position, f"play({action}) returns the position it was called on, expected a new one")
    expect_same(line.answers[-1], answers(position), "play changed the position it was called on")


@law(LINE_LAWS)
def earlier_positions_stay(line: Line) -> None:
    """Playing on leaves all earlier positions of the game as they were."""
    last = 0 if line.position.outcome() is not None else -3  # all of them only at the end, for speed
    for earlier, said in zip(line.positions[last:], line.answers[last:], strict=True):
        expect_same(said, answers(earlier), "an earlier position of the game has changed")


@law(LINE_LAWS)
def same_moves_same_position(line: Line) -> None:
    """The same moves from the start give the same position."""
    again = line.follow("again", line.make)
    expect_same(line.answers[-1], answers(again), "played again from the start, the same moves give another position")


@law(LINE_LAWS)
def games_end(line: Line) -> None:
    """No game is longer than max_plies."""
    most = line.position.max_plies
    if len(line.moves) >= most and line.position.outcome() is None:
        message = f"the game goes on after {len(line.moves)} plies, max_plies is {most}"
        names = [at.action_name(move) for at, move in zip(line.positions, line.moves, strict=False)]
        favourite = max(names, key=names.count)
        often = f"; {favourite} was played {names.count(favourite)} times" if 4 * names.count(favourite) > most else ""
        raise LawBrokenError(f"{message}{often}: raise max_plies if your rules allow such games")


@law(LINE_LAWS)
def actions_have_names(line: Line) -> None:
    """Legal actions have names of their own, without blanks, that parse_action understands."""
    position = line.position
    names: dict[str, int] = {}
    for action in position.legal_actions():
        name = position.action_name(action)
        expect(isinstance(name, str) and name.split() == [name], f"action_name({action}) is {name!r}, expected a word")
        expect(name.lower() not in names, f"actions {names.get(name.lower())} and {action} are both called {name!r}")
        names[name.lower()] = action
    for action in some(position.legal_actions(), most=4):  # each asks for the legal actions again
        name = position.action_name(action)
        expect(position.parse_action(name) == action, f"parse_action({name!r}) is not {action}, which is called so")


@law(LINE_LAWS)
def symmetries_are_a_group(line: Line) -> None:
    """Symmetries are permutations, none of them the identity, and with it they are a group."""
    if line.moves:
        return
    position = line.position
    cells, actions = int(np.prod(position.observation_shape)), position.num_actions
    identity = (tuple(range(cells)), tuple(range(actions)))
    group = {identity} | {_as_tuples(each) for each in position.symmetries()}
    expect(len(group) == len(position.symmetries()) + 1, "one of symmetries() is there twice, or is the identity")
    for planes, moved in group:
        expect(sorted(planes) == list(range(cells)), "the planes of a symmetry are no permutation")
        expect(sorted(moved) == list(range(actions)), "the actions of a symmetry are no permutation")
    for (planes_1, moved_1), (planes_2, moved_2) in itertools.product(group, repeat=2):
        both = (tuple(planes_1[i] for i in planes_2), tuple(moved_2[a] for a in moved_1))
        expect(both in group, "two of symmetries(), one after the other, are not in symmetries()")


@law(LINE_LAWS)
def symmetries_agree_with_the_rules(line: Line) -> None:
    """The mirrored moves lead to the mirrored position, with the same legal moves and outcome, mirrored."""
    start, position = line.positions[0], line.position
    for number, symmetry in enumerate(kept_by_the_start(start)):
        image = line.follow(number, lambda: start, [int(symmetry.actions[move]) for move in line.moves])
        mirrored: dict[str, Any] = {
            "outcome()": position.outcome(),
            "legal_actions()": tuple(sorted(int(symmetry.actions[a]) for a in position.legal_actions())),
        }
        found: dict[str, Any] = {"outcome()": image.outcome(), "legal_actions()": tuple(image.legal_actions())}
        if position.outcome() is None:
            observation = np.ravel(np.asarray(position.observe(), np.float32))[symmetry.planes]
            mirrored |= {"to_play": position.to_play, "observe()": observation.tobytes()}
            found |= {"to_play": image.to_play, "observe()": observed(image)}
        expect_same(
            mirrored,
            found,
            f"the position, mirrored by symmetries()[{number}], is not the one after the mirrored moves (second): the "
            "symmetry, a rule or observe() is wrong",
        )


def kept_by_the_start(start: Game) -> list[Symmetry]:
    """Return the symmetries under which the initial position looks the same: only they can be tried by playing."""
    planes = np.ravel(start.observe())
    return [each for each in start.symmetries() if np.array_equal(planes[each.planes], planes)]


def compiled_as_written(line: Line) -> None:
    """Compiled and as plain Python the rules agree, and stay within the bounds of their arrays."""
    start, plain = line.positions[0], line.position
    assert isinstance(start, CompiledGame)
    assert isinstance(plain, CompiledGame)
    compiled = line.follow("compiled", start.with_bounds_checked)
    expect_same(line.answers[-1], answers(compiled), "as plain Python (first) and compiled (second) the rules disagree")
    for action in some(plain.legal_actions()):
        states = [played(each, action).state for each in (plain, compiled)]  # type: ignore[attr-defined]
        expect(
            np.array_equal(*states),
            f"as plain Python and compiled, play({action}) makes different states: {states[0]} and {states[1]}",
        )


COMPILED: Final = Law("compiled_as_written", compiled_as_written.__doc__ or "", compiled_as_written)
"""For lines of a compiled game as plain Python, where an error names its line; to be asked before all others."""


def agreement_with(make: Callable[[], Game]) -> Law:
    """Return the law that a game agrees, move for move, with the one that `make` makes."""

    def agrees(line: Line) -> None:
        other = line.follow("against", make)
        pair = [answers(each) | {"names": _legal_names(each)} for each in (line.position, other)]
        for said in pair:
            said.pop("str()"), said.pop("key()", None)  # theirs alone
        expect_same(pair[0], pair[1], "this game (first) and the other one (second) disagree")

    return Law("agrees_with_the_other", "Both games agree move for move.", agrees)


# --- what the laws share ---


def expect(holds: bool, message: str) -> None:
    """Raise LawBrokenError with `message` unless it `holds`."""
    if not holds:
        raise LawBrokenError(message)


def expect_same(one: dict[str, Any], other: dict[str, Any], message: str) -> None:
    """Raise LawBrokenError with `message` and the differing answers, unless there are none."""
    found = differences(one, other)
    expect(not found, f"{message}: {found}")


def differences(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return which answers differ, and how where that can be read; "" where none does."""
    found = []
    for question in one.keys() | other.keys():
        said = [answers.get(question) for answers in (one, other)]
        if said[0] != said[1]:
            found.append(f"{question}: {_contrast(*said)}" if _can_be_read(question) else f"{question} differs")
    return "; ".join(sorted(found))


def _can_be_read(question: str) -> bool:
    return question != "str()" and not question.startswith(("observe()", "key()"))


def _contrast(one: Any, other: Any) -> str:
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) + len(other) > 20:
        only = [[each for each in a if each not in b] for a, b in ((one, other), (other, one))]
        return f"only the first has {only[0]}, only the second {only[1]}"
    return f"{one} and {other}"


def played(position: Game, action: int) -> Game:
    """Return the position after a legal action; what that raises is told which action it was."""
    try:
        after = position.play_unchecked(action)
        after.outcome()
    except Exception as error:
        error.add_note(f"while playing the legal action {action}, {position.action_name(action)}")
        raise
    return after


def some(actions: Sequence[int], *, most: int = MAX_MOVES) -> Sequence[int]:
    """Return the actions, or `most` of them, evenly spread."""
    return actions[:: -(-len(actions) // most)] if len(actions) else actions


def _as_tuples(symmetry: Symmetry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(int(i) for i in symmetry.planes), tuple(int(a) for a in symmetry.actions)


def _legal_names(position: Game) -> list[str]:
    return [position.action_name(action) for action in position.legal_actions()]
