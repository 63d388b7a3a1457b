"""Measure what turns lose in the game of a bundled bot, for reviews, and write it on the card of the bot.

python -m benchmarks.strength.scales connect-four backgammon     # of all bots without a name
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tomllib

import numpy as np
import tomli_w

from plyzero.kits.review.measuring import describe_scale, measure_scale
from plyzero.kits.review.values import Valuer
from plyzero.play.bundled_bots import find_card, list_cards
from plyzero.play.judge import find_judge
from plyzero.rules.catalog import load_game


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="*", default=[card.game.rpartition(" v")[0] for card in list_cards()])
    parser.add_argument("--games", type=int, default=16, help="number of games, half of them with a random player")
    given = parser.parse_args()
    for name in given.game:
        game = load_game(name)
        card = find_card(game)
        assert card is not None, f"{name} has no bundled bot"

        def show(made: int, number: int, name: str = name) -> None:
            print(f"{name}: {made} of {number} games", file=sys.stderr, flush=True)

        valuer = Valuer(find_judge(game).bot)
        scale = measure_scale(valuer, np.random.default_rng(0), games=given.games, on_game=show)
        command = f"python -m benchmarks.strength.scales {shlex.quote(name)} --games {given.games}"
        path = card.network.with_suffix(".toml")
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        table["review"] = {**describe_scale(scale), "command": command}
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        print(name, table["review"], flush=True)


if __name__ == "__main__":
    main()
