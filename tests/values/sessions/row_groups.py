"""Which rows of a file ORC reads for a predicate, asked of the JVM's ORC library without Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hive_acid.spark.conditions.orc.sarg import search_options
from hive_acid.spark.conditions.predicates import Predicate

_ROW_ID = "3"


class RowGroups:
    """ORC's own reader in Spark's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._java: Any = spark.sparkContext._gateway.jvm  # type: ignore[union-attr]

    def kept(self, path: str, predicate: Predicate, columns: list[str]) -> list[range] | None:
        """The places of the rows that are read for a predicate on the file's columns; None for all."""
        options = search_options(predicate, columns)
        if not options:
            return None
        orc, hadoop = self._java.org.apache.orc, self._java.org.apache.hadoop
        conf = hadoop.conf.Configuration()
        for key, value in options.items():
            conf.set(key, value)
        conf.set("orc.include.columns", _ROW_ID)
        reader = orc.OrcFile.createReader(hadoop.fs.Path(path), orc.OrcFile.readerOptions(conf))
        asked = orc.mapred.OrcInputFormat.buildOptions(conf, reader, 0, 1 << 60)
        rows = reader.rows(asked)
        batch = reader.getSchema().createRowBatch()
        found = []
        while True:
            begin = rows.getRowNumber()
            if not rows.nextBatch(batch):
                break
            found.append(range(begin, begin + batch.count()))
        rows.close()
        return found
