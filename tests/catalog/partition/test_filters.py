"""Partition filters: the grammar of wire.md §5.5, against a table in Postgres."""

import pytest

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from tests.catalog.conftest import Rpc, column, partition, table

PARTITIONS = [
    ["2020-01-01", "1"],
    ["2020-01-01", "10"],
    ["2020-01-02", "9"],
    ["2021-12-31", "__HIVE_DEFAULT_PARTITION__"],
    ["it's", "-5"],
]


@pytest.fixture
def p(rpc: Rpc) -> Rpc:
    rpc.create_table(table("p", keys=(column("d", "string"), column("hr", "int"))))
    rpc.add_partitions([partition(values) for values in PARTITIONS])
    return rpc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {0, 1, 2, 3, 4}),
        ('d = "2020-01-01"', {0, 1}),
        ("D == '2020-01-01' AND Hr=1", {0}),
        ("hr > 1", {1, 2}),
        ("hr >= 9 and hr <= 10", {1, 2}),
        ("1 < hr", {1, 2}),
        ("9 >= hr", {0, 2, 4}),
        ("hr = -5", {4}),
        ('hr = "1"', {0}),
        ("hr != 1", {1, 2, 4}),
        ("d <> '2020-01-01'", {2, 3, 4}),
        ('d < "2020-01-02"', {0, 1}),
        ("d = 2020-01-02", {2}),
        ("d = DATE '2020-01-02'", {2}),
        ("d > TIMESTAMP '2020-01-01 00:00:00'", {2, 3, 4}),
        ('d like "2020.*" and d > "2020-01-01"', {2}),
        ('d like "2020%"', {0, 1, 2}),
        ('d like "2020-01-0_"', {0, 1, 2}),
        (r'd like "2020\-01%"', {0, 1, 2}),
        ('d like "%1"', {0, 1, 3}),
        ("hr between 1 and 9", {0, 2}),
        ("hr not between 1 and 9", {1, 4}),
        ("(hr) in (1, 10)", {0, 1}),
        ("hr in (1, 10)", {0, 1}),
        ("(hr) not in (1, 10)", {2, 4}),
        ("(struct(d, hr)) in (const struct('2020-01-01', 1), struct('2020-01-02', 9))", {0, 2}),
        ("hr = 1 or hr = 9 and d = '2020-01-02'", {0, 2}),
        ("(hr = 1 or hr = 9) and d = '2020-01-02'", {2}),
        ("((hr = 1))", {0}),
        ("`hr` = 1", {0}),
        ('d = "it\'s"', {4}),
        ("d = '__HIVE_DEFAULT_PARTITION__'", set()),
        ("hr = 99999999999999999999", set()),
        ("hr = 'x'", set()),
        ("hr != 'x'", {0, 1, 2, 3, 4}),
        ("hr = '__HIVE_DEFAULT_PARTITION__'", {3}),
        ("hr is null", {3}),
        ("hr is not null and d like '2020%'", {0, 1, 2}),
        ("not hr = 1", {1, 2, 4}),
        ("not (hr = 1 or hr = 10)", {2, 4}),
        ("hr = 01", {0}),
        ("((hr = 1 or hr = 9) or hr = 10)", {0, 1, 2}),
        ("d = '2020-01-01' and hr in (10, 'x')", {1}),
        ("hr = 1.0", {0}),
    ],
)
def test_filters(p: Rpc, text: str, expected: set[int]) -> None:
    found = {PARTITIONS.index(struct.values) for struct in p.get_partitions_by_filter("default", "p", text, -1)}
    assert found == expected
    assert p.get_num_partitions_by_filter("default", "p", text) == len(expected)


def test_limit_and_request_form(p: Rpc) -> None:
    request = ttypes.GetPartitionsByFilterRequest(dbName="default", tblName="p", filter="hr > 0", maxParts=2)
    assert [struct.values for struct in p.get_partitions_by_filter_req(request)] == PARTITIONS[:2]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "nix = 1",
        "hr",
        "hr =",
        "hr = 1 and",
        "hr <=> 1",
        "hr = 1)",
        "(hr = 1",
        "hr not like 'x'",
        "hr in ()",
        "hr in (1",
        "hr = 'open",
        "hr = 1; DROP TABLE tbl",
        "(struct(d, hr)) in (struct(1))",
        "between 1 and 2",
        "\0",
        "hr < 'x'",
        "hr between 'a' and 'b'",
        "hr is 1",
        "not",
        "(" * 200 + "hr = 1" + ")" * 200,
    ],
)
def test_malformed(p: Rpc, text: str) -> None:
    with pytest.raises(MetaError, match=r"filter|does not compare"):
        p.get_partitions_by_filter("default", "p", text, -1)


def test_a_filter_has_an_end(p: Rpc) -> None:
    """Values of one key are one comparison, however many there are and however they are written."""
    for sign, word in (("!=", "and"), (">", "or")):
        with pytest.raises(MetaError, match="at most 1000 comparisons"):
            p.get_partitions_by_filter("default", "p", f" {word} ".join(f"hr {sign} {n}" for n in range(1_001)), -1)
    many = " or ".join(f"hr = {n}" for n in range(5_000))
    assert len(p.get_partitions_by_filter("default", "p", many, -1)) == 3
