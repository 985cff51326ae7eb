"""The parameter that says which statistics are accurate, as Hive writes and reads it."""

import pytest

from metastore.catalog.accuracy import ACCURATE, Accuracy

BOTH = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'


@pytest.mark.parametrize(
    ("text", "basic", "columns"),
    [
        (None, False, ""),
        ("", False, ""),
        ("{}", False, ""),
        (BOTH, True, "ab"),
        ('{"BASIC_STATS":"false","COLUMN_STATS":{"A":"true","b":"false"}}', False, "a"),
        ('{"BASIC_STATS":true,"COLUMN_STATS":{"a":true}}', True, "a"),
        ("true", True, ""),
        ("TRUE", False, ""),
        ("false", False, ""),
        ('["x"]', False, ""),
        ('{"COLUMN_STATS":["a"]}', False, ""),
        ('{"BASIC_STATS":', False, ""),
    ],
)
def test_parse(text: str | None, basic: bool, columns: str) -> None:
    assert Accuracy.parse(text) == Accuracy(basic, frozenset(columns))


def test_text_is_sorted_and_without_spaces() -> None:
    assert str(Accuracy(True, frozenset("ba"))) == BOTH
    assert str(Accuracy(True)) == '{"BASIC_STATS":"true"}'
    assert str(Accuracy(columns=frozenset({"ü"}))) == '{"COLUMN_STATS":{"ü":"true"}}'


def test_nothing_accurate_is_no_parameter() -> None:
    parameters = {"k": "v", ACCURATE: BOTH}
    assert Accuracy().applied(parameters) == {"k": "v"}
    assert Accuracy.of(parameters).without_columns(["a"]).applied(parameters) == {
        "k": "v",
        ACCURATE: '{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true"}}',
    }
