"""Changes that the client writes, without a job of Spark's: their files, and when Spark writes them after all."""

from pathlib import Path
from typing import Any

import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, MergeCardinalityError
from hive_acid.format.names import HIVE_3_PROPERTY
from hive_acid.format.orc.deletes import DeleteEvents, delete_file
from hive_acid.format.rows import encode_bucket
from hive_acid.spark import AcidSession
from hive_acid.spark.change import dml, driver_write
from hive_acid.spark.limits import Limits
from hive_acid.streaming import memory
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of
from tests.spark.plans import scans

SPARKS_OWN = "org.apache.spark.version"
EVERY_TYPE = {
    "id": "int", "a": "boolean", "b": "tinyint", "c": "smallint", "d": "bigint", "e": "float", "f": "double",
    "g": "decimal(12,3)", "h": "string", "i": "varchar(5)", "j": "char(3)", "k": "binary", "l": "date",
    "m": "timestamp", "n": "array<struct<x:int,y:string>>", "o": "map<string,array<int>>", "p": "struct<q:timestamp>",
}  # fmt: skip


def written_by_spark(acid: AcidSession, name: Any = "d.t", directories: Any = "delete_delta_*") -> Any:
    """The path of each delete file to whether Spark wrote it."""
    root = location_of(acid, name)
    return {
        str(path.relative_to(root)): SPARKS_OWN.encode() in (pyarrow.orc.ORCFile(path).metadata or {})
        for path in sorted(root.rglob(f"{directories}/bucket_*"))
    }


def new_by_spark(acid: AcidSession, write_id: Any, name: Any = "d.t") -> Any:
    """The path of each file of new rows of a write to whether Spark wrote it."""
    return written_by_spark(acid, name, f"delta_{write_id:07}_{write_id:07}_*")


def ids(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(row["id"] for row in acid.table(name).collect())


def test_a_few_rows_are_deleted_without_a_write_by_spark(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", EVERY_TYPE)
    nothing = [f"cast(null AS {kind}) {name}" for name, kind in EVERY_TYPE.items() if name != "id"]
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", *nothing))
    assert acid.delete("d.t", "id % 10 = 3") == 10
    assert acid.delete("d.t", "id % 10 = 3") == 0
    assert acid.delete("d.t", "id % 10 = 4") == 10
    assert written_by_spark(acid) == {
        f"delete_delta_000000{write}_000000{write}_0000/bucket_00000": False for write in (2, 4)
    }
    assert ids(acid) == [i for i in range(100) if i % 10 not in (3, 4)]
    check_table(location_of(acid, "d.t"))


def test_each_partition_and_bucket_has_its_file(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "string", "q": "int"})
    rows = spark.range(200).selectExpr("int(id) id", "elt(id % 4 + 1, 'a b', '', 'x%/=', null) p", "int(id % 2) q")
    acid.insert("d.t", rows.repartition(4))
    assert acid.delete("d.t", "id % 3 = 0") == 67
    found = written_by_spark(acid)
    assert len(found) >= 3
    assert not any(found.values())
    assert ids(acid) == [i for i in range(200) if i % 3]
    check_table(location_of(acid, "d.t"))
    source = spark.range(1, 200, 3).selectExpr("id k")
    assert acid.delete("d.t", source=source, on="t.id = s.k") == 67
    assert ids(acid) == [i for i in range(200) if i % 3 == 2]
    assert not any(written_by_spark(acid).values())
    check_table(location_of(acid, "d.t"))


def test_a_clustered_table_and_one_of_statements(acid: AcidSession, spark: SparkSession) -> None:
    rows = spark.range(300).selectExpr("int(id) id")
    acid.create_table("d.t", {"id": "int"}, clustered_by=["id"], buckets=3)
    acid.create_table("d.s", {"id": "int"}, properties={"hive_acid.layout": "statements"})
    for name in ("d.t", "d.s"):
        acid.insert(name, rows.repartition(3))
        assert acid.delete(name, "id % 2 = 0") == 150
        assert ids(acid, name) == list(range(1, 300, 2))
        assert not any(written_by_spark(acid, name).values())
        check_table(location_of(acid, name))
    assert len(written_by_spark(acid)) == 3
    assert len(written_by_spark(acid, "d.s")) == 1


def test_several_statements_of_a_transaction(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    with acid.transaction():
        acid.insert("d.t", spark.range(10).selectExpr("int(id) id"))
        assert acid.delete("d.t", "id < 3") == 3
        assert acid.delete("d.t", "id > 7") == 2
        assert ids(acid) == [3, 4, 5, 6, 7]
    assert [name.split("/")[0] for name in written_by_spark(acid)] == [
        "delete_delta_0000001_0000001_0001",
        "delete_delta_0000001_0000001_0002",
    ]
    assert ids(acid) == [3, 4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="never mind"), acid.transaction():
        acid.delete("d.t", "id = 5")
        raise RuntimeError("never mind")
    assert ids(acid) == [3, 4, 5, 6, 7]
    assert len(written_by_spark(acid)) == 2


def test_many_rows_are_written_by_spark(acid: AcidSession, spark: SparkSession) -> None:
    acid.limits = Limits(driver_deletes=9)
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "int(id % 2) p"))
    assert acid.delete("d.t", "id < 9") == 9
    assert not any(written_by_spark(acid).values())
    assert acid.delete("d.t", "id BETWEEN 50 AND 59") == 10
    assert sum(written_by_spark(acid).values()) == 2
    assert ids(acid) == [*range(9, 50), *range(60, 100)]
    check_table(location_of(acid, "d.t"))


