"""Statistics in the metastore: right, and only called right while they are."""

import math
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes


def parameters(acid: AcidSession, name: Any = "t") -> Any:
    return acid.connection.table("d", name).parameters


def statistics(acid: AcidSession, columns: Any, *, partition: Any = None) -> Any:
    """What a reader of today is told: by column, and whether it may rely on it."""
    with acid.connection.begin() as reader:
        asked = {"dbName": "d", "tblName": "t", "colNames": columns, "engine": "hive"}
        snapshot = str(reader.write_ids("d", "t"))
        if partition is None:
            request = ttypes.TableStatsRequest(**asked, validWriteIdList=snapshot)
            answer = acid.connection.call("get_table_statistics_req", request)
            found = answer.tableStats
        else:
            request = ttypes.PartitionsStatsRequest(**asked, partNames=[partition], validWriteIdList=snapshot)
            answer = acid.connection.call("get_partitions_statistics_req", request)
            found = answer.partStats.get(partition, [])
    return {column.colName: column.statsData for column in found}, answer.isStatsCompliant


def test_rows_files_and_columns_are_told_and_proved(acid: AcidSession, spark: SparkSession) -> None:
    columns = {
        "i": "int", "s": "varchar(9)", "d": "decimal(6,2)", "b": "boolean", "x": "double", "day": "date",
        "at": "timestamp", "bin": "binary", "l": "array<int>",
    }  # fmt: skip
    acid.create_table("d.t", columns)
    rows = spark.sql(
        """SELECT int(id) i, concat('ab', id) s, decimal(id - 5) d, id % 2 = 0 b, double(id) x,
        date_add(DATE'1969-12-25', int(id)) day, TIMESTAMP'1970-01-01 00:00:00' at, X'0102' bin, array(1) l
        FROM range(10) UNION ALL SELECT null, null, null, null, null, null, null, null, null"""
    )
    acid.insert("d.t", rows)
    acid.delete("d.t", "i = 0")
    found = acid.analyze("d.t", columns=[name for name in columns if name != "l"])
    assert (found.rows, found.files) == (10, 2)
    told = parameters(acid)
    assert (told["numRows"], told["totalSize"]) == ("10", str(found.size_bytes))
    assert '"BASIC_STATS":"true"' in told["COLUMN_STATS_ACCURATE"]
    of, compliant = statistics(acid, [name for name in columns if name != "l"])
    assert compliant
    assert (of["i"].longStats.lowValue, of["i"].longStats.highValue, of["i"].longStats.numNulls) == (1, 9, 1)
    assert of["i"].longStats.numDVs == 9
    assert (of["s"].stringStats.maxColLen, of["s"].stringStats.avgColLen) == (3, 3.0)
    low, high = of["d"].decimalStats.lowValue, of["d"].decimalStats.highValue
    values = [Decimal(int.from_bytes(bound.unscaled, "big", signed=True)).scaleb(-bound.scale) for bound in (low, high)]
    assert values == [-4, 4]
    assert (of["b"].booleanStats.numTrues, of["b"].booleanStats.numFalses) == (4, 5)
    assert (of["day"].dateStats.lowValue.daysSinceEpoch, of["day"].dateStats.highValue.daysSinceEpoch) == (-6, 2)
    assert of["at"].timestampStats.lowValue.secondsSinceEpoch == 0
    assert of["bin"].binaryStats.maxColLen == 2
    assert of["x"].doubleStats.highValue == 9.0

    acid.update("d.t", {"i": "100"}, "i = 1")
    of, compliant = statistics(acid, ["i"])
    assert not compliant
    assert of == {}
    acid.analyze("d.t", columns=["i"])
    of, compliant = statistics(acid, ["i"])
    assert compliant
    assert of["i"].longStats.highValue == 100
    with pytest.raises(ColumnError, match="nested"):
        acid.analyze("d.t", columns=["l"])
    with pytest.raises(ColumnError, match="no column 'q'"):
        acid.analyze("d.t", columns=["q"])


def test_partitions_have_statistics_of_their_own(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "x": "float"}, partitioned_by={"p": "string"})
    rows = spark.range(10).selectExpr("int(id) id", "if(id = 3, float('NaN'), float(id)) x", "string(id % 2) p")
    acid.insert("d.t", rows)
    acid.add_partitions("d.t", {"p=empty": None})
    found = acid.analyze("d.t", columns=["id", "x"])
    assert {name: figures.rows for name, figures in found.partitions.items()} == {"p=0": 5, "p=1": 5, "p=empty": 0}
    of, compliant = statistics(acid, ["id", "x"], partition="p=1")
    assert compliant
    assert (of["id"].longStats.lowValue, of["id"].longStats.highValue) == (1, 9)
    assert of["x"].doubleStats.lowValue is None
    assert not math.isnan(statistics(acid, ["x"], partition="p=0")[0]["x"].doubleStats.highValue)
    acid.insert("d.t", rows.where("id = 1"))
    assert statistics(acid, ["id"], partition="p=0")[1]
    assert not statistics(acid, ["id"], partition="p=1")[1]
    assert acid.analyze("d.t", partition={"p": "1"}).rows == 6


def test_an_analysis_that_does_not_commit_proves_nothing(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(3).selectExpr("int(id) id"))
    with pytest.raises(KeyError), acid.transaction():
        acid.insert("d.t", spark.range(3).selectExpr("int(id) id"))
        assert acid.analyze("d.t", columns=["id"]).rows == 6
        raise KeyError
    assert statistics(acid, ["id"]) == ({}, False)


def test_statements_keep_the_figures_up_while_they_are_exact(acid: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark, acid.connection, statistics=True) as keeping:
        keeping.create_table("d.t", {"id": "int"})
        keeping.create_table("d.p", {"id": "int"}, partitioned_by={"p": "int"})
        rows = spark.range(10).selectExpr("int(id) id", "int(id % 2) p")
        for change, expected in (
            (lambda: keeping.insert("d.t", rows.drop("p")), 10),
            (lambda: keeping.delete("d.t", "id < 3"), 7),
            (lambda: keeping.update("d.t", {"id": "id + 1"}, "id > 5"), 7),
            (lambda: keeping.overwrite("d.t", rows.drop("p").limit(4)), 4),
        ):
            change()
            assert parameters(acid)["numRows"] == str(expected)
            assert is_exact(acid)
        keeping.insert("d.p", rows)
        keeping.delete("d.p", "id = 1")
        by_name = {
            partition.values[0]: partition.parameters["numRows"]
            for partition in acid.connection.call("get_partitions", "d", "p", -1)
        }
        assert by_name == {"0": "5", "1": "4"}
        with pytest.raises(KeyError), keeping.transaction():
            keeping.insert("d.t", rows.drop("p"))
            raise KeyError
        assert not is_exact(acid)
        keeping.insert("d.t", rows.drop("p"))
        assert not is_exact(acid)
        keeping.analyze("d.t")
        assert is_exact(acid)
        assert parameters(acid)["numRows"] == "14"


def is_exact(acid: AcidSession, name: Any = "t") -> Any:
    """Whether the metastore calls the basic figures exact, to a reader of today."""
    with acid.connection.begin() as reader:
        request = ttypes.GetTableRequest(dbName="d", tblName=name, validWriteIdList=str(reader.write_ids("d", name)))
        request.processorCapabilities = ["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"]
        table = acid.connection.call("get_table_req", request).table
    return table.isStatsCompliant and "BASIC_STATS" in table.parameters.get("COLUMN_STATS_ACCURATE", "")
