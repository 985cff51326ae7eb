"""Values at the edges: rows that hold them are found, and what an ORC file cannot hold is refused by every verb."""

import datetime as dt
import itertools
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError, SerializationError
from hive_acid.spark import AcidSession
from hive_acid.streaming import ArrowWriter, StreamingConnection
from tests.spark.by_spark import WRITTEN, limited
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import SIMPLE, hostile, stored, value_of

DAYS = ["0001-01-01", "1500-01-01", "1582-10-04", "1582-10-15", "1899-12-31", "1970-01-01", "9999-12-30", "9999-12-31"]
FLOATS = [-1.5, -0.0, 0.0, 1.5, 5e-324, -5e-324, float("inf"), float("nan")]
TEXTS = ["", "a", "z\ud7ff", "z\ue000", "z\uffff", "z\U00010000", "z\U0010ffff", "zz"]
ROWS_IN_GROUP = 10_000

OPERATORS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def place(value: Any) -> Any:
    """What compares as Spark compares the values: NaN is the greatest number, texts go by their bytes."""
    if isinstance(value, str):
        return value.encode()
    return (value != value, value if value == value else 0.0) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def groups(spark: SparkSession) -> Any:
    """A frame in which each value has ten thousand rows of its own: what is one row group of a file."""
    rows = list(zip(range(8), DAYS, map(repr, FLOATS), TEXTS, strict=True))
    frame = spark.createDataFrame(rows, "g int, d string, x string, v string")
    frame = frame.selectExpr("g", "cast(d AS date) AS d", "cast(x AS double) AS x", "cast(x AS float) AS y", "v")
    copies = frame.crossJoin(spark.range(ROWS_IN_GROUP).withColumnRenamed("id", "n"))
    return copies.repartition(1).sortWithinPartitions("g", "n").drop("n")


def test_each_value_is_found_where_a_row_group_has_it_alone(acid: AcidSession, groups: Any) -> None:
    """Eight values of four types, each with every comparison: our skipping and ORC's must not lose a row."""
    acid.create_table("d.t", {"g": "int", "d": "date", "x": "double", "y": "float", "v": "string"})
    acid.insert("d.t", groups)
    days = [dt.date.fromisoformat(day) for day in DAYS]
    of: dict[str, tuple[list[Any], list[tuple[str, Any]]]] = {
        "d": (days, [(f"date'{day}'", day) for day in days] + [(f"'{days[1]}'", days[1])]),
        "x": (FLOATS, [("0", 0.0), ("-0.0", -0.0), ("1.5", 1.5), ("double('NaN')", float("nan"))]),
        "v": (TEXTS, [(f"'{text}'", text) for text in TEXTS[2:7]]),
    }
    of["y"] = [-1.5, -0.0, 0.0, 1.5, 0.0, -0.0, *FLOATS[6:]], of["x"][1][:3]
    table = acid.table("d.t")
    wanted: list[str] = []
    expected: list[frozenset[int]] = []
    for column, (values, literals) in of.items():
        for (literal, value), (sign, holds) in itertools.product(literals, OPERATORS.items()):
            wanted.append(f"{column} {sign} {literal}")
            expected.append(frozenset(g for g, one in enumerate(values) if holds(place(one), place(value))))
        for (low, one), (high, two) in itertools.pairwise(literals):
            wanted += [f"{column} BETWEEN {low} AND {high}", f"{column} IN ({low}, {high})"]
            between = (g for g, found in enumerate(values) if place(one) <= place(found) <= place(two))
            listed = (g for g, found in enumerate(values) if place(found) in (place(one), place(two)))
            expected += [frozenset(between), frozenset(listed)]
    # All in one job: each condition has a scan of its own.
    frames = [table.where(condition).selectExpr(f"{n} AS n", "g") for n, condition in enumerate(wanted)]
    found: dict[int, set[int]] = {}
    for begin in range(0, len(frames), 20):
        union = reduce(DataFrame.union, frames[begin : begin + 20])
        for row in union.groupBy("n", "g").count().collect():
            assert row["count"] == ROWS_IN_GROUP, wanted[row.n]
            found.setdefault(row.n, set()).add(row.g)
    wrong = {
        wanted[n]: (sorted(found.get(n, ())), sorted(groups))
        for n, groups in enumerate(expected)
        if found.get(n, set()) != groups
    }
    assert wrong == {}


STORED = {"date": stored("date"), "timestamp": stored("timestamp")}
LATE = [-999_000, -500_000, -1]
"""Microseconds before 1970 that Java's writer stores a second later; those before and between are stored well."""

