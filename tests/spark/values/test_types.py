"""Hive's type names and Spark's."""

from typing import Any

import pytest
from pyspark.sql import types as t

from hive_acid.catalog.table import Column
from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.values.types import has_timestamp, hive_columns, hive_type, row_type, spark_type, text_length

PAIRS = {
    "boolean": t.BooleanType(),
    "tinyint": t.ByteType(),
    "smallint": t.ShortType(),
    "int": t.IntegerType(),
    "bigint": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "decimal(38,0)": t.DecimalType(38, 0),
    "decimal(5,5)": t.DecimalType(5, 5),
    "string": t.StringType(),
    "binary": t.BinaryType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "array<map<string,struct<a:int,b:decimal(3,1)>>>": t.ArrayType(
        t.MapType(
            t.StringType(),
            t.StructType([t.StructField("a", t.IntegerType()), t.StructField("b", t.DecimalType(3, 1))]),
        )
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_ways(name: Any) -> None:
    assert spark_type(name) == PAIRS[name]
    assert hive_type(PAIRS[name]) == name
    assert spark_type(name.upper()) == PAIRS[name]


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("integer", t.IntegerType()),
        ("decimal", t.DecimalType(10, 0)),
        ("numeric( 7 , 2 )", t.DecimalType(7, 2)),
        ("double precision", t.DoubleType()),
        ("varchar(10)", t.StringType()),
        ("timestamp  with local\ttime zone", t.TimestampType()),
        ("char( 3 )", t.StringType()),
        ("struct< A : int , b:array< string > >", spark_type("struct<a:int,b:array<string>>")),
    ],
)
def test_other_spellings(name: Any, type_: Any) -> None:
    assert spark_type(name) == type_


@pytest.mark.parametrize(
    "name",
    ["", "interval", "interval_year_month", "uniontype<int,string>", "void",
     "varchar", "decimal(39,0)", "decimal(3,4)", "array<int", "array<int,int>", "map<int>", "struct<a>", "struct<>",
     "array<void>"],
)  # fmt: skip
def test_what_is_not_supported_is_named(name: Any) -> None:
    with pytest.raises(ColumnError):
        spark_type(name)


@pytest.mark.parametrize(
    "type_",
    [t.NullType(), t.DayTimeIntervalType(), t.YearMonthIntervalType(), t.VariantType(), t.ArrayType(t.NullType()),
     t.StringType("UNICODE_CI")],
)  # fmt: skip
def test_what_spark_has_and_hive_has_not(type_: Any) -> None:
    with pytest.raises(ColumnError, match="no counterpart"):
        hive_type(type_)


def test_lengths() -> None:
    assert text_length("varchar(10)") == ("varchar", 10)
    assert text_length("CHAR( 3 )") == ("char", 3)
    assert text_length("string") is None


def test_timestamps_are_found_at_any_depth() -> None:
    assert has_timestamp(spark_type("struct<a:array<map<int,timestamp>>>"))
    assert not has_timestamp(spark_type("struct<a:array<map<date,string>>>"))
    assert hive_type(t.TimestampNTZType()) == "timestamp"


def test_names_are_lower_case_and_distinct() -> None:
    assert hive_columns({"Id": "INT"})[0].name == "id"
    assert hive_columns({"Id": "INT"})[0].type == "int"
    with pytest.raises(ColumnError, match="'id' is given twice"):
        hive_columns({"Id": "int", "id": "int"})


@pytest.mark.parametrize(("one", "other"), [("id", "ID"), ("i", "ı"), ("s", "ſ"), ("ς", "σ"), ("k", "\u212a")])
def test_names_that_are_one_to_spark_are_refused(acid: AcidSession, one: Any, other: Any) -> None:
    """Spark compares names letter by letter, in upper case and then in lower: a table with both could not be read."""
    with pytest.raises(ColumnError, match="twice"):
        acid.create_table("d.t", {one: "int", other: "int"})
    with pytest.raises(ColumnError, match="twice"):
        acid.create_table("d.t", {one: "int"}, partitioned_by={other: "int"})
    with pytest.raises(ColumnError, match="twice"):
        acid.create_table("d.t", {"x": f"struct<{one}:int,{other}:int>"})
    acid.create_table("d.t", {one: "int", "x": "int"}, partitioned_by={"p": "int"})
    for change in (
        lambda: acid.add_columns("d.t", {other: "int"}),
        lambda: acid.rename_column("d.t", "x", other),
        lambda: acid.insert("d.t", acid.spark.sql(f"SELECT 1 `{one}`, 2 `{other}`, 3 x, 4 p"), schema_evolution=True),
        lambda: (
            acid.insert("d.t", acid.spark.sql(f"SELECT 2 `{other}`, 3 x, 4 p"), schema_evolution=True)
            if one != other.lower()
            else acid.add_columns("d.t", {"P": "int"})
        ),
    ):
        with pytest.raises(ColumnError, match=r"twice|already|one name to Spark"):
            change()
    assert acid.table("d.t").columns == [one, "x", "p"]


def test_names_of_our_own_columns_are_refused() -> None:
    for name in ("__acid_new_id", "__ACID_clause"):
        with pytest.raises(ColumnError, match=f"'{name.lower()}': names that begin with __acid_ are hive-acid's own"):
            hive_columns({"id": "int", name: "int"})
        with pytest.raises(ColumnError, match=f"'{name}': names that begin with __acid_ are hive-acid's own"):
            row_type([Column(name, "int")])
