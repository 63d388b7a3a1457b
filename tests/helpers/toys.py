"""Toy games whose values are known, and an exact solver with the evaluator made from it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.rules.chance import chances_of, parse_move, possible_moves
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import DRAW, ONGOING, Game, Outcome
from plyzero.search.evaluators import Evaluation, EvaluationBatch

ROOT = Path(__file__).resolve().parent.parent.parent


class Chain(Game):
    """Forced moves, made by the players that `movers` names, `"0010"`; who makes the last one loses."""

    num_actions, observation_shape = 1, (1, 1, 1)

    def __init__(self, movers: str = "0"):
        self.movers = movers
        self.max_plies = len(movers)
        self.ply = 0

    @property
    def to_play(self):
        return int((self.movers + "0")[self.ply])

    def legal_actions(self):
        return [0] if self.ply < self.max_plies else []

    def play(self, action):
        after = copy.copy(self)
        after.ply += 1
        return after

    def outcome(self):
        return Outcome(1 - int(self.movers[-1])) if self.ply == self.max_plies else None

    def observe(self):
        return np.full((1, 1, 1), self.ply)


class Relay(Chain):
    """`n` forced moves by turns; who makes the last one loses. Value (-1)**n for the player who starts."""

    def __init__(self, n: int = 4):
        super().__init__(("01" * n)[:n])


class Branching(Game):
    """Six plies with three moves each; who has made more moves 2 wins. A position is its moves."""

    num_actions, observation_shape, max_plies = 3, (6, 3, 1), 6
    moves: tuple[int, ...] = ()

    @property
    def to_play(self):
        return len(self.moves) % 2

    def legal_actions(self):
        return [0, 1, 2] if len(self.moves) < self.max_plies else []

    def play(self, action):
        after = copy.copy(self)
        after.moves = (*self.moves, action)
        return after

    def outcome(self):
        if len(self.moves) < self.max_plies:
            return None
        first, second = self.moves[::2].count(2), self.moves[1::2].count(2)
        return Outcome(None if first == second else int(second > first))

    def observe(self):
        planes = np.zeros(self.observation_shape)
        planes[range(len(self.moves)), self.moves] = 1
        return planes


class Harvest(Game):
    """In each of `max_plies` turns a player takes 0, 1 or 2 points; most points win."""

    num_actions, observation_shape, final_planes = 3, (3, 1, 1), 1
    to_play, taken = 0, (0, 0)

    def __init__(self, max_plies: int = 6):
        self.max_plies = max_plies
        self.max_score = max_plies
        self.plies = 0

    def legal_actions(self):
        return [0, 1, 2] if self.plies < self.max_plies else []

    def play(self, action):
        after = copy.copy(self)
        first, second = self.taken
        after.taken = (first, second + action) if self.to_play else (first + action, second)
        after.plies, after.to_play = self.plies + 1, 1 - self.to_play
        return after

    def lead(self):
        return self.taken[0] - self.taken[1]

    def outcome(self):
        if self.plies < self.max_plies:
            return None
        lead = self.lead()
        return Outcome(None if lead == 0 else int(lead < 0), abs(lead))

    def final_board(self):
        return np.full((1, 1, 1), (self.lead() if self.to_play == 0 else -self.lead()) / self.max_score)

    def observe(self):
        own, other = self.taken if self.to_play == 0 else self.taken[::-1]
        return np.array([own, other, self.max_plies - self.plies], np.float32).reshape(3, 1, 1)


class CompiledHarvest(CompiledGame):
    """Harvest as a compiled game."""

    State = np.dtype([("taken", "i1", (2,)), ("plies", "i1"), ("max_plies", "i1"), ("to_play", "i1")])
    num_actions, observation_shape, final_planes = 3, (3, 1, 1), 1

    def __init__(self, max_plies: int = 6):
        self.max_plies = self.max_score = max_plies
        super().__init__()
        self.record["max_plies"] = max_plies

    def legal(s, mask):
        mask[:] = True

    def play(s, action):
        s["taken"][s["to_play"]] += action
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        if s["plies"] < s["max_plies"]:
            return ONGOING
        lead = int(s["taken"][0]) - int(s["taken"][1])
        if lead == 0:
            return DRAW
        return 0 if lead > 0 else 1

    def score(s):
        return abs(int(s["taken"][0]) - int(s["taken"][1]))

    def observe(s, planes):
        planes[0, 0, 0], planes[1, 0, 0] = s["taken"][s["to_play"]], s["taken"][1 - s["to_play"]]
        planes[2, 0, 0] = s["max_plies"] - s["plies"]

    def final_board(self):
        own, other, _ = CompiledGame.observe(self)
        return ((own - other) / self.max_score)[None]


class Counted:
    """An evaluator of Harvest that expects the points so far, and the same value everywhere."""

    def __init__(self, max_score: float, value: float = 0.0, *, has_score: bool = True):
        self.max_score = max_score
        self.value = value
        self.has_score = has_score

    def __call__(self, leaves: EvaluationBatch) -> Evaluation:
        seen = leaves.observations.reshape(len(leaves.observations), 3)
        wdl = np.tile(np.float32([(1 + self.value) / 2, 0, (1 - self.value) / 2]), (len(seen), 1))
        score = (seen[:, :1] - seen[:, 1:2]) / np.float32(self.max_score)
        return Evaluation(np.zeros((len(seen), 3), np.float32), np.hstack([wdl, score]) if self.has_score else wdl)


class Written(Game):
    """A tree written down: two moves, 0 and 1, at every ply.

    movers:  who moves at each ply, `"001"`; they need not alternate.
    winners: who wins after each sequence of moves, in binary order: `"0"`, `"1"`, or `"-"` for a draw.
    """

    num_actions, observation_shape = 2, (2, 1, 1)

    def __init__(self, movers: str = "0", winners: str = "01"):
        assert len(winners) == 2 ** len(movers)
        self.movers = movers
        self.winners = winners
        self.moves = ""
        self.max_plies = len(movers)

    @property
    def to_play(self):
        return int((self.movers + "0")[len(self.moves)])

    def legal_actions(self):
        return [] if len(self.moves) == self.max_plies else [0, 1]

    def play(self, action):
        after = copy.copy(self)
        after.moves += str(action)
        return after

    def outcome(self):
        if len(self.moves) < self.max_plies:
            return None
        winner = self.winners[int(self.moves, 2)]
        return Outcome(None if winner == "-" else int(winner))

    def observe(self):
        return np.array([len(self.moves), int("1" + self.moves, 2)], np.float32).reshape(2, 1, 1)


class Ends(Game):
    """Two moves, 0 and 1, by turns, until they are one of the sequences in `winners`, such as {"0": 0, "10": 1}."""

    num_actions, observation_shape, max_plies = 2, (1, 1, 1), 8

    def __init__(self, winners: dict[str, int] | None = None):
        self.winners = winners or {"0": 0, "1": 1}
        self.moves = ""

    @property
    def to_play(self):
        return len(self.moves) % 2

    def legal_actions(self):
        return [] if self.outcome() else [0, 1]

    def play(self, action):
        after = copy.copy(self)
        after.moves += str(action)
        return after

    def outcome(self):
        return Outcome(self.winners[self.moves]) if self.moves in self.winners else None

    def observe(self):
        return np.full((1, 1, 1), int("1" + self.moves, 2), np.float32)


class FirstMoveWins(Written):
    """Action 0 wins at once, action 1 loses at once."""

    def __init__(self):
        super().__init__("0", "01")


class InfiniteNumbers(Written):
    """A game whose observation after two moves has numbers that no network can take."""

    def __init__(self):
        super().__init__("010", "01010101")

    def observe(self):
        return np.full((2, 1, 1), np.inf, np.float32) if len(self.moves) == 2 else super().observe()


class Talking(FirstMoveWins):
    """A game whose text is a sentence, and a drawing below it."""

    def __str__(self):
        return f"{len(self.moves)} moves are made of one, and who makes the wrong one of the two loses.\n| A | # |"


class Wide(CompiledGame):
    """Three plies, at each every third of 600 actions; a sum over them decides. `to_play` lies last."""

    State = np.dtype([("sum", "<i4"), ("plies", "<i2"), ("to_play", "i1")])
    num_actions, observation_shape, max_plies = 600, (3, 1, 1), 3

    def legal(s, mask):
        mask[s["plies"] :: 3] = True

    def play(s, action):
        s["sum"] += action * action
        s["plies"] += 1
        s["to_play"] = 1 - s["to_play"]

    def outcome(s):
        if s["plies"] < 3:
            return ONGOING
        return DRAW if s["sum"] % 7 < 3 else s["sum"] % 2

    def observe(s, planes):
        planes[0, 0, 0] = s["sum"] / 1000
        planes[1, 0, 0] = s["plies"]
        planes[2, 0, 0] = s["to_play"]


class Plain(Game):
    """Any game, seen by the search as plain Python."""

    def __init__(self, inner: Game | None = None):
        self.inner = inner or Relay()
        self.num_actions, self.observation_shape = self.inner.num_actions, self.inner.observation_shape
        self.max_plies = self.inner.max_plies

    @property
    def to_play(self):
        return self.inner.to_play

    def legal_actions(self):
        return self.inner.legal_actions()

    def play(self, action):
        return Plain(self.inner.play_unchecked(action))

    def outcome(self):
        return self.inner.outcome()

    def observe(self):
        return self.inner.observe()

    def action_name(self, action):
        return self.inner.action_name(action)


def watched(base: type[Game], before: Callable[..., object]) -> type[Any]:
    """Return a form of a game of which `before` gets every call: the position, the method's name, and an action."""

    def watch(name: str) -> Callable[..., Any]:
        original = getattr(base, "play_unchecked" if name == "play" else name)

        def method(self: Game, *action: int) -> Any:
            before(self, name, *action)
            return original(self, *action)

        return method

    methods = {name: watch(name) for name in ("legal_actions", "play", "outcome", "observe")}
    return type("Watched", (base,), {"__module__": before.__module__, **methods})


