"""Where settings come from: defaults < preset < run.toml < environment < -o; each layer overrides the ones before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from plyzero.errors import UserError, nearest, shown
from plyzero.rules.game import Game
from plyzero.rules.random_game import few_random_games
from plyzero.settings import Layer, SearchSettings, Settings, find_renamed, with_new_names

PRESETS: Final[dict[str, dict[str, dict[str, object]]]] = {
    "quick": {"selfplay": {"seal_seconds": 4.0}, "trainer": {"publish_seconds": 8.0}},
    "standard": {
        "network": {"blocks": 4, "channels": 64},
        "trainer": {"window_positions": 50_000, "publish_seconds": 30.0},
    },
    "gpu": {
        "selfplay": {"parallel_games": 512},
        "network": {"blocks": 6, "channels": 96},
        "trainer": {"batch_size": 1024, "learning_rate": 2e-3, "window_positions": 100_000},
    },
}
"""Preset -> section -> key -> value. quick: minutes on two cores. standard: an hour or more on a few cores. gpu: a
trainer with a GPU and many workers."""

FEW_ROLLS: Final = 6
"""Largest number of rolls for which the search evaluates each roll, and luck is taken out of targets: those of a die.
In pig both teach more in the same time; with the 21 of backgammon they do not (benchmarks/strength/SWEEPS.md)."""

PLAIN_GAMES: Final = 16
"""Games that a worker plays at once where rules are in plain Python. They take most of the time, so that a larger batch
for the network gains a tenth at most, and the more games there are, the older is the network that began them."""

PLAIN_SIMULATIONS: Final = {"simulations": 32, "fast_simulations": 8}
"""Settings of self-play with the preset quick where rules are in plain Python: half the simulations make twice the
positions, from which a network learns more in the first minutes (benchmarks/strength/SWEEPS.md)."""

PREFIX: Final = "PLYZERO_"
"""Prefix of the environment variables that are settings."""


def resolve(
    *,
    preset: Layer | None = None,
    run: Layer | None = None,
    environment: Mapping[str, str],
    options: Iterable[str] = (),
) -> Settings:
    """Return the settings of all layers together; the layer `run` may be of any version.

    Raises UserError for renamed keys elsewhere, with the new names of all that are in one source; for an unknown key,
    with the nearest known one; for a bad value, with the source it came from.
    """
    layers: list[tuple[str, Layer]] = [
        ("the preset", preset or {}),
        ("run.toml", with_new_names(run or {})),
        ("the environment", parse_environment(environment)),
        ("-o", parse_options(options)),
    ]
    merged: dict[str, dict[str, object]] = {}
    for source, layer in layers:
        _check_renamed(source, layer)
        for section, values in layer.items():
            _check_keys(source, section, values)
            merged.setdefault(section, {}).update(values)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        if not first["loc"]:  # a check of several settings together
            raise UserError(message) from error
        section, *names = map(str, first["loc"])
        found = (source for source, layer in reversed(layers) if names and names[0] in layer.get(section, {}))
        source = next(found, "the settings")
        key = ".".join([section, *names])
        raise UserError(f"setting {key} from {source}: {message}, got {shown(first['input'])}") from error


def change_search(settings: SearchSettings, changes: Mapping[str, object]) -> SearchSettings:
    """Return `settings` with `changes`, key -> value, such as c_puct -> 2. Raises UserError as `resolve` does."""
    _check_keys("search settings", "search", changes)
    try:
        return SearchSettings.model_validate(settings.model_dump() | dict(changes))
    except ValidationError as error:
        first = error.errors()[0]
        key = f"search.{first['loc'][0]}"
        raise UserError(f"setting {key}: {first['msg']}, got {shown(first['input'])}") from error


def parse_search_options(options: Iterable[str]) -> dict[str, object]:
    """Return the changes in options such as search.c_puct=2. Raises UserError for settings of other sections."""
    layer = parse_options(options)
    if other := layer.keys() - {"search"}:
        raise UserError(f"-o: expected a setting of the search, such as search.c_puct=2, got one of {min(other)}")
    return layer.get("search", {})


def parse_environment(environment: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return the settings in environment variables such as PLYZERO_SELFPLAY__SIMULATIONS=64, by section.

    An empty variable sets nothing.
    """
    layer: dict[str, dict[str, object]] = {}
    for name, value in environment.items():
        if name.startswith(PREFIX) and value:
            if "__" not in name:
                example = f"{PREFIX}SELFPLAY__SIMULATIONS"
                raise UserError(f"{name}: expected {PREFIX}SECTION__KEY with two underscores, such as {example}")
            section, _, key = name.removeprefix(PREFIX).lower().partition("__")
            layer.setdefault(section, {})[key] = _parse_value(value)
    return layer


