"""Partition names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.format.partitions import escape, parse_partition_name, partition_name, unescape

keys = st.text(min_size=1, max_size=8).map(str.lower).filter(lambda key: key == key.lower() and key.strip())


def test_name() -> None:
    assert partition_name(["Year", "month"], ["2013", "1"]) == "year=2013/month=1"
    assert partition_name(["a", "b"], [None, ""]) == "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__"
    assert parse_partition_name("Year=2013/m=__HIVE_DEFAULT_PARTITION__") == [("year", "2013"), ("m", None)]


def test_escapes() -> None:
    assert escape("a/b=c:d%\"#'*?\\{[]^\x01\x7f") == "a%2Fb%3Dc%3Ad%25%22%23%27%2A%3F%5C%7B%5B%5D%5E%01%7F"
    assert escape("New York } é") == "New York } é"
    assert unescape("50%25 of %2f and 100%") == "50% of / and 100%"


@given(st.text())
def test_escape_round_trip(text: str) -> None:
    escaped = escape(text)
    assert unescape(escaped) == text
    assert not set(escaped) & set('/=:"#')


@given(st.lists(st.tuples(keys, st.text(min_size=1) | st.none()), min_size=1, max_size=4))
def test_name_round_trip(parts: list[tuple[str, str | None]]) -> None:
    name = partition_name([key for key, _ in parts], [value for _, value in parts])
    expected = [(key, None if value == "__HIVE_DEFAULT_PARTITION__" else value) for key, value in parts]
    assert parse_partition_name(name) == expected


@pytest.mark.parametrize("name", ["", "a", "a=", "=1", "a=1/", "a=1//b=2"])
def test_malformed_name(name: str) -> None:
    with pytest.raises(FormatError, match="not of the form"):
        parse_partition_name(name)


def test_wrong_number_of_values() -> None:
    with pytest.raises(FormatError, match="1 partition values"):
        partition_name(["a", "b"], ["1"])