def test_readers_find_row_groups_by_the_index(spark: SparkSession, tmp_path: Path) -> None:
    """ORC's own reader skips groups of rows, also in the columns of `row`, which have nothing to be skipped."""
    rows = range(0, 3 * 35_000, 3)
    found = DeleteEvents(*([value] * len(rows) for value in (1, encode_bucket(0))), rows, [2] * len(rows))  # type: ignore[call-arg]
    content = delete_file(list(EVERY_TYPE.items()), found, "none")
    # Under another name Spark's reader takes the file for a plain one, and pushes filters on its columns.
    (tmp_path / "f.orc").write_bytes(content.replace(b"originalTransaction", b"originalTransactiom"))
    frame = spark.read.orc(str(tmp_path / "f.orc")).where("rowId BETWEEN 60000 AND 60005")
    assert [(row["rowId"], row["bucket"], row["row"]) for row in frame.collect()] == [
        (60_000, encode_bucket(0), None),
        (60_003, encode_bucket(0), None),
    ]
    (scan,) = scans(frame)
    assert scan.rows == 10_000, "one group of rows"


def test_what_is_deleted_already_is_found_out_by_the_client(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query does not ask: so nothing is joined or looked up, in one partition as in several, and only once."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "string"})
    rows = spark.range(120).selectExpr("int(id) id", "elt(id % 4 + 1, 'a b', 'x%/=', 'c', null) p")
    acid.insert("d.t", rows.coalesce(1))
    acid.update("d.t", {"id": "id + 1000"}, "id % 3 = 0")
    acid.delete("d.t", "id % 2 = 0 AND id < 1000")
    left = [i for i in range(120) if i % 3 and i % 2] + [i + 1000 for i in range(0, 120, 3)]
    assert ids(acid) == sorted(left)
    seen = []

    def spied(rows: Any, *args: Any) -> Any:
        seen.append((rows._jdf.queryExecution().toString(), driver_write.driver_deletes(rows, *args)))
        return seen[-1][1]

    monkeypatch.setattr(dml, "driver_deletes", spied)
    gone = [i for i in left if i % 5 == 1]
    assert acid.delete("d.t", "id % 5 = 1") == len(gone)
    assert acid.delete("d.t", "id % 5 = 1") == 0
    assert all("Join" not in plan and "ubquery#" not in plan for plan, _ in seen)
    assert ids(acid) == sorted(set(left) - set(gone))
    check_table(location_of(acid, "d.t"))


def test_what_may_fail_is_not_asked_of_rows_that_are_gone(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "z": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "int(id % 5) z").coalesce(1))
    assert acid.delete("d.t", "z = 0") == 20
    assert acid.delete("d.t", "10 / z = 5") == 20
    assert acid.update("d.t", {"id": "-id"}, "10 % z = 1") == 20
    check_table(location_of(acid, "d.t"))


