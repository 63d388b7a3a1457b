"""Films and pictures of a recorded game as GIF, APNG, PNG and SVG files."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

import numpy as np
import resvg_py
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from plyzero.errors import UserError, plain
from plyzero.kits.engines.game_record import Frame, frame_svg
from plyzero.play.session import SIDES

CAPTION_LETTERS: Final = 40
"""Number of letters that fit into the line below the board; a longer line has smaller letters."""

OVERSAMPLING: Final = 3
"""Boards are rendered this many times larger and then reduced: edges get few colours, and cells have no gaps."""

LAST_FRAME: Final = 4
"""The last frame of a film is shown this many times as long as the others."""


def make_picture(frame: Frame, size: int) -> bytes:
    """Return a frame as a PNG file that is `size` pixels wide."""
    file = io.BytesIO()
    _render(frame_svg(frame), size).save(file, "PNG", optimize=True)
    return file.getvalue()


def make_film(
    frames: Sequence[Frame],
    result: str,
    *,
    kind: str,
    size: int,
    seconds: float,
    on_progress: Callable[[int], None] = lambda number: None,
) -> bytes:
    """Return a film, which repeats endlessly if it is a GIF or a PNG.

    result:      how the game ended, for the last frame.
    kind:        `GIF`, `PNG` (an animated PNG), `MP4` or `WEBM`.
    size:        width in pixels.
    seconds:     duration of a frame.
    on_progress: called with the number of rendered frames.

    Raises UserError if `kind` needs ffmpeg and there is none, or if ffmpeg fails.
    """
    pictures: list[Image.Image] = []
    for number, caption in enumerate(_captions(frames, result)):
        pictures.append(_with_caption(_render(frame_svg(frames[number]), size), caption))
        on_progress(number + 1)
    highest = max(each.height for each in pictures)  # texts of positions may have more or fewer lines
    pictures = [ImageOps.expand(each, (0, 0, 0, highest - each.height), "white") for each in pictures]
    if kind not in ("GIF", "PNG"):
        for _ in range(LAST_FRAME - 1):
            pictures.append(pictures[-1])
        return _video(pictures, kind, seconds)
    pictures = _in_one_palette(pictures)
    milliseconds = round(1000 * seconds)
    times = [milliseconds for _ in pictures]
    times[-1] = LAST_FRAME * milliseconds
    options: dict[str, object] = {}
    if kind == "GIF":  # otherwise each frame would repeat the palette, and unchanged pixels would not be transparent
        options = {"palette": bytes(pictures[0].getpalette() or ()), "optimize": True}
    file = io.BytesIO()
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:], duration=times, loop=0, **options)
    return file.getvalue()


def _video(pictures: Sequence[Image.Image], kind: str, seconds: float) -> bytes:
    width, height = pictures[0].size
    source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{1 / seconds}", "-i", "-")
    # Players expect yuv420p, which needs an even width and height, and a usual number of frames per second.
    form = ("-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white", "-pix_fmt", "yuv420p", "-r", "25")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"film.{kind.lower()}"
        try:
            done = subprocess.run(
                ["ffmpeg", "-loglevel", "error", *source, *form, str(file)],
                input=b"".join(each.tobytes() for each in pictures),
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise UserError("expected the program ffmpeg; install it, or choose .gif or .apng") from error
        if done.returncode:
            raise UserError(f"ffmpeg has failed: {plain(done.stderr.decode(errors='replace').strip(), 400)}")
        return file.read_bytes()


def _captions(frames: Sequence[Frame], result: str) -> Iterator[str]:
    """Yield the line below each frame: the number of the move, its player, its name, and the rolls after it."""
    for number, frame in enumerate(frames):
        parts = [f"{number}. {SIDES[frame.by]}: {frame.move}" if frame.by is not None else "start"]
        if frame.setup:
            parts.append(frame.setup)
        if frame.rolls:
            parts.append(f"roll {' '.join(frame.rolls)}")
        if number == len(frames) - 1:
            parts.append(result)
        yield " · ".join(parts)


@cache
def _fonts() -> list[str]:
    """Return the files of the font DejaVu from matplotlib, so that text looks the same on every machine."""
    matplotlib = importlib.util.find_spec("matplotlib")  # not imported: that takes longer than to render a picture
    if matplotlib is None or not matplotlib.origin:
        raise ModuleNotFoundError("matplotlib has the fonts of pictures", name="matplotlib")
    folder = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf"
    return [str(folder / name) for name in ("DejaVuSans.ttf", "DejaVuSansMono.ttf")]


def _render(svg: str, width: int) -> Image.Image:
    """Return an SVG image of plyzero.rules.board_svg as an RGB image that is `width` pixels wide."""
    png = resvg_py.svg_to_bytes(
        svg_string=svg.replace("<svg ", '<svg xml:space="preserve" ', 1),  # it lacks `white-space: pre`
        width=OVERSAMPLING * width,
        background="white",
        style_sheet='.caption { font-family: "DejaVu Sans"; fill: #222; dominant-baseline: central; }',
        font_files=_fonts(),
        skip_system_fonts=True,
        shape_rendering="optimize_speed",
        text_rendering="optimize_speed",
    )
    return Image.open(io.BytesIO(png)).convert("RGB").reduce(OVERSAMPLING)


def _with_caption(picture: Image.Image, caption: str) -> Image.Image:
    width, height = picture.size
    letter = width / CAPTION_LETTERS
    strip = round(width / 12)
    size = letter / 0.6 * min(1.0, CAPTION_LETTERS / len(caption))  # a letter is about 0.6 times as wide as high
    line = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {strip}">'
        f'<text class="caption" x="{letter}" y="{strip / 2}" font-size="{size}">{escape(caption)}</text></svg>'
    )
    captioned = ImageOps.expand(picture, (0, 0, 0, strip), "white")
    captioned.paste(_render(line, width), (0, height))
    return captioned


def _in_one_palette(pictures: Sequence[Image.Image]) -> list[Image.Image]:
    """Return the pictures with one palette: the 32 most frequent colours of all of them, which are those of flat areas.

    If all frames of a film share their colours, a frame contains only what differs from the one before.
    """
    counts: Counter[tuple[int, ...] | float] = Counter()
    for picture in pictures:
        for count, colour in picture.getcolors(picture.width * picture.height) or ():
            counts[colour] += count
    colours = np.array(list(counts))
    palette = np.array([colour for colour, _ in counts.most_common(32)])
    # Pillow's own quantize is fast, but not exact: it replaces white by a light grey.
    distances = ((colours[:, None] - palette) ** 2).sum(axis=2)
    nearest = np.zeros(1 << 24, np.uint8)
    nearest[_packed(colours)] = distances.argmin(axis=1)
    made = [Image.fromarray(nearest[_packed(np.asarray(picture))]) for picture in pictures]
    for each in made:
        each.putpalette(palette.astype(np.uint8).tobytes())
    return made


def _packed(colours: ArrayLike) -> NDArray[np.uint32]:
    """Return colours `[..., 3]` as numbers of the form 0xRRGGBB."""
    return np.asarray(colours, np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
