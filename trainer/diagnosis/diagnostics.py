"""Diagnostics: hold games out, measure every model and the newest games, and ask the learning guard for a warning."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from plyzero.rules.catalog import GameSpec
from plyzero.rules.game import DRAW, ONGOING
from plyzero.run.records import TRUNCATED, Games
from plyzero.run.segments import SegmentName
from plyzero.settings import TrainerSettings
from plyzero.trainer.diagnosis.consistency import ConsistencyCheck
from plyzero.trainer.diagnosis.guard import (
    CONFIRMATIONS,
    MIN_KNOWN_VALUE,
    NEWEST_GAMES,
    GameStatistics,
    Learned,
    Measurements,
    Staleness,
    diagnose,
    is_below,
)
from plyzero.trainer.diagnosis.perspective import PointOfViewTest
from plyzero.trainer.loss import loss
from plyzero.trainer.window import Window, to_device

HELD_OUT: Final = 32  # one of this many games is held out
SAMPLE_SIZE: Final = 512  # positions on which a network is evaluated: as many held-out ones as of the window
CHECK_SECONDS: Final = 10.0  # between two checks of the games before there is a model
OPENING_PLIES: Final = 8  # length of an opening; half of the game, if that has fewer than 16 plies


class GameResult(NamedTuple):
    """The part of one game that enters the statistics.

    opening:   its first actions and, as dice count too, a hash of the observation after them, as bytes.
    winner:    as in its record.
    end:       as in its record.
    moves:     number of plies that player 0 and player 1 made.
    foresight: mean product of the network's value and the result for the player to move; None without a network.
    """

    opening: bytes
    winner: int
    end: int
    moves: tuple[int, int]
    foresight: float | None


class Diagnostics:
    """Holds games out, keeps statistics of the newest games, and evaluates every network that is published.

    held_out: the held-out positions, of whole games that are never trained on.
    report:   the fields of the last evaluation, for heartbeat and metrics; before there is a model, a warning about
              the games alone.
    """

    def __init__(
        self, game: GameSpec, settings: TrainerSettings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.held_out = Window(game.start)
        self.report: dict[str, object] = {"warning": None}
        self._game = game.name
        self._clock = clock
        self._mature_steps = settings.mature_steps
        self._newest: deque[GameResult] = deque(maxlen=NEWEST_GAMES)
        self._consistency = ConsistencyCheck(game.start)
        self._view = PointOfViewTest(game.start)
        self._published: deque[tuple[int, float]] = deque(maxlen=NEWEST_GAMES)  # step, time of publication
        self._stale: dict[str, float] = {}  # worker -> age of the model that replaced the one it plays with
        self._next_check = 0.0
        self._measured: deque[Measurements] = deque(maxlen=CONFIRMATIONS)

    def split(self, games: Games) -> tuple[Games, Games]:
        """Return the games to train on and the held-out ones; only the id of a game decides."""
        is_held_out = games.games["id"] % np.uint64(HELD_OUT) == 0
        return games.select(~is_held_out), games.select(is_held_out)

    def record(self, name: SegmentName, games: Games) -> None:
        """Add the games of a segment that was just read to the statistics."""
        self._newest.extend(game_results(games))
        self._consistency.add(games)
        self._view.add(games)
        newer = [when for step, when in self._published if step > name.last_step]
        seconds = self._clock() - newer[0] if newer else 0.0
        self._stale[name.worker] = min(seconds, self._stale.get(name.worker, seconds))
        if not self._published and self._clock() >= self._next_check:
            self.report = {"warning": diagnose(self._game, [self._measure_games(Learned())])}
            self._next_check = self._clock() + CHECK_SECONDS

    def held_out_observations(self, seed: int) -> NDArray[np.float32] | None:
        """Return SAMPLE_SIZE held-out positions, `[n, C, H, W]`, the same for the same seed; None if there are none."""
        if not len(self.held_out):
            return None
        return self.held_out.sample(SAMPLE_SIZE, np.random.default_rng(seed)).observations

    def evaluate(self, network: nn.Module, window: Window, *, step: int, device: torch.device) -> None:
        """Evaluate a network that is about to be published, and update the `report`."""
        self._published.append((step, self._clock()))
        worker = max(self._stale, key=lambda name: self._stale[name], default="")
        held_out = learned(network, self.held_out, device, seed=step)
        measured = self._measure_games(held_out)._replace(
            mature=step >= self._mature_steps,
            trained=learned(network, window, device, seed=step),
            stale=Staleness(worker=worker, seconds=self._stale.get(worker, 0.0)),
        )
        self._stale.clear()
        self._measured.append(measured)
        statistics, consistency = measured.statistics, measured.consistency
        self.report = {
            "held_out": len(self.held_out),
            "policy_learned": measured.held_out.policy,
            "value_learned": measured.held_out.value,
            "window_policy_learned": measured.trained.policy,
            "window_value_learned": measured.trained.value,
            "openings": statistics.openings,
            "drawn": round(statistics.drawn, 4),
            "cut_off": round(statistics.truncated, 4),
            "won": [round(share, 4) for share in statistics.won],
            "moved": [round(share, 4) for share in statistics.moved],
            "foresight": [round(number, 4) for number in statistics.foresight],
            "compared": {name: list(found) for name, found in consistency._asdict().items() if name != "positions"},
            "view": [round(number, 3) for number in measured.view] if measured.view else None,
            "stale_seconds": round(measured.stale.seconds, 1),
            "warning": diagnose(self._game, list(self._measured)),
        }

    def _measure_games(self, held_out: Learned) -> Measurements:
        """Return measurements of the newest games alone; the point of view only as long as it can be in doubt."""
        return Measurements(
            statistics=game_statistics(self._newest),
            consistency=self._consistency.compare(),
            view=self._view.measure() if is_below(held_out.value, MIN_KNOWN_VALUE) else None,
            held_out=held_out,
        )


def learned(network: nn.Module, window: Window, device: torch.device, *, seed: int) -> Learned:
    """Return what `network` has learned about SAMPLE_SIZE positions sampled from `window`, without symmetries."""
    if not len(window):
        return Learned()
    batch = to_device(window.sample(SAMPLE_SIZE, np.random.default_rng(seed), symmetries=False), device)
    with torch.no_grad():
        policy_logits, wdl_logits, *_ = network.eval()(batch.observations)
        losses = loss(policy_logits, wdl_logits, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        mean = batch.wdl.mean(dim=0).clamp(min=1e-6)
        uniform = torch.zeros_like(batch.policy)
        log_mean = torch.log(mean).expand_as(batch.wdl)
        guess = loss(uniform, log_mean, legal=batch.legal, policy=batch.policy, wdl=batch.wdl)
        entropy = torch.special.entr(batch.wdl).sum(dim=1).mean()
    return Learned(
        policy=_skill(losses.policy.item(), guess.policy.item()),
        value=_skill((losses.value - entropy).item(), (guess.value - entropy).item()),
    )


def game_results(games: Games) -> list[GameResult]:
    """Return what the statistics need of each game."""
    position = games.positions
    winner = np.repeat(games.games["winner"], games.games["positions"])
    result = np.where(winner == DRAW, 0, np.where(winner == position["to_play"], 1, -1))
    product = position["network_value"] * result
    is_predicted = (position["search"] > 0) & (position["model_fence"] > 0) & (winner != ONGOING)
    results = []
    start = 0
    for game in games.games:
        end = start + int(game["positions"])
        middle = start + min(OPENING_PLIES, (end - start) // 2)
        reached = hashlib.blake2b(games.observations[middle].tobytes(), digest_size=8).digest()
        second = int(position["to_play"][start:end].sum())
        predicted = product[start:end][is_predicted[start:end]]
        results.append(
            GameResult(
                opening=position["action"][start:middle].tobytes() + reached,
                winner=int(game["winner"]),
                end=int(game["end"]),
                moves=(end - start - second, second),
                foresight=float(predicted.mean()) if len(predicted) else None,
            )
        )
        start = end
    return results


def game_statistics(newest: Collection[GameResult]) -> GameStatistics:
    """Return the statistics of games."""
    count = max(1, len(newest))
    plies = max(1, sum(sum(game.moves) for game in newest))
    foresight = np.array([game.foresight for game in newest if game.foresight is not None])
    error = foresight.std() / np.sqrt(len(foresight)) if len(foresight) else 0.0
    return GameStatistics(
        games=len(newest),
        openings=len({game.opening for game in newest}),
        drawn=sum(game.winner == DRAW for game in newest) / count,
        truncated=sum(game.end == TRUNCATED for game in newest) / count,
        won=(sum(game.winner == 0 for game in newest) / count, sum(game.winner == 1 for game in newest) / count),
        moved=(sum(game.moves[0] for game in newest) / plies, sum(game.moves[1] for game in newest) / plies),
        foresight=(float(foresight.mean()) if len(foresight) else 0.0, float(error)),
    )


def _skill(divergence: float, of_guess: float) -> float | None:
    return round(1 - divergence / of_guess, 4) if of_guess > 0.01 else None
