"""Ladders: the schedule, what survives a kill, who is who, and what is refused."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from plyzero import Agent
from plyzero.errors import UserError
from plyzero.kits.arena import pair_player
from plyzero.kits.arena.entrants import Entrant, find_entrants
from plyzero.kits.arena.ladder import LINES, LOCK, TABLE, Ladder, Limits, Pair, PairResult, open_ladder
from plyzero.kits.arena.pair_player import PairPlayer, Processes
from plyzero.play.scores import MatchResult
from plyzero.rules.catalog import load_game
from plyzero.run.models import publish_model
from plyzero.trainer.export import untrained
from tests.helpers.cli import plyzero, refused
from tests.helpers.runs import small_run
from tests.helpers.surroundings import wait_until

TIC_TAC_TOE = load_game("tic-tac-toe")
ELO = {"weak": -200.0, "mcts:200": 0.0, "good": 150.0, "strong": 400.0}
ENTRANTS = [Entrant(name, name) for name in ELO]


def result_of(pair: Pair) -> PairResult:
    """A pair of games between players of known strength; a function of its names."""
    rng = random.Random(repr(pair))
    p = 1 / (1 + 10 ** ((ELO[pair.b] - ELO[pair.a]) / 400))
    results = ["draw" if rng.random() < 0.2 else "win" if rng.random() < p else "loss" for _ in range(2)]
    return PairResult([str(rng.random())], results, [None, None], 0.1)


def play_pairs(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, PairResult]]:
    for pair in reversed(pairs):  # processes finish in any order
        yield pair, result_of(pair)


class KilledError(Exception):
    pass


def played_until(pairs_left: int):
    """Play, and end in the middle of the pair of games after so many."""
    left = [pairs_left]

    def play(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, PairResult]]:
        for pair in pairs:
            if not left[0]:
                raise KilledError
            left[0] -= 1
            yield pair, result_of(pair)

    return play


def run_ladder(directory: Path, limits: Limits, play=play_pairs, *, entrants=ENTRANTS, game=TIC_TAC_TOE) -> Ladder:
    with open_ladder(directory, game, entrants) as ladder:
        ladder.play(play, limits)
    return ladder


def table_of(directory: Path) -> bytes:
    return (directory / TABLE).read_bytes()


def test_a_ladder_rates_its_players_with_the_anchor_at_0(tmp_path: Path):
    ladder = run_ladder(tmp_path / "l", Limits(1200))
    table = ladder.write_table(check=True)
    assert json.loads(table_of(tmp_path / "l")) == table
    assert table["anchor"] == "mcts:200"
    assert table["games"] == 1200
    for player in table["players"]:
        assert player["low"] - 30 <= ELO[player["player"]] * 1.25 <= player["high"] + 130  # draws stretch the scale
        assert player["low"] <= player["elo"] <= player["high"]
        assert player["bootstrap_error"] == pytest.approx((player["high"] - player["low"]) / 2, rel=0.25)
    assert [player["elo"] for player in table["players"]] == sorted(player["elo"] for player in table["players"])
    assert sum(player["games"] for player in table["players"]) == 2400
    assert sum(pair["games"] for pair in table["pairs"]) == 1200
    assert ladder.rate().elo[1] == 0
    rows = (tmp_path / "l" / "ratings.csv").read_text().splitlines()
    assert rows[0] == "player,identity,elo,low,high,games,score,forfeits"
    assert rows[2].startswith("mcts:200,mcts:200,0.0,0.0,0.0,")


def test_a_killed_ladder_ends_with_the_table_of_one_that_was_not_killed(tmp_path: Path):
    limits = Limits(4 * 32 + 10)
    run_ladder(tmp_path / "undisturbed", limits)
    kills = 0
    for pairs in (0, 1, 5, 26, 3, 20, 7, 1000):
        try:
            run_ladder(tmp_path / "killed", limits, played_until(pairs))
        except KilledError:
            kills += 1
            with (tmp_path / "killed" / LINES).open("ab") as file:
                file.write(b'{"version": 1, "round": 0, "a": "good", "b": "mc')
    assert kills == 7
    assert table_of(tmp_path / "killed") == table_of(tmp_path / "undisturbed")
    lines = (tmp_path / "killed" / LINES).read_bytes().splitlines()
    assert len(lines) == kills + limits.games // 2


def test_a_finished_ladder_plays_nothing_and_goes_on_with_more_games_or_players(tmp_path: Path):
    table = run_ladder(tmp_path / "l", Limits(100)) and table_of(tmp_path / "l")
    run_ladder(tmp_path / "l", Limits(100), played_until(0))
    assert table_of(tmp_path / "l") == table
    run_ladder(tmp_path / "l", Limits(300))
    run_ladder(tmp_path / "at once", Limits(300))
    assert table_of(tmp_path / "l") == table_of(tmp_path / "at once")
    ELO["new"] = 0.0
    more = run_ladder(tmp_path / "l", Limits(400), entrants=[*ENTRANTS, Entrant("new", "new")])
    assert len(more.lines) == 200
    assert more.rate().pairs.games[4].sum() > 40  # who has no games plays most of the new ones
    fewer = run_ladder(tmp_path / "l", Limits(2), entrants=ENTRANTS[:2])
    assert {(pair.a, pair.b) for pair in fewer.lines} == {("mcts:200", "weak")}


def test_a_ladder_stops_when_every_interval_is_narrow_enough(tmp_path: Path):
    ladder = run_ladder(tmp_path / "l", Limits(100_000, within=60))
    assert ladder.rate().error.max() <= 60
    assert len(ladder.lines) % 32 == 0
    before = max(line.round for line in ladder.lines.values())
    assert ladder.rate(before=before).error.max() > 60


def test_what_is_no_finished_pair_of_games_is_passed_over(tmp_path: Path):
    run_ladder(tmp_path / "l", Limits(20))
    path = tmp_path / "l" / LINES
    good = json.loads(path.read_bytes().splitlines()[0])
    changes = {"a": 5, "number": "x", "round": -1, "results": ["win"], "forfeits": [1, 2], "opening": None}
    wrong = [json.dumps(good | {key: value}) for key, value in changes.items()]
    path.write_text("\n".join([*wrong, "junk", "[]", "{}", ""]))
    with open_ladder(tmp_path / "l", TIC_TAC_TOE, ENTRANTS) as ladder:
        assert ladder.lines == {}
    path.write_text(json.dumps(good))  # cut before its end
    with open_ladder(tmp_path / "l", TIC_TAC_TOE, ENTRANTS) as ladder:
        assert len(ladder.lines) == 1
        assert path.read_bytes().endswith(b"\n")


def test_two_ladders_on_one_directory_refuse_each_other(tmp_path: Path):
    with (
        open_ladder(tmp_path / "l", TIC_TAC_TOE, ENTRANTS),
        pytest.raises(UserError, match=r"another process plays the ladder in .*; wait for it, or stop it first"),
        open_ladder(tmp_path / "l", TIC_TAC_TOE, ENTRANTS),
    ):
        pass
    with open_ladder(tmp_path / "l", TIC_TAC_TOE, ENTRANTS):
        assert (tmp_path / "l" / LOCK).exists()


def test_a_forfeit_counts_against_its_loser_with_the_reason(tmp_path: Path):
    def play(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, PairResult]]:
        for pair in pairs:
            loses = "loss" if pair.a == "good" else "win"
            fails = "good" in pair[:2] and pair.number == 0
            yield pair, PairResult([], [loses, "draw"], ["it hangs" if fails else None, None], 0.1)

    ladder = run_ladder(tmp_path / "l", Limits(200), play)
    players = {player["player"]: player for player in ladder.table()["players"]}
    opponents = np.count_nonzero(ladder.rate().pairs.games[2])
    assert (players["good"]["forfeits"], players["good"]["reasons"]) == (opponents, {"it hangs": opponents})
    assert sum(player["forfeits"] for player in players.values()) == opponents


class Lost(Agent):
    def choose(self, position):
        raise OSError("no\x1b[2J")


def test_a_failing_agent_forfeits_and_its_reason_cannot_control_a_terminal(tmp_path: Path):
    name = f"{__name__}:Lost"
    entrants = find_entrants(["random", name], TIC_TAC_TOE, simulations=4)
    pair = Pair(*sorted(entrant.identity for entrant in entrants), 0)
    result = PairPlayer(TIC_TAC_TOE, entrants, models=tmp_path, seed=0, opening_plies=1).play(pair)
    assert result.results == ["win", "win"]  # of random
    assert all(reason.startswith(f"{name} forfeits: OSError: no?[2J") for reason in result.forfeits)


def test_a_pair_of_games_is_a_function_of_its_names(tmp_path: Path):
    game = load_game("pig")  # dice
    entrants = find_entrants(["random", "mcts:2"], game, simulations=4)
    made = [PairPlayer(game, entrants, models=tmp_path, seed=seed, opening_plies=2) for seed in (0, 0, 1)]
    pairs = [Pair("mcts:2", "random", number) for number in range(4)]
    same, again, other = ([player.play(pair)[:3] for pair in pairs] for player in made)
    assert same == again
    assert same != other
    assert made[0].play(pairs[2])[:3] == same[2]
    assert len({tuple(opening) for opening, _, _ in same}) > 1


def test_results_are_those_of_the_first_named_player_by_who_moves_first(monkeypatch, tmp_path: Path):
    entrants = find_entrants(["random", "mcts:2"], TIC_TAC_TOE, simulations=4)
    seen = []

    def play_match(first, second, start, **options) -> MatchResult:
        seen.append((first.name, second.name, options["openings"], options["rng"].integers(1 << 60)))
        return MatchResult(1, 0, 0, 1)  # who moves first wins

    monkeypatch.setattr(pair_player, "play_match", play_match)
    player = PairPlayer(TIC_TAC_TOE, entrants, models=tmp_path, seed=0, opening_plies=1)
    assert player.play(Pair("mcts:2", "random", 0)).results == ["win", "loss"]
    assert [names[:2] for names in seen] == [("mcts:2", "random"), ("random", "mcts:2")]
    assert seen[0][2:] == seen[1][2:]  # the same opening and the same dice


def test_players_are_named_by_what_cannot_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = small_run(tmp_path / "r", "tic-tac-toe")
    name = publish_model(run.models, untrained(run), fence=1, step=12)
    (tmp_path / "copy.onnx").write_bytes((run.models / str(name)).read_bytes())
    (tmp_path / "my_player.py").write_text("def evaluate(batch): raise RuntimeError('a mistake')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    names = ["random", "mcts:020", "r", "bot:1", "my_player:evaluate"]
    found = find_entrants(names, TIC_TAC_TOE, simulations=8, search={"c_puct": 2.0})
    assert [entrant.name for entrant in found] == names
    random_player, mcts, of_run, level, own = (entrant.identity for entrant in found)
    assert (random_player, mcts) == ("random", "mcts:20")
    assert of_run == f"{name.digest} with 8 simulations, c_puct=2.0"
    assert level.endswith(" with 0 simulations, temperature 8")
    assert own.startswith("my_player:evaluate ")
    assert own.endswith(" with 8 simulations, c_puct=2.0")
    for same in (["r", "copy.onnx"], ["r", "r@12"]):
        with pytest.raises(UserError, match=f"{same[0]} and {same[1]} are the same player; give each player once"):
            find_entrants(same, TIC_TAC_TOE, simulations=8)
    with open_ladder(tmp_path / "l", TIC_TAC_TOE, found) as ladder:
        pass
    (run.models / str(name)).unlink()  # a run removes its older models
    player = PairPlayer(TIC_TAC_TOE, found, models=ladder.directory / "models", seed=0, opening_plies=1)
    assert player.play(Pair(*sorted((of_run, level)), 0))[:3] == player.play(Pair(*sorted((of_run, level)), 0))[:3]
    with (
        Processes(1, TIC_TAC_TOE, found, models=ladder.directory / "models", seed=0, opening_plies=1) as processes,
        pytest.raises(
            pair_player.PlayError, match=r"be played: RuntimeError: a mistake \(my_player.py, line 1, in evaluate\)"
        ),
    ):
        list(processes.play([Pair(*sorted(("random", own)), 0)]))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ladder of tic-tac-toe, one of another game, and things that are none."""
    place = tmp_path_factory.mktemp("places")
    run_ladder(place / "ladder", Limits(4))
    run_ladder(place / "pig", Limits(4), game=load_game("pig"))
    (place / "full").mkdir()
    (place / "full" / "note.txt").write_text("mine")
    (place / "broken").mkdir()
    (place / "broken" / TABLE).write_text("[]")
    return place


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--out D/new", "expected at least two players, such as --players random mcts:200, got none"),
        ("--out D/new --players random mcts:5 random", "random is there twice; give each player once"),
        ("--out D/new --players mcts:5 mcts:05", "mcts:5 and mcts:05 are the same player; give each player once"),
        ("--out D/full --players random mcts:5", "D/full is not a ladder: it has no ladder.json"),
        ("--out D/broken --players random mcts:5", "D/broken/ladder.json is not the table of a ladder"),
        ("--out D/ladder --players random mcts:5 --seed 3", "is a ladder of seed 0, not 3"),
        ("--out D/pig --players random mcts:5", "is a ladder of game 'pig v1', not 'tic-tac-toe v1'; give --out anot"),
        ("--out D/new --players random mcts:5 --games 5", "expected an even number of --games"),
        ("--out D/new --players random mcts:5 --anchor bot", "expected --anchor to be one of the players random, "),
        ("--out D/new --players random mcts:5 --opening-plies 9", "expected --opening-plies from 0 to 8, got 9"),
        ("--out D/new --players random mcts:5 --plot x.txt", "expected a file that ends in .png, .svg or .pdf"),
        ("--players random mcts:5", "expected --out DIR, the directory of the ladder, or --run RUN, whose models it"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(places: Path, arguments: str, sentence: str):
    given = arguments.replace("D/", f"{places}/").split()
    before = {path: path.is_file() and path.read_bytes() for path in places.rglob("*")}
    assert sentence.replace("D/", f"{places}/") in refused("ladder", "tic-tac-toe", *given)
    assert {path: path.is_file() and path.read_bytes() for path in places.rglob("*")} == before


COMMAND = ["ladder", "tic-tac-toe", "--players", "random", "mcts:20", "mcts:100", "--games", "96", "--json"]


@pytest.mark.slow
def test_a_ladder_killed_by_sigkill_ends_with_the_table_of_an_undisturbed_one(tmp_path: Path):
    command = [sys.executable, "-m", "plyzero", *COMMAND, "--processes", "2", "--out"]
    undisturbed = subprocess.run([*command, tmp_path / "a"], capture_output=True, check=True)
    lines = tmp_path / "b" / LINES
    for kill in range(2):
        process = subprocess.Popen([*command, tmp_path / "b"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and (lines.read_bytes().count(b"\n") if lines.exists() else 0) <= 20 * kill:
            time.sleep(0.005)
        workers = children_of(process.pid)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert workers
        wait_until(lambda workers=workers: not any(Path(f"/proc/{pid}").exists() for pid in workers), 60)
    killed = subprocess.run([*command, tmp_path / "b"], capture_output=True, check=True)
    assert killed.stdout == undisturbed.stdout
    assert table_of(tmp_path / "b") == table_of(tmp_path / "a")


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
def test_ctrl_c_ends_with_the_table_of_what_is_there(tmp_path: Path):
    command = [sys.executable, "-m", "plyzero", *COMMAND[:-3], "--games", "100000", "--out", tmp_path / "l"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process, lines = subprocess.Popen(command, **pipes, text=True, start_new_session=True), tmp_path / "l" / LINES
    while not lines.exists() or lines.read_bytes().count(b"\n") < 10:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    shown, errors = process.communicate()
    assert process.returncode == 130
    assert "mcts:100" in shown
    assert "Traceback" not in errors


@pytest.mark.slow
def test_the_command_prints_the_table_and_draws_the_plot(tmp_path: Path):
    pytest.importorskip("matplotlib")
    done = plyzero(*COMMAND[:-1], "--processes", "1", "--out", f"{tmp_path}/l", "--plot", f"{tmp_path}/l.svg")
    assert done.returncode == 0, done.stderr
    assert "tic-tac-toe v1: 96 games; 0 Elo is random\n" in done.stdout
    assert "Resampling the openings gives intervals " in done.stdout
    assert b"<svg" in (tmp_path / "l.svg").read_bytes()


def test_a_plot_without_matplotlib_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install -e '.[plot]'" in refused(*COMMAND, "--out", f"{tmp_path}/l", "--plot", "x.png")
