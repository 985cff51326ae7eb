"""Columns of ACID tables that were added, renamed or widened: files are found by the places of their columns."""

import re
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, InvalidOperationError
from hive_acid.format.evolution import RENAMED, agree, is_known_by_name, stands_under
from hive_acid.spark import AcidSession
from hive_acid.spark.read.legacy import evolution
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table
from tests.spark.placed import acid_shaped, commit_writes, place
from tests.spark.plans import scans


def rows(acid: AcidSession, *columns: Any, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).select(*columns).collect())


def columns_of(acid: AcidSession, name: Any = "d.t") -> Any:
    return [(column.name, column.type) for column in acid.connection.table(*name.split(".")).columns]


def test_names_by_place() -> None:
    assert agree(["a", "b"], ["A"])
    assert not agree(["a", "b"], ["b"])
    assert not agree(["a"], ["a", "b"])
    assert stands_under(["x", "y", "z"], ["a", "b"]) == ("a", "b", None)
    assert is_known_by_name(["a", "b"], ["B", "A"])
    assert not is_known_by_name(["a", "b"], ["a", "c"])


def test_added_renamed_and_widened_columns(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "b": "decimal(5,2)", "c": "varchar(3)"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.createDataFrame([(1, 1.5, "x", 0), (2, 2.5, "y", 1)], "id int, b double, c string, p int"))
    before = acid.table("d.t")
    acid.rename_column("d.t", "B", "Price")
    acid.add_columns("d.t", {"b": "string", "when": "date"})
    acid.change_column_type("d.t", "id", "bigint")
    acid.change_column_type("d.t", "price", "decimal(12,4)")
    acid.change_column_type("d.t", "c", "string")
    assert columns_of(acid) == [
        ("id", "bigint"), ("price", "decimal(12,4)"), ("c", "string"), ("b", "string"), ("when", "date")
    ]  # fmt: skip
    assert rows(acid, "id", "price", "c", "b", "when", "p") == [
        (1, Decimal("1.5"), "x", None, None, 0), (2, Decimal("2.5"), "y", None, None, 1)
    ]  # fmt: skip
    assert sorted(row.b for row in before.collect()) == [Decimal("1.50"), Decimal("2.50")], "as it was called then"
    wide = spark.createDataFrame(
        [(2**40, 3.25, "longer text", "new", 1)], "id long, price double, c string, b string, p int"
    )
    acid.insert("d.t", wide.selectExpr("*", "date'2020-02-02' AS when"))
    assert rows(acid, "price", "b") == [(Decimal("1.5"), None), (Decimal("2.5"), None), (Decimal("3.25"), "new")]
    assert acid.table("d.t").where("price > 2").count() == 2
    assert acid.update("d.t", {"b": "concat(c, price)"}, "price < 3 AND p = 1") == 1
    assert acid.delete("d.t", "price = 1.5") == 1
    expected = [(2, Decimal("2.5"), "y2.5000"), (2**40, Decimal("3.25"), "new")]
    assert rows(acid, "id", "price", "b") == expected
    compact_table(spark, acid, "d.t", "major")
    assert rows(acid, "id", "price", "b") == expected


WIDER = {
    "a": ("tinyint", "int", 7),
    "b": ("smallint", "bigint", -300),
    "c": ("float", "double", 1.5),
    "d": ("decimal(4,1)", "decimal(20,6)", Decimal("123.5")),
    "e": ("varchar(2)", "varchar(7)", "xy"),
    "f": ("char(2)", "char(4)", "x   "),
}


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_every_widening(acid: AcidSession, spark: SparkSession, vectorized: Any) -> None:
    acid.create_table("d.t", {name: kinds[0] for name, kinds in WIDER.items()})
    acid.insert("d.t", spark.createDataFrame([tuple(kinds[2] for kinds in WIDER.values())], list(WIDER)))
    for name, kinds in WIDER.items():
        acid.change_column_type("d.t", name, kinds[1])
    spark.conf.set("spark.sql.orc.enableVectorizedReader", vectorized)
    try:
        assert rows(acid, *WIDER) == [tuple(kinds[2] for kinds in WIDER.values())]
        assert acid.table("d.t").where("b < -299 AND d > 123 AND c = 1.5").count() == 1
    finally:
        spark.conf.unset("spark.sql.orc.enableVectorizedReader")


def test_names_that_were_swapped(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"a": "int", "b": "int"})
    acid.insert("d.t", spark.createDataFrame([(1, 2)], "a int, b int"))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        acid.rename_column("d.t", old, new)
    acid.insert("d.t", spark.createDataFrame([(20, 10)], "a int, b int"))
    assert columns_of(acid) == [("b", "int"), ("a", "int")]
    assert rows(acid, "b", "a") == [(1, 2), (10, 20)]
    compact_table(spark, acid, "d.t", "minor")
    assert rows(acid, "b", "a") == [(1, 2), (10, 20)]


