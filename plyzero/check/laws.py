"""The laws of a game: properties of the rules that search, self-play and training rely on.

Each law is a function of a GameTrace and is checked at every position of random games, from the initial position on. A
broken law raises LawBrokenError, or whatever the game itself raises. The laws of symmetries and of compiled games are
in modules of their own, as are those about many positions (plyzero.check.sample_laws).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from plyzero.check.wording import advice_against_long_games, differences, listed, name_of, names_of
from plyzero.rules.board import Board, find_board_fault
from plyzero.rules.chance import (
    ENDLESS_ROLLS,
    MAX_SETUPS,
    awaiting_setup,
    chances_of,
    first_decision,
    is_chance,
    move_name,
    possible_moves,
    rolled,
    rolls_endlessly,
    without_setup,
)
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, Outcome, find_score_fault
from plyzero.rules.symmetry import Symmetry
from plyzero.search.evaluators import MAX_OBSERVATION, is_evaluable

T = TypeVar("T")

Answers = dict[str, object]
"""The results of the rules at a position, by the name of the method; arrays as bytes, to be compared."""

ALWAYS_DRAWN: Final = 4  # positions at the beginning of a game
MAX_IMAGES: Final = 1024  # set-ups of a game whose symmetries are tested
SAMPLED_SETUPS: Final = 12  # set-ups that a law samples, besides the first and the last ones


class LawBrokenError(Exception):
    """A law does not hold; the message has what was expected and what was found.

    moves: for a law about samples, the actions that lead to the position in question.
    """

    def __init__(self, message: str, moves: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.moves = moves


class Law(NamedTuple):
    """A law of a game.

    name:  the name for `--skip` and in pytest.
    text:  the law as a sentence.
    check: a function of a GameTrace, or of a plyzero.check.sample_laws.Sample, that raises if the law is broken.
    """

    name: str
    text: str
    check: Callable[[Any], None]


@dataclass
class GameTrace:
    """A game that is being played and checked, with the answers of each position when it was new.

    make:       returns a new initial position.
    draw_every: number of moves from one position that is drawn to the next; the first ones and the last are always.
    positions:  the positions so far; the first is the initial position, the last the current one.
    moves:      the actions and rolls between them.
    answers:    the results of `rule_answers` for each position, recorded when the position was reached.
    states:     the bytes of each position of a compiled game; empty for another game.
    drawn:      what people see at each position; {} where nothing was drawn.
    plies:      the number of moves of players.
    replicas:   the positions of further games that replay this one, by the key that `replica` was given.
    """

    make: Callable[[], Game]
    draw_every: int = 1
    positions: list[Game] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    answers: list[Answers] = field(default_factory=list)
    states: list[bytes] = field(default_factory=list)
    drawn: list[Answers] = field(default_factory=list)
    plies: int = 0
    replicas: dict[Hashable, list[Game]] = field(default_factory=lambda: defaultdict(list))

    @property
    def position(self) -> Game:
        """The current position."""
        return self.positions[-1]

    @cached_property
    def symmetries(self) -> Sequence[Symmetry]:
        """The symmetries that the game declares."""
        return self.positions[0].symmetries()

    @cached_property
    def tested_symmetries(self) -> list[tuple[int, Symmetry]]:
        """Those that playing can test."""
        return symmetries_of_start(self.positions[0], self.symmetries)

    def image_of_setup(self, symmetry: Symmetry) -> int | None:
        """Return the set-up whose first position is the image of that of this game; None if none is found."""
        position = self.positions[1]
        if is_chance(position) or position.outcome() is not None:
            return None
        seen = np.asarray(position.observe(), np.float32)
        return setups_by_observation(self.make).get(seen.ravel()[symmetry.planes].tobytes())

    def add(self, position: Game) -> None:
        """Append `position`, which becomes the current one, and record its answers."""
        if self.answers and "chances()" not in self.answers[-1]:  # a player has moved
            self.plies += 1
        self.positions.append(position)
        self.answers.append(rule_answers(position))
        self.states.append(state_of(position))
        number = len(self.moves)
        is_sample = number < ALWAYS_DRAWN or number % self.draw_every == 0 or position.outcome() is not None
        self.drawn.append(shown(position) if is_sample else {})

    def replica(self, key: Hashable, make: Callable[[], Game], moves: Sequence[int] | None = None) -> Game:
        """Return the position that another game reaches with the same moves.

        key:   identifies the other game, which is continued at the next call.
        make:  returns the initial position of the other game.
        moves: the actions in the other game, if they differ from those of this one.
        """
        positions = self.replicas[key]
        if not positions:
            positions.append(make())
        for move in (self.moves if moves is None else moves)[len(positions) - 1 :]:
            positions.append(positions[-1].play_unchecked(move))
        return positions[-1]


def symmetries_of_start(start: Game, declared: Sequence[Symmetry]) -> list[tuple[int, Symmetry]]:
    """Return the symmetries that map the initial position to itself, with their number. Playing can test only these."""
    if start.awaits_setup:  # the image of a set-up may be another one
        return [*enumerate(declared)] if start.setups <= MAX_IMAGES else []
    planes = np.ravel(first_decision(start).observe())
    return [(number, each) for number, each in enumerate(declared) if np.array_equal(planes[each.planes], planes)]


@lru_cache(maxsize=4)
def setups_by_observation(make: Callable[[], Game]) -> dict[bytes, int]:
    """Return the numbers of the set-ups by what the network sees first; none if there are more than MAX_IMAGES.

    make: returns a new initial position, which awaits a set-up.
    """
    start = make()
    found: dict[bytes, int] = {}
    for number in range(start.setups if start.setups <= MAX_IMAGES else 0):
        position = start.set_up(number)
        if not is_chance(position) and position.outcome() is None:
            found.setdefault(observation_bytes(position), number)
    return found


def rule_answers(position: Game) -> Answers:
    """Return the results of the rules at `position`."""
    if position.awaits_setup:
        return {"outcome()": None, "chances()": ("set-ups", position.setups)}
    chances = chances_of(position)
    if len(chances):  # the other rules are not called
        return {"outcome()": None, "chances()": tuple(chances.tolist())}
    legal = position.legal_actions()
    if not isinstance(legal, Iterable):
        raise LawBrokenError(
            f"legal_actions() returned {legal!r}, expected a list of numbers ([] when the game is over)"
        )
    answers: Answers = {"outcome()": position.outcome(), "legal_actions()": tuple(legal)}
    if answers["outcome()"] is not None and position.final_planes:
        answers["final_board()"] = np.asarray(position.final_board(), np.float32).tobytes()
    if answers["outcome()"] is None:  # nothing calls these for a finished position
        answers |= {"to_play": position.to_play, "observe()": observation_bytes(position), "key()": position.key()}
    return answers


def state_of(position: Game) -> bytes:
    """Return the state of a compiled game, which determines all its answers; b"" for another game."""
    return position.state.tobytes() if isinstance(position, CompiledGame) else b""


def shown(position: Game) -> Answers:
    """Return what people see at `position`."""
    board = position.render()
    shows_board = board is not None and type(position).__str__ is Game.__str__  # this would call render() again
    return {"render()": board, "str()": str(board if shows_board else position)}


def observation_bytes(position: Game) -> bytes:
    """Return the observation of `position` as the network receives it: the bytes of a float32 array."""
    return np.asarray(position.observe(), np.float32).tobytes()


POSITION_LAWS: list[Law] = []
"""The laws that are checked at every position, in this order: a law may assume that those before it hold."""

TEXT_LAWS: list[Law] = []
"""The laws that are checked at every position of a game that defines `from_text`."""

CHANCE_LAWS: list[Law] = []
"""The laws that are checked before these at every position of a game with dice."""


def register(laws: list[Law]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Return a decorator that appends a law to `laws`. The docstring of the decorated function is the law's text."""

    def append(check: Callable[[Any], None]) -> Callable[[Any], None]:
        laws.append(Law(check.__name__, check.__doc__ or "", check))
        return check

    return append


