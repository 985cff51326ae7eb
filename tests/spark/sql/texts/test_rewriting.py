"""Texts and templates, without Spark: the words of a statement, names in queries, and what a WHERE says of a table."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import SqlError
from hive_acid.spark.sql.arguments import bound, literal
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.tokens import Cursor, tokens_of

T = Table("d", "t", (Column("id", "int"), Column("k", "int"), Column("s", "string")), (), {"transactional": "true"})
U = Table("d", "u", (Column("id", "int"), Column("v", "int")), (Column("p", "string"),), {"transactional": "true"})


class Known:
    """Names of the tables above, in the database ``d``."""

    def look_up(self, names: Any) -> None:
        """Nothing has to be asked."""

    def qualified(self, parts: Any) -> None:
        """Spark looks in the same database."""

    def read(self, parts: Any) -> Any:
        name = tuple(part.lower() for part in parts)
        return {("t",): T, ("u",): U, ("d", "t"): T, ("d", "u"): U}.get(name)

    source = read


def wanted(text: Any, arguments: Any = None) -> Any:
    rewriter = Rewriter(Known(), arguments)  # type: ignore[arg-type]
    rewriter.query(text)
    return {source.table.name: source.where for source in rewriter.sources.values()}


def test_words_and_their_places() -> None:
    text = "ALTER table `a``b`.c -- x\n SHOW /* y */ GROUP  BY 'it''s' r'a\\' 1.5BD x>=y"
    assert [text[token.start : token.end] for token in tokens_of(text)] == [
        *("ALTER", "table", "`a``b`", ".", "c", "SHOW", "GROUP", "BY", "'it'", "'s'", "r'a\\'", "1.5BD", "x", ">=", "y")
    ]
    assert Cursor("`a``b`.`C d`.e f").name().parts == ("a`b", "C d", "e")
    assert Cursor("'it''s' ' on'").string("a text") == "it's on"
    assert Cursor("'a'\"b\" 'c'").string("a text") == "abc"
    assert Cursor('"say ""it"""').string("a text") == 'say "it"'
    cursor = Cursor("SET a = CASE WHEN x THEN 'FROM' END, b = (SELECT 1 FROM t), c IS DISTINCT FROM d, t.from FROM u")
    assert cursor.until("FROM").source.endswith("t.from")
    assert cursor.sees("FROM", "U")
    types = Cursor("(a map<int,array<struct<x:int,y:int>>>, b decimal(1,2))").items("types", of_types=True)
    assert [item.source for item in types] == ["a map<int,array<struct<x:int,y:int>>>", "b decimal(1,2)"]
    with pytest.raises(SqlError, match="line 2, column 3: x y"):
        cursor = Cursor("a\n  x y")
        cursor.identifier()
        cursor.expect("Z")


def test_only_names_are_changed() -> None:
    rewriter = Rewriter(Known())  # type: ignore[arg-type]
    text = "SELECT d.t.id, x.v, '{from t}' FROM d.t /* t */ JOIN u AS x ON d.t.id = x.id, (SELECT 1 AS u) u -- from u"
    assert rewriter.query(text) == (
        "SELECT t.id, x.v, '{{from t}}' FROM ({acid_1} AS `t`) /* t */ JOIN {acid_0} AS x ON t.id = x.id,"
        " (SELECT 1 AS u) u -- from u"
    )
    assert {key: source.table.name for key, source in rewriter.sources.items()} == {"acid_0": "u", "acid_1": "t"}
    for untouched in (
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t",
        "WITH x AS (WITH t AS (SELECT 1) SELECT * FROM t) SELECT * FROM x",
        "SELECT t.id, u FROM other AS t",
        "SELECT * FROM t(1), db.t, d.t.u",
    ):
        rewriter = Rewriter(Known())  # type: ignore[arg-type]
        assert rewriter.query(untouched) == untouched
        assert not rewriter.sources
    ordered = "WITH t AS (SELECT * FROM t), x AS (SELECT * FROM t) SELECT * FROM t, x"
    assert Rewriter(Known()).query(ordered).count("{acid_") == 1  # type: ignore[arg-type]


