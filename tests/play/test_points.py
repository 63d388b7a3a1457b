"""Points beside the score: in matches, in ladders, and where a budget ends a training."""

import numpy as np

from plyzero.kits.arena.entrants import Entrant
from plyzero.kits.arena.ladder import LINES, Limits, PairResult, open_ladder
from plyzero.play.agents import Agent, AgentPlayer
from plyzero.play.found_moves import root_info
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.players import Bot
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import Game
from tests.helpers.toys import Counted, Harvest, Relay

SPEC = GameSpec("tests.helpers.toys:Harvest", Harvest(8))


class Takes(Agent):
    """Takes the same number of points at every turn."""

    def __init__(self, points: int = 0):
        self.points = points

    def choose(self, position):
        return self.points


def played(first: int, second: int, start: Game = SPEC.start, games: int = 2, **options) -> MatchResult:
    """Return the result of players who take these numbers of points."""
    players = [AgentPlayer(name, Takes(points)) for name, points in (("a", first), ("b", second))]
    return play_match(*players, start, games=games, rng=np.random.default_rng(0), opening_plies=0, **options)


def test_a_match_reports_the_mean_points_of_the_first_player():
    games: list[PlayedGame] = []
    result = played(2, 0, games=4, on_game=games.append)
    assert (result.wins, result.leads, result.points) == (4, (8, 8, 8, 8), 8)
    assert "\npoints +8.00 per game" in result.report()
    assert result.as_json()["points"] == 8
    assert result.short.endswith(", +8.0 points")
    assert {game.as_json(SPEC, ("a", "b"))["score"] for game in games} == {8.0}
    assert played(0, 2).points == -8


def test_a_game_without_points_has_none():
    result = played(0, 0, Relay())
    assert result.points is None
    assert "points" not in result.as_json()
    assert "points" not in result.report() + str(result)


def test_a_forfeited_game_has_no_points():
    result = played(7, 0)
    assert (result.losses, result.points) == (2, None)


def test_a_ladder_reports_mean_points_and_reads_lines_without_them(tmp_path):
    entrants, file = [Entrant(name, name) for name in ("a", "b")], tmp_path / "l" / LINES
    result = PairResult(["x"], ["win", "loss"], [None, None], 0.1, [5.0, -2.0])
    with open_ladder(tmp_path / "l", SPEC, entrants) as ladder:
        ladder.play(lambda pairs: [(pair, result) for pair in pairs], Limits(4))
        players = {each["player"]: each["points"] for each in ladder.table()["players"]}
    assert players == {"a": 1.5, "b": -1.5}
    assert "points" in (tmp_path / "l" / "ratings.csv").read_text().splitlines()[0]
    leads = ', "leads": [5.0, -2.0]'
    assert leads in file.read_text()
    file.write_text(file.read_text().replace(leads, ""))
    with open_ladder(tmp_path / "l", SPEC, entrants) as ladder:
        assert len(ladder.lines) == 2
        assert [each["points"] for each in ladder.table()["players"]] == [None, None]
    relay = GameSpec("tests.helpers.toys:Relay", Relay(8))
    with open_ladder(tmp_path / "r", relay, entrants) as ladder:
        ladder.play(lambda pairs: [(pair, result._replace(leads=())) for pair in pairs], Limits(4))
        assert all("points" not in each for each in ladder.table()["players"])
    assert "leads" not in (tmp_path / "r" / LINES).read_text()


def test_analysis_has_the_lead_where_it_is_estimated():
    position = Harvest(8).play(2)
    for has_score in (True, False):
        bot = Bot("x", SPEC, Counted(8, has_score=has_score), simulations=0)
        info = root_info(position, bot.search([position])[0])
        assert ("scoreLead" in info) == has_score
        assert info.get("scoreLead", -2.0) == -2.0


def test_results_of_parts_of_a_match_are_joined():
    assert MatchResult(1, 0, 1, leads=(3.0, -1.0)).points == 1.0
    assert MatchResult(1, 0, 1).points is None
