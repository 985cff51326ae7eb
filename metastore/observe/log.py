"""Structured log lines on stderr: one event name, then key=value pairs; or all of it as JSON, an object a line."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
_MOST_LETTERS, _MOST_OF_TRACEBACK = 2000, 64_000
"""Of one field, and of a traceback: a client says how long its names are, which come with what is said of them."""


def configure(level: str, form: str = TEXT) -> None:
    """Send the log to stderr at `level`, in one of `FORMATS`; stdout is for answers only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if form == JSON else _TextLines("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("apscheduler", "alembic", "sqlalchemy", "asyncio", "fsspec"):
        logging.getLogger(chatty).setLevel(max(root.level, logging.WARNING))


def shortened(text: str, most: int) -> str:
    """A text without its middle if it is too long: what it is about comes first, and what to do last."""
    if len(text) <= most:
        return text
    return f"{text[: most - most // 4]} … {text[-(most // 4) :]}"


def event(log: logging.Logger, level: int, name: str, **fields: Any) -> None:
    """One line about one thing that happened."""
    if log.isEnabledFor(level):
        fields = {key: _field(value) for key, value in fields.items()}
        words = " ".join((name, *(f"{key}={_text(value)}" for key, value in fields.items())))
        log.log(level, "%s", words, extra={"event": name, "fields": fields})


class _Lines(logging.Formatter):
    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return shortened(super().formatException(ei), _MOST_OF_TRACEBACK)


class _TextLines(_Lines):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        return _time(record)


class _JsonLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": _time(record), "level": record.levelname, "logger": record.name}
        fields: Mapping[str, Any] | None = getattr(record, "fields", None)
        if fields is None:
            line["message"] = record.getMessage()
        else:
            line["event"] = getattr(record, "event", "")
            line |= {key: value for key, value in fields.items() if key not in line}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    """To the millisecond, with the zone."""
    return datetime.datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _field(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return value if len(text) <= _MOST_LETTERS else shortened(text, _MOST_LETTERS)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    words = str(value)
    return repr(words) if not words or any(c.isspace() or c in '"=' for c in words) else words
