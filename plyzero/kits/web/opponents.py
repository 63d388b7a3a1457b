"""The players that a visitor can choose, and the models of a run as they appear."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from plyzero.errors import UserError, shown
from plyzero.kits.web.play_api import ANALYSIS
from plyzero.play.bundled_bots import find_card
from plyzero.play.clock import DEFAULT_SIMULATIONS, Clock
from plyzero.play.judge import JUDGE_SIMULATIONS, Judge, find_judge
from plyzero.play.player import Player
from plyzero.play.players import Bot, find_player
from plyzero.play.strength import explained, strength_of
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.models import list_models
from plyzero.setting_types import MAX_SIMULATIONS

TIMED: Final = "clock"
"""The same bot under a clock."""

SIMULATIONS: Final = (0, 16, 64, 256, 1024)
"""The strengths of a network that can be chosen as an opponent, in simulations per move."""

ROLLOUTS: Final = (100, 1000)
"""The strengths of pure MCTS that can be chosen as an opponent, in rollouts per move."""

RULES: Final = {"alphabeta:4": "alpha-beta, 4 plies", "greedy": "the greedy player", "random": "the random player"}
"""Players without a network or rollouts: name -> name on the page."""


class Opponents:
    """The opponents: the model of a run or of a file, the bundled bot, pure MCTS, rules, and random moves.

    Networks are loaded when they are first needed, and kept. Until a run has a model, pure MCTS takes its place.
    """

    def __init__(
        self,
        game: GameSpec,
        *,
        run: Path | None = None,
        net: Path | None = None,
        others: Sequence[str] = (),
        clock: Clock | None = None,
        threads: int = 0,
    ) -> None:
        """Find the models.

        others:         players by name, as `find_player` knows them. Raises UserError if one does not exist.
        clock, threads: of a further opponent, the judge under a clock; of all opponents with a network.
        """
        self.game, self._others, self._clock, self._threads = game, others, clock, threads
        self._run, self._net = run and run.absolute(), net and net.absolute()  # rules may leave the current directory
        self._given = {name: find_player(name, game, np.random.default_rng()) for name in others}
        self._searching = [name for name, player in self._given.items() if isinstance(player, Bot)]
        self._card = None if run or net else find_card(game)
        self._bots = lru_cache(6 + len(self._card.levels if self._card else ()))(self._make)
        self._lock = threading.Lock()

    def as_fields(self) -> dict[str, object]:
        """Return, as JSON, what `of_fields` makes the same opponents of in another process: those that search."""
        run, net = (path and str(path) for path in (self._run, self._net))
        return {"game": self.game.name, "run": run, "net": net, "others": self._searching, "threads": self._threads}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the opponents of another process, of the game with its initial position. Raises as the class does."""
        run, net = (path and Path(path) for path in (fields["run"], fields["net"]))
        game = load_game(fields["game"])
        return cls(game, run=run, net=net, others=fields["others"], threads=fields["threads"])

    def names(self) -> dict[str, str]:
        """Return the ids and the names of all opponents."""
        found = {name: name for name in self._others}
        if self._clock:
            found[TIMED] = f"the bot with a clock, {self._clock}"
        if self._card:
            of = f"of {len(self._card.levels)}"
            for level in self._card.levels:
                name = f"the bundled bot, level {level.number} {of}: {level.claim}"
                found[f"level:{level.number}"] = name
        elif self.has_network:
            found |= {f"net:{number}": f"the network, {number} simulations a move" for number in SIMULATIONS}
            found["net:0"] = "the network, without a search"
        found |= {f"mcts:{number}": f"pure MCTS, {number} random games a move" for number in ROLLOUTS}
        return {**found, **RULES}

    def strengths(self) -> dict[str, str]:
        """Return what has been measured of the opponents, by id, for people."""
        found = {f"level:{each.number}": each.scores for each in self._card.levels} if self._card else {}
        step = self.newest_step()
        if self._run and step is not None:
            measured = explained(strength_of(self._run, self.game, step).text)
            found |= {f"net:{number}": measured for number in SIMULATIONS}
        return found

    def usual(self) -> str:
        """Return the id of the opponent of a new game."""
        if self._others:
            return self._others[0]
        if self._clock:
            return TIMED
        if self._card:
            return f"level:{self._card.default}"
        return f"net:{DEFAULT_SIMULATIONS}" if self.has_network else f"mcts:{ROLLOUTS[-1]}"

    def newest_step(self) -> int | None:
        """Return the training step of the run's newest model; None without a run or before its first model."""
        models = list_models(self._run / "models") if self._run else []
        return models[0].step if models else None

    def find(self, name: str, *, step: str = "", moves: int = 0) -> Player:
        """Return the opponent with the id `name`, or the judge.

        step:  of the model, for a run; "" = the newest. Raises UserError if there is no such opponent or model.
        moves: number that it has made in the game, each of which has taken its time at most.
        """
        kind, _, number = name.partition(":")
        if name != ANALYSIS and name not in self.names():
            raise UserError(f"expected a player, one of {', '.join(self.names())}, got {shown(name)}")
        if name in self._given and self._given[name].games_at_once:
            return copy(self._given[name])  # a program stays, and its visitors have a game each
        if name in self._others or name in RULES or kind == "mcts":
            return find_player(name, self.game, np.random.default_rng())  # anew: an agent plays one game at a time
        if kind == "level":
            return self._kept(None, number, self._threads)
        if name == ANALYSIS:
            return self.judge(step).bot
        if name == TIMED and self._clock:
            return self.judge(step, threads=self._threads).bot.with_clock(self._clock.after(moves))
        return self.network(step).with_simulations(int(number))

    def is_bot(self, name: str) -> bool:
        """Return whether the opponent with the id `name` searches."""
        return name in self._searching or name == TIMED or name.partition(":")[0] in ("level", "net", "mcts")

    def bot(self, name: str, step: str) -> Player:
        """Return the opponent with the id `name`, without its clock. Raises UserError as `find` does."""
        return self.find(ANALYSIS if name == TIMED else name, step=step)

    def newest_name(self) -> str:
        """Return the training step of the run's newest model as text, "" without one."""
        newest = self.newest_step()
        return "" if newest is None else str(newest)

    def judge(
        self, step: str = "", simulations: int | None = None, *, most: int = MAX_SIMULATIONS, threads: int = 0
    ) -> Judge:
        """Return the judge: that of `find_judge`, with JUDGE_SIMULATIONS or another number.

        Without `threads` it finds the same as in the terminal. Raises UserError for more simulations than `most`, and
        as `find` does.
        """

        def load(path: Path, game: GameSpec, *, model: str = "newest", threads: int) -> Bot:
            return self._kept(path, model, threads)

        judge = find_judge(self.game, run=self._run, net=self._net, model=self._model(step), load=load, threads=threads)
        number = JUDGE_SIMULATIONS if simulations is None else simulations
        return judge._replace(bot=judge.bot.with_simulations(number, most=most))

    @property
    def has_network(self) -> bool:
        """Whether there is a network to look into: of the run or the file or, without these, of the bundled bot."""
        return bool(self._card or self._net) or self.newest_step() is not None

    def network(self, step: str = "") -> Bot:
        """Return the bot with this network; without one, the judge."""
        if not self.has_network:
            return self.judge().bot
        path = self._card.network if self._card else self._net or self._run
        return self._kept(path, self._model(step), self._threads)

    def _model(self, step: str) -> str:
        """Return the name of a model of the run, by its training step."""
        newest = self.newest_step()
        return "newest" if newest is None else step or str(newest)

    def _kept(self, path: Path | None, model: str, threads: int) -> Bot:
        """Return the bot with a model of `path`; without a path, the bundled one at the level `model`."""
        with self._lock:  # no model is loaded twice
            return self._bots(path, model, threads)

    def _make(self, path: Path | None, model: str, threads: int) -> Bot:
        if path is None:
            return Bot.at_level(self.game, int(model), threads=threads)
        return Bot.of_model(path, self.game, model=model, threads=threads)


def usual_opponent(game: GameSpec) -> str:
    """Return the name of the usual opponent of a game, and what has been measured of it."""
    opponents = Opponents(game)
    usual = opponents.usual()
    return ", ".join(filter(None, (opponents.names()[usual], opponents.strengths().get(usual))))
