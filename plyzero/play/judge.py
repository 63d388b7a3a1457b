"""The judge: the one bot whose searches are hints, analyses and reviews, chosen by what it is measured to be worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from plyzero.play.bundled_bots import find_card
from plyzero.play.players import Bot
from plyzero.play.strength import explained
from plyzero.rules.catalog import GameSpec
from plyzero.run.configuration import change_search
from plyzero.run.models import list_models
from plyzero.settings import SearchSettings

JUDGE_SIMULATIONS: Final = 256
"""Simulations of a hint, and for each turn of a review, unless another number is asked for."""

ROLLOUTS: Final = 1000
"""Number of simulations of pure MCTS as a judge, unless another one is asked for."""


class Judge(NamedTuple):
    """The bot that judges.

    about:   what it is, and what it is measured to be worth.
    network: the file or the run whose network it uses; None for pure MCTS.
    """

    bot: Bot
    about: str
    network: Path | None = None

    @property
    def sentence(self) -> str:
        """A sentence for people that names the judge and says what it is worth."""
        return explained(f"The judge: {self.about}.")


def find_judge(
    game: GameSpec,
    *,
    run: Path | None = None,
    net: Path | None = None,
    model: str = "newest",
    unmeasured: bool = False,
    load: Callable[..., Bot] = Bot.of_model,
    **limits: Any,
) -> Judge:
    """Return the judge of `game`: the network of a run or a file if it is measured to beat mcts:100, else the bundled
    bot at its best, else pure MCTS.

    model:      of the run.
    unmeasured: use the network of a run or a file in any case.
    load:       loads a network, in place of `Bot.of_model`, whose arguments it takes.
    limits:     simulations and threads, as of `Bot`.

    Raises UserError if the run has no such model, or it cannot be used.
    """
    refused = ""
    path = net or run
    if path is not None and (net is not None or list_models(path / "models")):
        bot = load(path, game, model=model, **limits)
        text, judges = bot.strength()
        if judges or unmeasured:
            return Judge(_judging(bot), text, path)
        refused = f", because the network has not beaten mcts:100 yet ({text})"
    elif path is not None:
        refused = ", because the run has no model yet"
    if card := find_card(game):
        bot = load(card.network, game, **limits)
        text, judges = bot.strength()
        if judges or not card.levels[-1].measured:
            return Judge(_judging(bot), f"{text}{refused}", card.network)
    bot = Bot.pure_mcts(
        game,
        np.random.default_rng(0),  # so that it finds the same everywhere
        simulations=limits.get("simulations", ROLLOUTS),
        solver_nodes=SearchSettings().solver_nodes,
    )
    return Judge(bot, f"pure MCTS, which knows the rules alone{refused}")


def _judging(bot: Bot) -> Bot:
    """Return the bot with a search whose values of moves converge.

    In games with dice that is PUCT: Gumbel's choices below the root go in step with the order of the rolls.
    """
    other = bot.with_simulations(bot.simulations)
    if bot.game.start.num_chances:
        other.settings = change_search(bot.settings, {"algorithm": "puct"})
    return other