LOST = [value for value in hostile("date") if not value.is_stored]
NESTED = {
    "array<date>": "array(null, {0})",
    "map<int,timestamp>": "map(1, {1})",
    "map<timestamp,int>": "map({1}, 1)",
    "struct<a:int,b:struct<c:array<timestamp>>>": "named_struct('a', 1, 'b', named_struct('c', array({1})))",
}


@pytest.mark.parametrize("by_spark", [False, True])
def test_days_and_times_are_stored_as_they_are_or_refused(
    acid: AcidSession, spark: SparkSession, by_spark: Any
) -> None:
    acid.create_table("d.t", {"id": "int", "d": "date", "at": "timestamp", "n": "array<struct<d:date,at:timestamp>>"})
    many = max(map(len, STORED.values()))
    days, times = ([STORED[kind][n % len(STORED[kind])].sql for n in range(many)] for kind in ("date", "timestamp"))
    lines = [f"SELECT {n} id, {day} d, {time} at" for n, (day, time) in enumerate(zip(days, times, strict=True))]
    given = spark.sql(" UNION ALL ".join(lines)).selectExpr("*", "array(named_struct('d', d, 'at', at)) n").coalesce(1)
    kinds = ["int", "date", "timestamp", "array<struct<d:date,at:timestamp>>"]
    expected = sorted(map(exactly, rows_of(given, kinds)))
    acid.insert("d.t", given)
    assert sorted(map(exactly, rows_of(acid.table("d.t"), kinds))) == expected
    if by_spark:
        with limited(acid, **WRITTEN):
            assert acid.update("d.t", {"id": "id", "d": "d", "at": "at", "n": "n"}) == many
    else:
        assert acid.update("d.t", {"id": "id", "d": "d", "at": "at", "n": "n"}, "id >= 0") == many
    assert sorted(map(exactly, rows_of(acid.table("d.t"), kinds))) == expected


def test_every_verb_refuses_what_a_file_cannot_hold(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "d": "date", "at": "timestamp"})
    acid.sql("INSERT INTO d.t VALUES (1, date'2020-01-01', timestamp'2020-01-01 00:00:00')")
    bad = [(value.sql, "at") for value in LOST] + [("d", value_of("timestamp", micros).sql) for micros in LATE]
    bad.append(("d", "timestamp'1582-10-10 12:00:00'"))
    row = spark.sql("SELECT 1 id, date'2020-01-01' d, timestamp'2020-01-01 00:00:00' at")
    for at, (day, time) in enumerate(bad):
        frame = row.selectExpr("id", f"{day} AS d", f"{time} AS at")
        verbs = [
            lambda frame=frame: acid.insert("d.t", frame),
            lambda day=day, time=time: acid.update("d.t", {"d": day, "at": time}),
            lambda day=day, time=time: acid.update("d.t", {"d": day, "at": time}, "id = 1"),
            lambda frame=frame: acid.overwrite("d.t", frame),
            lambda frame=frame: acid.merge("d.t", frame, on="t.id = s.id").whenMatchedUpdateAll().execute(),
            lambda frame=frame: acid.merge("d.t", frame, on="t.id = s.id + 1").whenNotMatchedInsertAll().execute(),
        ]
        for verb in verbs if at in (0, len(LOST), len(bad) - 1) else verbs[:1]:
            with pytest.raises(ColumnError, match="cannot hold this day or time"):
                verb()
    assert acid.table("d.t").where("d = date'2020-01-01' AND at = timestamp'2020-01-01'").count() == 1


