"""Recorded games as JSON objects, which any program can read; and games from JSON lines, checked by the rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plyzero.errors import plain, shown
from plyzero.lines import MAX_LINE, parse_object
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import is_chance, replay_game, seed_of_setup
from plyzero.rules.counter_rng import WORD
from plyzero.rules.game import DRAW, ONGOING, Game, outcome_code
from plyzero.rules.notation import action_names, play_named
from plyzero.run.records import BY_RULE, GAME, MOVE, POSITION, RESIGNED, TRUNCATED, UNKNOWN_SCORE, Games, score_of

VERSION: Final = 1
"""Format version of the objects; docs/formats.md lists the fields."""

WINNERS: Final = {DRAW: "draw", ONGOING: None, 0: "first", 1: "second"}
"""Outcome code -> the field `winner`."""

ENDS: Final = {BY_RULE: "rule", TRUNCATED: "truncated", RESIGNED: "resign"}
"""The `end` of a record -> the field `end`; a draw that the rules do not give was adjudicated."""

UNPROVEN: Final = 2
"""The `proven` of every position: UNPROVEN of plyzero.search.tree."""

Column = NDArray[np.bool_ | np.number]
"""A number for every ply."""


def games_to_json(games: Games, start: Game) -> Iterator[dict[str, Any]]:
    """Yield a JSON object per game; `start` is the initial position of the game."""
    for one in games:
        (game,) = one.games
        positions = one.positions
        moves: list[int] = []
        actions = positions["action"].tolist()
        for action, (_, rolls) in zip([*actions, None], replay_game(start, game, actions), strict=True):
            moves += rolls if action is None else [*rolls, action]
        score, luck = {}, {}
        if start.max_score:
            score = {"score": None if game["score"] == UNKNOWN_SCORE else float(game["score"])}
        if one.luck is not None:
            luck = {"luck": [round(float(value), 4) for value in one.luck]}
        is_adjudicated = (game["end"], game["winner"]) == (RESIGNED, DRAW)
        yield {
            "version": VERSION,
            "id": f"{game['id']:016x}",
            "moves": action_names(start, tuple(moves)),
            "winner": WINNERS[int(game["winner"])],
            **score,
            "end": "adjudicated" if is_adjudicated else ENDS[int(game["end"])],
            "opening_plies": int(game["opening_plies"]),
            "players": positions["to_play"].tolist(),
            "values": [round(float(value), 4) for value in positions["root_value"]],
            "full": positions["full"].tolist(),
            "models": positions["model_step"].tolist(),
            **luck,
        }


class Fault(NamedTuple):
    """The number of a line that is not a finished game, from 1 on, and what is wrong with it."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True)
class FoundGame:
    """A game that was found in a file, and is not parsed yet.

    line:   the number of its first line, from 1 on.
    fields: returns its fields, which docs/formats.md lists. Raises ValueError with the reason if it has none.
    text:   its bytes, if its id stands in them.
    title:  what people call it, such as its players and its year; "" if the file does not say.
    """

    line: int
    fields: Callable[[], dict[str, object]]
    text: bytes = b""
    title: str = ""


def named_players(first: str, second: str) -> dict[str, object]:
    """Return the fields of the players with these names; "" and "?" are unknown. Nothing if both are."""
    known = {side: name or "?" for side, name in (("first", first), ("second", second))}
    return dict(known) if set(known.values()) != {"?"} else {}


def json_games(lines: Iterable[bytes], first: int = 1) -> Iterator[FoundGame]:
    """Yield the game of every line that is not blank; a saved game may be one object on many lines.

    first: the number of the first line.
    """
    numbered = ((number, line) for number, line in enumerate(lines, first) if line.strip())
    for number, line in numbered:
        text = line
        if line.strip() == b"{":
            parts = [line]
            size = 0
            for _, further in numbered:
                parts.append(further)
                size += len(further)
                if size > MAX_LINE:
                    break
            text = b"".join(parts)
        yield FoundGame(number, partial(parse_object, text), text)


def import_games(games: Iterable[FoundGame], game: GameSpec) -> Iterator[Games | Fault]:
    """Yield the records of every game that was found, or its fault.

    A game has `moves`, the names of the moves, and the result as `winner` or `result`. Other fields of `replay export`
    are recorded if they are there. A position is recorded as if a search had visited the played move once, without a
    network.
    """
    for each in games:
        try:
            yield _import_game(each.fields(), game)
        except ValueError as error:
            yield Fault(each.line, plain(str(error), 300))


