"""Other programs as players: what they are sent, and what happens when they fail in every way."""

import gc
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plyzero.errors import UserError
from plyzero.kits.engines.programs.protocols import Limits, Protocol, Text, Uci
from plyzero.play.clock import NO_LIMIT, Clock
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.player import Player, RandomPlayer
from plyzero.play.players import find_player
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.rules.game import Game
from tests.helpers.guests import GAME, GUEST, Guests
from tests.helpers.setups import Heaps

FAULTS = {
    ("text", "dies"): "it ended with exit code 1: no memory left for the tables",
    ("gtp", "dies"): "it ended with exit code 1: no memory left for the tables",
    ("uci", "dies"): "it ended with exit code 1: no memory left for the tables",
    ("text", "is killed"): "it was ended by SIGKILL",
    ("text", "needs a terminal"): "it ended with exit code 1: standard input is not a terminal",
    ("text", "closes its output"): "it has closed its standard output",
    ("text", "floods a line"): "it prints a line of more than 64 KiB",
    ("gtp", "floods lines"): "it prints more than 16 MiB without an answer",
    ("text", "floods lines"): "it prints more than 16 MiB without an answer",
    ("text", "prints bytes"): "which is not a legal move",
    ("text", "plays illegal moves"): "which is not a legal move",
    ("gtp", "plays illegal moves"): "which is not a legal move",
    ("uci", "plays illegal moves"): "which is not a legal move",
    ("gtp", "plays an unknown cell"): "it plays 'z99', which is not a legal move",
    ("gtp", "refuses moves"): "it refuses the legal move",
    ("gtp", "fails to move"): "it answers genmove with 'out of ideas'",
    ("uci", "has no move"): "it plays '(none)', which is not a legal move",
}
"""A fault of a program -> the explanation of its loss."""

LATE = (("text", "never answers"), ("gtp", "never answers"), ("uci", "never answers"), ("text", "ignores the end"))
REFUSED = {
    ("gtp", "needs a terminal"): "it ended with exit code 1: standard input is not a terminal",
    ("gtp", "has another size"): "it does not play tic-tac-toe: it answers boardsize 3 with 'unacceptable size'",
    ("gtp", "never begins"): "no answer to list_commands after 1 s",
    ("uci", "never begins"): "no uciok after 1 s",
    ("uci", "speaks nonsense"): "no uciok after 1 s",
}
"""A fault of a program at its start -> the reason why it is refused."""

HARMLESS = (
    ("text", "talks"),
    ("gtp", "talks"),
    ("uci", "talks"),
    ("text", "floods its errors"),
    ("text", "has children"),
)


@pytest.fixture
def guests(tmp_path: Path) -> Iterator[Guests]:
    """Yield the programs of a test, of which none may be left."""
    found = Guests(tmp_path / "log")
    yield found
    gc.collect()
    assert found.processes() == []


def play(player: Player, games: int = 4) -> MatchResult:
    rng = np.random.default_rng(1)
    return play_match(RandomPlayer(rng), player, GAME.start, games=games, rng=rng, opening_plies=0)


@pytest.mark.parametrize("protocol", ["text", "gtp", "uci"])
def test_a_program_plays_whole_games(guests: Guests, protocol: str):
    result = play(guests.player(protocol), games=6)
    assert (result.games, result.forfeits) == (6, ())


@pytest.mark.parametrize(("protocol", "fault"), HARMLESS)
def test_what_a_program_prints_besides_its_moves_is_ignored(guests: Guests, protocol: str, fault: str):
    assert play(guests.player(protocol, fault)).forfeits == ()


@pytest.mark.parametrize(("protocol", "fault"), FAULTS)
def test_a_program_that_fails_loses_that_game_and_is_started_again(guests: Guests, protocol: str, fault: str):
    result = play(guests.player(protocol, fault))
    assert result.games == 4
    assert result.wins == len(result.forfeits) == 4
    for reason in result.forfeits:
        assert reason.startswith(f"{protocol}:")
        assert FAULTS[protocol, fault] in reason


