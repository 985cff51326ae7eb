"""Values, and names, for which a file system has no room: every verb that gets one says so, and does nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError, HiveAcidError, MetaError, MetastoreError, NameTooLongError, StreamingError
from hive_acid.spark import AcidSession
from hive_acid.streaming import JsonWriter, StreamingConnection
from hive_acid.wire import ttypes
from tests.spark.checker import location_of

LONG = "ü" * 130
ONLY = {"transactional_properties": "insert_only"}
PLAIN = {"transactional": "false"}
DEEP = {f"k{number}": "x" * 240 for number in range(18)}
"""Each value has a name; all of them together have no path."""

LOCATION = f"/tmp/{LONG}"
FAR = "/tmp/" + "/".join(["x" * 200] * 25)


@pytest.fixture
def tables(acid: AcidSession, spark: SparkSession) -> Any:
    for name, properties in (("t", {}), ("i", ONLY), ("p", PLAIN)):
        acid.create_table(f"d.{name}", {"id": "int"}, partitioned_by={"k": "string"}, properties=properties)
        deep = dict.fromkeys(DEEP, "string")
        acid.create_table(f"d.deep_{name}", {"id": "int"}, partitioned_by=deep, properties=properties)
    acid.create_table("d.s", {"id": "int"})
    acid.insert("d.t", spark.sql("SELECT 1 AS id, 'a' AS k"))
    return acid


def by_verbs(acid: Any, path: Path) -> dict[str, Callable[[], object]]:
    spark = acid.spark
    row = spark.sql(f"SELECT 1 AS id, '{LONG}' AS k")
    one, none = spark.sql("SELECT 1 AS id"), spark.sql("SELECT 1 AS id WHERE false")
    deep = one.selectExpr("id", *(f"'{value}' AS {key}" for key, value in DEEP.items()))
    file = path / "rows.orc"
    pyarrow.orc.write_table(pa.table({"id": pa.array([1], pa.int32())}), file)
    dummy = hive_acid.spark.session(spark, acid.connection, settings={"hive.txn.manager": "DummyTxnManager"})
    verbs: dict[str, Callable[[], object]] = {
        "update": lambda: acid.update("d.t", {"k": f"'{LONG}'"}),
        "update one": lambda: acid.update("d.t", {"k": f"'{LONG}'"}, "id = 1"),
        "UPDATE": lambda: acid.sql(f"UPDATE d.t SET k = '{LONG}' WHERE id = 1"),
        "merge": lambda: acid.merge("d.t", row, "t.id = s.id").whenMatchedUpdateAll().execute(),
        "multi-insert": lambda: acid.multi_insert(row).into("d.t").execute(),
        "sink": lambda: acid.sink("d.t", query="a")(row, 0),
        "upsert": lambda: acid.sink("d.t", query="u", mode="upsert", keys=["id"])(row, 0),
        "INSERT": lambda: acid.sql(f"INSERT INTO d.t PARTITION (k = '{LONG}') VALUES (1)"),
        "create as": lambda: acid.create_table_as("d.c", row, partitioned_by=["k"]),
        "plain insert": lambda: dummy.insert("d.p", row),
        "plain deep insert": lambda: dummy.insert("d.deep_p", deep),
        "LOAD": lambda: acid.sql(f"LOAD DATA INPATH '{file}' INTO TABLE d.t PARTITION (k = '{LONG}')"),
        "ADD": lambda: acid.sql(f"ALTER TABLE d.t ADD PARTITION (k = '{LONG}')"),
        "ADD LOCATION": lambda: acid.sql(f"ALTER TABLE d.t ADD PARTITION (k = '{LONG}') LOCATION '{file}'"),
    }
    for kind in ("t", "i"):
        for name, rows, spec in ((f"d.{kind}", row, {"k": LONG}), (f"d.deep_{kind}", deep, DEEP)):
            partition = "/".join(f"{key}={value}" for key, value in spec.items())
            verbs |= {
                f"insert {name}": partial(acid.insert, name, rows),
                f"overwrite {name}": partial(acid.overwrite, name, rows),
                f"overwrite partition {name}": partial(acid.overwrite, name, one, partition=spec),
                f"overwrite by nothing {name}": partial(acid.overwrite, name, none, partition=spec),
                f"load {name}": partial(acid.load_data, name, str(file), partition=spec),
                f"load over {name}": partial(acid.load_data, name, str(file), partition=spec, overwrite=True),
                f"add {name}": partial(acid.add_partitions, name, {partition: None}),
                f"add with files {name}": partial(acid.add_partitions, name, {partition: str(file)}),
            }
    verbs["add plain"] = lambda: acid.add_partitions("d.p", {f"k={LONG}": None})
    return verbs


def test_every_verb_tells_of_too_long_a_value_of_a_partition(tables: Any, tmp_path: Path) -> None:
    said = {}
    for name, verb in by_verbs(tables, tmp_path).items():
        try:
            said[name] = verb()
        except ColumnError as error:
            said[name] = str(error)
        except Exception as error:
            said[name] = error
    wrong = {name: words for name, words in said.items() if "a value is too long for a partition key" not in str(words)}
    assert wrong == {}
    assert [tuple(row) for row in tables.table("d.t").collect()] == [(1, "a")]
    assert [tables.table(f"d.{name}").partitions() for name in ("t", "i", "deep_t", "deep_i")] == [["k=a"], [], [], []]
    assert (tmp_path / "rows.orc").exists()
    assert [path.name for path in location_of(tables, "d.t").iterdir()] == ["k=a"]
    assert tables.table("d.t").where(f"k = '{LONG}'").count() == 0
    tables.sql(f"ALTER TABLE d.t DROP IF EXISTS PARTITION (k = '{LONG}')")


def test_a_stream_takes_no_record_with_too_long_a_value(tables: Any) -> None:
    uri = tables.connection.uri
    with pytest.raises(StreamingError, match="too long for a partition key"):
        StreamingConnection(uri, "d.t", JsonWriter(), static_partition={"k": LONG})
    with StreamingConnection(uri, "d.t", JsonWriter()) as stream, stream.transaction():
        stream.write(json.dumps({"id": 2, "k": "b"}))
        with pytest.raises(StreamingError, match="too long for a partition key"):
            stream.write(json.dumps({"id": 3, "k": "c"}) + "\n" + json.dumps({"id": 4, "k": LONG}))
        stream.write(json.dumps({"id": 5, "k": "ü" * 120}))
    assert sorted(row.id for row in tables.table("d.t").collect()) == [1, 2, 5]


def test_places_and_names_that_are_too_long(tables: Any, tmp_path: Path) -> None:
    acid, call = tables, tables.connection.call
    wire = acid.connection.wire_table("d", "t")

    def part(value: str, location: str | None = None) -> Any:
        descriptor = ttypes.StorageDescriptor(**vars(wire.sd))
        descriptor.location = location
        return ttypes.Partition(dbName="d", tableName="t", values=[value], sd=descriptor, parameters={})

    def added(*parts: Any) -> object:
        return call("add_partitions_req", ttypes.AddPartitionsRequest("d", "t", list(parts), True, False))

    moved = acid.connection.wire_table("d", "s")
    moved.sd.location = f"file:{LOCATION}"
    longest = "t" * 256
    cases: dict[str, tuple[type[HiveAcidError], Callable[[], object]]] = {
        "add": (MetastoreError, lambda: call("add_partition", part(LONG))),
        "add two": (MetastoreError, lambda: added(part("b"), part(LONG))),
        "add at": (MetastoreError, lambda: call("add_partition", part("b", f"file:{LOCATION}"))),
        "append": (MetastoreError, lambda: call("append_partition", "d", "t", [LONG])),
        "append by name": (MetastoreError, lambda: call("append_partition_by_name", "d", "t", f"k={LONG}")),
        "rename": (MetastoreError, lambda: call("rename_partition", "d", "t", ["a"], part(LONG))),
        "alter": (MetastoreError, lambda: call("alter_partition", "d", "t", part("a", f"file:{LOCATION}"))),
        "alter table": (MetastoreError, lambda: call("alter_table", "d", "s", moved)),
        "create": (MetaError, lambda: acid.create_table(f"d.{longest}", {"id": "int"})),
        "CREATE": (MetaError, lambda: acid.sql(f"CREATE TABLE d.{longest} (id int)")),
        "create as": (MetaError, lambda: acid.create_table_as(f"d.{longest}", acid.spark.sql("SELECT 1 AS id"))),
        "create at": (MetaError, lambda: acid.create_table("d.l", {"id": "int"}, location=LOCATION)),
        "create far": (MetaError, lambda: acid.create_table("d.l", {"id": "int"}, location=FAR)),
        "create database": (MetaError, lambda: acid.create_database("e", location=LOCATION)),
        "rename table": (MetaError, lambda: acid.rename_table("d.s", f"d.{longest}")),
        "RENAME": (MetaError, lambda: acid.sql(f"ALTER TABLE d.s RENAME TO d.{longest}")),
        "load": (NameTooLongError, lambda: acid.load_data("d.t", LOCATION, partition={"k": "b"})),
        "load far": (NameTooLongError, lambda: acid.load_data("d.t", FAR, partition={"k": "b"})),
        "add files": (NameTooLongError, lambda: acid.add_partitions("d.t", {"k=b": LOCATION})),
        "export": (NameTooLongError, lambda: acid.export_table("d.t", LOCATION)),
        "export far": (NameTooLongError, lambda: acid.export_table("d.t", FAR)),
    }
    wrong = {}
    for name, (kind, case) in cases.items():
        try:
            wrong[name] = case()
        except kind as error:
            if not any(words in str(error) for words in ("has no room for a", "longer than", "too long")):
                wrong[name] = error
        except Exception as error:
            wrong[name] = error
    assert wrong == {}
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(1, "a")]
    assert acid.table("d.t").partitions() == ["k=a"]
    assert "s" in call("get_all_tables", "d")


def test_a_long_name_gives_room_to_what_makes_a_directory_new(tables: Any) -> None:
    """While a dropped table is read, the next one of its name gets a directory with some more letters."""
    name = f"d.{'t' * 255}"
    tables.create_table(name, {"id": "int"})
    tables.insert(name, tables.spark.sql("SELECT 1 AS id"))
    before = tables.table(name)
    tables.drop_table(name)
    tables.create_table(name, {"id": "int"})
    tables.insert(name, tables.spark.sql("SELECT 2 AS id"))
    assert [[row.id for row in frame.collect()] for frame in (before, tables.table(name))] == [[1], [2]]