SETUP_LAWS: list[Law] = []
"""The laws that are checked before all others at the start of a game with set-ups."""


@register(SETUP_LAWS)
def setups_are_counted(trace: GameTrace) -> None:
    """setups is an integer from 0 to 2**32."""
    if trace.position.awaits_setup:
        setups = trace.position.setups
        is_number = isinstance(setups, int | np.integer) and not isinstance(setups, bool)
        expect(is_number and 0 <= setups <= MAX_SETUPS, f"setups is {setups!r}, expected a number from 0 to 2**32")


@register(SETUP_LAWS)
def same_number_same_setup(trace: GameTrace) -> None:
    """set_up() returns the same position for the same number twice."""
    message = "called twice with the same number, set_up() returns different positions: use no random numbers but it"
    for number in sampled_setups(trace):
        one, two = play_legal(trace.position, number), play_legal(trace.position, number)
        expect(state_of(one) == state_of(two), f"{message} (set-up {number})")
        expect_equal(rule_answers(one), rule_answers(two), f"{message} (set-up {number})")


@register(SETUP_LAWS)
def setups_differ(trace: GameTrace) -> None:
    """Different numbers give different set-ups: at least two have different keys."""
    numbers = sampled_setups(trace)
    begun = [rolled(play_legal(trace.position, number), np.random.default_rng(0)) for number in numbers]
    keys = [position.key() for position in begun if position.outcome() is None]
    if len(keys) > 1:
        named = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
        expect(len(set(keys)) > 1, f"set_up() returns the same position for {named}: does it use its number?")