@pytest.mark.parametrize(("protocol", "fault"), LATE)
def test_a_program_that_never_answers_loses_when_its_time_is_over(guests: Guests, protocol: str, fault: str):
    player = guests.player(protocol, fault)
    player._settings = player._settings._replace(seconds=0.2)  # its start may take longer on a loaded machine
    result = play(player, games=2)
    assert [reason.rpartition(": ")[2] for reason in result.forfeits] == ["no move after 0.2 s"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of another process")
def test_a_program_that_takes_too_much_memory_loses(guests: Guests):
    result = play(guests.player("text", "takes memory", "memory=0.5"), games=2)
    assert all("MemoryError" in reason for reason in result.forfeits)
    assert len(result.forfeits) == 2


@pytest.mark.parametrize(("protocol", "fault"), REFUSED)
def test_a_program_that_cannot_begin_is_refused(guests: Guests, protocol: str, fault: str):
    with pytest.raises(UserError) as refused:
        guests.player(protocol, fault, "seconds=1" if fault in ("never begins", "speaks nonsense") else "")
    assert REFUSED[protocol, fault] in str(refused.value)


def test_a_program_that_resigns_has_not_failed(guests: Guests):
    games: list[PlayedGame] = []
    rng = np.random.default_rng(1)
    player = guests.player("gtp", "resigns")
    result = play_match(RandomPlayer(rng), player, GAME.start, games=2, rng=rng, opening_plies=0, on_game=games.append)
    assert (result.wins, result.forfeits) == (2, ())
    assert {game.as_json(GAME, ("a", "b"))["end"] for game in games} == {"resign"}


# --- what programs are sent ---


def test_gtp_sends_the_size_the_moves_and_the_time(guests: Guests):
    player = guests.player("gtp", clock=Clock.parse("60s"))
    after = GAME.start.play(4)
    assert player.choices([after], [[4]]) == [0]
    assert guests.sent()[:3] == ["list_commands", "boardsize 3", "clear_board"]
    assert guests.sent()[3:] == ["play black b2", "time_settings 60 0 0", "time_left white 60 0", "genmove white"]


def test_gtp_sends_the_time_for_a_move_in_whole_seconds(guests: Guests):
    player = guests.player("gtp", clock=Clock(per_move=0.3))
    assert player.choices([GAME.start], [[]]) == [0]
    assert guests.sent()[-2:] == ["time_settings 0 1 1", "genmove black"]


@pytest.mark.parametrize(
    ("settings", "limits", "go"),
    [
        ("", {}, "go movetime 1000"),
        ("", {"simulations": 500}, "go nodes 500"),
        ("nodes=300", {"simulations": 500}, "go nodes 300"),
        ("", {"clock": Clock(per_move=0.5), "simulations": NO_LIMIT}, "go movetime 500"),
        ("", {"clock": Clock(60, 2), "simulations": NO_LIMIT}, "go wtime 60000 btime 60000 winc 2000 binc 2000"),
    ],
)
def test_uci_sends_options_moves_and_limits(guests: Guests, settings: str, limits: dict[str, Any], go: str):
    player = guests.player("uci", settings=f"{settings} Style=calm", **limits)
    assert player.choices([GAME.start.play(4)], [[4]]) == [0]
    begun = ["uci", "setoption name Style value calm", "isready"]
    assert guests.sent() == [*begun, "ucinewgame", "isready", "position startpos moves b2", go]


def test_a_game_that_goes_on_is_not_sent_again(guests: Guests):
    player = guests.player("text")
    position, moves = GAME.start, list[int]()
    for own in (8, 7):  # the program has the first cells
        for move in (own, None):
            moves.append(player.choices([position], [moves])[0] if move is None else move)
            position = position.play(moves[-1])
    assert moves == [8, 0, 7, 1]
    assert guests.sent() == ["new", "c3", "go", "b3", "go"]
    player.choices([GAME.start], [[]])  # another game
    assert guests.sent()[5:] == ["new", "go"]


def test_games_at_the_same_time_have_a_program_each(guests: Guests):
    player = guests.player("text")
    player.games_at_once = 3
    starts = [GAME.start.play(move) for move in (0, 1, 2)]
    assert player.choices(starts, [[0], [1], [2]]) == [1, 0, 0]
    assert len(guests.processes()) == 3
    del player


def test_a_position_to_begin_with_is_sent_as_the_moves_that_lead_there(guests: Guests):
    game = GAME.starting_at("b2 c3")
    player = find_player(guests.name("text"), game, np.random.default_rng(0))
    assert player.choices([game.start], [[]]) == [0]
    assert guests.sent()[-4:] == ["new", "b2", "c3", "go"]


def test_uci_sends_a_position_to_begin_with_as_fen(tmp_path: Path):
    game = load_game("breakthrough")
    after = game.start.play(game.start.legal_actions()[0])
    begun = game.starting_at(str(after))
    sent: list[str] = []
    protocol = Uci(Recorded(sent), begun, {}, 1)
    protocol.begin()
    protocol.new_game()
    protocol.ask(begun.start, Limits(None, None, 1))
    assert f"position fen {after.fen()}" in sent


class HeapsWithFen(Heaps):
    def fen(self) -> str:
        return f"heaps {self.key()}"


@pytest.mark.parametrize(
    ("protocol", "cls", "expected"),
    [
        (Text, Heaps, ["new", "7", "go"]),
        (Uci, Heaps, ["position startpos moves 7", "go movetime 1000"]),
        (Uci, HeapsWithFen, ["position fen {fen}", "go movetime 1000"]),
    ],
)
def test_a_set_up_is_sent_as_fen_or_by_its_number(protocol: type[Protocol], cls: type[Game], expected: list[str]):
    sent: list[str] = []
    game = load_game(cls)
    told = protocol(Recorded(sent), game, {}, 1)
    told.begin()
    told.new_game()
    told.tell(game.start, 7)
    after = game.start.play(7)
    told.ask(after, Limits(None, None, 1))
    assert sent[-len(expected) :] == [line.format(fen=after.fen()) for line in expected]


@pytest.mark.parametrize("game", ["chess", "chess(chess960=True)"])
def test_a_program_is_told_to_play_chess960_by_its_option(game: str):
    sent: list[str] = []
    Uci(Recorded(sent, "option name UCI_Chess960 type check default false"), load_game(game), {}, 1).begin()
    assert ("setoption name UCI_Chess960 value true" in sent) is ("960" in game)


class Recorded:
    """A UCI program that has one option, and answers what is expected."""

    def __init__(
        self, sent: list[str], option: str = "option name UCI_Variant type combo var chess var breakthrough"
    ) -> None:
        self.sent, self.option, self.has_said = sent, option, False

    def send(self, line: str) -> None:
        self.sent.append(line)

    def forget_output(self) -> None:
        pass

    def read(self, seconds: float, waited_for: str) -> str:
        is_new = waited_for == "uciok" and len(self.sent) == 1 and not self.has_said
        self.has_said = True
        return self.option if is_new else waited_for


# --- names ---


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gtp:no-such-program --mode gtp", "there is no program 'no-such-program'; install it, or give its path"),
        ("gtp:", "expected a program, such as gtp:gnugo --mode gtp, got ''"),
        ("uci:seconds=1", "expected a program"),
        ("text:'cat", "No closing quotation, in the command"),
        ("text:seconds=often cat", "expected seconds= with a positive number, got 'often'"),
        ("text:memory=0 cat", "expected memory= with a positive number, got '0'"),
        ("gtp:hash=3 cat", "expected one of seconds=, memory=, nodes=, coordinates= or the program, got 'hash'="),
    ],
)
def test_a_name_without_a_program_is_refused(name: str, sentence: str):
    with pytest.raises(UserError) as refused:
        find_player(name, GAME, np.random.default_rng(0))
    assert sentence in str(refused.value)


