"""The guard: what a run has learned of games that it never trained on, and what stands in its way if that is little."""

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
from trainer.loss import loss
from trainer.window import Window

HELD_OUT: Final = 32
"""One game in so many is held out."""

SAMPLE: Final = 512
"""Positions that a network is asked about, of those held out and of those in the window."""

NEWEST: Final = 500
"""Games whose habits are watched."""

OPENING: Final = 8
"""Plies of an opening; of a shorter game half of them."""

FEW_OPENINGS: Final = 10
STALE_SECONDS: Final = 300.0
MODELS: Final = 20
"""Before so many are published nobody is told that nothing is learned."""


class Learned(NamedTuple):
    """How much of what there is to learn of some positions a network knows: 1 = all, 0 = no more than a guess.

    The guess gives all legal actions the same probability, and every position the mean of all values. What is compared
    are the divergences KL(target || network) and KL(target || guess). None: there is nothing to learn.
    """

    policy: float | None
    value: float | None


class Habits(NamedTuple):
    """Of the newest `games`: different openings, and the shares that were drawn and that were cut off at max_plies."""

    games: int
    openings: int
    drawn: float
    cut_off: float


def diagnose(
    game: str, *, habits: Habits, unseen: Learned, seen: Learned, models: int, stale: tuple[str, float]
) -> str | None:
    """Return a sentence, what is wrong with its likeliest cause and what to do about it; None as long as nothing is.

    unseen, seen: what is known of held-out positions, and of those in the window. models: published so far.
    stale:        the worker with the oldest model, and for how many seconds there has been a newer one.
    """
    check = f"plyzero check {game}"
    if habits.games == NEWEST and habits.cut_off > 0.5:
        return (
            f"{habits.cut_off:.0%} of the newest games were cut off at max_plies with nobody to win them; raise it, or "
            f"mend the rule that lets games go on for ever: {check}"
        )
    if habits.games == NEWEST and habits.openings < FEW_OPENINGS:
        return (
            f"the newest {habits.games} games have {habits.openings} different openings, so the network sees the same "
            "positions again and again; go on with -o selfplay.opening_plies=4 -o selfplay.temperature=1"
        )
    if stale[1] > STALE_SECONDS:
        return (
            f"worker {stale[0]} plays with a model that has been out of date for {stale[1] / 60:.0f} minutes; its log "
            "says why it takes no newer one"
        )
    if models < MODELS:
        return None
    if unseen.value is not None and seen.value is not None and unseen.value < 0 and seen.value > 0.2:
        return (
            f"the network knows {seen.value:.0%} of the values of the games it learns from, and of others less than a "
            "guess: it learns them by heart; let it see more games: more workers, or -o trainer.replay_ratio=2"
        )
    if unseen.value is None and habits.drawn > 0.95:
        return (
            f"{habits.drawn:.0%} of the newest games were drawn, and every position has the same value, so there is "
            f"nothing to learn; see who can win at all: {check}"
        )
    if _is(unseen.policy, below=0.25) and _is(unseen.value, below=0.02):  # legal moves alone tell something of a policy
        return (
            "of who wins games that it has not seen the network knows no more than a guess; most often observe() does "
            f"not show what decides the game, or not from the view of the player to move: {check}"
        )
    return None


class Diagnostics:
    """Holds games out, remembers the habits of the newest ones, and judges whenever a model is published.

    held_out: positions of whole games that are never trained on.
    verdict:  of the model that was published last; what heartbeat and metrics say of it.
    """

    def __init__(self, game: GameSpec, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.held_out = Window(game.start)
        self.verdict: dict[str, Any] = {"warning": None}
        self._game, self._clock = game.name, clock
        self._newest: deque[tuple[bytes, int, int]] = deque(maxlen=NEWEST)  # opening, winner, end
        self._published: deque[tuple[int, float]] = deque(maxlen=NEWEST)  # step, when
        self._ages: dict[str, float] = {}  # worker -> for how long there has been a newer model than its newest

    def split(self, games: Games) -> tuple[Games, Games]:
        """Return the games to learn from, and those held out; a game's id alone decides."""
        held_out = games.games["id"] % np.uint64(HELD_OUT) == 0
        return games.where(~held_out), games.where(held_out)

    def watch(self, name: SegmentName, games: Games) -> None:
        """Remember the habits of games that have just been taken in."""
        actions, start = games.positions["action"], 0
        for game in games.games:
            plies = int(game["positions"])
            opening = actions[start : start + min(OPENING, plies // 2)].tobytes()
            self._newest.append((opening, int(game["winner"]), int(game["end"])))
            start += plies
        newer = [when for step, when in self._published if step > name.high]
        age = self._clock() - newer[0] if newer else 0.0
        self._ages[name.worker] = min(age, self._ages.get(name.worker, age))

    def judge(self, network: nn.Module, window: Window, *, step: int, device: torch.device) -> None:
        """Make the `verdict` on a network that is about to be published."""
        self._published.append((step, self._clock()))
        unseen, seen = (learned(network, each, device, seed=step) for each in (self.held_out, window))
        habits = habits_of(self._newest)
        stale = max(self._ages.items(), key=lambda each: each[1], default=("", 0.0))
        self._ages.clear()
        warning = diagnose(
            self._game, habits=habits, unseen=unseen, seen=seen, models=len(self._published), stale=stale
        )
        self.verdict = {
            "held_out": len(self.held_out),
            "policy_learned": unseen.policy,
            "value_learned": unseen.value,
            "openings": habits.openings,
            "drawn": round(habits.drawn, 4),
            "cut_off": round(habits.cut_off, 4),
            "stale_seconds": round(stale[1], 1),
            "warning": warning,
        }


def learned(network: nn.Module, window: Window, device: torch.device, *, seed: int) -> Learned:
    """Return what `network` knows of SAMPLE positions drawn from `window`, each as it was seen."""
    if not len(window):
        return Learned(None, None)
    batch = window.sample(SAMPLE, np.random.default_rng(seed), symmetries=False)
    observations, legal, policy, wdl = (torch.from_numpy(each).to(device) for each in batch)
    with torch.no_grad():
        policy_logits, wdl_logits = network.eval()(observations)
        found = loss(policy_logits, wdl_logits, legal, policy, wdl)
        mean = wdl.mean(dim=0).clamp(min=1e-6)
        guess = loss(torch.zeros_like(policy), torch.log(mean).expand_as(wdl), legal, policy, wdl)
        entropy = torch.special.entr(wdl).sum(dim=1).mean()
    return Learned(
        _share(found.policy.item(), guess.policy.item()),
        _share((found.value - entropy).item(), (guess.value - entropy).item()),
    )


def habits_of(newest: Collection[tuple[bytes, int, int]]) -> Habits:
    """Return the habits of games that are told by opening, winner and end."""
    openings, winners, ends = zip(*newest, strict=True) if newest else ((), (), ())
    count = max(1, len(newest))
    return Habits(len(newest), len(set(openings)), winners.count(DRAW) / count, ends.count(TRUNCATED) / count)


def _share(divergence: float, of_guess: float) -> float | None:
    return round(1 - divergence / of_guess, 4) if of_guess > 0.01 else None


def _is(learned: float | None, *, below: float) -> bool:
    """Tell whether so little is known, or nothing could be."""
    return learned is None or learned < below
