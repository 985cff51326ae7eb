"""Typed settings with Hive's names: each slice declares its own, `metastore.config` joins them.

A slice's ``config.py`` holds one frozen dataclass whose fields are made by the functions below::

    @dataclass(frozen=True)
    class TxnConfig:
        timeout_ms: int = duration(
            "hive.txn.timeout", "300s", "No heartbeat for this long aborts a transaction.", hive="300s", wiki="300s"
        )

`hive` is the default of Hive 4.0.1 and `wiki` that of its wiki (transactions.md §7), None where they have no such
setting; `why` says what speaks for a default that is neither. Durations are kept in milliseconds; a bare number is in
the unit of the setting's own default, as in Hive. Keys are accepted in both of Hive's spellings, ``hive.x`` and
``metastore.x``, and under their `aliases`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

_UNITS_NS = {
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1),
    **dict.fromkeys(("us", "usec", "usecs"), 1_000),
    **dict.fromkeys(("ms", "msec", "msecs"), 1_000_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 10**9),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * 10**9),
    **dict.fromkeys(("h", "hour", "hours"), 3_600 * 10**9),
    **dict.fromkeys(("d", "day", "days"), 86_400 * 10**9),
}
_NS_PER_MS = 1_000_000
_DURATION = re.compile(r"(\d{1,18})\s*([a-z]*)")
_LONGEST_MS = 36_500 * 86_400_000
"""A hundred years: more is a slip of the keyboard, and must not overflow the database's arithmetic."""
_LARGEST_INTEGER = 2**31 - 1

Number = TypeVar("Number", int, float)

_OF_THE_ENVIRONMENT = {"hadoop.security.auth.to.local": "hadoop.security.auth_to_local"}
"""Its variables have underscores for dots, and so cannot say what has both."""


class SettingError(ValueError):
    """A setting's name or value, or the file that gives it, is not acceptable."""


@dataclass(frozen=True)
class Setting:
    """What is known of one setting; `dataclasses.field` carries it in its metadata."""

    key: str
    default: str
    meaning: str
    parsers: Mapping[str, Callable[[str], Any]]
    """How to read a value, by the spelling of each name under which the setting goes."""
    text: Callable[[Any], str]
    """The value as the setting accepts it."""
    hive: str | None
    wiki: str | None
    why: str
    family: tuple[str, str] | None = None
    """Of a setting with a name in its key: what stands before and after the name."""
    implied: tuple[str, tuple[str, ...]] | None = None
    """A value that it has where nobody gives it one, but gives one to any of the settings with these keys."""

    def member(self, key: str) -> str | None:
        """The name in a key of the family; None if it is none."""
        if self.family is None:
            return None
        (head, tail), spelled = self.family, spelling(key)
        length = len(spelled) - len(head) - len(tail)
        if length < 1 or not (spelled.startswith(head) and spelled.endswith(tail)):
            return None
        end = len(key.strip()) - len(tail)
        return key.strip()[end - length : end]


def duration(
    key: str,
    default: str,
    meaning: str,
    *,
    least_ms: int = 0,
    aliases: Mapping[str, str] | None = None,
    hive: str | None = None,
    wiki: str | None = None,
    why: str = "",
) -> Any:
    """A length of time, kept in milliseconds; `aliases` gives the unit of a bare number under each other name."""

    def parser(unit: str) -> Callable[[str], int]:
        return lambda text: _within(parse_duration_ms(text, unit), text, least_ms, _LONGEST_MS, "ms")

    match = _DURATION.fullmatch(default)
    assert match is not None, default
    parsers = {key: parser(match[2]), **{alias: parser(unit) for alias, unit in (aliases or {}).items()}}
    return _field(key, default, meaning, parsers, lambda value: f"{value}ms", hive, wiki, why)


def integer(
    key: str,
    default: str,
    meaning: str,
    *,
    least: int = 0,
    most: int = _LARGEST_INTEGER,
    aliases: Collection[str] = (),
    hive: str | None = None,
    wiki: str | None = None,
    why: str = "",
) -> Any:
    """A whole number from `least` to `most`."""

    def parse(text: str) -> int:
        try:
            return _within(int(text), text, least, most)
        except ValueError as error:
            raise error if isinstance(error, SettingError) else _unfit(text, "a whole number") from None

    return _field(key, default, meaning, dict.fromkeys((key, *aliases), parse), str, hive, wiki, why)