@register(SETUP_LAWS)
def set_up_leaves_the_start(trace: GameTrace) -> None:
    """set_up() does not change the initial position."""
    numbers = sampled_setups(trace)
    if numbers:
        usual = without_setup(trace.make())
        state, answers = state_of(usual), rule_answers(usual)
        for number in numbers:
            play_legal(awaiting_setup(usual), number)
            is_same = state_of(usual) == state and not differences(answers, rule_answers(usual))
            expect(
                is_same,
                f"set_up({number}) changed the position it was called on: give the new position a board of its own",
            )


def sampled_setups(trace: GameTrace) -> list[int]:
    """Return the numbers of some set-ups if one is due."""
    return some_setups(trace.position.setups, SAMPLED_SETUPS) if trace.position.awaits_setup else []


def some_setups(setups: int, sampled: int) -> list[int]:
    """Return the numbers of some of so many set-ups, in ascending order: the first four, the last, and sampled ones.

    Numbers that are evenly spaced would have equal bits, of which a set-up may be made.
    """
    others = np.random.default_rng(0).integers(setups, size=sampled).tolist()
    return sorted({*range(min(setups, 4)), *others, setups - 1})


@register(CHANCE_LAWS)
def chances_are_probabilities(trace: GameTrace) -> None:
    """chances() has num_chances probabilities with the sum 1 where chance moves, and none where a player moves."""
    position = trace.position
    if position.awaits_setup:
        return
    chances = np.asarray(() if position.outcome() is not None else position.chances(), np.float64)
    if not chances.size:
        return
    listed = " ".join(f"{chance:g}" for chance in chances)
    expect(
        chances.shape == (position.num_chances,),
        f"chances() has {chances.size} numbers, expected one for each of num_chances = {position.num_chances} rolls",
    )
    expect(bool(np.isfinite(chances).all()), f"chances() is {listed}, expected finite numbers")
    expect(bool((chances >= 0).all()), f"chances() is {listed}, expected numbers from 0 to 1")
    expect(
        bool(chances.any()),
        "chances() is all zeros: return () where a player moves, and probabilities with the sum 1 where chance does",
    )
    total = float(chances.sum())
    expect(abs(total - 1) <= 1e-5, f"chances() is {listed}, whose sum is {total:g}, expected 1")  # may be float32