def solve(game: Game, memo: dict[Any, float] | None = None) -> float:
    """Return the value under perfect play, an expectation if there are dice, for player `to_play`.

    memo: maps keys to values.
    """
    memo = {} if memo is None else memo
    key = game.key()
    if key not in memo:
        outcome, chances = game.outcome(), chances_of(game)
        if outcome is not None:
            memo[key] = outcome.value(game.to_play)
        elif len(chances):
            rolls = np.flatnonzero(chances).tolist()
            values = [after_move(game, roll, memo) for roll in rolls]
            memo[key] = float(chances[rolls].astype(float) @ values / chances.astype(float).sum())
        else:
            memo[key] = max(move_values(game, memo).values())
    return memo[key]


def after_move(game: Game, move: int, memo: dict[Any, float]) -> float:
    """Return the value of playing `move`, an action or a roll, for player `to_play` of `game`."""
    after = game.play_unchecked(move)
    return solve(after, memo) * (1 if after.to_play == game.to_play else -1)


def move_values(game: Game, memo: dict[Any, float] | None = None) -> dict[int, float]:
    """Return action -> value of playing it, for the player who does."""
    memo = {} if memo is None else memo
    return {action: after_move(game, action, memo) for action in game.legal_actions()}


def distance(game: Game, memo: dict[Any, float]) -> int:
    """Return the plies to the end of a game that is won or lost, the winner hurrying and the loser not.

    Of rolls the longest counts; they are no plies. memo: of `solve`.
    """
    if game.outcome() is not None:
        return 0
    value, rolls = solve(game, memo), len(chances_of(game)) > 0
    plies = {
        move: distance(game.play_unchecked(move), memo) + (not rolls)
        for move in possible_moves(game)
        if after_move(game, move, memo) == value
    }
    return min(plies.values()) if value == 1 and not rolls else max(plies.values())


