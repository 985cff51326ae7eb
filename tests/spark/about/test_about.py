"""The tables about a table against a plain walk of its directory, its rows and its partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.errors import NoSuchObjectError, SqlError, TableNotAcidError
from hive_acid.format.names import VERSION_MARKER
from hive_acid.spark import AcidSession
from tests.served import served
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table
from tests.spark.house import House
from tests.values.rows.tables import DUMMY

APPEND, DELETE, OVERWRITE, REPLACE = "append", "delete", "overwrite", "replace"
LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"


@pytest.fixture
def written(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """Tables ``d.t``, unpartitioned, and ``d.p``: four writes each, of which the last but one deletes rows."""
    for name, keys in (("d.t", []), ("d.p", ["k"])):
        acid.create_table(name, {"id": "int", "k": "string"}, partitioned_by=keys)
        acid.insert(name, spark.sql("SELECT int(id) id, concat('k', id % 3) k FROM range(10)"))
        acid.update(name, {"id": "id + 100"}, "id < 2")
        acid.delete(name, "id = 5")
        acid.insert(name, spark.sql("SELECT 50 id, 'k 5' k"))
    return acid


def walked(acid: AcidSession, name: str) -> dict[str, int]:
    """The files below a table's directory that a reader does not pass by, with their sizes."""
    found: dict[str, int] = {}
    for directory, below, names in os.walk(location_of(acid, name)):
        below[:] = [one for one in below if one[0] not in "._"]
        found |= {f"{directory}/{one}": Path(directory, one).stat().st_size for one in names if one[0] not in "._"}
    assert VERSION_MARKER[0] == "_"
    return found


def listed(frame: DataFrame) -> dict[str, Any]:
    return {row.path.removeprefix("file:"): row.bytes for row in frame.collect()}


@pytest.mark.parametrize("name", ["d.t", "d.p"])
def test_files_are_those_of_the_directory(written: AcidSession, spark: SparkSession, name: str) -> None:
    files = written.table(f"{name}.files")
    assert listed(files) == walked(written, name)
    by_kind = {kind: sum(row.rows for row in files.where(f"kind = '{kind}'").collect()) for kind in ("delta", "base")}
    assert by_kind == {"delta": 13, "base": 0}
    deletes = written.table(f"{name}.deletes").collect()
    assert sum(row.rows for row in deletes) == 3
    assert {row.kind for row in deletes} == {"delete_delta"}
    assert {(row.min_write_id, row.max_write_id) for row in deletes} == {(2, 2), (3, 3)}
    compact_table(spark, written, name, "major")
    after = written.table(f"{name}.files")
    assert listed(after).items() <= walked(written, name).items()
    assert {row.min_write_id for row in after.where("kind = 'base'").collect()} == {None}
    assert sum(row.rows for row in after.collect()) == written.table(name).count() == 10
    assert written.table(f"{name}.deletes").collect() == []
    assert {row.bucket for row in after.collect()} <= {0, 1, 2, 3}


def test_partitions_are_those_that_are_shown_and_have_the_rows_that_are_counted(
    written: AcidSession, spark: SparkSession
) -> None:
    written.add_partitions("d.p", {"k=empty": None})
    found = {row.partition: row for row in written.table("d.p.partitions").collect()}
    assert sorted(found) == [row.partition for row in written.sql("SHOW PARTITIONS d.p").collect()]
    counted = {f"k={row.k}": row["count"] for row in written.table("d.p").groupBy("k").count().collect()}
    assert {of: row.rows - row.deletes for of, row in found.items()} == {"k=empty": 0, **counted}
    assert sum(row.bytes for row in found.values()) == sum(walked(written, "d.p").values())
    assert sum(row.files + row.delete_files for row in found.values()) == len(walked(written, "d.p"))
    assert all(row.location.endswith(f"/{of}") for of, row in found.items())
    (whole,) = written.table("d.t.partitions").collect()
    assert (whole.partition, whole.rows, whole.deletes) == (None, 13, 3)


