"""Handles, builders, sinks and `Table` objects that are older than their table's definition, or than the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.connection import Connection, connect
from hive_acid.errors import ColumnError, HiveAcidError, NoSuchObjectError, SnapshotInTheWayError, TableChangedError
from hive_acid.protocol import Question
from hive_acid.spark import AcidSession

COLUMNS = {"id": "int", "total": "int"}
Change = Callable[[AcidSession, Any], object]


def rows(acid: AcidSession, name: str = "d.o") -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in acid.table(name).collect()), key=str)


def frame(spark: SparkSession, *of: tuple[Any, ...], schema: str = "id int, total int") -> DataFrame:
    return spark.createDataFrame(list(of), schema)


@pytest.fixture
def orders(acid: AcidSession, spark: SparkSession) -> Any:
    """The handle of a table with two rows, as the tutorial begins."""
    acid.create_table("d.o", COLUMNS)
    acid.insert("d.o", frame(spark, (1, 10), (2, 20)))
    return acid.table("d.o")


def with_region(spark: SparkSession) -> DataFrame:
    return frame(spark, (2, 21, "north"), (3, 30, "south"), schema="id int, total int, region string")


def by_its_own_insert(acid: AcidSession, handle: Any) -> None:
    handle.delete("id = 2")
    handle.insert(with_region(acid.spark), schema_evolution=True)


def by_a_merge(acid: AcidSession, handle: Any) -> None:
    merge = handle.merge(with_region(acid.spark), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def by_another_client(acid: AcidSession, handle: Any) -> None:
    with connect(acid.connection.uri) as connection:
        other = AcidSession(acid.spark, connection)
        other.add_columns("d.o", {"region": "string"})
        other.delete("d.o", "id = 2")
        other.insert("d.o", with_region(acid.spark))


def upsert(handle: Any, spark: SparkSession) -> Any:
    merge = handle.merge(frame(spark, (2, 22)), "t.id = s.id")
    return merge.whenMatchedUpdate(set={"total": "s.total"}).whenNotMatchedInsert(values={"id": "s.id"})


WRITES: dict[str, Callable[[Any, SparkSession], object]] = {
    "update": lambda handle, spark: handle.update({"total": "total + 1"}, where="id = 2"),
    "merge": lambda handle, spark: upsert(handle, spark).execute(),
    "update from": lambda handle, spark: handle.update({"total": "22"}, source=frame(spark, (2, 0)), on="t.id = s.id"),
}


@pytest.mark.parametrize("how", [by_its_own_insert, by_a_merge, by_another_client])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("within", ["alone", "block"])
def test_a_column_that_was_added_keeps_its_values(
    acid: AcidSession, spark: SparkSession, orders: Any, how: Change, write: str, within: str
) -> None:
    if within == "block" and how is not by_another_client:  # whose rows are not in the block's snapshot
        with acid.transaction():
            how(acid, orders)
            WRITES[write](orders, spark)
    else:
        how(acid, orders)
        WRITES[write](orders, spark)
    assert rows(acid) == [(1, 10, None), (2, 22, "north"), (3, 30, "south")]
    assert sorted(orders.columns) == ["id", "total"], "a frame stays what it was"
    assert {tuple(row) for row in orders.collect()} == {(1, 10), (2, 20)}


def test_a_builder_takes_the_columns_of_the_moment_when_it_runs(
    acid: AcidSession, spark: SparkSession, orders: Any
) -> None:
    builder, everything = upsert(orders, spark), orders.merge(with_region(spark), "t.id = s.id")
    several = acid.multi_insert(with_region(spark)).into(orders._table)
    by_another_client(acid, orders)
    builder.execute()
    assert rows(acid) == [(1, 10, None), (2, 22, "north"), (3, 30, "south")]
    everything.whenMatchedUpdateAll().execute()
    several.execute()
    assert rows(acid) == [(1, 10, None), *[(2, 21, "north")] * 2, *[(3, 30, "south")] * 2]


def test_a_value_that_only_the_wider_type_holds_is_stored(acid: AcidSession, spark: SparkSession, orders: Any) -> None:
    builder = orders.merge(frame(spark, (1, 2**41), schema="id int, total bigint"), "t.id = s.id")
    with connect(acid.connection.uri) as connection:
        AcidSession(spark, connection).change_column_type("d.o", "total", "bigint")
    orders.update({"total": "total + 1099511627776"}, where="id = 2")
    builder.whenMatchedUpdateAll().execute()
    orders.insert(frame(spark, (3, 2**42), schema="id int, total bigint"))
    assert rows(acid) == [(1, 2**41), (2, 2**40 + 20), (3, 2**42)]


def test_a_column_that_was_renamed_is_known_by_its_new_name(
    acid: AcidSession, spark: SparkSession, orders: Any
) -> None:
    acid.rename_column("d.o", "total", "sum")
    for write in WRITES.values():
        with pytest.raises(ColumnError):
            write(orders, spark)
    assert orders.update({"sum": "sum + 1"}, where="id = 2") == 1
    assert rows(acid) == [(1, 10), (2, 21)]


def test_properties_are_those_of_now(acid: AcidSession, spark: SparkSession, orders: Any) -> None:
    """By the new layout each task's rows have a directory of their own."""
    acid.set_properties(orders._table, {"hive_acid.layout": "statements"})
    orders.insert(spark.range(4).repartition(2).selectExpr("cast(id AS int) AS id", "0 AS total"))
    place = acid.connection.table("d", "o").location.removeprefix("file:")
    found = {path.parent.name: path.name for path in Path(place).glob("delta_0000002*/bucket_*")}
    assert set(found.values()) == {"bucket_00000"}


