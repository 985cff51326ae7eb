"""Rows that Spark has read, kept as Arrow in files until a batch of a stream is over.

The files have the very batches that Spark gives to Python, and get back from it: no value is converted. Only pyarrow
is asked to put them into files and to take them out, here and on executors.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from hive_acid.filesystem import files
from hive_acid.spark.jvm.job_settings import configured

_COMPRESSION = "lz4"
_OF_SOURCES = {"spark.sql.execution.arrow.useLargeVarTypes": "false"}
"""Texts as PySpark's sources have them, however the session has them in Arrow."""

_ZONE = "UTC"
"""The one that PySpark's sources name; what a timestamp is does not depend on it."""


def staged(frame: DataFrame, directory: str) -> list[str]:
    """Have Spark put a frame's rows into files of a directory, each task into one; the files' places."""
    with configured(frame.sparkSession, _OF_SOURCES):
        written = frame.mapInArrow(partial(_written, directory), "path string").collect()
    return sorted(row.path for row in written)


def _written(directory: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write a task's rows into a file of its own, as each attempt does; the file's place, if there are rows."""
    rows = (batch for batch in batches if batch.num_rows)
    first = next(rows, None)
    if first is None:
        return
    path = files.join(directory, f"{uuid.uuid4().hex}.arrow")
    schema = _as_sources_have_it(first.schema)
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
    with files.create(path) as file, pa.ipc.new_stream(file, schema, options=options) as writer:
        writer.write_batch(first.cast(schema))
        for batch in rows:
            writer.write_batch(batch.cast(schema))
    yield pa.RecordBatch.from_pydict({"path": [path]})


def rows_of(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of one file."""
    with files.opened(path) as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def _as_sources_have_it(schema: pa.Schema) -> pa.Schema:
    """The types that PySpark wants of a source: the same, in its zone, and all values may be null."""
    return pa.schema([pa.field(field.name, _in_zone(field.type)) for field in schema])


def _in_zone(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, _ZONE)
    if pa.types.is_list(kind):
        return pa.list_(_field_in_zone(kind.value_field))
    if pa.types.is_map(kind):
        key = pa.field(kind.key_field.name, _in_zone(kind.key_type), nullable=False)
        return pa.map_(key, _field_in_zone(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_field_in_zone(kind.field(at)) for at in range(kind.num_fields)])
    return kind


def _field_in_zone(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _in_zone(field.type))
