"""Logs of workers, trainers and evaluators on standard output: lines of text, or of JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Final

from plyzero.errors import UserError, cut, plain

MOST_LINES: Final = 100
"""Largest number of lines logged from each end of a traceback."""


def set_up_logging(log_format: str) -> None:
    """Let this process log in a format of LOG_FORMATS. Raises UserError if there is none of this name."""
    if log_format not in LOG_FORMATS:
        raise UserError(f"expected --log-format {' or '.join(LOG_FORMATS)}, got {log_format!r}")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LOG_FORMATS[log_format])
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _shortened(text: str) -> list[str]:
    """Return the lines of a log record, each cut; of many, such as those of a traceback, the first and the last."""
    lines = text.split("\n")
    if len(lines) > 2 * MOST_LINES:
        lines[MOST_LINES:-MOST_LINES] = ["..."]
    return [*map(cut, lines)]


class _TextFormatter(logging.Formatter):
    """Formats a log record as a line of text. What comes from the volume cannot control a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(plain, _shortened(super().format(record))))

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message)  # in one line; a traceback has lines of its own
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object per line, with the same fields as the text format."""

    def format(self, record: logging.LogRecord) -> str:
        message = "\n".join(_shortened(super().format(record)))  # a traceback included
        fields = {"time": round(record.created, 3), "level": record.levelname, "logger": record.name}
        return json.dumps({**fields, "message": message})


LOG_FORMATS: dict[str, logging.Formatter] = {
    "text": _TextFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": _JsonFormatter("%(message)s"),
}
