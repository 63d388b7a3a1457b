"""The settings: one frozen model per concern, each field with its meaning, its unit and the papers' value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

Algorithm = Literal["gumbel", "puct"]

Opponent = Annotated[str, StringConstraints(pattern=r"^(random|mcts:[1-9]\d*)$")]
Opponents = Annotated[
    tuple[Opponent, ...], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)
]
"""A list, which environment and command line write with commas."""


MAX_WHOLE_NUMBER = 2**40
"""Of any whole number."""


Layer = Mapping[str, Mapping[str, Any]]
"""Settings from one source: section -> key -> value."""


class SettingsSection(BaseModel):
    """Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_no_mistake(cls, value: object) -> object:
        if isinstance(value, int) and value > MAX_WHOLE_NUMBER:
            raise ValueError(f"expected at most {MAX_WHOLE_NUMBER}")
        return value


class SearchSettings(SettingsSection):
    """How a tree grows."""

    algorithm: Algorithm = "gumbel"
    """How full searches choose: gumbel (Danihelka et al., 2022), good with few simulations, or puct (AlphaZero)."""

    c_puct: float = Field(1.25, gt=0)
    """PUCT: weight of the prior against the value. AlphaZero: 1.25, growing slowly with the visits."""

    fpu_reduction: float = Field(0.25, ge=0)
    """PUCT: an untried action is worth its node's value less this times √(share of the priors tried). KataGo: 0.2."""

    dirichlet_fraction: float = Field(0.25, ge=0, le=1)
    """PUCT, self-play: share of Dirichlet noise in the root's priors. AlphaZero: 0.25."""

    dirichlet_alpha: float | None = Field(None, gt=0)
    """PUCT, self-play: concentration of that noise; none = 10 / legal actions, at most 1. AlphaZero, chess: 0.3."""

    max_considered_actions: int = Field(16, ge=1)
    """Gumbel: actions that sequential halving starts with. Danihelka et al.: 16."""

    c_visit: float = Field(50.0, ge=0)
    """Gumbel: σ(q) = (c_visit + most visits) · c_scale · q. Danihelka et al.: 50."""

    c_scale: float = Field(1.0, gt=0)
    """Gumbel: see c_visit; q lies in [0, 1] and is not rescaled. Danihelka et al., Go and chess: 1."""


class SelfplaySettings(SettingsSection):
    """How a worker makes games."""

    parallel_games: int = Field(64, ge=1)
    """Games a worker plays side by side; their positions form one network batch."""

    simulations: int = Field(64, ge=2)
    """Simulations of a full search, whose result the network learns. AlphaZero: 800; Gumbel does with 16 to 64."""

    fast_simulations: int = Field(16, ge=1)
    """Simulations of a fast search, which only moves the game on (playout-cap randomisation, Wu, 2019)."""

    fast_algorithm: Algorithm = "puct"
    """How fast searches choose."""

    full_search_probability: float = Field(0.25, gt=0, le=1)
    """Probability that a move gets a full search. KataGo: 0.25; AlphaZero: 1."""

    opening_plies: int | None = Field(None, ge=0)
    """A game starts with 0 to this many random moves, all counts alike probable, so that the network sees positions
    which good players avoid; none = two fifths of the game's max_plies, at most 16."""

    temperature: float = Field(1.0, gt=0)
    """Moves are drawn from policy^(1/temperature); this is its value at the start of a game. AlphaZero: 1."""

    final_temperature: float = Field(0.2, gt=0)
    """Where the temperature falls to, by halves."""

    temperature_plies: float | None = Field(None, gt=0)
    """Plies in which the temperature halves; none = a fifth of the game's max_plies. KataGo: the board's width."""

    bootstrap_positions: int = Field(8192, ge=1)
    """Full-search positions that all workers together make before the first model; then they wait for it."""

    when_ahead: Literal["keep", "throttle"] = "keep"
    """What workers do while the trainer has enough to learn from: keep playing, or wait, as long as it progresses."""

    seal_positions: int = Field(8192, ge=1, le=100_000)
    """A segment is sealed when it holds so many positions ..."""

    seal_seconds: float = Field(10.0, gt=0)
    """... or when its first game is so many seconds old."""

    poll_seconds: float = Field(2.0, gt=0)
    """How often a worker looks for a new model when no file event wakes it."""

    reuse_trees: bool = False
    """Let PUCT searches go on in the tree of the search before: as many new simulations, and its visits on top."""

    cache_mb: int = Field(32, ge=0)
    """Memory for evaluations that a worker remembers until its next model; 0 = none."""

    threads: int = Field(1, ge=1)
    """Threads of one worker's network. On a CPU one thread and a process per core is fastest."""


