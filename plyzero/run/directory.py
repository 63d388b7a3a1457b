"""The run directory, which all processes of one training run share: create it, open it, its subdirectories."""

from __future__ import annotations

import errno
import os
import re
import secrets
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import tomli_w

from plyzero.errors import UserError, plain, shown
from plyzero.files import read_file, write_file
from plyzero.lines import decode
from plyzero.pulse import pulse_file
from plyzero.rules.catalog import GameSpec, load_game
from plyzero.rules.declarations import check_not_over
from plyzero.run.configuration import PRESETS, parse_environment, parse_options, preset_for, resolve
from plyzero.settings import Layer, Settings, with_new_names
from plyzero.volumes import RemotePath, keeps_first

FORMAT: Final = 1
"""Format version of a run directory; docs/formats.md describes the layout."""

KEY: Final = "run"
"""The name of the id in files: a metadata key of models, an attribute of segments, a key of journals and states."""

WITHOUT: Final = "files_without_id"
"""The key of run.toml, beside `id`, that says whether files without an id belong to the run too."""

PATTERN: Final = r"[0-9a-f]{16}"
"""Pattern of an id."""

MAX_BYTES: Final = 1 << 14
"""Largest size of a run.toml, in bytes."""


class RunId(NamedTuple):
    """The id of a run, which the files that belong to it carry.

    text:          16 hex digits, random. A copy of a run has the id of the original, and can be continued.
    older_without: whether files without an id belong to it too, because the run is older than ids are.
    """

    text: str
    older_without: bool = False

    @property
    def header(self) -> dict[str, str | bool]:
        """The id as run.toml has it."""
        header: dict[str, str | bool] = {"id": self.text}
        if self.older_without:
            header[WITHOUT] = True
        return header

    def find_fault(self, found: object) -> str | None:
        """Return why a file with the id `found`, or None, does not belong to this run; None if it does."""
        if found == self.text or (found is None and self.older_without):
            return None
        owner = "no run" if found is None else f"the run {shown(found)}"
        return f"it is of {owner}, and this is the run {self.text}"


@dataclass(frozen=True, kw_only=True)
class RunDirectory:
    """A run directory as data, without the rules of its game.

    root:     the directory itself, which contains run.toml and the directories below; absolute, because rules may leave
              the current directory.
    identity: name and version of the game that is learned, as run.toml has them; part of every segment and model.
    preset:   the name of the preset with which the run was created.
    seed:     the seed of all random numbers.
    settings: the settings of this process, which the environment and -o may have changed.
    id:       the id of this run; None = a run of an earlier version that has only been read since.
    scratch:  for a run in a bucket, a directory of this machine for journals and logs; None = this process writes none.
    own_budget: the settings of the budget that the environment or -o gives to this process alone.
    """

    root: Path
    identity: str
    preset: str
    seed: int
    settings: Settings
    id: RunId | None = None
    scratch: Path | None = None
    own_budget: frozenset[str] = frozenset()

    @property
    def local(self) -> Path:
        """The directory for what needs a file system: appending, and locks that end with their process."""
        return local_directory(self.root, self.scratch)

    @property
    def game_name(self) -> str:
        """The name of the game, without the version of its rules."""
        return self.identity.rpartition(" v")[0]

    @property
    def segments(self) -> Path:
        """The directory of sealed segments, which workers write and the trainer reads."""
        return self.root / "replay"

    @property
    def journals(self) -> Path:
        """The directory of journals: each worker's finished games that are not sealed yet."""
        return self.local / "journal"

    @property
    def quarantine(self) -> Path:
        """The directory of files that could not be read, kept for a person to look at."""
        return self.root / "quarantine"

    @property
    def models(self) -> Path:
        """The directory of published models, which the trainer writes and all others read."""
        return self.root / "models"

    @property
    def trainer(self) -> Path:
        """The directory of the trainer's states, fence numbers and lock."""
        return self.root / "trainer"

    @property
    def workers(self) -> Path:
        """The directory of heartbeats, one file per process."""
        return self.root / "workers"

    def heartbeats(self, name: str) -> list[Path]:
        """Return the heartbeat files of a process: for `plyzero health`, for all, and in a bucket for this machine."""
        directories = dict.fromkeys((self.workers, self.local / "workers"))
        return [Path(pulse_file(str(self.root))), *(directory / f"{name}.json" for directory in directories)]

    @property
    def metrics(self) -> Path:
        """The directory of metrics: files of JSON lines with one writer each."""
        return self.root / "metrics"

    @property
    def tensorboard(self) -> Path:
        """The directory of event files for TensorBoard, with one directory below it for each kind of writer."""
        return self.local / "metrics" / "tb"

    @property
    def logs(self) -> Path:
        """The directory of the logs of processes that `plyzero train` starts."""
        return self.local / "logs"


@dataclass(frozen=True, kw_only=True)
class Run(RunDirectory):
    """An open run directory, with the rules of its game."""

    game: GameSpec


