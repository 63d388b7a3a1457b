"""One game being played: its moves, how they are chosen, and its record."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from plyzero.game import Game
from plyzero.network import Network
from plyzero.records import BY_RULE, GAME, MOVE, POSITION, TRUNCATED, Games, winner_code
from plyzero.search import Root, SearchSlots
from plyzero.settings import SelfplaySettings
from plyzero.tree import UNPROVEN


class GameInPlay:
    """A game from its random opening to its end. All its randomness comes from `seed`."""

    def __init__(self, start: Game, settings: SelfplaySettings, *, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._position = start
        self._plies = 0
        self._full = False
        self._positions = np.zeros(start.max_plies, POSITION)
        self._observations = np.zeros((start.max_plies, *start.observation_shape), start.observation_dtype)
        self._moves: list[NDArray[np.void]] = []
        self._temperature_plies = settings.temperature_plies or max(1.0, start.max_plies / 5)
        self._play_opening()

    @property
    def is_over(self) -> bool:
        """Finished by the rules, or given up because it is longer than the game says it can be."""
        return self._plies >= len(self._positions) or self._position.outcome() is not None

    def begin_search(self, slots: SearchSlots, slot: int) -> None:
        """Start the search for the next move: full and noisy, or fast (playout-cap randomisation)."""
        settings = self._settings
        self._full = self._rng.random() < settings.full_share
        if self._full:
            slots.begin(slot, self._position, simulations=settings.simulations, rng=self._rng)
        else:
            slots.begin(slot, self._position, simulations=settings.fast_simulations, kind=settings.fast_kind)

    def play_move(self, root: Root, network: Network | None) -> None:
        """Choose a move from what the search found, record both, and play it."""
        action = int(root.actions[choose(root.policy, self.temperature(), self._rng)])
        moves = np.zeros(len(root.actions), MOVE)
        moves["action"], moves["visits"], moves["prior"], moves["q"] = root.actions, root.visits, root.prior, root.q
        position = self._append(action, moves)
        position["search"], position["full"], position["simulations"] = root.kind, self._full, root.simulations
        position["proven"] = root.proven
        position["root_value"], position["root_draw"] = root.value, root.draw
        position["network_value"], position["network_draw"] = root.network_value, root.network_draw
        if network is not None:
            position["model_fence"], position["model_step"] = network.fence, network.step
        self._position = self._position.play_unchecked(action)

    def temperature(self) -> float:
        """Return the temperature of the next move: it halves every `temperature_plies` down to the final one."""
        first, final = self._settings.temperature, self._settings.final_temperature
        return float(final + (first - final) * 0.5 ** (self._plies / self._temperature_plies))

    def finish(self) -> Games:
        """Return the record of the game, which is over."""
        outcome = self._position.outcome()
        game = np.zeros(1, GAME)
        game["id"] = game["seed"] = self._seed
        game["positions"] = self._plies
        game["winner"] = winner_code(outcome)
        game["end"] = TRUNCATED if outcome is None else BY_RULE
        game["opening_plies"] = int((self._positions["search"][: self._plies] == 0).sum())
        positions, observations = self._positions[: self._plies].copy(), self._observations[: self._plies].copy()
        return Games(game, positions, np.concatenate(self._moves), observations)

    def _play_opening(self) -> None:
        longest = self._settings.opening_plies
        if longest is None:
            longest = min(8, math.ceil(len(self._positions) / 5))
        for _ in range(int(self._rng.integers(min(longest, len(self._positions) - 1) + 1))):
            legal = self._position.legal_actions()
            action = int(legal[int(self._rng.integers(len(legal)))])
            following = self._position.play_unchecked(action)
            if following.outcome() is not None:
                return  # a game that is over before its first search teaches nothing
            moves = np.zeros(len(legal), MOVE)
            moves["action"], moves["q"] = legal, np.nan
            self._append(action, moves)["proven"] = UNPROVEN
            self._position = following

    def _append(self, action: int, moves: NDArray[np.void]) -> np.void:
        record: np.void = self._positions[self._plies]
        record["action"], record["to_play"], record["num_legal"] = action, self._position.to_play, len(moves)
        observation = np.asarray(self._position.observe())
        self._observations[self._plies] = observation
        if self._observations.dtype.kind == "b" and not np.array_equal(self._observations[self._plies], observation):
            raise ValueError(f"observation_dtype is bool, but observe() is not all 0 and 1 in\n{self._position}")
        self._moves.append(moves)
        self._plies += 1
        return record


def choose(policy: NDArray[np.float64], temperature: float, rng: np.random.Generator) -> int:
    """Return an index drawn from policy^(1/temperature); what has probability 0 is never drawn."""
    weights = (policy / policy.max()) ** (1 / temperature)
    edges = np.cumsum(weights)
    return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