VERBS: dict[str, Callable[[AcidSession, Any, SparkSession, str], object]] = {
    **{name: lambda acid, on, spark, path, write=write: write(on(), spark) for name, write in WRITES.items()},
    "insert": lambda acid, on, spark, path: acid.insert(on()._table, frame(spark, (7, 7))),
    "evolving insert": lambda acid, on, spark, path: on().insert(with_region(spark), schema_evolution=True),
    "overwrite": lambda acid, on, spark, path: on().overwrite(frame(spark, (7, 7))),
    "overwrite where": lambda acid, on, spark, path: on().overwrite(frame(spark, (1, 7)), where="id = 1"),
    "delete": lambda acid, on, spark, path: on().delete("id = 1"),
    "load": lambda acid, on, spark, path: on().load_data(path, copy=True),
    "truncate": lambda acid, on, spark, path: on().truncate(),
    "concatenate": lambda acid, on, spark, path: on().concatenate(),
    "analyze": lambda acid, on, spark, path: on().analyze(),
    "partitions": lambda acid, on, spark, path: on().partitions(),
    "export": lambda acid, on, spark, path: acid.export_table(on()._table, path + "_export"),
    "read": lambda acid, on, spark, path: acid.table(on()._table),
    "add columns": lambda acid, on, spark, path: acid.add_columns(on()._table, {"n": "int"}),
    "rename column": lambda acid, on, spark, path: acid.rename_column(on()._table, "total", "n"),
    "change type": lambda acid, on, spark, path: acid.change_column_type(on()._table, "total", "bigint"),
    "set properties": lambda acid, on, spark, path: acid.set_properties(on()._table, {"a": "b"}),
    "rename": lambda acid, on, spark, path: acid.rename_table(on()._table, "d.third"),
    "drop partitions": lambda acid, on, spark, path: acid.drop_partitions(on()._table, ["p=1"]),
    "convert": lambda acid, on, spark, path: acid.convert_table(on()._table),
    "multi-insert": lambda acid, on, spark, path: acid.multi_insert(frame(spark, (7, 7))).into(on()._table).execute(),
    "sink": lambda acid, on, spark, path: acid.sink(on()._table, query="q")(frame(spark, (7, 7)), 0),
}


def alone(name: str) -> tuple[type[HiveAcidError], ...]:
    """The handle's frame may be in the way of a verb that wants the name for itself, before anything is looked at."""
    return (SnapshotInTheWayError,) if name in ("overwrite", "truncate", "rename") else ()


