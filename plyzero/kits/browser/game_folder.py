"""The folder of a shared game: its rules, its texts and its bot as files, which appear all at once."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.errors import UserError
from plyzero.files import TEMPORARY, list_names, read_file, remove_tree, rename, write_file
from plyzero.kits.browser.game_texts import GameTexts
from plyzero.network.onnx_graph import GraphError, parse
from plyzero.network.onnx_network import Network, resize
from plyzero.play.bundled_bots import Card, Level, find_card
from plyzero.play.spots import spot_of
from plyzero.rules.board import FILLS
from plyzero.rules.board_svg import board_css, drawn_cells
from plyzero.rules.catalog import GameSpec
from plyzero.rules.chance import without_setup
from plyzero.rules.compiled_game import CompiledGame
from plyzero.rules.game import board_of
from plyzero.run.directory import Run, open_run
from plyzero.run.models import ModelName, list_models, max_model_bytes, read_model, read_model_file

FORMAT: Final = "plyzero.share/1"
"""The format of game.json, which marks a folder as one of ours."""

GAME: Final = "game.json"

MODEL: Final = "model.json"
"""The file that says which network model.onnx is."""

MAX_GAME_BYTES: Final = 64 << 20
"""Largest game.json that is read."""

MAX_SETUPS: Final = 1024
"""Largest number of set-ups that are written; a game with more begins at its usual position."""


class SharedBot(NamedTuple):
    """The bot of a page.

    name:   for people, such as "the bundled bot".
    model:  the ONNX file, for the board's size.
    search: settings of the search as the page names them.
    step:   of the training of a run; None if the model is of another place.
    card:   of the bundled bot, None for another one.
    """

    name: str
    model: bytes
    search: dict[str, Any]
    step: int | None = None
    card: Card | None = None


def find_bot(game: GameSpec, *, run: Path | None = None, net: Path | None = None) -> SharedBot:
    """Return the newest model of a run, the model in a file, or else the bundled bot.

    Raises UserError if there is none, or if it is not for this game.
    """
    if net:
        return _bot(net.name, read_model_file(net), game)
    if run:
        opened = open_run(run, game=game)
        names = list_models(opened.models)
        if not names:
            raise UserError(f"{run} has no model yet; train it first, or give a model by --net FILE")
        return bot_of_run(opened, names[0])
    if card := find_card(game):
        return _bot("the bundled bot", read_model_file(card.network), game)._replace(card=card)
    raise UserError(f"{game.name} has no bundled bot: give one by --run DIR or --net FILE")


def bot_of_run(run: Run, name: ModelName) -> SharedBot:
    """Return a model of a run. Raises what `read_model` raises, and UserError if it is not for the game of the run."""
    label = f"the network of {run.root.name} after {name.step} steps"
    return _bot(label, read_model(run.models, name), run.game)._replace(step=name.step)


def _bot(name: str, content: bytes, game: GameSpec) -> SharedBot:
    try:
        model = parse(content)
    except GraphError as error:
        raise UserError(f"{name} is refused: {error}") from error
    if resize(model, game):
        content = model.SerializeToString()
    settings = Network(content, game, label=name).search_settings
    search = {
        "cPuct": settings.c_puct,
        "fpuReduction": settings.fpu_reduction,
        "allRolls": settings.all_rolls,
    }
    return SharedBot(name, content, search)


def describe_game(game: GameSpec, texts: GameTexts, bot: SharedBot) -> dict[str, Any]:
    """Return the fields of game.json, which docs/formats.md lists."""
    start = without_setup(game.start)
    assert isinstance(start, CompiledGame)
    board = board_of(start)
    assert board
    notes = list(texts.notes)
    if start.setups > MAX_SETUPS:
        notes.append(f"The game begins at its usual position, not at one of its {start.setups} set-ups.")
    return {
        "format": FORMAT,
        "game": game.name,
        "identity": game.identity,
        "rules": _unwrapped(start.rules_text or type(start).__doc__ or ""),
        "stateBytes": start.State.itemsize,
        "toPlay": _lowest_byte(start.State, "to_play"),
        "start": start.state.tolist(),
        "setups": _setups_of(game) if 0 < start.setups <= MAX_SETUPS else None,
        "actions": start.num_actions,
        "observation": list(start.observation_shape),
        "numChances": start.num_chances,
        "maxScore": float(start.max_score),
        "pointsCount": bool(start.points_count),
        "maxPlies": start.max_plies,
        "names": texts.names.as_fields(),
        "paths": [" ".join(path) for path in texts.paths],
        "rolls": texts.rolls.as_fields(),
        "board": texts.board.as_fields(),
        "cells": len(board.cells),
        "places": [None if cell.shape == "card" else spot_of(cell) for cell in drawn_cells(board)],
        "scoreboard": texts.scoreboard.as_fields() if texts.scoreboard else None,
        "colours": list(board.player_colours),
        "fills": [FILLS[name] for name in board.player_colours],
        "turns": board.turns,
        "notes": notes,
        "bot": bot.name,
        "search": bot.search,
        "levels": [_describe_level(level) for level in bot.card.levels] if bot.card else [],
        "level": bot.card.default if bot.card else None,
        "review": dict(bot.card.review) or None if bot.card else None,
    }


def _describe_level(level: Level) -> dict[str, Any]:
    return {
        "number": level.number,
        "simulations": level.simulations,
        "temperature": level.temperature,
        "claim": level.claim,
        "scores": level.scores,
    }


def folder_files(game: GameSpec, module: bytes, texts: GameTexts, bot: SharedBot) -> dict[str, bytes]:
    """Return the files of a game and its bot by name; a page needs more, which does not depend on the game."""
    return {
        "rules.wasm": module,
        "board.css": board_css().encode(),
        **_bot_files(bot, describe_game(game, texts, bot), is_watched=False),
    }


def _bot_files(bot: SharedBot, game: dict[str, Any], *, is_watched: bool) -> dict[str, bytes]:
    """Return the files that another bot changes, in the order in which they may be replaced."""
    about = {
        "version": version_of(bot.model),
        "bytes": len(bot.model),
        "bot": bot.name,
        "step": bot.step,
        "isWatched": is_watched,
    }
    return {"model.onnx": bot.model, GAME: _as_json(game), MODEL: _as_json(about)}


def version_of(model: bytes) -> str:
    """Return what distinguishes a network from others: 16 hex digits."""
    return hashlib.sha256(model).hexdigest()[:16]


def replace_bot(directory: Path, bot: SharedBot, *, is_watched: bool) -> None:
    """Make `bot` that of a shared game: each file that changes is replaced at once.

    is_watched: whether newer ones may follow.
    Raises OSError if a file cannot be read or written, and UserError if it is no shared game.
    """
    if not _is_ours(directory):
        raise UserError(f"{directory} has no {GAME} of a shared game any more; share the game again")
    game = json.loads(read_file(directory / GAME, max_bytes=MAX_GAME_BYTES))
    changed = _bot_files(bot, game | {"bot": bot.name, "search": bot.search}, is_watched=is_watched)
    for name, content in changed.items():
        path = directory / name
        if not path.is_file() or read_file(path, max_bytes=max_model_bytes()) != content:
            write_file(path, content, replace=True)


def _as_json(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def expect_free(directory: Path) -> None:
    """Raise UserError unless `directory` is one that may be written: of a shared game, empty, or not there."""
    if not directory.absolute().parent.is_dir():
        raise UserError(f"expected -o DIR in a directory that exists, got {directory}")
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise UserError(f"expected -o DIR, a directory, got {directory}, which is something else")
    if list_names(directory) and not _is_ours(directory):
        raise UserError(f"{directory} has other files than those of a shared game; choose another name, or remove it")


def write_folder(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make `directory` a folder with these files and no others, all at once. A folder of a shared game is replaced.

    files: content by name; a name may have folders before it, separated by /.
    Raises UserError as `expect_free` does, and OSError if the files cannot be written.
    """
    expect_free(directory)
    directory = directory.absolute()
    made, old = (directory.parent / f"{TEMPORARY}{uuid.uuid4().hex}" for _ in range(2))
    try:
        for name, content in files.items():
            write_file(made / name, content)
        if directory.exists():
            rename(directory, old)
        rename(made, directory)
    finally:
        remove_tree(made)
        remove_tree(old)