def test_former_names_cost_no_column_more(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    for first in (0, 10):
        acid.insert("d.t", spark.range(first, first + 10).selectExpr("id", "concat('n', id) AS name"))
    acid.rename_column("d.t", "name", "title")
    acid.insert("d.t", spark.range(20, 30).selectExpr("id", "concat('n', id) AS title"))
    acid.delete("d.t", "id = 3")
    found = acid.table("d.t").select("title")
    assert found.count() == 29
    for one in scans(found):
        read = re.search(r"row:struct<(.*?)>>", one.text.replace("\n", " "))
        assert read is not None
        assert read[1] in (
            "name:string,__acid_ghost:boolean", "title:string,__acid_ghost:boolean", "__acid_ghost:boolean"
        ), one.text  # fmt: skip
        assert "Batched: true" in one.text


def test_tails_are_looked_at_only_where_names_may_differ(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(evolution, "_names", lambda *args, names=evolution._names, **how: (
        asked.append(len(args[1])) or names(*args, **how)
    ))  # fmt: skip
    acid.create_table("d.t", {"id": "bigint"})
    for first in (0, 10, 20):
        acid.insert("d.t", spark.range(first, first + 10))
    assert acid.table("d.t").columns == ["id"]
    assert asked == [1], "the oldest file speaks for a table that nobody has marked"
    acid.rename_column("d.t", "id", "n")
    asked.clear()
    assert acid.table("d.t").count() == 30
    assert acid.table("d.t").columns == ["n"]
    assert asked == [3]


def test_a_table_renamed_elsewhere_has_no_mark(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "title": "string"})
    at = commit_writes(acid, "d.t", 1) / "delta_0000001_0000001_0000"
    at.mkdir()
    place(acid_shaped(spark.range(3).selectExpr("id", "concat('n', id) AS name"), 1), at / "bucket_00000")
    assert RENAMED not in acid.connection.table("d", "t").parameters
    assert rows(acid, "title") == [("n0",), ("n1",), ("n2",)]


def test_originals_are_read_by_name_until_a_column_is_renamed(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string", "more": "int"})
    at = location_of(acid, "d.t")
    place(spark.range(0, 2, 1, 1).selectExpr("concat('n', id) AS name", "id"), at / "000000_0")
    place(spark.range(2, 4, 1, 1).selectExpr("id AS _col0", "concat('n', id) AS _col1"), at / "000001_0")
    assert rows(acid, "id", "name", "more") == [(number, f"n{number}", None) for number in range(4)]
    (at / "000000_0").unlink()
    place(spark.range(0, 2, 1, 1).selectExpr("id", "concat('n', id) AS name"), at / "000000_0")
    acid.rename_column("d.t", "name", "title")
    assert acid.delete("d.t", "title = 'n3'") == 1
    assert rows(acid, "id", "title", "more") == [(number, f"n{number}", None) for number in range(3)]


def test_what_files_cannot_follow_is_refused(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    for run, words in {
        "add": (lambda: acid.add_columns("d.t", {"ID": "int"}), "has a column 'id' already"),
        "key": (lambda: acid.rename_column("d.t", "p", "q"), "partition column 'p'"),
        "unknown": (lambda: acid.rename_column("d.t", "x", "y"), "unknown column 'x'"),
        "taken": (lambda: acid.rename_column("d.t", "id", "P"), "has a column 'P' already"),
        "type": (lambda: acid.add_columns("d.t", {"u": "uniontype<int,string>"}), "not supported"),
    }.values():
        with pytest.raises(ColumnError, match=words):
            run()
    with pytest.raises(InvalidOperationError, match="type of id cannot change"):
        acid.change_column_type("d.t", "id", "smallint")
    assert columns_of(acid) == [("id", "int"), ("name", "string")]
    with acid.transaction():
        acid.insert("d.t", spark.createDataFrame([(1, "a", 1)], "id int, name string, p int"))
        acid.add_columns("d.t", {"more": "int"})
        acid.insert("d.t", spark.createDataFrame([(2, "b", 5, 1)], "id int, name string, more int, p int"))
    assert rows(acid, "id", "more") == [(1, None), (2, 5)]


def test_a_clustering_column_keeps_its_type_and_may_get_another_name(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, clustered_by=("id",), buckets=2)
    acid.insert("d.t", spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string"))
    with pytest.raises(ColumnError, match="other buckets"):
        acid.change_column_type("d.t", "ID", "bigint")
    acid.rename_column("d.t", "id", "n")
    assert acid.connection.table("d", "t").bucket_columns == ("n",)
    assert acid.update("d.t", {"name": "'x'"}, "n = 2") == 1
    assert rows(acid, "n", "name") == [(1, "a"), (2, "x")]
