"""A run as JSON for its dashboard: what it waits for, its curves, its processes, its games."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from plyzero.kits.arena.entrants import Entrant
from plyzero.kits.arena.ladder import LADDER, TABLE, Limits, PairResult, open_ladder
from plyzero.kits.web import curves, run_games, run_state
from plyzero.kits.web.opponents import Opponents
from plyzero.kits.web.run_games import NewestGames
from plyzero.kits.web.run_state import REFRESH_SECONDS, Dashboard
from plyzero.kits.web.server import make_app
from plyzero.play.scores import MatchResult, wilson_interval
from plyzero.rules.notation import play_named
from plyzero.run.directory import Run, read_run
from plyzero.run.metrics import Heartbeat, append_line
from plyzero.run.models import publish_model
from plyzero.run.segments import read_segment
from plyzero.run.view import UNLOCKED_SECONDS
from tests.helpers.clock import Clock
from tests.helpers.fuzz import ODD, TRAINER, WORKER
from tests.helpers.hostile import put
from tests.helpers.runs import play_segment, small_run
from tests.helpers.web import get, serving


def learned(run: Run, step: int, *, fence: int = 1, **fields: Any) -> None:
    """The line of a published model."""
    line = {"step": step, "games": 10 * step, "seconds": step / 10, "policy_loss": 0.5, "replay_ratio": 7.9, **fields}
    name = f"{fence:06d}-{step:09d}-0123abcd.onnx"
    append_line(run.metrics / f"trainer-{fence:06d}.jsonl", {**line, "model": name})


def measured(run: Run, step: int, **scores: list[int]) -> None:
    append_line(run.metrics / "rating.jsonl", {"model": f"000001-{step:09d}-0123abcd.onnx", "scores": scores})


def beat(run: Run, name: str, **fields: Any) -> None:
    role = "trainer" if name == "trainer" else "selfplay"
    Heartbeat(run.workers / f"{name}.json").beat({"role": role, "state": "playing", **fields}, force=True)


def process(state: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in state["processes"] if each["name"] == name)


def test_a_run_says_what_it_waits_for_until_there_is_a_model(run: Run, clock: Clock):
    view = Dashboard(run, clock=clock)

    def waits_for() -> str | None:
        clock.now += REFRESH_SECONDS
        return view.state()["waits_for"]

    assert waits_for().startswith("nothing has been learned yet and nothing is running; plyzero train starts")
    beat(run, "w0.0123abcd")
    assert waits_for() == "the curves begin with the first model, which waits for games: 0 of 200 positions"
    play_segment(run, full=200)
    beat(run, "w0.0123abcd", positions=1)
    assert waits_for().startswith("the curves begin with the first model, which learns from 2")
    learned(run, 10)
    assert waits_for() is None


@pytest.mark.parametrize(
    ("workers", "suitable", "words"),
    [
        (2, 3, "The trainer could use more games: another worker would keep it busy."),
        (2, 5, "The trainer could use more games: 3 more workers would keep it busy."),
        (2, 2, "The trainer is busy."),
        (4, 2, "The trainer is busy: 2 of 4 workers would be enough."),
        (2, None, None),
    ],
)
def test_one_sentence_says_what_limits_a_run(workers: int, suitable: int | None, words: str | None):
    balance = None if suitable is None else {"suitable_workers": suitable}
    found: Any = {"balance": balance, "workers": {"running": workers}, "waiting": "no process is waiting"}
    assert run_state.describe_limit(found) == words


def test_a_run_that_does_not_exist_yet_is_waited_for_and_found(tmp_path: Path, clock: Clock):
    view = Dashboard(tmp_path / "r", clock=clock)
    assert view.state()["waits_for"].endswith("is not a run directory: it has no run.toml; make one with plyzero init")
    assert (view.series(0)["next"], view.games(50)["games"]) == (0, [])
    small_run(tmp_path / "r")
    clock.now += REFRESH_SECONDS
    assert view.state()["game"] == "tic-tac-toe v1"


def test_a_volume_that_is_gone_is_a_sentence(run: Run, clock: Clock):
    view = Dashboard(run, clock=clock)
    shutil.rmtree(run.root)
    assert view.state()["waits_for"] == f"{run.root} cannot be read at the moment: No such file or directory"


def test_a_curve_has_every_line_once_and_what_is_new_after_a_number(run: Run, clock: Clock):
    view = Dashboard(run, clock=clock)
    for step in (10, 20):
        learned(run, step, value_loss=None)
    first = view.series(0)
    expected = {"step": [10, 20], "games": [100, 200], "policy_loss": [0.5, 0.5], "value_loss": [None, None]}
    assert first["learning"].items() >= expected.items()
    learned(run, 30)
    learned(run, 25, fence=2)  # a trainer that has begun again at an earlier state
    clock.now += REFRESH_SECONDS
    more = view.series(first["next"])
    assert more["learning"]["step"] == [30, 25]
    assert more["reader"] == first["reader"]
    assert view.series(more["next"])["learning"]["step"] == []
    assert view.series(0)["learning"]["step"] == [10, 20, 30, 25]
    assert Dashboard(run, clock=clock).series(0)["reader"] != first["reader"]


def test_a_line_is_read_once_it_is_complete(run: Run, clock: Clock):
    view, path = Dashboard(run, clock=clock), run.metrics / "trainer-000001.jsonl"
    learned(run, 10)
    learned(run, 20)
    text = path.read_bytes()
    for end, steps in ((len(text) // 2 + 5, [10]), (len(text) - 1, [10]), (len(text), [10, 20])):
        path.write_bytes(text[:end])
        clock.now += REFRESH_SECONDS
        assert view.series(0)["learning"]["step"] == steps


def test_a_long_curve_is_thinned_and_keeps_its_ends(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(curves, "MAX_POINTS", 7)
    for step in range(1, 101):
        learned(run, step)
    table = Dashboard(run).series(0)["learning"]
    assert table["step"] == [1, 17, 34, 51, 67, 83, 100]
    assert {len(column) for column in table.values()} == {7}


def test_scores_have_the_intervals_of_a_match_and_the_games_of_their_model(run: Run):
    learned(run, 10)
    measured(run, 10, random=[13, 2, 5], mcts=[6, 0, 0])
    measured(run, 11, random=[0, 0, 6])
    ratings = Dashboard(run).series(0)["ratings"]
    random, low_high = ratings["random"], wilson_interval(0.7, 20)
    assert (random["step"], random["games"], random["played"]) == ([10, 11], [100, None], [20, 6])
    assert random["score"] == [0.7, 0]
    assert [random["score_low"][0], random["score_high"][0]] == pytest.approx(low_high, abs=1e-5)
    for row, counts in enumerate(((13, 2, 5), (0, 0, 6))):
        expected = MatchResult(*counts, distinct=1).elo()
        assert [random[name][row] for name in ("elo", "elo_low", "elo_high")] == pytest.approx(expected, abs=1e-4)


def test_the_lines_of_a_worker_become_rates_between_them(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    def line(seconds: float, positions: int, network: float, number: int = 0) -> None:
        counts = {"seconds": seconds, "positions": positions, "network_seconds": network, "waited_seconds": 6.0}
        path = run.metrics / f"worker-w{number}.00000001.jsonl"
        append_line(path, {"role": "selfplay", "model": "000001-000000012-0123abcd.onnx", **counts})
        os.utime(path, (clock.now, clock.now))

    view = Dashboard(run, clock=clock)
    line(60.0, 600, 15.0)
    line(60.0, 600, 15.0)  # no time has passed: no rate
    first = view.series(0)
    line(120.0, 1800, 60.0)
    clock.now += REFRESH_SECONDS
    more = view.series(first["next"])["workers"]["w0.00000001"]
    assert (more["step"], more["positions_per_second"], more["network_share"]) == ([12], [20], [0.75])
    table = view.series(0)["workers"]["w0.00000001"]
    assert (table["positions_per_second"], table["network_share"]) == ([10, 20], [0.25, 0.75])
    assert table["waited_share"] == [0.1, 0]
    monkeypatch.setattr(curves, "MAX_WORKERS", 2)
    for number in (1, 2):
        clock.now += REFRESH_SECONDS
        line(60.0, 600, 15.0, number)
    assert [*Dashboard(run, clock=clock).series(0)["workers"]] == ["w1.00000001", "w2.00000001"]


def test_the_curves_of_many_living_workers_are_those_of_the_same_ones_at_each_look(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    asked = Mock(wraps=curves.modified_at)
    monkeypatch.setattr(curves, "modified_at", asked)
    monkeypatch.setattr(curves, "MAX_WORKERS", 2)
    view = Dashboard(run, clock=clock)
    for number in range(3):
        beat(run, f"w{number}.00000001")
    for newest in (2, 0, 1, 2):
        append_line(run.metrics / f"worker-w{newest}.00000001.jsonl", {"seconds": 60.0, "positions": 600})
    for _ in range(2):
        assert [*view.series(0)["workers"]] == ["w0.00000001", "w1.00000001"]
        clock.now += REFRESH_SECONDS
    assert {path.name for (path,), _ in asked.call_args_list} == {TABLE}  # the time of a file is a call


def test_a_ladder_is_a_curve_of_checkpoints_and_levels_of_the_others(run: Run, clock: Clock):
    view = Dashboard(run, clock=clock)
    assert view.series(0)["ladder"] is None
    learned(run, 50, time=1000.5)
    players = [Entrant("random", "random"), Entrant("step 50", "a", step=50), Entrant("step 70", "b", step=70)]
    result = PairResult([], ["win", "draw"], [None] * 2, 1.0)
    with open_ladder(run.root / LADDER, run.game, players) as ladder:
        ladder.play(lambda pairs: [(pair, result) for pair in pairs], Limits(60))
        clock.now += REFRESH_SECONDS
        table, found = ladder.table(), view.series(0)["ladder"]
    assert (found["anchor"], found["games"]) == ("random", 60)
    elo = [player["elo"] for player in table["players"][1:]]
    expected = {"step": [50, 70], "elo": elo, "time": [1000.5, None], "games": [500, None]}
    assert found["checkpoints"].items() >= expected.items()  # the trainer's line of step 70 is missing
    assert found["others"]["random"]["played"] == table["players"][0]["games"]
    (run.root / LADDER / TABLE).write_text('{"players": 3}')
    os.utime(run.root / LADDER / TABLE, (1, 1))
    clock.now += REFRESH_SECONDS
    assert view.series(0)["ladder"] is None


def test_files_with_odd_values_make_json_that_a_browser_reads(run: Run, clock: Clock):
    for value in ODD:
        for key in ("step", "games", "warning", "policy_loss", "model"):
            append_line(run.metrics / "trainer-000001.jsonl", {"step": 1, "games": 1, key: value})
        append_line(run.metrics / "rating.jsonl", {"model": value, "scores": {"random": [1, 0, 0]}})
        name = "000001-000000001-0123abcd.onnx"
        for scores in (value, {"random": value}, {"\ud800": [value, 1, 2]}, {"\ud800": [1, 1, 2]}):
            append_line(run.metrics / "rating.jsonl", {"model": name, "scores": scores})
    for key in (*WORKER, "positions", "seconds", "network_seconds", "write_error"):
        for value in ODD:
            put(run.workers, "w0.00000000.json", {**WORKER, key: value})
            put(run.workers, "trainer.json", {**TRAINER, "seconds": 5, key: value})
            view = Dashboard(run, clock=clock)
            for found in (view.state(), view.series(0)):
                json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    assert view.series(0)["ratings"]["?"]["played"][0] == 4


def test_a_worker_shows_its_rates_and_how_old_its_model_is(run: Run, clock: Clock):
    first, _ = (publish_model(run.models, b"x", fence=1, step=step) for step in (12, 30))
    counts = {"model": str(first), "seconds": 100.0, "positions": 5000, "evaluations": 20_000, "network_seconds": 40.0}
    heart = Heartbeat(run.workers / "w0.0123abcd.json")
    heart.beat({"role": "selfplay", "state": "playing", **counts}, force=True)
    view = Dashboard(run, clock=clock)
    shown = process(view.state(), "w0.0123abcd")
    assert (shown["positions_per_second"], shown["network_share"]) == (50, 0.4)  # since its start
    assert (shown["model_step"], shown["steps_behind"], shown["life"]) == (12, 18, "ok")
    for i in range(1, 4):
        clock.now += REFRESH_SECONDS
        grown = {key: counts[key] + i * each for key, each in (("positions", 20), ("network_seconds", 1.5))}
        heart.beat({"role": "selfplay", "state": "playing", **counts, **grown}, force=True)
        state = view.state()
    shown = process(state, "w0.0123abcd")
    assert (shown["positions_per_second"], shown["network_share"]) == (10, 0.75)  # while it was observed
    assert state["positions_per_second"] == 10


def test_a_worker_that_is_killed_is_gone_and_no_longer_counts(run: Run, clock: Clock):
    beat(run, "w0.0123abcd", seconds=10.0, positions=100)
    view = Dashboard(run, clock=clock)
    assert view.state()["positions_per_second"] == 10
    clock.now += UNLOCKED_SECONDS  # it holds no lock
    state = view.state()
    assert (process(state, "w0.0123abcd")["life"], state["positions_per_second"], state["ended"]) == ("gone", 0, 1)


def test_the_trainer_and_the_living_are_listed_first_and_few_of_the_dead(run: Run, clock: Clock):
    for number in range(25):
        put(run.workers, f"a{number:02d}.0000000{number % 10}.json", {**WORKER, "state": "stopped"})
    beat(run, "w0.0123abcd")
    beat(run, "trainer")
    names = [each["name"] for each in Dashboard(run, clock=clock).state()["processes"]]
    assert names[:2] == ["trainer", "w0.0123abcd"]
    assert len(names) == 2 + 20


def test_what_is_wrong_now_and_what_was_wrong_before_is_told(tmp_path: Path, clock: Clock):
    run = small_run(tmp_path / "r", "tic-tac-toe", f"store.min_free_mb={1 << 40}")
    learned(run, 10, warning="the network does not learn: 3 models")
    learned(run, 20, warning="all 400 games look alike")
    learned(run, 30, warning="the network does not learn: 4 models")
    learned(run, 40)
    beat(run, "trainer", warning="all 500 games look alike", read_error="no such segment")
    beat(run, "w0.0123abcd", write_error="No space left on device")
    state = Dashboard(run, clock=clock).state()
    *said, (_, last) = [(each["who"], each["text"]) for each in state["warnings"]][:4]
    assert said[:2] == [("trainer", "all 500 games look alike"), ("trainer", "no such segment")]
    assert said[2] == ("w0.0123abcd", "No space left on device")
    assert last.startswith("the volume is almost full: ")
    assert state["earlier_warnings"] == [{"text": "the network does not learn: 4 models", "step": 30}]


@pytest.mark.parametrize(("beats_at", "expected"), [(None, 5 + 2), (3.5, 5 + 3.5), (0.5, 5 + 2 + 0.5)])
def test_the_time_of_a_run_is_that_of_all_starts_of_its_trainer(run: Run, clock: Clock, beats_at, expected: float):
    for fence, seconds in ((1, 2.0), (1, 5.0), (2, 2.0)):
        learned(run, 10, fence=fence, seconds=seconds)
    if beats_at:
        beat(run, "trainer", seconds=beats_at)
    assert Dashboard(run, clock=clock).state()["seconds"] == expected


def test_answers_stand_for_a_while_and_are_then_made_anew(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    snapshot = Mock(wraps=run_state.snapshot)
    monkeypatch.setattr(run_state, "snapshot", snapshot)
    view = Dashboard(run, clock=clock)
    for _ in range(5):
        view.state()
        view.series(0)
    assert snapshot.call_count == 1
    clock.now += REFRESH_SECONDS
    view.state()
    assert snapshot.call_count == 2


def test_the_newest_games_come_first_and_replay_to_their_winners(run: Run):
    assert NewestGames(run).newest(50)["note"] == "No game is sealed yet."
    for sequence in range(2):
        play_segment(run, full=20, sequence=sequence)
    older, newer = sorted(run.segments.iterdir())
    for path, sealed in ((older, 100.0), (newer, 200.0)):
        os.utime(path, (sealed, sealed))
    every = NewestGames(run, clock=lambda: 260.0).newest(200)
    found = NewestGames(read_run(run.root), clock=lambda: 260.0).newest(7)  # whose rules are imported
    assert (found["newest_seconds"], found["note"], found["games"]) == (60.0, None, every["games"][:7])
    assert len(every["games"]) > 14
    for game in every["games"]:
        positions, _ = play_named(run.game.start, game["moves"])
        assert game["winner"] == {None: "draw", 0: "first", 1: "second"}[positions[-1].outcome().winner]
        assert game["players"] == [position.to_play for position in positions[:-1]]
        assert len(game["values"]) == len(game["moves"])


def test_a_segment_is_read_once_and_forgotten_with_the_file(run: Run, monkeypatch: pytest.MonkeyPatch):
    read = Mock(wraps=run_games.read_segment)
    monkeypatch.setattr(run_games, "read_segment", read)
    path = play_segment(run, full=20)
    games = NewestGames(run)
    assert len(games.newest(5)["games"]) == len(games.newest(5)["games"]) == 5
    assert [each.args[0] for each in read.call_args_list] == [path]
    path.unlink()
    assert games.newest(5)["games"] == []


def test_the_newest_games_of_a_large_store_are_found_among_few_segments(run: Run, monkeypatch: pytest.MonkeyPatch):
    asked = Mock(wraps=run_games.modified_at)
    monkeypatch.setattr(run_games, "modified_at", asked)
    monkeypatch.setattr(run_games, "CANDIDATES", 3)
    paths = [play_segment(run, full=4, sequence=sequence) for sequence in range(6)]
    for path in paths:
        os.utime(path, (100, 100))
    os.utime(paths[4], (200, 200))
    games = NewestGames(run)
    newest = games.newest(1)
    assert sorted(path.name for (path,), _ in asked.call_args_list) == sorted(path.name for path in paths[3:])
    ids = read_segment(paths[4], run.game, run_id=run.id).games["id"]
    assert newest["games"][0]["id"] == f"{ids[-1]:016x}"


def test_a_damaged_segment_is_named_and_hides_no_other(run: Run):
    play_segment(run, full=20)
    damaged = play_segment(run, full=20, sequence=1)
    damaged.write_bytes(b"x")
    found = NewestGames(run).newest(50)
    assert found["games"]
    assert found["note"].startswith(f"{damaged.name} cannot be read")


def test_games_whose_rules_are_not_here_are_a_sentence(run: Run):
    play_segment(run, full=20)
    text = (run.root / "run.toml").read_text()
    (run.root / "run.toml").write_text(text.replace('game = "tic-tac-toe"', 'game = "nowhere:Game"'))
    found = NewestGames(read_run(run.root)).newest(50)
    assert (found["games"], "nowhere" in found["note"]) == ([], True)


def test_while_games_are_read_nobody_else_waits(run: Run, monkeypatch: pytest.MonkeyPatch):
    play_segment(run, full=20)
    games, said, read_segment = NewestGames(run), [], run_games.read_segment

    def ask_meanwhile(*given: Any, **more: Any) -> Any:
        said.append(other.submit(games.newest, 5).result(60)["note"])
        return read_segment(*given, **more)

    monkeypatch.setattr(run_games, "read_segment", ask_meanwhile)
    with ThreadPoolExecutor(1) as other:
        assert len(games.newest(5)["games"]) == 5
    assert said == ["The newest games are being read."]


def test_the_addresses_answer_and_refuse_what_is_no_number(run: Run):
    learned(run, 10)
    play_segment(run, full=20)
    with serving(make_app(run.game, Opponents(run.game), run=run)) as address:
        assert get(address, "/api/run/state")[1]["replay"]["segments"] == 1
        assert get(address, "/api/run/series")[1]["learning"]["step"] == [10]
        assert get(address, "/api/run/series", since=1)[1]["learning"]["step"] == []
        assert len(get(address, "/api/run/games", newest=3)[1]["games"]) == 3
        for name, count in ("since", "-1"), ("since", "x"), ("since", "٣"), ("newest", "201"), ("newest", "9" * 50):
            status, answer = get(address, f"/api/run/{'series' if name == 'since' else 'games'}", **{name: count})
            assert (status, answer["error"].startswith("expected ")) == (400, True)
        with pytest.raises(HTTPError, match="405"):
            urlopen(Request(f"{address}/api/run/state", method="POST"), timeout=60)