@pytest.mark.parametrize("name", ["d.t", "d.p"])
def test_history_has_each_write_and_what_is_known_of_it(written: AcidSession, spark: SparkSession, name: str) -> None:
    began = datetime.now(tz=UTC) - timedelta(minutes=5)
    assert [tuple(row[:5]) for row in written.history(name).collect()] == [
        (4, None, "committed", APPEND, None),
        (3, None, "committed", DELETE, None),
        (2, None, "committed", OVERWRITE, None),
        (1, None, "committed", APPEND, None),
    ]
    rows = written.history(name).collect()
    assert [(row.rows_added, row.rows_deleted) for row in rows] == [(1, 0), (0, 1), (2, 2), (10, 0)]
    assert sum(row.bytes for row in rows) == sum(walked(written, name).values())
    assert sum(row.files for row in rows) == len(walked(written, name))
    assert all(row.committed_at is None and row.written_at.astimezone(UTC) > began for row in rows)
    if name == "d.p":
        assert [row.partitions for row in rows] == [["k=k 5"], ["k=k2"], ["k=k0", "k=k1"], ["k=k0", "k=k1", "k=k2"]]
    with pytest.raises(ZeroDivisionError), written.transaction():
        written.insert(name, spark.sql("SELECT 7 id, 'k0' k"))
        raise ZeroDivisionError
    assert tuple(written.history(name).collect()[0])[:4] == (5, None, "aborted", None)
    compact_table(spark, written, name, "major")
    merged = written.history(name).where(f"operation = '{REPLACE}'").collect()
    assert sum(row.rows_added for row in merged) == written.table(name).count() - (name == "d.p")
    assert all(row.txn_id and row.rows_deleted is None and row.committed_at is None for row in merged)
    written.truncate(name)
    emptied = written.history(name).collect()[0]
    assert (emptied.operation, emptied.rows_added, emptied.rows_deleted) == (OVERWRITE, 0, 0)
    written.overwrite(name, spark.sql("SELECT 1 id, 'k0' k"))
    assert written.history(name).collect()[0].operation == OVERWRITE


def test_an_open_write_is_open_and_a_snapshot_sees_no_later_one(written: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark, written.connection) as other:
        with written.snapshot():
            assert written.history("d.t").count() == 4
            with other.transaction():
                other.insert("d.t", spark.sql("SELECT 8 id, 'x' k"))
                _run_apart(lambda: _check_open(other))
            assert written.history("d.t").count() == written.table("d.t.snapshots").count() == 4
            assert written.table("d.t.files").count() == len(walked(written, "d.t")) - 1
        assert written.history("d.t").count() == 5


def _check_open(acid: AcidSession) -> None:
    newest = acid.history("d.t").collect()[0]
    assert (newest.write_id, newest.state) == (5, "open")


