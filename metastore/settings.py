"""Typed settings with Hive's names: each slice declares its own, `metastore.config` joins them.

A slice's ``config.py`` holds one frozen dataclass whose fields are made by the functions below::

    @dataclass(frozen=True)
    class TxnConfig:
        timeout_ms: int = duration("hive.txn.timeout", "300s", "No heartbeat for this long aborts a transaction.")

Durations are kept in milliseconds; a bare number is in the unit of the setting's own default. Keys are accepted
in both of Hive's spellings, ``hive.x`` and ``metastore.x``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

_UNITS_MS = {"ms": 1, "msec": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")

C = TypeVar("C")


class SettingError(ValueError):
    """A setting's name or value is not acceptable."""


def parse_duration_ms(text: str, default_unit: str = "s") -> int:
    """Milliseconds of ``300s``, ``5m``, ``100 ms`` or a bare number of `default_unit`."""
    match = _DURATION.fullmatch(text.strip().lower())
    unit = (match[2] or default_unit) if match else ""
    if match is None or unit not in _UNITS_MS:
        raise SettingError(f"'{text}' is not a duration such as 500ms, 30s, 5m, 12h or 7d")
    return int(match[1]) * _UNITS_MS[unit]


def _parse_bool(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    raise SettingError(f"'{text}' is not true or false")


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"'{text}' is not a whole number") from None


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"'{text}' is not a number") from None


def _setting(key: str, default: str, meaning: str, parse: Callable[[str], Any]) -> Any:
    metadata = {"key": key, "default": default, "meaning": meaning, "parse": parse}
    return dataclasses.field(default=parse(default), metadata=metadata)


def duration(key: str, default: str, meaning: str) -> Any:
    """A length of time, kept in milliseconds."""
    match = _DURATION.fullmatch(default)
    unit = match[2] if match else "s"
    return _setting(key, default, meaning, lambda text: parse_duration_ms(text, unit))


def integer(key: str, default: str, meaning: str) -> Any:
    """A whole number."""
    return _setting(key, default, meaning, _parse_int)


def number(key: str, default: str, meaning: str) -> Any:
    """A floating-point number."""
    return _setting(key, default, meaning, _parse_float)


def boolean(key: str, default: str, meaning: str) -> Any:
    """True or false."""
    return _setting(key, default, meaning, _parse_bool)


def text(key: str, default: str, meaning: str) -> Any:
    """A string."""
    return _setting(key, default, meaning, str)


def spelling(key: str) -> str:
    """The one spelling under which a key is compared: ``metastore.x`` and ``hive.metastore.x`` become ``hive.x``."""
    key = key.strip().lower()
    for prefix in ("hive.metastore.", "metastore."):
        if key.startswith(prefix):
            return "hive." + key.removeprefix(prefix)
    return key


def fields_of(config: type[Any]) -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """(key, field) of each setting that a config class declares."""
    for field in dataclasses.fields(config):
        if "key" in field.metadata:
            yield field.metadata["key"], field


def build(config: type[C], given: Mapping[str, str]) -> C:
    """An instance of `config` with the values of `given` (key to text); keys of other slices are passed over."""
    values: dict[str, Any] = {}
    by_spelling = {spelling(key): text for key, text in given.items()}
    for key, field in fields_of(config):
        if spelling(key) in by_spelling:
            try:
                values[field.name] = field.metadata["parse"](by_spelling[spelling(key)])
            except SettingError as error:
                raise SettingError(f"setting {key}: {error}") from None
    return config(**values)