class NetworkSettings(SettingsSection):
    """How big the network is."""

    blocks: int = Field(3, ge=1)
    """Residual blocks. AlphaZero: 19."""

    channels: int = Field(32, ge=4)
    """Channels of each block. AlphaZero: 256."""


class TrainerSettings(SettingsSection):
    """How the network learns."""

    replay_ratio: float = Field(8.0, gt=0)
    """Positions trained per full-search position generated. KataGo: 4, on one machine 8; AlphaZero: below 1."""

    bootstrap_passes: float = Field(4.0, gt=0)
    """How often the positions made before the first model are trained; they count for no more."""

    batch_size: int = Field(256, ge=2)
    """Positions per step. AlphaZero: 4096."""

    learning_rate: float = Field(4e-3, gt=0)
    """Of AdamW, after the warm-up."""

    warmup_steps: int = Field(200, ge=1)
    """Steps in which the learning rate grows from nothing."""

    weight_decay: float = Field(1e-4, ge=0)
    """Of AdamW."""

    max_grad_norm: float = Field(5.0, gt=0)
    """Gradients longer than this are cut to it."""

    search_value_weight: float = Field(0.5, ge=0, le=1)
    """Share of the search's own values in the value target; the rest is the game's outcome. AlphaZero: 0."""

    td_lambda: float = Field(0.9, ge=0, le=1)
    """How far ahead those values look: TD(λ), per ply. 0 = the position's own root value, 1 = the game's last one."""

    window_positions: int = Field(20_000, ge=1)
    """The window holds all positions up to this many, then grows as a power of their number (Wu, 2019)."""

    window_growth: float = Field(0.4, ge=0, le=1)
    """Positions the window gains per position generated, just above window_positions. KataGo: 0.4."""

    window_exponent: float = Field(0.75, gt=0, le=1)
    """How that gain falls off. KataGo: 0.65 to 0.75."""

    ema_decay: float = Field(0.995, ge=0, lt=1)
    """Published are averaged weights; what share of the average each step keeps."""

    publish_seconds: float = Field(15.0, ge=0)
    """Shortest time between two published models."""

    threads: int = Field(1, ge=1)
    """Threads of the trainer on a CPU."""


class StoreSettings(SettingsSection):
    """How safe what lies on the volume is, and how much of it is kept."""

    sync_seconds: float = Field(1.0, ge=0)
    """A finished game survives a power failure after so many seconds, the death of its process at once. 0 = at once."""

    min_free_mb: int = Field(200, ge=0)
    """Workers pause while the volume has less room than so many megabytes, and go on when it has more again."""

    keep_positions: int = Field(10_000_000, ge=1)
    """Segments outside of the window are removed, oldest first, while the store holds more positions than this ..."""

    keep_mb: int = Field(4096, ge=1)
    """... or takes more megabytes."""

    keep_models: int = Field(8, ge=1)
    """So many of the newest models are kept, besides those in use and the best one ..."""

    keep_model_minutes: float = Field(10.0, ge=0)
    """... and every model for so many minutes."""


class RatingSettings(SettingsSection):
    """How `train` shows strength as it goes."""

    opponents: Opponents = ("random", "mcts:100")
    """Whom the newest model meets: random, or mcts:N, pure MCTS with N rollouts a move."""

    games: int = Field(20, ge=2)
    """Games against each of them, both colours, from random openings."""

    simulations: int = Field(32, ge=0)
    """Simulations of the bot; 0 = the raw network."""


class Settings(SettingsSection):
    """All settings of a run."""

    search: SearchSettings = SearchSettings()
    selfplay: SelfplaySettings = SelfplaySettings()
    network: NetworkSettings = NetworkSettings()
    trainer: TrainerSettings = TrainerSettings()
    store: StoreSettings = StoreSettings()
    rating: RatingSettings = RatingSettings()

    @model_validator(mode="after")
    def _nobody_waits_for_ever(self) -> Self:
        trainer, selfplay = self.trainer, self.selfplay
        bootstrap = trainer.bootstrap_passes * selfplay.bootstrap_positions
        if bootstrap < trainer.batch_size:
            raise ValueError(
                f"trainer.bootstrap_passes * selfplay.bootstrap_positions = {trainer.bootstrap_passes:g} * "
                f"{selfplay.bootstrap_positions} = {bootstrap:g} is less than trainer.batch_size = "
                f"{trainer.batch_size}: the trainer could never make a step, and the workers would wait for its first "
                "model for ever"
            )
        most = trainer.replay_ratio * trainer.window_positions
        if most < 4 * trainer.batch_size:
            raise ValueError(
                f"trainer.replay_ratio * trainer.window_positions = {trainer.replay_ratio:g} * "
                f"{trainer.window_positions} = {most:g} is less than 4 * trainer.batch_size = "
                f"{4 * trainer.batch_size}: the trainer could never save up enough for its steps"
            )
        return self
