"""Deletes that the client writes, without a job of Spark's: their files, and when Spark writes them after all."""

import pyarrow.orc
import pytest

from hive_acid.format.orc_deletes import delete_file
from hive_acid.format.rows import encode_bucket
from hive_acid.spark import collected, dml
from tests.spark.checker import check_table, location_of
from tests.spark.plans import scans

SPARKS_OWN = "org.apache.spark.version"
EVERY_TYPE = {
    "id": "int", "a": "boolean", "b": "tinyint", "c": "smallint", "d": "bigint", "e": "float", "f": "double",
    "g": "decimal(12,3)", "h": "string", "i": "varchar(5)", "j": "char(3)", "k": "binary", "l": "date",
    "m": "timestamp", "n": "array<struct<x:int,y:string>>", "o": "map<string,array<int>>", "p": "struct<q:timestamp>",
}  # fmt: skip


def written_by_spark(acid, name="d.t"):
    """The path of each delete file to whether Spark wrote it."""
    root = location_of(acid, name)
    return {
        str(path.relative_to(root)): SPARKS_OWN.encode() in (pyarrow.orc.ORCFile(path).metadata or {})
        for path in sorted(root.rglob("delete_delta_*/bucket_*"))
    }


def ids(acid, name="d.t"):
    return sorted(row["id"] for row in acid.table(name).collect())


def test_a_few_rows_are_deleted_without_a_write_by_spark(acid, spark):
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


def test_each_partition_and_bucket_has_its_file(acid, spark):
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


def test_a_clustered_table_and_one_of_statements(acid, spark):
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


def test_several_statements_of_a_transaction(acid, spark):
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


def test_many_rows_are_written_by_spark(acid, spark, monkeypatch):
    monkeypatch.setattr(collected, "MOST_KEYS", 9)
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "int(id % 2) p"))
    assert acid.delete("d.t", "id < 9") == 9
    assert not any(written_by_spark(acid).values())
    assert acid.delete("d.t", "id BETWEEN 50 AND 59") == 10
    assert sum(written_by_spark(acid).values()) == 2
    assert ids(acid) == [*range(9, 50), *range(60, 100)]
    check_table(location_of(acid, "d.t"))


def test_readers_find_row_groups_by_the_index(spark, tmp_path):
    """ORC's own reader skips groups of rows, also in the columns of `row`, which have nothing to be skipped."""
    found = [(1, encode_bucket(0), 3 * row, 2) for row in range(35_000)]
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


def test_what_is_deleted_already_is_found_out_by_the_client(acid, spark, monkeypatch):
    """The query does not ask: so nothing is joined or looked up, in one partition as in several, and only once."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "string"})
    rows = spark.range(120).selectExpr("int(id) id", "elt(id % 4 + 1, 'a b', 'x%/=', 'c', null) p")
    acid.insert("d.t", rows.coalesce(1))
    acid.update("d.t", {"id": "id + 1000"}, "id % 3 = 0")
    acid.delete("d.t", "id % 2 = 0 AND id < 1000")
    left = [i for i in range(120) if i % 3 and i % 2] + [i + 1000 for i in range(0, 120, 3)]
    assert ids(acid) == sorted(left)
    seen = []

    def spied(rows, *args):
        seen.append((rows._jdf.queryExecution().toString(), collected.collected(rows, *args)))
        return seen[-1][1]

    monkeypatch.setattr(dml, "collected", spied)
    gone = [i for i in left if i % 5 == 1]
    assert acid.delete("d.t", "id % 5 = 1") == len(gone)
    assert acid.delete("d.t", "id % 5 = 1") == 0
    assert all("Join" not in plan and "ubquery#" not in plan for plan, _ in seen)
    assert ids(acid) == sorted(set(left) - set(gone))
    check_table(location_of(acid, "d.t"))


def test_what_may_fail_is_not_asked_of_rows_that_are_gone(acid, spark):
    acid.create_table("d.t", {"id": "int", "z": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "int(id % 5) z").coalesce(1))
    assert acid.delete("d.t", "z = 0") == 20
    assert acid.delete("d.t", "10 / z = 5") == 20
    assert acid.update("d.t", {"id": "-id"}, "10 % z = 1") == 20
    check_table(location_of(acid, "d.t"))


def test_too_many_rows_are_looked_for_again(acid, spark, monkeypatch):
    """A first query that also finds rows that are gone may find too many of them: then Spark leaves them out."""
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id").coalesce(1))
    assert acid.delete("d.t", "id < 60") == 60
    monkeypatch.setattr(collected, "MOST_KEYS", 50)
    assert acid.delete("d.t", "id < 70") == 10
    assert ids(acid) == list(range(70, 100))
    check_table(location_of(acid, "d.t"))
