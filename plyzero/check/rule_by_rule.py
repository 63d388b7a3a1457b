"""Rules of a compiled game compared with those of the game it is written from, each by itself, while it is written.

Random games of the original are played. At each position the fields of State that are named as attributes of the
original receive its values, each rule that is written is called, and the answers are compared: one rule that is wrong
or missing does not hide another. Other fields have what `start` and `play` have stored in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from plyzero.check.sampling import Sample, extent_of
from plyzero.check.state_fields import UnfitError, encoded
from plyzero.check.wording import listed, name_of, names_of, shown_moves
from plyzero.errors import UserError
from plyzero.rules.chance import chances_of, is_chance
from plyzero.rules.compiled_game import (
    COMPILED_RULES,
    RULE_NAMES,
    CompiledGame,
    ForeignGame,
    Rules,
    compile_rule,
    interpret_rules,
    unwritten_rules,
)
from plyzero.rules.game import DRAW, ONGOING, Game, outcome_code
from plyzero.rules.random_game import PlayedGame
from plyzero.rules.user_errors import with_location

RIGHT: Final = "right"
UNWRITTEN: Final = "not written yet"

INTERPRETED_GAMES: Final = 8
"""One of so many games is played with the rules as plain Python, which is slow and names the lines of errors."""

OUTCOMES: Final = {ONGOING: "ONGOING", DRAW: "DRAW"}


class Mistake(NamedTuple):
    """A mistake in a rule, and the moves that lead to it."""

    rule: str
    moves: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"wrong after {shown_moves(self.moves, 'no move')}: {self.what}"


class Comparison(NamedTuple):
    """The state of each rule that a game needs.

    rules:      RIGHT, UNWRITTEN or a sentence about the mistake with the fewest moves, by the name of the rule.
    positions:  the number of positions that were compared.
    own_fields: the fields of State that are not compared, since the original has no attribute of their name.
    """

    rules: dict[str, str]
    positions: int
    own_fields: tuple[str, ...]

    def __str__(self) -> str:
        rows = [f"  {rule:8s} {text}" for rule, text in self.rules.items()]
        if self.own_fields:
            rows.append(
                f"  not compared, since the original has no attribute of the name: {', '.join(self.own_fields)}"
            )
        return "\n".join([f"rule by rule, at {self.positions} positions of random games of the original:", *rows])


def is_comparable(game: Game, original: Game) -> TypeGuard[CompiledGame]:
    """Return whether a game is compiled, and has the numbers and a field of State in common with the original."""
    if not isinstance(game, CompiledGame) or isinstance(game, ForeignGame):
        return False
    one, other = (
        (each.num_actions, each.num_chances, each.setups, tuple(each.observation_shape)) for each in (game, original)
    )
    return one == other and bool(shared_fields(game, original).keys() - {"to_play"})


def compare_rules(game: CompiledGame, original: Game, *, games: int | None = None) -> Comparison:
    """Return what is right, wrong and not written yet in the rules of `game`.

    game, original: the initial positions.
    games:          the number of random games of the original; None for as many as `plyzero check` plays.
    Raises RulesFailedError if a rule of the original raises.
    """
    wanted = [rule for rule in RULE_NAMES if rule not in ("set_up", "chances", "score")]
    if game.setups:
        wanted.insert(1, "set_up")
    if game.num_chances:
        wanted.append("chances")
    if game.max_score and original.max_score:
        wanted.append("score")
    missing = unwritten_rules(game.rule_functions)
    written = [rule for rule in wanted if rule not in missing]
    interpreted = interpret_rules(game.rule_functions, game.State)
    played = Sample(original, extent_of(games)).games
    found = _first_mistakes(interpreted, written, game, played[::INTERPRETED_GAMES])
    right = [rule for rule in written if rule not in found]
    compiled = _compiled(game, right, interpreted, found)
    found |= _first_mistakes(compiled, [rule for rule in right if rule not in found], game, played)
    texts = {rule: UNWRITTEN if rule in missing else found.get(rule, RIGHT) for rule in wanted}
    shared = shared_fields(game, original)
    own = tuple(name for name in game.State.names or () if name not in shared)
    return Comparison(texts, sum(len(each.positions) for each in played), own)


def _compiled(game: CompiledGame, written: Sequence[str], otherwise: Rules, mistakes: dict[str, str]) -> Rules:
    """Return the rules that are `written`, compiled; adds a sentence for each that cannot be to `mistakes`."""
    found = otherwise
    for rule in written:
        if rule in COMPILED_RULES:
            try:
                function = game.rule_functions[rule]
                compiled = compile_rule(type(game).__name__, rule, function, game.State, {}, boundscheck=True)
                found = found._replace(**{rule: compiled})
            except UserError as error:
                mistakes[rule] = f"right in plain Python, but {error}"
    return found


def _first_mistakes(
    rules: Rules, written: Sequence[str], game: CompiledGame, games: Iterable[PlayedGame]
) -> dict[str, str]:
    """Return, for each wrong rule, a sentence about the mistake that has the fewest moves."""
    found: dict[str, Mistake] = {}
    with np.errstate(over="raise"):
        for played in games:
            for mistake in _mistakes(rules, written, game, played):
                known = found.get(mistake.rule)
                if known is None or len(mistake.moves) < len(known.moves):
                    found[mistake.rule] = mistake
    return {rule: str(mistake) for rule, mistake in found.items()}


def _mistakes(rules: Rules, written: Sequence[str], game: CompiledGame, played: PlayedGame) -> Iterator[Mistake]:
    """Yield the mistakes in the rules at the positions of a game of the original."""
    state = game.state.copy()
    record = state.view(game.State)[0]
    by = "start" if "start" in game.rule_functions else ""
    names = tuple(names_of(played.positions, played.moves))
    for ply, position in enumerate(played.positions):
        shared = shared_fields(game, position)
        for what in _wrong_fields(record, shared, position):
            if by in written:
                yield Mistake(by, names[:ply], what)
        for name, numbers in shared.items():
            record[name] = numbers
        for rule, compare in COMPARED.items():
            if rule in written and (what := _answer_of(compare, rules, state, position)):
                yield Mistake(rule, names[:ply], what)
        by = "set_up" if position.awaits_setup else "play"
        if ply < len(played.moves) and by in written:
            try:
                if position.awaits_setup:
                    game.rule_functions["set_up"](record, played.moves[ply])
                else:
                    rules.play(state, played.moves[ply])
            except Exception as error:
                yield Mistake(by, names[: ply + 1], _described(error))
                by = ""


def _described(error: Exception) -> str:
    """Return an error of a rule as one line, with the file and line, and what to do if a number was too large."""
    is_overflow = isinstance(error, OverflowError | FloatingPointError)
    advice = "; a number of a field has the few bits of its type: calculate with int(...) of it" if is_overflow else ""
    return with_location(error) + advice


def shared_fields(game: CompiledGame, position: Game) -> dict[str, NDArray[Any]]:
    """Return the fields of State that `position`, of the original, has as attributes, with the values they hold there.

    Where the game is over, or chance moves, `to_play` may be either player and is left out.
    """
    found = {}
    for name in game.State.names or ():
        if hasattr(position, name):
            try:
                found[name] = encoded(getattr(position, name), game.State[name])
            except UnfitError:  # a field of another form, which is the author's own
                continue
    return found


def _wrong_fields(record: Any, shared: dict[str, NDArray[Any]], position: Game) -> Iterator[str]:
    is_decision = position.outcome() is None and not is_chance(position)
    for name, expected in shared.items():
        if (name != "to_play" or is_decision) and not np.array_equal(record[name], expected):
            yield f"the field {name} is {_short(record[name])}, expected {_short(expected)}"


def _short(numbers: Any) -> str:
    """Return numbers as one line."""
    return " ".join(str(numbers).split())


Compare = Callable[[Rules, NDArray[np.uint8], Game], str]
"""The type of a function that returns what is wrong with the answer of a rule at a position; "" if nothing is."""


def _answer_of(compare: Compare, rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    before = state.copy()
    try:
        what = compare(rules, state, position)
    except Exception as error:
        what = _described(error)
    if not np.array_equal(before, state):
        state[:] = before
        what = what or "it changes the state, which only play does"
    return what


def _outcome(rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    found, expected = rules.outcome(state), outcome_code(position.outcome())
    if found is not None and found == expected:
        return ""
    return f"it returns {OUTCOMES.get(found, found)}, expected {OUTCOMES.get(expected, expected)}"


def _legal(rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    if position.outcome() is not None or is_chance(position):
        return ""
    mask = np.zeros(position.num_actions, np.bool_)
    rules.legal(state, mask)
    found, expected = set(np.flatnonzero(mask).tolist()), {int(each) for each in position.legal_actions()}
    parts = []
    for actions, words in ((expected - found, "does not set"), (found - expected, "sets the illegal")):
        if actions:
            parts.append(f"it {words} {listed([f'{each} ({name_of(position, each)})' for each in sorted(actions)])}")
    return ", and ".join(parts).replace("'", "")


def _observe(rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    if position.outcome() is not None or is_chance(position):
        return ""
    planes = np.zeros(tuple(position.observation_shape), np.float32)
    rules.observe(state, planes)
    expected = np.asarray(position.observe(), np.float32)
    wrong = np.argwhere(~np.isclose(planes, expected, rtol=1e-6, atol=1e-7))
    if not len(wrong):
        return ""
    first = tuple(wrong[0].tolist())
    return f"planes{list(first)} is {planes[first]:g}, expected {expected[first]:g}; {len(wrong)} numbers differ"


def _chances(rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    if position.awaits_setup or position.outcome() is not None:
        return ""
    weights = np.zeros(position.num_chances, np.float32)
    rules.chances(state, weights)
    expected = np.zeros(position.num_chances, np.float32)
    if is_chance(position):
        expected[:] = chances_of(position)
    if np.allclose(weights, expected, atol=1e-6):
        return ""
    return f"the weights are {_short(weights)}, expected {_short(expected)}"


def _score(rules: Rules, state: NDArray[np.uint8], position: Game) -> str:
    outcome = position.outcome()
    if outcome is None or (found := rules.score(state)) == outcome.score:
        return ""
    return f"it returns {found}, expected {outcome.score}"


COMPARED: Final[dict[str, Compare]] = {
    "outcome": _outcome,
    "legal": _legal,
    "observe": _observe,
    "chances": _chances,
    "score": _score,
}
"""The rules that answer, each with the comparison of its answers."""
