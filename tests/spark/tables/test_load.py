"""LOAD DATA and ADD PARTITION: files become rows as they are, and nothing of them is lost on the way."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import AlreadyExistsError, ColumnError, FormatError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table


def write_orc(path: Path, ids: Any, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"id": pa.array(ids, pa.int32()), "name": pa.array([f"n{i}" for i in ids]), **columns}
    pyarrow.orc.write_table(pa.table(table), path, compression="zlib")
    return path


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


def names_in(location: Path) -> list[str]:
    return sorted(str(path.relative_to(location)) for path in location.rglob("*") if path.is_file())


def rows_of(*ids: Any) -> Any:
    return [(i, f"n{i}") for i in sorted(ids)]


@pytest.fixture
def simple(acid: AcidSession) -> Any:
    acid.create_table("d.t", {"id": "int", "name": "string"})
    return acid


def test_files_are_moved_under_hives_names(simple: Any, tmp_path: Path) -> None:
    given = tmp_path / "in"
    write_orc(given / "b.orc", [3, 4])
    write_orc(given / "a.orc", [1, 2])
    (given / "_SUCCESS").touch()
    assert simple.load_data("d.t", str(given)) == 2
    location = location_of(simple, "d.t")
    assert names_in(location) == ["delta_0000001_0000001_0000/000000_0", "delta_0000001_0000001_0000/000001_0"]
    assert read(simple) == rows_of(1, 2, 3, 4)
    assert [path.name for path in given.iterdir()] == ["_SUCCESS"]
    ids = [tuple(row["ROW__ID"]) for row in simple.table("d.t", row_id=True).orderBy("id").collect()]
    assert ids == [(1, 536870912, 0), (1, 536870912, 1), (1, 536936448, 0), (1, 536936448, 1)]


def test_a_copied_file_stays_and_may_be_loaded_again(simple: Any, tmp_path: Path) -> None:
    given = write_orc(tmp_path / "a.orc", [1])
    assert simple.load_data("d.t", str(given), copy=True) == 1
    assert simple.load_data("d.t", f"file://{given}", copy=True) == 1
    assert read(simple) == rows_of(1) * 2
    (loaded,) = location_of(simple, "d.t").glob("delta_0000001_*/000000_0")
    assert not loaded.samefile(given), "a change of the user's file would change the table"


def test_loaded_rows_are_changed_like_all_others(simple: Any, tmp_path: Path, spark: SparkSession) -> None:
    simple.insert("d.t", spark.createDataFrame([(9, "n9")], "id int, name string"))
    simple.load_data("d.t", str(write_orc(tmp_path / "a.orc", [1, 2, 3])))
    assert simple.delete("d.t", "id = 2") == 1
    assert simple.update("d.t", {"name": "'new'"}, "id = 3") == 1
    assert read(simple) == [(1, "n1"), (3, "new"), (9, "n9")]


def test_overwrite_replaces_the_table_or_one_partition(acid: AcidSession, tmp_path: Path, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "string"})
    acid.insert("d.t", spark.createDataFrame([(1, "n1", "a"), (2, "n2", "b")], "id int, name string, p string"))
    acid.load_data("d.t", str(write_orc(tmp_path / "a.orc", [3])), partition={"P": "a"}, overwrite=True)
    acid.load_data("d.t", str(write_orc(tmp_path / "b.orc", [4])), partition={"p": "new"})
    assert read(acid) == [(2, "n2", "b"), (3, "n3", "a"), (4, "n4", "new")]
    assert (location_of(acid, "d.t") / "p=a" / "base_0000002" / "000000_0").exists()
    acid.create_table("d.u", {"id": "int", "name": "string"})
    acid.insert("d.u", spark.createDataFrame([(1, "n1")], "id int, name string"))
    acid.load_data("d.u", str(write_orc(tmp_path / "c.orc", [5])), overwrite=True)
    assert read(acid, "d.u") == rows_of(5)


def test_a_failed_transaction_leaves_the_files_where_they_were(simple: Any, tmp_path: Path) -> None:
    given = write_orc(tmp_path / "a.orc", [1])
    with pytest.raises(KeyError), simple.transaction():
        simple.load_data("d.t", str(given))
        assert read(simple) == rows_of(1)
        assert given.exists()
        raise KeyError
    assert given.exists()
    assert names_in(location_of(simple, "d.t")) == []
    assert read(simple) == []


def test_a_file_is_moved_once_in_a_transaction(simple: Any, tmp_path: Path) -> None:
    given = write_orc(tmp_path / "a.orc", [1, 2])
    simple.create_table("d.u", {"id": "int", "name": "string"})
    for again in ("d.t", "d.u"):
        with pytest.raises(FormatError, match="moved by this transaction already"), simple.transaction():
            simple.load_data("d.t", str(given))
            simple.load_data(again, f"file:{given}")
    with simple.transaction():
        simple.load_data("d.t", str(given))
        simple.load_data("d.u", str(given), copy=True)
    assert read(simple) == read(simple, "d.u") == rows_of(1, 2)
    assert not given.exists()


def test_readers_with_older_snapshots_see_what_was_there(simple: Any, tmp_path: Path) -> None:
    simple.load_data("d.t", str(write_orc(tmp_path / "a.orc", [1])))
    before = simple.table("d.t")
    simple.load_data("d.t", str(write_orc(tmp_path / "b.orc", [2])), overwrite=True)
    assert sorted(tuple(row) for row in before.collect()) == rows_of(1)
    assert read(simple) == rows_of(2)


def test_in_one_transaction_nothing_hides_below_an_overwrite(simple: Any, tmp_path: Path, spark: SparkSession) -> None:
    with simple.transaction():
        simple.insert("d.t", spark.createDataFrame([(1, "n1")], "id int, name string"))
        simple.load_data("d.t", str(write_orc(tmp_path / "a.orc", [2])), overwrite=True)
        simple.load_data("d.t", str(write_orc(tmp_path / "b.orc", [3])), overwrite=True)
        assert read(simple) == rows_of(3)
    assert read(simple) == rows_of(3)
    with pytest.raises(UnsupportedTableError, match="has overwritten the table"), simple.transaction():
        simple.load_data("d.t", str(write_orc(tmp_path / "c.orc", [4])), overwrite=True)
        simple.load_data("d.t", str(write_orc(tmp_path / "d.orc", [5])))
    assert read(simple) == rows_of(3)
    assert (tmp_path / "d.orc").exists()


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"id": pa.array([1], pa.int64())}, ColumnError, "id of .* is bigint, and that of d.t is int"),
        ({"id": pa.array([1], pa.int32()), "nam": pa.array(["x"])}, ColumnError, "column 2 of .* is nam"),
        ({"name": pa.array(["x"]), "id": pa.array([1], pa.int32())}, ColumnError, "column 1 of .* is name"),
        (
            {"id": pa.array([1], pa.int32()), "name": pa.array(["x"]), "more": pa.array(["x"])},
            ColumnError,
            "has 3 columns, d.t has 2",
        ),
    ],
)
def test_files_with_other_columns_are_refused(
    simple: Any, tmp_path: Path, columns: Any, error: Any, message: Any
) -> None:
    given = tmp_path / "a.orc"
    pyarrow.orc.write_table(pa.table(columns), given)
    with pytest.raises(error, match=message):
        simple.load_data("d.t", str(given))
    assert given.exists()
    assert names_in(location_of(simple, "d.t")) == []


def test_fewer_columns_and_narrower_types_are_read(acid: AcidSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string", "more": "double"})
    acid.load_data("d.t", str(write_orc(tmp_path / "a.orc", [1])))
    assert read(acid) == [(1, "n1", None)]


def test_what_is_no_plain_orc_file_is_refused(simple: Any, tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        simple.load_data("d.t", str(tmp_path / "nothing"))
    text = tmp_path / "text"
    text.write_text("1,n1")
    with pytest.raises(FormatError, match="no ORC file"):
        simple.load_data("d.t", str(text))
    simple.insert("d.t", spark.createDataFrame([(1, "n1")], "id int, name string"))
    (delta,) = location_of(simple, "d.t").glob("delta_*")
    elsewhere = tmp_path / "moved"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes((delta / "bucket_00000").read_bytes())
    with pytest.raises(FormatError, match="is a file of an ACID table"):
        simple.load_data("d.t", str(elsewhere))
    with pytest.raises(FormatError, match="directory in it, in: name it by itself"):
        write_orc(tmp_path / "up" / "in" / "a.orc", [1])
        simple.load_data("d.t", str(tmp_path / "up"))
    (tmp_path / "link").symlink_to(delta.parent.parent)
    above, name = delta.parent.parent, f"{delta.parent.name}/{delta.name}"
    for spelled in (
        delta,
        f"{above}/./{name}",
        f"file:{above}//{name}/",
        f"{above}/{delta.parent.name}/../{name}",
        tmp_path / "link" / name,
    ):
        with pytest.raises(FormatError, match=r"lies in the directory of d\.t itself"):
            simple.load_data("d.t", str(spelled))
    assert read(simple) == rows_of(1)


def test_a_file_spelt_otherwise_is_moved_once(simple: Any, tmp_path: Path) -> None:
    given = write_orc(tmp_path / "a.orc", [1])
    (tmp_path / "link").symlink_to(tmp_path)
    for spelled in (f"{tmp_path}/./a.orc", f"file:{tmp_path}//a.orc", str(tmp_path / "link" / "a.orc")):
        with pytest.raises(FormatError, match="is moved by this transaction already"), simple.transaction():
            simple.load_data("d.t", str(given))
            simple.load_data("d.t", spelled)
        assert read(simple) == []
        assert given.exists()


def test_tables_that_take_no_files(acid: AcidSession, tmp_path: Path) -> None:
    given = str(write_orc(tmp_path / "a.orc", [1]))
    acid.create_table("d.plain", {"id": "int"}, clustered_by=["id"], buckets=2, properties={"transactional": "false"})
    with pytest.raises(UnsupportedTableError, match="CLUSTERED BY"):
        acid.load_data("d.plain", given)
    acid.create_table("d.p", {"id": "int", "name": "string"}, partitioned_by={"p": "int", "q": "int"})
    for partition in (None, {"p": 1}):
        with pytest.raises(ColumnError, match="give a value of each"):
            acid.load_data("d.p", given, partition=partition)
    with pytest.raises(ColumnError, match=r"partition \(q\) of d.p must name its partition keys"):
        acid.load_data("d.p", given, partition={"q": 1})
    acid.create_table("d.k", {"id": "int"}, partitioned_by={"name": "string"})
    with pytest.raises(ColumnError, match="column name, which is a partition key"):
        acid.load_data("d.k", given, partition={"name": "x"})


def test_files_of_a_clustered_table_keep_their_buckets(acid: AcidSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, clustered_by=["id"], buckets=2)
    for name in ("a.orc", "000002_0"):
        given = write_orc(tmp_path / name, [1])
        with pytest.raises(UnsupportedTableError, match="tells no bucket"):
            acid.load_data("d.t", str(given))
    for name in ("000001_0", "000001_0_copy_1"):
        write_orc(tmp_path / "in" / name, [1])
    assert acid.load_data("d.t", str(tmp_path / "in")) == 2
    assert [path.rpartition("/")[2] for path in names_in(location_of(acid, "d.t"))] == ["000001_0", "000001_0_copy_1"]


def test_partitions_are_added_with_the_files_at_a_location(acid: AcidSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"y": "int"})
    write_orc(tmp_path / "far" / "part-00000-x.snappy.orc", [1, 2])
    assert acid.add_partitions("d.t", {"y=1": str(tmp_path / "far"), "y=2": None}) == 1
    assert acid.table("d.t").partitions() == ["y=1", "y=2"]
    assert read(acid) == [(1, "n1", 1), (2, "n2", 1)]
    assert (tmp_path / "far" / "part-00000-x.snappy.orc").exists()
    with pytest.raises(AlreadyExistsError, match="y=1"):
        acid.add_partitions("d.t", {"y=1": None, "y=3": None})
    assert acid.table("d.t").partitions() == ["y=1", "y=2"]
    assert acid.add_partitions("d.t", {"y=1": str(tmp_path / "far"), "y=3": None}, if_not_exists=True) == 0
    assert acid.table("d.t").partitions() == ["y=1", "y=2", "y=3"]
    with pytest.raises(ColumnError, match="is not a partition of"):
        acid.add_partitions("d.t", {"z=1": None})


def test_files_in_a_partitions_own_directory_do_not_become_rows_in_silence(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"y": "int"})
    write_orc(location_of(acid, "d.t") / "y=1" / "000000_0", [1])
    with pytest.raises(FormatError, match="nobody knows which write"):
        acid.add_partitions("d.t", {"y=1": None})
    assert acid.table("d.t").partitions() == []


@pytest.mark.parametrize("location", [False, True])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_partition_comes_back_while_somebody_reads_what_was_dropped(
    acid: AcidSession, tmp_path: Path, spark: SparkSession, location: Any, compacted: Any
) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    for number in (1, 2):
        acid.insert("d.t", spark.range(number, number + 1).selectExpr("cast(id as int) id", "'old' name", "7 p"))
    if compacted:
        compact_table(spark, acid, "d.t", "major")
    held = acid.table("d.t")
    acid.drop_partitions("d.t", ["p=7"])
    given = str(write_orc(tmp_path / "a.orc", [9])) if location else None
    assert acid.add_partitions("d.t", {"p=7": given}) == int(location)
    assert read(acid) == ([(9, "n9", 7)] if location else [])
    assert sorted(row.id for row in held.collect()) == [1, 2], "the reader's files are there"
    acid.insert("d.t", spark.range(3, 4).selectExpr("cast(id as int) id", "'new' name", "7 p"))
    assert read(acid) == [(3, "new", 7), *([(9, "n9", 7)] if location else [])]


def test_files_beside_those_of_a_dropped_partition_are_somebodys(
    acid: AcidSession, tmp_path: Path, spark: SparkSession
) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(1, 2).selectExpr("cast(id as int) id", "'old' name", "7 p"))
    held = acid.table("d.t")
    acid.drop_partitions("d.t", ["p=7"])
    place = location_of(acid, "d.t") / "p=7"
    for name in ("delta_0000009_0000009_0000/bucket_00000", "base_0000009/bucket_00000"):
        write_orc(place / name, [9])
        with pytest.raises(FormatError, match="of which nobody knows"):
            acid.add_partitions("d.t", {"p=7": None})
        (place / name).unlink()
        (place / name).parent.rmdir()
    acid.add_partitions("d.t", {"p=7": None})
    assert [row.id for row in held.collect()] == [1]


@pytest.mark.parametrize("line", ['{"ID": 2}', '{"id": 2, "Id": 3}', '{"s": {"Inner": 1}}', '{"ar": [{"X": 1}]}'])
def test_keys_of_json_are_written_as_columns_are(acid: AcidSession, tmp_path: Path, line: Any) -> None:
    """Hive finds them in any case, Spark does not: their values would be null."""
    columns = {"id": "int", "s": "struct<inner:int>", "ar": "array<struct<x:int>>", "m": "map<string,int>"}
    insert_only = {"transactional_properties": "insert_only"}
    acid.create_table("d.t", columns, stored_as="JSONFILE", properties=insert_only, partitioned_by={"p": "int"})
    given = tmp_path / "in.json"
    given.write_text('{"id": 1, "s": {"inner": 7}, "m": {"Any": 1}, "other": 3}\n' + line)
    for verb in (
        lambda: acid.load_data("d.t", str(given), partition={"p": "1"}),
        lambda: acid.add_partitions("d.t", {"p=1": str(given)}),
    ):
        with pytest.raises(ColumnError, match=r"d\.t: a file has the key .*spark\.read\.json"):
            verb()
    assert given.exists()
    given.write_text('{"id": 1, "s": {"inner": 7}, "m": {"Any": 1}, "other": 3}\n')
    assert acid.load_data("d.t", str(given), partition={"p": "1"}) == 1
    (row,) = acid.table("d.t").collect()
    assert (row.id, row.s.inner, row.m) == (1, 7, {"Any": 1})