def test_expressions_are_about_their_row() -> None:
    target = ChangedTable(T, "x")
    for text, template in (
        ("x.k + 1", "x.k + 1"),
        ("k IN (SELECT x.id FROM t x)", "k IN (SELECT x.id FROM {acid_0} x)"),
        ("d.x.k = 1", "x.k = 1"),
        (
            "x.row__id.rowid",
            "named_struct('writeId', `x`.__acid_write_id, 'bucketId', `x`.__acid_bucket, 'rowId',"
            " `x`.__acid_row_id).rowid",
        ),
    ):
        assert Rewriter(Known()).expression(text, target) == template  # type: ignore[arg-type]
    for refused in (
        "a b c",
        "a b",
        "a AS b",
        "a, b",
        "1 FROM t",
        "a = 1 LIMIT",
        "a LIMIT 1",
        "a WHERE b",
        "",
        "DISTINCT a",
    ):
        with pytest.raises(SqlError):
            Rewriter(Known()).expression(refused, target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM t WHERE k = 7 AND upper(s) = 'A'", {"t": "(k = 7)"}),
        (
            "SELECT * FROM t x WHERE x.k > 1 AND (x.s = 'a' OR s IN ('b', 'c'))",
            {"t": "(k > 1) AND (s = 'a' OR s IN ('b', 'c'))"},
        ),
        (
            "SELECT * FROM t JOIN u USING (id) WHERE k = 1 AND v BETWEEN 2 AND 3 AND t.id = u.id",
            {"t": "(k = 1)", "u": "(v BETWEEN 2 AND 3)"},
        ),
        ("SELECT * FROM t LEFT JOIN u ON t.id = u.id WHERE v IS NULL AND k = 1", {"t": "(k = 1)", "u": None}),
        ("SELECT * FROM t RIGHT JOIN u ON t.id = u.id WHERE k = 1", {"t": None, "u": None}),
        ("SELECT * FROM t FULL JOIN u ON t.id = u.id WHERE k = 1", {"t": None, "u": None}),
        ("SELECT * FROM t LEFT ANTI JOIN u ON t.id = u.id WHERE k = 1", {"t": "(k = 1)", "u": None}),
        ("SELECT * FROM t WHERE k = 1 OR id IN (SELECT id FROM u)", {"t": None, "u": None}),
        ("SELECT * FROM t WHERE NOT k = rand()", {"t": None}),
        ("SELECT * FROM t WHERE s = 'a\\\\b'", {"t": None}),
        ("SELECT * FROM t WHERE x = 1 AND y.k = 1", {"t": None}),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE k = 1", {"t": None}),
        ('SELECT * FROM t WHERE s = "k"', {"t": None}),
        ("FROM t |> LIMIT 5 |> WHERE k = 1", {"t": None}),
        ("SELECT k + 1 AS k FROM t WHERE k = 1 GROUP BY ALL HAVING k = 2", {"t": "(k = 1)"}),
    ],
)
def test_what_a_where_says_of_a_table(text: Any, said: Any) -> None:
    assert wanted(text) == said


def test_arguments_count_as_constants() -> None:
    text = "SELECT * FROM t WHERE k = :k AND s = :s AND id = :missing"
    assert wanted(text, {"k": 5, "s": "a"}) == {"t": "(k = 5) AND (s = 'a')"}
    assert wanted("SELECT * FROM t WHERE s >= :day", {"day": date(2024, 1, 2)}) == {
        "t": "(s >= CAST('2024-01-02' AS DATE))"
    }


def test_literals() -> None:
    assert bound("a = :x AND b = ':x' AND c:x = x.y AND d=:y", {"x": 1, "y": "it's"}) == (
        "a = 1 AND b = ':x' AND c:x = x.y AND d=CAST(X'69742773' AS STRING)"
    )
    assert bound("? + '?' + ?", [1, None]) == "1 + '?' + NULL"
    assert bound("a=?AND b LIKE?", [1, "x"]) == "a=1 AND b LIKE 'x'"
    at = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    for value, text in (
        (True, "TRUE"),
        (-5, "(-5)"),
        (1 << 40, "CAST('1099511627776' AS BIGINT)"),
        (1.5, "1.5D"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (Decimal("1.50"), "(1.50BD)"),
        (date(2024, 1, 2), "DATE'2024-01-02'"),
        (at, "TIMESTAMP_LTZ'2024-01-02 03:04:05.678901Z'"),
        (-0.0, "CAST('-0.0' AS DOUBLE)"),
        (b"\x01", "X'01'"),
    ):
        assert literal(value) == text
    with pytest.raises(SqlError):
        literal([1])


@pytest.mark.parametrize(
    ("moment", "micros"),
    [
        (datetime(9999, 12, 31, 23, 59, 59, 999999), 253402300799999999),
        (datetime(2262, 4, 12, 1, 1, 1, 999999), 9223376461999999),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), -1),
        (datetime(1500, 1, 1, 0, 0, 0, 1), -14831769599999999),
        (datetime(1, 1, 1, 0, 0, 0, 1), -62135596799999999),
    ],
)
def test_moments_are_exact(monkeypatch: pytest.MonkeyPatch, spark: SparkSession, moment: Any, micros: Any) -> None:
    """A float holds them by the microsecond from 1832 to 2107 only."""
    assert micros_of(spark, moment.replace(tzinfo=UTC)) == micros
    for hours in (-5, 5):
        zone = timezone(timedelta(hours=hours))
        assert micros_of(spark, moment.replace(tzinfo=zone)) == micros - hours * 3_600_000_000
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        assert micros_of(spark, moment) == micros
    time.tzset()


def micros_of(spark: SparkSession, moment: Any) -> Any:
    return spark.sql(f"SELECT unix_micros({literal(moment)})").collect()[0][0]


def test_numbers_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    found = [literal(of) for of in (numpy.int64(7), numpy.float64(1.5), numpy.float32(0.5), numpy.bool_(True))]
    assert found == ["7", "1.5D", "0.5D", "TRUE"]
    with pytest.raises(SqlError):
        literal(numpy.array([1]))
    for beyond in (2**63, -(2**63) - 1, Decimal(10) ** 38, Decimal("1E-39")):
        with pytest.raises(SqlError, match="no number of SQL"):
            literal(beyond)