def _is_ours(directory: Path) -> bool:
    try:
        found = json.loads(read_file(directory / GAME, max_bytes=MAX_GAME_BYTES))
        return isinstance(found, dict) and str(found.get("format")).startswith(FORMAT.partition("/")[0])
    except (OSError, ValueError, RecursionError):
        return False


def _setups_of(game: GameSpec) -> dict[str, Any]:
    """Return the states of all set-ups: the places of the bytes that differ, and for each set-up their values."""
    states = np.array([game.start.set_up(number).state for number in range(game.start.setups)])  # type: ignore[attr-defined]
    at = np.flatnonzero((states != without_setup(game.start).state).any(axis=0))  # type: ignore[attr-defined]
    return {"at": at.tolist(), "values": states[:, at].tolist()}


def _lowest_byte(record: np.dtype[np.void], name: str) -> int:
    """Return the place of the byte of a field that has the values 0 and 1."""
    assert record.fields
    field, offset = record.fields[name][:2]
    is_big = np.array(1, field).tobytes()[-1] == 1 and field.itemsize > 1
    return offset + (field.itemsize - 1 if is_big else 0)


def _unwrapped(text: str) -> str:
    """Return a text whose paragraphs are one line each; lines that are indented or begin a list stay."""
    return re.sub(r"(?<=\S)\n(?=[^\s*-])", " ", inspect.cleandoc(text))
