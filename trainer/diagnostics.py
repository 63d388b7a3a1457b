"""Diagnostics: what the network has learned, measured on held-out games, and warnings if a run is not learning."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import nn

from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import DRAW
from plyzero.run.records import TRUNCATED, Games
from plyzero.run.segments import SegmentName
from trainer.loss import loss, to_device
from trainer.window import Window

HELD_OUT: Final = 32
"""One of this many games is held out."""

SAMPLE_SIZE: Final = 512
"""Number of positions on which a network is evaluated, of the held-out ones and of the window each."""

NEWEST_GAMES: Final = 500
"""Number of the newest games of which statistics are kept; no warning is based on fewer."""

OPENING_PLIES: Final = 8
"""Length of an opening in plies; for a game shorter than 16 plies, half of the game."""

MIN_OPENINGS: Final = 10
"""Number of different openings in the newest games below which there is a warning."""

MAX_STALE_SECONDS: Final = 300.0
"""Time for which a worker may play with an outdated model before there is a warning."""

MIN_MODELS: Final = 20
"""Number of published models before which there is no warning about what the network has learned."""


class Learned(NamedTuple):
    """What a network has learned about some positions, as skill scores: 1 = the targets, 0 = a guess, below 0 = worse.

    The score is 1 - KL(target || network) / KL(target || guess). The guess for the policy is the uniform distribution
    over the legal actions; for the value, the mean target of all positions. None means that there is nothing to learn:
    there are no positions, or the guess is almost perfect.
    """

    policy: float | None
    value: float | None


class GameStatistics(NamedTuple):
    """Statistics of the newest games.

    games:     number of games.
    openings:  number of different openings.
    drawn:     share of drawn games.
    truncated: share of games that were truncated at max_plies.
    """

    games: int
    openings: int
    drawn: float
    truncated: float


class Staleness(NamedTuple):
    """The worker that plays with the most outdated model.

    worker:  its name.
    seconds: time since a newer model was published; 0 if all workers are up to date.
    """

    worker: str
    seconds: float


class GameResult(NamedTuple):
    """What the statistics need of one game: its opening, its winner and how it ended, as in its record."""

    opening: bytes
    winner: int
    end: int


def diagnose(
    game: str, *, statistics: GameStatistics, held_out: Learned, trained: Learned, models: int, stale: Staleness
) -> str | None:
    """Return a warning with its most likely cause and what to do, None if nothing is wrong.

    held_out: what the network has learned about positions that it was never trained on.
    trained:  what it has learned about positions in the window.
    models:   number of models published so far.
    """
    check = f"plyzero check {game}"
    if statistics.games == NEWEST_GAMES and statistics.truncated > 0.5:
        return (
            f"{statistics.truncated:.0%} of the newest games were cut off at max_plies without a winner; raise "
            f"max_plies, or correct the rule that lets games continue forever: {check}"
        )
    if statistics.games == NEWEST_GAMES and statistics.openings < MIN_OPENINGS:
        return (
            f"games all look alike: the newest {statistics.games} games have {statistics.openings} different openings; "
            "continue with -o selfplay.opening_plies=4 -o selfplay.temperature=1"
        )
    if stale.seconds > MAX_STALE_SECONDS:
        return (
            f"worker {stale.worker} plays with a model that has been outdated for {stale.seconds / 60:.0f} minutes; "
            "its log says why it does not load a newer one"
        )
    if models < MIN_MODELS:
        return None
    if held_out.value is not None and trained.value is not None and held_out.value < 0 and trained.value > 0.2:
        return (
            f"overfitting: the value head has learned {trained.value:.0%} of the values of the games it is trained on, "
            "but predicts the results of other games worse than a guess; generate more games with more workers, or "
            "train less with -o trainer.replay_ratio=2"
        )
    if held_out.value is None and statistics.drawn > 0.95:
        return (
            f"there is nothing to learn: {statistics.drawn:.0%} of the newest games were drawn, and every position has "
            f"the same value; to see whether a player can win at all: {check}"
        )
    # The legal actions alone predict a part of the policy, so its limit is higher.
    if _is_below(held_out.policy, 0.25) and _is_below(held_out.value, 0.02):
        return (
            "not learning: on games that it was not trained on, the value head predicts results no better than a "
            "guess; most often observe() does not show what decides the game, or not from the point of view of the "
            f"player to move: {check}"
        )
    return None


class Diagnostics:
    """Holds games out, keeps statistics of the newest games, and evaluates every network that is published.

    held_out: the held-out positions, of whole games that are never trained on.
    report:   the fields of the last evaluation, for heartbeat and metrics.
    """

    def __init__(self, game: GameSpec, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.held_out = Window(game.start)
        self.report: dict[str, Any] = {"warning": None}
        self._game, self._clock = game.name, clock
        self._newest: deque[GameResult] = deque(maxlen=NEWEST_GAMES)
        self._published: deque[tuple[int, float]] = deque(maxlen=NEWEST_GAMES)  # step, time of publication
        self._stale: dict[str, float] = {}  # worker -> age of the model that replaced the one it plays with

    def split(self, games: Games) -> tuple[Games, Games]:
        """Return the games to train on and the held-out ones; only the id of a game decides."""
        is_held_out = games.games["id"] % np.uint64(HELD_OUT) == 0
        return games.select(~is_held_out), games.select(is_held_out)

    def record(self, name: SegmentName, games: Games) -> None:
        """Add the games of a segment that was just read to the statistics."""
        actions, start = games.positions["action"], 0
        for game in games.games:
            plies = int(game["positions"])
            opening = actions[start : start + min(OPENING_PLIES, plies // 2)].tobytes()
            self._newest.append(GameResult(opening=opening, winner=int(game["winner"]), end=int(game["end"])))
            start += plies
        newer = [when for step, when in self._published if step > name.last_step]
        seconds = self._clock() - newer[0] if newer else 0.0
        self._stale[name.worker] = min(seconds, self._stale.get(name.worker, seconds))

    def evaluate(self, network: nn.Module, window: Window, *, step: int, device: torch.device) -> None:
        """Evaluate a network that is about to be published, and update the `report`."""
        self._published.append((step, self._clock()))
        held_out = learned(network, self.held_out, device, seed=step)
        trained = learned(network, window, device, seed=step)
        statistics = game_statistics(self._newest)
        worker = max(self._stale, key=lambda name: self._stale[name], default="")
        stale = Staleness(worker=worker, seconds=self._stale.get(worker, 0.0))
        self._stale.clear()
        warning = diagnose(
            self._game,
            statistics=statistics,
            held_out=held_out,
            trained=trained,
            models=len(self._published),
            stale=stale,
        )
        self.report = {
            "held_out": len(self.held_out),
            "policy_learned": held_out.policy,
            "value_learned": held_out.value,
            "openings": statistics.openings,
            "drawn": round(statistics.drawn, 4),
            "cut_off": round(statistics.truncated, 4),
            "stale_seconds": round(stale.seconds, 1),
            "warning": warning,
        }


def learned(network: nn.Module, window: Window, device: torch.device, *, seed: int) -> Learned:
    """Return what `network` has learned about SAMPLE_SIZE positions sampled from `window`, without symmetries."""
    if not len(window):
        return Learned(policy=None, value=None)
    batch = to_device(window.sample(SAMPLE_SIZE, np.random.default_rng(seed), symmetries=False), device)
    with torch.no_grad():
        policy_logits, wdl_logits = network.eval()(batch.observations)
        losses = loss(policy_logits, wdl_logits, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        mean = batch.wdl.mean(dim=0).clamp(min=1e-6)
        uniform, log_mean = torch.zeros_like(batch.policy), torch.log(mean).expand_as(batch.wdl)
        guess = loss(uniform, log_mean, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        entropy = torch.special.entr(batch.wdl).sum(dim=1).mean()
    return Learned(
        policy=_skill(losses.policy.item(), guess.policy.item()),
        value=_skill((losses.value - entropy).item(), (guess.value - entropy).item()),
    )


def game_statistics(newest: Collection[GameResult]) -> GameStatistics:
    """Return the statistics of games."""
    count = max(1, len(newest))
    return GameStatistics(
        games=len(newest),
        openings=len({game.opening for game in newest}),
        drawn=sum(game.winner == DRAW for game in newest) / count,
        truncated=sum(game.end == TRUNCATED for game in newest) / count,
    )


def _skill(divergence: float, of_guess: float) -> float | None:
    return round(1 - divergence / of_guess, 4) if of_guess > 0.01 else None


def _is_below(score: float | None, limit: float) -> bool:
    """Return whether a skill score is below `limit`, or there is none."""
    return score is None or score < limit