def test_every_verb_refuses_another_table_of_the_name(
    acid: AcidSession, spark: SparkSession, orders: Any, tmp_path: Any
) -> None:
    """Dropped, renamed, and with another one in its place; alone and in a block, where the snapshot stays."""
    path = str(tmp_path / "files")
    frame(spark, (7, 7)).coalesce(1).write.orc(path)
    sink, builder = acid.sink("d.o", query="q"), upsert(orders, spark)
    held = {
        "held sink": lambda: sink(frame(spark, (7, 7)), 0),
        "held builder": builder.execute,
        **{name: (lambda verb=verb: verb(acid, lambda: orders, spark, path)) for name, verb in VERBS.items()},
    }
    with connect(acid.connection.uri) as other:
        session = AcidSession(spark, other)
        wire = other.wire_table("d", "o")
        wire.tableName = "before"
        other.call("alter_table", "d", "o", wire)  # without a lock, for which the handle's frame would be waited for
        for name, verb in held.items():
            with pytest.raises((NoSuchObjectError, *alone(name))):
                verb()
                pytest.fail(f"{name} went on without the table")
        session.create_table("d.o", COLUMNS)
        session.insert("d.o", frame(spark, (1, 99)))
        for name, verb in held.items():
            with pytest.raises((TableChangedError, *alone(name)), match=r"another table now|this very thread reads"):
                verb()
                pytest.fail(f"{name} was done to another table")
    assert rows(acid) == [(1, 99)]
    assert rows(acid, "d.before") == [(1, 10), (2, 20)]
    found = acid.connection.table("d", "o")
    assert [column.name for column in found.columns] == ["id", "total"]
    assert "a" not in found.parameters
    acid.insert("d.o", frame(spark, (2, 98)))
    assert acid.update("d.o", {"total": "0"}, "id = 1") == 1, "by its name it is whichever has the name"
    assert rows(acid) == [(1, 0), (2, 98)]


def test_rows_go_to_a_partition_that_somebody_has_just_put_elsewhere(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.create_table("d.o", COLUMNS, partitioned_by={"p": "int"})
    table = acid.connection.table("d", "o")
    call = Connection.call
    with connect(acid.connection.uri) as other:

        def late(connection: Connection, method: str, *args: object) -> object:
            if method == "add_partitions_req" and connection is acid.connection:
                other.add_partitions(table, {"p=1": table.location + "_elsewhere"})
            return call(connection, method, *args)

        monkeypatch.setattr(Connection, "call", late)
        assert acid.insert("d.o", frame(spark, (1, 10, 1), (2, 20, 2), schema="id int, total int, p int")) == 2
    assert rows(acid) == [(1, 10, 1), (2, 20, 2)]
    assert acid.connection.partitions(table)["p=1"].endswith("_elsewhere")


@pytest.mark.parametrize("moment", [["hive_acid_begin"], ["hive_acid_begin", "get_table_req"]])
def test_a_read_is_of_the_table_that_has_the_name_behind_its_lock(
    acid: AcidSession, spark: SparkSession, orders: Any, monkeypatch: pytest.MonkeyPatch, moment: list[str]
) -> None:
    """Not of one that was looked up before: by a name of the new one, or of none."""
    ask = Connection.ask
    with connect(acid.connection.uri) as other:

        def late(connection: Connection, *questions: Question) -> list[Any]:
            if connection is acid.connection:
                asked.append(questions[0].method)
            if asked[-len(moment) :] == moment and connection is acid.connection:
                monkeypatch.setattr(Connection, "ask", ask)
                wire = other.wire_table("d", "o")
                wire.sd.cols[1].name = "sum"
                other.call("alter_table", "d", "o", wire)
            return ask(connection, *questions)

        for read in (lambda: acid.table("d.o"), lambda: acid.sql("SELECT * FROM d.o")):
            asked: list[str] = []
            monkeypatch.setattr(Connection, "ask", late)
            found = read()
            assert found.columns == ["id", "sum" if len(moment) == 1 else "total"]
            assert {tuple(row) for row in found.collect()} == {(1, 10), (2, 20)}
            with connect(acid.connection.uri) as again:
                wire = again.wire_table("d", "o")
                wire.sd.cols[1].name = "total"
                again.call("alter_table", "d", "o", wire)


def test_null_and_its_name_in_one_statement_are_refused(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.o", {"id": "int"}, partitioned_by={"p": "string"})
    both = frame(spark, (1, None), (2, "__HIVE_DEFAULT_PARTITION__"), schema="id int, p string")
    acid.insert("d.o", both.where("id = 1"))
    merge = acid.merge("d.o", both.withColumn("id", both.id + 10), "t.id = s.id").whenNotMatchedInsertAll()
    with pytest.raises(HiveAcidError):
        merge.execute()
    assert rows(acid) == [(1, None)]