def test_too_many_rows_are_looked_for_again(acid: AcidSession, spark: SparkSession) -> None:
    """A first query that also finds rows that are gone may find too many of them: then Spark leaves them out."""
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id").coalesce(1))
    assert acid.delete("d.t", "id < 60") == 60
    acid.limits = Limits(driver_deletes=50)
    assert acid.delete("d.t", "id < 70") == 10
    assert ids(acid) == list(range(70, 100))
    check_table(location_of(acid, "d.t"))


SIMPLE_TYPES = {name: kind for name, kind in EVERY_TYPE.items() if name not in "nop"}
VALUES = """VALUES
    (0, true, 1Y, 2S, 3L, 1.5F, -2.5D, 12.345, 'text', 'vchar', 'ch', X'00FF00', date'2024-02-29',
     timestamp'2024-02-29 12:34:56.789012'),
    (1, false, -128Y, -32768S, -9223372036854775808L, float('-inf'), double('nan'), -999999999.999, '', 'x', 'abc',
     X'', date'1970-01-01', timestamp'1970-01-01 00:00:00'),
    (2, null, 127Y, 32767S, 9223372036854775807L, -0.0F, -0.0D, 999999999.999, 'é\U0001f600\\u0000', 'ééééé',
     'é', X'0102', date'9999-12-31', timestamp'2261-12-31 23:59:59.999999'),
    (3, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (4, true, 0Y, 0S, 0L, float('nan'), double('inf'), 0.001, ' blank ', 'a   ', 'b  ', X'80', date'1582-10-15',
     timestamp'1970-01-01 00:00:00.000001')"""


@pytest.fixture
def pair(acid: AcidSession, spark: SparkSession) -> Any:
    """``d.t``, and the same in ``d.s``: the values of all types but nested ones, ten times each."""
    columns = list(SIMPLE_TYPES)
    rows = spark.sql(f"SELECT * FROM {VALUES} AS v({', '.join(columns)})").crossJoin(spark.range(10).toDF("x"))
    for name in ("d.t", "d.s"):
        acid.create_table(name, SIMPLE_TYPES)
        acid.insert(name, rows.selectExpr("int(id + 10 * x) id", *columns[1:]).coalesce(1).sortWithinPartitions("id"))
    return acid


def rows_of(acid: AcidSession, name: Any, where: Any = "true") -> Any:
    return sorted(map(str, acid.table(name).where(where).collect()))


def test_new_rows_of_all_types_are_as_spark_writes_them(pair: Any) -> None:
    conditions = ["id % 10 < 3", "id IN (3, 4, 30, 34, 77)", "f > 0", "h LIKE '!%'"]
    for where in conditions:
        changed = [pair.update("d.t", {"d": "d DIV 2", "h": "concat(h, '!')"}, where)]
        with limited(pair, **WRITTEN):
            changed.append(pair.update("d.s", {"d": "d DIV 2", "h": "concat(h, '!')"}, where))
        assert changed[0] == changed[1] > 0
    for write_id in range(2, 2 + len(conditions)):
        assert list(new_by_spark(pair, write_id).values()) == [False]
        assert all(new_by_spark(pair, write_id, "d.s").values())
    for name in ("d.t", "d.s"):
        check_table(location_of(pair, name))
    assert rows_of(pair, "d.t") == rows_of(pair, "d.s")
    kept = [
        "b = -128",
        "c > 0",
        "e < 0",
        "f = double('nan')",
        "f = 0",
        "h LIKE '!%'",
        "i = 'x'",
        "j = 'ch '",
        "l < '1971-01-01'",
    ]
    kept += ["g > 100", "m >= timestamp'2261-12-31 00:00:00'", "k = X'80'", "a", "id BETWEEN 20 AND 24", "h IS NULL"]
    for where in kept:
        assert rows_of(pair, "d.t", where) == rows_of(pair, "d.s", where) != [], where


