"""Insert-only tables: rows of any format, written and overwritten as whole directories."""

from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import ColumnError, TableNotAcidError, TransactionClosedError, UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.checker import location_of
from tests.values.sessions.under import under

INSERT_ONLY = {"transactional_properties": "insert_only"}
COLUMNS = "id int, name string, price decimal(5,2)"
INPUT = {
    "text": ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    "json": ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.serde2.JsonSerDe"),
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
}


def create(acid: AcidSession, kind: Any, *, keys: Any = (), serde: Any = None, insert_only: Any = True) -> None:
    """A table as Hive makes it, of a format that the client has no verb for."""
    input_format, serde_name = INPUT[kind]
    fields = [ttypes.FieldSchema(name=name, type=type_) for name, _, type_ in map(_parted, COLUMNS.split(", "))]
    descriptor = ttypes.StorageDescriptor(
        cols=fields,
        inputFormat=input_format,
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(serializationLib=serde_name, parameters=serde or {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    kinds = {"transactional": "true", "transactional_properties": "insert_only"} if insert_only else {}
    acid.connection.call(
        "create_table",
        ttypes.Table(
            dbName="d",
            tableName="t",
            sd=descriptor,
            partitionKeys=[ttypes.FieldSchema(name=key, type="string") for key in keys],
            parameters=kinds,
            tableType="MANAGED_TABLE",
        ),
    )


def _parted(column: Any) -> Any:
    return column.partition(" ")


def read(acid: AcidSession) -> Any:
    return sorted((tuple(row) for row in acid.table("d.t").collect()), key=str)


@pytest.fixture
def rows(spark: SparkSession) -> Any:
    values = [(1, "a", Decimal("1.50")), (2, None, None), (None, "", Decimal("-0.01"))]
    return spark.createDataFrame(values, COLUMNS)


@pytest.mark.parametrize("kind", list(INPUT))
def test_rows_of_every_format_come_back(acid: AcidSession, rows: Any, spark: SparkSession, kind: Any) -> None:
    create(acid, kind)
    expected = sorted(map(tuple, rows.collect()), key=str)
    assert acid.insert("d.t", rows) == 3
    assert read(acid) == expected
    assert acid.insert("d.t", rows.limit(0)) == 0
    assert acid.overwrite("d.t", rows.limit(1)) == 1
    assert read(acid) == [(1, "a", Decimal("1.50"))]
    assert acid.overwrite("d.t", rows.limit(0)) == 0
    assert read(acid) == []
    names = sorted(path.name for path in location_of(acid, "d.t").iterdir())
    assert names == ["base_0000003", "base_0000004", "delta_0000001_0000001_0000"]


def test_partitions_are_written_and_overwritten_apart(acid: AcidSession, rows: Any, spark: SparkSession) -> None:
    create(acid, "orc", keys=("p", "q"))
    keyed = rows.selectExpr("*", "if(id = 1, 'x y', null) AS p", "'1' AS q")
    assert acid.insert("d.t", keyed) == 3
    assert acid.table("d.t").partitions() == ["p=__HIVE_DEFAULT_PARTITION__/q=1", "p=x y/q=1"]
    assert acid.overwrite("d.t", keyed.where("id = 1").drop("p"), partition={"p": "x y"}) == 1
    assert len(read(acid)) == 3
    assert acid.overwrite("d.t", keyed.limit(0).drop("p", "q"), partition={"p": None, "q": "1"}) == 0
    assert read(acid) == [(1, "a", Decimal("1.50"), "x y", "1")]


def test_text_that_delimiters_would_cut_is_escaped_or_refused(acid: AcidSession, spark: SparkSession) -> None:
    create(acid, "text", serde={"field.delim": ",", "escape.delim": "\\"})
    odd = spark.createDataFrame([(1, "a,b\\c$1", Decimal(1)), (2, "\\", Decimal(2))], COLUMNS)
    assert acid.insert("d.t", odd) == 2
    assert [row[1] for row in read(acid)] == ["a,b\\c$1", "\\"]
    acid.drop_table("d.t")
    create(acid, "text", serde={"field.delim": ","})
    for text in ("a,b", "two\nlines", "\\N"):
        with pytest.raises(ColumnError, match="has a delimiter"):
            acid.insert("d.t", spark.createDataFrame([(1, text, Decimal(1))], COLUMNS))
    assert read(acid) == []
    assert list(location_of(acid, "d.t").iterdir()) == []


VALUES = {
    "i": ("int", "-1"), "x": ("double", "-1.0E-10D"), "n": ("decimal(9,2)", "-1.25BD"), "b": ("boolean", "true"),
    "day": ("date", "DATE'2011-01-01'"), "at": ("timestamp", "TIMESTAMP'2011-01-01 10:11:12.5'"),
    "bin": ("binary", "X'FBFFFE01'"), "long": ("binary", "cast(repeat('x', 200) AS binary)"), "s": ("string", "'N'"),
}  # fmt: skip


@pytest.mark.parametrize("escape", [None, "\\"])
@pytest.mark.parametrize("delimiter", ["-", " ", "/", "1", "44", "N", "\\"])
def test_values_of_all_types_are_whole_or_refused(
    acid: AcidSession, spark: SparkSession, delimiter: Any, escape: Any
) -> None:
    """A delimiter may be in the text of a number, a day or base64, and in what stands for null."""
    types = {name: kind for name, (kind, _) in VALUES.items()}
    acid.create_table("d.t", types, stored_as="TEXTFILE", properties=INSERT_ONLY)
    table = acid.connection.wire_table("d", "t")
    table.sd.serdeInfo.parameters = {"field.delim": delimiter} | ({"escape.delim": escape} if escape else {})
    acid.connection.call("alter_table", "d", "t", table)
    nulls = {name: f"cast(NULL AS {kind}) {name}" for name, kind in types.items()}
    rows = [
        spark.sql(f"SELECT {', '.join((nulls | {name: f'{value} {name}'}).values())}")
        for name, (_, value) in VALUES.items()
    ]
    kept = []
    for row in rows if escape is None else [reduce(DataFrame.union, rows)]:
        try:
            acid.insert("d.t", row)
        except (ColumnError, UnsupportedTableError):
            assert escape is None or delimiter in "N\\"
        else:
            kept += row.collect()
    if delimiter in "N\\":
        assert kept == []
        with pytest.raises(UnsupportedTableError, match="its lines cannot be told"):
            acid.insert("d.t", rows[0])
    else:
        assert sorted(map(str, acid.table("d.t").collect())) == sorted(map(str, kept))
        assert escape is None or len(kept) == len(VALUES)


@pytest.mark.parametrize("stored_as", ["TEXTFILE", "JSONFILE"])
def test_long_texts_come_back(acid: AcidSession, spark: SparkSession, stored_as: Any) -> None:
    """JSON's own limit is 20 million characters, and a Java regex may need a frame of its stack for each of them."""
    words = {"field.delim": ",", "escape.delim": "\\"} if stored_as == "TEXTFILE" else {}
    acid.create_table("d.t", {"id": "int", "s": "string"}, stored_as=stored_as, properties=INSERT_ONLY | words)
    given = spark.sql("SELECT 1 AS id, repeat('ab,', 7000001) AS s UNION ALL SELECT 2, '\u2028,\u0085'")
    assert acid.insert("d.t", given) == 2
    measured = ("id", "length(s)", "crc32(s)")
    found = acid.table("d.t").selectExpr(*measured).collect()
    assert sorted(found) == sorted(given.selectExpr(*measured).collect())


def test_a_column_of_json_is_read_whatever_spark_calls_broken_lines(acid: AcidSession, spark: SparkSession) -> None:
    row = spark.sql("SELECT 1 AS id, 'x' AS _corrupt_record, 'y' AS raw")
    acid.create_table("d.t", dict(row.dtypes), stored_as="JSONFILE", properties=INSERT_ONLY)
    acid.insert("d.t", row)
    assert read(acid) == [(1, "x", "y")]
    with under(spark, {"spark.sql.columnNameOfCorruptRecord": "raw"}):
        assert read(acid) == [(1, "x", "y")]


def test_text_does_not_begin_with_what_readers_leave_out(acid: AcidSession, spark: SparkSession) -> None:
    """At the beginning of a file U+FEFF is no part of its first line, to Hive either."""
    acid.create_table("d.t", {"s": "string", "u": "string"}, stored_as="TEXTFILE", properties=INSERT_ONLY)
    with pytest.raises(ColumnError, match=r"d\.t\.s begins with U\+FEFF"):
        acid.insert("d.t", spark.sql("SELECT '\ufeffa' AS s, 'b' AS u"))
    acid.insert("d.t", spark.sql("SELECT 'a\ufeff' AS s, '\ufeffb' AS u"))
    assert read(acid) == [("a\ufeff", "\ufeffb")]


def test_rows_without_ids_are_not_changed(acid: AcidSession, rows: Any) -> None:
    create(acid, "orc")
    acid.insert("d.t", rows)
    for change in (
        lambda: acid.update("d.t", {"id": "1"}),
        lambda: acid.delete("d.t"),
        lambda: acid.merge("d.t", rows, "t.id = s.id").whenNotMatchedInsertAll().execute(),
    ):
        with pytest.raises(TableNotAcidError, match="insert-only"):
            change()
    assert len(read(acid)) == 3


def test_an_aborted_write_leaves_nothing(acid: AcidSession, rows: Any) -> None:
    create(acid, "parquet")
    with pytest.raises(KeyError), acid.transaction():
        acid.overwrite("d.t", rows)
        assert len(read(acid)) == 3
        raise KeyError
    assert read(acid) == []
    assert list(location_of(acid, "d.t").iterdir()) == []


def test_a_flat_table_of_any_format_becomes_insert_only(acid: AcidSession, rows: Any) -> None:
    create(acid, "parquet", insert_only=False)
    location = location_of(acid, "d.t")
    rows.coalesce(1).write.mode("append").parquet(str(location))
    expected = sorted(map(tuple, rows.collect()), key=str)
    with pytest.raises(UnsupportedTableError, match="insert_only=True"):
        acid.convert_table("d.t")
    with pytest.raises(TransactionClosedError, match="within a longer transaction"), acid.transaction():
        acid.convert_table("d.t", insert_only=True)
    assert acid.convert_table("d.t", insert_only=True) == []
    assert read(acid) == expected
    assert list(location.glob("*.parquet")) == []
    acid.insert("d.t", rows)
    assert acid.convert_table("d.t", insert_only=True) == []
    assert len(read(acid)) == 6


NESTED = {
    "at": "timestamp", "day": "date", "x": "double", "d": "decimal(38,18)", "b": "binary",
    "by_number": "map<int,string>", "by_day": "map<date,timestamp>",
    "all": "array<struct<at:timestamp,day:date,by_name:map<string,timestamp>>>",
}  # fmt: skip
MOMENTS = (
    "0001-01-01 00:00:00.000001", "1582-10-04 23:59:59.999999", "1582-10-15 00:00:00", "1899-12-31 23:59:58.9",
    "1970-01-01 00:00:00.123456", "2020-02-29 10:00:00.5", "9999-12-31 23:59:59.999999",
)  # fmt: skip


@pytest.mark.parametrize(
    "settings", [{}, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}, {"spark.sql.ansi.enabled": "false"}]
)
@pytest.mark.parametrize("stored_as", ["JSONFILE", "PARQUET", "ORC"])
def test_values_of_all_types_come_back(acid: AcidSession, spark: SparkSession, stored_as: Any, settings: Any) -> None:
    """JSON lines had times by the millisecond only, and maps by others than texts could not be read."""
    acid.create_table("d.t", {"id": "int", **NESTED}, properties=INSERT_ONLY, stored_as=stored_as)
    moments = " UNION ALL ".join(f"SELECT timestamp'{moment}' at" for moment in MOMENTS)
    frame = spark.sql(
        f"SELECT int(row_number() OVER (ORDER BY at)) id, at, date(at) day, 0.1D x, "
        f"cast(-1.000000000000000001 AS decimal(38,18)) d, X'00FF' b, map(-1, 'a', 2, '') by_number, "
        f"map(date(at), at) by_day, array(null, struct(at, date(at) day, map('', at, 'k', null) by_name)) all "
        f"FROM ({moments}) UNION ALL SELECT 0, null, null, null, null, null, null, map(date'2020-01-01', null), array()"
    ).localCheckpoint()
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert acid.insert("d.t", frame) == len(MOMENTS) + 1
        shown = [name if "timestamp" not in kind else f"to_json({name}) {name}" for name, kind in NESTED.items()]
        del shown[0]
        columns = ["id", "unix_micros(at) at", *shown]
        found, expected = (sorted(map(str, of.selectExpr(*columns).collect())) for of in (acid.table("d.t"), frame))
        assert found == expected
        times = ["id", "unix_micros(element_at(by_day, day)) a", "unix_micros(get(all, 1).at) b"]
        assert sorted(acid.table("d.t").selectExpr(*times).collect()) == sorted(frame.selectExpr(*times).collect())
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.mark.parametrize("stored_as", ["JSONFILE", "TEXTFILE"])
def test_a_time_whose_text_is_another_one_is_refused(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, stored_as: Any
) -> None:
    """The hour that clocks go back to is there twice, and its text once."""
    acid.create_table("d.t", {"at": "timestamp"}, properties=INSERT_ONLY, stored_as=stored_as)
    monkeypatch.setattr("hive_acid.spark.values.timezone.ZoneGuard.check", lambda *_: None)
    twice = spark.sql("SELECT timestamp_micros(1699162200000000 + id * 3600000000) at FROM range(2)")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert acid.insert("d.t", twice.limit(1)) == 1
        with pytest.raises(ColumnError, match="clocks go back"):
            acid.insert("d.t", twice)
        assert acid.table("d.t").selectExpr("unix_micros(at)").collect() == [(1699162200000000,)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_map_whose_keys_have_no_text_is_refused_in_json(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"m": "map<binary,int>"}, properties=INSERT_ONLY, stored_as="JSONFILE")
    with pytest.raises(UnsupportedTableError, match="a key of a map in JSON is a text"):
        acid.insert("d.t", spark.sql("SELECT map(X'00', 1) m"))
