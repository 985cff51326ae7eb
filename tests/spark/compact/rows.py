"""Rows of tables that are compacted here, as they are written and as they are read."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession

COLUMNS = {"id": "int", "name": "string"}


def content(acid: AcidSession, row_id: Any = True) -> Any:
    return sorted(map(str, acid.table("d.t", row_id=row_id).collect()))


def insert(acid: AcidSession, spark: SparkSession, first: Any, rows: Any, files: Any = 1) -> None:
    frame = spark.range(first, first + rows, 1, files).selectExpr("int(id) id", "concat('n', id) name")
    acid.insert("d.t", frame.repartition(files) if files > 1 else frame)