def test_an_option_that_the_program_does_not_have_is_refused(guests: Guests):
    with pytest.raises(UserError, match="it has no option 'Hash'; it has style"):
        guests.player("uci", settings="Hash=16")


def test_a_uci_program_that_does_not_know_the_variant_is_refused(guests: Guests):
    with pytest.raises(UserError, match="it does not play breakthrough: it has no UCI_Variant breakthrough"):
        find_player(guests.name("uci"), load_game("breakthrough"), np.random.default_rng(0))


def test_a_program_that_changes_is_another_player(tmp_path: Path):
    script = tmp_path / "own.py"
    script.write_text(GUEST.read_text())
    name = f"text:{sys.executable} {script} text"
    first = find_player(name, GAME, np.random.default_rng(0)).identity
    script.write_text(GUEST.read_text().replace("CELLS if", "CELLS[::-1] if"))
    assert find_player(name, GAME, np.random.default_rng(0)).identity != first


@pytest.mark.slow
def test_both_ends_of_each_protocol_play_each_other_with_dice_and_points():
    for name in ("pig", "othello(size=6)", "connect-four"):
        game = load_game(name)
        for protocol in ("gtp", "uci", "text"):
            command = shlex.join([sys.executable, "-m", "plyzero", protocol, name, "--player", "random"])
            player = find_player(f"{protocol}:{command}", game, np.random.default_rng(0))
            rng = np.random.default_rng(0)
            result = play_match(RandomPlayer(rng), player, game.start, games=2, rng=rng)
            assert (result.games, result.forfeits) == (2, ())