def _import_game(found: dict[str, object], game: GameSpec) -> Games:
    """Return the records of the game with these fields. Raises ValueError with what is wrong."""
    if found.get("game", game.identity) != game.identity:
        raise ValueError(f"a game of {shown(found['game'])}, not of {game.identity}")
    if "start" in found:
        raise ValueError("the game begins at another position than the initial one, which the records cannot hold")
    moves = found.get("moves")
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        raise ValueError("expected moves, a list of names")
    line_of_play, actions = play_named(game.start, moves)
    outcome = line_of_play[-1].outcome()
    winner = outcome_code(outcome)
    decisions = [at for at in range(len(actions)) if not is_chance(line_of_play[at])]
    winner, end = _result(found, len(moves), winner, is_long=len(decisions) >= game.start.max_plies)
    if not decisions:
        raise ValueError("the game has no moves")
    positions = np.zeros(len(decisions), POSITION)
    played = [line_of_play[at] for at in decisions]
    positions["action"] = [actions[at] for at in decisions]
    positions["to_play"] = [position.to_play for position in played]
    positions["proven"] = UNPROVEN
    legal = [sorted(position.legal_actions()) for position in played]
    positions["num_legal"] = [len(each) for each in legal]

    opening = _integer(found, "opening_plies", most=len(played))
    chosen = np.arange(len(played)) >= opening
    positions["search"][chosen] = 1  # PUCT: its policy is the visits, and this move has all of them
    positions["simulations"] = 1
    positions["full"] = _per_ply(found, "full", chosen, most=chosen)
    positions["root_value"] = _per_ply(found, "values", np.zeros(len(played)), least=-1)
    positions["model_step"] = _per_ply(found, "models", np.zeros(len(played)), most=2**32 - 1)
    positions["model_fence"] = positions["model_step"] > 0
    _per_ply(found, "players", positions["to_play"], least=positions["to_play"], most=positions["to_play"])

    table = np.zeros(sum(map(len, legal)), MOVE)
    table["action"] = np.concatenate(legal)
    table["visits"] = table["action"] == np.repeat(positions["action"], positions["num_legal"])
    table["prior"] = np.repeat(1 / positions["num_legal"], positions["num_legal"])
    table["q"] = np.nan
    score = score_of(outcome if end == BY_RULE else None, game.start)
    identity, seed = _identity(found), 0
    if game.start.awaits_setup:
        seed = seed_of_setup(actions[0], game.start.setups, identity & WORD)
    record = (identity, len(played), winner, end, seed, opening, score)
    observations = [np.asarray(position.observe(), position.observation_dtype) for position in played]
    return Games(np.array([record], GAME), positions, table, np.stack(observations))


def _result(found: dict[str, object], moves: int, winner: int, *, is_long: bool) -> tuple[int, int]:
    """Return the winner and the end of a game as records have them: if it was resigned or adjudicated, as is given.

    moves:   the number of its moves.
    winner:  the code of the outcome by the rules.
    is_long: whether self-play would have truncated a game of this length.

    Raises ValueError if the game is not over, or if its result is not the one that the rules give. One that was
    adjudicated may have another result than by the rules: its players may have agreed which stones are dead.
    """
    given = found.get("winner", found.get("result"))
    if given == "1/2-1/2":
        given = "draw"
    if given not in WINNERS.values():
        raise ValueError(f"expected the winner, one of first, second and draw, got {shown(given)}")
    end = "resign" if found.get("resigned") is True else found.get("end")
    is_resigned = end == "resign" and winner == ONGOING and given != "draw"
    if given and (end == "adjudicated" or is_resigned):
        return next(code for code, name in WINNERS.items() if name == given), RESIGNED
    if winner == ONGOING:
        if given is not None or found.get("end") != "truncated" or not is_long:
            hint = '; the end of one that a player resigned is "resign", or else "adjudicated"' if given else ""
            raise ValueError(f"the game is not over after its {moves} moves{hint}")
        return ONGOING, TRUNCATED
    if given != WINNERS[winner]:
        by_rules = "a draw" if winner == DRAW else f"a win of the {WINNERS[winner]} player"
        raise ValueError(f"the winner is given as {json.dumps(given)}, but by the rules the game is {by_rules}")
    return winner, BY_RULE


def _integer(found: dict[str, object], field: str, *, most: int) -> int:
    """Return a field that is an integer from 0 to `most`, 0 if it is missing."""
    value = found.get(field, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"expected {field} from 0 to {most}, got {shown(value)}")
    return value


def _per_ply(
    found: dict[str, object], field: str, missing: Column, *, least: int | Column = 0, most: int | Column = 1
) -> NDArray[np.float64]:
    """Return a field that has a number from `least` to `most` for every ply; `missing`, `[n]`, if it is not there."""
    values = found.get(field)
    if values is None:
        return missing.astype(np.float64)
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise ValueError(f"expected {field}, a list of numbers, one per ply")
    if len(values) != len(missing):
        raise ValueError(f"{field} has {len(values)} numbers, but the game has {len(missing)} plies")
    numbers = np.array(values, np.float64)
    outside = ~((numbers >= least) & (numbers <= most))
    if outside.any():
        ply = int(np.argmax(outside))
        raise ValueError(f"{field} has the impossible value {shown(values[ply])} at ply {ply + 1}")
    return numbers


def _identity(found: dict[str, object]) -> int:
    """Return the number of the game, 0 if it has none."""
    text = found.get("id", "0")
    with suppress(ValueError):
        if isinstance(text, str) and 0 <= (number := int(text, 16)) < 1 << 64:
            return number
    raise ValueError(f"expected id, 16 hexadecimal digits, got {shown(text)}")
