"""Search many positions at once: each in a slot with a tree of its own, all of their leaves in one network batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic, perf_counter
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import UserError
from plyzero.rules.board_svg import html_table
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.declarations import failed_rules
from plyzero.rules.game import ONGOING, Game
from plyzero.search.batches import LEAF, advance_all
from plyzero.search.evaluation_cache import forget
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch
from plyzero.search.known_position import KnownPosition
from plyzero.search.mcts import begin_search
from plyzero.search.policy import policy_target, principal_variation, root_value
from plyzero.search.selection import edge_values
from plyzero.search.storage import make_trees
from plyzero.search.tree import (
    DONE,
    EXPAND,
    GUMBEL,
    IDLE,
    NETWORK,
    NO_MOVE,
    NO_NODE,
    NO_ROOM,
    PROVEN_DRAW,
    PROVEN_LOSS,
    PROVEN_WIN,
    PUCT,
    READ,
    UNPROVEN,
)
from plyzero.settings import SearchSettings

Scalar = TypeVar("Scalar", bound=np.generic)

ALGORITHMS: Final = {"puct": PUCT, "gumbel": GUMBEL}
"""The algorithms by their names in the settings."""

WORTH_READING: Final = 4
"""While others wait for the network, plain rules are only asked for a quarter of them or more at a time: where
the cache knows evaluations, ever fewer slots go on, and each round costs as much as ten leaves."""


def search(
    positions: Sequence[Game],
    evaluate: Evaluate,
    *,
    simulations: int,
    settings: SearchSettings | None = None,
    rng: np.random.Generator | None = None,
    leaves: int = 1,
    on_batch: Callable[[SearchSlots], None] = lambda slots: None,
    is_over: Callable[[SearchSlots], bool] = lambda slots: False,
) -> list[SearchResult]:
    """Search every position, none of them finished, and return the results in the same order.

    With `rng` the roots get noise, as in self-play; without it the result depends on nothing but the arguments.
    leaves:   number of leaves of one position that are evaluated together; see plyzero.search.batches.
    on_batch: called before every batch of evaluations, to show progress.
    is_over:  called then, once all roots are evaluated; True ends all searches with what they have found.
    """
    if simulations < 0:
        raise ValueError(f"expected at least 0 simulations, got {simulations}")
    if not positions:
        return []
    settings = settings or SearchSettings()
    if simulations == 0:
        settings = settings.model_copy(update={"algorithm": "puct"})  # the raw network needs no visit schedule
    slots = SearchSlots(positions[0], settings, slots=len(positions), simulations=simulations, leaves=leaves)
    for slot, position in enumerate(positions):
        slots.begin(slot, position, simulations=simulations, rng=rng)

    def evaluate_and_report(batch: EvaluationBatch) -> Evaluation:
        on_batch(slots)
        if slots.trees.nodes["visits"][:, 0].all() and is_over(slots):
            raise _OverError
        return evaluate(batch)

    results: dict[int, SearchResult] = {}
    with suppress(_OverError):
        while len(results) < len(positions):
            for slot in slots.run(evaluate_and_report):
                results[slot] = slots.result_with_lines(slot)
                slots.idle(slot)
    return [results.get(slot) or slots.result_with_lines(slot) for slot in range(len(positions))]


class _OverError(Exception):
    """The searches are to end before their last simulation."""


def at_intervals(
    seconds: float, show: Callable[[SearchSlots], None], *, least: int = 1
) -> Callable[[SearchSlots], None]:
    """Return an `on_batch` that calls `show` at most every `seconds`, once there are `least` simulations."""
    due = 0.0

    def on_batch(slots: SearchSlots) -> None:
        nonlocal due
        if slots.simulations() >= least and monotonic() >= due:
            show(slots)
            due = monotonic() + seconds

    return on_batch


@dataclass(frozen=True)
class SearchResult:
    """The result of a search at its root, n = number of legal actions. Values are for the player to move, +1 = wins.

    actions:       `[n]` int32, the legal actions, ascending.
    visits:        `[n]` int32, number of simulations that went through each action.
    prior:         `[n]` float32, the network's probabilities, without noise.
    q:             `[n]` float32, mean value of each action, exact where proven; NaN where never visited.
    means:         `[n]` float32, the mean of the simulations through each action, also where the value is proven.
    plies:         `[n]` int32, where a win or a loss is proven: the game is over in so many plies or fewer if the
                   winner hurries, the action itself counted; 0 = unknown.
    value, draw:   the root's mean value and probability of a draw; exact where proven.
    network_value, network_draw: the same from the network alone.
    proven:        PROVEN_WIN, PROVEN_DRAW, PROVEN_LOSS or UNPROVEN.
    algorithm:     PUCT or GUMBEL.
    simulations:   number made; less than asked for once the root is proven.
    settings:      the settings of the search.
    principal_variations: for each action, the most visited actions after it, itself first; () if not requested.
    score:         expected points by which the player to move wins in the end, negative if it loses; None if unknown.
    scores:        `[n]`, the same after each action, NaN where nothing was searched after it; None if not requested.

    With `search.score_weight`, `q` and `network_value` are utilities, into which the score goes.
    """

    actions: NDArray[np.int32]
    visits: NDArray[np.int32]
    prior: NDArray[np.float32]
    q: NDArray[np.float32]
    means: NDArray[np.float32]
    plies: NDArray[np.int32]
    value: float
    draw: float
    network_value: float
    network_draw: float
    proven: int
    algorithm: int
    simulations: int
    settings: SearchSettings
    principal_variations: tuple[tuple[int, ...], ...] = ()
    score: float | None = None
    scores: NDArray[np.float64] | None = None

    @property
    def policy(self) -> NDArray[np.float64]:
        """The improved policy, `[n]`: what self-play samples from and the network learns; see plyzero.search.policy."""
        c_visit, c_scale = self.settings.c_visit, self.settings.c_scale
        return policy_target(
            self.algorithm, self.visits, self.prior, self.q, self.network_value, self.proven, c_visit, c_scale
        )

    @property
    def plies_to_end(self) -> int | None:
        """The most plies that are left of a proven win or loss if the winner hurries; None if unknown. Rolls are none.

        It is None of a draw, and with `search.score_weight`: there no side has to hurry.
        """
        if self.proven not in (PROVEN_WIN, PROVEN_LOSS) or self.settings.score_weight:
            return None
        known = self.plies[(self.q == self.proven) & (self.plies > 0)]
        if len(known) == 0 or (self.proven == PROVEN_LOSS and len(known) < len(self.plies)):
            return None
        return int(known.min() if self.proven == PROVEN_WIN else known.max())

    def __repr__(self) -> str:
        return f"SearchResult(action {self.best_action()}, value {self.value:+.2f}, {self.simulations} simulations)"

    def _repr_html_(self) -> str:
        columns = self.actions, self.visits, self.q.round(2), self.policy.round(3)
        rows = zip(*(column[np.argsort(-self.visits, kind="stable")] for column in columns), strict=True)
        return html_table(("action", "visits", "value", "policy"), rows)

    def best_action(self) -> int:
        """Return the action to play for strength: the most visited one that the policy allows.

        Where the result is proven, it is the fastest win, or the longest resistance, or of the draws the one that
        looked best before it was proven: there the other side has the most ways to go wrong. With
        `search.score_weight` points count, not haste.
        Of equal ones, and of equally visited actions, it is the one of highest policy, then of highest value, then of
        highest prior.
        """
        policy = self.policy
        values = np.nan_to_num(self.q, nan=-1)
        ranks: list[NDArray[Any]] = [self.prior, values, policy, self.visits]
        if self.proven != UNPROVEN and not self.settings.score_weight:
            ranks.append(self._proven_ranks())
        allowed = np.flatnonzero(policy > 0)
        return int(self.actions[allowed[np.lexsort([each[allowed] for each in ranks])[-1]]])

    def _proven_ranks(self) -> NDArray[np.float64]:
        """Return `[n]` how good each action is among those that keep the proven value; higher is better."""
        if self.proven == PROVEN_DRAW:
            return np.nan_to_num(self.means, nan=-np.inf).astype(np.float64)
        plies = np.where(self.plies > 0, self.plies, np.inf)  # a distance that nobody has found is a long one
        return -plies if self.proven == PROVEN_WIN else plies


class SearchSlots:
    """B searches side by side, each with its own position, budget and algorithm; one network batch serves them all.

    trees:         their records; `trees.states[:, 0]` and `trees.roots` are the positions that are searched.
    waiting:       number of slots that wait for the network.
    evaluations:   number asked of the evaluator so far.
    rules_seconds: time spent in the rules of a game in plain Python so far.
    failing:       where `supply` raises an error, the slot in which the rules failed.
    """

    def __init__(
        self,
        start: Game,
        settings: SearchSettings,
        *,
        slots: int,
        simulations: int,
        leaves: int = 1,
        cache_bytes: int = 0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Make room for `slots` searches of at most `simulations` each, of the game that `start` belongs to.

        leaves:      most leaves of one search in a batch. There is one if several positions are searched, if they are
                     large, and if each roll of a chance node is evaluated.
        cache_bytes: memory for evaluations, which are remembered until another evaluator is used.
        clock:       measures `rules_seconds`.
        """
        self._start = start
        self._settings = settings
        self._clock = clock
        self._positions: list[dict[int, KnownPosition]] = [{} for _ in range(slots)]  # plain games only, by node
        self._width = 4 if start.max_score else 3  # win, draw, loss and, in a game with points, the score
        self._no_answer = (np.zeros((0, start.num_actions), np.float32), np.zeros((0, self._width), np.float32))
        self._answer = self._no_answer
        self._evaluator: object = None
        self._has_scores = False
        self.waiting = 0
        self.evaluations = 0
        self.failing = 0
        self.rules_seconds = 0.0
        self.trees, self._edge_memory = make_trees(
            start, settings, slots=slots, nodes=simulations + 1, leaves=leaves, cache_bytes=cache_bytes
        )
        collects = slots == 1 and self.trees.settings[0]["keeps_all_states"] and not settings.all_rolls
        self._leaves = np.zeros(leaves if collects else 1, LEAF)

    def begin(
        self,
        slot: int,
        position: Game,
        *,
        simulations: int,
        algorithm: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Begin to search `position`, which must not be finished, and in which a player must move.

        `algorithm` overrides the settings'; `rng` adds the noise of self-play.
        """
        limit = self.trees.schedules.shape[1] - 1
        if not 0 <= simulations <= limit:
            raise ValueError(f"expected at most {limit} simulations, got {simulations}")
        root = KnownPosition(position)
        if root.outcome != ONGOING:
            raise ValueError(f"expected a position that is not finished, got\n{position}")
        if len(root.chances):
            raise ValueError(f"expected a position in which a player moves, so roll first; got\n{position}")
        self.place(slot, root)
        noise_seed = 0 if rng is None else int(rng.integers(1 << 32))
        code = ALGORITHMS[algorithm or self._settings.algorithm]
        begin_search(self.trees.slots[slot], code, simulations, rng is not None, noise_seed)

    def place(self, slot: int, root: KnownPosition) -> None:
        """Put a position into `slot`, without a search."""
        if isinstance(root.position, CompiledGame):
            self.trees.states[slot, 0] = root.position.state
        else:
            self._positions[slot] = {0: root}

    def place_subtree(self, slot: int) -> None:
        """Keep in `slot`, of a plain game, the positions of the subtree that `keep_subtree` has just kept."""
        number = self.trees.renumbered[0].tolist()
        positions = self._positions[slot].items()
        self._positions[slot] = {number[node]: position for node, position in positions if number[node] != NO_NODE}
        self.trees.roots[slot] = self.root(slot).view()[1]

    def position(self, slot: int) -> Game:
        """Return the position that is searched in `slot`."""
        if isinstance(self._start, CompiledGame):
            return self._start.with_state(self.trees.states[slot, 0])
        return self.root(slot).position

    def root(self, slot: int) -> KnownPosition:
        """Return the position that is searched in `slot`, of a plain game."""
        return self._positions[slot][0]

    def idle(self, slot: int) -> None:
        """Leave the slot out of everything until it is begun again."""
        self.trees.slots[slot]["phase"] = IDLE

    def run(self, evaluate: Evaluate) -> list[int]:
        """Search on until at least one search is done; return the slots that are, or [] if all slots are idle.

        A slot that is done stays so, and is returned again, until `begin` or `idle`.
        """
        self._use(evaluate)
        while True:
            logits, wdl = self.take_answer()
            self.waiting = advance_all(self.trees, self._leaves, logits, wdl)
            if self.supply():
                continue
            done = np.flatnonzero(self.trees.slots["phase"] == DONE)
            if len(done) or not self.waiting:
                return done.tolist()
            self.ask(evaluate)

    def ask(self, evaluate: Evaluate) -> None:
        """Evaluate the leaves of all slots that wait for it; `take_answer` returns the answer.

        Raises UserError if the evaluator returns arrays of other shapes than an Evaluation has.
        """
        self._use(evaluate)
        if leaves := self.leaves():
            self.answer(evaluate(leaves), evaluate)

    def leaves(self) -> EvaluationBatch | None:
        """Return the leaves of all slots that wait for the network; None if none does."""
        if not self.waiting:
            return None
        self._edge_memory.release(self.trees.slots["edges"])
        return EvaluationBatch(self.trees.batch[: self.waiting], self._leaf_positions)

    def answer(self, evaluation: Evaluation, evaluator: object) -> None:
        """Take the evaluation of `leaves`; `take_answer` returns it.

        evaluator: the source; cached evaluations of one that is not equal to it are dropped.
        Raises UserError if the arrays have other shapes than an Evaluation has.
        """
        self._use(evaluator)
        self.evaluations += self.waiting
        logits, wdl = (np.ascontiguousarray(each, np.float32) for each in evaluation)
        self._has_scores = wdl.shape == (self.waiting, 4)
        if self._width == 4 and wdl.shape == (self.waiting, 3):
            wdl = np.pad(wdl, ((0, 0), (0, 1)))
        found = [logits.shape, wdl.shape]
        expected = [(self.waiting, self._start.num_actions), (self.waiting, self._width)]
        if found != expected:  # compiled code reads them without testing any bounds
            raise UserError(f"an evaluator returned arrays of shapes {found}, expected {expected}")
        self._answer = logits, wdl

    def take_answer(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return logits `[n, A]` and win, draw, loss, `[n, 3]` or with the score `[n, 4]`, of the last batch, once.

        Afterwards there are none, n = 0.
        """
        answer, self._answer = self._answer, self._no_answer
        return answer

    def supply(self) -> bool:
        """Provide what slots wait for: room for edges, leaf positions of plain games. Return whether any slot waited.

        Raises UserError if a position that is not over has no legal action, and what the rules of a plain game raise;
        `failing` is then the slot.
        """
        phase = self.trees.slots["phase"]
        if self.waiting == len(phase):
            return False
        phases = set(phase.tolist())  # one call of NumPy, not one for each phase
        if NO_MOVE in phases:
            self.failing = int(np.argmax(phase == NO_MOVE))
            wrong = "a position is not over, but has no legal action: outcome() is None, and legal_actions() is empty"
            raise UserError(failed_rules(self._start, wrong))
        if NO_ROOM in phases:
            without_room = phase == NO_ROOM
            self._enlarge_trees(without_room)
            phase[without_room] = EXPAND
        if READ in phases:
            unread = np.flatnonzero(phase == READ)
            if WORTH_READING * len(unread) < self.waiting:
                return NO_ROOM in phases
            began = self._clock()
            self._read_plain_leaves(unread)
            self.rules_seconds += self._clock() - began
        return not phases.isdisjoint((NO_ROOM, READ))

    def _enlarge_trees(self, without_room: NDArray[np.bool_]) -> None:
        """Double the edges, up to all actions at all nodes, and the nodes where one `without_room` has used all."""
        trees = self.trees
        if (trees.slots["nodes"][without_room] == trees.nodes.shape[1]).any():
            trees = trees._replace(nodes=_doubled(trees.nodes), renumbered=_doubled(trees.renumbered))
            if trees.settings[0]["keeps_all_states"]:
                trees = trees._replace(states=_doubled(trees.states))
        most = max(trees.masks.shape[1], trees.chances.shape[1]) * trees.nodes.shape[1]
        room = min(2 * trees.edges.shape[1], most)
        self._edge_memory = self._edge_memory.enlarged(room, trees.slots["edges"])
        self.trees = trees._replace(edges=self._edge_memory.edges)

    def result(self, slot: int) -> SearchResult:
        """Return the present result of the search in `slot`."""
        record, root = self.trees.slots[slot], self.trees.nodes[slot, 0]
        edges = self.trees.edges[slot, root["first_edge"] : root["first_edge"] + root["num_edges"]]
        value, draw = root_value(root)
        score = float(root["score_sum"] / max(1, root["visits"]) * self._start.max_score)
        return SearchResult(
            actions=edges["action"].copy(),
            visits=edges["visits"].copy(),
            prior=np.exp(edges["logit"]),
            q=edge_values(edges, np.empty(len(edges))).astype(np.float32),
            means=(edges["value_sum"] / np.where(edges["visits"], edges["visits"], np.nan)).astype(np.float32),
            plies=np.where(np.abs(edges["proven"]) == PROVEN_WIN, edges["plies"], 0).astype(np.int32),
            value=value,
            draw=draw,
            network_value=float(root["network_value"]),
            network_draw=float(root["network_draw"]),
            proven=int(root["proven"]),
            algorithm=int(record["algorithm"]),
            simulations=int(record["simulations"]),
            settings=self._settings,
            score=score if self._has_scores else None,
        )

    def result_with_lines(self, slot: int) -> SearchResult:
        """Return `result` with its principal variations and the scores of its actions."""
        lines, scores = self.principal_variations(slot), self._scores(slot) if self._has_scores else None
        return replace(self.result(slot), principal_variations=lines, scores=scores)

    def principal_variations(self, slot: int) -> tuple[tuple[int, ...], ...]:
        """Return, for each legal action at the root, the most visited actions after it, itself first."""
        nodes, edges = self.trees.nodes[slot], self.trees.edges[slot]
        first = nodes[0]["first_edge"]
        return tuple(
            tuple(principal_variation(nodes, edges, e).tolist()) for e in range(first, first + nodes[0]["num_edges"])
        )

    def _scores(self, slot: int) -> NDArray[np.float64]:
        """Return the expected points of the root's player after each legal action, `[n]`; NaN without a node there."""
        nodes, edges = self.trees.nodes[slot], self.trees.edges[slot]
        first, count = nodes[0]["first_edge"], nodes[0]["num_edges"]
        children = edges["child"][first : first + count]
        below = nodes[np.maximum(children, 0)]
        sign = np.where(below["to_play"] == nodes[0]["to_play"], 1, -1)
        means = sign * below["score_sum"] / np.maximum(below["visits"], 1) * self._start.max_score
        return np.where((children == NO_NODE) | (below["visits"] == 0), np.nan, means)

    def simulations(self) -> int:
        """Return the number of simulations that the current searches have made together."""
        return int(self.trees.slots["simulations"].sum())

    def budget(self) -> int:
        """Return the number of simulations that the current searches may make together."""
        return int(self.trees.slots["budget"].sum())

    def _use(self, evaluator: object) -> None:
        if evaluator != self._evaluator:  # equal, not the same: a method is a new object each time it is looked up
            self._evaluator = evaluator
            forget(self.trees.cache)

    def _read_plain_leaves(self, unread: NDArray[np.intp]) -> None:
        """Do the work of `read_leaf` for the slots `unread` of a plain game."""
        trees, slots = self.trees, self.trees.slots[unread]
        actions = trees.edges["action"][unread, slots["leaf_edge"]]  # arbitrary for a root, which has no edge
        outcomes: list[int] = []
        scores: list[float] = []
        players: list[int] = []
        chance: list[bool] = []
        viewed: list[int] = []
        views: list[tuple[bytearray, NDArray[np.generic]]] = []
        for slot, leaf, parent, action in zip(
            unread.tolist(), slots["leaf"].tolist(), slots["leaf_parent"].tolist(), actions.tolist(), strict=True
        ):
            self.failing = slot
            positions = self._positions[slot]
            known = positions[0] if parent == NO_NODE else positions[parent].after(action)
            is_over, is_chance = known.outcome != ONGOING, len(known.chances) > 0
            if not is_over:
                positions[leaf] = known
            if is_chance:
                trees.chances[slot] = known.chances
            elif not is_over:
                viewed.append(slot)
                views.append(known.view())
            outcomes.append(known.outcome)
            scores.append(known.score)
            players.append(0 if is_over else known.position.to_play)
            chance.append(is_chance)
        trees.slots["outcome"][unread] = outcomes
        trees.slots["score"][unread] = scores
        trees.slots["to_play"][unread] = players
        trees.slots["is_chance"][unread] = chance
        trees.slots["phase"][unread] = EXPAND
        if views:
            masks, observations = zip(*views, strict=True)
            trees.masks[viewed] = np.frombuffer(b"".join(masks), np.bool_).reshape(len(views), -1)
            trees.observations[viewed] = np.concatenate(observations).reshape(
                len(views), *self._start.observation_shape
            )

    def _leaf_positions(self) -> list[Game]:
        waiting = np.flatnonzero(self.trees.slots["phase"] == NETWORK)
        leaves = self.trees.slots["leaf"][waiting]
        if len(self._leaves) > 1:
            waiting, leaves = np.zeros(self.waiting, np.intp), self._leaves["node"][: self.waiting]
        if isinstance(self._start, CompiledGame):
            rows = leaves if self.trees.settings[0]["keeps_all_states"] else np.minimum(leaves, 1)
            return [self._start.with_state(state) for state in self.trees.states[waiting, rows]]
        known = (self._positions[slot][leaf] for slot, leaf in zip(waiting.tolist(), leaves.tolist(), strict=True))
        return [each.position for each in known]


def _doubled(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return `array` with as many zeros behind it in its second dimension."""
    return np.concatenate([array, np.zeros_like(array)], axis=1)