@register(POSITION_LAWS)
def rules_answer(trace: GameTrace) -> None:
    """Every method of the game runs without an error at every position."""
    # GameTrace.add has called the methods. An error in them is reported under this law, whichever laws are checked.


@register(POSITION_LAWS)
def answers_in_form(trace: GameTrace) -> None:
    """The player to move is 0 or 1; outcome() is None or an Outcome whose winner is 0, 1 or None."""
    outcome, to_play = trace.position.outcome(), trace.position.to_play
    if outcome is None:
        expect(
            isinstance(to_play, int | np.integer | np.bool_) and to_play in (0, 1),
            f"to_play is {to_play!r}, expected 0 or 1, as an integer",
        )
        return
    expect(isinstance(outcome, Outcome), f"outcome() is {outcome!r}, expected None or an Outcome")
    winner = outcome.winner
    is_player = isinstance(winner, int | np.integer) and not isinstance(winner, bool) and winner in (0, 1)
    expect(
        winner is None or is_player,
        f"the winner in outcome() is {winner!r}, expected 0 or 1, as an integer, or None for a draw",
    )


@register(POSITION_LAWS)
def scores_as_declared(trace: GameTrace) -> None:
    """Every Outcome has a score from 0 to max_score, which is 0 in a draw; without max_score none has."""
    outcome, most = trace.position.outcome(), trace.position.max_score
    expect(0 <= most < math.inf, f"max_score is {most!r}, expected a finite number, at least 0")
    if outcome is not None:
        fault = find_score_fault(outcome, most)
        expect(not fault, fault)


@register(POSITION_LAWS)
def games_begin(trace: GameTrace) -> None:
    """No game is over before its first move, and player 0 makes that move, unless chance decides who does."""
    position = trace.position
    if not all(map(is_chance, trace.positions[:-1])):
        return
    expect(position.outcome() is None, f"the game is over before any player has moved: {position.outcome()}")
    is_right = bool(trace.moves) or is_chance(position) or position.to_play == 0
    expect(is_right, "to_play is 1 in the initial position, expected 0: player 0 is whoever moves first")


@register(POSITION_LAWS)
def legal_actions_in_order(trace: GameTrace) -> None:
    """Legal actions are in ascending order, lie in [0, num_actions), and are empty if and only if the game is over."""
    if is_chance(trace.position):
        return
    legal, outcome = trace.position.legal_actions(), trace.position.outcome()
    expect(
        isinstance(legal, Sequence | np.ndarray),
        f"legal_actions() is a {type(legal).__name__}, expected a list or tuple",
    )
    legal = list(legal)
    if outcome is None:
        nor_chance = ", and chances() is empty" if trace.position.num_chances else ""
        expect(
            bool(legal),
            f"legal_actions() is empty{nor_chance}, but outcome() is None, which means that the game is not over",
        )
    else:
        expect(not legal, f"legal_actions() is {listed(legal)}, but the game is over: {outcome}")
    odd = [a for a in legal if not isinstance(a, int | np.integer)]
    expect(not odd, f"legal_actions() has {listed(odd)}, expected integers")
    for one, other in itertools.pairwise(legal):
        expect(one < other, f"legal_actions() has {other} after {one}, expected ascending order")
    num_actions = trace.position.num_actions
    odd = [a for a in legal if not 0 <= a < num_actions]
    expect(not odd, f"legal_actions() has {listed(odd)}, expected numbers from 0 to {num_actions - 1}")


