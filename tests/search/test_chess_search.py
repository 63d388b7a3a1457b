"""Chess, as the search sees it: forced mates, stalemates, and positions that repeat along a path of the tree."""

import numpy as np
import pytest

from benchmarks.mates import Exact, Mate, find_mates, measure
from benchmarks.strength.solver import Distances
from plyzero.games.chess import Chess
from plyzero.games.connect_four import ConnectFour
from plyzero.play.search_player import SearchPlayer
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Outcome
from plyzero.search.evaluators import Evaluate, Evaluation, EvaluationBatch
from plyzero.search.slots import SearchSlots
from plyzero.search.storage import keep_subtree
from plyzero.search.tree import NO_NODE, PROVEN_DRAW, PROVEN_WIN
from plyzero.settings import SearchSettings
from tests.helpers import toys
from tests.helpers.searches import both_kinds, nodes_of, searched

CHESS = load_game("chess")
START = Chess()

MATES = {
    "k7/8/K7/4Q3/8/8/8/8 w - - 0 1": 1,  # 8 moves stalemate
    "k7/8/2K5/8/3Q4/8/8/8 w - - 0 1": 2,
    "k7/8/7Q/2K5/8/8/8/8 w - - 0 1": 2,
    "k7/2Q5/8/2K5/8/8/8/8 w - - 0 1": 3,  # 9 moves stalemate
    "k7/8/4K3/8/8/8/8/1Q6 w - - 0 1": 3,
}
"""Positions of a queen against a king, some of whose moves stalemate, and the moves to mate."""


def player(evaluate: Evaluate, simulations: int, kind: str = "gumbel", **settings: int) -> SearchPlayer:
    made = SearchSettings(algorithm=kind, **settings)
    return SearchPlayer("bot", CHESS, evaluate, simulations=simulations, settings=made)


def hashed(simulations: int, kind: str = "gumbel", **settings: int) -> SearchPlayer:
    """A player whose evaluator knows nothing of chess: its opinions are arbitrary, as those of random weights."""
    return player(toys.Hashed(START.num_actions), simulations, kind, **settings)


class Checks:
    """An evaluator that counts the pieces and likes moves that leave few replies."""

    VALUES = (1, 3, 3, 5, 9, 0)

    def __call__(self, batch: EvaluationBatch) -> Evaluation:
        pieces = batch.observations[:, :12].sum((2, 3)) @ np.array([*self.VALUES, *(-each for each in self.VALUES)])
        win = (1 + np.tanh(pieces / 5)) / 2
        logits = np.zeros((len(batch.observations), START.num_actions), np.float32)
        for row, position in zip(logits, batch.positions(), strict=True):
            for action in position.legal_actions():
                row[action] = -0.5 * len(position.play_unchecked(action).legal_actions())
        return Evaluation(logits, np.stack([win, 0 * win, 1 - win], axis=1).astype(np.float32))


# --- forced mates ---


@pytest.fixture(scope="module")
def exact() -> Exact:
    return Exact(START)


@both_kinds
def test_mates_in_1_2_and_3_are_found_without_knowledge_and_the_shortest_is_played(exact: Exact, kind: str):
    mates = find_mates(exact, counts={1: 3, 2: 3, 3: 3}, seed=1)
    assert [sum(each.moves == n for each in mates) for n in (1, 2, 3)] == [3, 3, 3]
    assert measure(exact, hashed(800, kind), mates) == ([True] * 9, [True] * 9, [True] * 9)


@pytest.mark.parametrize("fen", MATES)
def test_a_queen_mates_the_bare_king_and_does_not_stalemate_it(exact: Exact, fen: str):
    position = START.from_text(fen)
    ends = [position.play(action).outcome() for action in position.legal_actions()]
    assert Outcome(None) in ends or MATES[fen] > 1
    assert exact.distance(position, 3) == MATES[fen]
    assert measure(exact, hashed(800), [Mate(position, MATES[fen])]) == ([True], [True], [True])


def test_a_mate_in_one_that_the_tree_does_not_try_is_found():
    position = START.from_text("r1bqkbnr/1pppp1p1/n7/p4Q1p/8/2P2PP1/PP1PP2P/RNB1KBNR w KQkq - 0 7")
    (tree_alone,) = hashed(800, solver_nodes=0).search([position])
    assert tree_alone.visits[tree_alone.actions == position.parse_action("f5g6")] == 0
    (found,) = hashed(2).search([position])
    assert (found.proven, found.value, found.draw, found.plies_to_end) == (PROVEN_WIN, 1, 0, 1)
    assert position.play(found.best_action()).outcome() == Outcome(0)


def test_a_player_who_mates_too_slowly_or_not_at_all_is_counted_so(exact: Exact):
    class First:
        """Plays the first legal move."""

        def choose_all(self, positions):
            return [position.legal_actions()[0] for position in positions]

    in_one, in_two = (START.from_text(fen) for fen in [*MATES][:2])
    assert measure(exact, First(), [Mate(in_one, 1), Mate(in_two, 2)]) == ([False] * 2, [False] * 2, [False] * 2)

    class Slow(First):
        """Mates if it can at once, but begins with a move that does not."""

        moves = iter(["e5e7", "e7b7"])

        def choose_all(self, positions):
            return [position.parse_action(next(self.moves)) for position in positions]

    assert measure(exact, Slow(), [Mate(in_one, 1)]) == ([False], [True], [False])


def test_the_number_of_moves_is_that_of_another_solver():
    start = ConnectFour(rows=4, columns=4)
    other = Distances(start)
    mates = find_mates(Exact(start), counts={1: 5, 2: 5, 3: 5}, seed=1)
    assert len({str(each.position) for each in mates}) == len(mates) == 15
    for mate in mates:
        assert other.distance(mate.position, 9) == 2 * mate.moves - 1


