"""Structured log lines: one event name, then key=value pairs, on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Any


def configure(level: str) -> None:
    """Send the log to stderr at `level`; stdout is for answers only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("apscheduler", "alembic", "sqlalchemy", "asyncio", "fsspec"):
        logging.getLogger(chatty).setLevel(max(root.level, logging.WARNING))


def event(log: logging.Logger, level: int, name: str, **fields: Any) -> None:
    """One line about one thing that happened."""
    if log.isEnabledFor(level):
        log.log(level, "%s %s", name, " ".join(f"{key}={_text(value)}" for key, value in fields.items()))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    words = str(value)
    return repr(words) if not words or any(c.isspace() or c in '"=' for c in words) else words