def test_what_pyarrow_cannot_write_is_written_by_spark(pair: Any) -> None:
    for write_id, (column, value) in enumerate(
        (
            ("m", "timestamp'1969-12-31 23:59:57.5'"),
            ("h", "repeat('x', 501)"),
            ("k", "cast(repeat('x', 501) AS binary)"),
        ),
        start=2,
    ):
        assert pair.update("d.t", {column: value}, "id = 20") == 1
        assert list(new_by_spark(pair, write_id).values()) == [True]
    assert pair.update("d.t", {"l": "date'1582-10-04'", "m": "timestamp'1700-01-01 00:00:00'"}, "id = 21") == 1
    assert list(new_by_spark(pair, 5).values()) == [False]
    (row,) = pair.table("d.t").where("id = 20").collect()
    assert (row.h, len(row.k), str(row.m)) == ("x" * 501, 501, "1969-12-31 23:59:57.500000")
    (row,) = pair.table("d.t").where("id = 21").selectExpr("string(l) l", "string(m) m").collect()
    assert tuple(row) == ("1582-10-04", "1700-01-01 00:00:00")
    check_table(location_of(pair, "d.t"))
    for write_id, far in enumerate(("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"), start=6):
        # The checker's pyarrow does not read them.
        assert pair.update("d.t", {"m": f"timestamp'{far}'"}, "id = 22") == 1
        assert list(new_by_spark(pair, write_id).values()) == [False]
        (row,) = pair.table("d.t").where("id = 22").selectExpr("string(m) m").collect()
        assert row.m == far


def test_rows_move_to_other_partitions(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"p": "string", "q": "int"})
    rows = spark.range(200).selectExpr(
        "int(id) id", "'old' v", "elt(id % 4 + 1, 'a b', '', 'x%/=', null) p", "int(id % 2) q"
    )
    acid.insert("d.t", rows.repartition(4))
    assert acid.update("d.t", {"v": "'new'"}, "id % 10 = 3") == 20
    assert acid.update("d.t", {"v": "'moved'", "p": "if(id > 100, null, 'x%/=')", "q": "q + 7"}, "id % 10 = 4") == 20
    assert not any(new_by_spark(acid, 2).values())
    assert len(new_by_spark(acid, 2)) == 1
    assert not any(new_by_spark(acid, 3).values())
    assert len(new_by_spark(acid, 3)) == 2
    found = {row.id: tuple(row)[1:] for row in acid.table("d.t").collect()}
    names = ["a b", None, "x%/=", None]
    for i in range(200):
        expected = ("new" if i % 10 == 3 else "old", names[i % 4], i % 2)
        assert found[i] == (("moved", None if i > 100 else "x%/=", 7) if i % 10 == 4 else expected)
    check_table(location_of(acid, "d.t"))


def test_each_file_of_new_rows_counts_for_the_memory_it_leaves(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(40).selectExpr("int(id) id", "int(id % 4) p"))
    written: list[int] = []
    monkeypatch.setattr(memory, "small_file_written", lambda: written.append(1))
    assert acid.update("d.t", {"id": "id + 100"}, "id < 3") == 3
    assert len(written) == 3
    assert acid.delete("d.t", "id < 10") == 7
    assert len(written) == 3, "delete files are made by no writer with such buffers"