def parse_options(options: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the settings in options such as selfplay.simulations=64, by section."""
    layer: dict[str, dict[str, object]] = {}
    for option in options:
        path, equals, value = option.partition("=")
        section, dot, key = path.strip().partition(".")
        if not equals or not dot:
            raise UserError(f"expected -o SECTION.KEY=VALUE, such as selfplay.simulations=64, got {option!r}")
        layer.setdefault(section, {})[key] = _parse_value(value.strip())
    return layer


def _parse_value(text: str) -> str | None:
    return None if text.lower() in ("none", "") else text


def _check_renamed(source: str, layer: Layer) -> None:
    renamed = find_renamed(layer)
    if not renamed:
        return
    what = "settings"
    if source == "the environment":
        what = "variables"
        renamed = {_variable(old): _variable(new) for old, new in renamed.items()}
    changes = ", ".join(f"{old} is now {new}" for old, new in renamed.items())
    raise UserError(f"{source}: these {what} have new names since version 0.2: {changes}; rename them and start again")


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "__").upper()


def _check_keys(source: str, section: str, values: Mapping[str, object]) -> None:
    if section not in Settings.model_fields:
        raise UserError(f"{source}: no section is called {section!r}; {nearest(section, Settings.model_fields)}")
    known = type(getattr(Settings(), section)).model_fields
    for key in values:
        if key not in known:
            near = nearest(f"{section}.{key}", [f"{section}.{name}" for name in known])
            raise UserError(f"{source}: no setting is called {section}.{key}; {near}")


class Requirement(NamedTuple):
    """The smallest value of a setting that suits a game."""

    section: str
    key: str
    minimum: int


def preset_for(name: str, start: Game) -> Layer:
    """Return the settings of the preset `name`, changed where the game with the position `start` requires it.

    Raises UserError if there is no such preset.
    """
    if name not in PRESETS:
        raise UserError(f"expected one of the presets {', '.join(PRESETS)}, got {shown(name)}")
    preset = {section: dict(values) for section, values in PRESETS[name].items()}
    if start.policy_planes:
        preset.setdefault("network", {})["value_head"] = "pooled"
    if start.max_score or start.final_planes:
        preset.setdefault("network", {})["points"] = True
    if 0 < start.num_chances <= FEW_ROLLS:
        preset.setdefault("search", {})["all_rolls"] = True
        preset.setdefault("trainer", {})["luck_adjustment"] = True
    if not start.is_compiled:
        selfplay = preset.setdefault("selfplay", {})
        selfplay.setdefault("parallel_games", PLAIN_GAMES)
        if name == "quick":
            selfplay.update(PLAIN_SIMULATIONS)
    for required in unmet_requirements(name, start):
        preset.setdefault(required.section, {})[required.key] = required.minimum
    return preset


def unmet_requirements(name: str, start: Game) -> list[Requirement]:
    """Return the requirements of a game that exceed the preset `name`; none if its rules raise an error."""
    try:
        required = requirements(start)
    except Exception:
        return []
    settings = Settings.model_validate(PRESETS[name])
    return [each for each in required if each.minimum > getattr(getattr(settings, each.section), each.key)]


def requirements(start: Game) -> list[Requirement]:
    """Return the requirements of a game, estimated from its shapes and from eight random games.

    The network has enough blocks for its receptive field, 3 + 4 · blocks squares wide, to span the board. The window
    has room for 1000 games as long as random ones. With more than 64 legal moves a search has more simulations.
    """
    games = few_random_games(start)
    plies = sum(game.plies for game in games) / len(games)
    max_legal = max(len(game.positions[i].legal_actions()) for game in games for i in game.decisions)
    side = max(start.observation_shape[1:])
    window = 1000 * plies * Settings().selfplay.full_search_probability
    if max_legal <= 64:
        simulations = 0
    elif max_legal <= 200:
        simulations = 128
    else:
        simulations = 256
    return [
        Requirement("network", "blocks", minimum=math.ceil((side - 3) / 4)),
        Requirement("trainer", "window_positions", minimum=math.ceil(window)),
        Requirement("selfplay", "simulations", minimum=simulations),
    ]
