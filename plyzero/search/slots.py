"""Search many positions at once: the slots, and what a finished search says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import Game, outcome_code
from plyzero.search import tree
from plyzero.search.evaluation_cache import forget, make_cache
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch
from plyzero.search.mcts import advance_all, begin_slot, principal_variation
from plyzero.search.policy import policy_target
from plyzero.search.rule_calls import addresses
from plyzero.search.selection import completed_q
from plyzero.search.tree import (
    DONE,
    EDGE,
    EVALUATION,
    FULL,
    IDLE,
    NODE,
    NOTHING,
    PROVEN_DRAW,
    READ,
    RULES,
    SETTINGS,
    SLOT,
    UNPROVEN,
    Trees,
)
from plyzero.settings import SearchSettings

KINDS = {"puct": tree.PUCT, "gumbel": tree.GUMBEL}


def search(
    positions: Sequence[Game],
    evaluate: Evaluate,
    *,
    simulations: int,
    settings: SearchSettings | None = None,
    rng: np.random.Generator | None = None,
    watch: Callable[[SearchSlots], None] | None = None,
) -> list[SearchResult]:
    """Search every position, none of them finished, and return what was found, in the same order, lines included.

    With `rng` the roots are noisy, as in self-play; without it the result depends on nothing but the arguments.
    watch: called before every batch of evaluations, to show how far it is.
    """
    if not positions:
        return []
    settings = settings or SearchSettings()
    if simulations == 0:
        settings = settings.model_copy(update={"kind": "puct"})  # what the raw network says needs no schedule
    slots = SearchSlots(positions[0], settings, slots=len(positions), simulations=simulations)
    for slot, position in enumerate(positions):
        slots.begin(slot, position, simulations=simulations, rng=rng)

    def watched(leaves: EvaluationBatch) -> Evaluation:
        if watch:
            watch(slots)
        return evaluate(leaves)

    found: dict[int, SearchResult] = {}
    while len(found) < len(positions):
        for slot in slots.run(watched):
            found[slot] = replace(slots.root(slot), lines=slots.lines(slot))
            slots.idle(slot)
    return [found[slot] for slot in range(len(positions))]


@dataclass(frozen=True)
class SearchResult:
    """What a search found at its root, n = number of legal actions. Values are for the player to move, +1 = wins.

    actions:       `[n]` int32, the legal actions, ascending.
    visits:        `[n]` int32, simulations that went through each.
    prior:         `[n]` float32, the network's probabilities, without noise.
    q:             `[n]` float32, mean value of each, exact where proven; NaN where never visited.
    value, draw:   the root's mean value and probability of a draw; the proven ones where proven.
    network_value, network_draw: what the network alone said.
    proven:        WIN, DRAW, LOSS or UNPROVEN of plyzero.search.tree.
    kind:          PUCT or GUMBEL.
    simulations:   made; fewer than asked for once the root is proven.
    lines:         for each action, what the search expects to follow: actions, itself first. Only `search` fills it in.
    """

    actions: NDArray[np.int32]
    visits: NDArray[np.int32]
    prior: NDArray[np.float32]
    q: NDArray[np.float32]
    value: float
    draw: float
    network_value: float
    network_draw: float
    proven: int
    kind: int
    simulations: int
    settings: SearchSettings
    lines: tuple[tuple[int, ...], ...] = ()

    @property
    def policy(self) -> NDArray[np.float64]:
        """The improved policy, `[n]`: what self-play samples from and the network learns; see plyzero.search.policy."""
        return policy_target(
            *(self.kind, self.visits, self.prior, self.q, self.network_value, self.proven),
            *(self.settings.c_visit, self.settings.c_scale),
        )

    def best_action(self) -> int:
        """Return the action to play for strength: of the most visited that the policy allows, its favourite.

        Among equals the one of higher value.
        """
        policy = self.policy
        visits = np.where(policy > 0, self.visits, -1)
        most = np.flatnonzero(visits == visits.max())
        order = np.lexsort((np.nan_to_num(self.q[most], nan=-1), policy[most]))
        return int(self.actions[most[order[-1]]])


class SearchSlots:
    """B searches side by side, each with its own position, budget and kind; one network batch serves them all.

    trees:   see plyzero.search.tree; `trees.states[:, 0]` and `trees.roots` are what is searched.
    waiting: how many searches wait for an evaluation.
    evaluations: asked for so far.
    """

    def __init__(
        self, start: Game, settings: SearchSettings, *, slots: int, simulations: int, cache_bytes: int = 0
    ) -> None:
        """Make room for `slots` searches of at most `simulations` each, of the game that `start` belongs to.

        cache_bytes: memory for evaluations, which are remembered until another evaluator is used.
        """
        self._start = start
        self._settings = settings
        rules, state_size, to_play_offset = _rules_of(start)
        self._positions: list[dict[int, Game]] = [{} for _ in range(slots)]  # plain games only: node -> position
        self._no_answer = (np.zeros((0, start.num_actions), np.float32), np.zeros((0, 3), np.float32))
        self._answer = self._no_answer
        self._evaluate: Evaluate | None = None
        self.waiting = self.evaluations = 0
        nodes, actions, planes = simulations + 1, start.num_actions, start.observation_shape
        size = math.prod(planes)
        self.trees = Trees(
            slots=np.zeros(slots, SLOT),
            nodes=np.zeros((slots, nodes), NODE),
            edges=np.zeros((slots, actions + min(actions, 32) * nodes), EDGE),
            states=np.zeros((slots, nodes + 1, state_size), np.uint8),
            masks=np.zeros((slots, actions), np.bool_),
            observations=np.zeros((slots, *planes), np.float32),
            roots=np.zeros((slots, *planes), np.float32),
            batch=np.zeros((slots, *planes), np.float32),
            noise=np.zeros((slots, actions), np.float32),
            schedules=np.zeros((slots, nodes), np.int32),
            scratch=np.zeros(actions),
            renumbered=np.zeros((2, nodes), np.int32),
            cache=make_cache(cache_bytes, observation_size=size, num_actions=actions),
            settings=_settings_record(settings, to_play_offset),
            rules=rules,
        )

    def begin(
        self,
        slot: int,
        position: Game,
        *,
        simulations: int,
        kind: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Start to search `position`, which must not be finished.

        `kind` overrides the settings'; `rng` adds the noise of self-play.
        """
        most = self.trees.nodes.shape[1] - 1
        if not 0 <= simulations <= most:
            raise ValueError(f"expected at most {most} simulations, got {simulations}")
        if position.outcome() is not None:
            raise ValueError(f"expected a position that is not finished, got\n{position}")
        self.place(slot, position)
        noise_seed = 0 if rng is None else int(rng.integers(1 << 32))
        begin_slot(
            self.trees.slots[slot], KINDS[kind or self._settings.algorithm], simulations, rng is not None, noise_seed
        )

    def place(self, slot: int, position: Game) -> None:
        """Put `position` into `slot`, without a search."""
        if isinstance(position, CompiledGame):
            self.trees.states[slot, 0] = position.state
        else:
            self._positions[slot] = {0: position}

    def place_kept(self, slot: int) -> None:
        """Put into `slot`, of a plain game, the position whose tree `keep_subtree` has just kept."""
        number = self.trees.renumbered[0].tolist()
        positions = self._positions[slot].items()
        self._positions[slot] = {number[node]: position for node, position in positions if number[node] != NOTHING}
        self.trees.roots[slot] = self.position(slot).observe()

    def position(self, slot: int) -> Game:
        """Return the position that is searched in `slot`."""
        if isinstance(self._start, CompiledGame):
            return self._start.with_state(self.trees.states[slot, 0])
        return self._positions[slot][0]

    def idle(self, slot: int) -> None:
        """Leave the slot out of what follows until it is begun again."""
        self.trees.slots[slot]["phase"] = IDLE

    def run(self, evaluate: Evaluate) -> list[int]:
        """Move all searches on until at least one is done; return the slots that are, or [] if all are idle.

        A slot that is done stays so, and is returned again, until `begin` or `idle`.
        """
        self._use(evaluate)
        while True:
            self.advance(advance_all)
            done = np.flatnonzero(self.trees.slots["phase"] == DONE)
            if len(done) or not self.waiting:
                return done.tolist()
            self.ask(evaluate)

    def advance(self, kernel: Callable[..., int], *arguments: Any) -> None:
        """Move all searches on, with the answer if there is one, until each waits for an evaluation, is done or idle.

        kernel: `advance_all` of plyzero.search.mcts, or what does more; it gets `arguments` too.
        """
        slots = self.trees.slots
        while True:
            self.waiting = kernel(self.trees, *self._answer, *arguments)
            self._answer = self._no_answer
            if self.waiting == len(slots):
                return
            full = (slots["phase"] == FULL).any()
            if full:
                edges = self.trees.edges
                self.trees = self.trees._replace(edges=np.concatenate([edges, np.zeros_like(edges)], axis=1))
            asking = np.flatnonzero(slots["phase"] == RULES)
            if len(asking):
                self._read_plain_positions(asking)
            if not full and not len(asking):
                return

    def ask(self, evaluate: Evaluate) -> None:
        """Let `evaluate` answer all searches that wait; `advance` hands the answer out."""
        self._use(evaluate)
        if not self.waiting:
            return
        self.evaluations += self.waiting
        logits, wdl = evaluate(EvaluationBatch(self.trees.batch[: self.waiting], self._leaf_positions))
        self._answer = np.ascontiguousarray(logits, np.float32), np.ascontiguousarray(wdl, np.float32)

    def _use(self, evaluate: Evaluate) -> None:
        if evaluate != self._evaluate:  # equal, not the same: a method is a new object each time it is looked up
            self._evaluate = evaluate
            forget(self.trees.cache)

    def root(self, slot: int) -> SearchResult:
        """Return what the search in `slot` has found so far."""
        record, node = self.trees.slots[slot], self.trees.nodes[slot, 0]
        edges = self.trees.edges[slot, node["first_edge"] : node["first_edge"] + node["num_edges"]]
        proven = int(node["proven"])
        visits = max(1, int(node["visits"]))
        return SearchResult(
            actions=edges["action"].copy(),
            visits=edges["visits"].copy(),
            prior=np.exp(edges["logit"]),
            q=completed_q(edges, np.empty(len(edges))).astype(np.float32),
            value=float(node["value_sum"]) / visits if proven == UNPROVEN else float(proven),
            draw=float(node["draw_sum"]) / visits if proven == UNPROVEN else float(proven == PROVEN_DRAW),
            network_value=float(node["network_value"]),
            network_draw=float(node["network_draw"]),
            proven=proven,
            kind=int(record["kind"]),
            simulations=int(record["simulations"]),
            settings=self._settings,
        )

    def lines(self, slot: int) -> tuple[tuple[int, ...], ...]:
        """Return, for each legal action at the root, what the search expects to follow, itself first."""
        nodes, edges = self.trees.nodes[slot], self.trees.edges[slot]
        first = nodes[0]["first_edge"]
        return tuple(
            tuple(principal_variation(nodes, edges, e).tolist()) for e in range(first, first + nodes[0]["num_edges"])
        )

    def simulations(self) -> int:
        """Return how many simulations the searches have made so far, all together."""
        return int(self.trees.slots["simulations"].sum())

    def _read_plain_positions(self, asking: NDArray[np.intp]) -> None:
        """Make the positions that the slots `asking` are about to hang into their trees, and read them."""
        trees, slots = self.trees, self.trees.slots[asking]
        actions = trees.edges[asking, slots["leaf_edge"]]["action"]  # of a root, which has no edge, anything
        outcomes, players = [], []
        for slot, leaf, parent, action in zip(
            asking.tolist(), slots["leaf"].tolist(), slots["leaf_parent"].tolist(), actions.tolist(), strict=True
        ):
            positions = self._positions[slot]
            position = positions[0] if parent == NOTHING else positions[parent].play_unchecked(action)
            outcome = position.outcome()
            if outcome is None:
                positions[leaf] = position
                mask = trees.masks[slot]
                mask[:] = False
                mask[list(position.legal_actions())] = True
                trees.observations[slot] = position.observe()
                players.append(position.to_play)
            else:
                players.append(0)
            outcomes.append(outcome_code(outcome))
        trees.slots["outcome"][asking] = outcomes
        trees.slots["to_play"][asking] = players
        trees.slots["phase"][asking] = READ

    def _leaf_positions(self) -> list[Game]:
        waiting = np.flatnonzero(self.trees.slots["phase"] == EVALUATION)
        leaves = self.trees.slots["leaf"][waiting]
        if isinstance(self._start, CompiledGame):
            start, states = self._start, self.trees.states[waiting, leaves]
            return [start.with_state(state) for state in states]
        return [self._positions[slot][leaf] for slot, leaf in zip(waiting.tolist(), leaves.tolist(), strict=True)]


def _settings_record(settings: SearchSettings, to_play_offset: int) -> NDArray[np.void]:
    record = np.zeros(1, SETTINGS)
    for name in SETTINGS.names or ():
        record[name] = to_play_offset if name == "to_play_offset" else getattr(settings, name) or 0
    return record


def _rules_of(start: Game) -> tuple[Any, int, int]:
    """Return addresses of the rules, bytes of a state, and where in them `to_play` is: NOTHING for plain Python."""
    if isinstance(start, CompiledGame):
        assert start.State.fields is not None
        return addresses(start.rules), start.State.itemsize, int(start.State.fields["to_play"][1])
    return np.zeros(4, np.int64), 1, NOTHING
