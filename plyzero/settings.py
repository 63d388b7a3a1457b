"""The settings of a run, one section each. A field states its meaning, its unit and the papers' value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from plyzero.setting_types import (
    MAX_INTEGER,
    MAX_SIMULATIONS,
    ClassName,
    FunctionName,
    Opponents,
    Until,
    without_nul,
)

MAX_MODEL_BYTES: Final = (1 << 31) - 1
"""Largest size of an ONNX file, in bytes: the limit of the format."""

Algorithm = Literal["gumbel", "puct"]
Precision = Literal["auto", "int8", "fp32"]


class SettingsSection(BaseModel):
    """The base of every section: instances are frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _check_value(cls, value: object) -> object:
        if isinstance(value, int) and value > MAX_INTEGER:
            raise ValueError(f"expected at most {MAX_INTEGER}")
        return without_nul(value)


class SearchSettings(SettingsSection):
    """Tree search."""

    algorithm: Algorithm = "gumbel"
    """Algorithm of full searches: gumbel (Danihelka et al., 2022), strong with few simulations, or puct (AlphaZero)."""

    c_puct: float = Field(1.25, gt=0)
    """PUCT: exploration constant, the weight of the prior. AlphaZero: 1.25, growing slowly with the visits."""

    fpu_reduction: float = Field(0.25, ge=0)
    """PUCT: the value of an unvisited action is its node's value minus this times √(sum of the visited actions' priors)
    (first-play urgency). KataGo: 0.2."""

    dirichlet_fraction: float = Field(0.25, ge=0, le=1)
    """PUCT, self-play only: weight of the Dirichlet noise in the root's priors. AlphaZero: 0.25."""

    dirichlet_alpha: float | None = Field(None, gt=0)
    """PUCT, self-play only: concentration of the Dirichlet noise; none = 10 / number of legal actions, at most 1.
    AlphaZero, chess: 0.3."""

    max_considered_actions: int = Field(16, ge=1)
    """Gumbel: number of root actions with which sequential halving starts. Danihelka et al.: 16."""

    c_visit: float = Field(50.0, ge=0)
    """Gumbel: c_visit in σ(q) = (c_visit + largest visit count) · c_scale · q. Danihelka et al.: 50."""

    c_scale: float = Field(1.0, gt=0)
    """Gumbel: c_scale in the formula of c_visit; q is in [0, 1] and is not rescaled. Danihelka et al., Go and chess:
    1."""

    solver_nodes: int = Field(1_000_000, ge=0, le=1_000_000_000)
    """Play and matches, not self-play and ratings: number of positions that alpha-beta from the root may visit, to find
    wins of a few plies and play the ends of compiled games without dice exactly; 0 = none."""

    score_weight: float = Field(0.0, ge=0, le=1)
    """Games with points: w of the utility (value + w · 2/π · atan((score - s_0) / c)) / (1 + w) that is maximised;
    s_0 is the score expected at the root. KataGo: 0.4."""

    score_scale: float = Field(0.1, gt=0)
    """Games with points: c in the formula of score_weight, as a share of the game's max_score. KataGo, 9x9: 0.08."""

    all_rolls: bool = False
    """Dice, on for games of at most 6 rolls: the first simulation at a chance node of at most 36 rolls evaluates the
    position after each roll, and the value of the node is then their expectation."""


SEGMENTS_PER_SECOND: Final = 40.0
"""Segments that all workers of a run together seal in a second, at most, while none of them has many games."""

LONGEST_SEAL_SECONDS: Final = 25.0
"""Time after which a worker seals its games however many workers there are: the trainer has them in half a minute."""