@pytest.mark.parametrize("kind", NESTED)
def test_nested_days_and_times_are_refused(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    acid.create_table("d.t", {"v": kind})
    good, late = value_of("timestamp", -999_001).sql, value_of("timestamp", -1).sql
    assert acid.insert("d.t", spark.sql(f"SELECT {NESTED[kind].format('date_from_unix_date(-141438)', good)} v")) == 1
    with pytest.raises(ColumnError, match=r"d\.t\.v"):
        acid.insert("d.t", spark.sql(f"SELECT {NESTED[kind].format(LOST[0].sql, late)} v"))


def test_insert_only_tables_refuse_them_as_well(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.i", {"d": "date"}, properties={"transactional_properties": "insert_only"})
    with pytest.raises(ColumnError, match="cannot hold this day"):
        acid.insert("d.i", spark.sql(f"SELECT {LOST[0].sql} d"))
    acid.create_table("d.p", {"id": "int"}, partitioned_by={"d": "date"})
    assert acid.insert("d.p", spark.sql(f"SELECT 1 id, {LOST[0].sql} d")) == 1
    assert acid.table("d.p").where(f"d = {LOST[0].sql}").count() == 1


def test_streams_refuse_days_beyond_pythons(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "d": "date", "at": "timestamp"}, clustered_by=["d", "at"], buckets=2)
    with StreamingConnection(acid.connection, "d.t", ArrowWriter()) as stream, stream.transaction():
        for days, micros in ((2_932_897, 0), (-719_163, 0), (0, 253_402_300_800_000_000), (LOST[0].model, 0), (0, -1)):
            columns = [
                pa.array([1]),
                pa.array([days], pa.int32()).cast("date32"),
                pa.array([micros]).cast(pa.timestamp("us")),
            ]
            with pytest.raises(SerializationError):
                stream.write(pa.table(dict(zip(("id", "d", "at"), columns, strict=True))))
        ends = [pa.array([1]), pa.array([dt.date.max]), pa.array([dt.datetime.max])]
        stream.write(pa.table(dict(zip(("id", "d", "at"), ends, strict=True))))
    assert acid.table("d.t").where("d = date'9999-12-31' AND at = timestamp'9999-12-31 23:59:59.999999'").count() == 1


KEYS = {
    "date": ["date'9999-12-31'", "date'0001-01-01'", "date'1500-01-01'", "date'+12000-01-01'", "date'-0044-03-15'"],
    "decimal(38,18)": ["99999999999999999999.999999999999999999", "-0.000000000000000001", "0"],
    "string": ["'\uffff'", "'\U0010ffff'", "''", "cast(X'61ff' AS string)", "'a'"],
    "bigint": [str(2**63 - 1), str(1 - 2**63), "0"],
    "double": ["-0.0D", "double('NaN')", "double('-infinity')", "5e-324D"],
    "timestamp": ["timestamp'9999-12-31 23:59:59.999999'", "timestamp'0001-01-01'", "timestamp'1969-12-31 23:59:58.5'"],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_a_merge(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    """Every key meets itself, and nothing is inserted twice; with few keys and with many."""
    acid.create_table("d.t", {"k": kind, "n": "int"})
    rows = " UNION ALL ".join(f"SELECT cast({key} AS {kind}) k, {n} n" for n, key in enumerate(KEYS[kind]))
    acid.insert("d.t", spark.sql(rows))
    for times in (1, 500):
        source = spark.sql(
            f"SELECT DISTINCT k, n + {times} n FROM ({rows}) LATERAL VIEW explode(sequence(1, {times})) x AS y"
        )
        counts = acid.merge("d.t", source, on="t.k = s.k").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert (counts.updated, counts.inserted) == (len(KEYS[kind]), 0)
        assert acid.update("d.t", {"n": "s.n"}, source=source, on="s.k = t.k") == len(KEYS[kind])
    assert acid.delete("d.t", source=source, on="t.k = s.k") == len(KEYS[kind])


def test_statistics_of_all_values(acid: AcidSession, spark: SparkSession) -> None:
    columns = {f"c{n}": kind for n, kind in enumerate(SIMPLE)}
    acid.create_table("d.t", columns)
    values = [stored(kind) for kind in SIMPLE]
    lines = (
        "SELECT " + ", ".join(f"{of[n % len(of)].sql} AS c{at}" for at, of in enumerate(values))
        for n in range(max(map(len, values)))
    )
    acid.insert("d.t", spark.sql(" UNION ALL ".join(lines)).coalesce(1))
    acid.sql(
        "INSERT INTO d.t (c17) VALUES (date'+12000-01-01'), (date'-0044-03-15')".replace(
            "c17", f"c{SIMPLE.index('date')}"
        )
    )
    assert acid.analyze("d.t", columns=list(columns)).rows == max(map(len, values)) + 2
    day = acid.connection.call("get_table_column_statistics", "d", "t", f"c{SIMPLE.index('date')}").statsObj[0]
    ends = spark.sql("SELECT unix_date(date'-0044-03-15'), unix_date(date'+12000-01-01')").collect()[0]
    found = day.statsData.dateStats
    assert (found.lowValue.daysSinceEpoch, found.highValue.daysSinceEpoch) == tuple(ends)


EARLY = dt.date(1500, 3, 1)


def test_days_of_all_kinds_in_conditions_of_columns(acid: AcidSession, spark: SparkSession) -> None:
    """As Columns instead of text."""
    acid.create_table("d.t", {"d": "date", "x": "double"})
    acid.insert("d.t", spark.createDataFrame([(dt.date.max, -0.0), (EARLY, 0.0)], "d date, x double"))
    for day in (dt.date.max, EARLY):
        assert acid.table("d.t").where(F.col("d") == F.lit(day)).count() == 1
        assert acid.table("d.t").where(F.col("d") >= F.lit(day)).count() == (1 if day == dt.date.max else 2)
        assert acid.table("d.t").where(F.col("d") <= F.lit(day)).count() == (2 if day == dt.date.max else 1)
    assert acid.table("d.t").where(F.col("x") == 0.0).count() == 2
