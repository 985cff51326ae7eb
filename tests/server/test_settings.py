"""Single settings: how values are read, which are refused, and with what words."""

from dataclasses import dataclass
from typing import Any

import pytest

from metastore.settings import (
    SettingError,
    boolean,
    choice,
    duration,
    fraction,
    integer,
    parse_duration_ms,
    settings_of,
    spelling,
    text,
)


@dataclass(frozen=True)
class Some:
    pause_ms: int = duration("hive.pause", "5s", "A pause.", least_ms=10, aliases={"hive.old.pause": "ms"})
    many: int = integer("hive.many", "3", "How many.", least=1, most=9, aliases=("hive.few",))
    part: float = fraction("hive.part", "0.1", "A part.")
    on: bool = boolean("metastore.on", "true", "Whether.")
    kind: str = choice("hive.kind", "soft", "Which.", ("soft", "hard"))
    name: str = text("hive.name", "", "What.")


SETTINGS = dict(settings_of(Some))


def parsed(field: Any, value: Any, key: Any = None) -> Any:
    setting = SETTINGS[field]
    return setting.parsers[spelling(key or setting.key)](value)


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        ("300s", 300_000),
        ("5", 5_000),
        ("10 ms", 10),
        ("2m", 120_000),
        ("2M", 120_000),
        ("3 minutes", 180_000),
        ("12h", 43_200_000),
        ("1day", 86_400_000),
        ("7d", 604_800_000),
        ("20msec", 20),
        ("3000us", 3),
        ("4000000ns", 4),
        ("0", 0),
        (" 1 sec ", 1000),
    ],
)
def test_durations(value: str, expected_ms: int) -> None:
    assert parse_duration_ms(value) == expected_ms


@pytest.mark.parametrize("value", ["", "soon", "-1s", "1.5s", "5 fortnights", "s", "1s 2s", "1" * 30])
def test_what_is_no_duration(value: Any) -> None:
    with pytest.raises(SettingError, match="is not a duration such as"):
        parse_duration_ms(value)


def test_a_duration_finer_than_a_millisecond_is_refused() -> None:
    with pytest.raises(SettingError, match="'1500us' is not a whole number of milliseconds"):
        parse_duration_ms("1500us")


def test_a_bare_number_has_the_unit_of_the_default_or_of_the_alias() -> None:
    assert parsed("pause_ms", "20") == 20_000
    assert parsed("pause_ms", "20", "hive.old.pause") == 20
    assert parsed("many", "4", "metastore.few") == 4


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("pause_ms", "9ms", "'9ms' is too small: the least is 10ms"),
        ("pause_ms", "40000d", "'40000d' is too large"),
        ("many", "few", "'few' is not a whole number"),
        ("many", "1.5", "'1.5' is not a whole number"),
        ("many", "0", "'0' is too small: the least is 1"),
        ("many", "10", "'10' is too large: the most is 9"),
        ("part", "half", "'half' is not a number"),
        ("part", "nan", "'nan' is not a number"),
        ("part", "10", "'10' is too large: the most is 1"),
        ("part", "-0.1", "'-0.1' is too small: the least is 0"),
        ("on", "yes", "'yes' is not true or false"),
        ("kind", "medium", "'medium' is not one of soft, hard"),
    ],
)
def test_what_is_unfit_is_named(field: str, value: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        parsed(field, value)
    assert words in str(caught.value)


def test_what_fits_is_taken() -> None:
    assert parsed("part", "1") == 1.0
    assert parsed("on", "FALSE") is False
    assert parsed("kind", "Hard") == "hard"
    assert parsed("name", "a b") == "a b"
    assert Some() == Some(5000, 3, 0.1, True, "soft", "")


def test_both_spellings_of_a_key_are_one() -> None:
    assert spelling("metastore.txn.timeout") == spelling("hive.metastore.txn.timeout") == spelling("HIVE.txn.timeout")
