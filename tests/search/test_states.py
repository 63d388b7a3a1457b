"""Where the positions of a tree and its edges are: whatever is kept, games are the same."""

import itertools

import pytest

from games.connect_four import ConnectFour
from games.go import Go
from games.pig import Pig
from plyzero.settings import Settings
from selfplay.games_in_play import GamesInPlay
from tests.helpers.toys import Hashed


def played(start, algorithm: str) -> list[list[bytes]]:
    """Return all fields of the records of some games, by their seed."""
    search = {"algorithm": algorithm}
    selfplay = {"parallel_games": 3, "simulations": 24, "fast_simulations": 8, "reuse_trees": algorithm == "puct"}
    games, found = GamesInPlay(start, Settings(search=search, selfplay=selfplay), seeds=itertools.count()), {}
    while not all(seed in found for seed in range(6)):
        for game in games.run(Hashed(start.num_actions)):
            parts = (game.games, game.positions, game.moves, game.observations)
            found[int(game.games["seed"][0])] = [part.tobytes() for part in parts]
    return [found[seed] for seed in range(6)]


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
@pytest.mark.parametrize("start", [ConnectFour(), Go(size=3), Pig()], ids=["connect-four", "go", "pig"])
def test_games_are_the_same_if_positions_are_not_kept_but_played_again(start, algorithm, monkeypatch):
    expected = played(start, algorithm)
    monkeypatch.setattr("plyzero.search.states.MOST_BYTES", 0)
    assert GamesInPlay(start, Settings(), seeds=itertools.count()).search.trees.states.shape[1] == 3
    assert played(start, algorithm) == expected


def test_games_are_the_same_if_there_is_not_room_for_all_edges_at_first(monkeypatch):
    start = Go(size=7)
    expected = played(start, "gumbel")
    monkeypatch.setattr("plyzero.search.empty_trees.MOST_RESERVED", 0)
    assert GamesInPlay(start, Settings(), seeds=itertools.count()).search.trees.edges.shape[1] < 50 * 65
    assert played(start, "gumbel") == expected