def all_positions(start: Game) -> list[Game]:
    """Return every position that moves and rolls reach, finished ones included, once."""
    found, open_ = {start.key(): start}, [start]
    while open_:
        position = open_.pop()
        if position.outcome() is None:
            for move in possible_moves(position):
                after = position.play_unchecked(move)
                if after.key() not in found:
                    found[after.key()] = after
                    open_.append(after)
    return list(found.values())


def walk(start: Game, choices: list[int]) -> tuple[Game, list[int]]:
    """Return the position after moves picked by `choices`, and the moves; the last of the unfinished positions."""
    position, moves = start, []
    for choice in choices:
        legal = position.legal_actions()
        action = legal[choice % len(legal)]
        after = position.play(action)
        if after.outcome() is not None:
            break
        position = after
        moves.append(action)
    return position, moves


def after(start: Game, moves: str) -> Game:
    """Return the position after `moves`, names of actions and rolls separated by blanks."""
    for name in moves.split():
        start = start.play(parse_move(start, name))
    return start


def variant(base: type[Game], **parts: Any) -> type[Any]:
    """Return a class of games with other parts."""
    return type(f"Variant{base.__name__}", (base,), parts)


def with_winner(base: type[Game], change: Callable[[int], Any]) -> type[Any]:
    """Return a class of games that names the winner as `change` makes it."""

    def outcome(self):
        found = base.outcome(self)
        return found if found is None or found.winner is None else Outcome(change(found.winner))

    return variant(base, outcome=outcome)