def local_directory(root: Path, scratch: Path | None) -> Path:
    """Return where a process keeps what needs a file system: the run itself, or a directory below `scratch`."""
    return scratch.joinpath(*root.parts[1:]) if scratch else root


def check_scratch(root: Path, scratch: Path | None) -> None:
    """Raise UserError if a process of a run in a bucket has no directory of this machine, or one of another run has."""
    if scratch is not None and not isinstance(root, RemotePath):
        raise UserError(f"--scratch is for a run in a bucket, and {root} is a directory; leave it out")
    if scratch is None and isinstance(root, RemotePath):
        raise UserError(
            f"{root} is in a bucket: give --scratch DIR, a directory of this machine for the games that are not sealed "
            "yet; the next process with the same directory seals those of a worker that was killed"
        )


def create_run(root: Path, game: GameSpec, *, preset: str = "quick", seed: int = 0, options: Sequence[str] = ()) -> Run:
    """Create a run directory whose run.toml holds the resolved settings.

    Raises FileExistsError if `root` is a run directory already, and UserError for a wrong game, preset or setting.
    """
    run = plan_run(root, game, preset=preset, seed=seed, options=options)
    write_run(run)
    return run


def plan_run(
    root: Path,
    game: GameSpec,
    *,
    preset: str = "quick",
    seed: int = 0,
    options: Sequence[str] = (),
    settings: Layer | None = None,
) -> Run:
    """Return the run that `create_run` would create, without writing anything. Raises what `create_run` raises.

    settings: those that take the place of the preset's.
    """
    root = root.absolute()
    if (root / "run.toml").exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(root / "run.toml"))
    check_not_over(game.start)
    _check_seed(seed)
    first = settings or preset_for(preset, game.start)
    resolved = resolve(preset=first, environment=os.environ, options=options)
    run_id = RunId(secrets.token_hex(8))
    return Run(root=root, identity=game.identity, preset=preset, seed=seed, settings=resolved, id=run_id, game=game)


def write_run(run: Run) -> None:
    """Write run.toml, which makes the directory a run.

    Raises FileExistsError if it is a run already, and UserError if it is in a bucket that cannot hold one.
    """
    table: dict[str, object] = {
        "format": FORMAT,
        **(run.id.header if run.id else {}),
        "game": run.game.name,
        "game_version": run.game.start.version,
        "seed": run.seed,
        "preset": run.preset,
        **run.settings.model_dump(exclude_none=True),
    }
    if isinstance(run.root, RemotePath) and not keeps_first(run.root):
        raise UserError(
            f"the store of {run.root} creates an object although it exists (it ignores If-None-Match), so that games "
            "would be lost; use another store"
        )
    _make_folders(run)
    write_file(run.root / "run.toml", tomli_w.dumps(table).encode())


def open_run(
    root: Path, *, game: GameSpec | None = None, options: Sequence[str] = (), scratch: Path | None = None
) -> Run:
    """Return the run in `root`; this process keeps what needs a file system in `scratch`.

    Raises UserError if there is none, if it cannot be read, or if it is not of `game`.
    """
    found = read_run(root, options=options)
    game = game and game.named_as(found.game_name)
    if game is not None and game.name != found.game_name:
        raise UserError(f"{root} is a run of {found.game_name}, not of {game.name}; give another --run directory")
    loaded = game or _load_game_of(root, found.game_name)
    if loaded.identity != found.identity:
        raise UserError(
            f"{root} was made with version {found.identity.rpartition(' v')[2]} of {loaded.name}, "
            f"the rules are now version {loaded.start.version}; start a new run"
        )
    return Run(**{**vars(found), "scratch": scratch and scratch.absolute(), "game": loaded})


def _load_game_of(root: Path, name: str) -> GameSpec:
    """Return the game of a run. Raises UserError, with the likely place of its module if that is missing here."""
    try:
        return load_game(name)
    except UserError as error:
        file = Path(name.partition(":")[0].replace(".", "/") + ".py")
        above = [parent for parent in root.absolute().parents if (parent / file).is_file()]
        if ":" not in name or file.exists() or not above:
            raise
        missing = f"{file} is not in this directory"
        raise UserError(f"{root} is a run of {name}, and {missing}; start in {above[0]}") from error


