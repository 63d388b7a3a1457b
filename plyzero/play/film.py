"""Films and pictures of a recorded game as GIF, APNG, PNG and SVG files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from plyzero.play.game_record import Frame, frame_svg
from plyzero.play.raster import BACKGROUND, OVERSAMPLING, colours, draw_svg, find_font
from plyzero.play.session import SIDES

MAX_COLOURS: Final = 32
"""Number of colours in a film; all frames share them, so a frame needs only what differs from the one before."""

LAST: Final = 4.0
"""The last frame is shown so many times longer than the others."""

CAPTION: Final = "#222222"
"""Colour of the line below the board."""

CAPTION_LETTERS: Final = 40
"""So many letters fit into the line below the board; a longer one is written smaller."""


def make_picture(frame: Frame, size: int) -> bytes:
    """Return a frame as a PNG file that is `size` pixels wide."""
    file = io.BytesIO()
    draw_svg(frame_svg(frame, style=False), size).save(file, "PNG", optimize=True)
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
    """Return a film that repeats endlessly.

    result:      how the game ended, for the last frame.
    kind:        `GIF` or `PNG`, for a file that browsers call APNG.
    size:        width in pixels.
    seconds:     for which a frame is shown.
    on_progress: called with the number of frames that are drawn.
    """
    pictures: list[Image.Image] = []
    for number, caption in enumerate(_captions(frames, result)):
        pictures.append(_with_caption(draw_svg(frame_svg(frames[number], style=False), size), caption))
        on_progress(number + 1)
    first, *rest = _in_one_palette(_of_one_size(pictures))
    milliseconds = round(1000 * seconds)
    times = [*[milliseconds] * len(rest), round(LAST * milliseconds)]
    # A GIF would repeat the palette in each frame otherwise; in what is optimized, pixels that stay are transparent.
    same_palette = {"palette": bytes(first.getpalette() or ()), "optimize": True} if kind == "GIF" else {}
    file = io.BytesIO()
    first.save(file, kind, save_all=True, append_images=rest, duration=times, loop=0, **same_palette)
    return file.getvalue()


def _captions(frames: Sequence[Frame], result: str) -> Iterator[str]:
    """Yield the line below each frame: the number of the move, who made it, its name, and what was rolled then."""
    for number, frame in enumerate(frames):
        parts = [f"{number}. {SIDES[frame.by]}: {frame.move}" if frame.by is not None else "start"]
        if frame.rolls:
            parts.append(f"roll {' '.join(frame.rolls)}")
        if number == len(frames) - 1:
            parts.append(result)
        yield " · ".join(parts)


def _with_caption(picture: Image.Image, caption: str) -> Image.Image:
    """Return a picture with a line below it."""
    width, height = picture.size
    letter, strip = width / CAPTION_LETTERS, round(width / 12)
    size = letter / 0.6 * min(1.0, CAPTION_LETTERS / len(caption))  # letters are at most so many times as high as wide
    line = Image.new("RGB", (OVERSAMPLING * width, OVERSAMPLING * strip), BACKGROUND)
    font, _ = find_font(OVERSAMPLING * size)
    place = (OVERSAMPLING * letter, OVERSAMPLING * strip / 2)
    ImageDraw.Draw(line).text(place, caption, fill=CAPTION, font=font, anchor="lm")
    return _stacked([picture, line.reduce(OVERSAMPLING)], height + strip)


def _of_one_size(pictures: Sequence[Image.Image]) -> list[Image.Image]:
    """Return pictures that are all as high as the highest, for games whose texts have more or fewer lines."""
    highest = max(each.height for each in pictures)
    return [each if each.height == highest else _stacked([each], highest) for each in pictures]


def _stacked(pictures: Sequence[Image.Image], height: int) -> Image.Image:
    """Return pictures of one width, one below the other."""
    made, top = Image.new("RGB", (pictures[0].width, height), BACKGROUND), 0
    for picture in pictures:
        made.paste(picture, (0, top))
        top += picture.height
    return made


def _in_one_palette(pictures: Sequence[Image.Image]) -> list[Image.Image]:
    """Return pictures with the same palette: the colours of boards that occur, then the most frequent of the others."""
    counts: Counter[int] = Counter()
    for picture in pictures:
        found, often = np.unique(_packed(picture), return_counts=True)
        counts.update(dict(zip(found.tolist(), often.tolist(), strict=True)))
    flat = {int(each[1:], 16) for each in {*colours(), CAPTION}}
    every = np.sort(np.array([*counts], np.uint32))
    palette = np.array(
        sorted(counts, key=lambda each: (each not in flat, -counts[each], each))[:MAX_COLOURS], np.uint32
    )
    distances = ((_channels(every)[:, None] - _channels(palette)) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1).astype(np.uint8)
    # Pillow's own quantize takes colours that are close to each other for the same.
    return [_with_palette(nearest[np.searchsorted(every, _packed(each))], _channels(palette)) for each in pictures]


def _channels(colours: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return colours of the form 0xRRGGBB, `[n]`, as red, green and blue, `[n, 3]`."""
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.int64)


def _packed(picture: Image.Image) -> NDArray[np.uint32]:
    """Return a picture as `[rows, columns]` uint32 of the form 0xRRGGBB."""
    red, green, blue = np.moveaxis(np.asarray(picture, np.uint32), 2, 0)
    return red << 16 | green << 8 | blue


def _with_palette(indices: NDArray[np.uint8], palette: NDArray[np.int64]) -> Image.Image:
    """Return a picture that has the colours `palette[indices]`."""
    made = Image.frombytes("P", indices.shape[::-1], indices.tobytes())
    made.putpalette(palette.astype(np.uint8).tobytes())
    return made