class SelfplaySettings(SettingsSection):
    """Self-play workers."""

    parallel_games: int = Field(64, ge=1, le=65_536)
    """Games that a worker plays in parallel; their leaves form one network batch. Rules in plain Python: 16."""

    simulations: int = Field(64, ge=2, le=MAX_SIMULATIONS)
    """Simulations of a full search, whose result is a training target. AlphaZero: 800; with gumbel 16 to 64 are
    enough. Rules in plain Python with the preset quick: 32."""

    fast_simulations: int = Field(16, ge=1, le=MAX_SIMULATIONS)
    """Simulations of a fast search, which only chooses a move (playout cap randomisation; Wu, 2019). Rules in plain
    Python with the preset quick: 8."""

    fast_algorithm: Algorithm = "puct"
    """Algorithm of fast searches: gumbel or puct."""

    full_search_probability: float = Field(0.25, gt=0, le=1)
    """Probability that a move gets a full search. KataGo: 0.25; AlphaZero: 1."""

    opening_plies: int | None = Field(None, ge=0)
    """A game starts with 0 to this many random moves; none = two fifths of the game's max_plies, at most 16."""

    starts: str | None = None
    """A file of positions, in the form of `--start` and separated by blank lines, at which some games begin; every
    worker reads it."""

    start_share: float = Field(0.5, gt=0, le=1)
    """The share of games that begin at a position of `starts`."""

    temperature: float = Field(1.0, gt=0)
    """Temperature at the start of a game; moves are sampled from policy^(1/temperature). AlphaZero: 1."""

    final_temperature: float = Field(0.2, gt=0)
    """Final temperature; the decay during the game is exponential."""

    temperature_plies: float | None = Field(None, gt=0)
    """Half-life of the decay from temperature to final_temperature, in plies; none = a fifth of the game's max_plies,
    at most 40. KataGo: the board's width."""

    resign_below: float = Field(0.0, ge=0, lt=0.5)
    """A game ends as resigned once two searches in a row expect a player to score less than this, from 0 to 1; 0 =
    never. A tenth of the games goes on, to measure how often that would be wrong. AlphaGo Zero: about 0.05."""

    bootstrap_positions: int = Field(4096, ge=1)
    """Full-search positions that all workers together generate before the first model exists; then they wait for it."""

    bootstrap_seconds: float = Field(20.0, gt=0)
    """Workers of slow games make fewer positions: a quarter of them this many seconds after the first game, a ninth
    after twice the time."""

    when_ahead: Literal["keep", "throttle", "turns"] = "keep"
    """What workers do while the trainer has enough positions to train on: keep = continue to play, throttle = wait,
    unless the trainer stops making progress. turns = wait while it trains; it waits while they play."""

    seal_positions: int = Field(8192, ge=1, le=100_000)
    """A segment is sealed when it has this many positions."""

    seal_seconds: float = Field(10.0, gt=0)
    """A segment is also sealed when its first game is this many seconds old; where there are hundreds of workers
    later, but at most 25 seconds old."""

    poll_seconds: float = Field(2.0, gt=0)
    """Seconds between a worker's checks for a new model when no file event arrives."""

    reuse_trees: bool = False
    """PUCT: start a search from the subtree of the previous one, whose visits are kept."""

    cache_mb: int = Field(32, ge=0, le=65_536)
    """Size of a worker's cache of network evaluations, in MB; a new model clears it; 0 = no cache."""

    precision: Precision = "auto"
    """Numbers of the network in self-play: int8 = 8-bit integers, if the trainer finds a model's loss of accuracy small
    enough; auto = int8 on a processor with VNNI, otherwise fp32. All else uses fp32."""

    threads: int = Field(1, ge=1, le=1024)
    """CPU threads of one worker's network. One thread and one worker per core are fastest."""

    def seal_interval(self, workers: float) -> float:
        """Return the age in seconds at which the first game of a segment seals it, where so many workers play.

        It is seal_seconds for few. Many seal less often, because each segment costs the trainer some milliseconds
        however small it is.
        """
        return max(self.seal_seconds, min(workers / SEGMENTS_PER_SECOND, LONGEST_SEAL_SECONDS))


class NetworkSettings(SettingsSection):
    """The network."""

    module: ClassName = "plyzero.trainer.network:ResidualNetwork"
    """The class of the network, MODULE:CLASS, such as my_net:MyNet; docs/python-api.md describes its methods."""

    blocks: int = Field(3, ge=1, le=1024)
    """Number of residual blocks. AlphaZero: 19."""

    channels: int = Field(32, ge=4)
    """Channels of each residual block. AlphaZero: 256."""

    value_head: Literal["dense", "pooled"] = "dense"
    """dense: weights for each square, as AlphaZero. pooled (default for games with policy_planes): no weight depends on
    the size of the board, so that one network plays every size."""

    points: bool = False
    """Whether the network also estimates points and final boards of games that have them; new runs of such games do."""


