"""EXPORT and IMPORT: one snapshot out, the same table in."""

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import AlreadyExistsError, ColumnError, FormatError, NoSuchObjectError
from hive_acid.spark import AcidSession
from hive_acid.spark.tables.export import Export
from tests.spark.checker import check_table, location_of


def read(acid: AcidSession, name: Any) -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


@pytest.fixture
def filled(acid: AcidSession, spark: SparkSession) -> Any:
    columns = {"id": "int", "name": "varchar(10)", "at": "timestamp"}
    acid.create_table("d.t", columns, partitioned_by={"p": "string"}, properties={"owner_of": "x"})
    rows = spark.range(20).selectExpr(
        "int(id) id", "concat('n', id) name", "TIMESTAMP'1900-01-01 00:00:00' at", "nullif(string(id % 3), '2') p"
    )
    acid.insert("d.t", rows)
    acid.delete("d.t", "id < 5")
    acid.update("d.t", {"name": "'u'"}, "id = 7")
    return acid


def test_an_import_makes_the_same_table(filled: Any, spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "out")
    assert filled.export_table("d.t", location) == 15
    filled.delete("d.t")
    filled.create_database("e")
    assert filled.import_table(location, "e.u") == 15
    assert filled.import_table(location, "e.v", properties={"a": "b"}, location=str(tmp_path / "v")) == 15
    for name in ("u", "v"):
        assert len(read(filled, f"e.{name}")) == 15
        table = filled.connection.table("e", name)
        assert [(c.name, c.type) for c in table.columns] == [
            ("id", "int"),
            ("name", "varchar(10)"),
            ("at", "timestamp"),
        ]
        assert table.parameters["owner_of"] == "x"
        assert filled.table(f"e.{name}").partitions() == filled.table("d.t").partitions()
        check_table(location_of(filled, f"e.{name}"))
    assert read(filled, "e.u") == read(filled, "e.v")
    assert filled.delete("e.u", "name = 'u'") == 1
    assert filled.connection.table("e", "v").location.endswith("/v")
    assert spark.read.orc(f"{location}/data").count() == 15


def test_an_export_may_be_of_some_partitions(filled: Any, tmp_path: Path) -> None:
    assert filled.export_table("d.t", str(tmp_path / "one"), partition={"p": "1"}) == 5
    assert filled.export_table("d.t", str(tmp_path / "none"), partition={"p": None}) == 5
    assert json.loads((tmp_path / "one" / "_export.json").read_bytes())["partitions"] == ["p=1"]
    assert filled.import_table(str(tmp_path / "none"), "d.u") == 5
    assert {row[-1] for row in read(filled, "d.u")} == {None}
    with pytest.raises(NoSuchObjectError):
        filled.export_table("d.t", str(tmp_path / "x"), partition={"p": "9"})


def test_partitions_without_rows_are_kept(filled: Any, tmp_path: Path) -> None:
    filled.add_partitions("d.t", {"p=empty": None})
    filled.delete("d.t", "p = '1'")
    filled.export_table("d.t", str(tmp_path / "x"))
    filled.import_table(str(tmp_path / "x"), "d.u")
    assert filled.table("d.u").partitions() == filled.table("d.t").partitions()


def test_an_export_that_has_not_ended_is_not_imported(filled: Any, tmp_path: Path) -> None:
    location = tmp_path / "out"
    filled.export_table("d.t", str(location))
    with pytest.raises(FileExistsError):
        filled.export_table("d.t", str(location))
    description = location / "_export.json"
    said = json.loads(description.read_bytes())
    description.unlink()
    with pytest.raises(FormatError, match="no export that has ended"):
        filled.import_table(str(location), "d.u")
    description.write_text(json.dumps({**said, "rows": 16}))
    with pytest.raises(FormatError, match="15 rows, and says that it has 16"):
        filled.import_table(str(location), "d.u")
    assert filled.connection.call("get_all_tables", "d") == ["t"]
    description.unlink()
    assert filled.export_table("d.t", str(location)) == 15
    assert filled.import_table(str(location), "d.u") == 15


def test_an_empty_table_of_the_same_columns_is_filled(filled: Any, tmp_path: Path, spark: SparkSession) -> None:
    location = str(tmp_path / "out")
    filled.export_table("d.t", location)
    columns = {"id": "int", "name": "varchar(10)", "at": "timestamp"}
    filled.create_table("d.same", columns, partitioned_by={"p": "string"})
    filled.create_table("d.other", {"id": "int"}, partitioned_by={"p": "string"})
    assert filled.import_table(location, "d.same") == 15
    assert read(filled, "d.same") == read(filled, "d.t")
    with pytest.raises(AlreadyExistsError, match="has been written to"):
        filled.import_table(location, "d.same")
    with pytest.raises(ColumnError, match="has other columns"):
        filled.import_table(location, "d.other")
    assert len(read(filled, "d.same")) == 15


def test_of_two_imports_at_a_time_one_fills_an_empty_table(
    filled: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(tmp_path / "out")
    assert filled.export_table("d.t", location) == 15
    filled.create_table("d.u", filled.connection.table("d", "t").columns, partitioned_by={"p": "string"})
    both, outcomes = threading.Barrier(2), []
    looked = Export.is_target

    def at_once(export: Any, *where: Any) -> Any:
        found = looked(export, *where)
        if not both.broken:
            with suppress(threading.BrokenBarrierError):
                both.wait(20)
            both.abort()
        return found

    monkeypatch.setattr(Export, "is_target", at_once)

    def import_it() -> None:
        with hive_acid.spark.session(spark, filled.connection.uri) as acid:
            try:
                outcomes.append(acid.import_table(location, "d.u"))
            except AlreadyExistsError:
                outcomes.append(0)

    threads = [threading.Thread(target=import_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [0, 15]
    assert read(filled, "d.u") == read(filled, "d.t")
