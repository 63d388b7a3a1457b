"""The task that shows how a bot plays: some games as records, films and texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plyzero.errors import UserError
from plyzero.files import write_file
from plyzero.kits.engines.game_record import Frame, GameRecord, frames_of, result_of
from plyzero.kits.experiments.tasks.evaluate import check_opponents, find_agent, find_opponent
from plyzero.kits.experiments.tasks.results import first_seen, write_text
from plyzero.play.match import PlayedGame, play_match
from plyzero.play.session import SIDES
from plyzero.rules.catalog import load_game
from plyzero.rules.notation import play_named


def examples(
    inputs: Path,
    out: Path,
    *,
    report: Callable[[str], None],
    game: str,
    opponents: Sequence[str],
    games: int,
    seed: int,
    simulations: int = 64,
) -> None:
    """Play `games` games against the opponents in turn, and write games.jsonl, game-01.gif, game-01.txt and so on.

    The bot has the first move in the first game, then sides alternate. With an even number of opponents each round
    begins with the other side, so that the bot plays both sides against each of them.

    opponents: players as in `plyzero match`.

    Raises UserError without an opponent or a game, and if the bot is missing.
    """
    from plyzero.kits.engines.film import make_film

    names = first_seen(opponents)
    check_examples(game=game, opponents=names, games=games, simulations=simulations)
    spec = load_game(game)
    agent = find_agent(inputs, spec, simulations=simulations)
    records: list[dict[str, Any]] = []
    for number in range(games):
        report(f"game {number + 1} of {games}")
        turn, place = divmod(number, len(names))
        rng = np.random.default_rng([seed, number])
        opponent = find_opponent(names[place], spec, rng, simulations=simulations)
        first = (agent, "agent")
        second = (opponent, names[place])
        if (turn + place) % 2:
            first, second = second, first
        played: list[PlayedGame] = []
        play_match(first[0], second[0], spec.start, games=1, rng=rng, on_game=played.append)
        record = played[0].as_json(spec, (first[1], second[1]))
        positions, moves = play_named(spec.start, record["moves"])
        replayed = GameRecord(positions, moves)
        frames = frames_of(replayed)
        result = _result(record, replayed)
        name = f"game-{number + 1:02d}"
        film = make_film(frames, result, kind="GIF", size=360, seconds=0.8)
        write_file(out / f"{name}.gif", film, replace=True)
        write_text(out / f"{name}.txt", _describe(record, frames, result))
        records.append(record)
    write_text(out / "games.jsonl", "".join(json.dumps(record) + "\n" for record in records))


def check_examples(*, game: str, opponents: Sequence[str], games: int, simulations: int, **_: object) -> None:
    """Raise UserError without an opponent or a game, and if there is no such opponent."""
    if not opponents or games < 1:
        raise UserError(f"expected an opponent and at least one game, got {len(opponents)} opponents and {games} games")
    check_opponents(opponents, load_game(game), simulations=simulations)


def _result(record: dict[str, Any], game: GameRecord) -> str:
    """Return the result of a game as a clause, also of one that was truncated or forfeited."""
    if record["end"] == "forfeit":
        loser = SIDES[1] if record["winner"] == SIDES[0] else SIDES[0]
        return f"the {loser} player forfeited"
    return "truncated, a draw" if record["end"] == "truncated" else result_of(game)


def _describe(record: dict[str, Any], frames: list[Frame], result: str) -> str:
    """Return a game as text: the players, each move with the position after it, and the result."""
    parts = [f"{record['game']}: {record['first']} (first) against {record['second']} (second)"]
    if record["opening_plies"]:
        parts[0] += f"; random moves at the start: {record['opening_plies']}"
    for number, frame in enumerate(frames):
        line = "start"
        if frame.by is not None:
            side = SIDES[frame.by]
            line = f"{number}. {side}, {record[side]}: {frame.move}"
        if frame.setup:
            line += f" · {frame.setup}"
        if frame.rolls:
            line += f" · roll {' '.join(frame.rolls)}"
        parts.append(f"{line}\n{frame.position}")
    return "\n\n".join([*parts, result]) + "\n"
