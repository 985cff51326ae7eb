"""Keys of JSON lines that a table takes in as they are: whether they are written as its columns are.

Spark finds a column only under a key of exactly its name, Hive under one in any case: ``{"userId": 1}`` would be a row
in which `userid` is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.sources import reader_of
from hive_acid.spark.read.scan import literal_path
from hive_acid.spark.values.types import row_type

_JSON = "JsonSerDe"


def check_keys(spark: SparkSession, table: Table, found: Sequence[DataFilePath]) -> None:
    """Raise ColumnError for a key that would be a column's or a field's but for its case."""
    if not table.serde.endswith(_JSON) or not found:
        return
    with configured(spark, {"spark.sql.caseSensitive": "true"}):
        written = reader_of(spark, "json").load([literal_path(file.path) for file in found]).schema
    for key, name in _otherwise(written, row_type(table.columns), ""):
        raise ColumnError(
            f"{table.full_name}: a file has the key {key}, and the column is {name}, which is found under its own name "
            "alone. Read the file with spark.read.json, and insert its rows"
        )


def _otherwise(written: t.DataType, wanted: t.DataType, within: str) -> Iterator[tuple[str, str]]:
    """The keys that differ from a name in case alone, and these names."""
    if isinstance(written, t.ArrayType) and isinstance(wanted, t.ArrayType):
        yield from _otherwise(written.elementType, wanted.elementType, within)
    elif isinstance(written, t.StructType) and isinstance(wanted, t.MapType):
        for field in written.fields:
            yield from _otherwise(field.dataType, wanted.valueType, f"{within}{field.name}.")
    elif isinstance(written, t.StructType) and isinstance(wanted, t.StructType):
        names = {name.lower(): name for name in wanted.names}
        for field in written.fields:
            name = names.get(field.name.lower())
            if name is not None and name != field.name:
                yield f"{within}{field.name}", f"{within}{name}"
            elif name is not None:
                yield from _otherwise(field.dataType, wanted[name].dataType, f"{within}{name}.")