class TrainerSettings(SettingsSection):
    """The trainer."""

    replay_ratio: float = Field(8.0, gt=0)
    """Positions trained per full-search position generated. KataGo: 4, on one machine 8; AlphaZero: below 1."""

    bootstrap_passes: float = Field(4.0, gt=0)
    """Positions trained per full-search position that was generated before the first model, in place of
    replay_ratio."""

    batch_size: int = Field(256, ge=2, le=131_072)
    """Positions per optimiser step. AlphaZero: 4096."""

    learning_rate: float = Field(4e-3, gt=0)
    """Learning rate, after the warm-up."""

    optimizer: FunctionName = "plyzero.trainer.learner:adamw"
    """The function that makes the optimiser, MODULE:FUNCTION, such as my_optimizer:sgd."""

    schedule: FunctionName = "plyzero.trainer.learner:warm_up"
    """The function that returns the learning rate of a step, MODULE:FUNCTION, such as my_optimizer:cosine."""

    warmup_steps: int = Field(200, ge=1)
    """Steps in which the learning rate rises linearly from zero."""

    weight_decay: float = Field(1e-4, ge=0)
    """Weight decay of the optimiser."""

    max_grad_norm: float = Field(5.0, gt=0)
    """Gradient clipping: the largest norm of the gradient."""

    search_value_weight: float = Field(0.5, ge=0, le=1)
    """Weight of the search's values in the value target; the rest is the game's outcome. AlphaZero: 0."""

    td_lambda: float = Field(0.9, ge=0, le=1)
    """λ of TD(λ) over those search values, per ply: 0 = the position's own root value, 1 = the last root value of the
    game."""

    score_weight: float = Field(0.5, ge=0)
    """Weight in the loss of the score, of networks that estimate points."""

    final_board_weight: float = Field(0.15, ge=0)
    """Weight in the loss of the final board, of networks that estimate points."""

    luck_adjustment: bool = False
    """Dice, on for games of at most 6 rolls: the luck of all later rolls is subtracted from the value target, which
    keeps its mean and lowers its variance, most of all with search.all_rolls."""

    window_positions: int = Field(20_000, ge=1)
    """The window holds all positions up to this number, and then grows sublinearly (Wu, 2019)."""

    window_growth: float = Field(0.4, ge=0, le=1)
    """Positions that the window gains per position generated, just above window_positions. KataGo: 0.4."""

    window_exponent: float = Field(0.75, gt=0, le=1)
    """Exponent of the window's growth. KataGo: 0.65 to 0.75."""

    ema_decay: float = Field(0.995, ge=0, lt=1)
    """Decay per step of the exponential moving average (EMA) of the weights; the averaged weights are published."""

    publish_seconds: float = Field(15.0, ge=0)
    """Shortest time between two published models, in seconds."""

    targets: FunctionName = "plyzero.trainer.targets:mixed_targets"
    """The function that makes the training targets, MODULE:FUNCTION, such as my_targets:final_result."""

    loss: FunctionName = "plyzero.trainer.loss:loss"
    """The function that is minimised, MODULE:FUNCTION, such as my_loss:loss."""

    threads: int = Field(1, ge=1, le=1024)
    """CPU threads of the trainer."""

    @property
    def mature_steps(self) -> float:
        """Number of steps after which learning is judged: then only e^-4 = 2 % of the average is from the warm-up."""
        return self.warmup_steps + 4 / (1 - self.ema_decay)


class StoreSettings(SettingsSection):
    """Durability, and how much is kept on the volume."""

    sync_seconds: float = Field(1.0, ge=0)
    """Seconds until a finished game is synced to disk, so that it survives a power failure; 0 = at once."""

    min_free_mb: int = Field(200, ge=0)
    """Workers pause while the volume has less free space than this, in MB."""

    min_free_files: int = Field(500, ge=0)
    """Workers pause while the volume has room for fewer new files than this."""

    keep_positions: int = Field(10_000_000, ge=1)
    """The oldest segments outside of the window are removed while the store has more positions than this."""

    keep_mb: int = Field(4096, ge=1)
    """The oldest segments outside of the window are also removed while the store is larger than this many MB."""

    keep_models: int = Field(8, ge=1)
    """Number of the newest models that are kept, besides those in use, the best and the first."""

    keep_model_minutes: float = Field(10.0, ge=0)
    """Minutes for which every model is kept."""


class RatingSettings(SettingsSection):
    """How `train` measures strength while it runs."""

    opponents: Opponents = ("random", "mcts:100")
    """Opponents of the newest model: random, mcts:N, bot:LEVEL, your own agent, gtp:COMMAND, as in `match`."""

    games: int = Field(20, ge=2, le=100_000)
    """Games against each opponent, with both colours, from random openings; fewer where the rules are slow, at least
    2."""

    simulations: int = Field(32, ge=0, le=MAX_SIMULATIONS)
    """Simulations of the model per move; 0 = its policy without search."""