def test_the_same_seed_gives_the_same_positions(exact: Exact):
    first, again, other = (find_mates(exact, counts={1: 3}, seed=seed) for seed in (1, 1, 2))
    texts = [[str(each.position) for each in mates] for mates in (first, again, other)]
    assert texts[0] == texts[1] != texts[2]


# --- draws by repetition, along the path ---

PERPETUAL = START.from_text("6k1/6p1/8/7Q/n7/n7/rr6/7K w - - 0 1")
"""White has a queen for two rooks and two knights, and is mated next, but checks forever from e8 and h5."""


CHECKS = "h5e8 g8h7 e8h5 h7g8"


@both_kinds
def test_a_player_who_is_lost_finds_perpetual_check(kind: str):
    for moves, error in (("", 0.2), (CHECKS, 0.1), (f"{CHECKS} h5e8 g8h7", 0.0)):
        position = toys.after(PERPETUAL, moves)
        (result,) = player(Checks(), 800, kind).search([position])
        assert result.network_value < -0.9
        assert position.action_name(result.best_action()) == ("e8h5" if moves.endswith("g8h7") else "h5e8")
        assert result.q[result.actions == result.best_action()] == pytest.approx(0, abs=error)


REPEATED = [
    ("k7/8/1K5Q/8/8/8/8/8 b - - 1 1", "a8b8 b6c5 b8a8", "c5b6", 2),
    ("k7/3K4/8/8/8/8/8/1Q6 b - - 1 1", "a8a7 d7e6 a7a8", "e6d7", 3),
    ("k7/7Q/2K5/8/8/8/8/8 b - - 1 1", "a8b8 c6d6 b8a8", "d6c6", 2),
]
"""A position, moves after which the fastest mate begins with one that repeats it, this move, and the moves to mate."""


@both_kinds
@pytest.mark.parametrize(("fen", "back", "best", "moves"), REPEATED)
def test_a_player_who_wins_does_not_play_the_third_occurrence(exact: Exact, fen, back, best, moves, kind: str):
    once, twice = (toys.after(START.from_text(fen), text) for text in (back, f"{back} {best} {back}"))
    assert once.fen().split()[0] == twice.fen().split()[0]
    assert exact.distance(once, 3) == moves
    assert exact.wins(toys.after(once, best), 0, 2 * moves - 2)
    assert toys.after(twice, best).outcome() == Outcome(None)
    for nodes in (0, 1_000_000):
        (result,) = player(Checks(), 800, kind, solver_nodes=nodes).search([twice])
        third = result.actions == twice.parse_action(best)
        assert result.q[third] in (0, pytest.approx(np.nan, nan_ok=True))
        assert result.best_action() != twice.parse_action(best)
        assert result.proven != PROVEN_DRAW


TWICE = "a1a4 h8h7 a4a1 h7h8 a1a4 h8h7 a4a3 h7h8 a3a2 h8h7 a2a3 h7h8"
ONCE = "a1a5 h8h7 a5a1 h7h8 a1a4 h8h7 a4a3 h7h8 a3a2 h8h7 a2a3 h7h8"
"""Moves with the same last four positions, after which a3a4 leads to a position that has occurred twice, or once."""


def rook_after(moves: str) -> Chess:
    return toys.after(START.from_text("7k/8/8/8/8/8/8/R3K3 w - - 0 1"), moves)


@both_kinds
def test_positions_that_look_alike_share_evaluations_but_not_the_end_of_the_game(kind: str):
    twice, once = rook_after(TWICE), rook_after(ONCE)
    assert np.array_equal(twice.observe(), once.observe())
    assert twice.key() != once.key()
    evaluate = toys.Hashed(START.num_actions)
    settings = SearchSettings(algorithm=kind, max_considered_actions=32)
    slots = SearchSlots(START, settings, slots=1, simulations=200, cache_bytes=1 << 22)
    for position in (once, twice, once):
        slots.begin(0, position, simulations=200)
        slots.run(evaluate)
        asked, found, alone = slots.evaluations, slots.result(0), searched(position, evaluate, 200, kind)
        place = found.actions.tolist().index(position.parse_action("a3a4"))
        assert (found.q[place] == 0) == (position is twice)
        if kind == "puct":
            assert np.array_equal(found.visits, alone.result(0).visits)
    assert asked == slots.evaluations < 3 * 200
    assert slots.trees.cache.state["hits"][0] > 100


@both_kinds
def test_ends_in_the_tree_are_those_of_the_path_from_the_root_also_after_it_was_kept(kind: str):
    position = rook_after(TWICE)
    slots = searched(position, toys.Hashed(START.num_actions), 400, kind, capacity=900)
    repetitions = check_ends(slots, position)
    below = slots.trees.edges[0, : slots.trees.nodes[0, 0]["num_edges"]]
    e = int(np.argmax(np.where(below["child"] == NO_NODE, -1, below["visits"])))
    following = position.play(int(below[e]["action"]))
    assert keep_subtree(slots.trees, 0, e, 400)
    assert 0 < check_ends(slots, following) < repetitions


def check_ends(slots: SearchSlots, position: Chess) -> int:
    """Check by the rules which edges of the tree in slot 0 end the game; return the number of those that repeat."""
    repetitions = 0
    for _, edges, each in nodes_of(slots, position):
        assert each.outcome() is None
        for edge in edges:
            if edge["visits"] and edge["child"] == NO_NODE:
                after = each.play_unchecked(int(edge["action"]))
                assert after.outcome() is not None
                assert edge["proven"] == after.outcome().value(each.to_play)
                repetitions += after.outcome() == Outcome(None) and int(after.record["clock"]) < 100
    return repetitions