def legal(position: Game) -> set[str]:
    """Return the names of the legal actions."""
    return set(position.legal_names().split())


def drawn(position: Game) -> str:
    """Return the cells of a drawing, row by row: `".x./o../..."`."""
    return "/".join("".join(line.split()[1:]) for line in str(position).splitlines()[:-1])


class Exact:
    """An evaluator that knows the value of every leaf, from `value_of` if it is given, and no move from another."""

    def __init__(self, num_actions: int, value_of: Callable[[Game], float] | None = None):
        self.num_actions = num_actions
        self.memo: dict[Any, float] = {}
        self.value_of = value_of or (lambda position: solve(position, self.memo))

    def __call__(self, leaves: EvaluationBatch) -> Evaluation:
        values = np.array([self.value_of(each) for each in leaves.positions()], np.float32)
        wdl = np.stack([np.maximum(values, 0), 1 - abs(values), np.maximum(-values, 0)], axis=1)
        return Evaluation(np.zeros((len(values), self.num_actions), np.float32), wdl)


class Hashed:
    """An evaluator whose opinions are arbitrary but fixed: made from a digest of the observation."""

    def __init__(self, num_actions: int):
        self.num_actions = num_actions

    def __call__(self, leaves: EvaluationBatch) -> Evaluation:
        logits, wdl = [], []
        for observation in leaves.observations:
            numbers = digest(observation.astype("<f4").tobytes(), self.num_actions + 3)
            logits.append(4 * numbers[3:] - 2)
            wdl.append(numbers[:3] / numbers[:3].sum())
        return Evaluation(np.array(logits, np.float32), np.array(wdl, np.float32))


def digest(data: bytes, count: int) -> np.ndarray:
    """Return `count` numbers in (0, 1] that only `data` decides."""
    words = np.frombuffer(hashlib.shake_128(data).digest(2 * count), "<u2")
    return (words.astype(np.float64) + 1) / 65536


class Constant:
    """An evaluator that says the same of every position."""

    def __init__(self, num_actions: int, win: float, draw: float, loss: float):
        self.num_actions, self.wdl = num_actions, np.array([[win, draw, loss]], np.float32)

    def __call__(self, leaves: EvaluationBatch) -> Evaluation:
        n = len(leaves.observations)
        return Evaluation(np.zeros((n, self.num_actions), np.float32), np.repeat(self.wdl, n, axis=0))
