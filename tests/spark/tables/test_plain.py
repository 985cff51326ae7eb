"""Plain tables: a session without transactions reads and fills them, others read them, in transactions as well."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import (
    ColumnError,
    NoSuchObjectError,
    TableNotAcidError,
    TransactionClosedError,
    TransactionsOffError,
    UnsupportedTableError,
)
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs.frame import AcidTable
from hive_acid.wire import ttypes
from tests.values.sessions.under import under

PLAIN = {"transactional": "false"}
DUMMY = {"hive.txn.manager": "DummyTxnManager"}


@pytest.fixture
def dummy(acid: AcidSession) -> AcidSession:
    """A session without transactions beside `acid`, on the same metastore."""
    return hive_acid.spark.session(acid.spark, acid.connection, settings=DUMMY)


def rows(frame: Any) -> Any:
    return sorted(map(tuple, frame.collect()), key=str)


def test_acid_tables_are_refused_and_left_alone(acid: AcidSession, dummy: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    frame = acid.spark.range(3).selectExpr("int(id) id")
    acid.insert("d.t", frame)
    for refused in (
        lambda: dummy.table("d.t"),
        lambda: dummy.insert("d.t", frame),
        lambda: dummy.overwrite("d.t", frame, where="id = 0"),
        lambda: dummy.update("d.t", {"id": "0"}),
        lambda: dummy.delete("d.t"),
        lambda: dummy.merge("d.t", frame, "t.id = s.id").whenMatchedDelete().execute(),
        lambda: dummy.create_table("d.u", {"id": "int"}),
    ):
        with pytest.raises(TransactionsOffError, match=r"ACID table.*DummyTxnManager.*'hive\.txn\.manager': 'DbTxn"):
            refused()
    for block in (dummy.transaction, dummy.snapshot):
        with pytest.raises(TransactionsOffError, match="DbTxnManager"), block():
            pass
    assert rows(acid.table("d.t")) == [(0,), (1,), (2,)]
    acid.create_table("d.io", {"id": "int"}, properties={"transactional_properties": "insert_only"})
    with pytest.raises(TransactionsOffError):
        dummy.table("d.io")


def test_a_plain_table_is_written_and_read(dummy: AcidSession, spark: SparkSession) -> None:
    dummy.create_table("d.p", {"id": "int", "name": "varchar(3)"}, properties=PLAIN)
    table = dummy.table("d.p")
    assert isinstance(table, AcidTable)
    assert table.insert(spark.createDataFrame([("ab", 1), ("c", 2)], "NAME string, id long")) == 2
    assert dummy.insert("d.p", spark.createDataFrame([(3, None)], "id int, name string")) == 1
    assert rows(dummy.table("d.p")) == [(1, "ab"), (2, "c"), (3, None)]
    with pytest.raises(ColumnError, match="unknown: x"):
        dummy.insert("d.p", spark.createDataFrame([(1, "a", 1)], "id int, name string, x int"))
    with pytest.raises(TableNotAcidError, match="not an ACID table"):
        dummy.delete("d.p")
    with pytest.raises(TableNotAcidError, match="ROW__ID"):
        dummy.table("d.p", row_id=True)
    assert "open" not in str(dummy.connection.call("get_open_txns").open_txns), "no transaction was opened"


@pytest.mark.parametrize("form", ["ORC", "PARQUET"])
def test_they_are_read_beside_transactional_ones(acid: AcidSession, spark: SparkSession, form: str) -> None:
    """By all words, in blocks, too: a plain table has no snapshot, and no write to it would be undone."""
    acid.create_table(
        "d.p", {"id": "int", "n": "int"}, partitioned_by={"k": "string"}, properties=PLAIN, stored_as=form
    )
    acid.sql("CREATE TABLE d.t (id INT, n INT)")
    dummy = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    dummy.insert("d.p", spark.createDataFrame([(1, 10, "a"), (2, 20, "b")], "id int, n int, k string"))
    assert rows(acid.table("d.p")) == rows(acid.sql("SELECT * FROM d.p")) == [(1, 10, "a"), (2, 20, "b")]
    assert rows(acid.table("d.p", where="k = 'b'")) == rows(acid.table("d.p").where("n > 15")) == [(2, 20, "b")]
    acid.sql("INSERT INTO d.t SELECT id, n FROM d.p")
    acid.sql("CREATE VIEW d.v AS SELECT p.id, p.n + t.n AS n FROM d.p JOIN d.t USING (id)")
    with acid.transaction():
        before = acid.table("d.p")
        assert rows(acid.sql("SELECT * FROM d.v")) == [(1, 20), (2, 40)]
        dummy.insert("d.p", spark.createDataFrame([(3, 30, "a")], "id int, n int, k string"))
        source = acid.table("d.p").select("id", "n")
        counts = acid.merge("d.t", source, "t.id = s.id").whenNotMatchedInsertAll().execute()
        assert counts == (1, 0, 0)
        acid.sql("UPDATE d.t SET n = -n WHERE id IN (SELECT id FROM d.p WHERE k = 'a')")
        assert rows(before)[:2] == [(1, 10, "a"), (2, 20, "b")]
    assert rows(acid.table("d.t")) == [(1, -10), (2, 20), (3, -30)]
    with acid.snapshot(["d.p", "d.t"]):
        assert acid.table("d.p").join(acid.table("d.t"), "id").count() == 3
    acid.sql("DROP TABLE d.p")  # no frame of it holds anything
    with pytest.raises(NoSuchObjectError):
        acid.table("d.p")


def test_they_are_not_written_in_transactions(acid: AcidSession, spark: SparkSession) -> None:
    """Nothing would undo it with its transaction, nor hide it until then."""
    acid.create_table("d.p", {"id": "int"}, properties=PLAIN)
    frame = spark.createDataFrame([(1,)], "id int")
    changes: list[Callable[[], Any]] = [
        lambda: acid.update("d.p", {"id": "2"}),
        lambda: acid.sql("DELETE FROM d.p"),
        lambda: acid.merge("d.p", frame, "t.id = s.id").whenNotMatchedInsertAll().execute(),
        lambda: acid.sql("INSERT INTO d.p REPLACE USING (id) SELECT 1"),
    ]
    for refused in changes:
        with pytest.raises(TableNotAcidError, match=r"d\.p is not an ACID table.*INSERT.*convert_table"):
            refused()
        with pytest.raises(TableNotAcidError, match=r"d\.p is not an ACID table"), acid.transaction():
            refused()
    writes: list[Callable[[], Any]] = [
        lambda: acid.insert("d.p", frame),
        lambda: acid.table("d.p").insert(frame),
        lambda: acid.sql("INSERT INTO d.p VALUES (1)"),
        lambda: acid.sql("FROM (SELECT 1 AS id) s INSERT INTO d.p SELECT id"),
        lambda: acid.overwrite("d.p", frame),
        lambda: acid.overwrite("d.p", frame, where="true"),
        lambda: acid.load_data("d.p", acid.connection.table("d", "p").location),
    ]
    for write in writes:
        with (
            pytest.raises(TransactionClosedError, match=r"d\.p is a plain table.*before the block"),
            acid.transaction(),
        ):
            write()
        acid.sql("BEGIN")
        with pytest.raises(TransactionClosedError, match=r"d\.p is a plain table.*before the block"):
            write()
        acid.sql("ROLLBACK")
    assert rows(acid.table("d.p")) == []


def test_partitions_are_registered_and_read(dummy: AcidSession, spark: SparkSession) -> None:
    dummy.create_table("d.q", {"id": "int"}, partitioned_by={"day": "date", "k": "string"}, properties=PLAIN)
    assert rows(dummy.table("d.q")) == []
    frame = spark.createDataFrame(
        [(1, "2024-01-01", "a/b"), (2, "2024-01-01", None), (3, "2024-01-02", "50%")], "id int, day string, k string"
    )
    assert dummy.insert("d.q", frame) == 3
    assert dummy.table("d.q").partitions() == [
        "day=2024-01-01/k=__HIVE_DEFAULT_PARTITION__",
        "day=2024-01-01/k=a%2Fb",
        "day=2024-01-02/k=50%25",
    ]
    assert rows(dummy.table("d.q").selectExpr("id", "string(day)", "k")) == [
        (1, "2024-01-01", "a/b"),
        (2, "2024-01-01", None),
        (3, "2024-01-02", "50%"),
    ]
    spark.range(1).selectExpr("9 id").write.orc(dummy.connection.table("d", "q").location + "/day=2024-01-03/k=x")
    assert dummy.table("d.q").count() == 3, "an unregistered directory is no partition"
    assert dummy.insert("d.q", frame.where("id = 1")) == 1
    assert dummy.table("d.q").where("k = 'a/b'").count() == 2


def test_parquet_is_read_and_what_is_not_known_is_not(dummy: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    spark.range(2).selectExpr("id").write.parquet(str(tmp_path / "files"))
    formats = {"pq": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat", "tx": "TextInputFormat"}
    for name, input_format in formats.items():
        table = ttypes.Table(
            tableName=name,
            dbName="d",
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
            partitionKeys=[],
            sd=ttypes.StorageDescriptor(
                cols=[ttypes.FieldSchema(name="id", type="bigint")],
                location=f"file:{tmp_path}/files",
                inputFormat=input_format,
                serdeInfo=ttypes.SerDeInfo(parameters={}),
            ),
        )
        dummy.connection.call("create_table", table)
    assert rows(dummy.table("d.pq")) == [(0,), (1,)]
    with pytest.raises(UnsupportedTableError, match="TextInputFormat with no SerDe, which Spark does not read"):
        dummy.table("d.tx")


FORMS = {
    "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '~' STORED AS TEXTFILE": "csv",
    "STORED AS TEXTFILE": "text",
    "STORED AS JSONFILE": "json",
}
"""Clauses for storage, and what files of a format are called."""


@pytest.mark.parametrize("clauses", FORMS)
@pytest.mark.parametrize("keys", ["", "PARTITIONED BY (k string)"])
def test_text_is_read_as_that_of_insert_only_tables(acid: AcidSession, tmp_path: Path, clauses: str, keys: str) -> None:
    """The same files, in the directory of a plain table."""
    columns = "id int, name string, c char(4), n decimal(5,2), at timestamp" + ("" if keys else ", k string")
    only = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
    acid.sql(f"CREATE TABLE d.m ({columns}) {keys} {clauses} {only}")
    acid.sql("""INSERT INTO d.m VALUES (1, 'a,b~c', 'ab', 1.5, TIMESTAMP '2026-11-28 23:16:17.5', 'x y/z'),
        (2, NULL, NULL, NULL, NULL, NULL), (-3, '', 'abcd', -99.25, TIMESTAMP '1969-01-01 00:00:00', 'p')""")
    table = acid.connection.table("d", "m")
    for delta in Path(table.location.removeprefix("file:")).glob("**/delta_*"):
        place = tmp_path / "plain" / (delta.parent.name if keys else "")
        place.mkdir(parents=True, exist_ok=True)
        (place / "_SUCCESS").touch()
        for number, file in enumerate(delta.iterdir()):
            if not file.name.startswith(("_", ".")):
                (place / f"{number}_0").write_bytes(file.read_bytes())
    acid.sql(f"CREATE EXTERNAL TABLE d.p ({columns}) {keys} {clauses} LOCATION '{tmp_path}/plain'")
    if keys:
        assert rows(acid.sql("SELECT * FROM d.p")) == []
        acid.sql("MSCK REPAIR TABLE d.p")
    assert rows(acid.sql("SELECT * FROM d.p")) == rows(acid.table("d.m")) != []
    assert rows(acid.table("d.p", where="c = 'ab'").select("k", "n")) == rows(
        acid.table("d.m", where="id = 1").select("k", "n")
    )
    acid.sql("CREATE TABLE d.t AS SELECT * FROM d.p WHERE id < 2")
    assert rows(acid.table("d.t")) == rows(acid.table("d.m").where("id < 2"))
    acid.sql("INSERT INTO d.p SELECT * FROM d.m")
    assert rows(acid.table("d.p")) == rows(acid.table("d.m").unionAll(acid.table("d.m")))
    (next((tmp_path / "plain").glob("*/")) if keys else tmp_path / "plain").joinpath("deep").mkdir()
    with pytest.raises(UnsupportedTableError, match=r"d\.p has the directory deep/ in"):
        acid.sql("SELECT * FROM d.p")


@pytest.mark.parametrize("clauses", [*FORMS, "STORED AS ORC", "STORED AS PARQUET"])
@pytest.mark.parametrize("keys", [[], ["a key", "k2"]])
def test_all_formats_are_written(acid: AcidSession, dummy: AcidSession, clauses: str, keys: list[str]) -> None:
    """By INSERT and with the table: they have the rows of a full-ACID table that is given the same."""
    acid.sql("CREATE TABLE d.t (id int, name string, c char(4), n decimal(5,2), at timestamp, `a key` date, k2 string)")
    acid.sql("""INSERT INTO d.t VALUES
        (1, 'a,b~c', 'ab', 1.5, TIMESTAMP '2026-11-28 23:16:17.5', DATE '2026-11-28', 'x y/z'),
        (2, NULL, NULL, NULL, NULL, NULL, NULL),
        (-3, '', 'abcd', -99.25, TIMESTAMP '1969-01-01 00:00:00', DATE '1969-12-31', 'ü\\\\"')""")
    meant = acid.table("d.t")
    by = f"PARTITIONED BY ({', '.join(f'`{key}`' for key in keys)})" if keys else ""
    acid.sql(f"CREATE TABLE d.made {by} {clauses} TBLPROPERTIES ('transactional'='false') AS SELECT * FROM d.t")
    assert rows(acid.table("d.made")) == rows(meant) != []
    acid.sql("CREATE TABLE d.p LIKE d.made")
    assert dummy.insert("d.p", meant.where("id < 2")) == 2
    assert dummy.insert("d.p", meant.where("id = 2")) == 1
    assert rows(acid.table("d.p")) == rows(meant)


def test_files_of_another_format_are_not_taken_for_text(acid: AcidSession, dummy: AcidSession) -> None:
    """By their SerDe sequence files are lines of text, which they are not."""
    acid.sql("CREATE TABLE d.p (id string) STORED AS SEQUENCEFILE TBLPROPERTIES ('transactional'='false')")
    place = Path(acid.connection.table("d", "p").location.removeprefix("file:"))
    (place / "part-0").write_bytes(b"SEQ\x06\n1\n")
    reads: list[Any] = [lambda: acid.table("d.p").collect(), lambda: acid.sql("SELECT * FROM d.p").collect()]
    for read in (*reads, lambda: dummy.insert("d.p", acid.spark.sql("SELECT '1' AS id"))):
        with pytest.raises(UnsupportedTableError, match="SequenceFileInputFormat"):
            read()


def test_text_with_header_lines_is_not_written(dummy: AcidSession, spark: SparkSession) -> None:
    header = {"skip.header.line.count": "1"}
    dummy.create_table("d.p", {"id": "int"}, properties={**PLAIN, **header}, stored_as="TEXTFILE")
    with pytest.raises(UnsupportedTableError, match=r"skip\.header\.line\.count"):
        dummy.insert("d.p", spark.createDataFrame([(1,)], "id int"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hive.support.concurrency": "false", "hive.txn.manager": "DbTxnManager"}, "needs"),
        ({"hive.txn.manager": "OtherTxnManager"}, "DummyTxnManager"),
        ({"hive.txn.timeout": "300s"}, "unknown setting"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    acid: AcidSession, settings: dict[str, str], words: str, metastore: Callable[..., str]
) -> None:
    with pytest.raises(ValueError, match=words):
        hive_acid.spark.session(acid.spark, acid.connection, settings=settings)


def test_with_transactions_by_default(acid: AcidSession) -> None:
    settings = {
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    }
    other = hive_acid.spark.session(acid.spark, acid.connection, settings=settings)
    acid.create_table("d.t", {"id": "int"})
    assert other.table("d.t").count() == acid.table("d.t").count() == 0
    off = hive_acid.spark.session(acid.spark, acid.connection, settings={"hive.support.concurrency": "false"})
    with pytest.raises(TransactionsOffError):
        off.table("d.t")


@pytest.mark.parametrize("written", ["7L ID, named_struct('a', 7) s", "7L id, named_struct('A', 7) s"])
def test_capitals_in_files_of_others(dummy: AcidSession, spark: SparkSession, written: str) -> None:
    """In a session that minds case Spark makes nulls of them."""
    dummy.create_table("d.p", {"id": "bigint", "s": "struct<a:int>"}, properties=PLAIN)
    dummy.insert("d.p", spark.sql("SELECT 9L id, named_struct('a', 9) s"))
    with under(spark, {"spark.sql.caseSensitive": "true"}):
        assert [row.id for row in dummy.table("d.p").collect()] == [9]
        spark.sql(f"SELECT {written}").write.mode("append").orc(dummy.connection.table("d", "p").location)
        with pytest.raises(UnsupportedTableError, match="caseSensitive"):
            dummy.table("d.p").collect()
    assert sorted((row.id, row.s.a) for row in dummy.table("d.p").collect()) == [(7, 7), (9, 9)]


@pytest.mark.parametrize("keys", [{}, {"p": "string"}])
def test_signs_in_a_plain_table_s_place_are_no_patterns(
    dummy: AcidSession, spark: SparkSession, tmp_path: Path, keys: dict[str, str]
) -> None:
    """Spark's reader would take the place for a pattern, and others that match it for the table's."""
    one, two = (spark.sql(f"SELECT {at} AS id{', 1 AS p' if keys else ''}") for at in (1, 2))
    for number, (place, matching) in enumerate({"a[b]": "ab", "a{b,c}": "ac", "q*": "qq", "a?b": "axb"}.items()):
        for name, at in (("odd", place), ("like", matching)):
            where = str(tmp_path / "warehouse" / "places" / at)
            dummy.create_table(
                f"d.{name}{number}", {"id": "int"}, partitioned_by=keys, properties=PLAIN, location=where
            )
        assert dummy.insert(f"d.odd{number}", one) == dummy.insert(f"d.like{number}", two) == 1
        assert [row.id for row in dummy.table(f"d.odd{number}").collect()] == [1], place
        assert [row.id for row in dummy.table(f"d.like{number}").collect()] == [2]


@pytest.mark.parametrize("form", ["ORC", "PARQUET", "TEXTFILE"])
def test_partition_keys_of_bytes_are_the_bytes(dummy: AcidSession, spark: SparkSession, form: str) -> None:
    """Spark itself takes what is escaped in their names for the value."""
    keys = {"v": "binary", "n": "int"}
    dummy.create_table("d.t", {"i": "int"}, partitioned_by=keys, stored_as=form, properties={"transactional": "false"})
    values = [b"\n", b"\x7f", b"'\\", b"a%0Ab", b" ", "ü=".encode(), b"a", None]
    rows = [(number, value, number % 2) for number, value in enumerate(values)]
    dummy.insert("d.t", spark.createDataFrame(rows, "i int, v binary, n int"))
    found = dummy.table("d.t")
    assert sorted((row.i, row.v and bytes(row.v), row.n) for row in found.collect()) == rows
    assert [row.i for row in found.where("v = X'0a' OR v = X'7f' AND n = 1").orderBy("i").collect()] == [0, 1]
    assert [row.i for row in dummy.table("d.t", where="v IS NULL").collect()] == [7]