def fraction(
    key: str, default: str, meaning: str, *, hive: str | None = None, wiki: str | None = None, why: str = ""
) -> Any:
    """A number from 0 to 1."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise _unfit(text, "a number") from None
        if math.isnan(value):
            raise _unfit(text, "a number")
        return _within(value, text, 0, 1)

    return _field(key, default, meaning, {key: parse}, str, hive, wiki, why)


def boolean(
    key: str, default: str, meaning: str, *, hive: str | None = None, wiki: str | None = None, why: str = ""
) -> Any:
    """True or false."""

    def parse(text: str) -> bool:
        if text.strip().lower() not in ("true", "false"):
            raise _unfit(text, "true or false")
        return text.strip().lower() == "true"

    return _field(key, default, meaning, {key: parse}, lambda value: str(value).lower(), hive, wiki, why)


def choice(
    key: str,
    default: str,
    meaning: str,
    options: Collection[str],
    *,
    hive: str | None = None,
    why: str = "",
    implied: tuple[str, tuple[str, ...]] | None = None,
) -> Any:
    """One of a few words, written in lower case; `implied` is that of `Setting`."""

    def parse(text: str) -> str:
        if text.strip().lower() not in options:
            raise _unfit(text, f"one of {', '.join(options)}")
        return text.strip().lower()

    return _field(key, default, meaning, {key: parse}, str, hive, None, why, implied)


def text(
    key: str, default: str, meaning: str, *, hive: str | None = None, wiki: str | None = None, why: str = ""
) -> Any:
    """A string."""
    return _field(key, default, meaning, {key: str}, str, hive, wiki, why)


def names(key: str, default: str, meaning: str, parse: Callable[[str], tuple[str, ...]]) -> Any:
    """Names with commas between, as `parse` reads them, which raises ValueError for what cannot be."""

    def parsed(text: str) -> tuple[str, ...]:
        try:
            return parse(text)
        except ValueError:
            raise _unfit(text, f"names with commas between{', such as ' + default if default else ''}") from None

    return _field(key, default, meaning, {key: parsed}, ",".join, None, None, "")


def counts(key: str, meaning: str, *, hive: str | None = None, wiki: str | None = None, why: str = "") -> Any:
    """A whole number for each name that stands in the place of the ``*`` in `key`: a mapping, empty by default."""
    head, _, tail = spelling(key).partition("*")
    number = integer(key, "0", meaning).metadata["setting"].parsers[spelling(key)]
    setting = Setting(key, "", meaning, {spelling(key): number}, _pairs, hive, wiki, why, (head, tail))
    return dataclasses.field(default_factory=dict, metadata={"setting": setting})


def texts(key: str, meaning: str, *, hive: str | None = None, why: str = "") -> Any:
    """A text for each name that stands in the place of the ``*`` in `key`: a mapping, empty by default."""
    head, _, tail = spelling(key).partition("*")
    setting = Setting(key, "", meaning, {spelling(key): str}, _pairs, hive, None, why, (head, tail))
    return dataclasses.field(default_factory=dict, metadata={"setting": setting})


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


def parse_duration_ms(text: str, default_unit: str = "s") -> int:
    """Milliseconds of ``300s``, ``5 min``, ``100ms`` or a bare number of `default_unit`.

    Takes the units of Hive's time values, in any case. Raises SettingError, also for what is finer than a millisecond.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    unit = (match[2] or default_unit) if match else ""
    if match is None or unit not in _UNITS_NS:
        raise _unfit(text, "a duration such as 500ms, 30s, 5m, 12h or 7d")
    value_ms, finer_ns = divmod(int(match[1]) * _UNITS_NS[unit], _NS_PER_MS)
    if finer_ns:
        raise _unfit(text, "a whole number of milliseconds")
    return value_ms


def spelling(key: str) -> str:
    """The one spelling under which a key is compared: ``metastore.x`` and ``hive.metastore.x`` become ``hive.x``."""
    key = key.strip().lower()
    for prefix in ("hive.metastore.", "metastore."):
        if key.startswith(prefix):
            return "hive." + key.removeprefix(prefix)
    return _OF_THE_ENVIRONMENT.get(key, key)


def settings_of(config: type[Any]) -> Iterator[tuple[str, Setting]]:
    """(field name, setting) of each setting that a config class declares."""
    for field in dataclasses.fields(config):
        if "setting" in field.metadata:
            yield field.name, field.metadata["setting"]


def _field(
    key: str,
    default: str,
    meaning: str,
    parsers: Mapping[str, Callable[[str], Any]],
    text: Callable[[Any], str],
    hive: str | None,
    wiki: str | None,
    why: str,
    implied: tuple[str, tuple[str, ...]] | None = None,
) -> Any:
    by_spelling = {spelling(name): parse for name, parse in parsers.items()}
    setting = Setting(key, default, meaning, by_spelling, text, hive, wiki, why, implied=implied)
    return dataclasses.field(default=parsers[key](default), metadata={"setting": setting})


def _within(value: Number, text: str, least: float, most: float, unit: str = "") -> Number:
    if value < least:
        raise SettingError(f"'{text}' is too small: the least is {least}{unit}")
    if value > most:
        raise SettingError(f"'{text}' is too large: the most is {most}{unit}")
    return value


def _unfit(text: str, wanted: str) -> SettingError:
    return SettingError(f"'{text}' is not {wanted}")
