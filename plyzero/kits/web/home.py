"""The home page of `plyzero serve` without a game: all installed games and the runs of a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from plyzero.errors import UserError
from plyzero.kits.web.pages import text_of
from plyzero.rules.board_svg import render_svg
from plyzero.rules.catalog import GameSpec, installed_games, load_game
from plyzero.rules.game import board_of
from plyzero.run.directory import read_run
from plyzero.run.models import list_models


def home_page(folder: Path, opponent_of: Callable[[GameSpec], str]) -> str:
    """Return the page as HTML, with links to game/NAME/ and to run/NAME/, for the runs that `list_runs` finds.

    opponent_of: returns the name and the strength of the usual opponent of a game.
    """
    runs = [_run_card(name, path) for name, path in list_runs(folder).items()]
    page = text_of("home.html").replace("<!-- games -->", _game_cards(opponent_of))
    return page.replace("<!-- runs -->", "".join(runs) or "<li>plyzero train GAME --run runs/NAME begins one.</li>")


def list_runs(folder: Path) -> dict[str, Path]:
    """Return the runs in a folder and in its folder `runs`, by their names."""
    files = [*sorted(folder.glob("*/run.toml")), *sorted(folder.glob("runs/*/run.toml"))]
    return {file.parent.name: file.parent for file in files}


@lru_cache
def _game_cards(opponent_of: Callable[[GameSpec], str]) -> str:
    cards = []
    for name, rules in installed_games().items():
        game = load_game(name)
        bot, board = opponent_of(game), board_of(game.start)
        text = f'{escape(rules.replace("`", ""))}<br><span class="dim">Opponent: {escape(bot)}</span>'
        picture = render_svg(board, title=name, style=False) if board else f"<pre>{escape(str(game.start))}</pre>"
        cards.append(_card(f"game/{name}", name, f"{picture}<p>{text}</p>"))
    return "".join(cards)


def _run_card(name: str, path: Path) -> str:
    try:
        models = list_models(path / "models")
        newest = f"model of step {models[0].step}" if models else "no model yet"
        about = f"{read_run(path).identity}, {newest}"
    except (UserError, OSError) as error:
        about = str(error)
    return _card(f"run/{quote(name)}", escape(name), f"<p>{escape(about)}</p>", watch=True)


def _card(address: str, name: str, inside: str, *, watch: bool = False) -> str:
    links = f'<a href="{address}/">{name}</a>'
    if watch:
        links += f' · <a href="{address}/run">watch</a>'
    return f'<li class="card"><h2>{links}</h2>{inside}</li>'