def read_run(root: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> RunDirectory:
    """Return the run in `root`; nothing that run.toml names is imported. Raises UserError if it cannot be read."""
    path = root / "run.toml"
    try:
        text = decode(read_file(path, max_bytes=MAX_BYTES))
        table = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{root} is not a run directory: it has no run.toml; make one with plyzero init") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid TOML: {plain(str(error), 300)}") from error
    header = {key: table.pop(key, None) for key in ("format", "game", "game_version", "seed", "preset")}
    if not text.strip():
        raise UserError(f"{path} is empty; put back a copy of it, or give another --run directory")
    if header["format"] != FORMAT:
        raise UserError(f"{path} has format {shown(header['format'])}; this version of plyzero reads format {FORMAT}")
    name, version, seed = header["game"], header["game_version"], header["seed"]
    if not isinstance(name, str) or type(seed) is not int or header["preset"] not in list(PRESETS):
        raise UserError(f"{path} needs game (a string), seed (an integer) and preset ({', '.join(PRESETS)})")
    if not (name.isprintable() and len(name) <= 300 and type(version) is int and abs(version) < 2**31):
        raise UserError(f"{path}: {shown(name)} with version {shown(version)} is not a game")
    _check_seed(seed)
    run_id = _pop_id(table, path)
    sections = {key: value for key, value in table.items() if isinstance(value, dict)}
    if outside := table.keys() - sections.keys():
        raise UserError(f"{path}: expected a section such as [selfplay] before {', '.join(sorted(outside))}")
    preset = str(header["preset"])
    settings = resolve(preset=PRESETS[preset], run=sections, environment=environment, options=options)
    own = [layer.get("budget", {}) for layer in (parse_environment(environment), parse_options(options))]
    return RunDirectory(
        root=root.absolute(),
        identity=f"{name} v{version}",
        preset=preset,
        seed=seed,
        settings=settings,
        id=run_id,
        own_budget=frozenset().union(*own),
    )


def open_or_create_run(
    root: Path,
    game: GameSpec | None,
    *,
    preset: str | None = None,
    seed: int | None = None,
    options: Sequence[str] = (),
    scratch: Path | None = None,
    check: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Return the run in `root`; if there is none and a `game` is given, create it. Safe for several processes at once.

    The run.toml of an earlier version is given an id, and the present names of its settings.

    check:   called with a new run before it is written; it may raise an error.
    scratch: a directory of this machine, which processes that write the games of a run in a bucket need.

    Raises UserError if an existing run has another game, preset or seed.
    """
    if game is not None and not (root / "run.toml").exists():
        with suppress(FileExistsError):  # another process created it first
            planned = plan_run(root, game, preset=preset or "quick", seed=seed or 0, options=options)
            check(planned)
            write_run(planned)
    run = open_run(root, game=game, options=options, scratch=scratch)
    _make_folders(run)
    for name, wanted, actual in (("preset", preset, run.preset), ("seed", seed, run.seed)):
        if wanted is not None and wanted != actual:
            raise UserError(f"{root} was made with {name} {actual}, not {wanted}; give another --run directory")
    bring_up_to_date(root)
    return run if run.id else replace(run, id=read_run(root).id)


def _make_folders(run: RunDirectory) -> None:
    """Make the folders of a run that do not exist. Copies, and Git, may have left out those that were empty."""
    for folder in (run.segments, run.journals, run.models, run.trainer, run.workers, run.metrics, run.logs):
        folder.mkdir(parents=True, exist_ok=True)


def describe_changed_settings(run: Run) -> str | None:
    """Return a sentence with the settings of this process that differ from run.toml, None if there are none."""

    def text(value: object) -> str:
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    stored = read_run(run.root, environment={}).settings.model_dump()
    changes = [
        f"{section}.{key} = {text(value)} instead of {text(stored[section][key])}"
        for section, values in run.settings.model_dump().items()
        for key, value in values.items()
        if value != stored[section][key]
    ]
    return f"settings of this start that differ from run.toml: {', '.join(changes)}" if changes else None


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise UserError(f"expected a seed from 0 to 2^63 - 1, got {shown(seed)}")


def _pop_id(table: dict[str, object], path: Path) -> RunId | None:
    """Take the id out of the table of the run.toml `path`, None if it has none yet."""
    text, older_without = table.pop("id", None), table.pop(WITHOUT, False)
    if text is None:
        return None
    if not (isinstance(text, str) and re.fullmatch(PATTERN, text) and type(older_without) is bool):
        raise UserError(f"{path}: expected an id of 16 hex digits and {WITHOUT} true or false, got {shown(text)}")
    return RunId(text, older_without)


def bring_up_to_date(root: Path) -> None:
    """Give the run.toml of an earlier version an id, and the settings in it their present names.

    Processes that do this at once write the same: the id is that of the first one to create the file `run-id`.
    """
    path = root / "run.toml"
    text = decode(read_file(path, max_bytes=MAX_BYTES))
    table = tomllib.loads(text)
    sections = {key: value for key, value in table.items() if isinstance(value, dict)}
    renamed = with_new_names(sections)
    if "id" in table and renamed == sections:
        return
    if renamed != sections:
        text = tomli_w.dumps(table | renamed)
    if "id" not in table:
        text = tomli_w.dumps(RunId(_claim(root / "run-id"), older_without=True).header) + text
    write_file(path, text.encode(), replace=True)


def _claim(path: Path) -> str:
    with suppress(FileExistsError):
        write_file(path, secrets.token_hex(8).encode())
    text = read_file(path, max_bytes=MAX_BYTES).decode()
    if not re.fullmatch(PATTERN, text):
        raise UserError(f"{path} has no id of 16 hex digits; remove it and start again")
    return text