@register(POSITION_LAWS)
def observation_as_declared(trace: GameTrace) -> None:
    """The observation has the declared shape, numbers up to 65504, and only 0 and 1 if observation_dtype is bool."""
    position = trace.position
    if position.outcome() is not None or is_chance(position):
        return
    planes = np.asarray(position.observe())
    shape = tuple(position.observation_shape)
    expect(planes.shape == shape, f"observe() has shape {planes.shape}, observation_shape is {shape}")
    expect(bool(np.isfinite(planes).all()), "observe() has values that are not finite")
    expect(is_evaluable(planes), f"observe() has values beyond {MAX_OBSERVATION:g}, which half precision cannot hold")
    stored = planes.astype(position.observation_dtype)
    expect(
        np.array_equal(stored, planes),
        f"observation_dtype {np.dtype(position.observation_dtype)} cannot represent what observe() returns: "
        f"{planes[stored != planes][:1]} becomes {stored[stored != planes][:1]}",
    )


@register(POSITION_LAWS)
def asking_changes_nothing(trace: GameTrace) -> None:
    """Calling the methods of a position twice gives the same results."""
    once, twice = trace.answers[-1], rule_answers(trace.position)
    if len(trace.moves) < ALWAYS_DRAWN:
        once, twice = once | trace.drawn[-1], twice | shown(trace.position)
    expect_equal(once, twice, "called twice, the same position answers differently")
    hash(once.get("key()"))


@register(POSITION_LAWS)
def play_makes_a_new_position(trace: GameTrace) -> None:
    """Every legal action can be played; play() returns a new position and does not change the old one."""
    position = trace.position
    for action in evenly_spaced(possible_moves(position)):
        after = play_legal(position, action)
        called = f"play({action}), {name_of(position, action)},"
        expect(type(after) is type(position), f"{called} returns {type(after).__name__}, expected a new position")
        expect(after is not position, f"{called} returns the position it was called on, expected a new one")
    message = "play() changed the position it was called on: give the new position a board of its own"
    expect_as_recorded(trace, -1, position, message)


@register(POSITION_LAWS)
def moves_change_something(trace: GameTrace) -> None:
    """After a move, something is different: the player to move, the observation or the key."""
    if len(trace.answers) > 1 and "observe()" in trace.answers[-2]:
        seen = [[answers.get(name) for name in ("to_play", "observe()", "key()")] for answers in trace.answers[-2:]]
        expect(
            seen[0] != seen[1],
            "the last move changes nothing: to_play and observe() are as before it. Either it should not be legal, or "
            "play() forgets something, or observe() omits it",
        )


@register(POSITION_LAWS)
def earlier_positions_stay(trace: GameTrace) -> None:
    """Playing on does not change the earlier positions of the game."""
    count = len(trace.moves)
    is_over = trace.position.outcome() is not None
    first = 0 if is_over else max(0, count - 1)  # all of them only at the end, to save time
    for number in range(first, count):
        expect_as_recorded(trace, number, trace.positions[number], "an earlier position of the game has changed")


@register(POSITION_LAWS)
def same_moves_same_position(trace: GameTrace) -> None:
    """The same moves from the initial position lead to the same position."""
    replica = trace.replica("again", trace.make)
    expect_as_recorded(trace, -1, replica, "replayed from the start, the same moves lead elsewhere")


@register(POSITION_LAWS)
def games_end(trace: GameTrace) -> None:
    """No game without dice is longer than max_plies, and rolls do not follow each other endlessly."""
    expect(not rolls_endlessly(trace.positions), ENDLESS_ROLLS)
    limit = trace.position.max_plies
    if trace.plies >= limit and trace.position.outcome() is None and not trace.position.num_chances:
        message = f"the game is not over after {trace.plies} plies, but max_plies is {limit}"
        names = names_of(trace.positions, trace.moves)
        commonest, count = Counter(names).most_common(1)[0]
        often = f"; {commonest} was played {count} times" if 4 * count > limit else ""
        seen = [(answers.get("to_play"), answers.get("observe()")) for answers in trace.answers]
        advice = advice_against_long_games(trace.position, "games_end", repeats=len(set(seen)) < len(seen))
        raise LawBrokenError(f"{message}{often}: {advice}")


