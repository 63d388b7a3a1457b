"""A run directory: all that the processes of one training run share."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from plyzero.errors import UserError, shown
from plyzero.files import read_file, write_file
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.run.configuration import resolve
from plyzero.run.presets import PRESETS, preset_for
from plyzero.settings import Settings

FORMAT = 1
"""Of the layout below; docs/formats.md describes it."""

MAX_BYTES = 1 << 14
"""Of run.toml."""


@dataclass(frozen=True)
class Run:
    """An open run directory.

    root:     holds run.toml and the directories below.
    game:     what is being learned; part of every record and every model.
    preset:   which defaults it was made with.
    seed:     all randomness starts from it.
    settings: as they hold for this process.
    """

    root: Path
    game: GameSpec
    preset: str
    seed: int
    settings: Settings

    @property
    def segments(self) -> Path:
        """Sealed segments of finished games, from the workers to the trainer."""
        return self.root / "replay"

    @property
    def journals(self) -> Path:
        """What each worker has finished and not yet sealed."""
        return self.root / "journal"

    @property
    def quarantine(self) -> Path:
        """What could not be read; nobody looks into it but a person."""
        return self.root / "quarantine"

    @property
    def models(self) -> Path:
        """Published models, from the trainer to everybody."""
        return self.root / "models"

    @property
    def trainer(self) -> Path:
        """The trainer's own states and fence numbers."""
        return self.root / "trainer"

    @property
    def workers(self) -> Path:
        """One heartbeat per process."""
        return self.root / "workers"

    @property
    def metrics(self) -> Path:
        """JSON lines, one writer per file."""
        return self.root / "metrics"

    @property
    def logs(self) -> Path:
        """What the processes that `train` starts print."""
        return self.root / "logs"


def create_run(root: Path, game: GameSpec, *, preset: str = "quick", seed: int = 0, options: Sequence[str] = ()) -> Run:
    """Make `root` a run directory whose run.toml holds the resolved settings. FileExistsError if it is one already."""
    _check_seed(seed)
    if preset not in PRESETS:
        raise UserError(f"expected a preset out of {', '.join(PRESETS)}, got {preset!r}")
    settings = resolve(preset=preset_for(preset, game.start), environment=os.environ, options=options)
    table: dict[str, Any] = {
        "format": FORMAT,
        "game": game.name,
        "game_version": game.start.version,
        "seed": seed,
        "preset": preset,
        **settings.model_dump(exclude_none=True),
    }
    for directory in ("replay", "journal", "models", "trainer", "workers", "metrics", "logs"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    write_file(root / "run.toml", tomli_w.dumps(table).encode())
    return Run(root, game, preset, seed, settings)


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise UserError(f"expected a seed from 0 to 2^63 - 1, got {shown(seed)}")


def open_run(root: Path, *, game: GameSpec | None = None, options: Sequence[str] = ()) -> Run:
    """Return the run in `root`. Raises UserError if there is none, or if it is of another `game`."""
    path = root / "run.toml"
    try:
        table = tomllib.loads(read_file(path, max_bytes=MAX_BYTES).decode())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{root} is not a run directory: it has no run.toml; make one with plyzero init") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    header = {key: table.pop(key, None) for key in ("format", "game", "game_version", "seed", "preset")}
    if header["format"] != FORMAT:
        raise UserError(f"{path} has format {shown(header['format'])}; this version of plyzero reads format {FORMAT}")
    seed = header["seed"]
    if not isinstance(header["game"], str) or type(seed) is not int or header["preset"] not in list(PRESETS):
        raise UserError(f"{path} needs game (a string), seed (a number) and preset ({', '.join(PRESETS)})")
    _check_seed(seed)
    if game is not None and game.name != header["game"]:
        raise UserError(f"{root} is a run of {header['game']}, not of {game.name}; give another --run directory")
    loaded = load_game(header["game"])
    if loaded.start.version != header["game_version"]:
        raise UserError(
            f"{root} was made with version {shown(header['game_version'])} of {loaded.name}, "
            f"the rules are now version {loaded.start.version}; start a new run"
        )
    tables = {key: value for key, value in table.items() if isinstance(value, dict)}
    if loose := table.keys() - tables.keys():
        raise UserError(f"{path}: {', '.join(sorted(loose))} stands outside of the sections")
    preset = str(header["preset"])
    settings = resolve(preset=PRESETS[preset], run=tables, environment=os.environ, options=options)
    return Run(root, loaded, preset, seed, settings)


def open_or_create_run(
    root: Path,
    game: GameSpec | None,
    *,
    preset: str | None = None,
    seed: int | None = None,
    options: Sequence[str] = (),
) -> Run:
    """Return the run in `root`; with a `game` make it if it is not there. Several processes may do so at once.

    Raises UserError if the run that is there differs in game, preset or seed.
    """
    if game is not None and not (root / "run.toml").exists():
        try:
            return create_run(root, game, preset=preset or "quick", seed=seed or 0, options=options)
        except FileExistsError:
            pass  # another process was faster
    run = open_run(root, game=game, options=options)
    for name, wanted, held in (("preset", preset, run.preset), ("seed", seed, run.seed)):
        if wanted is not None and wanted != held:
            raise UserError(f"{root} was made with {name} {held}, not {wanted}; give another --run directory")
    return run