def _run_apart(check: Callable[[], None]) -> None:
    """On a thread of its own, which is in no block."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(check).result()


def test_what_metastores_record_of_transactions_is_told(metastore: Callable[..., str], spark: SparkSession) -> None:
    uri = metastore(**{"metastore.transactional.event.listeners": LISTENER})
    with hive_acid.spark.session(spark, uri) as acid:
        acid.create_database("d")
        for _ in range(2):  # what was of the dropped one is not of this one
            acid.drop_table("d.t", if_exists=True)
            acid.create_table("d.t", {"id": "int"})
            with acid.transaction() as transaction:
                acid.insert("d.t", spark.sql("SELECT 1 id"))
        (row,) = acid.history("d.t").collect()
        assert (row.write_id, row.txn_id) == (1, transaction.id)
        assert abs(row.committed_at.astimezone(UTC) - datetime.now(tz=UTC)) < timedelta(minutes=5)
        acid.rename_table("d.t", "d.u")
        acid.create_table("d.t", {"id": "int"})
        acid.insert("d.t", spark.sql("SELECT 1 id"))
        (new,) = acid.history("d.t").collect()
        assert new.txn_id > transaction.id


def test_compactions_are_told_of_by_the_queue(
    spark: SparkSession, postgres_url: Any, template: Any, tmp_path: Path
) -> None:
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(spark, server.uri) as acid,
    ):
        acid.create_database("d")
        acid.create_table("d.t", {"id": "int"})
        for _ in range(2):
            acid.insert("d.t", spark.sql("SELECT 1 id"))
        house = House(server.db, tmp_path / "warehouse", spark)
        house.compact("d.t", "minor", [None])
        assert acid.history("d.t").count() == 3
        house.clean()
        newest, *others = acid.history("d.t").collect()
        assert (newest.write_id, newest.operation, newest.rows_added) == (2, REPLACE, 2)
        assert newest.txn_id
        assert abs(newest.committed_at.astimezone(UTC) - datetime.now(tz=UTC)) < timedelta(minutes=5)
        assert others == [], "of what was merged and removed nothing is known"
        acid.insert("d.t", spark.sql("SELECT 1 id"))
        house.compact("d.t", "major", [None])
        house.clean()
        major, minor = acid.history("d.t").collect()
        assert (major.write_id, major.rows_added, minor.write_id, minor.rows_added) == (3, 3, 2, None)
        assert minor.txn_id == newest.txn_id


def test_snapshots_have_icebergs_words(written: AcidSession) -> None:
    rows = written.sql("SELECT snapshot_id, operation, summary['added-records'] FROM d.p.snapshots").collect()
    assert [tuple(row) for row in rows] == [(1, APPEND, "10"), (2, OVERWRITE, "2"), (3, DELETE, "0"), (4, APPEND, "1")]


def test_formats_without_tails_have_no_rows(acid: AcidSession, spark: SparkSession) -> None:
    for stored_as in ("PARQUET", "ORC"):
        name = f"d.{stored_as.lower()}"
        properties = {"transactional_properties": "insert_only"}
        acid.create_table(name, {"id": "int"}, properties=properties, stored_as=stored_as)
        acid.insert(name, spark.sql("SELECT 1 id UNION ALL SELECT 2"))
        known = sum(row.rows for row in acid.table(f"{name}.files").collect()) if stored_as == "ORC" else None
        assert known == (2 if stored_as == "ORC" else None)
        assert [row.rows_added for row in acid.history(name).collect()] == [known]
        assert listed(acid.table(f"{name}.files")) == walked(acid, name)


# --- names ---------------------------------------------------------------------------------------


def test_all_ways_tell_the_same(written: AcidSession, spark: SparkSession, metastore: Any) -> None:
    history = written.history("d.p").collect()
    sql = written.sql
    assert sql("DESCRIBE HISTORY d.p").collect() == sql("SELECT * FROM D.P.History").collect() == history
    assert written.table("d.p.history").collect() == history
    assert sql("DESC HISTORY d.p LIMIT 1").collect() == history[:1]
    assert written.table("d.p.history", where="write_id = 2").collect() == history[2:3]
    assert sql("SELECT h.write_id FROM d.p.history h WHERE operation = 'delete'").collect() == [(3,)]
    assert sql("SELECT d.p.history.write_id FROM d.p.history WHERE write_id = 1").collect() == [(1,)]
    joined = (
        "SELECT count(*) FROM d.p.files f JOIN d.p.history h ON f.max_write_id = h.write_id JOIN d.p r ON r.id = 50"
    )
    assert sql(joined).collect() == [(len(walked(written, "d.p")),)]
    sql("USE d")
    try:
        assert sql("SELECT * FROM p.history").collect() == history
    finally:
        sql("USE default")
    assert [row.col_name for row in sql("DESCRIBE d.p.files").collect()][:3] == ["kind", "partition", "min_write_id"]
    assert sql("SHOW COLUMNS FROM d.p.deletes").count() == 9


def test_spark_s_own_words_tell_them_too(written: AcidSession, spark: SparkSession) -> None:
    history = written.history("d.p").collect()
    joined = hive_acid.spark.enable(spark, written.connection)
    try:
        for frame in (
            spark.sql("SELECT * FROM d.p.history"),
            spark.sql("DESCRIBE HISTORY d.p"),
            spark.table("d.p.history"),
            spark.read.table("spark_catalog.d.p.history"),
        ):
            assert frame.collect() == history
        with pytest.raises(TableNotAcidError, match=r"tells about d\.p"):
            spark.table("d.p.history").write.mode("append").saveAsTable("d.p.history")
        with pytest.raises(SqlError, match="ALTER TABLE t COMPACT"):
            spark.sql("OPTIMIZE d.p")
    finally:
        joined.disable()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO d.t.history SELECT 1",
        "UPDATE d.t.files SET rows = 1",
        "DELETE FROM d.t.partitions",
        "MERGE INTO d.t.deletes USING d.t s ON true WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE d.t.history",
        "DROP TABLE d.t.snapshots",
        "ALTER TABLE d.t.history ADD COLUMNS (x int)",
    ],
)
def test_what_is_told_is_not_written(written: AcidSession, statement: str) -> None:
    with pytest.raises(TableNotAcidError, match=r"d\.t\.\w+ tells about d\.t: it is read, and not written"):
        written.sql(statement)
    assert written.table("d.t").count() == 10


@pytest.fixture
def current(acid: AcidSession) -> Iterator[AcidSession]:
    acid.sql("USE d")
    yield acid
    acid.sql("USE default")


def test_a_table_that_is_called_so_is_itself(current: AcidSession, spark: SparkSession) -> None:
    acid = current
    acid.create_database("t")
    for name in ("d.t", "d.history", "t.history", "t.files"):
        acid.create_table(name, {"n": "string"})
        acid.insert(name, spark.createDataFrame([(name,)], "n string"))
    assert acid.sql("SELECT * FROM history").collect() == [("d.history",)]
    assert acid.sql("SELECT * FROM d.history").collect() == [("d.history",)]
    assert acid.sql("SELECT * FROM t.history").collect() == [("t.history",)], "not about d.t"
    assert acid.table("t.history").collect() == [("t.history",)]
    assert acid.sql("SELECT count(*) FROM d.t.history").collect() == [(1,)]
    assert acid.sql("SELECT count(*) FROM t.snapshots").collect() == [(1,)], "there is no such table in t"
    assert acid.sql("SELECT write_id FROM d.history.history").collect() == [(1,)]
    acid.sql("UPDATE t.history SET n = 'new'")
    assert acid.history("t.history").count() == 2
    acid.sql("DROP TABLE t.files")
    assert acid.sql("SELECT count(*) FROM t.files").collect() == [(1,)]


def test_errors_say_what_is_wrong(acid: AcidSession, spark: SparkSession) -> None:
    for verb in (lambda: acid.table("d.none.history"), lambda: acid.history("d.none")):
        with pytest.raises(NoSuchObjectError, match=r"d\.none"):
            verb()
    with pytest.raises(NoSuchObjectError, match=r"d\.none"):
        acid.sql("DESCRIBE HISTORY d.none")
    hive_acid.spark.session(spark, acid.connection, settings=DUMMY).create_table(
        "d.plain", {"id": "int"}, properties={"transactional": "false"}
    )
    for text in ("DESCRIBE HISTORY d.plain", "SELECT * FROM d.plain.files"):
        with pytest.raises(TableNotAcidError, match=r"d\.plain is not an ACID table"):
            acid.sql(text)
    for text, what in (("VACUUM d.t", "Cleaner"), ("OPTIMIZE d.t", "COMPACT 'major'"), ("RESTORE TABLE d.t", "undrop")):
        with pytest.raises(SqlError, match=what):
            acid.sql(text)
