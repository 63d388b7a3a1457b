"""render: films, pictures and pages of recorded games, and PGN files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plyzero.commands import common
from plyzero.errors import UserError, shown

if TYPE_CHECKING:
    from plyzero.kits.engines.game_record import GameRecord
    from plyzero.rules.catalog import GameSpec

OPTIONS: Final = {
    **dict.fromkeys((".gif", ".apng", ".mp4", ".webm"), ("--seconds", "--size")),
    ".png": ("--ply", "--size"),
    ".svg": ("--ply",),
    ".html": (),
    ".pgn": (),
}
"""Ending of the file -> the options that it understands."""

SECONDS: Final = 0.8
"""Default of --seconds."""

SIZE: Final = 360
"""Default of --size."""


@common.in_panel("Play")
def render(
    game: common.GameArgument,
    games: Annotated[
        str | None,
        typer.Argument(metavar="[GAMES]", help="Games of replay export, a saved game, SGF or PGN; - = standard input."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A film: .gif, .apng, .mp4, .webm. A picture: .png, .svg. A page: .html. For chess programs: .pgn.",
        ),
    ] = ...,  # type: ignore[assignment]  # typer's mark of an option that must be given
    chosen: Annotated[
        str, typer.Option("--game", metavar="N", help="Number of the game in the file, or its id.")
    ] = "1",
    moves: Annotated[
        str | None, typer.Option(metavar="NAMES", help='Moves in place of a file, such as "4 4 3".')
    ] = None,
    ply: Annotated[
        int | None, typer.Option(min=0, help="Picture: the position after this number of moves; default: the last.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.05, max=60, help=f"Film: time for which a frame is shown; default {SECONDS}.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=50, max=1000, help=f"Film, .png: width in pixels; default {SIZE}.")
    ] = None,
) -> None:
    """Make a film, a picture, a page or a PGN file of a recorded game; the ending of FILE decides which."""
    path = output.absolute()  # rules may leave the current directory
    kind = _check_output(output, {"--ply": ply, "--seconds": seconds, "--size": size})
    if games is None and moves is None:
        raise UserError('expected a file GAMES or --moves, such as --moves "4 4 3"')
    if games is not None and moves is not None:
        raise UserError('expected a file GAMES or --moves, such as --moves "4 4 3", got both')
    spec = common.find_game(game)
    with common.playing(spec):
        record = _read(spec, games, chosen, moves)
        content, about = _make(record, spec, kind, ply, seconds or SECONDS, size or SIZE)
    from plyzero.files import write_file

    write_file(path, content, replace=True)
    print(f"{output}: {about}, {len(content) / 1000:.0f} kB")


def _check_output(output: Path, options: dict[str, float | None]) -> str:
    """Return the ending of a file that can be made with these options."""
    kind = output.suffix.lower()
    if kind not in OPTIONS:
        raise UserError(f"expected -o FILE with the ending {', '.join(OPTIONS)}, got {shown(str(output))}")
    if output.is_dir() or not output.parent.is_dir():
        raise UserError(f"expected -o FILE in a directory that exists, such as game.gif, got {shown(str(output))}")
    for name, value in options.items():
        if value is not None and name not in OPTIONS[kind]:
            meant = ", ".join(ending for ending, names in OPTIONS.items() if name in names)
            raise UserError(f"{name} is for {meant}, not for {kind}; omit it")
    return kind


def _read(spec: GameSpec, games: str | None, chosen: str, moves: str | None) -> GameRecord:
    from plyzero.kits.engines.game_files import open_lines
    from plyzero.kits.engines.game_record import from_moves, read_game

    if moves is not None:
        return from_moves(spec, moves)
    assert games is not None
    with open_lines(games) as lines:
        return read_game(lines, spec, chosen, "standard input" if games == "-" else games)


def _make(
    record: GameRecord, spec: GameSpec, kind: str, ply: int | None, seconds: float, size: int
) -> tuple[bytes, str]:
    from plyzero.kits.engines.game_record import colours_of, frame_svg, frames_of, result_of

    if kind == ".pgn":
        return _pgn(record, spec).encode(), f"{len(record.moves)} moves"
    with common.show_progress("drawing") as report:
        frames = frames_of(record)
        last = len(frames) - 1
        if ply is not None and ply > last:
            raise UserError(f"expected --ply from 0 to {last}, the number of moves in this game, got {ply}")
        if kind == ".html":
            from plyzero.kits.web.pages import make_page

            return make_page(frames, spec.name, result_of(record, colours_of(record))).encode(), f"{last} moves"
        frame = frames[last if ply is None else ply]
        if kind == ".svg":
            return (frame_svg(frame) + "\n").encode(), "a picture"
        from plyzero.kits.engines.film import make_film, make_picture

        if kind == ".png":
            return make_picture(frame, size), "a picture"
        content = make_film(
            frames,
            result_of(record),
            kind="PNG" if kind == ".apng" else kind.removeprefix(".").upper(),
            size=size,
            seconds=seconds,
            on_progress=lambda number: report(f"{number} of {len(frames)} frames drawn"),
        )
        return content, f"{len(frames)} frames"


def _pgn(record: GameRecord, spec: GameSpec) -> str:
    from plyzero.kits.engines.game_export import write_pgn

    names = zip(("White", "Black"), record.players, strict=False)
    try:
        return write_pgn(record, spec, dict(names))
    except ValueError as error:
        raise UserError(f"the game cannot be written as PGN: {error}") from error