def test_new_rows_are_in_the_order_of_the_old_ones(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string"})
    for first in (0, 100):
        acid.insert("d.t", spark.range(first, first + 100).selectExpr("int(id) id", "'old' v").repartition(3, "id"))
    rows = (
        acid.table("d.t", row_id=True)
        .where("id % 7 = 0")
        .orderBy("ROW__ID.writeId", "ROW__ID.bucketId", "ROW__ID.rowId")
    )
    before = [row.id for row in rows.collect()]
    assert acid.update("d.t", {"v": "'new'"}, "id % 7 = 0") == len(before)
    rows = acid.table("d.t", row_id=True).where("v = 'new'").orderBy("ROW__ID.rowId")
    assert [(row.id, row.ROW__ID.rowId) for row in rows.collect()] == [(i, n) for n, i in enumerate(before)]


def test_files_for_hive_3_and_of_statements(acid: AcidSession, spark: SparkSession) -> None:
    for name, properties in (("d.t", {HIVE_3_PROPERTY: "true"}), ("d.s", {"hive_acid.layout": "statements"})):
        acid.create_table(name, {"id": "int"}, properties=properties)
        acid.insert(name, spark.range(30).selectExpr("int(id) id").repartition(3))
        with acid.transaction():
            assert acid.update(name, {"id": "-id"}, "id % 3 = 1") == 10
            assert acid.update(name, {"id": "-id"}, "id % 6 = -1") == 5
        assert len(new_by_spark(acid, 2, name)) == 2
        assert not any(new_by_spark(acid, 2, name).values())
        assert ids(acid, name) == sorted(-i if i % 6 == 4 else i for i in range(30))
        check_table(location_of(acid, name))
    written = pyarrow.orc.ORCFile(location_of(acid, "d.t") / "delta_0000002_0000002_0000" / "bucket_00000")
    assert written.metadata[b"hive.acid.key.index"] == b"2,536870912,9;"
    assert written.compression == "ZLIB"


@pytest.mark.parametrize("compression", ["none", "snappy", "zlib"])
def test_new_rows_are_compressed_as_the_table_says(acid: AcidSession, spark: SparkSession, compression: Any) -> None:
    acid.create_table("d.t", {"id": "int"}, properties={"orc.compress": compression})
    acid.insert("d.t", spark.range(30).selectExpr("int(id) id"))
    assert acid.update("d.t", {"id": "-id"}, "id = 7") == 1
    (path,) = new_by_spark(acid, 2)
    written = pyarrow.orc.ORCFile(location_of(acid, "d.t") / path)
    assert written.compression == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    assert -7 in ids(acid)


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ({"id": "int", "n": "array<int>"}, {}),
        ({"id": "int"}, {"clustered_by": ["id"], "buckets": 2}),
        ({"id": "int", "s": "struct<a:string>"}, {}),
    ],
)
def test_other_tables_are_written_by_spark(acid: AcidSession, spark: SparkSession, columns: Any, more: Any) -> None:
    acid.create_table("d.t", columns, **more)
    nothing = [f"cast(null AS {kind}) {name}" for name, kind in columns.items() if name != "id"]
    acid.insert("d.t", spark.range(30).selectExpr("int(id) id", *nothing))
    assert acid.update("d.t", {"id": "-id"}, "id = 7") == 1
    assert all(new_by_spark(acid, 2).values())
    assert -7 in ids(acid)
    check_table(location_of(acid, "d.t"))


def test_many_new_rows_are_written_by_spark(acid: AcidSession, spark: SparkSession) -> None:
    acid.limits = Limits(driver_rows=9)
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "int(id % 2) p"))
    assert acid.update("d.t", {"id": "-id"}, "id BETWEEN 1 AND 9") == 9
    assert acid.update("d.t", {"id": "-id"}, "id BETWEEN 50 AND 59") == 10
    assert acid.update("d.t", {"id": "id"}) == 100
    assert [all(new_by_spark(acid, write_id).values()) for write_id in (2, 3, 4)] == [False, True, True]
    assert ids(acid) == sorted(-i if 1 <= i <= 9 or 50 <= i <= 59 else i for i in range(100))
    check_table(location_of(acid, "d.t"))