@register(POSITION_LAWS)
def actions_have_names(trace: GameTrace) -> None:
    """Legal actions, and rolls, have different names without spaces; parse_action() finds each action by its name."""
    position = trace.position
    if position.awaits_setup:  # its moves are called by their numbers
        return
    names: dict[str, int] = {}
    method, moves = ("roll_name", "rolls") if is_chance(position) else ("action_name", "actions")
    for move in possible_moves(position):
        name = getattr(position, method)(move)
        expect(isinstance(name, str) and name.split() == [name], f"{method}({move}) is {name!r}, expected a word")
        expect(name.lower() not in names, f"{moves} {names.get(name.lower())} and {move} are both called {name!r}")
        names[name.lower()] = move
    if is_chance(position):
        return
    for action in evenly_spaced(position.legal_actions(), max_count=4):  # parse_action calls legal_actions each time
        name = position.action_name(action)
        expect(position.parse_action(name) == action, f"parse_action({name!r}) is not {action}, which has this name")


@register(TEXT_LAWS)
def texts_are_read(trace: GameTrace) -> None:
    """from_text() reads the text of a position as that position, also after a further move."""
    position = trace.position
    if position.awaits_setup or position.outcome() is not None:
        return
    read = without_setup(trace.positions[0]).from_text(str(position))
    message = "from_text(str(position)) is another position"
    expect_equal(without_key(trace.answers[-1]), without_key(rule_answers(read)), message)
    for move in evenly_spaced(possible_moves(position), max_count=2):
        here, there = (without_key(rule_answers(each.play_unchecked(move))) for each in (position, read))
        expect_equal(here, there, f"{message}, after the move {name_of(position, move)}")


def without_key(answers: Answers) -> Answers:
    """Return the answers but that of key(), which may hold the past too."""
    return {name: answer for name, answer in answers.items() if name != "key()"}


@register(POSITION_LAWS)
def boards_in_form(trace: GameTrace) -> None:
    """The cells of render() have names without spaces and places of their own, the same ones in every position."""
    board, first = trace.drawn[-1].get("render()"), trace.drawn[0]["render()"]
    if not trace.drawn[-1] or (board is None and first is None):
        return
    if not isinstance(board, Board) or not isinstance(first, Board):
        raise LawBrokenError(f"render() is a {type(board).__name__}, expected a Board in every position")
    fault = find_board_fault(board)
    expect(not fault, fault)
    expect(
        [cell[1:3] for cell in board.cells] == [cell[1:3] for cell in first.cells],
        "render() has other cells than in the initial position: places stay, and pieces change",
    )


def expect(holds: bool, message: str) -> None:
    """Raise LawBrokenError with `message` unless `holds` is true."""
    if not holds:
        raise LawBrokenError(message)


def expect_equal(one: Answers, other: Answers, message: str) -> None:
    """Raise LawBrokenError with `message` and the differences if there are any."""
    found = differences(one, other)
    expect(not found, f"{message}: {found}")


def expect_as_recorded(trace: GameTrace, number: int, position: Game, message: str) -> None:
    """Raise LawBrokenError unless `position` answers as position `number` of the trace did when it was reached."""
    if not (trace.states[number] and trace.states[number] == state_of(position)):
        expect_equal(trace.answers[number], rule_answers(position), message)


def play_legal(position: Game, action: int) -> Game:
    """Return the position after a legal action. An exception of the rules gets a note with the action."""
    try:
        after = position.play_unchecked(action)
        after.outcome()
    except (Exception, SystemExit) as error:
        kind = "possible roll" if is_chance(position) else "legal action"
        played = f"the {kind} {action}, {move_name(position, action)}"
        if position.awaits_setup:
            played = f"set-up {action}"
        error.add_note(f"while playing {played}")
        raise
    return after


def evenly_spaced(these: Sequence[T], *, max_count: int = 16) -> Sequence[T]:
    """Return all of `these`, or at most `max_count` of them, evenly spaced."""
    return these[:: -(-len(these) // max_count)] if len(these) else these
