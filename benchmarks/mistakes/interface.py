"""Mistakes in what the methods of a game return, planted into any game by a wrapper."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.mistakes.planted import Make, Mistake, Planted, numbers, spread, with_changes
from plyzero import Game, Outcome, Symmetry
from plyzero.check.final_board_laws import seen_by_other
from plyzero.rules.chance import is_chance
from plyzero.rules.random_game import PlayedGame, random_game

GAMES = 30  # random games that tell what a plane shows and how long a game is
RARELY = 7  # a rare mistake occurs after one of so many moves

Found = Iterator[tuple[str, str, dict[str, Any]]]
"""Mistakes: the name of the operator, the place, and the changed methods and attributes."""


def interface_mistakes(make: Make) -> Iterator[Mistake]:
    """Yield the mistakes of all operators in the game that `make` begins."""
    start = make()
    games = [random_game(start, np.random.default_rng(number)) for number in range(GAMES)]
    positions = [game.positions[ply] for game in games for ply in game.decisions]
    found = itertools.chain(
        in_observations(start, positions),
        in_players(start),
        in_legal_actions(start),
        in_positions(),
        in_outcomes(start),
        in_lengths(start, games),
        in_chances(start),
        in_names(start),
        in_keys(start, positions),
        in_final_boards(start),
        in_symmetries(start),
        in_texts(start),
    )
    for operator, where, changes in found:
        yield Mistake(operator, where, True, with_changes(make, changes))


def in_observations(start: Game, positions: Sequence[Game]) -> Found:
    """Yield planes that are missing, stale, of the wrong player, beyond their range, or counters that lose a part."""
    observed, changing = changing_planes(positions)
    counters = [plane for plane in changing if not np.ptp(observed[:, plane].reshape(len(observed), -1), axis=1).any()]
    for plane in spread(changing):
        kind = "a counter is not shown" if plane in counters else "a plane is left out"
        yield kind, f"plane {plane}", {"observe": changed_plane(plane, lambda old, position: 0 * old)}
        yield "a plane is stale", f"plane {plane}", {"observe": stale(plane)}
    for plane in spread(changing, 2):
        factor = 2 if start.observation_dtype in (bool, np.bool_) else 1e6
        scaled = changed_plane(plane, lambda old, position, factor=factor: factor * old)
        yield "a plane is beyond its range", f"plane {plane}", {"observe": scaled}
    for plane in spread([plane for plane in counters if len(np.unique(observed[:, plane])) > 2], 2):
        most = float(np.abs(observed[:, plane]).max())
        cut = changed_plane(plane, lambda old, position, most=most: np.minimum(old, most / 2))
        yield "a counter stops half-way", f"plane {plane}", {"observe": cut}
    boards = [plane for plane in changing if plane not in counters]
    for one, other in itertools.combinations(boards, 2):
        if are_own_and_opponents(positions, one, other):
            wrong = swapped_for_player_1(one, other)
            yield "planes of the wrong player", f"planes {one} and {other}", {"observe": wrong}
    for one, other in spread([*itertools.pairwise(boards)], 3):
        twice = changed_plane(one, lambda old, position, other=other: numbers(position.inner)[other])
        yield "a plane is shown twice", f"plane {other}", {"observe": twice}
    planes, rows, columns = start.observation_shape
    yield "the wrong shape", "one plane more", {"observation_shape": (planes + 1, rows, columns)}


def changing_planes(positions: Sequence[Game]) -> tuple[NDArray[np.float32], list[int]]:
    """Return the observations of positions, `[N, C, H, W]`, and the planes that are not always the same."""
    observed = np.array([numbers(each) for each in positions])
    return observed, [plane for plane in range(observed.shape[1]) if len(np.unique(observed[:, plane], axis=0)) > 1]


def are_own_and_opponents(positions: Sequence[Game], one: int, other: int) -> bool:
    """Return whether two planes change places when the other player looks at the position."""
    seen = [(numbers(each), numbers(turned)) for each in positions if (turned := seen_by_other(each)) is not None]
    pairs = ((here, there, there[:, ::-1, ::-1]) for here, there in seen)
    return bool(seen) and all(
        np.array_equal(here[one], view[other]) or np.array_equal(here[one], turned[other])
        for here, view, turned in pairs
    )


def changed_plane(plane: int, change: Callable[[NDArray[Any], Planted], NDArray[Any]]) -> Callable[[Planted], Any]:
    """Return an `observe` that changes one plane."""

    def observe(self: Planted) -> NDArray[Any]:
        planes = numbers(self.inner)
        planes[plane] = change(planes[plane], self)
        return planes

    return observe


def stale(plane: int) -> Callable[[Planted], Any]:
    """Return an `observe` whose plane is that of the position before the last move."""

    def of_before(old: NDArray[Any], position: Planted) -> NDArray[Any]:
        before = position.before
        while before is not None and is_chance(before.inner):
            before = before.before
        return old if before is None else numbers(before.inner)[plane]

    return changed_plane(plane, of_before)


def swapped_for_player_1(one: int, other: int) -> Callable[[Planted], Any]:
    """Return an `observe` that has two planes exchanged when player 1 is to move."""

    def observe(self: Planted) -> NDArray[Any]:
        planes = numbers(self.inner)
        if self.inner.to_play == 1:
            planes[[one, other]] = planes[[other, one]]
        return planes

    return observe


def in_players(start: Game) -> Found:
    """Yield a player who is not swapped: never, at once, or rarely."""
    yield "the player is not swapped", "ever", {"to_play": 0}
    yield (
        "the player is not swapped",
        "after the first move",
        {"to_play": property(lambda self: self.inner.to_play ^ (self.plies > 0))},
    )
    yield (
        "the player is not swapped",
        "rarely",
        {"to_play": property(lambda self: self.inner.to_play ^ (self.plies % RARELY == RARELY - 1))},
    )


def in_legal_actions(start: Game) -> Found:
    """Yield legal actions that cannot be played or change nothing, or are in a wrong form."""

    def and_another(rarely: bool) -> Callable[[Planted], list[int]]:
        def legal_actions(self: Planted) -> list[int]:
            legal = list(self.inner.legal_actions())
            if not legal or (rarely and self.plies % RARELY != RARELY - 1):
                return legal
            return sorted([*legal, *first_illegal(self.inner, legal)])

        return legal_actions

    def fails(self: Planted, action: int) -> Planted:
        if not is_chance(self.inner) and action not in self.inner.legal_actions():
            raise IndexError("index out of range")
        return self.after(self.inner.play_unchecked(action))

    def changes_nothing(self: Planted, action: int) -> Planted:
        if not is_chance(self.inner) and action not in self.inner.legal_actions():
            return self.after(self.inner)
        return self.after(self.inner.play_unchecked(action))

    for often, rarely in (("everywhere", False), ("rarely", True)):
        another = and_another(rarely)
        yield "a legal move cannot be played", often, {"legal_actions": another, "play": fails, "action_name": any_name}
        yield (
            "a legal move changes nothing",
            often,
            {
                "legal_actions": another,
                "play": changes_nothing,
                "action_name": any_name,
            },
        )
    yield (
        "legal actions in a wrong form",
        "in descending order",
        {"legal_actions": lambda self: list(self.inner.legal_actions())[::-1]},
    )
    yield (
        "legal actions in a wrong form",
        "one is there twice",
        {"legal_actions": lambda self: [*self.inner.legal_actions()[:1], *self.inner.legal_actions()]},
    )
    yield (
        "legal actions in a wrong form",
        "none if only one is left",
        {"legal_actions": lambda self: [*self.inner.legal_actions()] if len(self.inner.legal_actions()) > 1 else []},
    )
    yield (
        "legal actions in a wrong form",
        "at the end as well",
        {"legal_actions": lambda self: [*self.inner.legal_actions()] or [0]},
    )


def first_illegal(position: Game, legal: Sequence[int]) -> list[int]:
    """Return the first action that is not among the legal ones, in a list; none if all are legal."""
    return [action for action in range(position.num_actions) if action not in legal][:1]


def any_name(self: Planted, action: int) -> str:
    """Return the name of an action; the number of one that is not legal."""
    return self.inner.action_name(action) if action in self.inner.legal_actions() else f"no{action}"


def in_positions() -> Found:
    """Yield positions that a move or a question changes, and rules that are not the same twice."""

    def in_place(self: Planted, action: int) -> Planted:
        self.inner = self.inner.play_unchecked(action)
        return self

    def shared(self: Planted, action: int) -> Planted:
        after = self.after(self.inner.play_unchecked(action))
        self.inner = after.inner
        return after

    def shared_rarely(self: Planted, action: int) -> Planted:
        return shared(self, action) if self.plies % RARELY == RARELY - 1 else Planted.play(self, action)

    def at_random(self: Planted, action: int) -> Planted:
        if not is_chance(self.inner) and random.random() < 1 / RARELY:
            action = random.choice(list(self.inner.legal_actions()))
        return Planted.play(self, action)

    yield "a position is shared", "play returns self", {"play": in_place}
    yield "a position is shared", "play changes self too", {"play": shared}
    yield "a position is shared", "rarely", {"play": shared_rarely}
    yield "the rules are not the same twice", "play", {"play": at_random}


def in_outcomes(start: Game) -> Found:
    """Yield winners who are the wrong ones, results in a wrong form, and points of the wrong sign."""

    def outcome(change: Callable[[Outcome, Planted], Any]) -> dict[str, Any]:
        def changed(self: Planted) -> Any:
            found = self.inner.outcome()
            return found if found is None else change(found, self)

        return {"outcome": changed}

    def flipped(found: Outcome, position: Planted) -> Outcome:
        return found if found.winner is None else Outcome(1 - found.winner, found.score)

    def player_0(found: Outcome, position: Planted) -> Outcome:
        return found if found.winner is None else Outcome(0, found.score)

    def seen_by_mover(found: Outcome, position: Planted) -> Outcome:
        return flipped(found, position) if position.inner.to_play == 1 else found

    yield "the wrong winner", "the loser", outcome(flipped)
    yield "the wrong winner", "player 0", outcome(player_0)
    yield "the wrong winner", "from the view of the player to move", outcome(seen_by_mover)
    yield "the wrong winner", "nobody", outcome(lambda found, position: Outcome(None, found.score and 0))
    yield "a result in a wrong form", "a number", outcome(lambda found, position: found.winner)
    yield (
        "a result in a wrong form",
        "players from 1",
        outcome(lambda found, position: Outcome(None if found.winner is None else found.winner + 1, found.score)),
    )
    if not start.max_score:
        yield (
            "a score of the wrong sign or size",
            "points that are not declared",
            outcome(lambda found, position: Outcome(found.winner, 1)),
        )
        return
    for where, change in (
        ("negative", lambda score, winner: -score),
        ("from the view of player 0", lambda score, winner: score * (-1 if winner == 1 else 1)),
        ("one in a draw", lambda score, winner: 1 if winner is None else score),
        ("none in a draw", lambda score, winner: None if winner is None else score),
    ):
        yield (
            "a score of the wrong sign or size",
            where,
            outcome(lambda found, position, change=change: Outcome(found.winner, change(found.score, found.winner))),
        )
    yield "a score of the wrong sign or size", "max_score is half", {"max_score": start.max_score / 2}


def in_lengths(start: Game, games: Sequence[PlayedGame]) -> Found:
    """Yield a max_plies that games exceed, and games that do not end."""
    lengths = sorted(game.plies for game in games)
    yield "a wrong max_plies", "the mean", {"max_plies": lengths[len(lengths) // 2]}
    yield "a wrong max_plies", "a little less than the longest of 30 games", {"max_plies": lengths[-1] - 1}
    if lengths[-1] == start.max_plies:
        yield "a wrong max_plies", "less by one", {"max_plies": start.max_plies - 1}


def in_chances(start: Game) -> Found:
    """Yield probabilities that do not sum to one, or are too few, too many or negative."""
    if not start.num_chances:
        return

    def chances(change: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
        def changed(self: Planted) -> Any:
            found = np.array(self.inner.chances(), np.float64)
            return change(found) if found.any() else found

        return {"chances": changed}

    kind = "chances that are no probabilities"
    yield kind, "the sum is .9", chances(lambda found: 0.9 * found)
    yield kind, "one is missing", chances(lambda found: found[:-1])
    yield kind, "one too many", chances(lambda found: np.append(found, 0))
    yield kind, "one is left out", chances(lambda found: np.where(np.arange(len(found)) == 0, 0, found))
    yield kind, "negative", chances(lambda found: -found)
    yield "a name twice", "rolls", {"roll_name": lambda self, roll: "six"}


def first_letter(self: Planted, action: int) -> str:
    """Return the first letter of the name of an action."""
    return self.inner.action_name(action)[:1]


def in_names(start: Game) -> Found:
    """Yield names that two actions share, or that are no words."""

    def as_before(self: Planted, action: int) -> str:
        legal = list(self.inner.legal_actions())
        place = legal.index(action)
        return self.inner.action_name(legal[1 if place == 0 and len(legal) > 1 else place])

    yield "a name twice", "the first two moves", {"action_name": as_before}
    yield (
        "a name twice",
        "the first letter only",
        {"action_name": lambda self, action: self.inner.action_name(action)[:1]},
    )
    yield "a name with spaces", "", {"action_name": lambda self, action: f"to {self.inner.action_name(action)}"}


def in_keys(start: Game, positions: Sequence[Game]) -> Found:
    """Yield keys that forget the player to move, a plane, or all but the pieces."""
    _, changing = changing_planes(positions)

    def without(plane: int) -> Callable[[Planted], Any]:
        def key(self: Planted) -> Any:
            planes = numbers(self.inner)
            planes[plane] = 0
            return self.inner.to_play, planes.tobytes()

        return key

    for plane in spread(changing, 4):
        yield "a key forgets", f"plane {plane}", {"key": without(plane)}
    yield "a key forgets", "who is to move", {"key": lambda self: numbers(self.inner).tobytes()}
    yield (
        "a key forgets",
        "where things are",
        {"key": lambda self: (self.inner.to_play, tuple(np.count_nonzero(numbers(self.inner), axis=(1, 2)).tolist()))},
    )
    yield "a key forgets", "all but the time", {"key": lambda self: (self.inner.to_play, self.plies)}


def in_final_boards(start: Game) -> Found:
    """Yield final boards that are empty, of the wrong player, beyond their range, or that forget a square."""
    if not start.final_planes:
        return

    def board(change: Callable[[NDArray[Any], Planted], Any]) -> dict[str, Any]:
        return {"final_board": lambda self: change(np.array(self.inner.final_board(), np.float32), self)}

    def without_square(found: NDArray[Any], position: Planted) -> NDArray[Any]:
        found[0, found.shape[1] // 2, found.shape[2] // 2] = 0
        return found

    kind = "a wrong final board"
    yield kind, "empty", board(lambda found, position: 0 * found)
    yield kind, "of player 0", board(lambda found, position: -found if position.inner.to_play else found)
    yield kind, "of the other player", board(lambda found, position: -found)
    yield kind, "twice the size", board(lambda found, position: 2 * found)
    yield kind, "forgets a square", board(without_square)
    yield kind, "another shape", board(lambda found, position: found.ravel())


def in_symmetries(start: Game) -> Found:
    """Yield symmetries that move planes but not actions, or only some of them, or that the rules do not have."""
    declared = start.symmetries()
    planes, rows, columns = start.observation_shape
    numbered = np.arange(planes * rows * columns)
    actions = np.arange(start.num_actions)
    kind = "a wrong symmetry"

    def changed(change: Callable[[Symmetry], Symmetry]) -> dict[str, Any]:
        found = tuple(change(each) for each in declared)
        return {"symmetries": lambda self: found}

    def of_first_plane(each: Symmetry) -> Symmetry:
        size = rows * columns
        return each._replace(planes=np.concatenate([each.planes[:size], numbered[size:]]))

    def exchanged(each: Symmetry, one: int, other: int) -> Symmetry:
        images = np.array(each.actions)
        images[[one, other]] = images[[other, one]]
        return each._replace(actions=images)

    if declared:
        if any((each.actions != actions).any() for each in declared):
            yield kind, "the actions stay", changed(lambda each: each._replace(actions=actions))
        yield kind, "the planes stay", changed(lambda each: each._replace(planes=numbered))
        if planes > 1:
            yield kind, "only the first plane moves", changed(of_first_plane)
        yield kind, "two actions are exchanged", changed(lambda each: exchanged(each, 0, 1))
        yield kind, "the last two actions are exchanged", changed(lambda each: exchanged(each, -1, -2))
        yield kind, "the identity as well", {"symmetries": lambda self: (*declared, Symmetry(numbered, actions))}
    if len(declared) > 1:
        yield kind, "one is missing", {"symmetries": lambda self: declared[1:]}
    turned = numbered.reshape(planes, rows, columns)[:, ::-1, ::-1].ravel()
    if len(declared) < 2 and start.num_actions == rows * columns:
        yield (
            kind,
            "a half turn that the rules do not have",
            {"symmetries": lambda self: (Symmetry(turned, actions[::-1].copy()),)},
        )


def in_texts(start: Game) -> Found:
    """Yield a from_text that forgets who is to move, or reads another position."""
    if type(start).from_text is Game.from_text:
        return

    def other_player(self: Planted, text: str) -> Planted:
        read = self.inner.from_text(text)
        return type(self)(seen_by_other(read) or read)

    yield "a wrong from_text", "the other player is to move", {"from_text": other_player}
    yield "a wrong from_text", "the initial position", {"from_text": lambda self, text: self}
