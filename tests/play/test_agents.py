"""Players of one's own: found by name, and a player that fails loses the game with a reason and ends nothing."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.play.agents import Agent, AgentPlayer, ForfeitError
from plyzero.play.match import play_match
from plyzero.play.player import Forfeit, RandomPlayer
from plyzero.play.players import find_player
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from plyzero.testing import PlayerContract
from tests.helpers.cli import plyzero

TIC_TAC_TOE = load_game("tic-tac-toe")


class First(Agent):
    def __init__(self, last=False):
        if last not in (True, False):
            raise ValueError("expected last=True or last=False")
        self.last = last

    def choose(self, position):
        return position.legal_actions()[-1 if self.last else 0]


class Talks(First):
    def choose(self, position):
        print("thinking")
        return super().choose(position)


class Hangs(Agent):
    max_seconds = 0.05

    def choose(self, position):
        while True:
            pass


class Sleeps(Agent):
    max_seconds, woken = 0.05, Event()

    def choose(self, position):
        self.woken.wait()


class Unfinished(Agent):
    pass


def choosing(name: str, choose: Callable[[Agent, Game], object]) -> type[Agent]:
    return type(name, (Agent,), {"choose": choose})


Sampled = choosing("Sampled", lambda self, position: self.rng.choice(position.legal_actions()))
Raises = choosing("Raises", lambda self, position: 1 / 0)
Leaves = choosing("Leaves", lambda self, position: sys.exit(3))
Nowhere = choosing("Nowhere", lambda self, position: 9)
Nothing = choosing("Nothing", lambda self, position: None)
Yes = choosing("Yes", lambda self, position: True)


def evaluate(batch):
    raise AssertionError


def found(name: str, seed: int = 0) -> AgentPlayer:
    player = find_player(f"{__name__}:{name}", TIC_TAC_TOE, np.random.default_rng(seed))
    assert isinstance(player, AgentPlayer)
    return player


@pytest.mark.parametrize("name", ["First(last=True)", "Sampled"])
class TestAgents(PlayerContract):
    game = "tic-tac-toe"

    @pytest.fixture(autouse=True)
    def given(self, name: str) -> None:
        self.player = lambda rng: find_player(f"{__name__}:{name}", TIC_TAC_TOE, rng)


def test_an_agent_is_found_by_name_with_its_parameters():
    position = TIC_TAC_TOE.start
    assert found("First").choose_all([position, position.play(0)]) == [0, 1]
    assert found("First(last=True)").choose_all([position]) == [8]
    assert found("First(last=True)").name == f"{__name__}:First(last=True)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("First(last=2)", "cannot create .*:First.*: expected last=True or last=False"),
        ("First(lost=True)", "cannot create .*:First.*TypeError: .*lost"),
        ("First(last=", "expected parameters as in"),
        ("Unfinished", "cannot create .*:Unfinished: TypeError: .*choose"),
        ("evaluate(x=1)", "is not a subclass of plyzero.Agent, so it has no parameters"),
        ("None", "has no class or function 'None'"),
    ],
)
def test_an_agent_that_cannot_be_made_is_one_sentence(name: str, words: str):
    with pytest.raises(UserError, match=words):
        found(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Raises", r"ZeroDivisionError: division by zero \(test_agents.py, line \d+\)"),
        ("Leaves", "SystemExit: 3"),
        ("Nowhere", "expected one of the legal actions .*, got 9"),
        ("Nothing", "expected one of the legal actions .*, got None"),
        ("Yes", "expected one of the legal actions .*, got True"),
        ("Hangs", "no move after 0.05 s"),
    ],
)
def test_an_agent_that_fails_loses_the_game_and_the_match_goes_on(name: str, reason: str):
    agent, rng = found(name), np.random.default_rng(0)
    result = play_match(agent, RandomPlayer(rng), TIC_TAC_TOE.start, games=4, rng=rng)
    assert (result.wins, result.draws, result.losses, len(result.forfeits)) == (0, 0, 4, 4)
    assert all(re.match(f"{__name__}:{name} forfeits: {reason}", sentence) for sentence in result.forfeits)
    other = play_match(RandomPlayer(rng), agent, TIC_TAC_TOE.start, games=4, rng=rng)
    assert (other.wins, len(other.forfeits)) == (4, 4)
    with pytest.raises(ForfeitError, match=f"{__name__}:{name} forfeits"):
        agent.choose_all([TIC_TAC_TOE.start])


def test_an_agent_that_hangs_is_interrupted_or_not_asked_again():
    agent, asleep = found("Hangs"), found("Sleeps")
    assert isinstance(agent.choose_or_forfeit(TIC_TAC_TOE.start), Forfeit)
    assert not agent._last_thread.is_alive()
    for reason in ("no move after", "it is still busy with an earlier move"):
        assert reason in asleep.choose_or_forfeit(TIC_TAC_TOE.start).reason
    Sleeps.woken.set()
    asleep._last_thread.join()


def test_what_an_agent_prints_is_not_in_the_output(capsys: pytest.CaptureFixture[str]):
    assert found("Talks").choose_all([TIC_TAC_TOE.start]) == [0]
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "thinking\n")


def test_another_seed_gives_an_agent_other_random_numbers():
    positions = [TIC_TAC_TOE.start] * 30
    assert found("Sampled", 1).choose_all(positions) != found("Sampled", 2).choose_all(positions)


def test_a_match_names_the_reasons_of_forfeits(tmp_path: Path):
    (tmp_path / "my_agents.py").write_text("from tests.play.test_agents import Raises")
    match = ("match", "my_agents:Raises", "random", "--game", "tic-tac-toe", "--games", "4")
    done = plyzero(*match, cwd=tmp_path)
    assert done.returncode == 0
    assert "4 games were forfeited:\n4 x my_agents:Raises forfeits: ZeroDivisionError" in done.stdout
    done = plyzero(*match, "--json", cwd=tmp_path)
    assert '"losses": 4' in done.stdout
    assert done.stdout.count("ZeroDivisionError") == 4


def test_numbers_of_numpy_are_actions():
    for answer in (np.int64(4), np.int32(4), np.uint8(4)):
        resting = choosing("Resting", lambda self, position, answer=answer: answer)
        assert AgentPlayer("resting", resting()).choose_all([TIC_TAC_TOE.start]) == [4]