class BudgetSettings(SettingsSection):
    """When a training is over: at the first of these. By default it goes on until it is stopped."""

    steps: int | None = Field(None, ge=1)
    """Number of optimiser steps."""

    games: int | None = Field(None, ge=1)
    """Number of games that the trainer has read."""

    positions: int | None = Field(None, ge=1)
    """Number of positions of these games."""

    minutes: float | None = Field(None, gt=0)
    """Minutes of training after the first game, in all starts together; not before the first model."""

    until: Until | None = None
    """A score of a model, "score >= 0.9 against mcts:100", or its mean points, "points >= 2 against mcts:100"."""


class Settings(SettingsSection):
    """All settings of a run."""

    search: SearchSettings = SearchSettings()
    selfplay: SelfplaySettings = SelfplaySettings()
    network: NetworkSettings = NetworkSettings()
    trainer: TrainerSettings = TrainerSettings()
    store: StoreSettings = StoreSettings()
    rating: RatingSettings = RatingSettings()
    budget: BudgetSettings = BudgetSettings()

    @model_validator(mode="after")
    def _check_that_training_can_proceed(self) -> Self:
        trainer, selfplay = self.trainer, self.selfplay
        bootstrap = self.bootstrap_credit
        if bootstrap < trainer.batch_size:
            raise ValueError(
                f"trainer.bootstrap_passes * selfplay.bootstrap_positions = {trainer.bootstrap_passes:g} * "
                f"{selfplay.bootstrap_positions} = {bootstrap:g} is less than trainer.batch_size = "
                f"{trainer.batch_size}: the trainer could never make a step, and the workers would wait forever for "
                "its first model"
            )
        max_credit = trainer.replay_ratio * trainer.window_positions
        if max_credit < 4 * trainer.batch_size:
            raise ValueError(
                f"trainer.replay_ratio * trainer.window_positions = {trainer.replay_ratio:g} * "
                f"{trainer.window_positions} = {max_credit:g} is less than 4 * trainer.batch_size = "
                f"{4 * trainer.batch_size}: the trainer could never collect enough positions for its steps"
            )
        return self

    @property
    def bootstrap_credit(self) -> float:
        """Number of positions that are trained for the first model."""
        return self.trainer.bootstrap_passes * self.selfplay.bootstrap_positions

    def left_for_first_model(self, *, trained: float, credit: float) -> int:
        """Return the number of positions that are still to be trained before the first model is published."""
        return int(max(0, min(credit, self.bootstrap_credit - trained)))


Layer = Mapping[str, Mapping[str, object]]
"""Settings from one source: section -> key -> value."""

RENAMED: Final[Mapping[str, str]] = {
    "search.kind": "search.algorithm",
    "search.noise_alpha": "search.dirichlet_alpha",
    "search.noise_fraction": "search.dirichlet_fraction",
    "search.considered_actions": "search.max_considered_actions",
    "selfplay.slots": "selfplay.parallel_games",
    "selfplay.full_share": "selfplay.full_search_probability",
    "selfplay.fast_kind": "selfplay.fast_algorithm",
    "trainer.value_lambda": "trainer.td_lambda",
    "trainer.search_value_share": "trainer.search_value_weight",
    "trainer.average_decay": "trainer.ema_decay",
    "trainer.gradient_norm": "trainer.max_grad_norm",
    "store.reserve_mb": "store.min_free_mb",
}
"""Settings that were renamed in version 0.2: old dotted key -> new dotted key, always in the same section."""


def find_renamed(layer: Layer) -> dict[str, str]:
    """Return old dotted key -> new dotted key, for each renamed key in `layer`."""
    keys = {f"{section}.{key}" for section, values in layer.items() for key in values}
    return {old: new for old, new in RENAMED.items() if old in keys}


def with_new_names(layer: Layer) -> dict[str, dict[str, object]]:
    """Return `layer` with the new names of all keys; a value under the new name wins over one under the old name."""
    renamed = {section: dict(values) for section, values in layer.items()}
    for old, new in find_renamed(layer).items():
        section, _, key = old.partition(".")
        renamed[section].setdefault(new.partition(".")[2], renamed[section].pop(key))
    return renamed


def parse_stored_settings(text: str) -> Settings:
    """Return the settings in `text`, the JSON in a model's metadata, with renamed keys translated.

    Raises ValueError if it is not JSON, or has keys or values that this version does not know.
    """
    try:
        stored = json.loads(text)
        if not isinstance(stored, dict) or not all(isinstance(values, dict) for values in stored.values()):
            raise ValueError("expected a JSON object of sections")
        return Settings.model_validate(with_new_names(stored))
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"the stored settings cannot be read: {error}") from error
