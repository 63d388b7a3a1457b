"""The state of a run: its files, its processes, and which process waits for what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from plyzero.errors import plain
from plyzero.files import Room, free_room
from plyzero.ops.accounts import Accounts, balance_accounts
from plyzero.ops.summary import describe_games, summarize
from plyzero.run.budget import describe_end
from plyzero.run.events import RATINGS, last_lines, parse_scores
from plyzero.run.metrics import TRAINER
from plyzero.run.models import list_models
from plyzero.run.view import Process, RunView
from plyzero.settings import StoreSettings


class ModelCounts(TypedDict):
    """The number of models, and the file name of the newest."""

    count: int
    newest: str | None


class Reported(TypedDict):
    """A warning, and its source: a process, the store or the disk."""

    who: str
    text: str


class Snapshot(TypedDict):
    """The state of a run; docs/formats.md lists the fields."""

    version: int
    run: str
    game: str
    summary: list[str]
    replay: Accounts
    problem: str | None
    warnings: list[Reported]
    workers: dict[str, int]  # running and ended
    models: ModelCounts
    rating: dict[str, object] | None
    waiting: str
    balance: dict[str, float] | None
    disk: dict[str, int]
    processes: list[dict[str, object]]


def snapshot(view: RunView) -> Snapshot:
    """Return the state of a run as a JSON object, with the processes as of the last refresh of `view`."""
    run, processes = view.run, view.processes()
    models = list_models(run.models)
    accounts, problem = balance_accounts(run, view.trainer)
    free, store = free_room(run.root), run.settings.store
    ratings = last_lines(run.metrics / RATINGS)
    waiting = describe_waiting(processes, unread=accounts["unread_games"] or 0)
    workers = _with_role(processes, "selfplay")
    running = [each for each in workers if each.is_alive]
    return {
        "version": 1,
        "run": str(run.root),
        "game": run.identity,
        "summary": [
            *summarize(
                run,
                trainer=view.trainer,
                ratings=[*filter(None, map(parse_scores, ratings))],
                made=accounts["full_positions"],
                waiting=waiting,
            )
        ],
        "replay": accounts,
        "problem": problem,
        "warnings": _warnings(processes, problem, accounts, free, store),
        "workers": {"running": len(running), "ended": len(workers) - len(running)},
        "models": {"count": len(models), "newest": str(models[0]) if models else None},
        "rating": next(iter(ratings[-1:]), None),
        "waiting": waiting,
        "balance": balance(processes, ratio=run.settings.trainer.replay_ratio),
        "disk": {"free_mb": free.bytes >> 20, "min_free_mb": store.min_free_mb, "keep_mb": store.keep_mb},
        "processes": [
            {**each.beat.fields, "name": each.name, "life": each.life, "silent_seconds": each.silent_seconds}
            for each in processes
        ],
    }


def _warnings(
    processes: Sequence[Process], problem: str | None, accounts: Accounts, free: Room, store: StoreSettings
) -> list[Reported]:
    said = []
    for each in processes:
        found = [each.beat.warning, each.beat.thread_error]
        if each.is_alive or each.name == TRAINER:  # of another process that has ended, they are over
            found += [each.beat.read_error, each.beat.write_error]
        said += [(each.name, text) for text in found if text is not None]
    if problem:
        said.append(("store", problem))
    if quarantined := accounts["quarantined"]:
        games = f", with {accounts['quarantined_games']} games in segments" if accounts["quarantined_games"] else ""
        advice = "plyzero replay restore brings back those that are valid"
        said.append(("store", f"{quarantined} damaged files are in quarantine/{games}; {advice}"))
    if free.bytes < store.min_free_mb << 20 or free.files < store.min_free_files:
        text = f"the volume is almost full: {free.bytes >> 20} MB and room for {free.files} files left; workers pause"
        said.append(("disk", text))
    return [{"who": plain(who, 80), "text": plain(text, 600)} for who, text in said]


def describe_waiting(processes: Sequence[Process], *, unread: int = 0) -> str:
    """Return which processes wait, and for what. unread: sealed games that the trainer has not read."""
    for each in _with_role(processes, "trainer"):
        if each.beat.done:
            return describe_end(each.beat)
    alive = [each for each in processes if each.is_alive]
    trainers, workers = _with_role(alive, "trainer"), _with_role(alive, "selfplay")
    stalled = [each.name for each in alive if each.life == "stalled"]
    if not alive:
        return "nothing is running"
    if stalled:
        return f"{', '.join(stalled)}: no new heartbeat, the process may be stuck; restart it if this lasts"
    if paused := [each for each in workers if each.beat.state.startswith("paused")]:
        return f"{len(paused)} of {len(workers)} workers are {paused[0].beat.state}"
    if trainers and trainers[0].beat.state.startswith("waiting"):
        for_what = "the workers" if workers else "workers, but none is running"
        late = f"; {unread} recorded games are not read yet" if unread else ""
        games = f"; {under_way}" if (under_way := describe_games([each.beat for each in workers])) else ""
        return f"the trainer waits for {for_what}: {trainers[0].beat.state}{late}{games}"
    if waiting := [each for each in workers if each.beat.state.startswith("waiting")]:
        missing = "" if trainers else ", but no trainer is running; start one"
        return f"{len(waiting)} of {len(workers)} workers are {waiting[0].beat.state}{missing}"
    return "no process is waiting for another"


def balance(processes: Sequence[Process], *, ratio: float) -> dict[str, float] | None:
    """Return how well workers and trainer are balanced, None until the rates of both have been measured.

    made_per_second, wanted_per_second: full-search positions per second that the workers generate, and that the trainer
    could use at this replay `ratio`, each while it does not wait. suitable_workers: the number of such workers that
    keeps the trainer busy.
    """
    alive = [each for each in processes if each.life == "ok"]
    trained = sum(each.beat.trained_per_second for each in _with_role(alive, TRAINER))
    rates = [each.beat.full_positions_per_second for each in _with_role(alive, "selfplay")]
    made = sum(rates)
    if not trained or not made:
        return None
    wanted = trained / ratio
    suitable = max(1, math.ceil(wanted / made * len(rates) - 0.05))
    return {"made_per_second": round(made, 1), "wanted_per_second": round(wanted, 1), "suitable_workers": suitable}


def describe_surplus(found: Mapping[str, float], workers: int) -> str:
    """Return that so many workers are more than the trainer can use, and how many would do, by the `balance`."""
    made, wanted, suitable = (round(found[key]) for key in ("made_per_second", "wanted_per_second", "suitable_workers"))
    return (
        f"{workers} workers make {made} positions/s, and this trainer can use {wanted}: {suitable} such workers would "
        "do; stop the others, raise selfplay.simulations or lower trainer.replay_ratio"
    )


def _with_role(processes: Sequence[Process], role: str) -> list[Process]:
    return [each for each in processes if each.beat.role == role]