def test_an_update_of_nothing_writes_nothing(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id", "int(id % 2) p"))
    assert acid.update("d.t", {"id": "-id"}, "id = 77") == 0
    assert new_by_spark(acid, 2) == written_by_spark(acid) == {}


def test_a_value_that_does_not_fit_changes_nothing(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "b": "tinyint"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id", "tinyint(1) b"))
    with pytest.raises(ColumnError, match="tinyint"):
        acid.update("d.t", {"b": "100 * id"}, "id = 7")
    with pytest.raises(RuntimeError, match="never mind"), acid.transaction():
        assert acid.update("d.t", {"b": "id"}, "id = 7") == 1
        assert acid.table("d.t").where("b = 7").count() == 1
        raise RuntimeError("never mind")
    assert acid.table("d.t").where("b = 1").count() == 10
    assert {path.name for path in location_of(acid, "d.t").iterdir()} == {"delta_0000001_0000001_0000"}


MERGED = {
    "updates and inserts": lambda merge: merge.whenMatchedUpdate(
        "s.k % 4 <> 1", {"v": "concat(t.v, s.w)"}
    ).whenNotMatchedInsert("s.k % 3 = 0", {"id": "s.k", "v": "s.w", "p": "s.k % 2"}),
    "moves and deletes": lambda merge: (
        merge.whenMatchedDelete("s.k % 5 = 0")
        .whenMatchedUpdate(set={"p": "t.p + 1", "v": "s.w"})
        .whenNotMatchedInsert(values={"id": "-s.k"})
    ),
    "inserts": lambda merge: merge.whenNotMatchedInsert(values={"id": "s.k", "v": "s.w", "p": "7"}),
    "deletes": lambda merge: merge.whenMatchedDelete("t.id > 10"),
    "by source": lambda merge: merge.whenMatchedUpdate(set={"v": "s.w"}).whenNotMatchedBySourceDelete("t.id % 7 = 0"),
}


@pytest.mark.parametrize("clauses", MERGED.values(), ids=MERGED)
def test_a_merge_is_the_same_by_client_and_by_spark(acid: AcidSession, spark: SparkSession, clauses: Any) -> None:
    source = spark.sql("SELECT int(id) k, concat('w', id) w FROM range(30, 130, 2) UNION ALL SELECT null, 'null'")
    found = []
    for name in ("d.t", "d.s"):
        acid.create_table(name, {"id": "int", "v": "string"}, partitioned_by={"p": "int"})
        rows = spark.range(100).selectExpr("int(id) id", "'old' v", "int(id % 2) p")
        acid.insert(name, rows.repartition(2))
        acid.delete(name, "id IN (40, 41)")
        with limited(acid, driver_rows=-1 if name == "d.s" else 1000):
            found.append(clauses(acid.merge(name, source, "t.id = s.k")).execute())
        check_table(location_of(acid, name))
    assert found[0] == found[1]
    assert sum(found[0]) > 0
    assert rows_of(acid, "d.t") == rows_of(acid, "d.s")
    assert any(new_by_spark(acid, 3).values()) == (clauses is MERGED["by source"])
    assert all(new_by_spark(acid, 3, "d.s").values())


def test_a_merge_that_matches_twice_is_refused_by_the_client(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id", "'old' v"))
    source = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (2, 'c'), (20, 'd'), (20, 'e') AS v(id, v)")
    merge = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(MergeCardinalityError, match="1 of its rows"):
        merge.execute()
    assert {path.name for path in location_of(acid, "d.t").iterdir()} == {"delta_0000001_0000001_0000"}
    only_one = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdate("s.v <> 'a'", {"v": "s.v"})
    assert tuple(only_one.whenNotMatchedInsertAll().execute()) == (2, 2, 0)
    assert not any(new_by_spark(acid, 3).values())
    assert sorted(row.v for row in acid.table("d.t").where("id < 3 OR id = 20").collect()) == [
        "b",
        "c",
        "d",
        "e",
        "old",
    ]
